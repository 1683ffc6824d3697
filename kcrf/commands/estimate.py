"""kcrf estimate: unlabeled text in, the expected scores of a model on it out."""

from argparse import Namespace
from typing import Any

from kcrf.commands.model_input import STANDARD, add_model_options, checked_input, checked_texts
from kcrf.commands.parsers import CommandParser
from kcrf.commands.quiet import quick_import
from kcrf.commands.streams import Progress
from kcrf.commands.suggest import function_of_line
from kcrf.files import json_line
from kcrf.progress_bars import print_note
from kcrf.reports.tables import score_table
from kcrf.tasks import TASKS, task_of

EPILOG = """The input has one text per line, for a run of pos one sentence of tokens separated by spaces. Scores are
expected from the model's own probabilities. The interval contains the real score in 95 of 100 cases if the
texts are like the training data; notes say how they are unlike it.

example:
  kcrf estimate --model runs/people unlabeled.txt"""
OPTIONS = "--json  Print a JSON object instead of a table. [no]" + STANDARD


def add_options(parser: CommandParser) -> None:
    add_model_options(parser)
    parser.set_defaults(out=None)


def run(options: Namespace) -> None:
    from rich.console import Console

    with checked_input(options, tuple(TASKS)) as lines:
        text_of, of_tokens = function_of_line(options), task_of(options.model_task).needs_tokens
        texts = (text_of(line) for line in checked_texts(lines, lines.name, of_tokens) if line.strip())
        with quick_import():
            from kcrf.taggers import load_tagger

            tagger = load_tagger(options.opened, options.standard)
        with Progress(lines, "estimate", "characters") as progress:
            estimate = tagger.estimate(texts, options.batch_size, lambda count: progress.update(count, lines.position))
    if not estimate.texts:
        raise ValueError(f"{lines.name}: needs at least one text. Received: none")
    if options.json:
        print(json_line(estimate.as_dict()))
        return
    columns = ["label", "precision", "recall", "F1", "found", "expected"]
    by_label = {"all": estimate.all, **{f"  {label}": scores for label, scores in estimate.labels.items()}}
    rows = [[name, *map(_cell, (s.precision, s.recall, s.f)), s.found, f"{s.true:.1f}"] for name, s in by_label.items()]
    Console().print(score_table(f"{options.model}: {estimate.texts:,} texts", columns, rows))
    for note in estimate.notes:
        print_note(note)


def _cell(score: Any) -> str | None:
    return score and f"{score.value:.3f} ±{max(score.high - score.value, score.value - score.low):.3f}"
