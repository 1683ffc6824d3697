// Sends the text to the server while one types, and shows the results. Texts are set as text, never as HTML.
"use strict";

const PAUSE = 120; // milliseconds without a key before a request
const AGAIN = 1000; // milliseconds before a request that was refused because the server is busy is sent again
const ALTERNATIVES = 4; // with the most probable one
const DOUBT = 0.9; // probabilities below it stand out
const LINK = 2000; // characters of a text that a link may hold
const KINDS = { cws: "words", "cws-pos": "words", ner: "entities", pos: "tokens", classify: "label" };
const EXAMPLES = {
  cws: ["研究生命的起源。", "南京市长江大桥昨天通车了。", "他从马上跳下来。"],
  "cws-pos": ["研究生命的起源。", "他把这本书翻译成了中文。", "他从马上跳下来。"],
  ner: ["李明在北京大学读书。", "国家主席在上海会见了世界银行行长。", "Angela Merkel visited Paris on Monday."],
  pos: ["今天 天气 真 好 。", "Kim lives in Leeds ."],
  classify: ["这家餐厅的菜很好吃，下次还来。", "物流太慢了，包装也坏了。", "What a wonderful film!"],
  pairs: [["花呗怎么还款", "如何还花呗"], ["今天天气怎么样", "明天会下雨吗"]],
};
const PHRASES = {
  en: {
    text: "Text", second: "Second text", placeholder: "Type or paste text", try: "Try", models: "Models", empty: "Results appear here as you type.",
    result: "Result", words: "Words", entities: "Entities", tokens: "Tokens", label: "Label", others: "Other analyses: the parts that differ",
    whole: (p) => `the whole analysis: ${p}`, count: (n, kind) => `${n} ${n === 1 ? { words: "word", entities: "entity", tokens: "token" }[kind] : kind}`,
    busy: "The server is busy; trying again.", silent: "The server does not answer.", program: "Use it from a program",
    long: (n, most) => `Nothing was sent: the text has ${n} characters, and the server accepts ${most}.`,
    legend: (kind) => `The number is the probability of the ${{ words: "word", entities: "entity", tokens: "class" }[kind]}; `, doubt: "orange: below 90 %",
    dictionary: "Your words, separated by spaces: always segmented as words", threshold: "Least probability of an entity, such as 0.3; empty: the best analysis",
    copy: "Copy", copyText: "Copy text", copyLink: "Copy link", copied: "Copied",
  },
  zh: {
    text: "文本", second: "第二个文本", placeholder: "输入或粘贴文本", try: "试试", models: "模型", empty: "输入时，结果显示在这里。",
    result: "结果", words: "词", entities: "实体", tokens: "标记", label: "标签", others: "其他分析：不同之处",
    whole: (p) => `整个分析：${p}`, count: (n, kind) => `${n} 个${{ words: "词", entities: "实体", tokens: "标记" }[kind]}`,
    busy: "服务器繁忙，正在重试。", silent: "服务器没有响应。", program: "在程序中使用",
    long: (n, most) => `没有发送：文本有 ${n} 个字符，服务器最多接受 ${most} 个。`,
    legend: (kind) => `数字是${{ words: "词", entities: "实体", tokens: "类别" }[kind]}的概率；`, doubt: "橙色：低于 90 %",
    dictionary: "自己的词，用空格分隔：总是切分为词", threshold: "实体的最低概率，例如 0.3；留空则取最佳分析",
    copy: "复制", copyText: "复制文本", copyLink: "复制链接", copied: "已复制",
  },
};
const LANGUAGE = navigator.languages.find((name) => /^(zh|en)/.test(name))?.startsWith("zh") ? "zh" : "en";
const phrases = PHRASES[LANGUAGE];
const INVISIBLE = /^[\p{C}\p{Z}\p{M}]+$/u;

const find = (id) => document.getElementById(id);
let models = [];
let limits = {};
let model = null;
let waiting = null; // the timer of the next request
let running = null; // the controller of the request that runs
let copies = {}; // what the buttons copy

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
  find("dictionary").hidden = model.path !== "/segment";
  find("threshold").hidden = model.path !== "/tag";
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
  showLink(text);
  if (!model || !text.trim()) {
    clear();
    return;
  }
  const texts = model.pairs ? [text, find("text-b").value] : [text];
  const length = Math.max(...texts.map((item) => Array.from(item).length)); // in code points, as the server counts
  if (length > limits.length) {
    clear();
    say(phrases.long(withCommas(length), withCommas(limits.length)), true);
    return;
  }
  const controller = (running = new AbortController());
  const body = { model: model.name, texts: [model.pairs ? texts : text] };
  const words = find("words").value.split(/\s+/).filter(Boolean);
  const least = find("least");
  if (model.path === "/segment" && words.length) body.words = words;
  if (model.path === "/tag" && least.value && least.checkValidity()) body.min_probability = least.valueAsNumber;
  showProgram(body);
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
      say(phrases.busy, true);
      wait(AGAIN);
    } else if (!answer.ok) {
      say(content.error, true);
    } else {
      show(text, content.results[0], performance.now() - start);
    }
  } catch (error) {
    if (error.name !== "AbortError") say(phrases.silent, true);
  }
}

function clear() {
  say("");
  find("heading").textContent = phrases.result;
  find("probability").textContent = "";
  find("result").replaceChildren(element("span", "soft", phrases.empty));
  find("legend").replaceChildren();
  find("others").hidden = find("copies").hidden = true;
}

function show(text, result, milliseconds) {
  const spans = result.words || result.entities || result.tokens;
  const kind = KINDS[model.task];
  find("heading").textContent = phrases[kind];
  find("probability").textContent = "";
  find("copies").hidden = false;
  copies.json = JSON.stringify(result, null, 2);
  if (spans) {
    const characters = Array.from(text); // places are counted in code points
    say(`${phrases.count(spans.length, kind)}, ${Math.round(milliseconds)} ms`);
    find("result").replaceChildren(...marked(characters, spans, piece));
    showLegend(kind, spans);
    showAlternatives(characters, spans, result.alternatives || []);
    copies.text = kind === "entities" ? spans.map((span) => `${span.text}\t${span.label}`).join("\n")
      : spans.map((span) => (span.label ? `${span.text}/${span.label}` : span.text)).join(" ");
  } else {
    say(`${Math.round(milliseconds)} ms`);
    find("result").replaceChildren(labels(result));
    find("legend").replaceChildren();
    find("others").hidden = true;
    copies.text = String(result.label);
  }
}

// The text with `show(span, number)` in the place of each span.
function marked(characters, spans, show, from = 0, to = characters.length) {
  const nodes = [];
  let end = from;
  spans.forEach((span, number) => {
    if (span.start > end) nodes.push(characters.slice(end, span.start).join(""));
    nodes.push(show(span, number));
    end = span.end;
  });
  nodes.push(characters.slice(end, to).join(""));
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

// From green over blue to violet: orange means doubt, and red an error.
function hue(label, number) {
  if (label === undefined) return number % 2 ? 215 : 160; // neighbors differ
  const place = model.labels.indexOf(label);
  return 130 + Math.round((place * 190) / Math.max(model.labels.length - 1, 2));
}

function showLegend(kind, spans) {
  const doubt = element("small", "doubt", phrases.doubt);
  const parts = spans.length ? [element("span", "", phrases.legend(kind), doubt)] : [];
  const used = model.labels.filter((label) => spans.some((span) => span.label === label));
  for (const label of used) {
    const chip = element("span", "chip", label);
    chip.style.setProperty("--hue", hue(label));
    parts.push(chip);
  }
  find("legend").replaceChildren(...parts);
}

// The parts of an analysis that differ from the best one, as [start, end): unions of spans that only one of them has.
function changes(best, other) {
  const key = (span) => `${span.start} ${span.end} ${span.label}`;
  const [ours, theirs] = [best, other].map((spans) => new Set(spans.map(key)));
  const single = [...best.filter((span) => !theirs.has(key(span))), ...other.filter((span) => !ours.has(key(span)))];
  const parts = [];
  for (const { start, end } of single.sort((a, b) => a.start - b.start)) {
    const last = parts[parts.length - 1];
    if (last && start < last[1]) last[1] = Math.max(last[1], end);
    else parts.push([start, end]);
  }
  return parts;
}

// The analyses by their probability, each with the words around its changes.
function showAlternatives(characters, best, alternatives) {
  const analyses = alternatives.map(({ probability, words, entities }) => ({ probability, spans: words || entities }));
  const others = analyses.map((analysis) => ({ ...analysis, parts: changes(best, analysis.spans) }));
  const own = others.find(({ parts }) => parts.length === 0);
  find("probability").textContent = own ? phrases.whole(percent(own.probability)) : "";
  const rows = others.filter(({ parts }) => parts.length).slice(0, ALTERNATIVES - 1).map(({ probability, spans, parts }) => {
    const text = element("span", "text");
    for (const [start, end] of parts) {
      const from = Math.max(0, start - 4);
      const to = Math.min(characters.length, end + 4);
      const inside = spans.filter((span) => span.start >= start && span.end <= end);
      if (from > 0) text.append("…");
      text.append(characters.slice(from, start).join(""), " ");
      const nodes = marked(characters, inside, (span) => {
        const mark = element("mark", "", visible(span.text));
        if (span.label) mark.append(element("small", "", span.label));
        return element("span", "", mark, " ");
      }, start, end);
      if (!inside.length) nodes.splice(0, nodes.length, element("s", "", characters.slice(start, end).join("")), " "); // no entity
      text.append(...nodes, characters.slice(end, to).join(""), to < characters.length ? "… " : " ");
    }
    return element("li", "", element("b", "", percent(probability)), text);
  });
  find("alternatives").replaceChildren(...rows);
  find("others").hidden = rows.length === 0;
}

function labels(result) {
  if (typeof result.label === "number") return element("span", "", String(Number(result.label.toFixed(4))));
  const bars = element("div", "bars");
  const rows = Object.entries(result.probabilities).sort((a, b) => b[1] - a[1]);
  const best = [result.label].flat();
  rows.forEach(([label, probability]) => {
    const bar = element("progress");
    bar.value = probability;
    bar.setAttribute("aria-label", label);
    bars.append(element("span", best.includes(label) ? "best" : "", label), bar, element("span", "soft", percent(probability)));
  });
  return bars;
}

function showExamples() {
  const all = EXAMPLES[model.pairs ? "pairs" : model.task];
  const isEnglish = ([text]) => /^[\x20-\x7e]*$/.test(text);
  const fitting = all.filter((example) => isEnglish([example].flat()) === (model.units === "words"));
  const buttons = (model.units && fitting.length ? fitting : all).map((example) => {
    const [text, second = ""] = [example].flat();
    const button = element("button", "", second ? `${text} / ${second}` : text);
    button.addEventListener("click", () => {
      find("text").value = text;
      find("text-b").value = second;
      send();
    });
    return button;
  });
  find("examples").replaceChildren(element("span", "soft", phrases.try), ...buttons);
}

// The address holds the model and the text, so that it can be shared.
function showLink(text) {
  const parts = new URLSearchParams({ model: model.name });
  if (text && text.length <= LINK) parts.set("text", text);
  if (model.pairs && find("text-b").value) parts.set("second", find("text-b").value.slice(0, LINK));
  history.replaceState(null, "", text ? `#${parts}` : location.pathname);
  copies.link = location.href;
}

function showProgram(body) {
  const address = new URL(model.path.slice(1), location.href.split("#")[0]).href;
  const json = JSON.stringify(body);
  copies.curl = `curl ${address} --json '${json.replaceAll("'", "'\\''")}'`;
  copies.python = `import json, urllib.request\n\nbody = json.loads(${JSON.stringify(json)})\n`
    + `request = urllib.request.Request("${address}", json.dumps(body).encode(), {"Content-Type": "application/json"})\n`
    + "print(json.load(urllib.request.urlopen(request))[\"results\"])";
  find("curl").textContent = copies.curl;
  find("python").textContent = copies.python;
}

async function copy(button) {
  await navigator.clipboard.writeText(copies[button.dataset.copy] || "");
  const label = button.textContent;
  button.textContent = phrases.copied;
  setTimeout(() => (button.textContent = label), AGAIN);
}

async function start() {
  document.documentElement.lang = LANGUAGE;
  for (const item of document.querySelectorAll("[data-text]")) item.textContent = phrases[item.dataset.text];
  for (const button of document.querySelectorAll("[data-copy]")) button.addEventListener("click", () => copy(button));
  find("text").placeholder = phrases.placeholder;
  find("curl").closest("details").open = location.pathname.endsWith("/docs");
  find("models").setAttribute("aria-label", phrases.models);
  ({ models, limits } = await (await fetch("models")).json());
  for (const item of models) {
    const button = element("button", "", item.name, " ", element("small", "", phrases[KINDS[item.task]]));
    button.dataset.name = item.name;
    button.addEventListener("click", () => choose(item.name));
    find("models").append(button);
  }
  for (const id of ["text", "text-b", "words", "least"]) {
    find(id).addEventListener("input", () => wait(PAUSE));
  }
  const link = new URLSearchParams(location.hash.slice(1));
  find("text").value = link.get("text") || find("text").value;
  find("text-b").value = link.get("second") || find("text-b").value;
  choose(link.get("model") || models[0].name);
}

start().catch(() => say(phrases.silent, true));
