"""Tests of kcrf.training.linear, kcrf.training.stages.

kcrf train --incomplete: labels that are missing, estimated by models of other sentences, beside enumeration.
"""

import json
from dataclasses import replace
from itertools import pairwise, product

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from oracles import log_sum

from kcrf.commands.main import main
from kcrf.corpora import Sentence, read_entities
from kcrf.corpora.entities import sentence_line
from kcrf.linear import LinearModel
from kcrf.networks.linear_networks import LinearTaggingNetwork
from kcrf.readers import CharacterNGrams, CharacterReader
from kcrf.readers.units import Reading
from kcrf.runs import RunFolder, SettingError, Settings
from kcrf.runs.names import ESTIMATES, LINEAR
from kcrf.taggers.decoder import Decoder
from kcrf.tags import bio, bioes
from kcrf.training import linear as linear_training
from kcrf.training import resume_tagger, train_tagger
from kcrf.training.stages import incomplete
from kcrf.training.stages.incomplete import Estimator, entities_to_expect, labeled, opened

BACKENDS = ["torch"]
NAMES, TOWNS, VERBS = ["张三", "李四", "王五", "赵六"], ["北京", "上海", "南京", "天津"], ["住在", "去了", "喜欢"]


def sentences(keep):
    """Each name with each town; of the entities those whose number in the text `keep` says."""
    made = []
    for number, (name, town, verb) in enumerate(product(NAMES, TOWNS, VERBS)):
        spans = [(0, 2, "PER"), (4, 6, "LOC")]
        made.append(Sentence(f"{name}{verb}{town}。", [span for i, span in enumerate(spans) if keep(number + i)]))
    return made * 2


WHOLE, PARTIAL = sentences(lambda number: True), sentences(lambda number: number % 3 == 0)
SETTINGS = Settings(task="ner", encoder="linear", incomplete=True, epochs=3, solver="adagrad")


@pytest.mark.parametrize("scheme", [bio(["A", "B"]), bioes(["A"])])
@pytest.mark.parametrize(
    "sentence",
    [
        Sentence("abcde", [(1, 3, "A")], unknown=[(0, 1), (3, 5)]),
        Sentence("abcde", [(1, 3, "A")], unknown=[(3, 4)]),
        Sentence("abcde", [], unknown=[(0, 5)]),
        Sentence("abcde", [(0, 1, "A"), (1, 2, "A")], unknown=[(4, 5)]),
    ],
)
def test_what_is_expected_is_the_mean_over_all_labels_that_the_sentence_leaves_open(scheme, sentence):
    random, size, temperature, bias = np.random.default_rng(0), len(scheme), 1.7, 0.8
    ngrams = CharacterNGrams(64)
    model = LinearModel(scheme, random.normal(size=(64, size)).astype("float32"), random.normal(size=(size, size)))
    reader = CharacterReader(None, None, ngrams)
    tagger = Decoder(LinearTaggingNetwork(model, temperature), reader)
    rows = model.emissions(reader.read([sentence.text])[0].windows[0].inputs["ngrams"]) / temperature
    open_ = {i for start, end in sentence.unknown for i in range(start, end)}
    scored = []
    for path in product(range(size), repeat=5):
        legal = scheme.allowed_starts[path[0]] and scheme.allowed_ends[path[-1]]
        if not legal or not all(scheme.allowed_transitions[a, b] for a, b in pairwise(path)):
            continue
        entities = scheme.decode(path)
        others = [set(range(start, end)) for start, end, label in entities if (start, end, label) not in sentence.spans]
        if len(entities) - len(others) == len(sentence.spans) and all(other <= open_ for other in others):
            score = sum(rows[t, tag] for t, tag in enumerate(path)) + bias * len(entities)
            score += sum(model.transitions[a, b] for a, b in pairwise(path)) / temperature
            scored.append((path, len(entities), score))
    log_z, marginals = log_sum([score for *_, score in scored]), np.zeros((5, size))
    for path, _, score in scored:
        marginals[range(5), path] += np.exp(score - log_z)
    estimator = Estimator(tagger, [Sentence("", []), sentence])
    assert_allclose(estimator.marginals(bias)[1], marginals, atol=1e-5)
    assert_allclose(estimator.entities(bias), sum(n * np.exp(s - log_z) for _, n, s in scored), rtol=1e-5)


@pytest.mark.parametrize(
    ("probable", "spans", "unknown"),
    [
        ("O B I O O", [(1, 3, "A"), (5, 6, "A")], []),
        ("O B I O ?", [(1, 3, "A"), (5, 6, "A")], [(4, 5)]),
        ("O B I ? O", [(5, 6, "A")], [(1, 4)]),  # the entity may be longer
        ("O B ? O O", [(5, 6, "A")], [(1, 3)]),
        ("? ? I O O", [(5, 6, "A")], [(0, 3)]),  # where it begins is not known
        ("O O O B I", [(3, 5, "A"), (5, 6, "A")], []),
        ("O O O O ?", [(5, 6, "A")], [(4, 5)]),
    ],
)
def test_labels_that_are_not_sure_are_unknown_and_so_are_entities_whose_borders_are_not(probable, spans, unknown):
    scheme, given = bio(["A"]), Sentence("abcdef", [(5, 6, "A")], unknown=[(0, 5)])
    rows = {"O": [0.9, 0.05, 0.05], "B": [0.1, 0.85, 0.05], "I": [0.1, 0.1, 0.8], "?": [0.5, 0.2, 0.3]}
    marginals = np.array([*(rows[tag] for tag in probable.split()), [0, 1, 0]])
    units = np.stack([np.arange(6), np.arange(1, 7)], axis=1)
    found = labeled(scheme, given, Reading(units, []), [(5, 6, "A")], marginals)
    assert (found.spans, found.unknown) == (spans, unknown)


def test_only_what_is_said_to_be_unknown_is_open_and_everything_if_nothing_is_said():
    plain, said = Sentence("abcd", [(1, 2, "A")]), Sentence("abcd", [], unknown=[(2, 3)])
    assert [s.unknown for s in opened([plain, Sentence("", [])])] == [[(0, 1), (2, 4)], []]
    assert [s.unknown for s in opened([plain, said])] == [[], [(2, 3)]]


def test_unknown_text_of_the_validation_set_is_not_counted_as_text_without_entities():
    train = [Sentence("a" * 60, [(0, 1, "A")])]
    assert entities_to_expect(train, [Sentence("a" * 20, [(0, 1, "A")])]) == pytest.approx(2)
    assert entities_to_expect(train, [Sentence("a" * 20, [(0, 1, "A")], unknown=[(10, 20)])]) == pytest.approx(5)
    assert entities_to_expect(train, [Sentence("a" * 100, [(0, 1, "A")])]) == 0
    with pytest.raises(ValueError, match="needs a validation set in which all entities are marked. Received: no"):
        entities_to_expect(train, [Sentence("a", [])])
    with pytest.raises(ValueError, match="needs at least two training sentences. Received: 1"):
        incomplete.estimated_sentences(SETTINGS, train, train)


def test_a_run_finds_what_a_third_of_the_sentences_mark(tmp_path, capsys):
    scores = {}
    for missing in ("estimated", "outside"):
        settings = replace(SETTINGS, incomplete=missing == "estimated")
        _, found = train_tagger(settings, PARTIAL, WHOLE[:24], WHOLE[24:], out=tmp_path / missing)
        scores[missing] = found["test"]["f"] or 0
    assert scores["estimated"] > 0.85 > 0.65 > scores["outside"]
    assert "64 entities are marked, and 128 more are expected" in capsys.readouterr().err
    estimates = read_entities(tmp_path / "estimated" / ESTIMATES)
    assert [s.text for s in estimates] == [s.text for s in PARTIAL]
    assert all({*given.spans} <= {*estimate.spans} for given, estimate in zip(PARTIAL, estimates, strict=True))
    assert not (tmp_path / "outside" / ESTIMATES).exists()


def test_each_half_is_estimated_by_a_model_that_has_not_seen_it(monkeypatch, capsys):
    seen = []

    def tagger(settings, train, valid):
        seen.append({sentence.text for sentence in train})
        return seen[-1]

    class Spy:
        def __init__(self, known, given):
            self.given = given
            assert not known & {sentence.text for sentence in given}

        def entities(self, bias):
            return bias

        def sentences(self, bias):
            return self.given

    monkeypatch.setattr(incomplete, "_tagger", tagger)
    monkeypatch.setattr(incomplete, "Estimator", Spy)
    different = PARTIAL[: len(PARTIAL) // 2]
    found = incomplete.estimated_sentences(SETTINGS, different, WHOLE[:24])
    assert [sentence.text for sentence in found] == [sentence.text for sentence in different]
    assert len(seen) == 2 * incomplete.ROUNDS and seen[0] | seen[1] == {sentence.text for sentence in different}
    assert "are all of them marked?" not in capsys.readouterr().err
    incomplete.estimated_sentences(SETTINGS, different, different)
    assert "valid: has hardly more entities for its length than the training set" in capsys.readouterr().err


@pytest.mark.parametrize("says_outside", [True, False])
def test_the_first_models_sum_over_unknown_labels_if_other_text_is_known_to_be_outside(monkeypatch, says_outside):
    first = []

    def stop(settings, train, valid):
        first.extend(train)
        raise KeyboardInterrupt

    monkeypatch.setattr(incomplete, "_tagger", stop)
    train = [replace(sentence, unknown=[(6, 7)] if says_outside else []) for sentence in PARTIAL]
    with pytest.raises(KeyboardInterrupt):
        incomplete.estimated_sentences(SETTINGS, train, WHOLE)
    assert {bool(sentence.unknown) for sentence in first} == {says_outside}


@pytest.mark.slow
def test_it_is_resumed_to_the_same_weights_from_the_estimates_in_the_folder(tmp_path, monkeypatch):
    parts = PARTIAL[:48], WHOLE[:24]
    train_tagger(SETTINGS, *parts, out=tmp_path / "whole")
    save = linear_training._save

    def interrupted(folder, *arguments):
        save(folder, *arguments)
        if folder.path.name == "stopped":
            raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(linear_training, "_save", interrupted)
        train_tagger(SETTINGS, *parts, out=tmp_path / "stopped")
    for changed in ([*parts[0][1:], parts[0][0]], [replace(parts[0][0], spans=[]), *parts[0][1:]]):
        with pytest.raises(ValueError, match="needs the data that the run began with. Received: train"):
            resume_tagger(tmp_path / "stopped", changed, parts[1])
    monkeypatch.setattr(incomplete, "estimated_sentences", None)  # they are read
    resume_tagger(tmp_path / "stopped", *parts)
    whole, run = (RunFolder(tmp_path / name).read_arrays(LINEAR) for name in ("whole", "stopped"))
    for name, array in whole.items():
        assert_array_equal(array, run[name])


def test_words_are_estimated_as_words(tmp_path):
    def in_words(sentence):
        text = " ".join(sentence.text)
        spans = [(2 * start, 2 * end - 1, label) for start, end, label in sentence.spans]
        return Sentence(text, spans, [(i, i + 1) for i in range(0, len(text), 2)])

    settings = replace(SETTINGS, units="words")
    half, whole = [list(map(in_words, part)) for part in (PARTIAL, WHOLE)]
    _, scores = train_tagger(settings, half, whole[:24], whole[24:], out=tmp_path / "run")
    assert scores["test"]["f"] > 0.9


@pytest.mark.slow
def test_the_command_line(tmp_path, capsys):
    files = {}
    for name, part in (("train", PARTIAL), ("valid", WHOLE[:24])):
        files[name] = tmp_path / f"{name}.jsonl"
        files[name].write_text("".join(f"{sentence_line(s)}\n" for s in part), encoding="utf-8")
    command = ["train", "--task", "ner", "--incomplete", "--train", str(files["train"]), "--out", str(tmp_path / "run")]
    assert main(command) != 0
    assert (
        "--incomplete needs --valid FILE, in which all entities are marked. Received: none" in capsys.readouterr().err
    )
    assert not (tmp_path / "run").exists()
    command += ["--valid", str(files["valid"]), "--encoder", "linear"]
    assert main([*command, "--task", "cws"]) != 0
    assert "--incomplete needs --task ner. Received: --incomplete and --task cws" in capsys.readouterr().err
    assert main(command) == 0
    error = capsys.readouterr().err
    assert "round 2 of 2" in error and "entities are estimated" in error
    config = json.loads((tmp_path / "run" / "config.json").read_text(encoding="utf-8"))
    assert config["settings"]["incomplete"] is True
    with pytest.raises(SettingError, match="`incomplete` has no effect with `extend`"):
        Settings(task="ner", incomplete=True, extend=str(tmp_path / "run"))


def test_a_dictionary_that_copies_lack_is_missed_before_labels_are_estimated(tmp_path, capsys):
    settings = replace(SETTINGS, augment=1, synonyms=str(tmp_path / "nowhere.txt"))
    with pytest.raises(FileNotFoundError, match="nowhere.txt"):
        train_tagger(settings, PARTIAL, WHOLE[:8], out=tmp_path / "run")
    assert "are expected" not in capsys.readouterr().err and not (tmp_path / "run").exists()
