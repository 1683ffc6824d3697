"""kcrf.corpora: Files with a class for each token in every format, unknown tags, and the scores of tokens."""

import json

import numpy as np
import pytest

from kcrf.corpora import Sentence, read_entities, read_segmented, read_tagged, sentence_line
from kcrf.corpora.conll import conll_lines
from kcrf.corpora.tagged import tags_of_tokens
from kcrf.metrics import token_scores

BACKENDS = ["torch"]
UD = """# sent_id = 1
# text = He can't sleep
1\tHe\the\tPRON\tPRP\t_\t4\tnsubj\t_\t_
2-3\tcan't\t_\t_\t_\t_\t_\t_\t_\t_
2\tca\tcan\tAUX\tMD\t_\t4\taux\t_\t_
3\tn't\tnot\tPART\t_\t_\t4\tadv\t_\t_
3.1\tx\tx\tX\tX\t_\t_\t_\t_\t_
4\tsleep\tsleep\tVERB\tVB\t_\t0\troot\t_\t_

"""


def pairs(sentences):
    return [
        [(s.text[start:end], tag) for (start, end), tag in zip(s.tokens, tags_of_tokens(s), strict=True)]
        for s in sentences
    ]


@pytest.mark.parametrize(
    ("text", "column", "expected"),
    [
        (UD, -1, "He/PRON ca/AUX n't/PART sleep/VERB"),
        (UD, "xpos", "He/PRP ca/MD n't/? sleep/VB"),
        (UD, 4, "He/PRP ca/MD n't/? sleep/VB"),
        ("Kim NNP B-NP\nslept VBD B-VP\n", -1, "Kim/B-NP slept/B-VP"),
        ("Kim NNP B-NP\nslept VBD B-VP\n", 1, "Kim/NNP slept/VBD"),
        ("# a comment here\n-DOCSTART- -X-\n\nKim\tNNP\n#\tSYM\n?\t.\n", -1, "Kim/NNP #/SYM ?/."),
        ("1 Kim NNP\n2 slept ?\n", -1, "Kim/NNP slept/?"),
        ("Kim_NNP slept_VBD ._PU\n", -1, "Kim/NNP slept/VBD ./PU"),
        ("今天(Nd) 天氣(Na) 好(VH)\n", -1, "今天/Nd 天氣/Na 好/VH"),
        (
            "[中国/ns 人民/n]nt 和/c [世界/n 银行/n]/nt [/w 1/2/m ]/w [笑哭]/e\n",
            -1,
            "中国/ns 人民/n 和/c 世界/n 银行/n [/w 1/2/m ]/w [笑哭]/e",
        ),
        ('{"tokens": ["Kim", "slept"], "tags": ["NNP", null]}\n', -1, "Kim/NNP slept/?"),
        ("Kim NNP\nslept -1\nwell _\n", -1, "Kim/NNP slept/? well/?"),
    ],
)
def test_every_format_gives_tokens_with_their_tags(tmp_path, text, column, expected):
    (tmp_path / "text").write_text(text, encoding="utf-8")
    (sentence,) = pairs(read_tagged(tmp_path / "text", column))
    assert " ".join(f"{token}/{tag}" for token, tag in sentence) == expected


@pytest.mark.parametrize(
    ("text", "column", "message"),
    [
        ("Kim NNP\nslept\nwell RB\n", -1, "text:2: needs 2 columns"),
        ("Kim NNP\n", "UPOS", "`column` must be a number"),
        ("Kim NNP\n", 0, "needs a token and its tag on a line"),
        ("Kim slept\nKim\n", 5, "needs a token and its tag on a line"),
        (UD, 1, "must be UPOS, XPOS or 2 to 9"),
        ("a_B c_D e_F g_H i_J k_L m_N o_P q_R s_T u_V w\n", -1, "text:1: needs a tag for each word.*Received: 'w'"),
        ('{"tokens": ["Kim"], "tags": []}\n', -1, "text:1: needs a tag for each token"),
        ('{"tokens": "Kim", "tags": ["A"]}\n', -1, "text:1: needs "),
        ("\n", -1, "needs a token and its tag|at least one sentence"),
        (
            "今天/0.987 天气/0.650 好/1.000\n",
            -1,
            "text: needs words with their classes. Received: probabilities, as 今天/0",
        ),
        (
            "今天/n/t 天气/n/n 好/v/a 啊/u\n",
            -1,
            "needs one class for each word. Received: two, '今天/n' with 't', and so 3 of",
        ),
    ],
)
def test_what_is_no_such_file_is_refused(tmp_path, text, column, message):
    (tmp_path / "text").write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=message):
        read_tagged(tmp_path / "text", column)


def test_a_few_words_may_have_the_sign_of_classes(tmp_path):
    (tmp_path / "text").write_text("每小时/n 90/m km/h/q 和/c a/b/x 。/w\n", encoding="utf-8")
    (sentence,) = read_tagged(tmp_path / "text")
    assert [label for *_, label in sentence.spans] == ["n", "m", "q", "c", "x", "w"]


@pytest.mark.parametrize(
    ("tags", "spans", "unknown"),
    [
        ("B-PER I-PER ? O", [(0, 2, "PER")], [2]),
        ("? I-PER O B-PER", [(3, 4, "PER")], [0, 1]),
        ("-1 O B-LOC B-LOC", [(2, 3, "LOC"), (3, 4, "LOC")], [0]),
        ("B-PER ? ? I-PER", [(0, 1, "PER")], [1, 2, 3]),
        ("S-PER B-LOC ? E-LOC", [(0, 1, "PER")], [1, 2, 3]),
        ("B-LOC E-LOC ? S-PER", [(0, 2, "LOC"), (3, 4, "PER")], [2]),
        ("? ? ? ?", [], [0, 1, 2, 3]),
    ],
)
def test_pieces_of_entities_beside_unknown_tags_are_unknown(tmp_path, tags, spans, unknown):
    lines = [f"{token} {tag}" for token, tag in zip("abcd", tags.split())]
    # the scheme of the file shows in another sentence
    lines += ["", "e S-PER" if any(tag[0] in "ES" for tag in tags.split()) else "e O"]
    (tmp_path / "text").write_text("\n".join(lines), encoding="utf-8")
    sentence = read_entities(tmp_path / "text")[0]
    assert sentence.text == "abcd" and sentence.spans == spans
    assert [i for i in range(4) if any(start <= i < end for start, end in sentence.unknown)] == unknown


def test_unknown_parts_survive_conll_and_json(tmp_path):
    sentence = Sentence("abcd", [(0, 2, "PER")], [(i, i + 1) for i in range(4)], [(2, 3)])
    assert conll_lines(sentence) == ["a\tB-PER", "b\tI-PER", "c\t?", "d\tO", ""]
    (tmp_path / "text").write_text(sentence_line(sentence), encoding="utf-8")
    (again,) = read_entities(tmp_path / "text")
    assert (again.spans, again.unknown) == (sentence.spans, sentence.unknown)
    (tmp_path / "text").write_text(
        '{"text": "abcd", "entities": [{"start": 1, "end": 2, "label": "X"}], "unknown": true}'
    )
    assert read_entities(tmp_path / "text")[0].unknown == [(0, 1), (2, 4)]
    for wrong in ("[[0, 9]]", "[0]", '"yes"'):
        (tmp_path / "text").write_text(f'{{"text": "abcd", "entities": [], "unknown": {wrong}}}')
        with pytest.raises(ValueError, match="text:1: "):
            read_entities(tmp_path / "text")


@pytest.mark.parametrize("head", ["Word\tTag\n", "token pos\n", "\nFORM\tLEMMA\tUPOS\n\n"])
def test_names_of_columns_are_no_token(head, tmp_path, capsys):
    body = "".join("\t".join(row) + "\n" for row in [("Kim", "N"), ("slept", "V"), ("word", "N")])
    body = body if "LEMMA" not in head else body.replace("\t", "\t_\t")
    (tmp_path / "text").write_text(head + body)
    assert pairs(read_tagged(tmp_path / "text")) == [[("Kim", "N"), ("slept", "V"), ("word", "N")]]
    assert f"text:{2 if head[0] == chr(10) else 1}: skipped, the names of the columns: " in capsys.readouterr().err
    (tmp_path / "text").write_text("Word\tTag\nKim\tTag\n")
    assert pairs(read_tagged(tmp_path / "text")) == [[("Word", "Tag"), ("Kim", "Tag")]]


def test_trees_in_brackets_are_read(tmp_path):
    tree = "<S ID=1>\n( (S (NP-SBJ (-NONE- *pro*) (NNP Kim))\n     (VP (VBD slept))) )\n</S>\n"
    (tmp_path / "text").write_text(tree * 3)
    assert pairs(read_tagged(tmp_path / "text")) == [[("Kim", "NNP"), ("slept", "VBD")]] * 3
    assert read_segmented(tmp_path / "text") == [["Kim", "slept"]] * 3
    with pytest.raises(ValueError, match="text: needs texts with entities.* trees in brackets, which --task pos"):
        read_entities(tmp_path / "text")
    (tmp_path / "text").write_text("( -LRB-\nKim N\n) -RRB-\n")
    assert pairs(read_tagged(tmp_path / "text")) == [[("(", "-LRB-"), ("Kim", "N"), (")", "-RRB-")]]


@pytest.mark.parametrize("part", [[6, 4], [4, 4], [-2, 2], [4, 7]])
def test_an_unknown_part_outside_the_text_or_without_a_character_is_refused(tmp_path, part):
    (tmp_path / "text").write_text(json.dumps({"text": "abcdef", "entities": [], "unknown": [[0, 1], part]}))
    with pytest.raises(ValueError, match="text:1: .*a part of `unknown` must be within the 6 characters of the text"):
        read_entities(tmp_path / "text")


def test_scores_of_tokens_are_counted_one_by_one():
    draw = np.random.default_rng(0)
    tokens = [[f"w{draw.integers(9)}" for _ in range(length)] for length in (3, 1, 6, 8)]
    gold, predicted = ([[str(draw.choice(list("AB?"[:n]))) for _ in row] for row in tokens] for n in (3, 2))
    scores = token_scores(tokens, gold, predicted, training_words=["w1", "w2", "w3"])
    rows = [row for rows in map(zip, tokens, gold, predicted) for row in rows]
    scored = [row for row in rows if row[1] != "?"]
    right = [a == b for _, a, b in scored]
    is_new = [word not in ("w1", "w2", "w3") for word, *_ in scored]
    assert len(rows) > scores["tokens"] == len(scored)
    assert scores["accuracy"] == np.mean(right) and scores["oov_rate"] == np.mean(is_new)
    assert scores["oov_accuracy"] == np.mean(np.array(right)[np.array(is_new)])
    assert scores["iv_accuracy"] == np.mean(np.array(right)[~np.array(is_new)])
    assert {(a, b): n for a, b, n in scores["confusion"]} == {
        (a, b): sum(x == (a, b) for x in ((g, p) for _, g, p in scored)) for a, b in (("A", "B"), ("B", "A"))
    }
    with pytest.raises(ValueError, match="in sentence 2"):
        token_scores([["a"], ["b"]], [["A"], ["A", "A"]], [["A"], ["A"]])
