"""How often the sentence of `CRFMonitor` is right, in the runs of c01."""

import numpy as np

from experiments.claim import Claim
from experiments.claims.c01_learning_rate_of_transitions import ARMS_OF_CELLS
from experiments.verdicts import Comparison, Outcome

WORSE = 0.01  # F1: a run that is worse than the best one of its cell and seed by more than this has a fault


class Agreement(Comparison):
    """The fraction of runs in which the monitor finds a fault exactly if the run has one, against always "no fault"."""

    def outcome(self, results, seeds):
        shares = [share for seed in range(seeds) if (share := _shares(results, seed))]
        return Outcome(*zip(*shares), self.second) if shares else None


def _shares(results, seed):
    """The fraction of runs of a seed in which the monitor is right, and "no fault" is; None without runs."""
    right = []
    for cell, arms in ARMS_OF_CELLS.items():
        runs = [results.get(f"{cell}, {arm}, seed {seed}") for arm in arms]
        if all(runs):
            best = max(run["score"] for run in runs)
            faults = np.array([run["score"] < best - WORSE for run in runs])
            seen = np.array(["nothing to do" not in run["advice"] for run in runs])
            right += [(a == b, not a) for a, b in zip(faults, seen)]
    return tuple(np.mean(right, axis=0).tolist()) if right else None


CLAIM = Claim(
    title="The monitor's sentence is right: it finds a fault in those runs that are worse than the best multiplier",
    source="ours",
    literature="",
    grids=(),
    comparisons=(Agreement("the monitor", "always no fault", "higher", 0.05, what="fraction of runs"),),
    runs_of="c01",
)
