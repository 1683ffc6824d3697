"""kcrf.distillation: Losses of a student against the same written out in NumPy, over all paths where there is a CRF."""

import numpy as np
import oracles
import pytest
from conftest import TOLERANCE
from gradients import value_and_gradients
from numpy.testing import assert_allclose

from kcrf import crf
from kcrf.backend import keras, ops
from kcrf.distillation import (
    LabelDistillationLoss,
    NumberDistillationLoss,
    SequenceDistillationLoss,
    SoftTags,
    TagDistillationLoss,
)
from kcrf.layers import ConditionalRandomField
from kcrf.readers.padding import training_batch
from kcrf.tags import bio
from kcrf.training.stages.soft_targets import soften

random = np.random.default_rng(0)
LENGTHS, SIZE, LONGEST = (5, 3, 1), 3, 8
MASK = np.arange(LONGEST) < np.array(LENGTHS)[:, None]
GOLD = [random.integers(0, SIZE, n).tolist() for n in LENGTHS]
GOLD[0][1] = -1  # of which the tag is not known
RELAXED = {**TOLERANCE["float32"], "atol": 1e-4}


def log_softmax(x):
    return x - np.log(np.exp(x - x.max(-1, keepdims=True)).sum(-1, keepdims=True)) - x.max(-1, keepdims=True)


@pytest.fixture
def layer():
    layer = ConditionalRandomField(use_boundary=True, transition_initializer="glorot_uniform")
    layer.build((None, None, SIZE))
    for weight in (layer._start, layer._end):
        weight.assign(random.normal(size=SIZE))
    return layer


def masked(scores):
    return np.where(MASK[:, :, None], scores, -np.inf).astype("float32")


def target(tags, expected_tags, expected_steps):
    """The batch that a trainer makes of windows with these targets."""
    rows = [SoftTags(t, e[:n], s) for t, e, s, n in zip(tags, expected_tags, expected_steps, LENGTHS, strict=True)]
    inputs = [{"characters": [2] * n} for n in LENGTHS]
    return training_batch(list(zip(inputs, rows, strict=True)))[1]


@pytest.mark.once
@pytest.mark.parametrize(("weight", "temperature"), [(0.3, 1.0), (0.6, 2.5), (1.0, 2.0)])
def test_a_crf_learns_from_all_sequences_of_its_teacher_and_from_the_tags(layer, weight, temperature):
    teacher, student = (random.normal(size=(3, LONGEST, SIZE)) * 2 for _ in range(2))
    counts = [ops.convert_to_numpy(x) for x in layer.expected_counts(masked(teacher), temperature=temperature)]
    loss = SequenceDistillationLoss(layer, weight, temperature)
    found = ops.convert_to_numpy(loss(target(GOLD, *counts), masked(student)))
    wide = [ops.convert_to_numpy(x).astype("float64") for x in (layer.trans, layer.start, layer.end)]
    soft_scores = [x / temperature for x in wide]
    for b, tags in enumerate(GOLD):
        p = oracles.sentence(teacher[b] / temperature, MASK[b], *soft_scores)
        q = oracles.sentence(student[b] / temperature, MASK[b], *soft_scores)
        scores = dict(q["paths"])
        soft = -sum(np.exp(value - p["log_z"]) * (scores[path] - q["log_z"]) for path, value in p["paths"])
        hard = -oracles.log_likelihood(student[b], tags + [0] * (LONGEST - len(tags)), MASK[b], *wide)
        expected = weight * temperature**2 * soft + ((1 - weight) * hard if weight < 1 else 0.0)
        assert_allclose(found[b], expected, **RELAXED)


@pytest.mark.once
@pytest.mark.parametrize("temperature", [1.0, 3.0])
def test_a_student_that_equals_its_teacher_has_no_gradient(layer, temperature):
    drawn = random.normal(size=(3, LONGEST, SIZE)) * 2
    scores = masked(drawn)
    counts = [ops.convert_to_numpy(x) for x in layer.expected_counts(scores, temperature=temperature)]
    unknown = [[-1] * n for n in LENGTHS]
    loss = SequenceDistillationLoss(layer, 0.9, temperature)
    targets = target(unknown, *counts)
    _, (gradient,) = value_and_gradients(lambda x: ops.sum(loss(targets, x)), scores)
    assert_allclose(gradient[MASK], 0.0, atol=1e-5)
    other = target(unknown, *[ops.convert_to_numpy(x) for x in layer.expected_counts(masked(-drawn))])
    _, (gradient,) = value_and_gradients(lambda x: ops.sum(loss(other, x)), scores)
    assert np.abs(gradient[MASK]).max() > 0.1


@pytest.mark.parametrize(
    "weights", [[1.0, 0.0], [0.0, 1.0], [[0.5], [2.0]], [[1.0, 0.0], [0.0, 3.0]], [[[1.0], [2.0]]] * 2]
)
def test_weights_of_sentences_and_of_tags_multiply_their_losses(weights):
    scores = random.normal(size=(2, 2, 3)).astype("float32")
    teacher = np.array([[[0.7, 0.2, 0.1], [0.1, 0.8, 0.1]], [[0.2, 0.2, 0.6], [0, 0, 0]]])  # three tags
    y_true = np.stack([SoftTags([-1] * n, teacher[i, :n], np.zeros((3, 3))).padded(2) for i, n in enumerate((2, 1))])
    logs = scores - np.log(np.exp(scores).sum(-1, keepdims=True))
    losses = -(teacher * logs).sum(-1)  # (batch, time)
    found = TagDistillationLoss(1.0)(y_true.astype("float64"), scores, sample_weight=np.array(weights, "float32"))
    wide = np.reshape(weights, (2, -1))
    assert_allclose(float(ops.convert_to_numpy(found)), (wide * losses).sum() / 3, rtol=1e-5)


def test_a_teacher_gives_nothing_to_what_the_student_forbids():
    scheme = bio(["X"])
    teacher = ConditionalRandomField(transition_initializer="glorot_uniform")
    student = ConditionalRandomField(constraints=scheme)
    for layer in (teacher, student):
        layer.build((None, None, SIZE))
    scores = masked(random.normal(size=(3, LONGEST, SIZE)) + [0, 0, 3])  # I is what it likes best
    tags, steps = (ops.convert_to_numpy(x) for x in teacher.expected_counts(scores, scheme, 1.5))
    legal = np.where(scheme.allowed_transitions, ops.convert_to_numpy(teacher.trans) / 1.5, -1e9)
    start = np.where(scheme.allowed_starts, 0.0, -1e9)
    for b in range(3):
        truth = oracles.sentence(np.where(MASK[b][:, None], scores[b], 0) / 1.5, MASK[b], legal, start)
        assert_allclose(tags[b], truth["marginals"], atol=1e-5)
        assert_allclose(steps[b], truth["steps"], atol=1e-5)
    assert steps[:, 0, 2].tolist() == [0.0] * 3 and tags[:, 0, 2].tolist() == [0.0] * 3
    losses = SequenceDistillationLoss(student, 1.0, 1.5)(target(GOLD, tags, steps), scores)
    assert (ops.convert_to_numpy(losses) < 50).all()


def test_tags_without_a_crf_are_learned_one_by_one():
    teacher, student = (random.normal(size=(3, LONGEST, SIZE)) for _ in range(2))
    p = np.where(MASK[:, :, None], np.exp(log_softmax(teacher / 2)), 0.0)
    found = TagDistillationLoss(0.7, 2.0)(target(GOLD, p, np.zeros((3, SIZE, SIZE))), student.astype("float32"))
    losses = []
    for b, tags in enumerate(GOLD):
        for t, tag in enumerate(tags):
            hard = -log_softmax(student[b, t])[tag] if tag >= 0 else 0.0
            losses.append(0.3 * hard - 0.7 * 4 * p[b, t] @ log_softmax(student[b, t] / 2))
    assert_allclose(ops.convert_to_numpy(found), np.mean(losses), **RELAXED)


def test_labels_and_numbers_are_learned_where_they_are_known_and_from_the_teacher_everywhere():
    teacher, student = random.normal(size=(2, 4, 3))
    p = np.exp(log_softmax(teacher / 3))
    labels = [2, -1, 0, -1]
    batch = np.column_stack([labels, p]).astype("float32")
    found = LabelDistillationLoss(0.4, 3.0, reduction="none")(batch, student.astype("float32"))
    hard = [-log_softmax(row)[label] if label >= 0 else 0.0 for row, label in zip(student, labels)]
    soft = [-q @ log_softmax(row / 3) for q, row in zip(p, student)]
    assert_allclose(ops.convert_to_numpy(found), 0.6 * np.array(hard) + 0.4 * 9 * np.array(soft), **RELAXED)
    numbers = np.array([[1.0, 2.0, 1.0], [0.0, 2.0, 0.0]], "float32")
    found = NumberDistillationLoss(0.4, reduction="none")(numbers, np.array([[0.5], [1.5]], "float32"))
    assert_allclose(ops.convert_to_numpy(found), [0.6 * 0.25 + 0.4 * 2.25, 0.4 * 0.25], **RELAXED)


def test_softened_probabilities_are_those_of_divided_scores():
    scores = random.normal(size=(5, 4)) * 3
    assert_allclose(soften(np.exp(log_softmax(scores)), 2.5), np.exp(log_softmax(scores / 2.5)), rtol=1e-9)
    assert soften(np.array([1.0, 0.0]), 4.0).tolist() == [1.0, 0.0]


def test_losses_are_saved_with_weight_and_temperature(layer):
    for loss in (
        SequenceDistillationLoss(layer, 0.2, 3.0),
        TagDistillationLoss(0.2, 3.0),
        LabelDistillationLoss(0.2, 3.0),
    ):
        copy = type(loss).from_config(loss.get_config())
        assert (copy.teacher_weight, copy.temperature) == (0.2, 3.0)
        assert keras.saving.get_registered_name(type(loss)).startswith("kcrf>")


def test_the_counts_of_a_layer_are_those_of_the_functions(layer):
    scores = masked(random.normal(size=(3, LONGEST, SIZE)))
    for ours, theirs in zip(layer.expected_counts(scores), crf.expected_counts(layer.chain(scores)), strict=True):
        assert_allclose(ops.convert_to_numpy(ours), ops.convert_to_numpy(theirs))


@pytest.mark.once
def test_a_model_is_fitted_to_packed_targets():
    """Keras hands the targets on as they are, though they are of another shape than the outputs."""
    inputs = keras.Input((None,), dtype="int32", name="characters")
    layer = ConditionalRandomField(transition_initializer="glorot_uniform")
    scores = layer(keras.layers.Embedding(9, SIZE)(inputs), mask=ops.not_equal(inputs, 0))
    model = keras.Model({"characters": inputs}, scores)
    batch = {"characters": np.where(MASK, random.integers(1, 9, MASK.shape), 0).astype("int32")}
    counts = [
        ops.convert_to_numpy(x) for x in layer.expected_counts(masked(random.normal(size=(3, LONGEST, SIZE)) * 3))
    ]
    targets, loss = target(GOLD, *counts), SequenceDistillationLoss(layer, 0.5, 2.0)
    model.compile(keras.optimizers.Adam(0.05), loss=loss)
    before = np.mean(ops.convert_to_numpy(loss(targets, model.predict_on_batch(batch))))
    fitted = model.fit(batch, targets, batch_size=3, epochs=8, verbose=0).history["loss"]
    assert_allclose(fitted[0], before, rtol=1e-4)
    assert fitted[-1] < fitted[0] - 0.5
