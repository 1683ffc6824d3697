"""kcrf.taggers: Uncertainties beside the enumeration of all paths, the order of suggestions, and what is omitted."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import oracles
import pytest
from conftest import few
from decoders import entropies, parts_of
from hypothesis import given
from hypothesis import strategies as st

from kcrf.chains import Posterior
from kcrf.corpora import Example, Sentence, load_mini, tagged_sentence
from kcrf.linear import LinearModel
from kcrf.networks.linear_networks import LinearTaggingNetwork
from kcrf.readers import CharacterNGrams, CharacterReader
from kcrf.readers.ngrams import CHARACTER_TEMPLATES
from kcrf.taggers import EntityRecognizer, TextClassifier, TokenTagger, WordSegmenter
from kcrf.taggers.decoder import Decoder
from kcrf.taggers.open_model import built_in_segmenter
from kcrf.taggers.suggestions import (
    STRATEGIES,
    best_path_surprisals,
    label_uncertainties,
    path_entropies,
    score_of,
    sums_of,
    tag_entropies,
)
from kcrf.tags import bio, bmes
from kcrf.training import Settings, train_tagger

TEXTS = ["今天天", "他们", "去", "", "北京很好", "好好好好"]
ROOT = Path(__file__).parents[2]
FORBIDDEN = -1e9


def random_model(scheme, temperature=1.0):
    """A `Decoder` with random scores, for characters."""
    random = np.random.default_rng(3)
    reader = CharacterReader(None, None, CharacterNGrams(2**10, CHARACTER_TEMPLATES))
    scores = random.normal(size=(2**10, len(scheme))).astype("float32") / 2
    scores[0] = 0
    model = LinearModel(scheme, scores, random.normal(size=(len(scheme),) * 2))
    return Decoder(LinearTaggingNetwork(model, temperature), reader)


def truth(tagger, text):
    """The results of the enumeration of all paths of a text."""
    (window,) = tagger.reader.read([text])[0].windows
    network, scheme = tagger.network, tagger.scheme
    starts, ends = (np.where(may, 0.0, FORBIDDEN) for may in (scheme.allowed_starts, scheme.allowed_ends))
    emissions = network.model.emissions(window.inputs["ngrams"]) / network.temperature
    transitions = network.model.constrained_transitions() / network.temperature
    return oracles.sentence(emissions, np.ones(len(text), bool), transitions, starts, ends)


def entropy(probabilities):
    return -sum(p * np.log(p) for p in np.ravel(probabilities) if p > 0)


@pytest.mark.once
@pytest.mark.parametrize("temperature", [1.0, 2.5])
@pytest.mark.parametrize("scheme", [bmes(), bio(("A", "B"))], ids=["words", "entities"])
def test_uncertainties_are_those_of_all_paths(scheme, temperature):
    tagger = random_model(scheme, temperature)
    known = [truth(tagger, text) if text else None for text in TEXTS]
    expected = {
        path_entropies: [k["entropy"] if k else 0 for k in known],
        tag_entropies: [entropy(k["marginals"]) if k else 0 for k in known],
        best_path_surprisals: [k["log_z"] - k["paths"][0][1] if k else 0 for k in known],
    }
    for measure, values in expected.items():
        for batch_size in (1, 64):
            totals, units = tagger.uncertainties(parts_of(TEXTS), measure, batch_size)
            np.testing.assert_allclose(totals, values, atol=1e-4)
            assert units.tolist() == list(map(len, TEXTS))
    np.testing.assert_allclose(entropies(tagger, TEXTS), expected[path_entropies], atol=1e-4)


@pytest.mark.once
def test_the_strategies_are_those_of_the_literature():
    totals, units = np.array([6.0, 2.0, 0.0]), np.array([3, 1, 0])
    assert score_of("token-entropy", totals, units).tolist() == [2, 2, 0]
    assert score_of("mean-entropy", totals, units).tolist() == [2, 2, 0]
    assert score_of("sequence-entropy", totals, units).tolist() == [6, 2, 0]
    assert score_of("least-confidence", totals, units).tolist() == [6, 2, 0]
    assert {name: measure for name, (measure, _) in STRATEGIES.items()} == {
        "mean-entropy": path_entropies,
        "token-entropy": tag_entropies,
        "sequence-entropy": path_entropies,
        "least-confidence": best_path_surprisals,
    }
    probabilities = np.array([[0.2, 0.5, 0.3], [1.0, 0.0, 0.0]])
    for name in ("mean-entropy", "token-entropy", "sequence-entropy"):
        np.testing.assert_allclose(label_uncertainties(name, probabilities), list(map(entropy, probabilities)))
    np.testing.assert_allclose(label_uncertainties("least-confidence", probabilities), [-np.log(0.5), 0])


@pytest.mark.once
@given(st.lists(st.lists(st.integers(0, 9))))
def test_uncertainties_of_the_parts_of_a_text_are_added(rows):
    values = np.array([value for row in rows for value in row], float)
    assert sums_of(values, list(map(len, rows))).tolist() == list(map(sum, rows))


@pytest.mark.once
@pytest.mark.parametrize("allowed", [True, False])
def test_entropies_of_sentences_with_holes(allowed):
    """As the exported file and the Keras model have them: emissions, masks of every kind, forbidden transitions."""
    from kcrf import crf
    from kcrf.backend import ops
    from kcrf.crf.functions import log_sums_onward

    random, size = np.random.default_rng(0), 3
    mask = np.array([[1, 1, 1, 1], [1, 0, 1, 0], [0, 0, 1, 0], [0, 0, 0, 0], [0, 1, 1, 1]], bool)
    emissions = random.normal(size=(*mask.shape, size)).astype("float32") * 2
    transitions = random.normal(size=(size, size)).astype("float32")
    if not allowed:
        transitions[0, 1] = transitions[2] = FORBIDDEN
    onward = emissions + ops.convert_to_numpy(log_sums_onward(emissions, mask, transitions))
    marginals = ops.convert_to_numpy(crf.marginals(emissions, mask, transitions))
    known = [oracles.sentence(*row, transitions) if row[1].any() else {"entropy": 0} for row in zip(emissions, mask)]
    found = Posterior(marginals, onward, transitions, mask).entropies()
    np.testing.assert_allclose(found, [k["entropy"] for k in known], atol=1e-4)
    np.testing.assert_allclose(found, ops.convert_to_numpy(crf.entropy(emissions, mask, transitions)), atol=1e-4)


def check_with_all_analyses(tagger, text, items):
    """Compares the uncertainties of a text with those of all its analyses, each of which is one tag sequence."""
    probabilities = [p for _, p in tagger.k_best(text, items)]
    assert len(probabilities) == items and sum(probabilities) == pytest.approx(1, abs=1e-4)
    expected = {
        "sequence-entropy": entropy(probabilities),
        "mean-entropy": entropy(probabilities) / len(text),
        "least-confidence": -np.log(max(probabilities)),
    }
    for strategy, value in expected.items():
        assert tagger.uncertainties([text], strategy)[0] == pytest.approx(value, abs=1e-3)


@pytest.mark.once
@pytest.mark.parametrize("path", [built_in_segmenter(), ROOT / "examples" / "segmenter.onnx"], ids=["npz", "onnx"])
def test_uncertainties_of_exported_files(path):
    if path.suffix == ".onnx":
        pytest.importorskip("onnxruntime")
    for text in ("墙根下倒", "一丛紫茉莉"):
        check_with_all_analyses(WordSegmenter(path), text, 2 ** (len(text) - 1))


@pytest.mark.slow
@pytest.mark.once
def test_uncertainties_of_a_keras_model(tmp_path):
    corpus, small = load_mini("ner"), {"width": 8, "depth": 1, "character_width": 8, "bigram_width": 8}
    settings = Settings(task="ner", epochs=1, ngrams=False, types=("PER",), **small)
    people = [replace(s, spans=[span for span in s.spans if span[2] == "PER"]) for s in corpus.train[:24]]
    train_tagger(settings, people, people[:4], out=tmp_path / "run")
    recognizer = EntityRecognizer(tmp_path / "run")
    check_with_all_analyses(
        recognizer, "李雷在", 13
    )  # the sequences of B, I and O without an I at the start or after O
    marginals = []
    recognizer.decoder.uncertainties(
        parts_of(["李雷在"]), lambda network, scores, windows: marginals.extend(network.marginals(scores)) or [0.0]
    )
    assert recognizer.uncertainties(["李雷在"], "token-entropy")[0] == pytest.approx(entropy(marginals) / 3, abs=1e-4)


@pytest.fixture(scope="module")
def recognizer(tmp_path_factory):
    corpus, path = load_mini("ner"), tmp_path_factory.mktemp("runs") / "people"
    train_tagger(Settings(task="ner", encoder="linear", epochs=2), corpus.train[:40], corpus.valid[:8], out=path)
    return EntityRecognizer(path)


def is_near(one, other):
    """By the definition, on texts without white space and capital letters."""
    grams = [{text[i : i + 3] for i in range(len(text) - 2)} or {text} for text in (one, other)]
    return 2 * len(grams[0] & grams[1]) >= len(grams[0] | grams[1])


@pytest.mark.once
@pytest.mark.parametrize("strategy", few(*STRATEGIES, rest="slow"))
def test_the_most_uncertain_come_first_and_no_near_duplicate_comes(recognizer, strategy):
    texts = [sentence.text for sentence in load_mini("ner").train[40:100]]
    texts += ["", " \n", texts[3], f"{texts[5]}！", f"又{texts[9]}"]
    labeled = [f"{texts[0]}。", texts[1]]
    scores = [recognizer.uncertainties([text], strategy)[0] for text in texts]
    chosen = []
    for index in sorted(range(len(texts)), key=lambda i: (-scores[i], i)):
        taken = labeled + [texts[i] for i in chosen]
        if texts[index].strip() and not any(is_near(texts[index], text) for text in taken):
            chosen.append(index)
    assert 20 < len(chosen) < 62
    for count in (7, len(texts)):
        found = recognizer.suggest(texts, count, strategy, labeled)
        assert [item.index for item in found] == chosen[:count]
        np.testing.assert_allclose([item.score for item in found], [scores[i] for i in chosen[:count]], atol=1e-6)
        assert [item.text for item in found] == [texts[i] for i in chosen[:count]]
    assert [item.prediction for item in found] == recognizer.recognize_batch([item.text for item in found])


@pytest.mark.once
def test_a_sequence_is_read_once_and_then_where_it_is_needed(recognizer, monkeypatch):
    class Texts(tuple):
        iterated = 0

        def __iter__(self):
            Texts.iterated += 1
            return super().__iter__()

    monkeypatch.setattr("kcrf.taggers.suggestions._AT_ONCE", 7)
    plain, read = [sentence.text for sentence in load_mini("ner").train[40:70]], []
    assert recognizer.suggest(Texts(plain), 9, on_batch=read.append) == recognizer.suggest(plain, 9)
    assert Texts.iterated == 1
    assert sum(read) == sum(map(len, plain))


@pytest.mark.once
def test_what_cannot_be_suggested_is_refused(recognizer):
    for count in (0, -1, 2.5):
        with pytest.raises(ValueError, match=f"`count` must be a positive integer. Received: {count}"):
            recognizer.suggest(["今天"], count)
    for method in (recognizer.suggest, recognizer.uncertainties):
        with pytest.raises(ValueError, match="`strategy` must be one of mean-entropy, .* Received: 'entropy'"):
            method(["今天"], strategy="entropy")
        with pytest.raises(TypeError, match="`texts` must be a list"):
            method("今天")
    assert recognizer.suggest([]) == recognizer.suggest(["", "\t"]) == []


@pytest.mark.once
def test_parts_of_a_text_to_segment_are_added():
    """White space separates parts, each with its own chain; no word ends within a run of Latin letters."""
    segmenter = WordSegmenter()
    parts = ["北京大学生", "前来应聘"]
    for strategy, (_, is_mean) in STRATEGIES.items():
        whole, *single = segmenter.uncertainties([" ".join(parts), *parts], strategy)
        expected = sum(score * (len(part) if is_mean else 1) for score, part in zip(single, parts))
        assert whole == pytest.approx(expected / (sum(map(len, parts)) if is_mean else 1))
        assert segmenter.uncertainties(["Python"], strategy)[0] == pytest.approx(0, abs=1e-6)
    for labeled in ([["前来", "应聘"]], [[("前来", "v"), ("应聘", "v")]], [Sentence("前来应聘", [])]):
        assert [item.index for item in segmenter.suggest(parts, labeled=labeled)] == [0]
    with pytest.raises(TypeError, match="must be a list of strings"):
        segmenter.suggest(parts, labeled="前来应聘")
    (found,) = segmenter.suggest(["", "北京 大学生"])
    assert (found.index, found.prediction) == (1, segmenter(["北京 大学生"])[0])


@pytest.mark.once
def test_sentences_of_tokens_are_suggested(tmp_path):
    sentences = [tagged_sentence(["Kim", "slept"], ["N", "V"]), tagged_sentence(["Ada", "saw", "Kim"], ["N", "V", "N"])]
    settings = Settings(task="pos", encoder="linear", epochs=2)
    train_tagger(settings, sentences * 4, sentences, out=tmp_path / "pos")
    tagger, texts = TokenTagger(tmp_path / "pos"), [["Ada", "slept"], ["a", "b", "c"], ["Kim"]]
    scores = tagger.uncertainties(texts)
    found = tagger.suggest(texts, 2, labeled=["Kim"])
    assert [item.index for item in found] == sorted([0, 1], key=lambda i: -scores[i])
    for labeled in ([["Kim"]], [[("Kim", "N")]], [tagged_sentence(["Kim"], ["N"])]):
        assert tagger.suggest(texts, 3, labeled=labeled) == found
    assert [item.prediction for item in found] == [tagger([texts[item.index]])[0] for item in found]


class Labels(TextClassifier):
    """A classifier whose probabilities depend on the first character."""

    def __init__(self, labels=("neg", "pos")):
        self.labels, self.pairs, self._multilabel = labels, False, False

    def _outputs(self, texts, batch_size, on_batch):
        return np.array([[p, 1 - p] for p in (int(text[0]) / 10 for text in texts)])


@pytest.mark.once
def test_texts_with_the_least_certain_labels_are_suggested():
    classifier = Labels()
    found = classifier.suggest(["9 一", "4 二", "7 三", "8 四"], 3)
    assert [(item.index, item.prediction.label) for item in found] == [(1, "pos"), (2, "neg"), (3, "neg")]
    assert found[0].score == pytest.approx(entropy([0.4, 0.6]))
    assert classifier.suggest(["9 一", "4 二"], labeled=[Example("4 二", "pos")])[0].index == 0


@pytest.mark.once
def test_numbers_have_no_probabilities():
    classifier = Labels(())
    with pytest.raises(ValueError, match="needs a model with probabilities. Received: a model that predicts numbers"):
        classifier.suggest(["一"])
