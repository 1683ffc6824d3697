"""Adam's bias correction on little data.

Before these runs, the grid was reduced from 320 runs of named entities and classification to save processor time: word
segmentation with 160 short sentences and one BERT layer, whose corrected runs are those of c03b, and CoLA, whose
sentences are short. In so few steps, Adam without its correction makes steps three to six times as large. A pilot run
of the correction on named entities was seen, without its counterpart.

Added after the first results, with comparisons that were written down before they were measured: twice the epochs,
named entities with 400 sentences, as in the source, and the other three tasks of the literature. Later, in the same
way: warmup, more epochs and a higher learning rate on STS-B, where the uncorrected runs were better.
"""

from experiments.claim import Claim, Grid
from experiments.claims.c03b_where_a_crf_helps import CELLS as HEADS
from experiments.claims.c03b_where_a_crf_helps import COMMON
from experiments.verdicts import Comparison, epochs_to_loss, measure

CELL = "PKU, 1 layer, 160 sentences"
WORDS = {CELL: {**HEADS[CELL], "constraints": True}}
ENGLISH = {
    "bert": "english",
    "sentences": 256,
    "learning_rate": 5e-5,
    "batch_size": 16,
    "max_length": 48,
    "warmup": 0.0,
}
TASKS = {name: {"corpus": name.lower().replace("-", ""), **ENGLISH} for name in ("CoLA", "STS-B", "MRPC", "RTE")}
COLA = {"CoLA": {**TASKS["CoLA"], "epochs": 3}}
OTHERS = {name: {**TASKS[name], "epochs": 3} for name in ("RTE", "STS-B", "MRPC")}
ENTITIES = "People's Daily, 4 layers, 400 sentences"
NAMED = {ENTITIES: {**COMMON, "corpus": "people_daily", "sentences": 400, "epochs": 3}}
LONGER = "PKU, 1 layer, 160 sentences, twice the epochs"
TWICE = {LONGER: {**WORDS[CELL], "epochs": 8}}
PAIRS = "STS-B, twice the epochs"
PAIRS_TWICE = {PAIRS: {**TASKS["STS-B"], "epochs": 6}}
ARMS = {"corrected": {}, "uncorrected": {"bias_correction": False}}
WARMUP = {f"{name}, warmup": {**arm, "warmup": 0.1} for name, arm in ARMS.items()}
HIGHER = {"corrected, four times the rate": {"learning_rate": 4 * ENGLISH["learning_rate"]}}
NO_WARMUP = {f"{name}, no warmup": {**arm, "warmup": 0.0} for name, arm in ARMS.items()}
LOSS = "epochs to the final loss of the uncorrected run, divided by its epochs"

CLAIM = Claim(
    title="Without Adam's bias correction, fine-tuning on few samples fails; with it, half the steps are enough",
    source="NER, 400 sentences: half the steps to the same loss, F1 slightly higher (Stable BERT 2020)",
    literature="Mosbach 2021, 25 seeds, with warmup, a small rate and 20 epochs: RTE 52.3 ± 7.2 to 70.1 ± 2.4, "
    "MRPC 79.0 ± 5.9 to 89.6 ± .8, CoLA 45.6 ± 25.6 to 64.6 ± 1.0; Zhang 2021 agrees; mixout#4 blames BERTAdam; Su "
    "(keras PR 13577): the correction can overfit",
    grids=(
        Grid(WORDS, ARMS),
        Grid(WORDS, NO_WARMUP),
        Grid(COLA, ARMS),
        Grid(NAMED, ARMS),
        Grid(TWICE, ARMS),
        Grid(TWICE, NO_WARMUP),
        *(Grid({name: cell}, ARMS) for name, cell in OTHERS.items()),
        Grid({"STS-B": OTHERS["STS-B"]}, {**WARMUP, **HIGHER}),
        Grid(PAIRS_TWICE, ARMS),
        Grid(PAIRS_TWICE, WARMUP),
    ),
    comparisons=(
        Comparison("corrected", "uncorrected", "lower", 0.1, (CELL,), LOSS, epochs_to_loss),
        Comparison("corrected", "uncorrected", "higher", 0.01, (CELL,), "F1"),
        Comparison("corrected, no warmup", "uncorrected, no warmup", "lower", 0.1, (CELL,), LOSS, epochs_to_loss),
        Comparison("corrected, no warmup", "uncorrected, no warmup", "higher", 0.01, (CELL,), "F1"),
        Comparison("corrected", "uncorrected", "higher", 0.02, ("CoLA",), "Matthews correlation"),
        Comparison("corrected", "uncorrected", "lower", 0.05, ("CoLA",), "fraction of failed runs", measure("failed")),
        Comparison("corrected", "uncorrected", "lower", 0.1, (ENTITIES,), LOSS, epochs_to_loss),
        Comparison("corrected", "uncorrected", "higher", 0.01, (ENTITIES,), "F1"),
        Comparison("corrected", "uncorrected", "lower", 0.1, (LONGER,), LOSS, epochs_to_loss),
        Comparison("corrected", "uncorrected", "higher", 0.01, (LONGER,), "F1"),
        Comparison("corrected, no warmup", "uncorrected, no warmup", "lower", 0.1, (LONGER,), LOSS, epochs_to_loss),
        Comparison("corrected, no warmup", "uncorrected, no warmup", "higher", 0.01, (LONGER,), "F1"),
        Comparison("corrected", "uncorrected", "higher", 0.02, ("RTE",), "accuracy"),
        Comparison("corrected", "uncorrected", "higher", 0.02, ("STS-B",), "correlation"),
        Comparison("corrected", "uncorrected", "higher", 0.02, ("MRPC",), "F1"),
        *(
            Comparison("corrected", "uncorrected", "lower", 0.05, (task,), "fraction of failed runs", measure("failed"))
            for task in ("RTE", "MRPC")
        ),
        Comparison("corrected, warmup", "uncorrected, warmup", "higher", 0.02, ("STS-B",), "correlation"),
        Comparison("corrected, four times the rate", "uncorrected", "higher", 0.02, ("STS-B",), "correlation"),
        Comparison("corrected", "uncorrected", "lower", 0.1, (PAIRS,), LOSS, epochs_to_loss),
        Comparison("corrected", "uncorrected", "higher", 0.02, (PAIRS,), "correlation"),
        Comparison("corrected, warmup", "uncorrected, warmup", "lower", 0.1, (PAIRS,), LOSS, epochs_to_loss),
        Comparison("corrected, warmup", "uncorrected, warmup", "higher", 0.02, (PAIRS,), "correlation"),
    ),
)
