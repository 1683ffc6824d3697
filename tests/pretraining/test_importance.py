"""Tests of kcrf.pretraining.importance, kcrf.pretraining.masking.

Which words matter to a task model, by the definitions written out, and that these are the ones that are hidden.
"""

import json
import random

import numpy as np
import pytest
from decoders import entropies, parts_of

from kcrf import commands
from kcrf.corpora import Example, load_mini, read_entities
from kcrf.corpora.classified import classified_line
from kcrf.pretraining import PretrainingSettings
from kcrf.pretraining.importance import IMPORTANT, TaskModel, importance_writer, important_words
from kcrf.pretraining.masking import choose_positions
from kcrf.pretraining.windows import Windows, iterate_lines, write_tokens
from kcrf.runs import Settings
from kcrf.taggers import TextClassifier, load_tagger
from kcrf.tokenizers import Tokenizer
from kcrf.training import train_classifier, train_segmenter, train_tagger

BACKENDS = ["torch"]
WORDS = {"good": ("good", "fine", "great"), "bad": ("bad", "poor", "awful")}
LABEL = {word: label for label, words in WORDS.items() for word in words}
QUICK = {"task": "classify", "epochs": 6, "batch_size": 8, "learning_rate": 0.02, "dropout": 0.0, "seed": 1}


def reviews(count, seed):
    rng = random.Random(seed)
    words = [rng.choice(sorted(LABEL)) for _ in range(count)]
    return [(f"{rng.choice(('it', 'this'))} is a {word} film, I say", LABEL[word]) for word in words]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run") / "run"
    parts = {"train": reviews(96, 0), "valid": reviews(16, 1), "test": reviews(12, 2)}
    train_classifier(Settings(**QUICK, width=16, depth=1, bigram_dropout=0.0), **parts, out=folder)
    return folder


def test_the_words_of_the_label_are_found_as_the_paper_defines_them(run):
    classifier, examples = TextClassifier(run), [Example(*review) for review in reviews(8, 3)]
    for threshold in (0.05, 0.4):
        found = important_words(classifier, examples, threshold, batch_size=3)
        for example, sentence in zip(examples, found, strict=True):
            whole = classifier.classify(example.text).probabilities[example.label]
            kept, expected, end = "", [], 0
            for word in example.text.replace(",", " ,").split():
                start, before = example.text.index(word, end), end
                end = start + len(word)
                longer = kept + example.text[before:end]
                if whole - classifier.classify(longer).probabilities[example.label] < threshold:
                    expected.append((start, end, IMPORTANT))
                else:
                    kept = longer
            assert sentence.text == example.text and sentence.spans == expected
    words = [{s.text[start:end] for start, end, _ in s.spans} for s in found]
    assert all(row & set(LABEL) for row in words) and sum(map(len, words)) < 40


def entropy(probabilities):
    p = np.array(list(probabilities))
    return float(-(p * np.log(p)).sum())


def test_a_word_matters_by_how_far_the_entropy_of_the_labels_moves_without_it(run):
    classifier, text = TextClassifier(run), "it is a great film, I say"
    words = [(0, 2), (8, 13), (8, 10)]
    whole = entropy(classifier.classify(text).probabilities.values())
    hidden = [text[:a] + "█" * (b - a) + text[b:] for a, b in words]
    expected = [abs(entropy(classifier.classify(h).probabilities.values()) - whole) for h in hidden]
    found, none, again = TaskModel(run).importance([text, "", text], [words, [], words[:1]])
    np.testing.assert_allclose(found, expected, atol=1e-5)
    assert len(none) == 0 and again == pytest.approx(expected[:1], abs=1e-5) and found[1] > found[0]


def test_the_entropy_of_a_tagger_is_that_of_all_its_paths(tmp_path):
    settings = Settings(epochs=1, width=16, depth=1, linear_weight=0.0, augment=0)
    corpus = load_mini()
    train_segmenter(settings, corpus.train[:40], corpus.valid[:8], out=tmp_path / "words")
    tagger, text = load_tagger(tmp_path / "words"), "天气好"
    shares = [p for _, p in tagger.k_best(text, 4**3)]  # words and paths are one to one under constraints
    assert sum(shares) == pytest.approx(1, abs=1e-4)
    assert entropies(tagger, [text, text * 60])[0] == pytest.approx(entropy(p for p in shares if p > 0), abs=1e-3)
    model = TaskModel(tmp_path / "words")
    long = text * 60  # two windows: a word is hidden in its own
    (found,) = model.importance([long], [[(0, 1), (170, 171)]])
    shown = [long[:128], long[52:]]
    first = abs(entropies(tagger, ["█" + long[1:128]]) - entropies(tagger, [long[:128]]))[0]
    assert len(shown) == 2 and found[0] == pytest.approx(first, abs=1e-4) and found.shape == (2,)


@pytest.mark.slow
def test_a_model_that_finds_important_words_is_asked_for_their_probability(tmp_path):
    rows = [(text, [(text.index(w), text.index(w) + len(w), IMPORTANT)]) for text, w in _with_word(reviews(64, 5))]
    lines = [json.dumps({"text": t, "entities": [dict(zip(("start", "end", "label"), s)) for s in e]}) for t, e in rows]
    path = tmp_path / "important.jsonl"
    path.write_text("\n".join(lines), encoding="utf-8")
    settings = Settings(
        task="ner", epochs=6, batch_size=8, learning_rate=0.02, dropout=0.0, width=16, depth=1, linear_weight=0.0
    )
    train_tagger(settings, read_entities(path), read_entities(path), out=tmp_path / "run")
    text = "this is a bad film, I say"
    words = [(0, 4), (5, 7), (8, 9), (10, 13), (14, 18)]
    (found,) = TaskModel(tmp_path / "run").importance([text], [words])
    ((units, marginals),) = load_tagger(tmp_path / "run").decoder.marginals(parts_of([text]))
    outside = {(int(a), int(b)): row[0] for (a, b), row in zip(units, marginals)}
    for span, number in zip(words, found, strict=True):
        inside = [1 - p for (a, b), p in outside.items() if a < span[1] and b > span[0]]
        assert number == pytest.approx(max(inside), abs=1e-6)
    assert found[3] > 0.9 > 0.2 > found[[0, 1, 2, 4]].max()


def _with_word(rows):
    return [(text, next(word for word in LABEL if f" {word} " in text)) for text, _ in rows]


def test_pieces_have_the_importance_of_their_word_and_stay_beside_their_tokens(tmp_path):
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "low", "##est", "price", *"今天"]
    vocabulary = {token: number for number, token in enumerate(tokens)}
    lines = ["The lowest price", "今天 low"]

    class Lengths:
        """Every word matters by its number of characters."""

        def importance(self, texts, words):
            assert texts == lines
            return [np.array([end - start for start, end in spans], float) for spans in words]

    with importance_writer(tmp_path / "importance.bin", vocabulary, Lengths()) as on_batch:
        tokenizer = Tokenizer(vocabulary, True, token_start=None)
        write_tokens(tmp_path / "tokens.bin", iter(lines), tokenizer, on_batch=on_batch)
    windows = Windows(tmp_path / "tokens.bin", 6, 2, 0, tmp_path / "importance.bin")
    ids, _, importance = windows[0]
    assert [tokens[i] for i in ids] == ["[CLS]", "the", "low", "##est", "price", "[SEP]"]
    assert importance.tolist() == [0, 3, 6, 6, 5, 0]
    windows = Windows(tmp_path / "tokens.bin", 11, 2, 0, tmp_path / "importance.bin")
    assert windows[0].importance.tolist() == [0, 3, 6, 6, 5, 0, 1, 1, 3, 0, 0]


def test_selected_positions_are_drawn_in_proportion():
    importance, candidates = np.array([9.0, 1, 0, 3, 6, 0]), np.array([False, True, True, True, True, True])
    draws = [
        choose_positions(candidates, candidates, 1, "selected", np.random.default_rng(seed), importance)[0]
        for seed in range(4000)
    ]
    shares = np.bincount(np.concatenate(draws), minlength=6) / len(draws)
    np.testing.assert_allclose(shares, [0, 0.1, 0, 0.3, 0.6, 0], atol=0.03)
    positions, groups = choose_positions(candidates, candidates, 4, "selected", np.random.default_rng(0), importance)
    assert {1, 3, 4} < set(positions.tolist()) and len(positions) == len(set(groups.tolist())) == 4


def test_the_commands_hide_the_words_that_decide(run, tmp_path, capsys):
    data, text, out = tmp_path / "reviews.jsonl", tmp_path / "text.txt", tmp_path / "bert"
    data.write_text(
        "".join(f"{classified_line(row[0], None, label=row[1])}\n" for row in reviews(12, 7)), encoding="utf-8"
    )
    assert commands.main(["importance", "--model", str(run), str(data), "--out", str(tmp_path / "o.jsonl")]) == 0
    expected = important_words(TextClassifier(run), [Example(*row) for row in reviews(12, 7)])
    assert [s.spans for s in read_entities(tmp_path / "o.jsonl")] == [s.spans for s in expected]
    assert f"{sum(len(s.spans) for s in expected)} important words in 12 texts" in capsys.readouterr().out
    text.write_text("\n".join(review for review, _ in reviews(60, 8)), encoding="utf-8")
    sizes = "--layers 1 --width 64 --vocab-size 200 --length 16 --steps 2 --batch-size 4".split()
    arguments = ["pretrain", "--text", str(text), "--mask", "selected", "--task-model", str(run), "--out", str(out)]
    assert commands.main([*arguments, *sizes]) == 0
    assert not (out / "pretraining" / "importance.bin").exists()  # only an interrupted run needs it


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"mask": "selected"}, "`mask` needs `task_model`. Received: mask='selected' and task_model=None"),
        (
            {"task_model": "runs/x"},
            "`task_model` needs mask='selected'. Received: task_model='runs/x' and mask='tokens'",
        ),
    ],
)
def test_selected_masks_and_the_task_model_need_each_other(given, message):
    with pytest.raises(ValueError) as error:
        PretrainingSettings(**given)
    assert message in str(error.value)


def test_what_cannot_be_asked_is_refused(run, tmp_path, capsys):
    with pytest.raises(ValueError, match="^film.tsv:7: needs a label of the classifier, one of .* Received: 'odd'"):
        important_words(TextClassifier(run), [Example("a film", "odd", source="film.tsv:7")])
    with pytest.raises(ValueError, match="`examples`: needs single texts. Received: a pair, \\('a film', 'a book'\\)"):
        important_words(TextClassifier(run), [Example("a film", "good", "a book")])
    for change, received in (({"pairs": True}, "pairs"), ({"labels": ()}, "numbers")):
        other = TextClassifier(run)
        vars(other).update(change)
        with pytest.raises(ValueError, match=f"must give labels to single texts. Received: one of {received}"):
            important_words(other, [Example("a film", "good")])
    with pytest.raises(ValueError, match="needs a folder that `kcrf train` wrote"):
        TaskModel(tmp_path / "model.onnx")
    (tmp_path / "text.txt").write_text("a film\n" * 60)
    arguments = [
        "pretrain",
        "--text",
        str(tmp_path / "text.txt"),
        "--mask",
        "selected",
        "--out",
        str(tmp_path / "bert"),
    ]
    assert commands.main([*arguments, "--task-model", str(tmp_path / "none")]) == 2
    assert "config.json: no such file" in capsys.readouterr().err
    assert list(iterate_lines([tmp_path / "text.txt"])) == ["a film"] * 60
    arguments = ["importance", "--model", str(tmp_path / "none"), str(tmp_path / "text.txt")]
    assert commands.main([*arguments, "--out", str(tmp_path / "nowhere" / "o.jsonl")]) == 2
    assert "o.jsonl: needs a folder that exists" in capsys.readouterr().err
