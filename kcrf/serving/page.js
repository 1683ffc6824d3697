// Sends the text to the server as it is typed and shows what was found. Texts are set as text, never as HTML.
"use strict";

const PAUSE = 120; // milliseconds without a key before a request
const AGAIN = 1000; // milliseconds before a request that was refused because the server is busy is sent again
const ALTERNATIVES = 4; // the best one is shown above already
const DOUBT = 0.9; // confidences below it stand out
const KINDS = { cws: "words", ner: "entities", classify: "label" };

const find = (id) => document.getElementById(id);
let models = [];
let model = null;
let waiting = null; // the timer of the next request
let running = null; // the controller of the request that runs

function element(name, className, ...children) {
  const made = document.createElement(name);
  if (className) made.className = className;
  made.append(...children);
  return made;
}

const percent = (p) => (p >= 0.9995 ? "100 %" : p < 0.001 ? "< 0.1 %" : `${(100 * p).toFixed(1)} %`);

function say(text, isError = false) {
  find("status").textContent = text || "\u00a0";
  find("status").classList.toggle("error", isError);
}

function choose(name) {
  model = models.find((item) => item.name === name) || models[0];
  for (const button of find("models").children) {
    button.setAttribute("aria-pressed", String(button.dataset.name === model.name));
  }
  find("pair").hidden = !model.pairs;
  send();
}

function wait(pause) {
  clearTimeout(waiting);
  waiting = setTimeout(send, pause);
}

async function send() {
  clearTimeout(waiting);
  if (running) running.abort();
  const text = find("text").value;
  if (!model || !text.trim()) {
    clear();
    return;
  }
  const controller = (running = new AbortController());
  const body = { model: model.name, texts: [model.pairs ? [text, find("text-b").value] : text] };
  if (model.task !== "classify") body.top_k = ALTERNATIVES;
  const start = performance.now();
  try {
    const answer = await fetch(model.path.slice(1), {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(body),
      signal: controller.signal,
    });
    const found = await answer.json();
    if (controller !== running) return;
    if (answer.status === 503) {
      say("The server is busy; trying again.", true);
      wait(AGAIN);
    } else if (!answer.ok) {
      say(found.error, true);
    } else {
      show(text, found.results[0], performance.now() - start);
    }
  } catch (error) {
    if (error.name !== "AbortError") say("The server does not answer.", true);
  }
}

function clear() {
  say("");
  find("result").replaceChildren(element("span", "soft", "Results appear here as you type."));
  find("others").hidden = true;
}

function show(text, result, milliseconds) {
  const spans = result.words || result.entities;
  const kind = KINDS[model.task];
  find("heading").textContent = kind[0].toUpperCase() + kind.slice(1);
  if (spans) {
    const characters = Array.from(text); // places are counted in code points
    const count = `${spans.length} ${spans.length === 1 ? (kind === "words" ? "word" : "entity") : kind}`;
    say(`${count}, ${Math.round(milliseconds)} ms`);
    find("result").replaceChildren(...marked(characters, spans, piece));
    showAlternatives(characters, spans, result.alternatives.slice(1));
  } else {
    say(`${Math.round(milliseconds)} ms`);
    find("result").replaceChildren(labels(result));
    find("others").hidden = true;
  }
}

// The text with `show(span, number)` in the place of each span.
function marked(characters, spans, show) {
  const nodes = [];
  let end = 0;
  spans.forEach((span, number) => {
    if (span.start > end) nodes.push(characters.slice(end, span.start).join(""));
    nodes.push(show(span, number));
    end = span.end;
  });
  nodes.push(characters.slice(end).join(""));
  return nodes;
}

function piece(span, number) {
  const sure = element("small", span.confidence < DOUBT ? "doubt" : "", percent(span.confidence));
  const box = element("span", "piece", element("span", "", span.text), sure);
  if (span.label) sure.prepend(`${span.label} `);
  box.style.setProperty("--hue", hue(span.label, number));
  box.style.setProperty("--sure", span.confidence.toFixed(2));
  return box;
}

function hue(label, number) {
  if (label === undefined) return number % 2 ? 215 : 160; // neighbours differ
  const place = model.labels.indexOf(label);
  return Math.round((place * 360) / Math.max(model.labels.length, 3) + 215) % 360;
}

function showAlternatives(characters, best, alternatives) {
  const key = (span) => `${span.start} ${span.end} ${span.label}`;
  const known = new Set(best.map(key));
  const rows = alternatives.map(({ probability, words, entities }) => {
    const spans = words || entities;
    const nodes = marked(characters, spans, (span) => {
      const shown = element(known.has(key(span)) ? "span" : "mark", "", span.text);
      if (span.label) shown.append(element("small", "", span.label));
      return element("span", "", shown, words ? " " : "");
    });
    return element("li", "", element("b", "", percent(probability)), element("span", "text", ...nodes));
  });
  find("alternatives").replaceChildren(...rows);
  find("others").hidden = rows.length === 0;
}

function labels(result) {
  if (typeof result.label === "number") return element("span", "", String(Number(result.label.toFixed(4))));
  const bars = element("div", "bars");
  const rows = Object.entries(result.probabilities).sort((a, b) => b[1] - a[1]);
  rows.forEach(([label, probability], place) => {
    const bar = element("progress");
    bar.value = probability;
    bar.setAttribute("aria-label", label);
    bars.append(element("span", place ? "" : "best", label), bar, element("span", "soft", percent(probability)));
  });
  return bars;
}

async function start() {
  const { models: found, limits } = await (await fetch("models")).json();
  models = found;
  for (const item of models) {
    const button = element("button", "", item.name, " ", element("small", "", KINDS[item.task]));
    button.dataset.name = item.name;
    button.addEventListener("click", () => choose(item.name));
    find("models").append(button);
  }
  for (const id of ["text", "text-b"]) {
    find(id).maxLength = limits.length;
    find(id).addEventListener("input", () => wait(PAUSE));
  }
  choose(models[0].name);
}

start().catch(() => say("The server does not answer.", true));
