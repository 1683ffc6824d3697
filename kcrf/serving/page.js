// Sends the text to the server while one types, and shows the results. Texts are set as text, never as HTML.
"use strict";

const PAUSE = 120; // milliseconds without a key before a request
const AGAIN = 1000; // milliseconds before a request that was refused because the server is busy is sent again
const ALTERNATIVES = 4; // with the most probable one
const DOUBT = 0.9; // probabilities below it stand out
const KINDS = { cws: "words", "cws-pos": "words", ner: "entities", pos: "tokens", classify: "label" };
const EXAMPLES = {
  cws: ["研究生命的起源。", "南京市长江大桥昨天通车了。", "他从马上跳下来。"],
  "cws-pos": ["研究生命的起源。", "他把这本书翻译成了中文。", "他从马上跳下来。"],
  ner: ["李明在北京大学读书。", "国家主席在上海会见了世界银行行长。", "Angela Merkel visited Paris on Monday."],
  pos: ["今天 天气 真 好 。", "Kim lives in Leeds ."],
  classify: ["这家餐厅的菜很好吃，下次还来。", "物流太慢了，包装也坏了。", "What a wonderful film!"],
  pairs: [["花呗怎么还款", "如何还花呗"], ["今天天气怎么样", "明天会下雨吗"]],
};
const INVISIBLE = /^[\p{C}\p{Z}\p{M}]+$/u;

const find = (id) => document.getElementById(id);
let models = [];
let limits = {};
let model = null;
let waiting = null; // the timer of the next request
let running = null; // the controller of the request that runs

function element(name, className, ...children) {
  const made = document.createElement(name);
  if (className) made.className = className;
  made.append(...children);
  return made;
}

const withCommas = (value) => value.toLocaleString("en");
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
  showExamples();
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
  const texts = model.pairs ? [text, find("text-b").value] : [text];
  const length = Math.max(...texts.map((item) => Array.from(item).length)); // in code points, as the server counts
  if (length > limits.length) {
    clear();
    say(`Nothing was sent: the text has ${withCommas(length)} characters, and the server accepts ${withCommas(limits.length)}.`, true);
    return;
  }
  const controller = (running = new AbortController());
  const body = { model: model.name, texts: [model.pairs ? texts : text] };
  if (["cws", "cws-pos", "ner"].includes(model.task)) body.k_best = ALTERNATIVES;
  const start = performance.now();
  try {
    const answer = await fetch(model.path.slice(1), {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(body),
      signal: controller.signal,
    });
    const content = await answer.json();
    if (controller !== running) return;
    if (answer.status === 503) {
      say("The server is busy; trying again.", true);
      wait(AGAIN);
    } else if (!answer.ok) {
      say(content.error, true);
    } else {
      show(text, content.results[0], performance.now() - start);
    }
  } catch (error) {
    if (error.name !== "AbortError") say("The server does not answer.", true);
  }
}

function clear() {
  say("");
  find("probability").textContent = "";
  find("result").replaceChildren(element("span", "soft", "Results appear here as you type."));
  find("others").hidden = true;
}

function show(text, result, milliseconds) {
  const spans = result.words || result.entities || result.tokens;
  const kind = KINDS[model.task];
  find("heading").textContent = kind[0].toUpperCase() + kind.slice(1);
  find("probability").textContent = "";
  if (spans) {
    const characters = Array.from(text); // places are counted in code points
    const count = `${spans.length} ${spans.length === 1 ? (kind === "entities" ? "entity" : kind.slice(0, -1)) : kind}`;
    say(`${count}, ${Math.round(milliseconds)} ms`);
    find("result").replaceChildren(...marked(characters, spans, piece));
    showAlternatives(characters, spans, result.alternatives || []);
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
  const probability = element("small", span.probability < DOUBT ? "doubt" : "", percent(span.probability));
  const box = element("span", "piece", visible(span.text), probability);
  if (span.label) probability.prepend(`${span.label} `);
  box.style.setProperty("--hue", hue(span.label, number));
  box.style.setProperty("--probability", span.probability.toFixed(2));
  return box;
}

// A text; the code points of one that shows nothing, as "U+200B" for a zero-width space.
function visible(text) {
  if (!INVISIBLE.test(text)) return element("span", "", text);
  const names = Array.from(text, (sign) => `U+${sign.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}`);
  return element("span", "invisible", names.join(" "));
}

function hue(label, number) {
  if (label === undefined) return number % 2 ? 215 : 160; // neighbors differ
  const place = model.labels.indexOf(label);
  return Math.round((place * 360) / Math.max(model.labels.length, 3) + 215) % 360;
}

// The analyses by their probability. That of the spans above is written beside their heading.
function showAlternatives(characters, best, alternatives) {
  const key = (span) => `${span.start} ${span.end} ${span.label}`;
  const keys = new Set(best.map(key));
  const isBest = (spans) => spans.length === keys.size && spans.every((span) => keys.has(key(span)));
  const others = alternatives.filter(({ words, entities }) => !isBest(words || entities));
  const own = alternatives.find((analysis) => !others.includes(analysis));
  find("probability").textContent = own ? `whole analysis ${percent(own.probability)}` : "";
  const rows = others.slice(0, ALTERNATIVES - 1).map(({ probability, words, entities }) => {
    const spans = words || entities;
    const nodes = marked(characters, spans, (span) => {
      const shown = keys.has(key(span)) ? visible(span.text) : element("mark", "", visible(span.text));
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

function showExamples() {
  const buttons = EXAMPLES[model.pairs ? "pairs" : model.task].map((example) => {
    const [text, second = ""] = [example].flat();
    const button = element("button", "", second ? `${text} / ${second}` : text);
    button.addEventListener("click", () => {
      find("text").value = text;
      find("text-b").value = second;
      send();
    });
    return button;
  });
  find("examples").replaceChildren(element("span", "soft", "Try"), ...buttons);
}

async function start() {
  ({ models, limits } = await (await fetch("models")).json());
  for (const item of models) {
    const button = element("button", "", item.name, " ", element("small", "", KINDS[item.task]));
    button.dataset.name = item.name;
    button.addEventListener("click", () => choose(item.name));
    find("models").append(button);
  }
  for (const id of ["text", "text-b"]) {
    find(id).addEventListener("input", () => wait(PAUSE));
  }
  choose(models[0].name);
}

start().catch(() => say("The server does not answer.", true));
