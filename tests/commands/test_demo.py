"""kcrf.commands.heads: The demo end to end, with heads that train for one epoch."""

import io
import re
from dataclasses import replace

import numpy as np
import pytest
from rich.console import Console

from kcrf.commands.heads import HEADS, SETTINGS, compare_heads, marked_sentences
from kcrf.corpora import load_mini
from kcrf.reports import score_table, transition_heat_map, transition_table
from kcrf.runs import Settings
from kcrf.taggers import WordSegmenter
from kcrf.tags import bio, bmes

pytestmark = pytest.mark.once


def test_the_demo_trains_compares_draws_and_segments(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    quick = {"epochs": 1, "width": 16, "depth": 1, "batch_size": 64}
    heads = {name: replace(HEADS[name], **quick) for name in ("softmax", "CRF x100")}
    compare_heads(tmp_path, ["今天天气真好。"], heads)
    printed = capsys.readouterr().out
    for words in ("softmax", "CRF x100", "OOV recall", "of 8", "from \\ to", "Heat map:"):
        assert words in printed
    assert re.search(r"test sentences:\n  CRF x100 - softmax: [+-]0\.\d{3} \(.*\), (more than )?noise\n", printed)
    assert "今天天气真好。" in printed.replace(" ", "")
    assert "阿塔卡马沙漠的天文台" in re.sub(r"[\[\] ]", "", printed)  # the first sentence of the test set
    assert re.search(r"\d+ of \d+ words are right\.", printed)
    assert (tmp_path / "transitions.png").read_bytes().startswith(b"\x89PNG")
    assert {p.name for p in tmp_path.iterdir()} == {"softmax", "crf_x100", "transitions.png", "report.html"}
    assert "x100" in (tmp_path / "report.html").read_text(encoding="utf-8")
    included = WordSegmenter().segment("".join(load_mini().test[0]))
    assert " ".join(included) in printed and printed.count("words are right.") == 1  # of one standard
    assert f"kcrf segment --model {tmp_path}/crf_x100" in printed  # what to try next


def test_wrong_words_of_the_demo_are_marked_at_their_place():
    gold, predicted = [["他", "从", "马", "上", "下来"], ["好"]], [["他", "从", "马上", "下来"], ["好"]]
    lines = marked_sentences(gold, predicted)
    assert [line.plain.strip() for line in lines] == [
        "他 从 [马上] 下来",
        "correct: 马 上",
        "好",
        "4 of 5 words are right.",
    ]
    styles = [(lines[0].plain[span.start : span.end], str(span.style)) for span in lines[0].spans]
    assert styles == [("他", "green"), ("从", "green"), ("[马上]", "red"), ("下来", "green")]
    same_characters = marked_sentences([["一", "一二"]], [["一一", "二"]])  # no word is right by its characters alone
    assert same_characters[0].plain.split() == ["[一一]", "[二]"]


def test_the_heads_differ_in_the_head_alone():
    for settings in HEADS.values():
        said = {**settings.said(), "head": "crf", "crf_lr_multiplier": "auto"}
        assert Settings(**said) == replace(SETTINGS, head="crf")
    assert [HEADS[name].crf_lr_multiplier for name in ("CRF x1", "CRF x100")] == [1, 100]


def rendered(table):
    console = Console(width=100, record=True, file=io.StringIO())
    console.print(table)
    return console.export_text()


def test_a_transition_table_marks_the_illegal_cells():
    lines = rendered(transition_table("title", np.arange(16.0).reshape(4, 4), bmes())).splitlines()
    rows = [line for line in lines if line.startswith("│")]
    assert [row.count("x") for row in rows] == [2, 2, 2, 2]
    assert "+2.00 x" in rows[0] and "+1.00 x" not in rows[0]


def test_a_score_table_shows_four_digits_and_dashes():
    assert "a[/b]" in rendered(score_table("a[/b]", ["[x]"], [["[red]"]]))
    assert "0.1235" in (text := rendered(score_table("t", ["a", "b"], [["x", 0.12345], ["y", None]]))) and " - " in text


def test_a_heat_map_is_written_for_any_number_of_matrices(tmp_path):
    pytest.importorskip("matplotlib", reason="needs matplotlib, which is not installed")
    transition_heat_map({"one": np.eye(4), "two": -np.eye(4), "none": np.zeros((4, 4))}, bmes(), tmp_path / "m.png")
    assert (tmp_path / "m.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("types", [["A"], ["LOC", "ORG", "PER"], ["LOCATION", "MISC", "ORGANIZATION", "PER"]])
def test_nothing_written_in_a_heat_map_overlaps(types, tmp_path, monkeypatch):
    pytest.importorskip("matplotlib", reason="needs matplotlib, which is not installed")
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    drawn = []
    monkeypatch.setattr(Figure, "savefig", lambda figure, *args, **more: drawn.append(figure))
    matrix = np.full((2 * len(types) + 1,) * 2, -2.5)
    transition_heat_map({"one": matrix, "two": matrix}, bio(types), tmp_path / "m.png")
    FigureCanvasAgg(drawn[0]).draw()
    for axes in (axes for axes in drawn[0].axes if axes.texts):
        boxes = [text.get_window_extent() for text in (*axes.texts, *axes.get_xticklabels(), *axes.get_yticklabels())]
        assert len(axes.texts) == matrix.size
        assert not any(box.overlaps(other) for i, box in enumerate(boxes) for other in boxes[:i])
