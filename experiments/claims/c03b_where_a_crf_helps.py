"""Where a CRF is worth it: the gain over softmax by the size of the data, the tags and the layers.

Before these runs, the grid was reduced from 429 runs to save processor time: two corpora, short sentences, few steps.
Cells were added after the first results, before they were measured: 640 sentences with words, and entities of
Weibo with 17 tags; later 2,560 sentences with words. The title said "on a strong
encoder" until the results were in.

The cells of 12 layers were declared with their seeds and comparisons before any of their runs. Settings come from two
runs on another corpus (UD Chinese GSD, 300 sentences, 10 epochs: validation F1 .870 at 5e-5, .890 at 2e-4). The source
is about 12 layers, so these cells decide on its sentence, and of the other cells, which say how the gain depends on the
depth, nothing is claimed: on one layer, the same source has the CRF above softmax, and of four it does not speak.
Until long after the results, "same" was claimed of four layers, too. The last row, of constraints, is as late.
"""

from experiments.claim import Claim, Grid
from experiments.verdicts import Comparison, measure

COMMON = {"lengths": (20, 40), "bert": "chinese", "learning_rate": 1e-3, "batch_size": 16, "masked": True}
CELLS = {
    "PKU, 1 layer, 160 sentences": {**COMMON, "corpus": "pfr199801", "bert_layers": 1, "sentences": 160, "epochs": 4},
    "PKU, 4 layers, 160 sentences": {**COMMON, "corpus": "pfr199801", "sentences": 160, "epochs": 4},
    "People's Daily, 1 layer, 160 sentences":
        {**COMMON, "corpus": "people_daily", "bert_layers": 1, "sentences": 160, "epochs": 4},
    "People's Daily, 4 layers, 160 sentences": {**COMMON, "corpus": "people_daily", "sentences": 160, "epochs": 4},
    "People's Daily, 4 layers, 640 sentences": {**COMMON, "corpus": "people_daily", "sentences": 640, "epochs": 3},
    "PKU, 1 layer, 640 sentences": {**COMMON, "corpus": "pfr199801", "bert_layers": 1, "sentences": 640, "epochs": 3},
    "PKU, 1 layer, 2,560 sentences":
        {**COMMON, "corpus": "pfr199801", "bert_layers": 1, "sentences": 2560, "epochs": 2},
    "Weibo, 1 layer, 640 sentences":
        {**COMMON, "corpus": "weibo", "lengths": (10, 60), "bert_layers": 1, "sentences": 640, "epochs": 6},
}  # fmt: skip
DEEP = {"lengths": (20, 40), "bert": "deep", "batch_size": 16, "masked": True}
PKU, PEOPLE = {**DEEP, "corpus": "pfr199801"}, {**DEEP, "corpus": "people_daily"}
FEW, MORE, MANY = ({"sentences": size, "epochs": epochs} for size, epochs in ((160, 10), (640, 5), (2560, 3)))
LOW, HIGH = {"learning_rate": 5e-5}, {"learning_rate": 2e-4}
DEEP_CELLS = {  # the most decisive first, with their seeds
    "PKU, 12 layers, 160 sentences": ({**PKU, **FEW, **LOW}, 6),
    "PKU, 12 layers, 160 sentences, 2e-4": ({**PKU, **FEW, **HIGH}, 4),
    "People's Daily, 12 layers, 160 sentences": ({**PEOPLE, **FEW, **LOW}, 6),
    "PKU, 12 layers, 640 sentences": ({**PKU, **MORE, **LOW}, 6),
    "People's Daily, 12 layers, 640 sentences": ({**PEOPLE, **MORE, **LOW}, 6),
    "PKU, 12 layers, 2,560 sentences": ({**PKU, **MANY, **LOW}, 3),
    "People's Daily, 12 layers, 2,560 sentences": ({**PEOPLE, **MANY, **LOW}, 3),
}
ARMS = {
    "softmax": {"head": "softmax"},
    "CRF": {"constraints": False},
    "CRF with constraints": {"constraints": True},
}
DEEP_ARMS = {name: ARMS[name] for name in ("softmax", "CRF with constraints")}
STRONG = "PKU, 4 layers, 160 sentences"
MASKED = measure("score", "constrained_score")


def _comparisons(cell):
    """The rows of a cell of fewer layers. Entities are always decoded with illegal paths masked, so one is enough."""
    yield Comparison("CRF with constraints", "softmax", "", 0.01, (cell,), "F1")
    if cell.startswith("PKU"):
        yield Comparison("CRF with constraints", "softmax", "", 0.01, (cell,), "F1, illegal paths masked", MASKED)
    yield Comparison("CRF", "softmax", "", 0.01, (cell,), "F1")


CLAIM = Claim(
    title="On top of a BERT, a CRF brings nothing over softmax",
    source="PKU, BERT base: softmax as good as the CRF, no figure (Su 2020)",
    literature="agrees: Yang 2019; disagrees: eznlp, CoNLL 2003 92.02 -> 92.38 (BERT base) and 92.81 -> 93.20 (RoBERTa "
    "large), OntoNotes 89.35 -> 90.14; CLUENER .7963 -> .8076; Wei 2021 (2103.10682): masking illegal paths helps by "
    "itself",
    grids=(
        *(Grid({cell: settings}, DEEP_ARMS, seeds) for cell, (settings, seeds) in DEEP_CELLS.items()),
        *(Grid({cell: settings}, ARMS) for cell, settings in CELLS.items()),
    ),
    comparisons=tuple(
        Comparison("CRF with constraints", "softmax", "same", 0.01, (cell,), what, numbers, seeds)
        for cell, (_, seeds) in DEEP_CELLS.items()
        for what, numbers in (("F1", measure("score")), ("F1, illegal paths masked", MASKED))
        if cell.startswith("PKU") or what == "F1"
    )
    + tuple(
        comparison
        for cell in (STRONG, *(cell for cell in CELLS if cell != STRONG))
        for comparison in _comparisons(cell)
    )
    + (Comparison("CRF with constraints", "CRF", "", 0.01, tuple(CELLS), "F1"),),
)
