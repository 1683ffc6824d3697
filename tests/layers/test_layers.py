"""kcrf.layers.ConditionalRandomField in the hands of Keras: training, masks, learning rates, saving."""

import gc
import itertools
from dataclasses import replace

import numpy as np
import oracles
import pytest
from conftest import few
from gradients import value_and_gradients
from numpy.testing import assert_allclose, assert_array_equal
from seeds import set_seeds

from kcrf import crf
from kcrf.backend import backend_name, keras, ops, path_of
from kcrf.layers import ConditionalRandomField, MaximumEntropyMarkovModel, ViterbiTags
from kcrf.layers.learning_rates import with_learning_rate_multiplier
from kcrf.tags import bio, bioes, bmes

BACKENDS = ["torch", "tensorflow", "jax"]

random = np.random.default_rng(0)
EMISSIONS = random.normal(size=(3, 5, 4)).astype("float32")
MASK = np.array([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0], [0, 1, 0, 1, 1]], bool)
TAGS = random.integers(0, 4, (3, 5))


def numpy(x):
    return ops.convert_to_numpy(x)


def built(**arguments):
    layer = ConditionalRandomField(**arguments)
    layer.build((None, None, 4))
    return layer


def small_model(**arguments):
    """A model from word numbers to scores, and data whose tags depend on the words and on the tag before."""
    set_seeds(3)
    inputs = keras.Input((None,), dtype="int32")
    x = keras.layers.Embedding(20, 8, mask_zero=True)(inputs)
    layer = ConditionalRandomField(name="CRF", **arguments)
    model = keras.Model(inputs, layer(keras.layers.Dense(4, name="Emissions")(x)))
    words = np.random.default_rng(1).integers(1, 20, (16, 6))
    words[::2, 4:] = 0
    return model, layer, words, words % 4


def test_outputs_are_the_emissions_with_masked_positions_at_minus_infinity():
    layer = built()
    outputs = numpy(layer(EMISSIONS, mask=MASK))
    assert_array_equal(outputs[MASK], EMISSIONS[MASK])
    assert (outputs[~MASK] == -np.inf).all()
    assert_array_equal(numpy(layer(EMISSIONS)), EMISSIONS)


@pytest.mark.parametrize("boundary", [False, True])
def test_losses_are_minus_the_enumerated_log_likelihoods_per_sentence(boundary):
    layer = built(use_boundary=boundary, lr_multiplier=10)
    if boundary:
        layer._start.assign(np.array([0.1, -0.2, 0.3, 0.0], "float32"))
        layer._end.assign(np.array([0.0, 0.2, -0.1, 0.1], "float32"))
    y_pred = layer(EMISSIONS, mask=MASK)
    scores = [None if x is None else numpy(x).astype("float64") for x in (layer.trans, layer.start, layer.end)]
    expected = [-oracles.log_likelihood(e, t, m, *scores) for e, t, m in zip(EMISSIONS, TAGS, MASK, strict=True)]
    assert_allclose(numpy(layer.sparse_loss(TAGS.astype("float32"), y_pred)), expected, rtol=1e-4)
    assert_allclose(numpy(layer.sparse_loss(TAGS[:, :, None], y_pred)), expected, rtol=1e-4)
    assert_allclose(numpy(layer.dense_loss(np.eye(4, dtype="float32")[TAGS], y_pred)), expected, rtol=1e-4)


@pytest.mark.once
@pytest.mark.parametrize("scheme", [None, bmes()], ids=["free", "bmes"])
@pytest.mark.parametrize("boundary", few(True, False))
def test_the_probabilities_of_all_tag_sequences_sum_to_one(boundary, scheme):
    layer = built(use_boundary=boundary, constraints=scheme, lr_multiplier=10)
    if boundary:
        layer._start.assign(np.array([0.1, -0.2, 0.3, 0.0], "float32"))
        layer._end.assign(np.array([0.0, 0.2, -0.1, 0.1], "float32"))
    mask = np.array([[0, 1, 0, 1, 1]], bool)
    paths = np.zeros((64, 5), int)
    paths[:, mask[0]] = list(itertools.product(range(4), repeat=3))
    y_pred = layer(EMISSIONS[:1].repeat(64, axis=0), mask=mask.repeat(64, axis=0))
    probabilities = np.exp(-numpy(layer.sparse_loss(paths, y_pred)).astype("float64"))
    assert_allclose(probabilities.sum(), 1.0, rtol=1e-5)
    if scheme is not None:
        legal = [scheme.violations(path[mask[0]].tolist()) == [] for path in paths]
        assert (probabilities[legal] > 0).all() and (probabilities[np.invert(legal)] == 0).all()


def test_a_sentence_without_a_real_position_costs_nothing_and_teaches_nothing():
    layer = built(use_boundary=True, constraints=bmes())
    mask = np.array([[0, 0, 0, 0, 0], [0, 0, 1, 0, 0], [1, 1, 1, 1, 1]], bool)
    y_pred = layer(EMISSIONS, mask=mask)
    tags = np.zeros((3, 5), int)
    assert numpy(layer.sparse_loss(tags, y_pred))[0] == 0
    assert_array_equal(numpy(layer.decode(y_pred))[:2], [[-1] * 5, [-1, -1, 0, -1, -1]])

    def loss(emissions):
        return ops.sum(layer.sparse_loss(tags, layer(emissions, mask=ops.convert_to_tensor(mask))))

    _, (gradient,) = value_and_gradients(loss, EMISSIONS)
    assert np.isfinite(gradient).all() and (gradient[~mask] == 0).all() and np.abs(gradient[2]).max() > 0


@pytest.mark.parametrize("policy", ["float32", "mixed_float16", "mixed_bfloat16"])
def test_at_512_positions_the_loss_is_that_of_float64_under_every_policy(policy):
    draw = np.random.default_rng(0)
    layer = ConditionalRandomField(use_boundary=True, dtype=policy)
    half = ops.cast(3 * draw.normal(size=(2, 512, 9)).astype("float32"), layer.compute_dtype)
    tags = draw.integers(0, 9, (2, 512))
    y_pred = layer(half, mask=np.arange(512) >= np.array([[0], [100]]))
    for stored in (layer._trans, layer._start, layer._end):
        stored.assign(draw.normal(size=stored.shape))
    trans, start, end = (numpy(x).astype("float64") for x in (layer.trans, layer.start, layer.end))
    for loss, rows, path in zip(numpy(layer.sparse_loss(tags, y_pred)), numpy(y_pred), tags, strict=True):
        real = rows[:, 0] > -np.inf
        rows, path = rows[real].astype("float64"), path[real].tolist()
        alpha = start + rows[0]
        for row in rows[1:]:
            alpha = np.logaddexp.reduce(alpha[:, None] + trans, axis=0) + row
        expected = np.logaddexp.reduce(alpha + end) - oracles.score(rows, path, trans, start, end)
        assert_allclose(loss, expected, rtol=1e-5)


@pytest.mark.once
@pytest.mark.parametrize("head", few(ConditionalRandomField, MaximumEntropyMarkovModel))
def test_a_score_that_is_no_number_makes_the_loss_of_its_sentence_none_either(head):
    layer = head()
    emissions, tags = np.random.default_rng(0).normal(size=(3, 4, 3)).astype("float32"), np.zeros((3, 4), "int32")
    whole = ops.convert_to_numpy(layer.sparse_loss(tags, layer(emissions)))
    emissions[1, 2] = np.nan
    for loss, gold in ((layer.sparse_loss, tags), (layer.dense_loss, np.eye(3)[tags])):
        found = ops.convert_to_numpy(loss(gold, layer(emissions)))
        assert np.isnan(found[1])
        np.testing.assert_allclose(found[[0, 2]], whole[[0, 2]], rtol=1e-6)
    emissions[1] = np.nan
    assert np.isnan(ops.convert_to_numpy(layer.sparse_loss(tags, layer(emissions)))[1])


@pytest.mark.once
def test_one_tag_at_minus_infinity_masks_nothing():
    layer = built()
    emissions = EMISSIONS.copy()
    emissions[0, 2, 1] = -np.inf
    marginals = numpy(layer.marginals(emissions))
    assert_allclose(marginals.sum(-1), np.ones((3, 5)), atol=1e-5)
    assert marginals[0, 2, 1] == 0
    _, (gradient,) = value_and_gradients(lambda e: ops.sum(layer.sparse_loss(np.zeros((3, 5)), e)), emissions)
    assert np.isfinite(gradient).all() and gradient[0, 2, 1] == 0


def test_decoders_use_the_layers_scores():
    layer = built(use_boundary=True)
    y_pred = layer(EMISSIONS, mask=MASK)
    rest = (MASK, numpy(layer.trans), numpy(layer.start), numpy(layer.end))
    assert_array_equal(numpy(layer.decode(y_pred)), numpy(crf.viterbi(EMISSIONS, *rest)))
    assert_allclose(numpy(layer.marginals(y_pred)), numpy(crf.marginals(EMISSIONS, *rest)), atol=1e-6)
    assert_allclose(numpy(layer.entropy(y_pred)), numpy(crf.entropy(EMISSIONS, *rest)), atol=1e-5)
    for found, expected in zip(layer.top_k(y_pred, 3), crf.top_k_paths(EMISSIONS, 3, *rest), strict=True):
        assert_allclose(numpy(found), numpy(expected), rtol=1e-5)


@pytest.mark.parametrize("boundary", [False, True])
def test_constraints_forbid_in_loss_and_decoding(boundary):
    scheme = bmes()
    layer = built(constraints=scheme, use_boundary=boundary)
    y_pred = layer(EMISSIONS * 30, mask=MASK)
    for tags, mask in zip(numpy(layer.decode(y_pred)), MASK, strict=True):
        assert scheme.violations(tags[mask].tolist()) == []
    legal = np.array([[1, 2, 3, 0, 0]] * 3)
    illegal = np.array([[2, 2, 3, 0, 0]] * 3)
    loss = numpy(layer.sparse_loss(legal, layer(EMISSIONS)))
    assert np.isfinite(loss).all() and (loss < 100).all()
    assert (numpy(layer.sparse_loss(illegal, layer(EMISSIONS))) > 1e8).all()
    assert (numpy(layer.trans)[~scheme.allowed_transitions] == crf.FORBIDDEN).all()


def spans_of(scheme, length):
    labels = [(label,) for label in scheme.types] or [()]
    return [(s, e, *label) for s in range(length) for e in range(s + 1, length + 1) for label in labels]


def enumerated_confidence(layer, scheme, emissions, mask, span):
    """The share of all legal paths whose spans, read by the scheme, hold this one; positions count real ones."""
    scores = numpy(layer.trans).astype("float64")
    size = len(scheme)
    start, end = (np.zeros(size) if x is None else numpy(x).astype("float64") for x in (layer.start, layer.end))
    positions = np.flatnonzero(mask)
    real = [int(p) for p in positions if span[0] <= p < span[1]]
    first = int(np.searchsorted(positions, real[0]))
    wanted = (first, first + len(real), *span[2:])
    found, total = 0.0, 0.0
    for path, value in oracles.paths(oracles.cut(emissions, mask), scores, start, end):
        if scheme.violations(list(path)) == []:
            total += np.exp(value)
            found += np.exp(value) * (wanted in scheme.decode(list(path)))
    return found / total


@pytest.mark.once
@pytest.mark.parametrize("boundary", few(True, False))
@pytest.mark.parametrize("scheme", few(bio(["A", "B"]), bmes(), bioes(["A"])), ids=lambda scheme: scheme.name)
def test_span_confidence_is_the_share_of_the_paths_that_hold_the_span(scheme, boundary):
    size = len(scheme)
    layer = ConditionalRandomField(constraints=scheme, use_boundary=boundary, lr_multiplier=10)
    layer.build((None, None, size))
    if boundary:
        layer._start.assign(random.normal(size=size).astype("float32") / 10)
        layer._end.assign(random.normal(size=size).astype("float32") / 10)
    emissions = random.normal(size=(4, 5, size)).astype("float32") * 2
    mask = np.array([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0], [0, 0, 1, 1, 1], [0, 1, 0, 1, 1]], bool)
    spans = [[s for s in spans_of(scheme, 5) if row[s[0] : s[1]].any()] for row in mask]
    found = layer.span_confidence(layer(emissions, mask=mask), spans)
    assert [len(row) for row in found] == [len(row) for row in spans]
    for e, m, row, probabilities in zip(emissions, mask, spans, found, strict=True):
        expected = [enumerated_confidence(layer, scheme, e, m, span) for span in row]
        assert_allclose(probabilities, expected, rtol=1e-4, atol=1e-6)


@pytest.mark.once
def test_span_confidence_of_a_free_layer_reads_tags_by_the_scheme_it_is_given():
    """Without constraints, P(B-A I-A and then no I-A) among all paths, legal or not."""
    scheme = bio(["A"])
    layer = ConditionalRandomField()
    layer.build((None, None, 3))
    emissions = random.normal(size=(1, 4, 3)).astype("float32")
    scored = oracles.sentence(emissions[0], np.ones(4), numpy(layer.trans).astype("float64"))
    fits = [value for path, value in scored["paths"] if path[1:3] == (1, 2) and path[3] != 2]
    (found,) = layer.span_confidence(layer(emissions), [[(1, 3, "A")]], scheme=scheme)
    assert_allclose(found, [np.exp(oracles.log_sum(fits) - scored["log_z"])], rtol=1e-5)


@pytest.mark.once
def test_span_confidences_of_many_spans_and_of_none():
    layer = built(constraints=bmes())
    emissions = random.normal(size=(3, 30, 4)).astype("float32")
    spans = [spans_of(bmes(), 30), [], [(0, 1)]]
    found = layer.span_confidence(layer(emissions), spans)
    assert [len(row) for row in found] == [465, 0, 1]
    covered = np.zeros(30)
    for (start, end), probability in zip(spans[0], found[0], strict=True):
        covered[start:end] += probability
    assert_allclose(covered, np.ones(30), atol=1e-4)  # each position is in exactly one word
    assert layer.span_confidence(layer(emissions), [[], [], []])[1].shape == (0,)


@pytest.mark.parametrize(
    ("spans", "message"),
    [
        ([[], []], "a list for each of 3 sentences. Received: 2 lists"),
        ([[(2, 2)], [], []], r"0 <= start < end <= 5 and a real position. Received: \(2, 2\)"),
        ([[(0, 6)], [], []], r"Received: \(0, 6\)"),
        ([[], [(3, 5)], []], r"a real position. Received: \(3, 5\)"),
        ([[(0, 1, "PER")], [], []], r"A bmes span has 2 members. Received: \(0, 1, 'PER'\)"),
    ],
)
def test_spans_that_cannot_be_are_refused(spans, message):
    layer = built(constraints=bmes())
    with pytest.raises(ValueError, match=message):
        layer.span_confidence(layer(EMISSIONS, mask=MASK), spans)


@pytest.mark.once
@pytest.mark.parametrize("scale", [1.0, 30.0, 1000.0])
@pytest.mark.parametrize("constrained", [True, False])
def test_span_confidences_of_scores_of_any_size_are_the_enumerated_ones(scale, constrained):
    scheme = bio(["A"])
    layer = ConditionalRandomField(constraints=scheme if constrained else None, use_boundary=True)
    layer.build((None, None, 3))
    layer.set_weights([random.normal(size=w.shape) * scale / 10 for w in layer.get_weights()])
    emissions, mask = random.normal(size=(2, 5, 3)) * scale, np.array([[1, 1, 0, 1, 1], [0, 1, 1, 1, 1]], bool)
    spans = [[s for s in spans_of(scheme, 5) if row[s[0] : s[1]].any()] for row in mask]
    found = layer.span_confidence(layer(emissions.astype("float32"), mask=mask), spans, scheme)
    scores = [numpy(x).astype("float64") for x in layer.scores()]
    for rows, real, row, probabilities in zip(emissions, mask, spans, found, strict=True):
        every = oracles.sentence(rows, real, *scores)
        for (start, end, _), probability in zip(row, probabilities, strict=True):
            first, stop = real[:start].sum(), real[:end].sum()
            wanted = (1,) + (2,) * (stop - first - 1)
            fits = [v for path, v in every["paths"] if path[first:stop] == wanted and path[stop : stop + 1] != (2,)]
            expected = np.exp(oracles.log_sum(fits) - every["log_z"]) if fits else 0.0
            assert_allclose(probability, expected, rtol=1e-3, atol=1e-6)


@pytest.mark.once
def test_span_confidences_take_one_pass_and_equal_the_share_of_the_restricted_paths():
    """The share of the paths in which only the tags of a span are allowed, with a pass for each span."""
    passes = []

    class Counting(ConditionalRandomField):
        def chain(self, y_pred, scores=None):
            passes.append(len(y_pred))
            return super().chain(y_pred, scores)

    layer = Counting(constraints=bmes())
    y_pred = layer(random.normal(size=(3, 24, 4)).astype("float32"))
    spans = [spans_of(bmes(), 24)] * 3
    found = layer.span_confidence(y_pred, spans)
    assert passes == [4]  # the next power of 2
    for row in (0, 2):
        for index in range(0, 300, 37):
            start, end = spans[row][index]
            allowed = np.ones((1, 24, 4), bool)
            allowed[0, start:end] = np.eye(4, dtype=bool)[bmes().encode([(0, end - start)], end - start)]
            chain = layer.chain(y_pred[row : row + 1])
            within = replace(chain, emissions=np.where(allowed, numpy(chain.emissions), crf.FORBIDDEN))
            log_p = numpy(crf.log_partition(within))[0] - numpy(crf.log_partition(chain))[0]
            assert_allclose(found[row][index], np.exp(log_p), rtol=1e-4, atol=1e-7)


@pytest.mark.once
def test_a_free_layer_decodes_under_constraints_that_are_given(tmp_path):
    model, layer, words, _ = small_model()
    layer.set_weights([random.normal(size=(4, 4))])
    scheme = bmes()
    y_pred = model.predict(words, verbose=0)
    strict = ConditionalRandomField(constraints=scheme)
    strict.build((None, None, 4))
    strict.set_weights([numpy(layer.trans)])
    expected = numpy(strict.decode(y_pred))
    assert (numpy(layer.decode(y_pred)) != expected).any()
    assert_array_equal(numpy(layer.decode(y_pred, constraints=scheme)), expected)
    for found, wanted in zip(layer.top_k(y_pred, 2, scheme), strict.top_k(y_pred, 2), strict=True):
        assert_allclose(numpy(found), numpy(wanted), rtol=1e-5)
    keras.Model(model.input, ViterbiTags(layer, constraints=scheme)(model.output)).save(tmp_path / "tagger.keras")
    assert_array_equal(keras.saving.load_model(tmp_path / "tagger.keras").predict(words, verbose=0), expected)


def test_span_confidence_needs_a_scheme_of_the_right_size():
    with pytest.raises(ValueError, match="`scheme` must have 4 tags. Received: None"):
        built().span_confidence(EMISSIONS, [[], [], []])
    with pytest.raises(ValueError, match=r"`scheme` must have 4 tags. Received: \('O', 'B-A', 'I-A'\)"):
        built().span_confidence(EMISSIONS, [[], [], []], scheme=bio(["A"]))


@pytest.mark.once
def test_a_tagger_layer_with_confidences_returns_the_marginals_of_its_tags(tmp_path):
    model, layer, words, _ = small_model(lr_multiplier=10, use_boundary=True)
    tagger = keras.Model(model.input, ViterbiTags(layer, confidences=True)(model.output))
    tags, confidences = tagger.predict(words, verbose=0)
    y_pred = model.predict(words, verbose=0)
    assert_array_equal(tags, numpy(layer.decode(y_pred)))
    marginals = numpy(layer.marginals(y_pred))
    expected = np.take_along_axis(marginals, np.maximum(tags, 0)[:, :, None], axis=2)[:, :, 0]
    assert_allclose(confidences, np.where(words > 0, expected, 0.0), rtol=1e-5)
    tagger.save(tmp_path / "tagger.keras")
    for found, wanted in zip(
        keras.saving.load_model(tmp_path / "tagger.keras").predict(words, verbose=0), (tags, confidences), strict=True
    ):
        assert_allclose(found, wanted, rtol=1e-5)


def test_start_and_end_are_there_with_a_boundary_only():
    assert built().start is None and built().end is None
    assert built(use_boundary=True).start.shape == (4,)


def test_accuracies_count_real_known_positions():
    layer = built(transition_initializer="zeros")
    layer._trans.assign(np.where(np.arange(4)[:, None] == np.arange(4), 50.0, 0.0).astype("float32"))
    y_pred = layer(EMISSIONS, mask=MASK)
    tags = TAGS.copy()
    tags[0, 0] = -1
    judged = MASK & (tags >= 0)
    argmax = (EMISSIONS.argmax(-1) == tags)[judged].mean()
    viterbi = (numpy(layer.decode(y_pred)) == tags)[judged].mean()
    assert argmax != viterbi
    assert_allclose(float(layer.sparse_accuracy(tags, y_pred)), argmax, rtol=1e-6)
    assert_allclose(float(layer.dense_accuracy(np.eye(5)[tags][:, :, :4], y_pred)), argmax, rtol=1e-6)
    assert_allclose(float(layer.viterbi_accuracy(tags, y_pred)), viterbi, rtol=1e-6)


@pytest.mark.parametrize("optimizer", few("Adam", "SGD"))
@pytest.mark.parametrize("k", few(1000, 10))
def test_the_multiplier_is_exactly_k_times_the_rate_of_the_effective_scores(optimizer, k):
    def moved(multiplier):
        layer = built(lr_multiplier=multiplier, transition_initializer=keras.initializers.Constant(0.3))
        before = numpy(layer.trans)
        gradient = value_and_gradients(
            lambda stored: ops.sum(
                -crf.log_likelihood(EMISSIONS, TAGS, MASK, with_learning_rate_multiplier(stored, float(multiplier)))
            ),
            numpy(layer._trans),
        )[1][0]
        rule = getattr(keras.optimizers, optimizer)(1e-4, **({"epsilon": 1e-12} if optimizer == "Adam" else {}))
        rule.build([layer._trans])
        rule.apply_gradients([(ops.convert_to_tensor(gradient), layer._trans)])
        return numpy(layer.trans).astype("float64") - before, gradient

    one, gradient_one = moved(1)
    many, gradient_many = moved(k)
    assert_allclose(many, k * one, rtol=2e-3, atol=1e-6)
    assert_allclose(gradient_many, gradient_one, rtol=1e-4, atol=1e-6)  # so a global norm does not depend on k


def test_stored_weights_are_the_scores_divided_by_k():
    layer = built(lr_multiplier=100, transition_initializer=keras.initializers.Constant(2.0))
    assert_allclose(numpy(layer._trans), np.full((4, 4), 0.02), rtol=1e-6)
    assert_allclose(numpy(layer.trans), np.full((4, 4), 2.0), rtol=1e-6)
    assert [path_of(w).split("/")[-1] for w in layer.weights] == ["trans"]


def test_fit_learns_and_a_loaded_model_trains_on_identically(tmp_path):
    model, layer, words, tags = small_model(lr_multiplier=10, use_boundary=True)
    model.compile(keras.optimizers.Adam(0.05), loss=layer.sparse_loss, metrics=[layer.sparse_accuracy])
    losses = model.fit(words, tags, epochs=15, batch_size=8, verbose=0).history["loss"]
    assert losses[-1] < 0.2 * losses[0]
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    on, again = (m.fit(words, tags, epochs=3, batch_size=8, verbose=0, shuffle=False).history for m in (model, loaded))
    assert on.keys() == again.keys() and set(on) == {"loss", "sparse_accuracy"}
    for name in on:
        assert_allclose(again[name], on[name], rtol=1e-6)
    assert loaded.get_layer("CRF") is not layer
    assert_allclose(numpy(loaded.get_layer("CRF").trans), numpy(layer.trans), rtol=1e-5)


@pytest.mark.once
def test_weights_come_back_from_a_weight_file(tmp_path):
    model, layer, words, _ = small_model(lr_multiplier=100)
    model.save_weights(tmp_path / "model.weights.h5")
    other, other_layer, _, _ = small_model(lr_multiplier=100)
    other_layer._trans.assign(np.zeros((4, 4), "float32"))
    other.load_weights(tmp_path / "model.weights.h5")
    assert_array_equal(numpy(other_layer.trans), numpy(layer.trans))
    losses = []
    for each, loss in ((model, layer.sparse_loss), (other, other_layer.sparse_loss)):
        each.compile(keras.optimizers.SGD(0.01), loss=loss)
        losses.append(each.fit(words, words % 4, epochs=3, verbose=0, shuffle=False).history["loss"])
    assert_allclose(*losses, rtol=1e-6)


@pytest.mark.once
def test_dense_targets_train_too():
    model, layer, words, tags = small_model()
    model.compile("sgd", loss=layer.dense_loss, metrics=[layer.dense_accuracy])
    sparse, sparse_layer, _, _ = small_model()
    sparse.compile("sgd", loss=sparse_layer.sparse_loss, metrics=[sparse_layer.sparse_accuracy])
    one_hot = np.eye(4, dtype="float32")[tags]
    dense_result = model.fit(words, one_hot, epochs=2, verbose=0, shuffle=False).history
    sparse_result = sparse.fit(words, tags, epochs=2, verbose=0, shuffle=False).history
    assert_allclose(dense_result["loss"], sparse_result["loss"], rtol=1e-6)
    assert_allclose(dense_result["dense_accuracy"], sparse_result["sparse_accuracy"])


@pytest.mark.once
def test_the_compiled_loss_is_the_mean_and_sentence_weights_weigh_it():
    model, layer, words, tags = small_model()
    model.compile("sgd", loss=layer.sparse_loss)
    each = numpy(layer.sparse_loss(tags, model.predict(words, verbose=0)))
    assert_allclose(model.evaluate(words, tags, verbose=0), each.mean(), rtol=1e-5)
    weights = np.linspace(0, 2, len(each)).astype("float32")
    weighted = model.evaluate(words, tags, sample_weight=weights, verbose=0)
    assert_allclose(weighted, (weights * each).mean(), rtol=1e-5)


@pytest.mark.once
def test_in_fit_a_sentence_of_weight_zero_teaches_nothing():
    weights = np.arange(16) % 2 * 1.0
    losses = []
    for rows, each in ((slice(None), weights[:, None]), (slice(1, None, 2), None)):
        model, layer, words, tags = small_model(lr_multiplier=10)
        # Keras takes the mean over the batch, so half of the sentences at twice the rate are the same step
        model.compile(keras.optimizers.SGD(0.01 if each is None else 0.02), loss=layer.sparse_loss)
        model.fit(words[rows], tags[rows], sample_weight=each, batch_size=16, epochs=2, shuffle=False, verbose=0)
        losses.append(numpy(layer.sparse_loss(tags, model.predict(words, verbose=0))))
    assert_allclose(*losses, rtol=1e-5)


def test_token_weights_are_refused_with_the_reason():
    model, layer, words, tags = small_model()
    model.compile("sgd", loss=layer.sparse_loss)
    with pytest.raises(ValueError, match="one loss per sentence, so `sample_weight` must have the shape"):
        model.fit(words, tags, sample_weight=np.ones(tags.shape), verbose=0)


@pytest.mark.once
@pytest.mark.parametrize("policy", few("mixed_bfloat16", "mixed_float16"))
def test_mixed_precision_leaves_scores_and_losses_in_float32(policy):
    keras.config.set_dtype_policy(policy)
    try:
        model, layer, words, tags = small_model(lr_multiplier=10)
        model.compile("adam", loss=layer.sparse_loss)
        assert model.output.dtype == "float32" and layer._trans.dtype == "float32"
        assert np.isfinite(model.fit(words, tags, verbose=0).history["loss"]).all()
        y_pred = model.predict(words, verbose=0)
        scores = numpy(layer.trans).astype("float64")
        expected = [-oracles.log_likelihood(e, t, e[:, 0] > -np.inf, scores) for e, t in zip(y_pred, tags, strict=True)]
        assert_allclose(numpy(layer.sparse_loss(tags, y_pred)), expected, rtol=1e-4)
    finally:
        keras.config.set_dtype_policy("float32")


@pytest.mark.skipif(backend_name() != "torch", reason="only torch has autocast")
@pytest.mark.parametrize("make", [ConditionalRandomField, lambda: MaximumEntropyMarkovModel(hidden_dim=2)])
def test_autocast_of_torch_changes_no_number(make):
    import torch

    layer = make()
    layer.build((None, None, 4))
    found = []
    for enabled in (False, True):
        emissions = torch.tensor(3 * EMISSIONS, requires_grad=True)
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=enabled):
            outputs = layer(emissions)
            losses, marginals = layer.sparse_loss(TAGS, outputs), layer.marginals(outputs)
        slopes = torch.autograd.grad(losses.sum(), [emissions, layer._trans.value])
        found.append([numpy(x) for x in (losses, marginals, *slopes)])
    for without, within in zip(*found, strict=True):
        assert within.dtype == "float32"
        assert_array_equal(within, without)


def test_scores_given_in_float32_keep_their_digits_under_a_half_policy():
    layer = ConditionalRandomField(dtype="mixed_bfloat16")
    assert_array_equal(numpy(layer(EMISSIONS)), EMISSIONS)


def test_a_tagger_layer_returns_the_best_paths_and_can_be_saved(tmp_path):
    model, layer, words, _ = small_model(lr_multiplier=10)
    tagger = keras.Model(model.input, ViterbiTags(layer)(model.output))
    expected = numpy(layer.decode(model.predict(words, verbose=0)))
    assert_array_equal(tagger.predict(words, verbose=0), expected)
    assert ((expected == -1) == (words == 0)).all()
    tagger.save(tmp_path / "tagger.keras")
    loaded = keras.saving.load_model(tmp_path / "tagger.keras")
    assert_array_equal(loaded.predict(words[:3], verbose=0), expected[:3])
    shorter = numpy(layer.decode(model.predict(words[:5, :5], verbose=0)))
    assert_array_equal(loaded.predict(words[:5, :5], verbose=0), shorter)


def loss_of(layer, name, tags):
    return getattr(layer, name)(tags, EMISSIONS)  # a loss does not keep its layer, the argument does


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ConditionalRandomField(lr_multiplier=0), "a positive number. Received: lr_multiplier=0"),
        (lambda: ConditionalRandomField(constraints="bmes"), "must be a kcrf.tags.TagScheme or None. Received: 'bmes'"),
        (lambda: built().build((None, 4)), r"needs inputs of shape \(batch, time, tags\). Received: shape=\(None, 4\)"),
        (lambda: built(constraints=bio(["A", "B"])), "one score for each of the 5 tags of its constraints"),
        (
            lambda: loss_of(built(), "sparse_loss", np.zeros((1, 2, 3))),
            r"shape \(batch, time\). Received: shape=\(1, 2, 3\)",
        ),
        (
            lambda: loss_of(built(), "dense_loss", TAGS),
            r"shape \(batch, time, tags\) with 4 tags. Received: shape=\(3, 5\)",
        ),
    ],
)
def test_what_cannot_work_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.once
def test_a_loss_outlives_its_layer_no_further_than_saying_so():
    loss = built().sparse_loss
    gc.collect()
    with pytest.raises(ValueError, match="no longer exists"):
        loss(TAGS, EMISSIONS)


@pytest.mark.parametrize("jit", ["auto"] if backend_name() == "jax" else few("auto", False))
def test_viterbi_accuracy_is_a_compiled_metric_that_follows_the_weights(jit):
    model, layer, words, tags = small_model(lr_multiplier=2, use_boundary=True, constraints=bmes())
    tags = np.random.default_rng(9).integers(-1, 4, tags.shape)
    for row, real in zip(tags, words > 0, strict=True):  # what the constraints allow, and unknown labels
        row[real] = np.where(row[real] < 0, -1, bmes().repair(np.maximum(row[real], 0)))
    judged = (words > 0) & (tags >= 0)
    settings = {"metrics": [layer.viterbi_accuracy], "jit_compile": jit}
    model.compile(keras.optimizers.SGD(0.0), layer.sparse_loss, **settings)

    def right():
        return (numpy(layer.decode(model.predict(words, verbose=0))) == tags)[judged].mean()

    shares = []
    for seed in range(2):  # the same compiled steps, other weights
        draw = np.random.default_rng(seed)
        model.set_weights([draw.normal(size=w.shape) for w in model.get_weights()])
        shares.append(right())
        epoch = model.fit(words, tags, batch_size=6, verbose=0, validation_data=(words, tags)).history
        assert_allclose(epoch["viterbi_accuracy"], [shares[-1]], rtol=1e-6)
        assert_allclose(epoch["val_viterbi_accuracy"], [shares[-1]], rtol=1e-6)
        assert_allclose(model.evaluate(words, tags, verbose=0)[1], shares[-1], rtol=1e-6)
    assert len(set(shares)) > 1


@pytest.mark.once
def test_viterbi_accuracy_of_a_loaded_model_of_one_hot_tags_and_weighed(tmp_path):
    model, layer, words, tags = small_model(lr_multiplier=10)
    one_hot = np.eye(4, dtype="float32")[tags]
    accuracy = layer.viterbi_accuracy
    model.compile("adam", layer.dense_loss, metrics=[accuracy], weighted_metrics=[layer.viterbi_accuracy])
    weights = np.linspace(0, 2, len(words)).astype("float32")
    model.fit(words, one_hot, verbose=0)
    right, judged = numpy(layer.decode(model.predict(words, verbose=0))) == tags, words > 0
    found = model.evaluate(words, one_hot, sample_weight=weights, return_dict=True, verbose=0)
    weighed = ((right & judged) * weights[:, None]).sum() / (judged * weights[:, None]).sum()
    assert_allclose(sorted(found.values())[:2], sorted([right[judged].mean(), weighed]), rtol=1e-5)
    by_hand = float(layer.viterbi_accuracy(one_hot, model.predict(words, verbose=0)))
    assert_allclose(by_hand, right[judged].mean(), rtol=1e-6)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    again = loaded.evaluate(words, one_hot, sample_weight=weights, return_dict=True, verbose=0)
    assert again.keys() == found.keys()
    assert_allclose([again[name] for name in found], list(found.values()), rtol=1e-6)


@pytest.mark.once
def test_a_model_that_is_built_by_its_data_counts_viterbi_accuracy_too():
    set_seeds(3)
    layer = ConditionalRandomField(lr_multiplier=10)
    model = keras.Sequential([keras.layers.Embedding(20, 8, mask_zero=True), keras.layers.Dense(4), layer])
    model.compile("sgd", layer.sparse_loss, metrics=[layer.viterbi_accuracy])
    words = np.random.default_rng(1).integers(0, 20, (16, 6))
    model.fit(words, words % 4, verbose=0)
    best = numpy(layer.decode(model.predict(words, verbose=0)))
    expected = (best == words % 4)[words > 0].mean()
    assert_allclose(model.evaluate(words, words % 4, verbose=0)[1], expected, rtol=1e-6)


@pytest.mark.filterwarnings("ignore:A model whose output is that of the CRF")
@pytest.mark.skipif(backend_name() != "jax", reason="only JAX keeps weights away from metrics")
def test_on_jax_viterbi_accuracy_asks_for_a_loss_of_its_layer():
    for call in (keras.Model.evaluate, keras.Model.fit):
        model, layer, words, tags = small_model()
        model.compile("sgd", "mse", metrics=[layer.viterbi_accuracy])
        with pytest.raises(ValueError, match="needs a loss of (its|this) layer"):
            call(model, words, np.eye(4)[tags], verbose=0)


def test_layers_of_other_modules_go_by_this_one_too():
    from kcrf import layers
    from kcrf.bert4keras import memm
    from kcrf.layers import pooling

    assert layers.MaximumEntropyMarkovModel is memm.MaximumEntropyMarkovModel
    assert layers.LayerPooling is pooling.LayerPooling
    with pytest.raises(AttributeError, match="has no attribute 'Nothing'"):
        _ = layers.Nothing
