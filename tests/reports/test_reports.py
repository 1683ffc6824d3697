"""Tests of kcrf.reports.charts, kcrf.reports.mistakes.

`kcrf report`: the page is valid HTML, needs no other file, and shows the numbers of the run folders.
"""

import json
import os
import re
import shlex
import shutil
from datetime import datetime
from html.parser import HTMLParser

import numpy as np
import pytest
from chromium import Page as Browser
from configs import stored

from kcrf.commands import main
from kcrf.commands.main import _parser
from kcrf.metrics import advice, calibration
from kcrf.metrics.bootstrap import bootstrap_difference
from kcrf.reports import write_report
from kcrf.reports.charts import heat_map, line_chart, reliability_diagram
from kcrf.reports.mistakes import KINDS, frequent_mistakes
from kcrf.reports.tables import CLASS_COLUMNS, ENTITY_COLUMNS, JOINT_COLUMNS, TOKEN_COLUMNS, WORD_COLUMNS
from kcrf.runs import Settings
from kcrf.tags import bio, bioes, bmes

BACKENDS = ["torch"]

SCORES = {
    "valid": {"true_words": 90, "test_words": 91, "recall": 0.87654, "precision": 0.9, "f": 0.88, "oov_recall": None},
    "test": {"true_words": 80, "test_words": 81, "recall": 0.7, "precision": 0.71234, "f": 0.70555, "oov_recall": 0.5},
}
COLUMNS = "transition_size,emission_gap,illegal_above_legal,lr_multiplier,suggested_lr_multiplier"
LOG = f"epoch,loss,valid_f,seconds,{COLUMNS}\n1,20.5,0.7,30.0,0.6,0.7,4,1,50\n2,10.25,0.85,60.0,0.5,5.0,4,1,50\n"
PREDICTIONS = [
    {"text": "甲乙丙丁", "gold": [[0, 2, ""], [2, 4, ""]], "found": [[0, 4, "", 0.9]]},
    {"text": "戊甲乙丙丁", "gold": [[0, 1, ""], [1, 3, ""], [3, 5, ""]], "found": [[0, 1, "", 0.8], [1, 5, "", 0.5]]},
    {"text": "<script>alert(1)</script>", "gold": [[0, 25, ""]], "found": [[0, 8, "", 0.25], [8, 25, "", 0.75]]},
]
MATRICES = [[epoch, (np.arange(16.0).reshape(4, 4) * epoch / 10 - 0.55).tolist()] for epoch in (1, 2)]


NAME = "<b>bold & loud</b>"


def config_text(data=None, temperature=1.0, **settings):
    """The text of the `config.json` of a run with these settings."""
    return json.dumps({**stored(Settings(**settings), temperature=temperature).to_json(), "data": data})


@pytest.fixture
def run_dir(tmp_path):
    """A run folder with all that a run may leave behind."""
    folder = tmp_path / "first"
    folder.mkdir()
    (folder / "config.json").write_text(config_text(task="cws", learning_rate=0.0002, bert=NAME, constraints=False))
    (folder / "log.csv").write_text(LOG)
    (folder / "scores.json").write_text(json.dumps(SCORES))
    (folder / "transitions.json").write_text(
        json.dumps({"labels": list("sbme"), "scheme": bmes().get_config(), "epochs": MATRICES})
    )
    (folder / "predictions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in PREDICTIONS))
    return folder


class Page(HTMLParser):
    """Reads a page: every tag is closed in its turn; texts by element, sections by title, tables as lists."""

    VOID = {"meta", "br", "link", "img", "hr", "input"}

    def __init__(self, path):
        super().__init__()
        self.open, self.tags, self.attributes, self.texts, self.rows = [], [], [], [], []
        self.source = path.read_text(encoding="utf-8")
        self.feed(self.source)
        self.close()
        assert self.open == [], "every element is closed"

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.attributes.append(dict(attributes))
        if tag not in self.VOID:
            self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_startendtag(self, tag, attributes):
        self.tags.append(tag)
        self.attributes.append(dict(attributes))

    def handle_endtag(self, tag):
        assert self.open and self.open[-1] == tag, f"</{tag}> closes {self.open[-3:]}"
        self.open.pop()

    def handle_data(self, text):
        self.texts.append(text)
        if "td" in self.open or "th" in self.open:
            self.rows[-1][-1] += text

    @property
    def text(self):
        return " ".join(self.texts)


def report(*run_dirs):
    path = run_dirs[0].parent / "page.html"
    write_report([str(run_dir) for run_dir in run_dirs], path)
    assert [p.name for p in path.parent.iterdir() if p.name.startswith("new.")] == []
    return Page(path)


def test_the_page_needs_nothing_else_and_has_one_script(run_dir):
    page = report(run_dir)
    assert not {"link", "img", "iframe", "object"} & set(page.tags) and page.tags.count("script") == 1
    assert not any(name.startswith("on") or name in ("src", "srcset") for a in page.attributes for name in a)
    links = {a["href"] for a in page.attributes if "href" in a}
    assert links and links == {f"#{a['id']}" for a in page.attributes if "id" in a}
    assert not re.search(r"@import|url\(|https?://(?!www\.w3\.org/2000/svg)", page.source)
    assert "width=device-width" in page.source and "prefers-color-scheme: dark" in page.source


def test_text_of_files_stays_text(run_dir):
    page = report(run_dir)
    assert "&lt;script&gt;" in page.source and "<script" in page.text
    assert NAME in page.text and "b" not in [t for t in page.tags if "bold" in t]
    assert page.source.count("<b>") == 2  # the figure of the card, the calibration error


def test_the_figures_are_those_of_the_files(run_dir):
    page = report(run_dir)
    rows = [row for row in page.rows if row]
    parts = [row[0] for row in rows].index("test set"), [row[0] for row in rows].index("validation set")
    for part, name in zip(parts, ("test", "valid"), strict=True):
        found = {row[0]: row[1] for row in rows[part + 1 : part + 8] if len(row) == 2}
        assert found["F1"] == f"{SCORES[name]['f']:.4f}" and found["recall"] == f"{SCORES[name]['recall']:.4f}"
        assert found["precision"] == f"{SCORES[name]['precision']:.4f}"
        assert found["predicted words"] == str(SCORES[name]["test_words"])
    assert ["OOV recall", "0.5000"] in rows and ["learning_rate", "0.0002"] in rows
    assert "0.7055" in page.text or "0.7056" in page.text
    for told in ("epoch 1: 20.5", "epoch 2: 10.25", "epoch 2: 0.85", "epoch 2: 5"):
        assert told in page.texts
    for epoch, matrix in MATRICES:
        assert f"Transitions after epoch {epoch}" in page.texts
        for i, j in np.ndindex(4, 4):
            assert f"{'sbme'[i]} to {'sbme'[j]}: {matrix[i][j]:+.3f}" in page.texts
    assert "10 times smaller than the emission gap and 4 of 8 illegal ones" in page.text
    assert "raise lr_multiplier from 1 to about 50" in page.text


def test_the_calibration_is_counted_over_the_spans_found(run_dir):
    page = report(run_dir)
    confidences, right = [0.9, 0.8, 0.5, 0.25, 0.75], [False, True, False, False, False]
    rows, error = calibration(confidences, right)
    assert f"{error:.4f}" in page.texts and "over 5 spans" in page.text
    assert "divided by the temperature 1.0" in page.text
    (run_dir / "config.json").write_text(config_text(task="cws", temperature=1.71))
    assert "divided by the temperature 1.71" in report(run_dir).text
    for low, high, count, mean, share in (row for row in rows if row[2]):
        assert [f"{low:.1f} to {high:.1f}", str(count), f"{mean:.4f}", f"{share:.4f}"] in page.rows


def test_the_most_frequent_mistake_comes_first_with_its_surest_place(run_dir):
    page = report(run_dir)
    at = next(number for number, row in enumerate(page.rows) if row[:2] == ["gold", "predicted"])
    assert page.rows[at + 1] == ["甲乙丙丁", "甲乙丙丁", "2", "0.70", "甲乙丙丁"]
    assert page.rows[at + 2] == ["<script>alert(1)</script>", "<script>alert(1)</script>", "1", "0.50"] + [
        "<script>alert(1)</script>"
    ]
    assert re.search("3 mistakes in 3 sentences.*, 2 different", page.text)


def test_mistakes_are_told_apart_and_counted():
    def mistake(gold, found):
        sentence = {"text": "abcdefgh", "gold": gold, "found": [(*span, 0.5) for span in found]}
        return [(m.kind, m.gold, m.predicted) for m in frequent_mistakes([sentence])]

    per, loc = (0, 2, "PER"), (0, 2, "LOC")
    assert mistake([per], [per]) == []
    assert mistake([per], []) == [("missed", (("ab", "PER"),), ())]
    assert mistake([], [per]) == [("invented", (), (("ab", "PER"),))]
    assert mistake([per], [loc]) == [("wrong type", (("ab", "PER"),), (("ab", "LOC"),))]
    assert mistake([per], [(0, 3, "PER")])[0][0] == "wrong ends"
    assert mistake([per], [(1, 3, "LOC")])[0][0] == "wrong ends and type"
    apart = mistake([(0, 1, "PER"), (4, 6, "PER")], [(1, 3, "PER"), (5, 6, "PER")])
    assert sorted(kind for kind, _, _ in apart) == ["invented", "missed", "wrong ends"]
    assert mistake([(0, 1, ""), (1, 3, "")], [(0, 2, ""), (2, 3, "")])[0][0] == "cut elsewhere"
    assert mistake([(0, 3, "")], [(0, 2, ""), (2, 3, "")])[0][0] == "split"
    chained = mistake([(0, 2, ""), (2, 4, ""), (4, 5, "")], [(0, 1, ""), (1, 3, ""), (3, 4, ""), (4, 5, "")])
    assert [(len(gold), len(found)) for _, gold, found in chained] == [(2, 3)]


def test_several_runs_stand_side_by_side(run_dir):
    other = run_dir.parent / "deeper" / "first"
    other.mkdir(parents=True)
    (other / "config.json").write_text(config_text(task="cws", learning_rate=0.001))
    better = {"test": {**SCORES["test"], "f": 0.75}}
    (other / "scores.json").write_text(json.dumps(better))
    page = report(run_dir, other)
    heads = [row for row in page.rows if row[0] in ("", "test set", "validation set") and len(row) == 3]
    assert all(row[1].endswith("/first") and row[2] == "deeper/first" for row in heads) and len(heads) == 4
    assert ["F1", f"{0.70555:.4f}", "0.7500"] in page.rows and ["F1", "0.8800", "-"] in page.rows
    assert '<td class="number best">0.7500</td>' in page.source
    settings = [row[0] for row in page.rows if row[0] in ("learning_rate", "task", "bert")]
    assert sorted(settings[:2]) == ["bert", "learning_rate"] and settings[2:] == ["task"], "what differs comes first"
    for name in ("transitions.json", "predictions.jsonl"):
        assert name in page.texts


def differing_settings(page):
    shown = page.source.partition('id="settings"')[2].partition("<details")[0]
    return re.findall(r"<tr><td>(\w+)</td>", shown)


def test_settings_without_a_value_are_omitted_and_equal_ones_stand_behind_a_click(run_dir):
    common = {"task": "cws", "teacher": None, "width": 32}
    for name, settings in {"a": {"seed": 1, "limit": None}, "b": {"seed": 2, "limit": 500}}.items():
        (run_dir.parent / name).mkdir()
        (run_dir.parent / name / "config.json").write_text(config_text(**common, **settings))
    page = report(run_dir.parent / "a", run_dir.parent / "b")
    assert differing_settings(page) == ["limit", "seed"] and ["limit", "-", "500"] in page.rows
    assert ["task", "cws", "cws"] in page.rows and ["width", "32", "32"] in page.rows
    assert not any(row[0] == "teacher" for row in page.rows) and re.search(r"\d+ settings are equal", page.text)
    assert page.source.index("<details>") < page.source.index("<td>task</td>")
    alone = report(run_dir.parent / "b")
    assert "<details" not in alone.source
    assert all(row in alone.rows for row in [["task", "cws"], ["width", "32"], ["seed", "2"], ["limit", "500"]])


def test_settings_that_a_softmax_does_not_use_are_no_difference(run_dir):
    crf = {"task": "cws", "head": "crf", "crf_lr_multiplier": 10.0, "constraints": False, "linear_weight": 0.0}
    runs = {"a": crf, "b": {"task": "cws", "head": "softmax", "linear_weight": 0.0}, "c": {**crf, "constraints": True}}
    for name, settings in runs.items():
        (run_dir.parent / name).mkdir()
        (run_dir.parent / name / "config.json").write_text(config_text(**settings))
    page = report(run_dir.parent / "a", run_dir.parent / "b")
    assert ["crf_lr_multiplier", "10.0", "-"] in page.rows and ["constraints", "False", "-"] in page.rows
    assert differing_settings(page) == ["head"]
    assert differing_settings(report(run_dir.parent / "a", run_dir.parent / "c")) == ["constraints"]


def copy_of(run_dir, name, **files):
    """A copy of a run folder in which some files are others."""
    folder = run_dir.parent / name
    shutil.copytree(run_dir, folder)
    for file, content in files.items():
        (folder / file.replace("_", ".")).write_text(content)
    return folder


def test_scores_of_other_tasks_or_other_texts_are_not_compared(run_dir):
    better = json.dumps({"test": {**SCORES["test"], "f": 0.75}})
    other = copy_of(run_dir, "other", scores_json=better)
    assert '<td class="number best">0.7500</td>' in report(run_dir, other).source
    other = copy_of(run_dir, "ner", scores_json=better, config_json=config_text(task="ner"))
    page = report(run_dir, other)
    assert "number best" not in page.source
    assert "The scores on the test set cannot be compared: the runs have different tasks (cws, ner)." in page.texts
    changed = [{**PREDICTIONS[0], "text": "甲乙丙戊"}, *PREDICTIONS[1:]]
    lines = "".join(json.dumps(row) + "\n" for row in changed)
    other = copy_of(run_dir, "text", scores_json=better, predictions_jsonl=lines)
    page = report(run_dir, other)
    assert "cannot be compared: the runs have different texts in the test set." in page.text
    size = json.dumps({"valid": {**SCORES["valid"], "true_words": 7}})
    assert "different texts in the validation set" in report(run_dir, copy_of(run_dir, "size", scores_json=size)).text


def test_validation_sets_of_other_texts_are_not_compared(run_dir):
    def run(name, valid):
        content = config_text({"sha256": {"valid": valid}}, task="cws")
        scores = json.dumps({**SCORES, "valid": {**SCORES["valid"], "f": 0.99}})
        return copy_of(run_dir, name, config_json=content, scores_json=scores)

    one, other, same = run("one", "a1"), run("other", "b2"), run("same", "a1")
    page = report(one, other)
    assert "The scores on the validation set cannot be compared: the runs have different texts" in page.text
    assert "on the test set cannot" not in page.text
    assert '<td class="number best">0.9900</td>' not in page.source
    for with_the_same_or_an_unknown_hash in (same, run_dir):
        page = report(one, with_the_same_or_an_unknown_hash)
        assert '<td class="number best">0.9900</td>' in page.source
        assert not re.search(r"The scores on the \w+ set cannot be compared", page.text)  # the script has a pattern


def test_the_difference_of_two_runs_comes_with_its_interval_and_a_word_on_noise(run_dir):
    right = [{**row, "found": [[*span, 0.9] for span in row["gold"]]} for row in PREDICTIONS]
    lines = "".join(json.dumps(row) + "\n" for row in right)
    page = report(run_dir, copy_of(run_dir, "right", predictions_jsonl=lines))
    # Right, in gold, found: of the sentences of PREDICTIONS, and of gold itself.
    counts = np.array([[0, 2, 1], [1, 3, 2], [0, 1, 2]]), np.array([[2, 2, 2], [3, 3, 3], [1, 1, 1]])
    difference, low, high = bootstrap_difference(counts[1], counts[0])
    assert difference == pytest.approx(1 - 2 / 11) and low > 0
    assert (
        f"right is {difference:.4f} above first; 95 % of bootstrap draws of the 3 sentences lie between {low:+.4f} and "
        f"{high:+.4f}, more than noise." in page.text
    )
    other = [{**PREDICTIONS[0], "found": [[0, 2, "", 0.9], [2, 4, "", 0.9]]}, *PREDICTIONS[1:]]
    lines = "".join(json.dumps(row) + "\n" for row in other)
    page = report(run_dir, copy_of(run_dir, "chance", predictions_jsonl=lines))
    assert "lie between +0.0000 and" in page.text and "within the noise of so few sentences" in page.text


def test_mistakes_and_calibration_have_the_color_of_their_run(run_dir):
    page = report(run_dir, copy_of(run_dir, "second"))
    styles = [attributes["style"] for attributes in page.attributes if attributes.get("style", "").startswith("--run")]
    assert styles == ["--run:var(--run-1)", "--run:var(--run-2)"] * 4  # transitions, mistakes, sentences, calibration
    style = page.source.partition("</style>")[0]
    for selector in (".bar", ".point", ".kinds i"):
        rule = re.search(re.escape(selector) + r" \{[^}]*\}", style)[0]
        assert "var(--run)" in rule and "--run-1" not in rule


@pytest.mark.parametrize("width", [1200, 400])
def test_no_table_is_clipped_and_no_card_is_mostly_empty(run_dir, width, tmp_path_factory):
    other = copy_of(run_dir, "a_run_with_a_long_name")
    report(run_dir, other)
    page = Browser(tmp_path_factory.mktemp("chromium"))
    try:
        page.open((run_dir.parent / "page.html").as_uri(), width)
        clipped = "[...document.querySelectorAll('.wide')].filter(x => x.scrollWidth > x.clientWidth)"
        assert page.value(f"{clipped}.map(x => [x.closest('section').id, x.scrollWidth, x.clientWidth])") == []
        assert page.value("document.documentElement.scrollWidth") == width
        words = "[...document.querySelectorAll('#calibration th')].filter(x => x.textContent)"
        assert page.value(f"{words}.length") >= 4
        assert page.value(f"{words}.filter(x => x.getBoundingClientRect().height > 40).map(x => x.textContent)") == []
        ends = "Math.max(...[...x.querySelectorAll('*')].map(y => y.getBoundingClientRect().bottom))"
        empty = f"[...document.querySelectorAll('section')].map(x => x.getBoundingClientRect().bottom - {ends})"
        assert max(page.value(empty)) < 60
        assert page.errors == []
    finally:
        page.close()


def advised():
    """Every sentence that `kcrf.metrics.advice` gives, without the name of the run."""
    row = {"transition_size": 0.5, "emission_gap": 0.5, "lr_multiplier": 1, "suggested_lr_multiplier": 1000}
    fast = {**row, "lr_multiplier": 1e5, "suggested_lr_multiplier": 1, "transition_size": 9.0}
    worse = {"argmax_accuracy": 0.456, "viterbi_accuracy": 0.352}
    illegal = {"illegal_above_legal": 3, "illegal": 4}
    fair = {**row, "lr_multiplier": 1000}
    for changed in (
        row,
        {**row, "emission_gap": float("nan")},
        {**row, "highest_learning_rate": 0},
        {**row, "transition_change": 0},
        {**row, **worse},
        {**fast, **worse},
        {**fast, "highest_learning_rate": 0.01},
        {**row, "best_score": 0},
        {**row, "viterbi_accuracy": 0.3, "one_tag_accuracy": 0.4},
        {**row, "transition_size": 0.01, **illegal},
        {**row, "transition_size": 0, "emission_gap": 15.5},
        {**row, "transition_change": 1e-9, "emission_gap": 1.0},
        {**fair, "transition_size": 0.01},
        {**fair, "transition_size": 0.01, "improves": True},
        {**fair, "transition_size": 0.01, "improves": False},
        {**fair, **illegal},
        {**fair, **illegal, "improves": False},
    ):
        yield advice(changed)


def numbers_in(text):
    return sorted(re.findall(r"\d+(?:\.\d+)?(?:e[+-]\d+)?%?", text))


def test_the_page_follows_the_language_of_the_browser(run_dir, tmp_path_factory):
    other = copy_of(run_dir, "recall")  # a run has the name that it has
    report(run_dir, other)
    file = run_dir.parent / "page.html"
    html, sentences = file.read_text(encoding="utf-8"), [*advised()]
    begin, end = '<section id="transitions">', "</section>"
    more = "".join(f'<p class="advice">After epoch 3: {text}.</p>' for text in sentences)
    file.write_text(html.replace(begin, f"<section>{more}{end}{begin}", 1), encoding="utf-8")
    url = file.as_uri()
    page, shown = Browser(tmp_path_factory.mktemp("chromium")), {}
    advice_on_page = "[...document.querySelectorAll('.advice')].map(x => x.textContent)"
    try:
        page.language("en-US,zh-CN")  # reads Chinese, too, but prefers English
        page.open(url, 1200)
        assert page.value("document.querySelector('h1').textContent") == "Training report"
        assert {f"After epoch 3: {text}." for text in sentences} <= {*page.value(advice_on_page)}
        for code in ("zh-CN", "en-US"):
            page.language(code)
            page.open("about:blank", 1200)
            page.open(url, 1200)
            shown[code] = page.value("document.body.innerText")
            assert page.value("document.querySelectorAll('.name')[1].textContent") == "recall"
            heads = page.value("[...document.querySelectorAll('h1, h2, nav a, .grid h4')].map(x => x.textContent)")
            assert bool(re.search("[a-z]{5}", " ".join(heads))) == (code == "en-US"), heads
        assert "验证集上的 F1" in shown["zh-CN"] and "F1 on the validation set" in shown["en-US"]
        assert "召回率" in shown["zh-CN"] and "<script>alert(1)</script>" in shown["zh-CN"]
        assert "分数除以在验证集上拟合的温度 1.0。" in shown["zh-CN"] and page.errors == []
        page.language("zh-CN")
        page.open("about:blank", 400)
        page.open(url, 400)
        found = page.value(advice_on_page)
        names = "lr_multiplier|sparse_loss|trainable|constraints|True"
        assert len(found) >= len(sentences) and not re.search("[a-z]{2}", re.sub(names, "", "".join(found))), found
        for text, own in zip(sentences, found):  # no number is lost, and none comes in
            assert numbers_in(own.replace("的 1/", "")) == numbers_in(f"3 {text}"), own
        soft = page.value(
            "[...document.querySelectorAll('p, .soft, summary, td[data-name]')].map(x => x.dataset.name ?? x.innerText)"
        )
        assert [text for text in soft if re.search("[a-z]{3,} [a-z]{3,}|^(gold|times|predicted)$", text)] == []
    finally:
        page.close()


def test_only_the_first_and_the_last_heat_map_are_shown(run_dir):
    content = json.loads((run_dir / "transitions.json").read_text())
    content["epochs"] = [[epoch, MATRICES[0][1]] for epoch in range(1, 9)]
    (run_dir / "transitions.json").write_text(json.dumps(content))
    titles = [text for text in report(run_dir).texts if text.startswith("Transitions after epoch")]
    assert titles == ["Transitions after epoch 1", "Transitions after epoch 8"]


def test_the_heat_maps_of_all_runs_share_a_scale(run_dir, tmp_path):
    weak = tmp_path / "weak"
    shutil.copytree(run_dir, weak)
    content = json.loads((weak / "transitions.json").read_text())
    content["epochs"] = [[epoch, (np.array(matrix) / 10).tolist()] for epoch, matrix in content["epochs"]]
    (weak / "transitions.json").write_text(json.dumps(content))
    page = tmp_path / "page.html"
    write_report([run_dir, weak], page)
    shares = [int(share) for share in re.findall(r"var\(--(?:warm|cold)\) (\d+)%", page.read_text(encoding="utf-8"))]
    strong, weak = np.split(np.array(shares), 2)
    np.testing.assert_allclose(weak, strong / 10, atol=1)


def test_sentences_can_be_looked_through_with_gold_and_found(run_dir):
    page = report(run_dir)
    section = page.source.partition('id="sentences"')[2].partition("</section>")[0]
    items = re.findall(r'<li class="([^"]*)" value="(\d)"( lang="zh")?>(.*?)</li>', section)
    assert [(kinds, number, lang) for kinds, number, lang, _ in items] == [
        ("wrong joined", "1", ' lang="zh"'),
        ("wrong joined", "2", ' lang="zh"'),
        ("wrong split", "3", ""),
    ]
    found, gold = items[1][3].split('<div class="gold">')
    assert re.findall(r'class="(piece[^"]*)" title="([^"]*)">(.*?)</span>', found) == [
        ("piece", "0.800", "戊"),
        ("piece marked", "0.500", "甲乙丙丁<small>0.50</small>"),
    ]
    assert re.findall(r'class="(piece[^"]*)">(.*?)</span>', gold) == [
        ("piece", "戊"),
        ("piece marked", "甲乙"),
        ("piece marked", "丙丁"),
    ]
    labels = re.findall(
        r'<label><input type="radio" name="show-0" class="([^"]*)"( checked)?> ([^<]*)</label>', section
    )
    assert labels == [
        ("show-all", "", "all"),
        ("show-wrong", " checked", "with mistakes (3)"),
        ("show-split", "", "split (1)"),
        ("show-joined", "", "joined (2)"),
    ]
    style = page.source.partition("</style>")[0]
    for kind in KINDS:
        name = kind.replace(" ", "-")
        assert f".browser:has(.show-{name}:checked) li:not(.{name})" in style


def test_the_page_does_not_grow_with_the_corpus_and_chinese_is_marked_as_such(run_dir):
    rows = [PREDICTIONS[i % 2] for i in range(1000)] + [
        {"text": "好", "gold": [[0, 1, ""]], "found": [[0, 1, "", 1.0]]}
    ] * 500
    (run_dir / "predictions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    page = report(run_dir)
    section = page.source.partition('id="sentences"')[2].partition("</section>")[0]
    assert section.count('<li class="wrong') == 200 and section.count('<li class="right"') == 50
    assert "The first 200 of 1000 sentences with mistakes and 50 without, of 1500 sentences of the test set" in section
    mistakes = page.source.partition('id="mistakes"')[2].partition("</section>")[0]
    assert 'class="piece" lang="zh">甲乙<' in mistakes and 'class="context" lang="zh"' in mistakes
    assert "<details" not in page.source  # nothing but equal settings is behind a click


def test_a_run_of_which_little_is_left_has_a_page_too(tmp_path):
    (tmp_path / "config.json").write_text(config_text(task="cws"))
    page = report(tmp_path)
    for name in ("scores.json", "log.csv", "transitions.json", "predictions.jsonl"):
        assert name in page.texts
    line = '{"text": "甲", "gold": [[0, 1, ""]], "found": [[0, 1, "", 1.0]]}\n'
    (tmp_path / "predictions.jsonl").write_text(line, encoding="utf-8")
    (tmp_path / "log.csv").write_text("epoch,loss,valid_f\n1,nan,\n")
    (tmp_path / "scores.json").write_text("{}")
    assert "No mistakes in 1 sentences." in report(tmp_path).text


def test_entities_have_scores_by_type_and_large_heat_maps(run_dir):
    scheme = bioes(["LOC", "ORG", "PER"])
    kinds = {"LOC": {"f": 0.5, "precision": 0.5}, "<PER>": {"f": 0.25}}
    scores = {"true_entities": 5, "found_entities": 4, "correct": 2, "f": 0.4, "types": kinds, "macro": {"f": 0.375}}
    (run_dir / "scores.json").write_text(json.dumps({"test": scores}))
    matrix = np.where(scheme.allowed_transitions, 0.5, -1e9).tolist()
    content = {"labels": list(scheme.labels), "scheme": scheme.get_config(), "epochs": [[7, matrix]]}
    (run_dir / "transitions.json").write_text(json.dumps(content))
    entity = {"text": "ab\ud800c", "gold": [[0, 1, "PER"]], "found": []}  # a lone surrogate, as broken files have it
    (run_dir / "predictions.jsonl").write_text(json.dumps(entity))
    page = report(run_dir)
    assert ["F1 of LOC", "0.5000"] in page.rows and ["F1 of <PER>", "0.2500"] in page.rows
    assert ["F1, mean over types", "0.3750"] in page.rows and ["predicted entities", "4"] in page.rows
    assert "O to I-LOC: forbidden" in page.texts and "O to B-LOC: +0.500" in page.texts
    assert ["aPER", "nothing", "1", "-", "ab?c"] in page.rows


@pytest.mark.parametrize(
    "name, content, message",
    [
        ("scores.json", '{\n"test": {', r"scores.json:2: needs a JSON object. Received: "),
        ("scores.json", "[1]", r"scores.json:1: needs a JSON object. Received: \[1\]"),
        ("config.json", "{}", r"config.json: needs the settings of a run. Received: no 'settings'"),
        ("log.csv", "epoch,loss\n1,2.5\n2\n", r"log.csv:3: needs a value for each of the columns"),
        ("log.csv", "epoch,loss\n1,2.5\nx,1\n", r"log.csv:3: needs the number of an epoch"),
        ("log.csv", b"epoch,loss\n1,\xff\n", r"log.csv:2: needs UTF-8 text. Received: byte 0xff"),
        ("transitions.json", '{"labels": ["a"], "epochs": [[1, [[1, 2]]]]}', r"transitions.json:1: .* shape=\(1, 2\)"),
        ("transitions.json", '{"labels": ["a"], "epochs": [[1, [[NaN]]]]}', r"transitions.json:1: .* no numbers"),
        (
            "transitions.json",
            '{"labels": ["a"], "scheme": {"name": "bmes", "types": []}, "epochs": []}',
            r"transitions.json:1: needs the labels of its scheme",
        ),
        (
            "predictions.jsonl",
            '{"text": "a", "gold": [], "found": []}\n{"text',
            r"predictions.jsonl:2: needs a JSON object",
        ),
        ("predictions.jsonl", '\n{"text": "a", "gold": []}', r"predictions.jsonl:2: needs text, gold .* no 'found'"),
        ("predictions.jsonl", '{"text": "a", "gold": [[0, 1]], "found": []}', r"predictions.jsonl:1: needs text, gold"),
        (
            "predictions.jsonl",
            '{"text": "a", "gold": [[0, 2, ""]], "found": []}',
            r"predictions.jsonl:1: needs 0 <= start < end <= 1. Received: \(0, 2, ''\)",
        ),
    ],
)
def test_a_damaged_file_is_named_with_its_line(run_dir, name, content, message):
    (run_dir / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(ValueError, match=message):
        write_report([run_dir], run_dir / "page.html")
    assert not (run_dir / "page.html").exists()


def test_run_folders_are_a_list(run_dir, tmp_path):
    for path in (run_dir, str(run_dir)):
        with pytest.raises(TypeError, match="`run_dirs` must be a list of run folders. Received: "):
            write_report(path, tmp_path / "page.html")
    write_report((path for path in [run_dir]), tmp_path / "page.html")
    assert (tmp_path / "page.html").is_file()


def test_a_run_of_a_newer_version_is_refused(run_dir):
    (run_dir / "config.json").write_text(json.dumps({"format": 99, "kcrf": "9.0", "settings": {}}))
    with pytest.raises(ValueError, match="config.json: needs run format 1, which kcrf"):
        write_report([run_dir], run_dir / "page.html")


def test_mistakes_and_calibration_name_their_part(run_dir):
    write_report([run_dir], run_dir / "page.html")
    source = (run_dir / "page.html").read_text(encoding="utf-8")
    assert source.count("in 3 sentences of the test set") == 1 and "over 5 spans of the test set" in source
    (run_dir / "scores.json").write_text(json.dumps({"valid": SCORES["valid"]}))
    write_report([run_dir], run_dir / "page.html")
    assert "of the validation set" in (run_dir / "page.html").read_text(encoding="utf-8")


def test_the_command_writes_into_the_first_run_or_where_it_is_told(run_dir, capsys):
    assert main(["report", str(run_dir), str(run_dir)]) == 0
    assert capsys.readouterr().out == f"{run_dir / 'report.html'}\n"
    assert "first (2)" in Page(run_dir / "report.html").text
    assert main(["report", str(run_dir), "--out", str(run_dir / "new" / "other.html")]) == 0
    assert (run_dir / "new" / "other.html").is_file()
    assert main(["report", str(run_dir.parent / "nothing")]) == 2
    assert "nothing/config.json: no such file; a run folder" in capsys.readouterr().err
    assert main(["report", str(run_dir), "--out", str(run_dir)]) == 2
    assert f"{run_dir}: needs the name of a file for the report. Received: a folder" in capsys.readouterr().err
    with pytest.raises(ValueError, match="at least one run folder. Received: none"):
        write_report([], "never.html")


def coordinates(svg):
    return [tuple(map(float, pair)) for pair in re.findall(r'<circle cx="([\d.]+)" cy="([\d.]+)"', svg)]


def test_a_line_stands_where_its_values_are():
    points = coordinates(line_chart("t", {0: [(1, 0.0), (2, 5.0), (3, 10.0)]}))
    (x1, y1), (x2, y2), (x3, y3) = points
    assert x2 - x1 == pytest.approx(x3 - x2, abs=0.11) and y1 - y2 == pytest.approx(y2 - y3, abs=0.11)
    ticks = re.findall(r'y="([\d.]+)" text-anchor="end">([\d.]+)<', line_chart("t", {0: [(1, 0.0), (3, 10.0)]}))
    assert [value for _, value in ticks] == ["0", "5", "10"]
    assert [float(ticks[i][0]) - 4 for i in (0, 2)] == pytest.approx([y1, y3], abs=0.11)
    assert "nan" not in line_chart("t", {1: [(4, 2.0)]})


def test_a_run_of_one_epoch_is_a_number():
    assert line_chart("t", {0: [(3, 0.875)], 2: [(3, 1.5)]}) == (
        '<ul class="only"><li style="color:var(--run-1)">0.875</li><li style="color:var(--run-3)">1.5</li></ul>'
    )


def test_losses_of_softmax_heads_and_crfs_have_axes_of_their_own(run_dir):
    runs = [run_dir]
    for name, head, loss in (("crf", "crf", 36.0), ("soft", "softmax", 1.25), ("crf2", "crf", 30.0)):
        runs.append(shutil.copytree(run_dir, run_dir.parent / name))
        (runs[-1] / "config.json").write_text(config_text(task="cws", learning_rate=0.0002, bert=NAME, head=head))
        (runs[-1] / "log.csv").write_text(f"epoch,loss,valid_f,seconds\n1,{loss},0.7,30.0\n2,{loss / 2},0.85,60.0\n")
    source = report(*runs).source
    charts = {title: svg for title, svg in re.findall(r"<h4>(Training loss[^<]*)</h4>(<svg.*?</svg>)", source)}
    values = {title: re.findall(r"<title>epoch 1: ([\d.]+)</title>", svg) for title, svg in charts.items()}
    assert values == {"Training loss of CRFs": ["20.5", "33"], "Training loss of softmax heads": ["1.25"]}
    notes = re.findall(r'<div class="soft">(per [^<]*)</div>', source)
    assert sorted(notes) == ["per sentence", "per token"]
    assert '<div class="soft">per token</div>' in report(run_dir.parent / "soft").source
    assert "var(--run-3)" in charts["Training loss of softmax heads"]  # its color on the whole page


def test_the_head_has_date_data_and_command(run_dir):
    data = {"sources": {"train": "my words.txt", "valid": None, "test": "test.txt"}, "sha256": {}}
    settings = {"task": "cws", "learning_rate": 0.0002, "constraints": False, "seed": 3}
    (run_dir / "config.json").write_text(config_text(data=data, **settings))
    os.utime(run_dir / "scores.json", (1.8e9, 1.8e9))
    page = report(run_dir)
    assert datetime.fromtimestamp(1.8e9).strftime("%Y-%m-%d %H:%M") in page.text
    (command,) = (text for text in page.texts if text.startswith("kcrf train"))
    options = vars(_parser().parse_args(shlex.split(command)[1:]))
    for name, value in {**settings, "train": "my words.txt", "test": "test.txt", "out": str(run_dir)}.items():
        assert options[name] in (value, [value]) or (name, options[name]) == ("task", None), name
    (run_dir / "config.json").write_text(config_text(**settings))
    (code,) = (text for text in report(run_dir).texts if text.startswith("Settings("))
    assert eval(code, {"Settings": dict}) == {"learning_rate": 0.0002, "constraints": False, "seed": 3}


def test_a_heat_map_crosses_out_what_is_illegal_and_frames_what_wins():
    scheme = bmes()
    learned = np.where(scheme.allowed_transitions, 1.0, -1.0)
    assert heat_map("t", learned, scheme.labels, scheme.allowed_transitions).count('class="cross"') == 8
    assert 'class="framed"' not in heat_map("t", learned, scheme.labels, scheme.allowed_transitions)
    learned[0, 2], learned[2, 2:] = 1.5, 2.0  # s to m is above s to b, though not above what leaves m
    assert heat_map("t", learned, scheme.labels, scheme.allowed_transitions).count('class="framed"') == 1
    svg = heat_map("t", np.array([[2.0, -0.004], [-0.006, -0.0]]), "ab")
    assert "-0.00<" not in svg and svg.count("+0.00<") == 2 and svg.count("-0.01<") == 1
    shares = re.findall(r"var\(--(warm|cold)\) (\d+)%", heat_map("t", [[2.0, -1.0], [0.5, 0.0]], "ab"))
    assert shares == [("warm", "100"), ("cold", "50"), ("warm", "25"), ("cold", "0")]


TAGS_AND_FIGURES = [
    (bmes(), True),
    (bio(["LOC", "PER"]), True),
    (bio(["LOC", "ORG", "PER"]), True),
    (bio(["MISC", "ORGANIZATION"]), True),
    (bioes(["LOC", "ORG", "PER"]), False),
    (bio(list("ABCDEFGHIJKL")), True),
    (bioes(list("ABCDEFGHIJKLMN")), False),
]


@pytest.mark.parametrize("scheme, has_figures", TAGS_AND_FIGURES, ids=lambda x: str(len(getattr(x, "labels", ()))))
@pytest.mark.parametrize("score", [-0.5, 30.0])
def test_nothing_written_in_a_heat_map_overlaps(scheme, has_figures, score):
    textpath = pytest.importorskip("matplotlib.textpath", reason="needs matplotlib, which is not installed")
    svg = heat_map("t", np.full((len(scheme),) * 2, score), scheme.labels)
    boxes = []
    for x, y, more, text in re.findall(r'<text class="[^"]*" x="([^"]*)" y="([^"]*)" ([^>]*)>([^<]*)<', svg):
        size, anchor = (re.search(rf'{name}="([^"]+)"', more)[1] for name in ("font-size", "text-anchor"))
        extents = textpath.TextPath((0, 0), text, size=float(size)).get_extents()
        width, height, x, y = extents.width, extents.height, float(x), float(y)
        x -= {"start": 0, "middle": width / 2, "end": width}[anchor]
        boxes.append((x - height, y - width, x, y) if "rotate" in more else (x, y - height, x + width, y))
    assert len(boxes) == 2 * len(scheme) + has_figures * len(scheme) ** 2
    assert min(map(min, boxes)) >= 0
    for i, (left, top, right, bottom) in enumerate(boxes):
        assert all(x1 >= right or x2 <= left or y1 >= bottom or y2 <= top for x1, y1, x2, y2 in boxes[:i])


def test_a_large_matrix_is_as_wide_as_the_page(run_dir):
    """Of 57 tags, each cell had 6 pixels, and the names were 4.5 pixels high."""
    scheme = bioes(list("ABCDEFGHIJKLMN"))
    svg = heat_map("t", np.zeros((len(scheme),) * 2), scheme.labels)
    cell, font = re.search(r'<rect [^>]*width="([\d.]+)"', svg)[1], re.search(r'font-size="([\d.]+)"', svg)[1]
    assert float(cell) > 13 and float(font) > 9
    content = {"labels": list(scheme.labels), "scheme": scheme.get_config(), "epochs": [[1, np.eye(57).tolist()]]}
    (run_dir / "transitions.json").write_text(json.dumps(content))
    assert '<div class="grid large"><figure>' in report(run_dir).source


def test_a_reliability_diagram_shows_the_share_that_was_right():
    rows, _ = calibration([0.05, 0.95, 0.95, 0.95, 0.95], [False, True, True, True, False])
    svg = reliability_diagram("t", rows)
    heights = [float(h) for h in re.findall(r'<rect class="bar".*? height="([\d.]+)"', svg)]
    assert heights[0] == 0 and heights[1] == pytest.approx(0.75 * (340 - 46 - 12), abs=0.11)
    assert "4 with 0.90 to 1.00: mean confidence 0.950, accuracy 0.750" in svg


@pytest.mark.parametrize(
    "columns",
    [WORD_COLUMNS, JOINT_COLUMNS, ENTITY_COLUMNS, TOKEN_COLUMNS, CLASS_COLUMNS],
    ids="cws cws-pos ner pos classify".split(),
)
def test_tables_of_all_tasks_have_one_order(columns):
    order = ["accuracy", "matthews", "macro_f", "precision", "recall", "f", "joint_f", "oov_rate"]
    assert [key for key in columns if key in order] == [key for key in order if key in columns]
    first = columns.index("precision")
    assert columns[first : first + 3] == ("precision", "recall", "f")
