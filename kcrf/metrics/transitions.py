"""How well the transitions of a CRF are learned: `transition_report` measures them, `advice` judges them in a sentence.

Transitions affect the best path only if they are about as large as the gap, the median difference between the two
largest emission scores of a position. On the built-in corpus (`kcrf demo`: CNN, learning rate 2e-4, 924 updates,
suggested multiplier 50), the standard deviation of the transitions at the end of training, divided by the gap, is 0.10
at a multiplier of 1 (6 of 8 illegal transitions score above a legal one), 0.23 at 10, 0.95 at 100, 1.8 at 1,000 and 3.1
at 10,000 (none of them does). Their change since the start, divided by the gap, distinguishes the multipliers early:
after three epochs 0.008 at 1, 0.09 at 10, 0.8 at 100. The F1 scores there differ no more than between two seeds.

A learning rate that is too high shows in the accuracies: the transitions oscillate, and the best paths have fewer
correct tags than the largest emissions. The fraction of positions at which both differ is not informative.
"""

import math
from typing import Any

import numpy as np

FORBIDDEN_BELOW = -1e8  # no learned score is that low
TOO_SMALL, TOO_LARGE = 0.3, 2.0  # size of the transitions, divided by the gap
BARELY_MOVED = 0.1  # change of the transitions since the start, divided by the gap
MOST_ILLEGAL = 0.1  # fraction of illegal transitions above a legal one; with many types some legal ones are rare
TOO_SLOW, FASTER, TOO_FAST = 1 / 2, 2.0, 5.0  # the multiplier, divided by the suggested one
WORSE = 0.005  # accuracy of argmax minus accuracy of Viterbi


def is_forbidden(transitions: Any) -> np.ndarray:
    """Whether each transition is forbidden, with a score such as `kcrf.crf.FORBIDDEN`: bool, of the same shape."""
    return np.asarray(transitions, "float64") < FORBIDDEN_BELOW


def transition_report(transitions: Any, scheme: Any, emissions: Any, decoded: Any = None) -> dict[str, Any]:
    """Measures the transitions of a CRF.

    Args:
        transitions: `(tags, tags)`, `[i, j]` from tag i to tag j. `size` omits forbidden transitions.
        scheme: The `TagScheme` that defines the legal transitions, or `None` if it is unknown.
        emissions: `(positions, tags)`, the scores of positions that are not padding.
        decoded: `(positions,)`, the tags of the best paths at these positions. Defaults to `None`.

    Returns:
        A dict of `illegal`, the number of illegal transitions that are not forbidden, and `illegal_above_legal`, how
        many of them score above a legal transition from the same tag (both with a scheme); `size`, the standard
        deviation of the transitions; `gap`, the median difference between the two largest emission scores of a
        position; `ratio`, `size / gap`, or `None` if the gap is 0; and with `decoded` `differs`, the fraction of
        positions whose decoded tag does not have the largest emission.

    >>> from kcrf.tags import bio
    >>> report = transition_report([[0, 0, 9], [0, 0, 0], [0, 0, 0]], bio(["X"]), [[3.0, 1.0, 0.0]])
    >>> report["illegal_above_legal"], report["illegal"], report["gap"]
    (1, 1, 2.0)
    """
    transitions, emissions = np.asarray(transitions, "float64"), np.asarray(emissions, "float64")
    report: dict[str, float | None] = {}
    if scheme is not None:
        legal = scheme.allowed_transitions
        lowest_legal = np.min(np.where(legal, transitions, np.inf), axis=1, keepdims=True)
        report["illegal_above_legal"] = int(np.sum(~legal & (transitions > lowest_legal)))
        report["illegal"] = int(np.sum(~legal & ~is_forbidden(transitions)))
    ordered = np.sort(emissions, axis=1)
    gaps = ordered[:, -1] - ordered[:, -2] if emissions.shape[1] > 1 else np.zeros(1)  # one tag has no second
    size, gap = float(np.std(transitions[~is_forbidden(transitions)])), float(np.median(gaps))
    report.update(size=size, gap=gap, ratio=size / gap if gap else None)
    if decoded is not None:
        report["differs"] = float(np.mean(np.argmax(emissions, axis=1) != np.asarray(decoded)))
    return report


def advice(row: dict[str, Any]) -> str:
    """Judges the transitions of a CRF in one sentence: the fault, and how to fix it.

    The faults, in this order: a learning rate of 0; no gradient; best paths that are worse than the largest emissions;
    transitions that are too large, for a multiplier far above the suggested one (early in training, the gap is small);
    transitions that are too small, illegal or have hardly moved; a model that learned nothing. If the multiplier is
    near the suggested one, the advice is longer training (unless the scores no longer improve) or constraints.

    Args:
        row: An item of `CRFMonitor.history`: a dict with `transition_size` (the `size` of the report), `emission_gap`
            (its `gap`), `lr_multiplier` and `suggested_lr_multiplier`. Other members, which it may have:
            `illegal_above_legal` with `illegal`; `transition_change`; `argmax_accuracy` with `viterbi_accuracy`;
            `one_tag_accuracy`; `highest_learning_rate`; `best_score`; and `improves`, whether one of the last epochs
            reached that score.

    >>> row = {"transition_size": 0.5, "emission_gap": 15.0, "lr_multiplier": 1, "suggested_lr_multiplier": 1000}
    >>> advice(row)
    'transitions are 30 times smaller than the emission gap: raise lr_multiplier from 1 to about 1000'
    >>> advice({**row, "emission_gap": 0.5, "argmax_accuracy": 0.456, "viterbi_accuracy": 0.352})
    'best paths are correct at 35.2% of tokens, largest emissions at 45.6%: raise lr_multiplier from 1 to about 1000'
    """
    size, gap = row["transition_size"], row["emission_gap"]
    if not math.isfinite(size + gap):
        return "training diverged, scores are no longer finite: lower the learning rate, or use a longer warmup"
    if row.get("highest_learning_rate") == 0:
        return "transitions cannot be judged while the learning rate is 0"
    if row.get("transition_change") == 0:
        return (
            "transitions have not moved since training began: train with a loss of the CRF layer (`sparse_loss`), "
            "and set `trainable=True`"
        )
    present, suggested = row["lr_multiplier"], row["suggested_lr_multiplier"]
    worse = _loss_by_paths(row)
    if worse and present > FASTER * suggested:
        return f"{worse}: {_slow_down(row)}"
    if size >= TOO_LARGE * gap and present > TOO_FAST * suggested:
        return f"transitions dwarf the emissions ({size:.2g} against a gap of {gap:.2g}): {_slow_down(row)}"
    fault = worse or " and ".join(_faults(row, size, gap))
    if not fault and row.get("best_score") == 0:
        return "transitions cannot be judged while the validation score is 0: train for longer"
    if not fault:
        return _nothing_learned(row) or "transitions look learned: nothing to do"
    if present <= TOO_SLOW * suggested:
        return f"{fault}: raise lr_multiplier from {present:g} to about {suggested:g}"
    return f"{fault}, at a fair lr_multiplier{_go_on(row)}"


def _go_on(row: dict[str, Any]) -> str:
    """Whether to train for longer, in words."""
    improves = row.get("improves") or row.get("best_score") == 0
    if row.get("illegal_above_legal"):
        longer = "" if row.get("improves") is False and not improves else "train for longer, or "
        return f": {longer}forbid illegal transitions (`constraints`)"
    if row.get("improves") is None and not improves:
        return ": train for longer if the scores still improve"
    return ", and the scores still improve: train for longer" if improves else "; the scores no longer improve"


def _nothing_learned(row: dict[str, Any]) -> str | None:
    """The advice for a model that is no better than its most frequent tag; None for others."""
    viterbi, one_tag = row.get("viterbi_accuracy"), row.get("one_tag_accuracy")
    if viterbi is None or one_tag is None or not viterbi <= one_tag < 1:
        return None
    return (
        f"best paths are correct at {viterbi:.1%} of tokens, the most frequent tag at {one_tag:.1%}: the model has "
        "learned nothing yet, train for longer or raise the learning rate"
    )


def _loss_by_paths(row: dict[str, Any]) -> str | None:
    """Says by how much the best paths are worse than the largest emissions. None if they are not worse."""
    argmax, viterbi = row.get("argmax_accuracy"), row.get("viterbi_accuracy")
    if argmax is None or viterbi is None or viterbi >= argmax - WORSE:
        return None
    return f"best paths are correct at {viterbi:.1%} of tokens, largest emissions at {argmax:.1%}"


def _slow_down(row: dict[str, Any]) -> str:
    present, rate = row["lr_multiplier"], row.get("highest_learning_rate")
    rates = f" at {rate * present:.2g} (learning rate {rate:.2g} x lr_multiplier {present:g})" if rate else ""
    lower = f"lower lr_multiplier from {present:g} to about {row['suggested_lr_multiplier']:g}"
    return f"the CRF learns too fast{rates}, {lower}"


def _faults(row: dict[str, Any], size: float, gap: float) -> list[str]:
    faults = []
    if size < TOO_SMALL * gap:
        times = f"{gap / size:.0f} times" if size else "infinitely"
        faults.append(f"transitions are {times} smaller than the emission gap")
    if not row.get("illegal"):  # no scheme, or its constraints forbid all of them
        change = row.get("transition_change")
        if not faults and change is not None and change < BARELY_MOVED * gap and size < gap:
            faults.append(f"transitions moved by only {change:.2g} since training began")
    elif row["illegal_above_legal"] > MOST_ILLEGAL * row["illegal"]:
        noun = "ones" if faults else "transitions"
        faults.append(f"{row['illegal_above_legal']:g} of {row['illegal']:g} illegal {noun} score above a legal one")
    return faults
