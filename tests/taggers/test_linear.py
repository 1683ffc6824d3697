"""Tests of kcrf.taggers.

Linear models in use: NumPy beside Keras, lines beside spans, run folders and exported files, without Keras.
"""

import json
import pickle
import subprocess
import sys

import numpy as np
import oracles
import pytest
from configs import stored
from conftest import few
from decoders import parts_of
from hypothesis import given, settings
from hypothesis import strategies as st

from kcrf.commands.main import main
from kcrf.corpora import Sentence, load_mini
from kcrf.export import export_model
from kcrf.linear import AdaGradTrainer, LinearModel, linear_batches, loss_and_gradient
from kcrf.networks.linear_networks import LinearTaggingNetwork
from kcrf.readers import CharacterNGrams, CharacterReader, Lexicon, WordNGrams, WordReader
from kcrf.readers.ngrams import CHARACTER_TEMPLATES, LEXICON_TEMPLATES
from kcrf.runs import RunWriter, Settings
from kcrf.runs.names import LINEAR
from kcrf.runs.setup import save_setup
from kcrf.taggers import EntityRecognizer, WordSegmenter
from kcrf.taggers.decoder import Decoder
from kcrf.tags import bio, bmes, words_to_tags
from kcrf.training.batches import tagged_windows

BACKENDS = ["torch"]

TEXTS = st.text(st.sampled_from("今天气很好他们说去北京。，！Ab1９.' \n\t∶😀"), max_size=400)


def spans_of(words):
    ends = np.cumsum([len(word) for word in words]).tolist()
    return list(zip([0, *ends], ends, strict=False))


def trained(sentences, reader, scheme, constraints=True, epochs=3):
    """A model that was trained on some sentences."""
    windows = tagged_windows(sentences, reader.read_training(sentences), scheme, constraints)
    model = LinearModel.new(scheme, reader.ngrams.buckets, constraints)
    trainer, random = AdaGradTrainer(model), np.random.default_rng(0)
    batches = linear_batches([(inputs["ngrams"], tags) for inputs, tags in windows], 16)
    for _ in range(epochs):
        for i in random.permutation(len(batches)):
            trainer.train_batch(batches[i])
    return LinearModel.from_arrays(model.arrays(), scheme, constraints)


def save_run(path, settings, reader, model):
    with RunWriter.create(path, False) as folder:
        save_setup(folder, stored(settings, "numpy"), reader)
        folder.save_arrays(LINEAR, model.arrays())
        folder.save_scores({})


@pytest.fixture(scope="module")
def words(tmp_path_factory):
    """A run folder, and the network and reader in it."""
    sentences = [Sentence("".join(words), spans_of(words)) for words in load_mini().train]
    ngrams = CharacterNGrams(2**16, CHARACTER_TEMPLATES + LEXICON_TEMPLATES)
    reader = CharacterReader(None, Lexicon.of(sentences), ngrams)
    model = trained(sentences, reader, bmes())
    path = tmp_path_factory.mktemp("runs") / "words"
    save_run(path, Settings(), reader, model)
    return path, LinearTaggingNetwork(model), reader


def test_a_linear_model_learns_to_segment(words):
    test = load_mini().test
    assert WordSegmenter(words[0]).scores([Sentence("".join(row), spans_of(row)) for row in test])["f"] > 0.84


@settings(max_examples=40)
@given(st.lists(TEXTS, min_size=1, max_size=5))
def test_lines_are_the_spans_of_the_tagger(words, texts):
    segmenter = WordSegmenter(words[0])
    expected = [[span.text for span in spans] for spans in segmenter(texts)]
    assert segmenter.segment_batch(texts) == expected
    assert segmenter.segment_lines(texts) == [" ".join(row) for row in expected]
    assert ["".join(row) for row in expected] == ["".join(text.split()) for text in texts]


def test_known_words_and_latin_runs_hold(words):
    segmenter = WordSegmenter(words[0], keep_latin=False)
    assert segmenter.segment("今天天气", spans=[(1, 3)])[:2] == ["今", "天天"]
    kept = WordSegmenter(words[0]).segment_batch(["用Python3写3.14行", "Ａ１" * 80])
    assert "Python3" in kept[0] and "3.14" in kept[0] and kept[1] == ["Ａ１" * 80]
    forced = WordSegmenter(words[0], ["天今"], force_words=True)
    assert "天今" in forced.segment_batch(["今天今天"])[0]


def test_a_window_that_begins_or_ends_inside_a_latin_run_has_the_words_of_the_other_decoder(words):
    """A stretch of more than 128 characters is cut into windows, which overlap."""
    segmenter, chinese = WordSegmenter(words[0]), "今天天气真好我们去公园玩大家都很高兴" * 8
    texts = [f"{chinese[:place]}{run}{chinese}" for place in range(90, 129) for run in ("Python3", "abcdefghij" * 20)]
    assert segmenter.segment_batch(texts) == segmenter.segment_batch(texts, spans=[[] for _ in texts])


def test_words_of_the_user_are_more_probable(words):
    text, word = "他在绾魕上班。", "绾魕"

    def probability(segmenter):
        return sum(p for spans, p in segmenter.k_best(text, 100) if word in [span.text for span in spans])

    assert probability(WordSegmenter(words[0], {word: 5})) > probability(WordSegmenter(words[0]))


def test_probabilities_are_those_of_all_paths(words):
    _, network, reader = words
    text = "今天天气"
    decoder, (window,) = Decoder(network, reader), reader.read([text])[0].windows
    transitions = network.model.constrained_transitions()
    ends = np.where(bmes().allowed_ends, 0.0, -1e9)
    starts = np.where(bmes().allowed_starts, 0.0, -1e9)
    emissions = network.model.emissions(window.inputs["ngrams"])
    known = oracles.sentence(emissions, np.ones(4, bool), transitions, starts, ends)
    _, begins = decoder.spans_and_begins(parts_of([text]))
    np.testing.assert_allclose(begins, [[known["marginals"][:, :2].sum()]], atol=1e-5)  # s and b
    (found,) = WordSegmenter(words[0])([text])
    path, score = known["paths"][0]
    assert [span.text for span in found] == [text[a:b] for a, b in bmes().decode(list(path))]
    best = WordSegmenter(words[0]).k_best(text, 3)
    assert best[0][1] == pytest.approx(np.exp(score - known["log_z"]), rel=1e-4)


@pytest.mark.parametrize("count", few(100, 10_000, rest="slow"))
def test_keras_finds_the_same_words(words, count):
    """Texts of random words of the corpus and of signs, segmented line by line with NumPy, and as batches in Keras."""
    from kcrf.backend import keras, ops
    from kcrf.layers import ConditionalRandomField, NGramScores

    path, network, reader = words
    random = np.random.default_rng(0)
    vocabulary = sorted({word for sentence in load_mini().train for word in sentence} | set("∶。1Ａ绾魕"))
    texts = ["".join(random.choice(vocabulary, random.integers(1, 30))) for _ in range(count)]
    layer = NGramScores(4, reader.ngrams.buckets)
    crf = ConditionalRandomField(constraints=bmes())
    inputs = keras.Input((None, reader.ngrams.width), dtype="int32")
    model = keras.Model(inputs, crf(layer(inputs), mask=ops.not_equal(inputs[:, :, 0], 0)))
    layer.set_weights([network.model.scores / layer.lr_multiplier, *layer.get_weights()[1:]])
    crf.set_weights([network.model.transitions])
    features = reader.ngrams.encode(texts, reader.lexicon)
    padded = np.zeros((count, max(map(len, features)), reader.ngrams.width), "int32")
    for array, of_text in zip(padded, features, strict=True):
        array[: len(of_text)] = of_text
    tags = ops.convert_to_numpy(crf.decode(model.predict(padded, batch_size=256, verbose=0)))
    expected = [[text[a:b] for a, b in bmes().decode(row[: len(text)].tolist())] for text, row in zip(texts, tags)]
    assert WordSegmenter(path, keep_latin=False).segment_batch(texts) == expected


@pytest.fixture(scope="module")
def entities(tmp_path_factory):
    corpus = load_mini("ner")
    scheme = bio(["LOC", "ORG", "PER"])
    reader = CharacterReader(None, None, CharacterNGrams(2**16))
    model = trained(corpus.train, reader, scheme, epochs=8)
    path = tmp_path_factory.mktemp("runs") / "entities"
    save_run(path, Settings(task="ner", types=scheme.types), reader, model)
    return path, model, reader


def test_entities_are_found_with_probabilities(entities):
    recognizer = EntityRecognizer(entities[0])
    assert recognizer.scores(load_mini("ner").test)["f"] > 0.6
    found = [e for s in load_mini("ner").test for e in recognizer.recognize(s.text)]
    assert found and all(0 < entity.probability <= 1 for entity in found)


def test_words_of_english_carry_entities(tmp_path):
    spans = [(0, 3, "PER"), (13, 18, "LOC")]
    sentence = Sentence("Kim lives in Leeds .", spans, [(0, 3), (4, 9), (10, 12), (13, 18), (19, 20)])
    reader = WordReader(None, "", WordNGrams(2**14))
    scheme = bio(["LOC", "PER"])
    save_run(
        tmp_path / "run",
        Settings(task="ner", units="words", types=scheme.types),
        reader,
        trained([sentence] * 4, reader, scheme, epochs=20),
    )
    found = EntityRecognizer(tmp_path / "run").recognize("Kim lives in Leeds.")
    assert [(entity.text, entity.label) for entity in found] == [("Kim", "PER"), ("Leeds", "LOC")]


def test_an_exported_file_does_what_the_run_does(words, entities, tmp_path, capsys):
    export_model(words[0], tmp_path / "words.npz")
    texts = ["".join(row) for row in load_mini().test]
    assert WordSegmenter(tmp_path / "words.npz").segment_batch(texts) == WordSegmenter(words[0]).segment_batch(texts)
    assert main(["export", str(entities[0]), "--out", str(tmp_path / "entities.npz")]) == 0
    text = load_mini("ner").test[0].text
    assert EntityRecognizer(tmp_path / "entities.npz").recognize(text) == EntityRecognizer(entities[0]).recognize(text)
    assert main(["export", str(words[0]), "--out", str(tmp_path / "words.onnx")]) == 2
    assert main(["export", str(words[0]), "--format", "litert", "--out", str(tmp_path / "words.npz")]) == 2


def test_neither_keras_nor_onnxruntime_is_imported(words):
    code = (
        f"import sys; from kcrf.taggers import WordSegmenter as S; print(S({str(words[0])!r}).segment('今天天气'));"
        "assert not {'keras', 'onnxruntime', 'torch', 'tensorflow', 'jax'} & set(sys.modules)"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr


def test_a_damaged_file_is_named(words, tmp_path):
    (tmp_path / "a.npz").write_bytes(b"no file of arrays")
    with pytest.raises(ValueError, match="a.npz: cannot be read"):
        WordSegmenter(tmp_path / "a.npz")
    np.savez(tmp_path / "b.npz", x=np.zeros(3))
    with pytest.raises(ValueError, match="b.npz: needs a model"):
        WordSegmenter(tmp_path / "b.npz")


def test_an_incomplete_copy_of_a_run_is_told(words, tmp_path):
    save_run(tmp_path / "run", Settings(encoder="linear"), words[2], words[1].model)
    (tmp_path / "run" / LINEAR).unlink()
    with pytest.raises(FileNotFoundError, match="model.linear.npz: no such file"):
        WordSegmenter(tmp_path / "run")
    assert main(["export", str(tmp_path / "run"), "--out", str(tmp_path / "run.npz")]) == 2


@pytest.mark.parametrize("name", ["scale", "transitions"])
def test_scores_that_are_not_finite_are_refused(words, tmp_path, name):
    save_run(tmp_path / "run", Settings(encoder="linear"), words[2], words[1].model)
    path = tmp_path / "run" / LINEAR
    with np.load(path) as file:
        arrays = dict(file)
    arrays[name] = np.full_like(arrays[name], np.nan)
    np.savez(path, **arrays)
    with pytest.raises(ValueError, match="model.linear.npz: .*needs (a )?finite"):
        WordSegmenter(tmp_path / "run")


def test_a_vocabulary_without_its_lexicon_is_named(words, tmp_path):
    save_run(tmp_path / "run", Settings(encoder="linear"), words[2], words[1].model)
    path = tmp_path / "run" / "vocabulary.json"
    content = {name: value for name, value in json.loads(path.read_text("utf-8")).items() if name == "ngrams"}
    path.write_text(json.dumps(content), "utf-8")
    with pytest.raises(ValueError, match="vocabulary.json: n-grams with the columns b, e need a lexicon"):
        WordSegmenter(tmp_path / "run")


def test_what_recognizes_entities_can_be_pickled(entities):
    recognizer, text = EntityRecognizer(entities[0]), load_mini("ner").test[0].text
    assert pickle.loads(pickle.dumps(recognizer)).recognize(text) == recognizer.recognize(text)


def test_training_follows_the_gradient():
    """The gradient beside differences of the loss, with unknown tags and two windows."""
    reader = CharacterReader(None, None, CharacterNGrams(2**6, ["c0", "c-1 c0"]))
    model = LinearModel.new(bmes(), 2**6)
    random = np.random.default_rng(0)
    model.scores[1:] = random.normal(size=(63, 4))
    model.transitions[:] = random.normal(size=(4, 4))
    tags = [words_to_tags(["今天", "好"]), [-1, 3, 0, 1, -1]]
    readings = reader.read(["今天好", "天好今天好"])
    windows = [(r.windows[0].inputs["ngrams"], row) for r, row in zip(readings, tags, strict=True)]
    (batch,) = linear_batches(windows, 2)
    _, of_scores, of_steps = loss_and_gradient(model, batch)
    model.scores = model.scores.astype("float64")
    for array, index, value in [
        *(
            (model.scores, (bucket, tag), of_scores[i, tag])
            for i, bucket in enumerate(batch.buckets)
            for tag in range(4)
        ),
        *((model.transitions, (i, j), of_steps[i, j]) for i, j in np.argwhere(bmes().allowed_transitions)),
    ]:
        losses = []
        for step in (1e-4, -1e-4):
            array[index] += step
            losses.append(loss_and_gradient(model, batch)[0])
            array[index] -= step
        assert (losses[0] - losses[1]) / 2e-4 == pytest.approx(value, abs=1e-4)


def test_training_that_is_resumed_is_the_same(words):
    reader = CharacterReader(None, None, CharacterNGrams(2**10))
    rows = load_mini().train[:40]
    texts = ["".join(row) for row in rows]
    windows = [(f, words_to_tags(row)) for f, row in zip(reader.ngrams.encode(texts), rows, strict=True)]
    batches = linear_batches(windows, 8)
    whole, halves = (AdaGradTrainer(LinearModel.new(bmes(), 2**10)) for _ in range(2))
    for batch in batches:
        whole.train_batch(batch)
    for batch in batches[:2]:
        halves.train_batch(batch)
    again = AdaGradTrainer(LinearModel.new(bmes(), 2**10))
    again.load_state({name: array.copy() for name, array in halves.state.items()})
    for batch in batches[2:]:
        again.train_batch(batch)
    for name in whole.state:
        np.testing.assert_array_equal(whole.state[name], again.state[name])


@pytest.mark.parametrize(
    "change",
    [
        {"scores": np.ones((8, 4), "int16")},
        {"scale": np.array(-0.5)},
        {"scale": np.array(0.0)},
        {"scale": np.array(np.nan)},
        {"scale": np.array("1")},
        {"transitions": np.full((4, 4), np.inf)},
        {"transitions": np.zeros((4, 4), "int32")},
    ],
)
def test_numbers_that_no_linear_model_has_are_refused(change):
    """They gave other words, and no error."""
    arrays = {"scores": np.ones((8, 4), "int8"), "scale": np.array(0.5), "transitions": np.zeros((4, 4))}
    assert LinearModel.from_arrays(arrays, bmes()).scores[0, 0] == 0.5
    with pytest.raises(
        ValueError, match="needs (scores as int8|finite transitions|a finite number above 0)|arrays: needs"
    ):
        LinearModel.from_arrays({**arrays, **change}, bmes())
