"""What a CRF's transitions have learnt, and in one sentence what to do about it.

The limits are set by what the built-in corpus shows (the settings of `kcrf demo`: CNN, learning rate 2e-4, 924 updates,
suggested multiplier 50), at the end of training:

| `lr_multiplier` | size / gap | illegal above legal | change since the start / gap | best F1, held out |
|---|---|---|---|---|
| 1 | 0.10 | 6 of 8 | 0.02 | 0.843 |
| 10 | 0.23 | 0 of 8 | 0.20 | 0.849 |
| 100 | 0.95 | 0 of 8 | 0.96 | 0.841 |
| 1000 | 1.8 | 0 of 8 | 1.8 | 0.841 |
| 10000 | 3.1 | 0 of 8 | 3.1 | 0.839 |

The F1 of so small a corpus differ by no more than those of two seeds. How often Viterbi differs from argmax tells
nothing here: at x1 it is every twentieth token, by random preferences that were there before training. In the first
epochs the emission gap is still small, so that size / gap begins at 0.5 at x1 and falls; what tells multipliers apart
by then is how far the transitions have moved: after three epochs 0.008 of the gap at x1, 0.09 at x10, 0.8 at x100.
"""

import math

import numpy as np

__all__ = ["advice", "is_forbidden", "transition_report"]


def is_forbidden(transitions):
    """Which scores stand for "never", as `kcrf.crf.FORBIDDEN` does: bool, of the same shape."""
    return np.asarray(transitions, "float64") < -1e8  # no score that was learnt is that low


def transition_report(transitions, scheme, emissions, decoded=None):
    """Whether a CRF's transition matrix has learnt anything.

    Args:
        transitions: `(tags, tags)`, `[i, j]` from tag i to tag j. Forbidden scores count for nothing but as illegal.
        scheme: The `TagScheme` that says which transitions are legal, or None where nobody knows.
        emissions: `(positions, tags)` scores of real positions.
        decoded: `(positions,)`, the tags of the best paths there, or None.

    Returns:
        A dict of `illegal_above_legal`, how many illegal transitions score above a legal one out of the same tag;
        `illegal`, how many there are (both missing without a scheme); `size`, the standard deviation of the
        transitions; `gap`, the median distance of a position's best two emission scores; `ratio`, size / gap; and with
        `decoded`, `differs`: the share of positions whose decoded tag is not the one with the largest emission.

    >>> from kcrf.tags import bio
    >>> report = transition_report([[0, 0, 9], [0, 0, 0], [0, 0, 0]], bio(["X"]), [[3.0, 1.0, 0.0]])
    >>> report["illegal_above_legal"], report["illegal"], report["gap"]
    (1, 1, 2.0)
    """
    transitions, emissions = np.asarray(transitions, "float64"), np.asarray(emissions, "float64")
    report = {}
    if scheme is not None:
        legal = scheme.allowed_transitions
        lowest_legal = np.min(np.where(legal, transitions, np.inf), axis=1, keepdims=True)
        report["illegal_above_legal"] = int(np.sum(~legal & (transitions > lowest_legal)))
        report["illegal"] = int(np.sum(~legal))
    best, second = -np.sort(-emissions, axis=1)[:, :2].T
    size, gap = float(np.std(transitions[~is_forbidden(transitions)])), float(np.median(best - second))
    report.update(size=size, gap=gap, ratio=size / gap if gap else None)
    if decoded is not None:
        report["differs"] = float(np.mean(np.argmax(emissions, axis=1) != np.asarray(decoded)))
    return report


SMALL, LARGE = 0.3, 2.0  # of the transitions, beside the emission gap
BARELY_MOVED = 0.1  # likewise
MOST_ILLEGAL = 0.1  # of them may score above a legal one: with many types, some legal transition is always rare
TOO_SLOW, TOO_FAST = 1 / 2, 5.0  # of the suggested multiplier


def advice(row):
    """One sentence on an epoch: what is wrong with the transitions, and what to do.

    Args:
        row: A dict with `transition_size`, `emission_gap`, `lr_multiplier` and `suggested_lr_multiplier`, and where
            they are known `illegal_above_legal` with `illegal`, and `transition_change`, as `CRFMonitor.history` has
            it.

    Returns:
        A string. The transitions are too small if they are below 0.3 of the emission gap, if more than a tenth of the
        illegal ones score above a legal one, or, without a scheme, if they barely moved since training began. Then the
        multiplier should rise to the suggested one, unless it is about that already. They are too large from twice
        the gap on, if the multiplier is more than 5 times the suggested one: early on, any gap is small.

    >>> row = {"transition_size": 0.5, "emission_gap": 15.0, "lr_multiplier": 1, "suggested_lr_multiplier": 1000}
    >>> advice(row)
    'transitions are 30 times smaller than the emission gap: raise lr_multiplier from 1 to about 1000'
    """
    size, gap = row["transition_size"], row["emission_gap"]
    if not math.isfinite(size + gap):
        return "training diverged, scores are no numbers any more: lower the learning rate, or warm up for longer"
    present, suggested = row["lr_multiplier"], row["suggested_lr_multiplier"]
    if size >= LARGE * gap and present > TOO_FAST * suggested:
        fault = f"transitions dwarf the emissions ({size:.2g} beside a gap of {gap:.2g})"
        return f"{fault}: lower lr_multiplier from {present:g} to about {suggested:g}"
    fault = " and ".join(_faults(row, size, gap))
    if not fault:
        return "transitions look learnt: nothing to do"
    if present <= TOO_SLOW * suggested:
        return f"{fault}: raise lr_multiplier from {present:g} to about {suggested:g}"
    return f"{fault}, at a fair lr_multiplier: train for longer, or forbid what is illegal (`constraints`)"


def _faults(row, size, gap):
    faults = []
    if size < SMALL * gap:
        times = f"{gap / size:.0f} times" if size else "infinitely"
        faults.append(f"transitions are {times} smaller than the emission gap")
    if "illegal" not in row:
        change = row.get("transition_change")
        if not faults and change is not None and change < BARELY_MOVED * gap and size < gap:
            faults.append(f"transitions moved by only {change:.2g} since training began")
    elif row["illegal_above_legal"] > MOST_ILLEGAL * row["illegal"]:
        who = f"{row['illegal_above_legal']:g} of {row['illegal']:g} illegal" + (" ones" if faults else " transitions")
        faults.append(f"{who} score above a legal one")
    return faults
