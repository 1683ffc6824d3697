"""The demo: three word segmenters with different heads, their scores, transition matrices and errors."""

import os
import platform
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.text import Text

from kcrf.backend import backend_name, keras, ops
from kcrf.corpora import load_mini
from kcrf.metrics import transition_report
from kcrf.metrics.bootstrap import bootstrap_predictions, interval
from kcrf.reports import score_table, transition_heat_map, transition_table, write_report
from kcrf.runs import Settings, read_run
from kcrf.taggers import WordSegmenter
from kcrf.tags import bmes
from kcrf.tasks.task import as_sentence
from kcrf.training import train_segmenter
from kcrf.training.progress import TrainingProgress

# The learning rate moves a weight by 0.1 to 0.2 in the whole run, as BERT's does. In the initial transition matrix 7 of
# the 8 illegal transitions score above a legal one (with the seeds 0 to 7: 7, 4, 4, 6, 7, 4, 7, 5).
# Without constraints, so that what the transitions learn can be seen.
SETTINGS = Settings(
    constraints=False,
    learning_rate=2e-4,
    epochs=14,
    batch_size=16,
    width=192,
    depth=2,
    min_bigrams=2,
    linear_weight=0.0,
)
SHOWN = 3  # sentences of the test set at the end
LEGEND = (
    "±: half of the 95 % bootstrap interval over the test sentences.\n"
    "illegal > legal: illegal transitions that score above a legal one from the same tag.\n"
    "size/gap: standard deviation of the transitions; median distance between a\n"
    "character's best two emission scores."
)

_NEXT = """
Now try:
  echo 研究生命的起源 | kcrf segment                            # the segmenter that comes with kcrf
  echo 研究生命的起源 | kcrf segment --model {run}    # the one of this demo
  kcrf train --task cws --train FILE --out runs/words           # your own, of lines of words"""

HEADS = {
    "softmax": replace(SETTINGS, head="softmax"),
    "CRF x1": replace(SETTINGS, crf_lr_multiplier=1),
    "CRF x100": replace(SETTINGS, crf_lr_multiplier=100),
}


def compare_heads(out: str, texts: Sequence[str] = (), heads: Mapping[str, Settings] = HEADS) -> None:
    """Trains word segmenters on the built-in corpus and prints how they compare. `heads` are their settings by name."""
    console, scheme, corpus = Console(), bmes(), load_mini()
    say = partial(console.print, highlight=False, markup=False, soft_wrap=True)
    folders = [Path(out) / name.lower().replace(" ", "_") for name in heads]
    rows, matrices, f1, samples = [], {}, {}, {}
    for folder, (name, settings) in zip(folders, heads.items(), strict=True):
        progress = TrainingProgress(name)
        tagger, parts = train_segmenter(settings, corpus.train, corpus.valid, corpus.test, folder, progress, True)
        f1[name], samples[name] = parts["test"]["f"], bootstrap_predictions(read_run(folder).predictions or [])
        if tagger.crf is not None:
            matrices[name] = ops.convert_to_numpy(tagger.crf.trans)
        rows.append(_row(name, parts["test"], samples[name], tagger, matrices.get(name)))
    columns = ["head", "precision", "recall", "F1", "OOV recall", "illegal > legal", "size/gap"]
    console.print(score_table("Test set of the built-in corpus", columns, rows))
    for text in (LEGEND, _differences(f1, samples), _computed_on()):
        say(f"{text}\n")
    for name, matrix in matrices.items():
        console.print(transition_table(name, matrix, scheme))
    picture, page = Path(out) / "transitions.png", Path(out) / "report.html"
    _write("Heat map", picture, console, lambda: transition_heat_map(matrices, scheme, picture))
    _write("Report", page, console, lambda: write_report(folders, page))
    _show_sentences(folders[-1], texts, say)
    say(_NEXT.format(run=folders[-1]))


def _row(name: str, scores: dict[str, Any], samples: np.ndarray, tagger: Any, matrix: np.ndarray | None) -> list[Any]:
    """A row of the table. Scores have two digits: the third differs between machines and versions."""
    low, high = interval(samples)
    row = [name, *(f"{scores[key]:.2f}" for key in ("precision", "recall", "f", "oov_recall"))]
    row[3] += f"±{(high - low) / 2:.2f}"
    if matrix is None:
        return [*row, None, None]
    emissions = tagger.decoder.emissions(["".join(words) for words in load_mini().valid[:64]])
    report = transition_report(matrix, tagger.scheme, emissions)
    illegal = f"{report['illegal_above_legal']} of {report['illegal']}"
    return [*row, illegal, f"{report['size']:.1f}/{report['gap']:.1f}"]


def _differences(f1: dict[str, float], samples: dict[str, np.ndarray]) -> str:
    """The differences in F1 between the heads, and whether each is more than noise."""
    lines = [f"Differences in F1, with 95 % bootstrap intervals over the {len(load_mini().test)} test sentences:"]
    for first, second in combinations(f1, 2):
        low, high = interval(samples[second] - samples[first])
        noise = "noise" if low <= 0 <= high else "more than noise"
        lines.append(f"  {second} - {first}: {f1[second] - f1[first]:+.3f} ({low:+.3f} to {high:+.3f}), {noise}")
    return "\n".join(lines)


def _computed_on() -> str:
    name = backend_name()
    return (
        f"Computed by Keras {keras.__version__} on {name} {sys.modules[name].__version__}, {platform.system()} "
        f"{platform.machine()},\n{os.cpu_count()} cores. Other versions and machines give slightly different scores."
    )


def _write(what: str, path: Path, console: Console, write: Callable[[], object]) -> None:
    """Writes a file and names it, or says which package it needs."""
    try:
        write()
        console.print(f"{what}: {path}", highlight=False)
    except ImportError as error:
        console.print(f"No {what[0].lower()}{what[1:]}. {error}", markup=False)


def _show_sentences(run_dir: Path, texts: Sequence[str], say: Callable[[Any], object]) -> None:
    """Segments the first sentences of the test set and the user's texts, with the last run, whose wrong words are
    marked, and with the included model, which follows another standard."""
    sentences = load_mini().test[:SHOWN]
    plain = ["".join(words) for words in sentences]
    run, included = WordSegmenter(run_dir), WordSegmenter()
    trained = f"{run_dir}, trained on {len(load_mini().train):,} sentences just now; wrong words are in [brackets]:"
    other = "The segmenter that comes with kcrf, of another segmentation standard (UD Chinese GSD):"
    marked = marked_sentences(sentences, run.segment_batch(plain))
    for title, lines, shown in (
        (trained, marked, run.segment_batch(texts)),
        (other, [], included.segment_batch([*plain, *texts])),
    ):
        for line in [f"\n{title}", *lines, *("  " + " ".join(words) for words in shown)]:
            say(line)


def marked_sentences(gold: Sequence[list[str]], predicted: Sequence[Any]) -> list[Text]:
    """Predicted sentences with right words in green, and wrong words in red and brackets above the correct ones."""
    lines, right, total = [], 0, 0
    for correct, words in zip(gold, predicted, strict=True):
        missed, wrong = _words_at_other_places(correct, words), _words_at_other_places(words, correct)
        shown = [(f"[{word}]", "red") if place in wrong else (word, "green") for place, word in enumerate(words)]
        lines.append(Text.assemble("  ", *(part for word in shown for part in (word, " "))))
        if missed:
            lines.append(Text("    correct: " + " ".join(correct[place] for place in missed)))
        right, total = right + len(words) - len(wrong), total + len(words)
    return [*lines, Text(f"{right} of {total} words are right.")]


def _words_at_other_places(words: list[str], others: list[str]) -> list[int]:
    """The indices of the words that are not among the others, at the same characters."""
    spans = set(as_sentence(others).spans)
    return [place for place, span in enumerate(as_sentence(words).spans) if span not in spans]
