"""Tests of kcrf.taggers.

Entities made of words: from CoNLL columns and JSON lines to a run, and from texts and tokens to entities.
"""

import json
import random
import shutil

import numpy as np
import pytest

from kcrf import commands
from kcrf.backend import keras
from kcrf.corpora import Sentence, read_entities
from kcrf.corpora.conll import join_tokens
from kcrf.corpora.entities import entity_line
from kcrf.metrics import entity_scores
from kcrf.runs import RunFolder, Settings
from kcrf.taggers import EntityRecognizer, Span, load_tagger
from kcrf.taggers.spans import part_of
from kcrf.training import resume_tagger, train_tagger

SMALL = {"task": "ner", "width": 32, "depth": 1, "batch_size": 16, "epochs": 6, "learning_rate": 5e-3, "dropout": 0.1}
SMALL |= {"linear_weight": 0.0}
NAMES = "Kim Ada Paul Ruth Ivan Mary Omar Lena Bill Hope".split()
TOWNS = "Leeds York Turin Bergen Lyon Bonn Bath Reading Nice Split".split()
FORMS = ["{0} lives in {1} .", "In {1} , {0} did n't pay the bill .", "{0} 's hope is a nice reading lamp ."]


def corpus(count, seed):
    """Sentences with names and towns, as CoNLL columns have them."""
    rng, sentences = random.Random(seed), []
    for _ in range(count):
        name, town = [rng.choice(NAMES), *rng.choice([[], ["Smith"]])], [rng.choice(TOWNS)]
        parts = {"{0}": (name, "PER"), "{1}": (town, "LOC")}
        tokens, spans = [], []
        for word in rng.choice(FORMS).split():
            words, label = parts.get(word, ([word], None))
            spans += [(len(tokens), len(tokens) + len(words), label)] if label else []
            tokens += words
        text, extents = join_tokens(tokens)
        sentences.append(Sentence(text, [(extents[a][0], extents[b - 1][1], c) for a, b, c in spans], extents))
    return sentences


TRAIN, VALID, TEST = (corpus(count, seed) for seed, count in enumerate((160, 24, 24)))


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("english") / "run"
    train_tagger(Settings(**SMALL), TRAIN, VALID, TEST, out=folder)
    return folder


@pytest.mark.once
def test_a_run_by_words_finds_names_and_scores_what_it_finds(run):
    assert RunFolder(run).read_config().config.data.units == "words"
    recognizer, scores = EntityRecognizer(run), json.loads((run / "scores.json").read_text())["test"]
    found = recognizer.recognize_batch(TEST)
    spans = [[(e.start, e.end, e.label) for e in row] for row in found]
    assert scores == json.loads(json.dumps(entity_scores([s.spans for s in TEST], spans)))
    assert scores["f"] > 0.9
    for sentence, row in zip(TEST, recognizer.recognize_batch([s.text for s in TEST]), strict=True):
        borders = {border for token in sentence.tokens for border in token}
        assert all({e.start, e.end} <= borders and sentence.text[e.start : e.end] == e.text for e in row)


@pytest.fixture(scope="module")
def recognizer(run):
    return EntityRecognizer(run)


@pytest.mark.once
def test_entities_are_characters_of_a_text_as_it_is_written(recognizer):
    text = "  In Leeds,\tKim didn't pay; Kim's hope..."
    found = recognizer.recognize(text)
    assert [(text[e.start : e.end], e.label) for e in found] == [("Leeds", "LOC"), ("Kim", "PER"), ("Kim", "PER")]
    assert [e.text for e in found] == ["Leeds", "Kim", "Kim"] and all(0.5 < e.probability <= 1 for e in found)
    ((best, p), *_) = recognizer.k_best(text, 3)
    assert [(e.start, e.end, e.label) for e in best] == [(e.start, e.end, e.label) for e in found] and p <= 1


@pytest.mark.once
def test_entities_of_a_list_of_tokens_are_counted_in_tokens(recognizer):
    tokens = ["In", "Leeds", ",", "Kim", "Smith", "did", "n't", "pay", "the", "bill", "."]
    (lists, sentence) = recognizer.recognize_batch(
        [tokens, Sentence(*[join_tokens(tokens)[0], [], join_tokens(tokens)[1]])]
    )
    assert [(e.start, e.end, e.label, e.text) for e in lists] == [(1, 2, "LOC", "Leeds"), (3, 5, "PER", "Kim Smith")]
    assert [(e.start, e.end) for e in sentence] == [(3, 8), (11, 20)]
    assert [e.probability for e in lists] == [e.probability for e in sentence]
    ((best, _),) = recognizer.k_best(tokens, 1)
    assert [(e.start, e.end) for e in best] == [(1, 2), (3, 5)]
    known = recognizer.recognize(tokens, spans=[(9, 10, "PER"), (3, 4, "PER")])
    assert {(1, 2, "LOC"), (3, 4, "PER"), (9, 10, "PER")} <= {(e.start, e.end, e.label) for e in known}
    assert (7, 11) in [(e.start, e.end) for e in recognizer.recognize("Kim 's bill", spans=[(7, 11, "PER")])]
    assert recognizer.recognize([]) == []
    with pytest.raises(ValueError, match="Tokens must be strings, and not empty"):
        recognizer.recognize(["In", ""])


@pytest.mark.once
def test_spans_of_tokens_are_spans_of_their_text_and_back():
    given = part_of(["Kim", "in", "上海", "市"])  # joined without a blank at the end
    spans = [(0, 1, "PER"), (2, 3, "LOC"), (2, 4, "LOC"), (3, 4, "LOC")]
    characters = [(0, 3, "PER"), (6, 8, "LOC"), (6, 9, "LOC"), (8, 9, "LOC")]
    assert given.text == "Kim in上海市" and given.in_characters(spans) == characters
    found = [Span(start, end, "", label) for start, end, label in characters]
    assert [span.key for span in given.as_counted(found)] == spans
    assert given.as_counted([Span(7, 9, "海市", "LOC", 0.5)]) == [Span(2, 4, "海市", "LOC", 0.5)]  # all that it touches
    assert part_of("上海").as_counted(found) == found and part_of("上海").in_characters(characters) == characters


@pytest.mark.once
def test_capitals_tell_a_name_from_a_word(recognizer):
    assert [e.text for e in recognizer.recognize("Hope lives in Reading .")] == ["Hope", "Reading"]
    assert recognizer.recognize("he did n't pay the bill in hope of a nice reading lamp .") == []


@pytest.mark.once
def test_unusual_texts_have_the_entities_of_each_text_alone(recognizer):
    texts = ["", " ", "\ud800", "Kim\x00Kim", "\u0301", "x" * 1000, "Kim lives in Leeds . " * 60, "李雷住在上海。"]
    for text, row in zip(texts, recognizer.recognize_batch(texts, batch_size=2), strict=True):
        assert all(text[e.start : e.end] == e.text for e in row)
        assert [(e.start, e.end, e.label) for e in row] == [
            (e.start, e.end, e.label) for e in recognizer.recognize(text)
        ]
    assert len(recognizer.recognize(texts[6])) == 120


def write_conll(path, sentences):
    path.write_text("\n".join(map(_rows, sentences)), encoding="utf-8")
    return path


def _rows(sentence):
    lines = []
    for start, end in sentence.tokens:
        label = next((span for span in sentence.spans if span[0] <= start < span[1]), None)
        tag = "O" if label is None else f"{'B' if label[0] == start else 'I'}-{label[2]}"
        lines.append(f"{sentence.text[start:end]} {tag}\n")
    return "".join(lines)


@pytest.mark.once
def test_the_command_line_tags_texts_tokens_and_columns(run, tmp_path, capfd):
    conll = write_conll(tmp_path / "test.conll", TEST)
    text = tmp_path / "text.txt"
    text.write_text("\n".join(sentence.text for sentence in TEST), encoding="utf-8")
    outputs = []
    for kind, path in (("conll", conll), ("tokens", text), ("text", text)):
        assert commands.main(["tag", "--model", str(run), "--input", kind, str(path)]) == 0
        outputs.append(capfd.readouterr().out)
    assert outputs[0] == outputs[1] == outputs[2]  # these texts are cut into the tokens of the file
    found = tmp_path / "found.jsonl"
    found.write_text(outputs[0], encoding="utf-8")
    assert commands.main(["score", "--task", "ner", "--gold", str(conll), "--pred", str(found), "--json"]) == 0
    assert json.loads(capfd.readouterr().out)["f"] == json.loads((run / "scores.json").read_text())["test"]["f"]
    text.write_text("didn't Kim", encoding="utf-8")
    assert commands.main(["tag", "--model", str(run), "--input", "tokens", "--k-best", "1", str(text)]) == 0
    assert [e["text"] for e in json.loads(capfd.readouterr().out)["entities"]] == ["Kim"]


@pytest.mark.slow
def test_the_units_are_chosen_by_the_data_and_said(tmp_path, capfd):
    lines = [entity_line(s.text, [dict(zip(("start", "end", "label"), span)) for span in s.spans]) for s in TRAIN]
    lines += ['{"text": "Londoners left the Leeds-based team", "entities": [{"start": 0, "end": 6, "label": "LOC"}, '
              '{"start": 19, "end": 24, "label": "LOC"}]}']  # fmt: skip
    path = tmp_path / "train.jsonl"
    path.write_text("\n".join(lines), encoding="utf-8")
    small = "--epochs 1 --width 16 --depth 1".split()
    arguments = ["train", "--task", "ner", "--train", str(path), "--out", str(tmp_path / "run"), *small]
    assert commands.main(arguments) == 0
    error = capfd.readouterr().err
    assert f"{len(lines)} sentences of words, 5 tags: " in error or "145 sentences of words, 5 tags: " in error
    assert "entities begin or end inside a word, such as 'London'" in error
    tagger = load_tagger(tmp_path / "run")
    assert tagger.reader.splits == "-"
    assert commands.main([*arguments, "--overwrite", "--units", "characters"]) == 0
    assert "145 sentences of characters, 5 tags: " in capfd.readouterr().err
    assert set(load_tagger(tmp_path / "run").model.input) == {"characters", "bigrams", "words", "ngrams", "types"}
    assert read_entities(path)[-1].tokens == []
    assert commands.main([*arguments, "--overwrite", "--task", "cws", "--units", "words"]) == 2
    assert "--units is 'characters' for cws. Received: 'words'" in capfd.readouterr().err


class Stops(keras.callbacks.Callback):
    """A progress display that interrupts training after the second epoch."""

    def on_epoch_end(self, epoch, logs=None):
        if epoch == 1:
            raise KeyboardInterrupt

    def report(self, row):
        pass


@pytest.mark.slow
def test_an_interrupted_run_by_words_ends_with_the_weights_of_an_uninterrupted_one(run, tmp_path):
    with pytest.raises(KeyboardInterrupt):
        train_tagger(Settings(**SMALL), TRAIN, VALID, TEST, tmp_path / "run", Stops())
    assert RunFolder(tmp_path / "run").has_state()
    with pytest.warns(UserWarning, match="run: training has not finished; this is the best epoch so far"):
        load_tagger(tmp_path / "run")
    tagger, scores = resume_tagger(tmp_path / "run", TRAIN, VALID, TEST)
    load_tagger(tmp_path / "run")  # without a warning
    assert json.loads(json.dumps(scores)) == json.loads((run / "scores.json").read_text())
    for one, other in zip(tagger.model.get_weights(), load_tagger(run).model.get_weights(), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.once
def test_a_damaged_vocabulary_is_named(run, tmp_path):
    copy = shutil.copytree(run, tmp_path / "run")
    (copy / "vocabulary.json").write_text('{"tokens": []}')
    with pytest.raises(ValueError, match="vocabulary.json: needs lists of strings: tokens, characters, features"):
        EntityRecognizer(copy)
