"""Word vectors below and above the BERT, augmentation over the size of the data, two tasks at once.

Before these runs, 96 runs with 8 seeds, all of Weibo and up to 1,000 sentences were reduced, to save processor time.
Copies also mean more steps: when 1 and 4 copies of 100 sentences had been measured, training without copies for as many
steps was added. The comparisons of these runs with "without" were written after the runs had been seen.
"""

from experiments.claim import Claim, Grid, Stored
from experiments.claims.c09_intermediate_task import CHINESE
from experiments.verdicts import Comparison, measure

COMMON = {**CHINESE, "epochs": 6}
WEIBO = {"Weibo": {**COMMON, "corpus": "weibo", "sentences": 400}}
VECTORS = {
    "without": {},
    **{f"vectors at {place}": {"word_vectors": True, "vectors_at": place} for place in ("top", "embeddings")},
}
SIZES = {
    f"People's Daily, {size} sentences": {**COMMON, "corpus": "people_daily", "sentences": size} for size in (100, 300)
}
COPIES = {"without": {}, **{f"{n} copies": {"augment": n} for n in (1, 4)}}
LONGER = "without, 5 times the epochs"


def _stored(first, second, task, claimed):
    comparison = Comparison(first, second, claimed, 0.01, what=f"F1 of {task}, 500 sentences", numbers=measure(task))
    return Stored("segment_and_tag.json", comparison)


CLAIM = Claim(
    title="Word knowledge and augmentation help, a second task does not",
    source="vectors at the embeddings or at the top help; augmentation may help; a second task brings nothing "
    "(xv44586 2020)",
    literature="Sun 2019: a second task brings nothing",
    grids=(Grid(WEIBO, VECTORS), Grid(SIZES, {**COPIES, LONGER: {"epochs": 5 * COMMON["epochs"]}})),
    comparisons=(
        Comparison("vectors at top", "without", "higher", 0.005, ("Weibo",), "F1"),
        Comparison("vectors at embeddings", "without", "higher", 0.005, ("Weibo",), "F1"),
        *(Comparison(arm, "without", "higher", 0.005, (cell,), "F1") for cell in SIZES for arm in list(COPIES)[1:]),
        *(Comparison("4 copies", LONGER, "higher", 0.005, (cell,), "F1") for cell in SIZES),
        *(Comparison(LONGER, "without", "higher", 0.005, (cell,), "F1") for cell in SIZES),
    ),
    seeds=5,
    stored=(
        _stored("joint", "words alone", "words", "same"),
        _stored("joint", "entities alone", "entities", "same"),
    ),
)
