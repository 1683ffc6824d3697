"""kcrf.corpora: Labels by a dictionary of names, beside a second implementation that looks at every span of a text."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcrf.commands.main import main
from kcrf.corpora import Sentence, label_with_names, load_mini, read_entities, read_names

BACKENDS = ["torch"]


def all_spans(text, names):
    """The spans that are names, chosen from all spans of the text: first by start, then the longest."""
    spans = [(a, b) for a in range(len(text)) for b in range(a + 1, len(text) + 1) if text[a:b] in names]

    def cuts(border):
        return 0 < border < len(text) and text[border - 1] in "abc1" and text[border] in "abc1"

    chosen = []
    for span in sorted((s for s in spans if not cuts(s[0]) and not cuts(s[1])), key=lambda s: (s[0], -s[1])):
        if not chosen or span[0] >= chosen[-1][1]:
            chosen.append(span)
    return chosen


WORDS = st.text("abc1天地 ", min_size=1, max_size=4)


@pytest.mark.parametrize(
    ("text", "name", "is_marked"),
    [
        ("Thành phố Huế", "Hu", False),
        ("Jose\u0301", "Jose", False),
        ("रामायण", "राम", False),
        ("ＡＢＣ", "ＡＢ", False),
        ("Ἀθῆναι", "Ἀθ", False),
        ("李雷went", "李雷", True),
        ("สมชาย", "สม", True),
        ("김철수는", "김철수", True),
        ("\u2764\ufe0fLee met", "Lee", True),
        ("1\ufe0f\u20e3Lee", "Lee", True),
        ("①Lee", "Lee", True),
        ("1Lee", "Lee", False),
    ],
)
def test_a_name_is_not_marked_inside_a_word_of_a_script_with_spaces(text, name, is_marked):
    assert bool(label_with_names([text], {name: "A"})[0].spans) is is_marked


@pytest.mark.once
@given(st.text("abc1天地 ", max_size=12), st.dictionaries(WORDS, st.sampled_from(["A", "B", None]), max_size=6))
def test_the_longest_names_are_marked_from_left_to_right(text, names):
    chosen = all_spans(text, names)
    expected = [(*span, names[text[slice(*span)]]) for span in chosen if names[text[slice(*span)]]]
    (unknown,) = label_with_names([text], names)
    (outside,) = label_with_names([text], names, "outside")
    assert unknown.spans == outside.spans == expected
    inside = {i for start, end, _ in expected for i in range(start, end)}
    open_places = {i for start, end in unknown.unknown for i in range(start, end)}
    assert open_places == set(range(len(text))) - inside
    ambiguous = {i for start, end in chosen if names[text[start:end]] is None for i in range(start, end)}
    assert {i for start, end in outside.unknown for i in range(start, end)} == ambiguous


def test_a_dictionary_is_read(tmp_path):
    path = tmp_path / "names.tsv"
    path.write_text("上海\tLOC\n\nNew York \tLOC\n李雷\tPER\n李雷\tPER\n华盛顿\tPER\n华盛顿\tLOC\n", encoding="utf-8")
    assert read_names(path) == {"上海": "LOC", "New York": "LOC", "李雷": "PER", "华盛顿": None}
    for text, reason in {
        "上海\n": "names.tsv:1: needs a name, a tab and its entity type. Received: '上海'",
        "上海\tLOC\n\tLOC\n": "names.tsv:2: needs a name",
        "\n": "needs one name and its entity type per line",
    }.items():
        path.write_text(text, encoding="utf-8")
        with pytest.raises(ValueError, match=reason):
            read_names(path)
    with pytest.raises(ValueError, match="`unmarked` is 'unknown' or 'outside'. Received: 'O'"):
        label_with_names(["上海"], {}, "O")
    with pytest.raises(ValueError, match="must not be empty strings"):
        label_with_names(["上海"], {"": "LOC"})


def test_the_command_writes_what_training_reads(tmp_path, capsys):
    names, text, out = tmp_path / "names.tsv", tmp_path / "text.txt", tmp_path / "labeled.jsonl"
    names.write_text("上海\tLOC\n李雷\tPER\n", encoding="utf-8")
    text.write_text("李雷在上海\n\n没有事\n", encoding="utf-8")
    command = ["label", "--dictionary", str(names), str(text)]
    assert main([*command, "--out", str(out)]) == 0
    assert "2 entities in 1 of 2 texts are marked" in capsys.readouterr().err
    assert read_entities(out) == [
        Sentence("李雷在上海", [(0, 2, "PER"), (3, 5, "LOC")], [], [(2, 3)]),
        Sentence("没有事", [], [], [(0, 3)]),
    ]
    assert main([*command, "--out", str(out)]) == 2
    assert "--overwrite replaces it" in capsys.readouterr().err
    assert main([*command, "--unmarked", "outside"]) == 0
    first, second = map(json.loads, capsys.readouterr().out.splitlines())
    assert "unknown" not in first and second["entities"] == []
    text.write_text("\n", encoding="utf-8")
    assert main(command) == 2
    assert "text.txt: needs one text per line. Received: a file without any" in capsys.readouterr().err


@pytest.mark.slow
def test_gold_sentences_beside_those_of_a_dictionary_train_a_model(tmp_path):
    from kcrf.training import Settings, train_tagger

    corpus = load_mini("ner")
    names = {s.text[a:b]: label for s in corpus.train[:200] for a, b, label in s.spans}
    labeled = label_with_names([s.text for s in corpus.train[100:]], names)
    settings = Settings(task="ner", encoder="linear")
    _, scores = train_tagger(settings, [*corpus.train[:100], *labeled], corpus.valid, corpus.test, out=tmp_path / "run")
    assert scores["test"]["f"] > 0.5
