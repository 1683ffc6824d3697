"""kcrf.bert4keras.memm against its definition in NumPy, against bert4keras' own numbers, and in the hands of Keras."""

import itertools

import numpy as np
import oracles
import pytest
from bert4keras_host import bert4keras_python  # noqa: F401 (a fixture)
from conftest import few
from gradients import compiled, value_and_gradients
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from seeds import set_seeds

from kcrf.backend import backend_name, keras, ops
from kcrf.bert4keras.memm import equal_crf
from kcrf.layers import MaximumEntropyMarkovModel, ViterbiTags
from kcrf.tags import bmes

BACKENDS = ["torch", "tensorflow", "jax"]

random = np.random.default_rng(0)
EMISSIONS = random.normal(size=(5, 5, 4)).astype("float32")
TRANSITIONS = (2 * random.normal(size=(4, 4))).astype("float32")
MASK = np.array([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0], [0, 0, 1, 1, 1], [0, 1, 0, 1, 1], [0, 0, 0, 1, 0]], bool)
TAGS = random.integers(0, 4, (5, 5))


def numpy(x):
    return ops.convert_to_numpy(x)


def log_softmax(scores):
    scores = np.asarray(scores, "float64") - np.max(scores)
    return scores - np.log(np.sum(np.exp(scores)))


def directed(rows, path, transitions):
    """The log probability of the known tags from left to right, written position by position."""
    total = 0.0
    for t, tag in enumerate(path):
        if tag < 0:
            continue
        alone = t == 0 or path[t - 1] < 0
        scores = rows[t] if alone else (rows[t] + transitions[path[t - 1]]) / 2
        total += log_softmax(scores)[tag]
    return total


def reversed_too(rows, path, transitions):
    """Both directions: from right to left is from left to right on the sentence reversed."""
    left, right = directed(rows, path, transitions), directed(rows[::-1], list(path)[::-1], transitions.T)
    return left, right, (left + right) / 2


def expected(emissions, tags, mask, transitions):
    """The log probabilities of a batch, (batch, 3): from the left, from the right, and their mean."""
    return np.array(
        [
            reversed_too(e[m].astype("float64"), t[m].tolist(), transitions.astype("float64"))
            for e, t, m in zip(emissions, tags, mask, strict=True)
        ]
    )


def built(tags=4, transitions=None, **arguments):
    layer = MaximumEntropyMarkovModel(**arguments)
    layer.build((None, None, tags))
    if transitions is not None:
        layer._trans.assign(transitions / layer.lr_multiplier)
    return layer


@pytest.mark.once
@pytest.mark.parametrize("k", few(100, 1))
def test_losses_are_the_mean_of_both_directions_on_the_sentence_with_masked_positions_cut_out(k):
    layer = built(transitions=TRANSITIONS, lr_multiplier=k)
    y_pred = layer(EMISSIONS, mask=MASK)
    left, right, both = -expected(EMISSIONS, TAGS, MASK, TRANSITIONS).T
    assert_allclose(numpy(layer.basic_loss(TAGS, y_pred)), left, rtol=1e-4)
    assert_allclose(numpy(layer.basic_loss(TAGS, y_pred, go_backwards=True)), right, rtol=1e-4)
    assert_allclose(numpy(layer.sparse_loss(TAGS.astype("float32"), y_pred)), both, rtol=1e-4)
    assert_allclose(numpy(layer.dense_loss(np.eye(4, dtype="float32")[TAGS], y_pred)), both, rtol=1e-4)


@pytest.mark.once
def test_low_rank_losses_are_those_of_the_product():
    full, low = built(), built(hidden_dim=2, lr_multiplier=10)
    assert np.abs(numpy(low.l_trans) - numpy(low.r_trans)).min() > 0
    full._trans.assign(numpy(low.l_trans) @ numpy(low.r_trans).T)
    assert_allclose(numpy(low.trans), numpy(full.trans), rtol=1e-5)
    y_pred = full(EMISSIONS, mask=MASK)
    for backwards in (False, True):
        losses = [numpy(layer.basic_loss(TAGS, y_pred, backwards)) for layer in (low, full)]
        assert_allclose(*losses, rtol=1e-5)
    assert_array_equal(numpy(low.decode(y_pred)), numpy(full.decode(y_pred)))
    assert full.l_trans is None and full.r_trans is None


@pytest.mark.once
def test_unknown_tags_cost_nothing_and_tell_their_neighbors_nothing():
    layer = built(transitions=TRANSITIONS)
    tags = np.where(random.random(TAGS.shape) < 0.4, -1, TAGS)
    y_pred = layer(EMISSIONS, mask=MASK)
    expected_losses = -expected(EMISSIONS, tags, MASK, TRANSITIONS)[:, 2]
    assert_allclose(numpy(layer.sparse_loss(tags, y_pred)), expected_losses, rtol=1e-4, atol=1e-6)
    assert_array_equal(numpy(layer.sparse_loss(np.full((5, 5), -100), y_pred)), np.zeros(5))
    zero_rows = np.where(tags[:, :, None] < 0, 0.0, np.eye(4)[tags]).astype("float32")
    assert_allclose(numpy(layer.dense_loss(zero_rows, y_pred)), expected_losses, rtol=1e-4, atol=1e-6)


@pytest.mark.once
def test_each_direction_is_a_likelihood_over_the_known_positions():
    layer = built(transitions=TRANSITIONS)
    paths = np.array(list(itertools.product(range(4), repeat=3)))
    tags = np.insert(paths, 2, -1, axis=1)
    emissions = np.repeat(EMISSIONS[:1, :4], len(paths), axis=0)
    for backwards in (False, True):
        for targets, rows in ((tags, emissions), (paths, emissions[:, :3])):
            assert_allclose(np.exp(-numpy(layer.basic_loss(targets, rows, backwards))).sum(), 1.0, rtol=1e-5)


def test_the_equal_crf_scores_every_path_as_the_model_does_and_decodes_it():
    layer = built(transitions=TRANSITIONS)
    emissions, mask = EMISSIONS[:, :4], MASK[:, :4]
    y_pred = layer(emissions, mask=mask)
    decoded, marginals = numpy(layer.decode(y_pred)), numpy(layer.marginals(y_pred))
    folded, transitions = (numpy(x).astype("float64") for x in equal_crf(emissions, mask, TRANSITIONS))
    nothing = np.zeros(4)
    for e, real, f, tags, shares in zip(emissions, mask, folded, decoded, marginals, strict=True):
        paths = np.array(list(itertools.product(range(4), repeat=int(real.sum()))), int)
        truth = np.array([reversed_too(e[real].astype("float64"), p.tolist(), TRANSITIONS)[2] for p in paths])
        scores = [oracles.score(f[real], tuple(path), transitions, nothing, nothing) for path in paths.tolist()]
        assert_allclose(scores, truth, rtol=1e-4, atol=1e-5)
        assert_array_equal(tags[real], paths[np.argmax(truth)])
        assert (tags[~real] == -1).all() and (shares[~real] == 0).all()
        weights = np.exp(truth) / np.exp(truth).sum()
        each = [[weights[paths[:, t] == tag].sum() for tag in range(4)] for t in range(int(real.sum()))]
        assert_allclose(shares[real], np.reshape(each, (-1, 4)), atol=1e-5)


def enumerated(emissions, mask):
    """For each sentence its paths, best first, with the model's log probability of each."""
    sentences = []
    for rows, real in zip(emissions.astype("float64"), mask, strict=True):
        paths = itertools.product(range(4), repeat=int(real.sum()))
        scored = [(path, reversed_too(rows[real], list(path), TRANSITIONS.astype("float64"))[2]) for path in paths]
        sentences.append(sorted(scored, key=lambda item: -item[1]))
    return sentences


def test_weights_of_another_rank_are_refused():
    low, full = built(hidden_dim=4, lr_multiplier=10), built(lr_multiplier=10)
    before, store = numpy(full.trans), {}
    low.save_own_variables(store)
    with pytest.raises(ValueError, match="expected 1 variables, but received 2 variables"):
        full.load_own_variables(store)
    assert_array_equal(numpy(full.trans), before)


@pytest.mark.once
@pytest.mark.parametrize("hidden_dim", few(4, None))
def test_the_k_best_entropy_and_spans_are_those_of_the_enumerated_paths(hidden_dim):
    layer = built(lr_multiplier=10, hidden_dim=hidden_dim, transitions=TRANSITIONS)
    if hidden_dim is not None:
        layer._r_trans.assign(np.eye(4) / 10)
    emissions, mask, spans = EMISSIONS[:, :4], MASK[:, :4], [[(0, 4)], [(0, 1), (1, 3)], [(2, 4)], [(1, 4)], []]
    y_pred = layer(emissions, mask=mask)
    tags, scores = map(numpy, layer.top_k(y_pred, 3))
    entropies, found = numpy(layer.entropy(y_pred)), layer.span_confidence(y_pred, spans, scheme=bmes())
    for row, (real, paths) in enumerate(zip(mask, enumerated(emissions, mask), strict=True)):
        best = paths[:3]
        assert_allclose(scores[row, : len(best)], [score for _, score in best], rtol=1e-4, atol=1e-5)
        assert [tuple(tags[row, n][real]) for n in range(len(best))] == [path for path, _ in best]
        weights = np.exp([score for _, score in paths])
        shares = weights / weights.sum()
        assert_allclose(entropies[row], -(shares * np.log(shares)).sum(), rtol=1e-4, atol=1e-5)
        at = np.cumsum(real) - real  # the number of real positions before each
        for (start, end), probability in zip(spans[row], found[row], strict=True):
            first, length = at[start], real[start:end].sum()
            holds = [path[first : first + length] == tuple(bmes().encode([(0, length)], length)) for path, _ in paths]
            assert_allclose(probability, shares[np.array(holds)].sum(), rtol=1e-4, atol=1e-6)


@pytest.mark.once
def test_viterbi_accuracy_is_a_compiled_metric_of_this_layer_too():
    layer = MaximumEntropyMarkovModel(lr_multiplier=10, hidden_dim=2)
    model = keras.Sequential([keras.Input((None, 4)), layer])
    model.compile(keras.optimizers.SGD(0.0), loss=layer.sparse_loss, metrics=[layer.viterbi_accuracy])
    layer._trans.assign(random.normal(size=(4, 2)))
    shares = [(numpy(layer.decode(EMISSIONS)) == TAGS).mean()]
    shares += model.fit(EMISSIONS, TAGS, verbose=0).history["viterbi_accuracy"]
    shares += [model.evaluate(EMISSIONS, TAGS, verbose=0)[1], float(layer.viterbi_accuracy(TAGS, EMISSIONS))]
    assert_allclose(shares, shares[0], rtol=1e-6)


@settings(max_examples=12)
@given(
    st.sampled_from([(2, 1), (3, 6)] if backend_name() == "torch" else [(5, 5)]),
    st.sampled_from([1e-2, 1.0, 1e2, 1e4]),
    st.integers(0, 10**6),
)
def test_any_mask_and_size_of_scores(shape, scale, seed):
    draw = np.random.default_rng(seed)
    emissions = (scale * draw.normal(size=(*shape, 4))).astype("float32")
    transitions = (scale * draw.normal(size=(4, 4))).astype("float32")
    mask, tags = draw.random(shape) < 0.7, draw.integers(-1, 4, shape)
    layer = built(transitions=transitions)
    y_pred = layer(emissions, mask=mask)
    truth = -expected(emissions, tags, mask, transitions)[:, 2]
    assert_allclose(numpy(layer.sparse_loss(tags, y_pred)), truth, rtol=2e-4, atol=2e-6 * max(1, scale))
    found = numpy(layer.decode(y_pred))
    assert_array_equal(found == -1, ~mask)
    score = expected(emissions, found, mask, transitions)[:, 2]
    for other in draw.integers(0, 4, (20, *shape)):
        assert (expected(emissions, other, mask, transitions)[:, 2] <= score + 1e-4 * max(1, scale)).all()


@pytest.mark.once
@pytest.mark.parametrize("tags", [1, 7])
def test_the_loss_is_by_definition_for_any_number_of_tags(tags):
    transitions, emissions = (random.normal(size=shape).astype("float32") for shape in ((tags, tags), (2, 3, tags)))
    targets, mask = random.integers(0, tags, (2, 3)), np.array([[1, 1, 1], [0, 1, 1]], bool)
    layer = built(tags, transitions)
    losses = layer.sparse_loss(targets, np.where(mask[:, :, None], emissions, -np.inf))
    assert_allclose(numpy(losses), -expected(emissions, targets, mask, transitions)[:, 2], rtol=1e-4, atol=1e-6)


def test_gradients_are_those_of_the_definition_eager_and_compiled():
    layer = built(transitions=TRANSITIONS)
    tags = np.where(random.random(TAGS.shape) < 0.3, -1, TAGS)

    def loss(emissions):
        return ops.sum(layer.sparse_loss(tags, ops.where(ops.convert_to_tensor(MASK)[:, :, None], emissions, -np.inf)))

    value, (gradient,) = value_and_gradients(loss, EMISSIONS)
    assert_allclose(numpy(compiled(loss)(ops.convert_to_tensor(EMISSIONS))), value, rtol=1e-5)
    for at in itertools.product(range(5), range(5), range(4)):
        up, down = (EMISSIONS.astype("float64") for _ in range(2))
        up[at], down[at] = up[at] + 1e-5, down[at] - 1e-5
        slope = (expected(down, tags, MASK, TRANSITIONS) - expected(up, tags, MASK, TRANSITIONS))[:, 2].sum() / 2e-5
        assert_allclose(gradient[at], slope, atol=1e-4)


@pytest.mark.once
def test_one_tag_at_minus_infinity_masks_nothing():
    layer = built(transitions=TRANSITIONS)
    emissions = EMISSIONS.copy()
    emissions[:, 2, 1] = -np.inf
    assert (numpy(layer.decode(emissions)) != -1).all()
    assert (numpy(layer.decode(emissions))[:, 2] != 1).all()
    assert_array_equal(numpy(layer.marginals(emissions))[:, 2, 1], np.zeros(5))
    tags = np.where(TAGS == 1, 0, TAGS)
    value, (gradient,) = value_and_gradients(lambda e: ops.sum(layer.sparse_loss(tags, e)), emissions)
    assert np.isfinite(value) and np.isfinite(gradient).all() and (gradient[:, 2, 1] == 0).all()


@pytest.mark.once
@pytest.mark.parametrize("hidden_dim", few(2, None))
@pytest.mark.parametrize("optimizer", few("Adam", "SGD"))
def test_the_multiplier_is_exactly_k_times_the_rate_of_the_effective_scores(optimizer, hidden_dim):
    def moved(k):
        constant = keras.initializers.RandomNormal(seed=3)
        layer = built(lr_multiplier=k, hidden_dim=hidden_dim, transition_initializer=constant)
        read = (lambda: layer.trans) if hidden_dim is None else (lambda: layer.l_trans)
        model = keras.Sequential([keras.Input((None, 4)), layer])
        settings = {"epsilon": 1e-12} if optimizer == "Adam" else {}
        model.compile(getattr(keras.optimizers, optimizer)(1e-4, **settings), loss=layer.sparse_loss)
        before = numpy(read()).astype("float64")
        model.fit(EMISSIONS, TAGS, verbose=0, shuffle=False, batch_size=5)
        return numpy(read()) - before

    assert_allclose(moved(100), 100 * moved(1), rtol=1e-2, atol=1e-5)


@pytest.mark.once
@pytest.mark.parametrize("hidden_dim", few(2, None))
def test_fit_learns_and_a_loaded_model_trains_on_identically(tmp_path, hidden_dim):
    set_seeds(3)
    inputs = keras.Input((None,), dtype="int32")
    layer = MaximumEntropyMarkovModel(lr_multiplier=10, hidden_dim=hidden_dim, name="MEMM")
    x = keras.layers.Embedding(20, 8, mask_zero=True)(inputs)
    model = keras.Model(inputs, layer(keras.layers.Dense(4)(x)))
    words = random.integers(1, 20, (16, 6))
    words[::2, 4:] = 0
    model.compile(keras.optimizers.Adam(0.05), loss=layer.sparse_loss, metrics=[layer.sparse_accuracy])
    losses = model.fit(words, words % 4, epochs=15, batch_size=8, verbose=0).history["loss"]
    assert losses[-1] < 0.3 * losses[0]
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    settings = {"epochs": 3, "batch_size": 8, "verbose": 0, "shuffle": False}
    on, again = (m.fit(words, words % 4, **settings).history["loss"] for m in (model, loaded))
    assert_allclose(again, on, rtol=1e-6)
    assert loaded.get_layer("MEMM").hidden_dim == hidden_dim
    tagger = keras.Model(model.input, ViterbiTags(layer)(model.output))
    assert_array_equal(tagger.predict(words, verbose=0), numpy(layer.decode(model.predict(words, verbose=0))))


def loss_of(layer, tags):
    return layer.sparse_loss(tags, EMISSIONS)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: built(hidden_dim=0), "must be at least 1, or None. Received: hidden_dim=0"),
        (lambda: built(lr_multiplier=-1), "Received: lr_multiplier=-1"),
        (lambda: MaximumEntropyMarkovModel(hidden_dim=2).build((None, 3)), r"\(batch, time, tags\). Received: .*3\)"),
        (lambda: loss_of(built(), TAGS[0]), r"shape \(batch, time\). Received: shape=\(5,\)"),
    ],
)
def test_what_cannot_work_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_it_has_no_scores_for_first_and_last_tags():
    with pytest.raises(TypeError, match="`MaximumEntropyMarkovModel` has no argument `use_boundary`"):
        MaximumEntropyMarkovModel(use_boundary=True)


BERT4KERAS = """
from bert4keras.backend import K
from bert4keras.layers import MaximumEntropyMarkovModel
for hidden_dim in (None, 2):
    layer = MaximumEntropyMarkovModel(lr_multiplier=10, hidden_dim=hidden_dim)
    layer.build((None, None, 4))
    layer.set_weights([x / 10 for x in ([inputs["full"]] if hidden_dim is None else [inputs["left"], inputs["right"]])])
    y_pred, y_true = K.constant(inputs["y_pred"]), K.constant(inputs["y_true"])
    name = str(hidden_dim)
    outputs["loss_" + name] = K.eval(layer.sparse_loss(y_true, y_pred))[None]
    outputs["forward_" + name] = K.eval(layer.basic_loss(y_true, y_pred))[None]
    outputs["backward_" + name] = K.eval(layer.basic_loss(y_true, y_pred, True))[None]
"""


@pytest.mark.once
def test_losses_are_bert4keras_numbers_per_token(bert4keras_python):  # noqa: F811
    left, right = (random.normal(size=(4, 2)).astype("float32") for _ in range(2))
    mask = np.arange(5) < np.array([[5], [3], [1], [4], [2]])
    y_pred = np.where(mask[:, :, None], EMISSIONS, -np.inf).astype("float32")
    theirs = bert4keras_python(BERT4KERAS, full=TRANSITIONS, left=left, right=right, y_pred=y_pred, y_true=TAGS)
    low = built(transitions=left, lr_multiplier=10, hidden_dim=2)
    low._r_trans.assign(right / 10)
    for layer in (built(transitions=TRANSITIONS, lr_multiplier=10), low):
        ours = {
            "loss": layer.sparse_loss(TAGS, y_pred),
            "forward": layer.basic_loss(TAGS, y_pred),
            "backward": layer.basic_loss(TAGS, y_pred, go_backwards=True),
        }
        for name, losses in ours.items():
            per_token = numpy(losses).sum() / mask.sum()
            assert_allclose(per_token, theirs[f"{name}_{layer.hidden_dim}"][0], rtol=1e-5)
