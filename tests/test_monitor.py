"""CRFMonitor in real fits: its numbers against their definitions, its advice, and where it is shown."""

import csv
import json
import sys
from pathlib import Path

import numpy as np
import oracles
import pytest
from bert4keras_host import bert4keras_python  # noqa: F401
from conftest import TOLERANCE, few
from seeds import set_seeds

from kcrf.backend import backend_name, keras, ops
from kcrf.layers import ConditionalRandomField, suggest_lr_multiplier
from kcrf.metrics import advice
from kcrf.monitor import CRFMonitor
from kcrf.optimizers import Adam
from kcrf.tags import bio, bmes

BACKENDS = ["torch", "tensorflow", "jax"]
SCHEME = bio(["X"])
LENGTHS = [5, 3, 1, 4, 5, 2]
WORDS = 20


@pytest.fixture(scope="module")
def sentences():
    """Numbers of words, 0 behind the end, and their tags, -1 there and at one position that nobody knows."""
    random = np.random.default_rng(3)
    words, tags = random.integers(1, WORDS, (6, 5)), random.integers(0, 3, (6, 5))
    behind = np.arange(5) >= np.array(LENGTHS)[:, None]
    words[behind], tags[behind] = 0, -1
    tags[0, 1] = -1
    return words, tags


def legal(sentences):
    """The sentences with tags that the scheme allows."""
    words, tags = sentences
    return words, np.array([np.where(row < 0, row, SCHEME.repair(np.maximum(row, 0))) for row in tags])


def build(layer, optimizer=None):
    inputs = keras.Input((None,), dtype="int32")
    x = keras.layers.Embedding(WORDS, 8, mask_zero=True)(inputs)
    outputs = layer(keras.layers.Dense(3)(x))
    model = keras.Model(inputs, outputs)
    model.compile(optimizer or keras.optimizers.Adam(1e-2), loss=getattr(layer, "sparse_loss", "mse"))
    return model


def watched(layer, sentences, model=None, epochs=2, callbacks=(), fitted=None, **settings):
    """A monitor that has seen a `fit` of three updates an epoch, and what `fit` returned."""
    set_seeds(5)
    model = model or build(layer)
    monitor = CRFMonitor(layer, sentences, **{"verbose": 0, **settings})
    return monitor, model.fit(*(fitted or sentences), 2, epochs, verbose=0, callbacks=[monitor, *callbacks])


def definitions(emissions, tags, transitions, start=None, end=None):
    """Size, gap, fraction that differs and both accuracies, counted with Viterbi over all paths."""
    gaps, differs, right = [], [], {"argmax": [], "viterbi": []}
    for rows, gold in zip(emissions, tags, strict=True):
        real = np.isfinite(rows).all(axis=1)
        path, _ = oracles.sentence(rows, real, transitions, start, end)["paths"][0]
        for scores, best, tag in zip(rows[real], path, gold[real], strict=True):
            ordered = sorted(scores)
            gaps.append(ordered[-1] - ordered[-2])
            differs.append(int(np.argmax(scores)) != best)
            if tag >= 0:
                right["argmax"].append(np.argmax(scores) == tag)
                right["viterbi"].append(best == tag)
    labeled = [gold[np.isfinite(rows).all(axis=1)] for rows, gold in zip(emissions, tags, strict=True)]
    counts = [tag for row in labeled for tag in row.tolist() if tag >= 0]
    possible = transitions[transitions > -1e8]
    return {
        "transition_size": np.sqrt(np.mean((possible - possible.mean()) ** 2)),
        "emission_gap": np.median(gaps),
        "viterbi_differs": np.mean(differs),
        "argmax_accuracy": np.mean(right["argmax"]),
        "viterbi_accuracy": np.mean(right["viterbi"]),
        "one_tag_accuracy": max(counts.count(tag) for tag in counts) / len(counts),
    }


@pytest.mark.once
@pytest.mark.parametrize("constraints", few(None, SCHEME))
def test_the_numbers_are_their_definitions(sentences, constraints):
    layer = ConditionalRandomField(lr_multiplier=30, constraints=constraints)
    model = build(layer)
    fitted = sentences if constraints is None else legal(sentences)
    monitor, _ = watched(layer, sentences, model, scheme=SCHEME, fitted=fitted)
    forbidden = {} if constraints is None else {"start": np.where(SCHEME.allowed_starts, 0.0, -1e9)}
    emissions = ops.convert_to_numpy(model(sentences[0])).astype("float64")
    expected = definitions(emissions, sentences[1], monitor.transitions[-1].astype("float64"), **forbidden)
    row = monitor.history[-1]
    assert 0 < expected["viterbi_differs"] < 1, "the example should tell something"
    for name, value in expected.items():
        np.testing.assert_allclose(row[name], value, **TOLERANCE["float32"], err_msg=name)
    np.testing.assert_array_equal(monitor.transitions[-1], ops.convert_to_numpy(layer.trans))
    assert row["illegal"] == (1 if constraints is None else 0) and row["illegal_above_legal"] in (0, row["illegal"])
    assert len(monitor.history) == len(monitor.transitions) == 2


@pytest.mark.once
def test_the_change_counts_from_before_the_first_update(sentences):
    layer = ConditionalRandomField()
    model = build(layer)
    before = np.array(ops.convert_to_numpy(layer.trans), "float64")
    monitor, _ = watched(layer, sentences, model)
    for row, transitions in zip(monitor.history, monitor.transitions, strict=True):
        np.testing.assert_allclose(row["transition_change"], np.std(transitions - before), **TOLERANCE["float32"])
    model.fit(*sentences, 2, 1, verbose=0, callbacks=[monitor])  # a script may call `fit` again and again
    assert [row["epoch"] for row in monitor.history] == [1, 2, 3]
    np.testing.assert_allclose(
        monitor.history[2]["transition_change"], np.std(monitor.transitions[2] - before), **TOLERANCE["float32"]
    )


@pytest.mark.once
def test_rates_are_those_in_force_and_the_highest_one_decides(sentences):
    schedule = keras.optimizers.schedules.PolynomialDecay(4e-4, decay_steps=6, end_learning_rate=1e-4)
    layer = ConditionalRandomField(lr_multiplier=7, name="CRF")
    monitor, _ = watched(layer, sentences, build(layer, Adam(schedule, lr_multipliers={"CRF": 3})))
    assert [row["suggested_lr_multiplier"] for row in monitor.history] == [suggest_lr_multiplier(4e-4, 6)] * 2
    assert [row["lr_multiplier"] for row in monitor.history] == [21.0] * 2
    np.testing.assert_allclose([row["learning_rate"] for row in monitor.history], [2.5e-4, 1e-4], rtol=1e-5)
    layer = ConditionalRandomField(lr_multiplier=2)
    model = build(layer)
    layer.set_lr_multiplier(12)
    monitor, _ = watched(layer, sentences, model)
    assert monitor.history[0]["lr_multiplier"] == 12.0


@pytest.mark.once
def test_an_epoch_without_a_learning_rate_is_no_fault(sentences):
    layer = ConditionalRandomField(lr_multiplier=7)
    model, monitor = build(layer), CRFMonitor(layer, sentences, verbose=0)
    slow = keras.callbacks.LearningRateScheduler(lambda epoch: 1e-3 * epoch)
    model.fit(*sentences, epochs=2, verbose=0, callbacks=[slow, monitor])
    first, second = monitor.history
    assert first["advice"] == "transitions cannot be judged while the learning rate is 0"
    assert first["suggested_lr_multiplier"] == first["lr_multiplier"] == 7.0
    assert second["highest_learning_rate"] == pytest.approx(1e-3) and "judged" not in second["advice"]


ROW = {"transition_size": 1.0, "emission_gap": 2.0, "lr_multiplier": 1.0, "suggested_lr_multiplier": 50.0}
WORSE = {"viterbi_accuracy": 0.352, "argmax_accuracy": 0.456}
LEGAL, ILLEGAL = ({"illegal_above_legal": count, "illegal": 8} for count in (0, 4))


@pytest.mark.once
@pytest.mark.parametrize(
    "changes, sentence",
    [
        ({}, "transitions look learned: nothing to do"),
        (LEGAL, "transitions look learned: nothing to do"),
        (
            {"transition_size": 0.5, "emission_gap": 15.0, "suggested_lr_multiplier": 1000.0},
            "transitions are 30 times smaller than the emission gap: raise lr_multiplier from 1 to about 1000",
        ),
        (ILLEGAL, "4 of 8 illegal transitions score above a legal one: raise lr_multiplier from 1 to about 50"),
        (
            {**ILLEGAL, "emission_gap": 5.0},
            "transitions are 5 times smaller than the emission gap and 4 of 8 illegal ones score above a legal one: "
            "raise lr_multiplier from 1 to about 50",
        ),
        (
            {**ILLEGAL, "lr_multiplier": 40.0},
            "4 of 8 illegal transitions score above a legal one, at a fair lr_multiplier: train for longer, or forbid "
            "illegal transitions (`constraints`)",
        ),
        (
            {"illegal_above_legal": 29, "illegal": 300},
            "transitions look learned: nothing to do",
        ),
        (
            {"transition_change": 0.01},
            "transitions moved by only 0.01 since training began: raise lr_multiplier from 1 to about 50",
        ),
        ({"transition_change": 0.01, **LEGAL}, "transitions look learned: nothing to do"),
        ({"transition_change": 0.01, "transition_size": 2.5}, "transitions look learned: nothing to do"),
        (
            {"transition_size": 4.6, "lr_multiplier": 1000.0},
            "transitions dwarf the emissions (4.6 against a gap of 2): the CRF learns too fast, lower lr_multiplier "
            "from 1000 to about 50",
        ),
        (
            {"illegal_above_legal": 0, "illegal": 0, "emission_gap": 5.0, "lr_multiplier": 40.0},
            "transitions are 5 times smaller than the emission gap, at a fair lr_multiplier: train for longer "
            "if the scores still improve",
        ),
        ({"illegal_above_legal": 0, "illegal": 0}, "transitions look learned: nothing to do"),
        (
            {**LEGAL, **WORSE, "lr_multiplier": 100.0, "suggested_lr_multiplier": 10.0, "highest_learning_rate": 1e-3},
            "best paths are correct at 35.2% of tokens, largest emissions at 45.6%: the CRF learns too fast at "
            "0.1 (learning rate 0.001 x lr_multiplier 100), lower lr_multiplier from 100 to about 10",
        ),
        (
            WORSE,
            "best paths are correct at 35.2% of tokens, largest emissions at 45.6%: raise lr_multiplier from 1 to "
            "about 50",
        ),
        (
            {**WORSE, "lr_multiplier": 40.0},
            "best paths are correct at 35.2% of tokens, largest emissions at 45.6%, at a fair lr_multiplier: train for "
            "longer if the scores still improve",
        ),
        (
            {"best_score": 0.0, "improves": False},
            "transitions cannot be judged while the validation score is 0: train for longer",
        ),
        ({"viterbi_accuracy": 0.454, "argmax_accuracy": 0.456}, "transitions look learned: nothing to do"),
        (
            {"viterbi_accuracy": 0.832, "argmax_accuracy": 0.832, "one_tag_accuracy": 0.832},
            "best paths are correct at 83.2% of tokens, the most frequent tag at 83.2%: the model has learned "
            "nothing yet, train for longer or raise the learning rate",
        ),
        (
            {"viterbi_accuracy": 0.9, "argmax_accuracy": 0.9, "one_tag_accuracy": 0.832},
            "transitions look learned: nothing to do",
        ),
        (
            {"viterbi_accuracy": 1.0, "argmax_accuracy": 1.0, "one_tag_accuracy": 1.0},
            "transitions look learned: nothing to do",
        ),
        (
            {"transition_change": 0.0},
            "transitions have not moved since training began: train with a loss of the CRF layer (`sparse_loss`), "
            "and set `trainable=True`",
        ),
        ({"transition_size": 4.6, "lr_multiplier": 60.0}, "transitions look learned: nothing to do"),
        ({"transition_size": 3.9, "lr_multiplier": 1000.0}, "transitions look learned: nothing to do"),
        (
            {"transition_size": 0.0},
            "transitions are infinitely smaller than the emission gap: raise lr_multiplier from 1 to about 50",
        ),
    ],
)
def test_every_rule_has_its_sentence(changes, sentence):
    assert advice({**ROW, **changes}) == sentence


@pytest.mark.once
def test_in_training_a_slow_crf_is_told_to_be_faster_and_a_fast_one_left_alone(capsys):
    random = np.random.default_rng(0)
    lengths = random.integers(1, 4, (160, 6))
    chains = [[tag for n in row for tag in bmes().encode([(0, n)], n)] for row in lengths]
    tags = np.array([(chain + [-1] * 12)[:12] for chain in chains])
    words = np.where(random.random(tags.shape) < 0.6, tags + 2, random.integers(2, 6, tags.shape))  # hints, not facts
    words[tags < 0] = 0
    told = {}
    for multiplier in (1, 30):
        set_seeds(1)
        inputs = keras.Input((12,), dtype="int32")
        x = keras.layers.Embedding(6, 8, mask_zero=True)(inputs)
        layer = ConditionalRandomField(lr_multiplier=multiplier, transition_initializer="zeros")
        model = keras.Model(inputs, layer(keras.layers.Dense(4)(x)))
        model.compile(keras.optimizers.Adam(2e-3), loss=layer.sparse_loss)
        monitor = CRFMonitor(layer, words, bmes())
        model.fit(words, tags, 8, 5, verbose=0, callbacks=[monitor])
        told[multiplier] = monitor.history[-1]["advice"]
    assert "times smaller than the emission gap" in told[1]
    assert told[1].endswith("raise lr_multiplier from 1 to about 12")
    assert told[30] == "transitions look learned: nothing to do"
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 10 and lines[4].startswith("epoch 5: transitions 0.") and lines[4].endswith(told[1])


@pytest.mark.once
@pytest.mark.parametrize("multiplier", few(100, 10, rest="slow"))
def test_in_training_a_crf_worse_than_its_argmax_is_told_the_rate(multiplier):
    random = np.random.default_rng(0)
    tags = random.integers(0, 5, (200, 20))  # each tag for itself, so there is nothing to learn from transitions
    words = np.where(random.random(tags.shape) < 0.5, tags + 1, random.integers(1, 6, tags.shape))
    set_seeds()
    layer = ConditionalRandomField(lr_multiplier=multiplier, transition_initializer="zeros")
    inputs = keras.Input((20,), dtype="int32")
    model = keras.Model(inputs, layer(keras.layers.Dense(5)(keras.layers.Embedding(6, 8)(inputs))))
    model.compile(keras.optimizers.Adam(1e-3), loss=layer.sparse_loss)
    monitor = CRFMonitor(layer, (words[:50], tags[:50]), verbose=0)
    model.fit(words[50:], tags[50:], 4, 2, verbose=0, callbacks=[monitor])
    row = monitor.history[-1]
    if multiplier == 100:
        assert row["viterbi_accuracy"] < row["argmax_accuracy"] - 0.05
        assert "the CRF learns too fast at 0.1 (learning rate 0.001 x lr_mult" in row["advice"]
        assert row["advice"].endswith("lower lr_multiplier from 100 to about 33")
    else:
        assert "too fast" not in row["advice"]


@pytest.mark.once
def test_under_constraints_no_illegal_transition_is_counted(sentences, capsys):
    layer = ConditionalRandomField(constraints=SCHEME)
    monitor, _ = watched(layer, sentences, fitted=legal(sentences), verbose=1)
    assert [(row["illegal_above_legal"], row["illegal"]) for row in monitor.history] == [(0, 0)] * 2
    line = capsys.readouterr().out.splitlines()[-1]
    assert "illegal ones forbidden, accuracy " in line and "(`constraints`)" not in line


class Batches(keras.utils.PyDataset):
    """One batch, as `fit` takes it."""

    def __len__(self):
        return 1

    def __getitem__(self, index):
        return np.ones((2, 3), "int32"), np.zeros((2, 3), "int32")


def tensorflow_data(sentences):
    if backend_name() != "tensorflow":
        return []
    import tensorflow as tf

    dataset, ragged = tf.data.Dataset.from_tensor_slices(sentences), tf.ragged.constant([[1, 2], [3]])
    return [(dataset.batch(2), "_BatchDataset"), (ragged, "RaggedTensor"), ((sentences[0], ragged), "RaggedTensor")]


def test_data_must_be_arrays(sentences):
    words, tags = sentences
    layer, ragged = ConditionalRandomField(), [[1, 2], [3]]
    for data, received in (
        (Batches(), "Batches"),
        (((x, y) for x, y in [sentences]), "generator"),
        (ragged, "int"),
        (words.tolist(), "int"),
        (list(words[0]), "int(32|64)"),
        ((ragged, tags), "int"),
        ((words, ragged), "list"),
        ((words, Batches()), "Batches"),
        ([words, "tags"], "str"),
        *tensorflow_data(sentences),
    ):
        with pytest.raises(ValueError, match=rf"must be arrays, or a tuple \(inputs, tags\) .* Received: {received}$"):
            CRFMonitor(layer, data)


def test_inputs_must_be_as_many_as_those_of_the_model(sentences):
    words, tags = sentences
    layer = ConditionalRandomField()
    one, lists = build(layer), CRFMonitor(layer, [words, tags], verbose=0)
    message = r"as many arrays as the model has inputs, 1; .* a tuple \(inputs, tags\). Received: 2 arrays"
    with pytest.raises(ValueError, match=message):
        one.fit(words, tags, verbose=0, callbacks=[lists])

    layer = ConditionalRandomField()
    names = [keras.Input((None,), dtype="int32", name=name) for name in ("a", "b")]
    embed = keras.layers.Embedding(WORDS, 8, mask_zero=True)
    scores = keras.layers.Dense(3)(keras.layers.Add()([embed(name) for name in names]))
    two = keras.Model(names, layer(scores))
    two.compile("adam", loss=layer.sparse_loss)
    for inputs in ([words, words], (words, words), {"a": words, "b": words}):
        assert len(watched(layer, (inputs, tags), two, fitted=([words, words], tags))[0].history) == 2
    with pytest.raises(ValueError, match="as many arrays as the model has inputs, 2; .* Received: 1 arrays"):
        watched(layer, sentences, two, fitted=([words, words], tags))


def test_data_and_layers_that_do_not_fit_are_refused_before_an_epoch(sentences):
    words, tags = sentences
    layer = ConditionalRandomField()
    with pytest.raises(ValueError, match=r"a tuple \(inputs, tags\). Received: a tuple of 3"):
        CRFMonitor(layer, (words, tags, tags))
    with pytest.raises(ValueError, match="`data` needs at least one sentence. Received: none"):
        CRFMonitor(layer, (words[:0], tags[:0]))
    model, others = build(layer), ConditionalRandomField(name="Other")
    build(others)
    for monitor, message in (
        (CRFMonitor(others, sentences), "a layer of the model that is trained. Received: `Other`"),
        (CRFMonitor(layer, sentences, bio(["X", "Y"])), "`scheme` must have the 3 tags of the layer. Received: "),
        (CRFMonitor(layer, (words, tags + 3)), "`data` needs tags below 3, the number of tags. Received: 5"),
    ):
        with pytest.raises(ValueError, match=message):
            model.fit(words, tags, verbose=0, callbacks=[monitor])
        assert monitor.history == []


@pytest.mark.once
@pytest.mark.parametrize("what", ["padding", "softmax"])
def test_what_only_the_data_shows_is_said_once(what, sentences):
    layer = ConditionalRandomField(name="CRF")
    model = Unmasked(layer, softmax=what == "softmax")
    model.compile("sgd", loss=layer.sparse_loss)
    words, tags = legal(sentences)
    told = {"padding": "`CRF` has no mask", "softmax": "`CRF` needs scores of any size.* Received: probabilities"}[what]
    held_out = (words, tags) if what == "padding" else (np.maximum(words, 1), np.maximum(tags, 0))
    monitor = CRFMonitor(layer, held_out, verbose=0)
    with pytest.warns(UserWarning, match=told) as caught:
        model.fit(np.maximum(words, 1), np.maximum(tags, 0), 2, 2, verbose=0, callbacks=[monitor])
    assert sum(warning.category is UserWarning for warning in caught) == 1


class Unmasked(keras.Model):
    """A model without a Keras graph and without a mask."""

    def __init__(self, layer, softmax):
        super().__init__()
        self.embedding, self.crf = keras.layers.Embedding(WORDS, 4), layer
        self.dense = keras.layers.Dense(3, activation="softmax" if softmax else None)

    def call(self, inputs):
        return self.crf(self.dense(self.embedding(inputs)))


@pytest.mark.once
def test_what_stands_behind_sees_the_numbers(sentences, tmp_path):
    logger = keras.callbacks.CSVLogger(str(tmp_path / "keras.csv"))
    layer = ConditionalRandomField()
    path = tmp_path / "logs" / "mine.csv"
    monitor, history = watched(layer, sentences, callbacks=[logger], scheme=SCHEME, csv=path)
    names = set(monitor.history[0]) - {"epoch", "illegal", "advice"}
    with open(tmp_path / "keras.csv", newline="") as file:
        seen = list(csv.DictReader(file))
    with open(path, newline="", encoding="utf-8") as file:
        mine = list(csv.DictReader(file))
    assert len(seen) == len(mine) == 2
    for number, row in enumerate(monitor.history):
        assert mine[number] == {name: str(value) for name, value in row.items()}
        assert {name: float(seen[number][name]) for name in names} == {name: row[name] for name in names}
        assert {name: history.history[name][number] for name in names} == {name: row[name] for name in names}
    assert "loss" in seen[0]


@pytest.mark.slow
@pytest.mark.once
def test_the_transitions_are_drawn_after_every_epoch(sentences, tmp_path):
    pytest.importorskip("matplotlib", reason="needs matplotlib, which is not installed")
    watched(ConditionalRandomField(), sentences, heat_maps=tmp_path / "maps")
    layer = ConditionalRandomField(constraints=SCHEME)
    watched(layer, sentences, epochs=3, fitted=legal(sentences), heat_maps=tmp_path / "maps")
    assert sorted(path.name for path in (tmp_path / "maps").iterdir()) == [f"epoch-00{i}.png" for i in (1, 2, 3)]
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in (tmp_path / "maps").iterdir())


@pytest.mark.once
def test_tensorboard_finds_scalars_and_pictures(sentences, tmp_path):
    tf = pytest.importorskip("tensorflow", reason="needs TensorFlow, which is not installed")
    pytest.importorskip("matplotlib", reason="needs matplotlib, which is not installed")
    monitor, _ = watched(ConditionalRandomField(), sentences, scheme=SCHEME, log_dir=tmp_path)
    found, pictures = {}, {}
    for path in tmp_path.iterdir():
        for record in tf.data.TFRecordDataset(str(path)):
            event = tf.compat.v1.Event.FromString(record.numpy())
            for value in event.summary.value:
                kind, content = value.metadata.plugin_data.plugin_name, tf.make_ndarray(value.tensor)
                {"scalars": found, "images": pictures}[kind][value.tag, event.step] = content
    for row in monitor.history:
        numbers = {name: value for name, value in row.items() if name not in ("epoch", "advice")}
        for name, value in numbers.items():
            np.testing.assert_allclose(found[f"crf/{name}", row["epoch"]], value, rtol=1e-6)
        width, height, png = pictures["crf/transitions", row["epoch"]]
        shape = tf.io.decode_png(png).shape
        assert (int(height), int(width)) == (shape[0], shape[1])
    assert len(found) == 2 * len(numbers)


@pytest.mark.slow
@pytest.mark.skipif(backend_name() != "tensorflow", reason="Keras' TensorBoard callback needs its TensorFlow backend")
@pytest.mark.filterwarnings("ignore")  # tensorboard's own, on import
def test_keras_own_tensorboard_callback_sees_them_too(sentences, tmp_path):
    pytest.importorskip("tensorboard", reason="needs tensorboard, which is not installed")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    board = keras.callbacks.TensorBoard(tmp_path / "keras", write_graph=False)
    monitor, _ = watched(ConditionalRandomField(), sentences, callbacks=[board], log_dir=tmp_path / "mine")
    for folder, tag in (("keras/train", "epoch_emission_gap"), ("mine", "crf/emission_gap")):
        events = EventAccumulator(str(tmp_path / folder))
        events.Reload()
        values = [value for event in events.Tensors(tag) for value in event.tensor_proto.float_val]
        values = values or [np.frombuffer(e.tensor_proto.tensor_content, "float32")[0] for e in events.Tensors(tag)]
        np.testing.assert_allclose(values, [row["emission_gap"] for row in monitor.history], rtol=1e-6)


class Plain(keras.layers.Layer):
    """A minimal CRF layer: transitions as weights, a number of tags, and emissions that it returns unchanged."""

    lr_multiplier = 1

    def __init__(self):
        super().__init__()
        self.supports_masking = True

    def build(self, input_shape):
        self.trans = self.add_weight(name="trans", shape=(3, 3))

    def call(self, inputs):
        return inputs + 0.0 * ops.sum(self.trans)


@pytest.mark.once
def test_any_layer_with_transitions_will_do(sentences):
    layer = Plain()
    model = build(layer)
    monitor = CRFMonitor(layer, sentences[0], verbose=0)
    model.fit(sentences[0], np.zeros((6, 5, 3)), epochs=1, verbose=0, callbacks=[monitor])
    emissions, transitions = (ops.convert_to_numpy(x).astype("float64") for x in (model(sentences[0]), layer.trans))
    expected = definitions(emissions, sentences[1], transitions)
    for name in ("transition_size", "emission_gap", "viterbi_differs"):
        np.testing.assert_allclose(monitor.history[0][name], expected[name], **TOLERANCE["float32"])
    assert "argmax_accuracy" not in monitor.history[0] and "illegal" not in monitor.history[0]


class Subclassed(keras.Model):
    """A model without a Keras graph, which builds its layers in the first step."""

    def __init__(self, layer):
        super().__init__()
        self.embedding, self.dense, self.crf = keras.layers.Embedding(WORDS, 4), keras.layers.Dense(3), layer

    def call(self, inputs):
        return self.crf(self.dense(self.embedding(inputs)), mask=ops.not_equal(inputs, 0))


@pytest.mark.once
def test_a_subclassed_model_and_one_around_another_are_watched(sentences):
    layer = ConditionalRandomField()
    model = Subclassed(layer)
    model.compile("adam", loss=layer.sparse_loss)
    monitor, _ = watched(layer, sentences, model)
    emissions = ops.convert_to_numpy(model(sentences[0])).astype("float64")
    transitions = monitor.transitions[-1].astype("float64")
    expected = definitions(emissions, sentences[1], transitions)["emission_gap"]
    np.testing.assert_allclose(monitor.history[-1]["emission_gap"], expected, **TOLERANCE["float32"])

    layer = ConditionalRandomField()
    inputs = keras.Input((None,), dtype="int32")
    outer = keras.Model(inputs, build(layer)(inputs))
    outer.compile("adam", loss=layer.sparse_loss)
    assert len(watched(layer, sentences, outer)[0].history) == 2


@pytest.mark.once
def test_what_cannot_be_watched_is_refused(sentences, monkeypatch):
    dense = r"<(tf_keras\.src\.layers\.core\.dense\.)?Dense"
    with pytest.raises(ValueError, match="`layer` needs `trans` and `lr_multiplier`, .* Received: " + dense):
        CRFMonitor(keras.layers.Dense(3), sentences[0])
    layer = ConditionalRandomField()
    with pytest.raises(ValueError, match="`data` needs a token that is not masked. Received: 6 sentences"):
        watched(layer, (np.zeros_like(sentences[0]), sentences[1]), build(layer))
    with pytest.raises(ValueError, match=r"needs tags of shape \(sentences, time\). Received: shape=\(6,\)"):
        CRFMonitor(layer, (sentences[0], sentences[1][:, 0]))
    with pytest.raises(ValueError, match=r"a tag, or -1, for each of \(6, 5\) .* Received: shape=\(6, 4\)"):
        watched(layer, (sentences[0], sentences[1][:, :4]), build(layer), fitted=sentences)
    other, layer = ConditionalRandomField(), ConditionalRandomField()
    layer(np.zeros((1, 2, 4), "float32"))
    with pytest.raises(ValueError, match=r"gives the emissions of `.*`, \(batch, time, 4\). Received: .* \(6, 5, 3\)"):
        model = build(other)
        model.unused, layer.trainable = layer, False
        watched(layer, sentences, model)
    monkeypatch.setitem(sys.modules, "tensorflow", None)
    with pytest.raises(
        ImportError, match="`log_dir` needs the package tensorflow, .*pip install 'kcrf\\[tensorflow\\]'"
    ):
        CRFMonitor(layer, sentences[0], log_dir="never")
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match="Drawing needs the package matplotlib"):
        CRFMonitor(layer, sentences[0], heat_maps="never")


@pytest.mark.once
@pytest.mark.parametrize("constraints", [None, SCHEME])
def test_training_that_diverged_is_told_and_not_stopped(sentences, constraints, tmp_path):
    layer = ConditionalRandomField(constraints=constraints)
    model = build(layer)
    model.layers[1].set_weights([np.full((WORDS, 8), np.nan, "float32")])
    monitor, history = watched(layer, sentences, model, csv=tmp_path / "rows.csv", heat_maps=tmp_path / "maps")
    assert np.isnan(history.history["loss"][-1]) and len(monitor.history) == 2
    assert monitor.history[-1]["advice"].startswith("training diverged")


@pytest.mark.once
def test_tags_that_nobody_knows_give_no_accuracies(sentences):
    layer = ConditionalRandomField()
    monitor, _ = watched(layer, (sentences[0], np.full_like(sentences[1], -1)), fitted=sentences)
    assert "viterbi_accuracy" not in monitor.history[0] and monitor.history[0]["emission_gap"] > 0


@pytest.mark.once
def test_only_the_first_sentences_are_looked_at(sentences):
    words, tags = (np.concatenate([part] * 60) for part in sentences)
    layer = ConditionalRandomField()
    model = build(layer)
    short = CRFMonitor(layer, {"input": words}, verbose=0)
    assert short._inputs["input"].shape == (256, 5)
    monitor = CRFMonitor(layer, (words, tags), verbose=0)
    model.fit(words[:4], tags[:4], verbose=0, callbacks=[monitor])
    emissions = ops.convert_to_numpy(model(words[:256]))
    real = np.isfinite(emissions).all(axis=-1)
    best = np.sort(emissions[real], axis=-1)
    np.testing.assert_allclose(
        monitor.history[0]["emission_gap"], np.median(best[:, -1] - best[:, -2]), **TOLERANCE["float32"]
    )


BERT4KERAS = """
import sys; sys.path.insert(0, inputs["root"])
from bert4keras.backend import keras
from bert4keras.layers import ConditionalRandomField
from kcrf.monitor import CRFMonitor
from kcrf.tags import bio

words, tags = inputs["words"], inputs["tags"]
keras.utils.set_random_seed(5)
x = keras.Input((5,), dtype="int32")
layer = ConditionalRandomField(lr_multiplier=100)
model = keras.Model(x, layer(keras.layers.Dense(3)(keras.layers.Embedding(20, 8, mask_zero=True)(x))))
model.compile(keras.optimizers.Adam(1e-3), loss=layer.sparse_loss)
monitor = CRFMonitor(layer, (words, inputs["known"]), bio(["X"]), csv=inputs["csv"])
logger = keras.callbacks.CSVLogger(inputs["csv"] + ".keras")
history = model.fit(words, tags, batch_size=2, epochs=2, verbose=0, callbacks=[monitor, logger])
outputs["emissions"], outputs["transitions"] = model.predict(words, verbose=0), monitor.transitions[-1]
outputs["history"], outputs["logs"] = monitor.history, {k: [float(v) for v in l] for k, l in history.history.items()}
"""


@pytest.mark.once
@pytest.mark.skipif(backend_name() != "tensorflow", reason="bert4keras has a host of its own: once is enough")
def test_bert4keras_own_layer_is_watched_on_its_own_host(bert4keras_python, sentences, tmp_path):  # noqa: F811
    words, known = sentences
    given = {"words": words, "known": known, "tags": np.maximum(known, 0), "csv": str(tmp_path / "log.csv")}
    out = bert4keras_python(BERT4KERAS, root=str(Path(__file__).parents[1]), **given)
    expected = definitions(out["emissions"].astype("float64"), known, out["transitions"].astype("float64"))
    row = out["history"][-1]
    for name, value in expected.items():
        np.testing.assert_allclose(row[name], value, **TOLERANCE["float32"], err_msg=name)
        np.testing.assert_allclose(out["logs"][name][-1], row[name], rtol=1e-6)
    assert row["lr_multiplier"] == 100.0 and row["suggested_lr_multiplier"] == suggest_lr_multiplier(1e-3, 6)
    assert "emission_gap" in (tmp_path / "log.csv.keras").read_text().splitlines()[0]
    assert json.dumps(out["history"])
