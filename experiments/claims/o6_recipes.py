"""A tagger for N labels: without an encoder, with a small BERT, and with 12 layers. The table of docs/recipes.md.

Each arm is `kcrf train` with its defaults, and with the learning rate of the arm. Declared before any of its runs. Two
runs on the words were known from elsewhere, with other settings (300 sentences, 10 epochs): 12 layers .890, 4 .852.
One seed is measured first, so most rows say the size of an effect and decide nothing.
"""

from experiments.claim import Claim, Grid, crossed
from experiments.verdicts import Comparison

CORPORA = {"words": {"corpus": "ud_gsd"}, "entities": {"corpus": "people_daily"}}
SIZES = {f"{size:,} sentences": {"sentences": size} for size in (300, 100, 1000, 3997, 5000)}
CELLS = crossed(SIZES, CORPORA)
del CELLS["3,997 sentences, entities"], CELLS["5,000 sentences, words"]  # the corpus of words has 3,997
ARMS = {  # augment: copies as `kcrf train` makes them by default
    "no encoder": {"augment": None},
    "small BERT": {"augment": None, "bert": "chinese", "learning_rate": 3e-4},
    "12 layers": {"augment": None, "bert": "deep", "learning_rate": 2e-4},
}

CLAIM = Claim(
    title="From a hundred sentences on, a pretrained encoder of 12 layers is better than none",
    source="ours",
    literature="",
    grids=tuple(Grid({cell: settings}, ARMS) for cell, settings in CELLS.items()),
    comparisons=tuple(
        Comparison(arm, "no encoder", "higher", 0.01, (cell,), "F1")
        for cell in CELLS
        for arm in ("12 layers", "small BERT")
    ),
    seeds=3,
)
