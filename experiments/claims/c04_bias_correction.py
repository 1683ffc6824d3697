"""Adam's bias correction, crossed with warm-up and the number of epochs, on little data."""

from experiments.claim import Claim, Grid, crossed
from experiments.verdicts import Comparison, epochs_to_loss, measure

ENGLISH = {"bert": "english", "sentences": 1000, "learning_rate": 5e-5, "batch_size": 16, "max_length": 64}
TASKS = {name: {"corpus": name.lower().replace("-", ""), **ENGLISH} for name in ("RTE", "MRPC", "CoLA", "STS-B")}
ENTITIES = {
    "People's Daily": {"corpus": "people_daily", "sentences": 400, "bert": "chinese", "learning_rate": 3e-4,
                       "batch_size": 16}
}  # fmt: skip
SCHEDULES = crossed(
    {"no warmup": {"warmup": 0.0}, "warmup": {"warmup": 0.1}}, {"3 epochs": {"epochs": 3}, "20 epochs": {"epochs": 20}}
)
ARMS = {"corrected": {"bias_correction": True}, "uncorrected": {"bias_correction": False}}
CELLS = crossed({**ENTITIES, **TASKS}, SCHEDULES)
NER = "People's Daily, no warmup, 20 epochs"
SHORT = tuple(f"{task}, no warmup, 3 epochs" for task in TASKS)

CLAIM = Claim(
    title="Without Adam's bias correction, fine-tuning on few samples fails; with it, half the steps are enough",
    source="NER, 400 sentences: half the steps to the same loss, F1 slightly higher (002)",
    literature="Mosbach 2021, 25 seeds, with warmup, a small rate and 20 epochs: RTE 52.3 ± 7.2 to 70.1 ± 2.4, "
    "MRPC 79.0 ± 5.9 to 89.6 ± .8, CoLA 45.6 ± 25.6 to 64.6 ± 1.0; Zhang 2021 agrees; mixout#4 blames BERTAdam; Su "
    "(keras PR 13577): the correction can overfit",
    grids=(
        Grid({NER: CELLS[NER]}, ARMS),
        Grid({cell: CELLS[cell] for cell in SHORT}, ARMS),
        Grid(CELLS, ARMS),
    ),
    comparisons=(
        Comparison("corrected", "uncorrected", "lower", 0.1, (NER,), "epochs to the uncorrected loss, a fraction",
                   epochs_to_loss),
        Comparison("corrected", "uncorrected", "higher", 0.005, (NER,), "F1"),
        *(Comparison("corrected", "uncorrected", "higher", 0.01, (cell,)) for cell in CELLS if cell != NER),
        *(
            Comparison("corrected", "uncorrected", "lower", 0.05, (cell,), "fraction of failed runs", measure("failed"))
            for cell in SHORT
        ),
    ),
    axis="Adam",
)  # fmt: skip
