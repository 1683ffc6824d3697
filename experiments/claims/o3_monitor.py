"""How often the sentence of `CRFMonitor` is right, in the runs of c01.

The runs with constraints were counted apart after a look at all of them together, of which 0.76 were right.
"""

import numpy as np

from experiments.claim import Claim
from experiments.claims.c01_learning_rate_of_transitions import ARMS_OF_CELLS, CONSTRAINED
from experiments.verdicts import Comparison, Outcome

FREE = tuple(cell for cell in ARMS_OF_CELLS if cell not in CONSTRAINED)
WORSE = 0.01  # F1: a run that is worse than the best one of its cell and seed by more than this has a fault


class Agreement(Comparison):
    """The fraction of runs in which the monitor finds a fault exactly if the run has one, against always "no fault"."""

    def outcome(self, results, seeds):
        shares = [share for seed in range(seeds) if (share := _shares(results, self.cells, seed))]
        return Outcome(*zip(*shares), self.second) if shares else None


def _shares(results, cells, seed):
    """The fraction of runs of a seed in which the monitor is right, and "no fault" is; None without runs."""
    right = []
    for cell in cells:
        runs = [results.get(f"{cell}, {arm}, seed {seed}") for arm in ARMS_OF_CELLS[cell]]
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
    comparisons=tuple(
        Agreement("the monitor", "always no fault", "higher", 0.05, cells, what=f"fraction of runs {constraints}")
        for cells, constraints in ((FREE, "without constraints"), (CONSTRAINED, "with constraints"))
    ),
    runs_of="c01",
)
