"""kcrf.taggers: Word vectors in a model: beside their definition, in every network, and saved in the run."""

import random as python_random
import shutil

import numpy as np
import pytest
from configs import model_of
from conftest import few
from numpy.testing import assert_allclose, assert_array_equal

from kcrf import commands
from kcrf.backend import keras, ops
from kcrf.corpora import Sentence
from kcrf.corpora.entities import entity_line
from kcrf.models import build_transformer_model, save_pretrained
from kcrf.networks.embeddings import embed_vectors
from kcrf.networks.tagging import build_network
from kcrf.readers import WordVectors, encoder_reader
from kcrf.runs import Settings
from kcrf.runs.setup import load_setup
from kcrf.taggers import EntityRecognizer, TextClassifier, load_tagger
from kcrf.tags import bio
from kcrf.training import resume_tagger, train_tagger

random = np.random.default_rng(0)
KINDS = {"LOC": 1.0, "PER": -1.0}
LETTERS = "bcdfgaeiou"
NAMES = {
    label: ["".join(python_random.Random(f"{label}{i}").choices(LETTERS, k=6)) for i in range(16)] for label in KINDS
}


@pytest.fixture(scope="module")
def vectors(tmp_path_factory):
    """A file with a vector for each name, of which the first number says the type, and for the other words."""
    path = tmp_path_factory.mktemp("vectors") / "vectors.txt"
    noise = np.random.default_rng(1).normal(scale=0.2, size=(40, 3))
    names = [(label, name) for label in KINDS for name in NAMES[label]]
    rows = [(name, KINDS[label], *row) for (label, name), row in zip(names, noise.tolist())]
    rows += [(word, 0.0, *row) for word, row in zip(["in", "is", "北京", "很大"], noise[-4:].tolist())]
    path.write_text("".join(f"{' '.join(map(str, row))}\n" for row in rows), encoding="utf-8")
    return path


def sentences(count, which, seed):
    """`x is in y`, with names out of a part of the list."""
    rng = python_random.Random(seed)
    found = []
    for _ in range(count):
        (a, x), (b, y) = ((label, rng.choice(NAMES[label][which])) for label in rng.choices(sorted(KINDS), k=2))
        text = f"{x} is in {y}"
        found.append(Sentence(text, [(0, len(x), a), (len(text) - len(y), len(text), b)]))
    return found


def test_a_position_has_the_mean_of_each_group_of_words_and_row_0_stays_zero():
    table = random.normal(size=(6, 3))
    known = WordVectors("abcdef", table)
    inputs = {}
    outputs = embed_vectors(inputs, known, trainable=True)
    model = keras.Model(inputs, outputs)
    rows = random.integers(0, 7, (2, 5, 15)) * (random.random((2, 5, 15)) < 0.5)
    expected = []
    for group in known.groups:
        words = [[[table[i - 1] for i in place if i] for place in text] for text in rows[:, :, group]]
        expected.append([[np.mean(place, axis=0) if place else np.zeros(3) for place in text] for text in words])
    assert_allclose(model.predict({"vectors": rows}, verbose=0), np.concatenate(expected, axis=-1), atol=1e-6)
    model.compile("sgd", "mse")
    model.train_on_batch({"vectors": rows}, np.ones((2, 5, 12)))
    after = ops.convert_to_numpy(model.get_layer("Vectors").embeddings)
    assert_array_equal(after[0], 0)
    used = np.isin(np.arange(7), rows)
    assert_array_equal((after != known.table).any(axis=1)[1:], used[1:])


SHORT = {"batch_size": 16, "epochs": 2, "learning_rate": 0.02, "seed": 1}
SCRATCH = {**SHORT, "width": 16, "depth": 1, "ngrams": False}


@pytest.mark.slow
def test_with_vectors_the_types_of_names_are_found_that_training_lacks(vectors, tmp_path):
    parts = sentences(96, slice(8), 0), sentences(16, slice(8), 1), sentences(32, slice(8, None), 2)
    settings = {"task": "ner", **SCRATCH, "epochs": 6}
    without, with_vectors = (
        train_tagger(Settings(**settings, vectors=path), *parts, out=tmp_path / str(bool(path)))[1]["test"]["f"]
        for path in (None, str(vectors))
    )
    assert without < 0.7 and with_vectors > 0.8, (without, with_vectors)


@pytest.fixture(scope="module")
def bert(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bert")
    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
    vocab = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "is", "in", *LETTERS, *(f"##{c}" for c in LETTERS)]
    model = build_transformer_model(vocab_size=len(vocab), max_position=64, with_pool=True, **sizes)
    save_pretrained(model, folder, vocab=vocab)
    return str(folder)


def examples(part):
    """Labeled texts: the type of the first name."""
    return [(sentence.text, sentence.spans[0][2]) for sentence in part]


CASES = few(
    ("classify", True, "embeddings", True),
    ("ner", False, "embeddings", False),
    ("ner", True, "top", True),
    ("classify", False, "top", False),
    rest="slow",
)


@pytest.mark.once
@pytest.mark.parametrize(("task", "has_bert", "at", "trained"), CASES)
def test_a_run_keeps_its_vectors_and_goes_on_without_the_file(task, has_bert, at, trained, vectors, bert, tmp_path):
    copy = shutil.copy(vectors, tmp_path / "copy.txt")
    model = {**SHORT, "bert": bert} if has_bert else SCRATCH
    settings = Settings(task=task, vectors=copy, vectors_at=at, train_vectors=trained, **model)
    parts = [sentences(32, slice(8), 0), sentences(8, slice(8), 1), sentences(8, slice(8, None), 2)]
    parts = [examples(part) for part in parts] if task == "classify" else parts
    whole, scores = train_tagger(settings, *parts, out=tmp_path / "whole")

    class Stop(keras.callbacks.Callback):
        def on_epoch_begin(self, epoch, logs=None):
            if epoch == 1:
                raise KeyboardInterrupt

        def report(self, row):
            """Does nothing."""

    with pytest.raises(KeyboardInterrupt):
        train_tagger(settings, *parts, out=tmp_path / "run", progress=Stop())
    (tmp_path / "copy.txt").unlink()
    resumed, _ = resume_tagger(tmp_path / "run", *parts)
    loaded = (TextClassifier if task == "classify" else load_tagger)(tmp_path / "run")
    for tagger in (resumed, loaded):
        for one, other in zip(tagger.model.get_weights(), whole.model.get_weights(), strict=True):
            assert_array_equal(one, other)
    kept = load_setup_of(tmp_path / "run").reader.vectors.table
    table = ops.convert_to_numpy(loaded.model.get_layer("Vectors").embeddings)
    assert (table != kept).any() == trained
    assert reads_vectors(loaded.model, whole.reader, task)
    if task == "classify":
        found = TextClassifier(tmp_path / "run").predict([text for text, _ in parts[2]])
        right = np.mean([item.label == label for item, (_, label) in zip(found, parts[2], strict=True)])
        assert right == scores["test"]["accuracy"]
    else:
        found = EntityRecognizer(tmp_path / "run").recognize_batch([sentence.text for sentence in parts[2]])
        assert sum(map(len, found)) == scores["test"]["found_entities"]


def reads_vectors(model, reader, task):
    """Whether the outputs of a model depend on its vectors."""
    text = sentences(1, slice(8), 0)[0].text
    (reading,) = reader.read_texts([(text, None)], 64) if task == "classify" else reader.read([text])
    inputs = {name: np.array([row]) for name, row in reading.windows[0].inputs.items()}
    before = ops.convert_to_numpy(model(inputs))
    after = ops.convert_to_numpy(model({**inputs, "vectors": np.zeros_like(inputs["vectors"])}))
    return bool((before != after).any())


def load_setup_of(run):
    from kcrf.runs import RunFolder

    return load_setup(RunFolder(run))


@pytest.mark.once
def test_at_the_embeddings_of_a_bert_training_starts_from_what_the_bert_does(vectors, bert):
    more = {"task": "ner", "types": ("LOC", "PER"), "bert": bert, "crf_lr_multiplier": 1.0}
    settings = Settings(vectors=str(vectors), vectors_at="embeddings", **more)
    part, scheme = sentences(4, slice(8), 0), bio(("LOC", "PER"))
    reader = encoder_reader(bert).with_vectors(WordVectors(["is", "in"], np.ones((2, 3)), 1))
    with_vectors = build_network(model_of(settings), scheme, reader, bert)
    plain = build_network(model_of(Settings(**more)), scheme, reader, bert)
    for layer in plain.layers:
        with_vectors.get_layer(layer.name).set_weights(layer.get_weights())
    inputs = {name: np.array([row]) for name, row in reader.read([part[0].text])[0].windows[0].inputs.items()}
    plain_inputs = {name: row for name, row in inputs.items() if name != "vectors"}
    before = with_vectors.predict_on_batch(inputs)
    assert_array_equal(before, plain.predict_on_batch(plain_inputs))
    projection = with_vectors.get_layer("Vectors-Projection")
    projection.set_weights([random.normal(size=(3, 16))])
    real = np.isfinite(before)
    assert np.abs(with_vectors.predict_on_batch(inputs)[real] - before[real]).max() > 0.01


def as_line(sentence):
    entities = [{"start": start, "end": end, "label": label} for start, end, label in sentence.spans]
    return f"{entity_line(sentence.text, entities)}\n"


@pytest.mark.slow
def test_the_command_line_takes_vectors_and_names_their_errors(vectors, tmp_path, capsys):
    train = tmp_path / "train.jsonl"
    train.write_text("".join(map(as_line, sentences(24, slice(8), 0))), encoding="utf-8")
    command = ["train", "--task", "ner", "--train", str(train), "--epochs", "1", "--width", "16", "--depth", "1"]
    assert (
        commands.main([*command, "--vectors", str(vectors), "--max-vectors", "2", "--out", str(tmp_path / "run")]) == 0
    )
    kept = load_setup_of(tmp_path / "run").reader.vectors
    assert "is" in kept.words and not {NAMES["PER"][-1], "北京"} & set(
        kept.words
    )  # words of the text, and the first two
    assert f"{len(kept.words)} vectors of 4 features are kept; 100.0% of the units" in capsys.readouterr().err
    (tmp_path / "bad.txt").write_text("is 1 2\nin 1\n", encoding="utf-8")
    for file, message in (("bad.txt", "bad.txt:2: needs a word and 2 numbers"), ("no.txt", "no.txt: no such file")):
        assert commands.main([*command, "--vectors", str(tmp_path / file), "--out", str(tmp_path / "new")]) != 0
        assert message in capsys.readouterr().err
    path = tmp_path / "run" / "vectors.npz"
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(ValueError, match="vectors.npz: cannot be read"):
        load_tagger(tmp_path / "run")
