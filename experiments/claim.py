"""What a claim consists of: its source, the grid of its training runs, and the comparisons that decide on it."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from importlib import import_module
from itertools import product
from pathlib import Path
from typing import Any

from experiments.measures import train_and_score
from experiments.verdicts import Comparison

CLAIMS = Path(__file__).parent / "claims"


@dataclass(frozen=True)
class Run:
    """A training run.

    Attributes:
        cell: Where arms are compared: a corpus, a size, ...
        arm: What is compared.
        seed: The seed of the sample, the weights and the batches.
        settings: Those of the cell and the arm together, as `experiments.measures` takes them.
    """

    cell: str
    arm: str
    seed: int
    settings: Mapping[str, Any]

    @property
    def key(self) -> str:
        """The name of the run in the results."""
        return f"{self.cell}, {self.arm}, seed {self.seed}"


@dataclass(frozen=True)
class Grid:
    """Every arm in every cell with every seed: two dicts from names to settings, and seeds if they are fewer."""

    cells: Mapping[str, Mapping[str, Any]]
    arms: Mapping[str, Mapping[str, Any]]
    seeds: int | None = None

    def runs(self, seeds: int) -> Iterator[Run]:
        """The runs, all of a seed before the next seed, so that an early stop leaves complete pairs."""
        for seed, cell, arm in product(range(self.seeds or seeds), self.cells, self.arms):
            yield Run(cell, arm, seed, {**self.cells[cell], **self.arms[arm]})


@dataclass(frozen=True)
class Stored:
    """A comparison in the results of an earlier experiment, by prefixes of its keys `"<arm>, seed N"`.

    Attributes:
        file: The JSON file in this folder.
        comparison: Its arms are the prefixes.
    """

    file: str
    comparison: Comparison


@dataclass(frozen=True)
class Claim:
    """A claim.

    Attributes:
        title: The claim in a sentence.
        source: The figure of the source.
        literature: What others report.
        grids: The grids, the most decisive first; they are measured in this order.
        comparisons: What decides, and when. The first one decides on the claim.
        seeds: How many seeds decide.
        stored: Comparisons in results of earlier experiments.
        runs_of: The name of the claim whose runs are compared, for a claim without runs of its own.
        measure: A function of a run and a `Context` that returns the measures as plain values.
        name: Its name in commands, such as "c01".
        file: The name of its file in `claims`.
    """

    title: str
    source: str
    literature: str
    grids: tuple[Grid, ...]
    comparisons: tuple[Any, ...]
    seeds: int = 8
    stored: tuple[Stored, ...] = ()
    runs_of: str | None = None
    measure: Callable[[Run, Any], dict[str, Any]] = train_and_score
    name: str = field(default="", compare=False)
    file: str = field(default="", compare=False)

    def runs(self) -> list[Run]:
        """All runs, each once, in the order in which they are measured."""
        runs = (run for grid in self.grids for run in grid.runs(self.seeds))
        return list({run.key: run for run in runs}.values())


def crossed(*axes: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """All combinations of named settings, such as `{"1 layer": {"bert_layers": 1}}`.

    >>> crossed({"a": {"x": 1}}, {"b": {"y": 2}, "c": {"y": 3}})
    {'a, b': {'x': 1, 'y': 2}, 'a, c': {'x': 1, 'y': 3}}
    """
    return {
        ", ".join(name for name, _ in combination): {k: v for _, settings in combination for k, v in settings.items()}
        for combination in product(*(axis.items() for axis in axes))
    }


def load_claims() -> dict[str, Claim]:
    """The claims by name: `c01` is in the file `claims/c01_*.py`."""
    stems = sorted(path.stem for path in CLAIMS.glob("[a-z][0-9]*.py"))
    claims = {}
    for stem in stems:
        name = stem.split("_")[0]
        claim = import_module(f"experiments.claims.{stem}").CLAIM
        claims[name] = replace(claim, name=name, file=f"{stem}.py")
    return claims
