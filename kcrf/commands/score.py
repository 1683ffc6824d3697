"""kcrf score"""

import json
import os
import re
import sys
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kcrf.commands.parsers import (
    CommandParser,
    add_reading_options,
    declare,
    print_scores,
    reading_arguments,
    refuse_data_options,
)

_MOST_PAIRS = 10
_PROBABILITY = re.compile(r'"(?:probability|probabilities)": ?[\[{\d]')

EPILOG = """GOLD and PRED hold the same text. For cws: one sentence per line, words separated by spaces. For ner:
CoNLL or JSON lines, also one of each. For pos and cws-pos: as `kcrf train` reads them. For classify:
columns, or JSON lines as `kcrf classify` writes them;
numbers with decimals are correlated. The predictions.jsonl of a run folder holds both, and so needs neither
--task nor --gold; so do columns for conlleval, whose last two are correct and predicted tags of entities.
JSON of kcrf given as --gold is refused. Segmented text and CoNLL columns do not
say who wrote them: if GOLD and PRED are exchanged, precision and recall are exchanged, and F1 is the same.
The first lines of the output name both files.

examples:
  kcrf score --gold gold.txt --pred mine.txt --words training_words.txt
  kcrf score --task cws-pos --gold test.txt --pred tagged.txt --words training_words.txt
  kcrf score --task ner --gold test.conll --pred tagged.jsonl
  kcrf score --task pos --gold test.conllu --column XPOS --pred tagged.conll --words training_words.txt
  kcrf score --task classify --gold test.tsv --pred classified.jsonl
  kcrf score --pred runs/people/predictions.jsonl"""
OPTIONS = """
--task {cws,ner,pos,cws-pos,classify}  What to score: words (cws), words with their classes (cws-pos), entities (ner),
              tags of tokens (pos) or labels of texts (classify). [cws]
--gold GOLD   The file with the correct words or entities.
--pred PRED!  The file to score.
--words FILE  The training data, or its words, separated by spaces. Adds the recall of words that are in it (IV) and of
              those that are not (OOV); for pos their accuracy. Only with --task cws, cws-pos and pos. [no such scores]
"""


def add_options(parser: CommandParser) -> None:
    add_reading_options(parser)
    declare(parser, "--json  Print a JSON object instead of a table. [no]")


def run(options: Namespace) -> None:
    from rich.console import Console

    from kcrf.corpora import read_conll
    from kcrf.reports import score_table
    from kcrf.tasks import MismatchError, task_of

    record = _read_run(options)
    of_conlleval = options.gold is None and not record and options.task in (None, "ner") and _has_both(options.pred)
    task = task_of(record.settings["task"] if record else options.task or ("ner" if of_conlleval else "cws"))
    refuse_data_options(options, task.name)
    if options.gold is None and record is None and not of_conlleval:
        raise ValueError("needs --gold GOLD; only the predictions.jsonl of a run folder holds it. Received: no --gold")
    _check_gold(options)
    if of_conlleval:
        gold, predicted = (read_conll(options.pred, column, repair=True) for column in (-2, -1))
    else:
        gold = _read(options, task, options.gold) if options.gold else task.predicted_items(record.predictions, "gold")
        predicted = task.predicted_items(record.predictions, "found") if record else _read(options, task, options.pred)
    try:
        labels = _known_labels(Path(options.pred)) if task.output == "label" else ()
        words = _training_words(options, task, gold)
        scores = _scores(record, gold, predicted, lambda gold, predicted: task.scores(gold, predicted, words, labels))
    except MismatchError as error:
        place = options.pred if error.line is None else f"{options.pred}:{error.line}"
        raise ValueError(f"{place}: {error}") from None
    if scores.get("oov_rate") == 1:
        note = f"kcrf score: --words {options.words} has none of the correct words; it should be the training data"
        print(note, file=sys.stderr)
    if options.json:
        print(json.dumps(scores))
    else:
        title = options.pred if options.gold is None else f"gold: {options.gold}\npredictions: {options.pred}"
        print_scores(title, {"all": scores})
        if confusion := scores.get("confusion"):
            pairs = score_table("most frequent mistakes", ["gold", "predicted", "count"], confusion[:_MOST_PAIRS])
            Console().print(pairs)


def _scores(run: Any, gold: list[Any], predicted: list[Any], score: Callable[..., Any]) -> dict[str, Any]:
    """The scores of all items. For a run of several segmentation standards, their mean and the scores of each."""
    from kcrf.taggers.standards import scores_of_standards

    rows, scores = {}, score(gold, predicted)  # also for its error, which names the line
    standards = [row.get("standard") for row in run.predictions] if run else []
    if not any(standards):
        return scores
    for standard, *items in zip(standards, gold, predicted, strict=True):
        rows.setdefault(standard, []).append(items)
    return scores_of_standards({standard: score(*map(list, zip(*items))) for standard, items in rows.items()})


def _read(options: Namespace, task: Any, path: str) -> list[Any]:
    """The items of a file."""
    return task.read_scored(path, reading_arguments(options), is_gold=path == options.gold)


def _has_both(path: str) -> bool:
    """Whether a file has columns as conlleval reads them: the correct tags, and last the predicted tags."""
    from kcrf.corpora import read_lines
    from kcrf.corpora.columns import split_columns
    from kcrf.tags.scheme import ENTITY_TAG

    rows = split_columns(path, read_lines(path)).rows if Path(path).is_file() else []
    return bool(rows) and all(len(cells) > 2 and all(map(ENTITY_TAG.fullmatch, cells[-2:])) for cells in rows)


def _check_gold(options: Namespace) -> None:
    """Refuses a gold file that a command wrote, for predictions that none wrote: they were exchanged."""
    if options.gold is not None and os.path.abspath(options.gold) == os.path.abspath(options.pred):
        print(f"kcrf score: --gold and --pred are the same file, {options.gold}", file=sys.stderr)
    if options.gold is not None and _is_predicted(Path(options.gold)) and not _is_predicted(Path(options.pred)):
        received = "predictions of `kcrf`; exchange --gold and --pred"
        raise ValueError(f"{options.gold}: --gold needs the correct words, entities or labels. Received: {received}")


def _is_predicted(path: Path) -> bool:
    """Whether a `kcrf` command wrote a file: it is of a run, or has probabilities."""
    from kcrf.corpora import read_lines
    from kcrf.corpora.json_objects import begins_json

    if _is_of_run(path):
        return True
    lines = read_lines(path) if path.is_file() else []
    return begins_json(lines) and any(map(_PROBABILITY.search, lines))


def _read_run(options: Namespace) -> Any:
    """The `kcrf.runs.RunRecord` if --pred is the predictions.jsonl of a run folder, else None."""
    from kcrf.runs import read_run

    path = Path(options.pred)
    if not _is_of_run(path):
        return None
    run = read_run(path.parent)
    task = run.settings.get("task")
    if options.task not in (None, task):
        raise ValueError(f"--task {options.task} needs such predictions. Received: {path} of --task {task}")
    return run


def _is_of_run(path: Path) -> bool:
    return path.name == "predictions.jsonl" and path.is_file() and path.with_name("config.json").is_file()


def _training_words(options: Namespace, task: Any, gold: list[Any]) -> set[str] | None:
    """Reads the set of in-vocabulary words from --words, which is labeled data or lines of words. None without it."""
    from kcrf.corpora import read_lines, read_segmented, read_tagged
    from kcrf.corpora.columns import is_conllu
    from kcrf.corpora.json_objects import begins_json
    from kcrf.corpora.word_classes import class_sign, without_class
    from kcrf.tasks.tokens import words_of

    if options.words is None:
        return None
    lines = read_lines(options.words)
    words = [word for line in lines for word in line.split()]
    if task.name == "cws":
        if begins_json(lines) or is_conllu(lines):
            return {word for sentence in read_segmented(options.words) for word in sentence}
    elif begins_json(lines) or is_conllu(lines) or _are_columns(lines, {tag for s in gold for *_, tag in s.spans}):
        return {word for sentence in read_tagged(options.words) for word in words_of(sentence)}
    return set(words if class_sign(words)[0] is None else map(without_class, words))


def _are_columns(lines: list[str], tags: set[str]) -> bool:
    """Whether lines have a token and its tag each: two columns or more, with empty lines between sentences. Words may
    come in pairs as well: of columns between spaces, most values of one must be among `tags`, the gold ones."""
    if any("\t" in line for line in lines):
        return True
    rows = [line.split() for line in lines if not line.startswith("#")]
    if [] not in rows[1:-1] or len({len(row) for row in rows if row}) != 1:
        return False
    _, *others = zip(*filter(None, rows), strict=True)
    return any(sum(value in tags for value in column) > len(column) / 2 for column in others)


def _known_labels(path: Path) -> tuple[str, ...]:
    """The labels of the classifier in their order, of its run or as `kcrf classify` writes them; () of numbers."""
    from kcrf.corpora import read_lines
    from kcrf.corpora.json_objects import begins_json, json_objects
    from kcrf.runs import RunFolder

    if _is_of_run(path):
        return RunFolder(path.parent).read_config().config.data.labels
    lines = read_lines(path)
    if not begins_json(lines):
        return ()
    _, first = json_objects(path, lines)[0]
    probabilities = first.get("probabilities")
    return tuple(probabilities) if isinstance(probabilities, dict) else ()
