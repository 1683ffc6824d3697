"""kcrf.pretraining.masking: The masked tokens and their replacements, by their definitions and by their frequencies."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcrf.pretraining.masking import choose_positions, hide

BACKENDS = ["torch"]


@st.composite
def windows(draw):
    """Whether the tokens of a window may be hidden, and whether each begins a word. Special tokens are words."""
    lengths = draw(st.lists(st.integers(1, 4), min_size=1, max_size=20))
    starts = np.concatenate([[True] + [False] * (length - 1) for length in lengths])
    candidates = np.concatenate([np.full(length, length > 1 or draw(st.booleans())) for length in lengths])
    return candidates, starts


@given(windows(), st.integers(1, 20), st.sampled_from(["tokens", "words", "spans"]), st.integers(0, 99))
def test_what_is_drawn_is_allowed_and_whole(window, count, kind, seed):
    candidates, starts = window
    positions, groups = choose_positions(candidates, starts, count, kind, np.random.default_rng(seed))
    chosen = np.zeros(len(starts), bool)
    chosen[positions] = True
    assert len(positions) == chosen.sum() == len(groups) and (np.diff(positions) > 0).all()
    assert not (chosen & ~candidates).any() and len(positions) <= count
    assert (len(positions) > 0) == candidates.any()
    if kind == "tokens":
        assert len(positions) == min(count, candidates.sum())
    words = np.split(np.arange(len(starts)), np.flatnonzero(starts)[1:])
    if kind != "tokens" and any(len(word) <= count and candidates[word].all() for word in words):
        assert all(chosen[word].all() or not chosen[word].any() for word in words if chosen[word].any())
    for group in set(groups.tolist()):
        run = positions[groups == group]
        assert run[-1] - run[0] + 1 == len(run) and (kind == "spans" or len(run) == 1)


@pytest.mark.parametrize("kind", ["tokens", "words", "spans"])
def test_every_token_is_hidden_about_as_often(kind):
    random, counts = np.random.default_rng(0), np.zeros(40)
    starts = np.arange(40) % 2 == 0
    for _ in range(2000):
        positions, _ = choose_positions(np.ones(40, bool), starts, 6, kind, random)
        counts[positions] += 1
    inner = counts[10:30] if kind == "spans" else counts  # fewer spans cover a position near an end
    assert np.abs(inner / inner.mean() - 1).max() < 0.2
    assert counts.sum() / 2000 == pytest.approx(6, abs=0.2)


def test_spans_have_geometric_lengths():
    random, lengths = np.random.default_rng(0), []
    for _ in range(400):
        _, groups = choose_positions(np.ones(500, bool), np.ones(500, bool), 100, "spans", random)
        lengths += np.bincount(groups)[:3].tolist()  # the later ones must fit into what is left
    expected = 0.8 ** np.arange(10) / (0.8 ** np.arange(10)).sum()
    assert abs(expected @ np.arange(1, 11) - 3.8) < 0.01  # SpanBERT's mean
    found = np.bincount(lengths, minlength=11)[1:] / len(lengths)
    # Two spans that lie side by side count as two.
    np.testing.assert_allclose(found, expected, atol=0.04)


@pytest.mark.parametrize(("length", "rate"), [(16, 0.15), (128, 0.15), (512, 0.5), (128, 0.8)])
def test_spans_reach_the_rate_in_windows_of_any_length(length, rate):
    """The last span is cut to what is left, as SpanBERT's."""
    random, count = np.random.default_rng(0), round(rate * length)
    for _ in range(20):
        positions, _ = choose_positions(np.ones(length, bool), np.ones(length, bool), count, "spans", random)
        assert len(positions) == count


def test_four_fifths_show_the_mask_and_a_tenth_a_random_token():
    ids, positions = np.full(40000, 7), np.arange(0, 40000, 2)
    shown = hide(ids, positions, np.arange(20000), 4, np.arange(100, 110), np.random.default_rng(0))
    assert (shown[1::2] == 7).all() and (ids == 7).all()
    share = {name: (shown[::2] == name).mean() for name in (4, 7)}
    assert share[4] == pytest.approx(0.8, abs=0.01) and share[7] == pytest.approx(0.1, abs=0.01)
    others = shown[::2][(shown[::2] != 4) & (shown[::2] != 7)]
    assert set(others) == set(range(100, 110)) and np.bincount(others)[100:].min() > 150


def test_tokens_of_a_span_are_treated_alike():
    groups = np.repeat(np.arange(5000), 3)
    shown = hide(np.full(15000, 7), np.arange(15000), groups, 4, np.arange(100, 200), np.random.default_rng(0))
    kinds = np.where(shown == 4, 0, np.where(shown == 7, 1, 2)).reshape(-1, 3)
    assert (kinds == kinds[:, :1]).all() and set(kinds[:, 0]) == {0, 1, 2}


def test_an_unknown_kind_is_refused():
    with pytest.raises(ValueError, match="`kind` is one of .* Received: 'word'"):
        choose_positions(np.ones(2, bool), np.ones(2, bool), 1, "word", np.random.default_rng(0))
