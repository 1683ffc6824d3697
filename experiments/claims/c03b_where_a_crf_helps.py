"""Where a CRF is worth it: the gain over softmax by the size of the data, the tags and the layers."""

from experiments.claim import Claim, Grid, crossed
from experiments.verdicts import Comparison, measure

CORPORA = {
    "PKU": {"corpus": "pfr199801"},
    "People's Daily": {"corpus": "people_daily"},
    "Weibo": {"corpus": "weibo"},
}
SIZES = {
    f"{size or 'all'} sentences": {"sentences": size, "epochs": epochs}
    for size, epochs in ((100, 20), (300, 15), (1000, 10), (3000, 5), (None, 3))
}
LAYERS = {
    f"{n} layer{'s' * (n > 1)}": {"bert": "chinese", "bert_layers": n, "learning_rate": 1e-3, "batch_size": 16}
    for n in (1, 4)
}
ARMS = {
    "softmax": {"head": "softmax"},
    "CRF": {"constraints": False},
    "CRF with constraints": {"constraints": True},
}
CELLS = {name: cell for name, cell in crossed(CORPORA, SIZES, LAYERS).items() if "Weibo, 3000" not in name}
STRONG = "People's Daily, 1000 sentences, 4 layers"
CONSTRAINED = measure("score", "constrained_score")

CLAIM = Claim(
    title="On a strong encoder a CRF brings nothing over softmax",
    source="PKU, BERT base: softmax as good as the CRF, no figure (000, 001)",
    literature="agrees: Yang 2019; disagrees: eznlp, CoNLL 2003 92.02 -> 92.38 (BERT base) and 92.81 -> 93.20 (RoBERTa "
    "large), OntoNotes 89.35 -> 90.14; CLUENER .7963 -> .8076; Wei 2021 (2103.10682): masking illegal paths helps by "
    "itself",
    grids=(Grid({STRONG: CELLS[STRONG]}, ARMS), Grid(CELLS, ARMS, seeds=5)),
    comparisons=(
        Comparison("CRF", "softmax", "same", 0.005, (STRONG,), "F1"),
        Comparison("CRF with constraints", "softmax", "same", 0.005, (STRONG,), "F1"),
        Comparison("CRF", "softmax", "same", 0.005, (STRONG,), "F1, softmax with illegal paths masked", CONSTRAINED),
        *(
            Comparison("CRF with constraints", "softmax", "same", 0.005, (cell,), "F1", seeds=5)
            for cell in CELLS
            if cell != STRONG
        ),
    ),
    axis="head",
)
