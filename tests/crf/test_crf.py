"""kcrf.crf against the enumeration of all paths, and against itself."""

import importlib.util
import itertools
import math

import numpy as np
import oracles
import pytest
from chain_cases import MASKS, Case, check_against_oracle, check_sentences_without_best_path, close, numpy
from conftest import few
from gradients import compiled, value_and_gradients
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from kcrf import crf
from kcrf.backend import backend_name, ops
from kcrf.crf import blocks, chain, forward_backward
from kcrf.tags import bio, bioes, bmes

BACKENDS = ["torch", "tensorflow", "jax"]


def recursions(*marks):
    """Values of the fixture `recursion`. JAX computes in blocks on an accelerator alone, and torch has operators."""
    others = ["pairs"] if backend_name() == "jax" else ["blocks", "pairs"]
    usual = ["operators", "loop"] if backend_name() == "torch" else ["loop"]
    return [*usual, *(pytest.param(other, marks=marks) for other in others)]


in_blocks_too = pytest.mark.parametrize("recursion", recursions(), indirect=True)


def fresh_functions():
    """A second copy of `kcrf.crf.functions`, whose graphs are not traced yet."""
    spec = importlib.util.find_spec("kcrf.crf.functions")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    names = [*crf.__all__, "log_sums_onward"]
    return {name: getattr(module, name) for name in names if hasattr(crf.functions, name)}


@pytest.fixture(autouse=True, scope="module", params=recursions(pytest.mark.once))
def recursion(request):
    """Tests run in operators, in one loop over time, in blocks whatever the size, and in those of an accelerator."""
    shortest = math.inf if request.param == "loop" else 0
    limits = {"sum": shortest, "max": shortest}, math.inf
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "LIMITS", {**blocks.LIMITS, "operations": limits, "accelerator": limits})
        if request.param != "operators":
            for module in (chain, forward_backward):
                patch.setattr(module, "kernels_for", lambda emissions: None)
        if request.param == "pairs":
            patch.setattr(blocks, "_POSITIONS", 2)
            patch.setattr(blocks, "loop_target", lambda: "accelerator")
        for name, function in fresh_functions().items():
            patch.setattr(crf if name in crf.__all__ else crf.functions, name, function)
        yield request.param


@in_blocks_too
@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize(("time", "tags"), few((5, 3), (1, 1), (1, 3), (2, 2), (4, 1)))
def test_everything_equals_the_enumeration_of_paths_under_every_mask(mask, time, tags):
    check_against_oracle(Case(time * 10 + tags, time, tags, mask))


@pytest.mark.once
@pytest.mark.parametrize(("time", "tags"), few((2, 65), (3, 13)))  # steps are computed by size
def test_tables_of_any_size_give_the_enumerated_values(time, tags):
    check_against_oracle(Case(tags, time, tags, "none", boundary=True))


@in_blocks_too
@pytest.mark.parametrize("scale", [1e-3, 30.0, 1e4])
@pytest.mark.parametrize("forbidden", [0, 2])
def test_scores_of_any_size_give_the_enumerated_values(scale, forbidden):
    check_against_oracle(Case(7, 5, 3, "holes", scale, forbidden=forbidden), scale)


def test_mild_scores_beside_a_steep_transition_are_summed_on_logarithms():
    case = Case(43, 5, 3, "holes")
    case.transitions[0, 1] = -40.0
    check_against_oracle(case)


FREE = backend_name() == "torch"  # the others compile each shape for seconds: there it is that of the tests above


@in_blocks_too
@settings(max_examples=25 if FREE else 12)
@example(seed=10_000, time=5, tags=3, mask="all masked", scale=1e4, boundary=True)  # x - logsumexp(x) lost three digits
@given(
    seed=st.integers(0, 10**6),
    time=st.integers(1, 5) if FREE else st.just(5),
    tags=st.integers(1, 4) if FREE else st.just(3),
    mask=st.sampled_from(sorted(MASKS)),
    scale=st.sampled_from([0.0, 0.1, 1.0, 10.0, 100.0, 1e4]),
    boundary=st.booleans() if FREE else st.just(True),
)
def test_any_drawn_problem_equals_the_enumeration(seed, time, tags, mask, scale, boundary):
    check_against_oracle(Case(seed, time, tags, mask, scale, boundary), scale)


@in_blocks_too
@pytest.mark.parametrize("scheme", few(bio(["X"]), bmes(), bioes(["X"])), ids=lambda scheme: scheme.name)
@pytest.mark.parametrize("scale", [1.0, 60.0, 1e4])
def test_constraints_hold_whatever_the_emissions_say(scheme, scale):
    check_against_oracle(Case(3, 5, len(scheme), "right", scale, scheme=scheme), scale)


def test_a_tag_of_vanishing_probability_that_alone_can_go_on_is_not_lost():
    # Tag 1 leads by 60 + 60 nats, then only tag 0, which never meets tag 1, gains 400: beyond a float's reach.
    emissions = np.array([[[0, 60], [0, 60], [400, 0], [0, 60]]], "float32")
    transitions = np.array([[0, crf.FORBIDDEN], [crf.FORBIDDEN, 0]], "float32")
    assert numpy(crf.viterbi(emissions, None, transitions)).tolist() == [[0, 0, 0, 0]]
    close(numpy(crf.log_partition(emissions, None, transitions)), [400.0])
    assert_allclose(numpy(crf.marginals(emissions, None, transitions))[0], [[1, 0]] * 4, atol=1e-6)


@pytest.mark.parametrize("gap", [crf.FORBIDDEN, -150.0])
def test_a_path_that_sinks_below_a_float_at_both_ends_is_not_lost(gap):
    # Tag 0 is 120 nats behind when it starts to gain and falls as far again: each recursion alone has lost it by then.
    emissions = np.array([[[0, 60]] * 2 + [[80, 0]] * 5 + [[0, 60]] * 2], "float32")
    transitions = np.array([[0, gap], [gap, 0]], "float32")
    close(numpy(crf.log_partition(emissions, None, transitions)), [400.0])


@pytest.mark.once
def test_a_tag_is_not_lost_where_all_that_can_be_reached_is_unlikely():
    # Tag 2 has the best emission but is out of reach: beside it, both others are next to nothing, one more than a float
    # can hold, and that one gains 400.
    emissions = np.array([[[0, 0, 0], [-46, -100, 0], [0, 400, 0]]], "float32")
    transitions = np.full((3, 3), crf.FORBIDDEN, "float32")
    np.fill_diagonal(transitions, 0)
    start = np.array([0, 0, crf.FORBIDDEN], "float32")
    close(numpy(crf.log_partition(emissions, None, transitions, start)), [300.0])
    assert_allclose(numpy(crf.marginals(emissions, None, transitions, start))[0], [[0, 1, 0]] * 3, atol=1e-6)


@pytest.mark.once
def test_a_sentence_that_has_no_legal_path_has_numbers_and_leaves_its_neighbors_alone():
    case = Case(3, 4, 2, "right", boundary=True, batch=2)
    case.mask[:] = [[True, False, False, False], [True] * 4]  # the first one takes no step, and all steps are forbidden
    case.transitions[0], case.start[1] = crf.FORBIDDEN, crf.FORBIDDEN  # out of tag 0, which alone may be the first
    truth = case.oracle()
    close(numpy(crf.log_partition(case.emissions, *case.rest))[0], truth[0]["log_z"])
    assert_allclose(numpy(crf.log_partition(case.emissions, *case.rest))[1], truth[1]["log_z"], rtol=1e-6)
    tags = numpy(crf.marginals(case.emissions, *case.rest))
    assert_allclose(tags[0], truth[0]["marginals"], atol=1e-4)
    assert np.isfinite(tags[1]).all()  # no more: beside -1e9 a float32 holds no digits of the emissions


@in_blocks_too
@pytest.mark.parametrize("scale", [2.0, 100.0])  # on probabilities, on logarithms
def test_counts_of_long_sentences_equal_a_recursion_in_float64(scale):
    random = np.random.default_rng(3)
    emissions, transitions = random.normal(size=(400, 5)) * scale, random.normal(size=(5, 5)) * scale
    left, right = np.zeros((400, 5)), np.zeros((400, 5))
    for t in range(1, 400):
        left[t] = np.logaddexp.reduce((left[t - 1] + emissions[t - 1])[:, None] + transitions, axis=0)
        right[-t - 1] = np.logaddexp.reduce(transitions + right[-t] + emissions[-t], axis=1)
    log_z = np.logaddexp.reduce(left[-1] + emissions[-1])
    after = emissions + right
    steps = np.exp((left + emissions)[:-1, :, None] + transitions + after[1:, None, :] - log_z).sum(axis=0)
    arrays = emissions[None].astype("float32"), None, transitions.astype("float32")
    found = list(map(numpy, crf.expected_counts(*arrays)))
    assert_allclose(found[0][0], np.exp(left + after - log_z), atol=2e-3 if scale > 10 else 1e-5)
    assert_allclose(found[1][0], steps, rtol=1e-4, atol=2e-2 if scale > 10 else 1e-3)
    assert_allclose(found[0].sum(axis=-1), 1.0, atol=1e-4 if scale > 10 else 1e-6)


@pytest.mark.once
@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("time", [1, 2, 3, 4, 7, 9, 10, 26])  # the last block is full, or not
def test_any_length_gives_the_value_and_the_best_path_of_a_recursion_in_float64(time, mask):
    case = Case(time, time, 4, mask, scale=3.0)
    log_z, best = (numpy(f(case.emissions, *case.rest)) for f in (crf.log_partition, crf.viterbi))
    tags, _ = map(numpy, crf.expected_counts(case.emissions, *case.rest))
    transitions, start, end = (x.astype("float64") for x in case.rest[1:])
    for b, real in enumerate(case.mask):
        if not real.any():
            assert log_z[b] == 0 and (best[b] == -1).all() and (tags[b] == 0).all()
            continue
        rows = case.emissions[b, real].astype("float64")
        total, top, right = start + rows[0], start + rows[0], end
        left = [total]
        for row in rows[1:]:
            total = np.logaddexp.reduce(total[:, None] + transitions, axis=0) + row
            top = (top[:, None] + transitions).max(axis=0) + row
            left.append(total)
        expected = np.logaddexp.reduce(total + end)
        close(log_z[b], expected, 10.0)
        close(oracles.score(rows, list(best[b][real]), transitions, start, end), (top + end).max(), 10.0)
        for t in reversed(range(len(rows))):
            assert_allclose(tags[b, real][t], np.exp(left[t] + right - expected), atol=1e-5)
            right = np.logaddexp.reduce(transitions + rows[t] + right, axis=1)


@pytest.mark.once
def test_where_paths_tie_the_smaller_tag_is_taken_from_the_right():
    random = np.random.default_rng(0)
    for _ in range(20):
        emissions = random.integers(-1, 2, (8, 16, 4)).astype("float32")
        transitions = np.where(random.random((4, 4)) < 0.5, crf.FORBIDDEN, 0).astype("float32")
        transitions[np.arange(4), [1, 2, 3, 0]] = 0  # each tag may follow one at least
        tops = [emissions[:, 0].astype("float64")]
        for t in range(1, 16):
            tops.append((tops[-1][:, :, None] + transitions).max(axis=1) + emissions[:, t])
        path = [tops.pop().argmax(axis=1)]
        while tops:
            path.insert(0, (tops.pop() + transitions.T[path[0]]).argmax(axis=1))
        assert_array_equal(numpy(crf.viterbi(emissions, None, transitions)), np.stack(path, axis=1))


@pytest.mark.once
def test_tags_out_of_reach_that_are_likelier_by_far_change_nothing():
    # Tags 2 and 3 are 40 nats better everywhere, 160 in a block of four, but nothing leads to them.
    random = np.random.default_rng(11)
    emissions = random.normal(size=(2, 16, 4)).astype("float32")
    transitions = random.normal(size=(4, 4)).astype("float32")
    transitions[:2, 2:] = transitions[2:, :2] = crf.FORBIDDEN
    start = np.array([0, 0, crf.FORBIDDEN, crf.FORBIDDEN], "float32")
    alone = (None, transitions[:2, :2])
    worse = emissions - np.array([40, 40, 0, 0], "float32")
    for function, offset in ((crf.log_partition, 640), (crf.entropy, 0)):
        expected = numpy(function(emissions[..., :2], *alone))
        assert_allclose(numpy(function(worse, None, transitions, start)) + offset, expected, atol=2e-3)
    found = numpy(crf.marginals(worse, None, transitions, start))
    assert_allclose(found[..., :2], numpy(crf.marginals(emissions[..., :2], *alone)), atol=1e-4)
    expected = numpy(crf.viterbi(emissions[..., :2], *alone))
    assert_array_equal(numpy(crf.viterbi(worse, None, transitions, start)), expected)


@pytest.mark.once
def test_a_constant_added_to_every_score_costs_no_digits():
    random = np.random.default_rng(5)
    emissions = (random.integers(-128, 128, (2, 512, 4)) / 64).astype("float32")  # exact with 8192 added, too
    transitions, tags = random.normal(size=(4, 4)).astype("float32"), random.integers(0, 4, (2, 512))
    plain = numpy(crf.log_likelihood(emissions, tags, None, transitions))
    assert_allclose(numpy(crf.log_likelihood(emissions + 8192, tags, None, transitions)), plain, rtol=1e-5)


def test_ties_go_to_the_smaller_tag():
    nothing = np.zeros((3, 3), "float32")
    assert (numpy(crf.viterbi(np.zeros((2, 4, 3), "float32"), None, nothing)) == 0).all()


@pytest.mark.once
def test_chains_of_different_numbers_of_tags_live_in_one_process():
    for time, tags in ((4, 3), (5, 3), (4, 5), (6, 2)):
        zeros = np.zeros((2, time, tags), "float32")
        close(numpy(crf.log_partition(zeros, None, zeros[0, :1].T * zeros[0, :1])), [time * np.log(tags)] * 2)


@in_blocks_too
def test_the_gradient_of_the_loss_is_expected_minus_observed_counts():
    case = Case(11, 5, 3, "holes")
    case.tags = np.where(case.mask, case.tags, 0)
    weights = np.array([1.0, 2.0, -0.5], "float32")

    def loss(emissions, transitions, start, end):
        return -ops.sum(
            ops.convert_to_tensor(weights)
            * crf.log_likelihood(emissions, case.tags, case.mask, transitions, start, end)
        )

    _, found = value_and_gradients(loss, case.emissions, case.transitions, case.start, case.end)
    emissions, transitions, start, end = (np.zeros(g.shape) for g in found)
    for b, truth in enumerate(case.oracle()):
        at = np.flatnonzero(case.mask[b])
        gold = np.zeros_like(truth["marginals"])
        gold[at, case.tags[b, at]] = 1
        emissions[b] = weights[b] * (truth["marginals"] - gold)
        path = case.tags[b, at]
        transitions += weights[b] * truth["steps"]
        for i, j in itertools.pairwise(path):
            transitions[i, j] -= weights[b]
        start += weights[b] * (truth["marginals"] - gold)[at[0]]
        end += weights[b] * (truth["marginals"] - gold)[at[-1]]
    for actual, expected in zip(found, (emissions, transitions, start, end), strict=True):
        assert_allclose(actual, expected, atol=1e-5)


def cross_entropy(teacher, student):
    """Of each sentence: the sum over all paths of -p(path) log q(path)."""
    found = []
    for p, q in zip(teacher.oracle(), student.oracle(), strict=True):
        scores = dict(q["paths"])
        found.append(-sum(np.exp(value - p["log_z"]) * (scores[path] - q["log_z"]) for path, value in p["paths"]))
    return found


def teacher_and_student(mask, time=4, tags=3, scale=1.0):
    """Two cases with the same mask."""
    teacher, student = Case(21, time, tags, mask, scale), Case(22, time, tags, mask, scale)
    teacher.mask = student.mask
    return teacher, student


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize(("time", "tags"), few((4, 3), (1, 1), (1, 3), (5, 2)))
def test_distillation_is_the_cross_entropy_over_all_paths(mask, time, tags):
    teacher, student = teacher_and_student(mask, time, tags)
    tags, steps = crf.expected_counts(teacher.emissions, *teacher.rest)
    tags = np.where(teacher.mask[:, :, None], numpy(tags), 7.0)  # what is at masked positions is ignored
    found = numpy(crf.distillation_loss(student.emissions, tags, steps, *student.rest))
    close(found, cross_entropy(teacher, student))
    own = crf.expected_counts(student.emissions, *student.rest)
    entropies = [truth["entropy"] for truth in student.oracle()]
    close(numpy(crf.distillation_loss(student.emissions, *own, *student.rest)), entropies)


@pytest.mark.parametrize("scheme", [None, bio(["X"])], ids=["free", "bio"])
@pytest.mark.parametrize("scale", [1e-3, 30.0, 1e4])
def test_distillation_of_scores_of_any_size_and_of_forbidden_ones_is_finite_and_exact(scheme, scale):
    teacher, student = (Case(seed, 4, 3, "none", scale, scheme=scheme) for seed in (21, 22))
    counts = crf.expected_counts(teacher.emissions, *teacher.rest)
    found = numpy(crf.distillation_loss(student.emissions, *counts, *student.rest))
    close(found, cross_entropy(teacher, student), scale)


def test_the_gradient_of_distillation_is_the_difference_of_the_counts_and_zero_where_both_are_equal():
    teacher, student = teacher_and_student("holes")
    weights = np.array([1.0, 2.0, -0.5], "float32")

    def gradients(tags, steps):
        def loss(emissions, transitions, start, end):
            losses = crf.distillation_loss(emissions, tags, steps, student.mask, transitions, start, end)
            return ops.sum(ops.convert_to_tensor(weights) * losses)

        return value_and_gradients(loss, student.emissions, student.transitions, student.start, student.end)[1]

    for gradient in gradients(*map(numpy, crf.expected_counts(student.emissions, *student.rest))):
        assert_allclose(gradient, 0.0, atol=2e-6)
    found = gradients(*map(numpy, crf.expected_counts(teacher.emissions, *teacher.rest)))
    expected = [np.zeros(g.shape) for g in found]
    for b, (p, q) in enumerate(zip(teacher.oracle(), student.oracle(), strict=True)):
        first, *_, last = [*np.flatnonzero(student.mask[b])[[0, -1]]]
        tags = weights[b] * (q["marginals"] - p["marginals"])
        for total, share in zip(expected, (None, weights[b] * (q["steps"] - p["steps"]), tags[first], tags[last])):
            total += 0 if share is None else share
        expected[0][b] = tags
    for actual, wanted in zip(found, expected, strict=True):
        assert_allclose(actual, wanted, atol=1e-5)


def test_distillation_accepts_a_batch_of_nothing():
    for shape in ((0, 4), (2, 0)):
        loss = crf.distillation_loss(
            np.zeros((*shape, 3)), np.zeros((*shape, 3)), np.zeros((shape[0], 3, 3)), None, np.zeros((3, 3))
        )
        assert numpy(loss).tolist() == [0.0] * shape[0]


@pytest.mark.once
@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("unknown", [False, True])
def test_gradients_equal_finite_differences_in_float64(mask, unknown):
    case = Case(5, 4, 2, mask, batch=2)
    if unknown:
        case.tags[:, 1::2] = -1

    def loss(emissions, transitions, start, end):
        return -ops.sum(crf.log_likelihood(emissions, case.tags, case.mask, transitions, start, end))

    arrays = [case.emissions, case.transitions, case.start, case.end]
    _, found = value_and_gradients(loss, *arrays)

    def exact(arrays):
        return -sum(
            oracles.log_likelihood(e, t, m, *arrays[1:])
            for e, t, m in zip(arrays[0], case.tags, case.mask, strict=True)
        )

    for which, gradient in enumerate(found):
        for index in np.ndindex(gradient.shape):
            moved = []
            for step in (1e-5, -1e-5):
                wide = [x.astype("float64") for x in arrays]
                wide[which][index] += step
                moved.append(exact(wide))
            assert_allclose(gradient[index], (moved[0] - moved[1]) / 2e-5, atol=2e-5)


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("scheme", [None, bio(["X"])], ids=["free", "bio"])
@pytest.mark.parametrize("boundary", few(True, False))
def test_the_probabilities_of_all_tag_sequences_sum_to_one(mask, scheme, boundary):
    case = Case(2, 4, 3, mask, boundary=boundary, scheme=scheme)
    for b in range(len(case.mask)):
        rows = case.mask[b].sum()
        paths = list(itertools.product(range(3), repeat=int(rows)))
        tags = np.zeros((81, 4), "int32")  # of one shape, whatever the mask: it is compiled once
        tags[: len(paths), case.mask[b]] = paths
        emissions, masks = (np.repeat(x[b : b + 1], 81, axis=0) for x in (case.emissions, case.mask))
        log = crf.log_likelihood(emissions, tags, masks, case.transitions, case.start, case.end)
        close(np.exp(numpy(log)[: len(paths)].astype("float64")).sum(), 1.0)


def test_masked_positions_may_be_cut_out_and_may_hold_anything():
    case = Case(13, 6, 3, "holes")
    case.mask[0] = [False, True, False, False, True, True]
    whole = numpy(crf.log_likelihood(case.emissions, case.tags, *case.rest))
    cut = (case.emissions[:1, case.mask[0]], case.tags[:1, case.mask[0]], None, *case.rest[1:])
    close(whole[:1], numpy(crf.log_likelihood(*cut)))
    for junk in (np.nan, np.inf, -np.inf, 1e30):
        emissions = np.where(case.mask[:, :, None], case.emissions, np.float32(junk))
        tags = np.where(case.mask, case.tags, 99)
        close(numpy(crf.log_likelihood(emissions, tags, *case.rest)), whole)
        assert_array_equal(numpy(crf.viterbi(emissions, *case.rest)), numpy(crf.viterbi(case.emissions, *case.rest)))


@pytest.mark.parametrize("number", [np.nan, np.inf])
def test_a_sentence_without_a_best_path_has_no_tags(number):
    check_sentences_without_best_path(number)
    case = Case(19, 5, 3, "right")
    case.emissions[1, 0, 2] = number
    assert (numpy(crf.top_k_paths(case.emissions, 2, *case.rest)[0])[1] == -1).all()


@pytest.mark.once
def test_a_batch_equals_its_sentences_one_by_one():
    case = Case(17, 6, 4, "right")
    whole = numpy(crf.log_likelihood(case.emissions, case.tags, *case.rest))
    best = numpy(crf.viterbi(case.emissions, *case.rest))
    for b in range(3):
        one = slice(b, b + 1)
        rest = (case.mask[one], *case.rest[1:])
        close(numpy(crf.log_likelihood(case.emissions[one], case.tags[one], *rest)), whole[one])
        assert_array_equal(numpy(crf.viterbi(case.emissions[one], *rest)), best[one])


@pytest.mark.once
def test_renaming_the_tags_renames_the_results():
    case, order = Case(19, 5, 4, "holes"), [2, 0, 3, 1]
    renamed = (case.mask, case.transitions[np.ix_(order, order)], case.start[order], case.end[order])
    marginals = numpy(crf.marginals(case.emissions, *case.rest))
    assert_allclose(numpy(crf.marginals(case.emissions[..., order], *renamed)), marginals[..., order], atol=1e-5)
    best = numpy(crf.viterbi(case.emissions[..., order], *renamed))
    assert_array_equal(np.where(best < 0, -1, np.array(order)[best]), numpy(crf.viterbi(case.emissions, *case.rest)))


@pytest.mark.once
def test_marginals_are_the_derivative_of_log_z():
    case = Case(23, 5, 3, "holes")
    _, (found,) = value_and_gradients(lambda e: ops.sum(crf.log_partition(e, *case.rest)), case.emissions)
    assert_allclose(numpy(crf.marginals(case.emissions, *case.rest)), found, atol=1e-5)


@pytest.mark.parametrize("mask", MASKS)
def test_sums_onward_give_each_tag_given_the_tag_before(mask):
    case = Case(7, 4, 3, mask, scale=3.0)
    sums = numpy(crf.functions.log_sums_onward(case.emissions, *case.rest))
    for b, truth in enumerate(case.oracle()):
        real = np.flatnonzero(case.mask[b])
        for place, t in enumerate(real[1:], 1):
            scores = case.transitions + case.emissions[b, t] + sums[b, t]  # (tag before, tag)
            given = np.exp(scores - np.logaddexp.reduce(scores, axis=1, keepdims=True))
            for i, j in itertools.product(range(3), repeat=2):
                both = [v for path, v in truth["paths"] if path[place - 1 : place + 1] == (i, j)]
                before = [v for path, v in truth["paths"] if path[place - 1] == i]
                expected = np.exp(oracles.log_sum(both) - oracles.log_sum(before))
                assert_allclose(given[i, j], expected, rtol=1e-4, atol=1e-6)


@pytest.mark.once
def test_without_transitions_a_crf_is_a_softmax():
    case = Case(29, 5, 3, "right")
    nothing = np.zeros((3, 3), "float32")
    shifted = case.emissions - case.emissions.max(-1, keepdims=True)
    softmax = np.exp(shifted) / np.exp(shifted).sum(-1, keepdims=True)
    expected = np.where(case.mask[..., None], softmax, 0)
    assert_allclose(numpy(crf.marginals(case.emissions, case.mask, nothing)), expected, atol=1e-6)
    best = np.where(case.mask, case.emissions.argmax(-1), -1)
    assert_array_equal(numpy(crf.viterbi(case.emissions, case.mask, nothing)), best)


@pytest.mark.parametrize("mask", MASKS)
def test_the_k_best_paths_are_the_enumerated_ones_in_order(mask):
    case = Case(31, 4, 3, mask)
    tags, scores = map(numpy, crf.top_k_paths(case.emissions, 5, *case.rest))
    for b, truth in enumerate(case.oracle()):
        expected = truth["paths"][:5]
        close(scores[b][: len(expected)], [score for _, score in expected])
        assert [tuple(row[case.mask[b]]) for row in tags[b][: len(expected)]] == [path for path, _ in expected]
        assert (scores[b][len(expected) :] == -np.inf).all() and (tags[b][len(expected) :] == -1).all()
    assert_array_equal(tags[:, 0], numpy(crf.viterbi(case.emissions, *case.rest)))


@pytest.mark.once
def test_paths_that_are_forbidden_are_not_among_the_k_best():
    scheme = bmes()
    case = Case(37, 2, 4, "none", scheme=scheme)
    tags, scores = map(numpy, crf.top_k_paths(case.emissions, 4, *case.rest))
    assert {tuple(path) for path in tags[0, :2]} == {(0, 0), (1, 3)}
    assert np.isfinite(scores[:, :2]).all() and (scores[:, 2:] == -np.inf).all()


def test_unknown_tags_are_summed_over_and_all_unknown_costs_nothing():
    case = Case(41, 7, 3, "holes")
    case.tags[0, ::2], case.tags[1] = -1, -100
    case.emissions[2] *= 30  # the recursion over all paths may then divide by other sums than the one over known tags
    found = numpy(crf.log_likelihood(case.emissions, case.tags, *case.rest))
    close(found, case.oracle_likelihood(), 100)
    assert found[1] == 0
    arrays = case.emissions, case.transitions

    def of_the_second(emissions, transitions):
        return crf.log_likelihood(emissions, case.tags, case.mask, transitions, case.start, case.end)[1]

    for gradient in value_and_gradients(of_the_second, *arrays)[1]:
        assert not gradient.any()  # a rounding error would be a step of Adam


@pytest.mark.parametrize("dtype", few("bfloat16", "float16"))
def test_low_precision_scores_are_summed_in_float32(dtype):
    random = np.random.default_rng(0)
    emissions = ops.convert_to_tensor(random.normal(size=(2, 512, 9)).astype("float32") * 3)
    emissions = ops.cast(emissions, dtype)
    transitions = random.normal(size=(9, 9)).astype("float32")
    tags = random.integers(0, 9, (2, 512)).astype("int32")
    exact = numpy(ops.cast(emissions, "float32")).astype("float64")
    expected = []
    for rows, path in zip(exact, tags, strict=True):
        alpha = rows[0]
        for row in rows[1:]:
            scores = alpha[:, None] + transitions.astype("float64")
            alpha = scores.max(0) + np.log(np.exp(scores - scores.max(0)).sum(0)) + row
        log_z = alpha.max() + np.log(np.exp(alpha - alpha.max()).sum())
        expected.append(
            oracles.score(rows, list(path), transitions.astype("float64"), np.zeros(9), np.zeros(9)) - log_z
        )
    found = numpy(crf.log_likelihood(emissions, tags, None, transitions))
    assert_allclose(found, expected, rtol=1e-5)


def test_compiled_code_gives_the_same_as_eager_code():
    case = Case(47, 6, 3, "holes")
    case.tags[0, 1] = -1
    jitted = compiled(lambda e, t: (crf.log_likelihood(e, t, *case.rest), crf.viterbi(e, *case.rest)))
    likelihood, best = jitted(*map(ops.convert_to_tensor, (case.emissions, case.tags)))
    close(numpy(likelihood), case.oracle_likelihood())
    assert_array_equal(numpy(best), numpy(crf.viterbi(case.emissions, *case.rest)))


@pytest.mark.skipif(backend_name() != "tensorflow", reason="only TensorFlow has graphs of unknown length")
def test_a_graph_of_unknown_batch_and_length_serves_all_of_them():
    import tensorflow as tf

    case = Case(53, 6, 3, "holes")
    signature = [
        tf.TensorSpec([None, None, 3]),
        tf.TensorSpec([None, None], tf.bool),
        tf.TensorSpec([None, None], tf.int32),
    ]

    @tf.function(input_signature=signature)
    def served(emissions, mask, tags):
        rest = (mask, *case.rest[1:])
        return crf.log_likelihood(emissions, tags, *rest), crf.viterbi(emissions, *rest)

    for batch, time in ((3, 6), (1, 1), (2, 4)):
        arrays = [x[:batch, :time] for x in (case.emissions, case.mask, case.tags)]
        likelihood, best = served(*map(tf.constant, arrays))
        rest = (arrays[1], *case.rest[1:])
        close(likelihood.numpy(), numpy(crf.log_likelihood(arrays[0], arrays[2], *rest)))
        assert_array_equal(best.numpy(), numpy(crf.viterbi(arrays[0], *rest)))


@in_blocks_too
@pytest.mark.skipif(backend_name() != "tensorflow", reason="only TensorFlow runs with and without XLA")
@pytest.mark.parametrize("xla_first", [False, True])
def test_xla_compiles_one_loop_whatever_graphs_outside_of_it_take(recursion, xla_first):
    import tensorflow as tf

    viterbi = fresh_functions()["viterbi"]
    emissions, transitions = tf.zeros((2, 9, 3)), tf.zeros((3, 3))
    found = {}
    for jit in (xla_first, not xla_first):
        traced = tf.function(lambda: viterbi(emissions, None, transitions), jit_compile=jit)
        found[jit] = loops(traced.get_concrete_function().graph)
        assert_array_equal(traced(), np.zeros((2, 9)))
    assert found == {True: 2, False: 5 if recursion == "blocks" else 2}


@in_blocks_too
def test_batches_of_other_sizes_and_lengths_follow_one_another_in_any_order(recursion):
    """TensorFlow traces a graph of any batch size once it has seen a second one."""
    viterbi, random = fresh_functions()["viterbi"], np.random.default_rng(0)
    transitions = random.normal(size=(3, 3)).astype("float32")
    for batch, time in ((4, 6), (2, 6), (3, 6), (3, 5), (1, 6)):
        emissions = random.normal(size=(batch, time, 3)).astype("float32")
        found = numpy(viterbi(emissions, np.ones((batch, time), bool), transitions))
        for rows, path in zip(emissions, found, strict=True):
            assert tuple(path.tolist()) == oracles.sentence(rows, np.ones(time), transitions)["paths"][0][0]


@pytest.mark.skipif(backend_name() != "tensorflow", reason="only TensorFlow has graphs of unknown length")
def test_a_graph_of_unknown_length_holds_one_loop_in_each_direction():
    import tensorflow as tf

    traced = tf.function(lambda x: fresh_functions()["viterbi"](x, None, tf.zeros((3, 3))), autograph=False)
    assert loops(traced.get_concrete_function(tf.TensorSpec((2, None, 3))).graph) == 2


def loops(graph):
    """How many loops a graph of TensorFlow and the functions that it calls contain."""
    definition = graph.as_graph_def()
    functions = [node for function in definition.library.function for node in function.node_def]
    return sum("While" in node.op for node in [*definition.node, *functions])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            (np.zeros((4, 9)), None, np.zeros((9, 9))),
            r"emissions of shape \(batch, time, tags\). Received: shape=.*4, 9",
        ),
        ((np.zeros((1, 4, 9)), np.ones(4), np.zeros((9, 9))), r"mask of shape \(batch, time\). Received: shape=.*4"),
        ((np.zeros((1, 4, 9)), None, np.zeros((9, 8))), r"`transitions` of shape \(9, 9\). Received: shape=\(9, 8\)"),
        (
            (np.zeros((1, 4, 2)), None, np.zeros((2, 2)), np.zeros(3)),
            r"`start` of shape \(2,\). Received: shape=\(3,\)",
        ),
    ],
)
def test_wrong_shapes_are_told_by_name(arguments, message):
    with pytest.raises(ValueError, match=message):
        crf.log_partition(*arguments)


def test_k_below_one_is_refused():
    with pytest.raises(ValueError, match="k of at least 1. Received: k=0"):
        crf.top_k_paths(np.zeros((1, 2, 2), "float32"), 0, None, np.zeros((2, 2), "float32"))


@pytest.mark.parametrize(("scale", "seed"), [(1e3, 191), (1e3, 262), (1e4, 191), (1e4, 27)])  # two paths nearly tie
def test_the_entropy_keeps_its_digits_whatever_the_size_of_the_scores(scale, seed):
    draw = np.random.default_rng(seed)
    emissions = draw.normal(size=(4, 4, 4)).astype("float32")
    transitions = (scale * draw.normal(size=(4, 4))).astype("float32")
    mask = np.ones((4, 4), bool)
    expected = [
        oracles.sentence(e, m, transitions.astype("float64"))["entropy"] for e, m in zip(emissions, mask, strict=True)
    ]
    rounding = np.spacing(np.float32(4 * scale))  # of a score in float32
    assert_allclose(numpy(crf.entropy(emissions, mask, transitions)), expected, atol=10 * rounding)


@pytest.mark.parametrize("k", [3, np.int64(3), np.int32(3)])
def test_k_may_be_any_integer(k):
    tags, scores = crf.top_k_paths(np.zeros((1, 2, 2)), k, None, np.array([[3.0, 2.0], [1.0, 0.0]]))
    assert numpy(tags).tolist() == [[[0, 0], [0, 1], [1, 0]]]
    assert_allclose(numpy(scores), [[3, 2, 1]])


@pytest.mark.parametrize(("batch", "time"), few((0, 0), (0, 3), (2, 0)))
def test_no_sentences_and_sentences_without_positions(batch, time):
    shape = (batch, time, 2)
    emissions, tags, transitions = np.zeros(shape), np.zeros((batch, time), int), np.ones((2, 2))
    for function in (crf.log_partition, crf.entropy):
        assert_array_equal(numpy(function(emissions, None, transitions)), np.zeros(batch))
    for function in (crf.path_score, crf.log_likelihood):
        assert_array_equal(numpy(function(emissions, tags, None, transitions)), np.zeros(batch))
    marginals, steps = crf.expected_counts(emissions, None, transitions)
    assert numpy(marginals).shape == shape
    assert_array_equal(numpy(steps), np.zeros((batch, 2, 2)))
    assert numpy(crf.viterbi(emissions, None, transitions)).shape == (batch, time)
    paths, scores = crf.top_k_paths(emissions, 2, None, transitions)
    assert numpy(paths).shape == (batch, 2, time) and numpy(scores).shape == (batch, 2)
    if time == 0:
        assert_array_equal(numpy(scores), np.tile([0, -np.inf], (batch, 1)))
