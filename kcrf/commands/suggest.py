"""kcrf suggest: unlabeled text in, the texts to label next out, with predictions for annotators to correct."""

import math
import shutil
import sys
import tempfile
from argparse import Namespace
from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from kcrf.commands.model_input import STANDARD, add_model_options, checked_input, checked_texts, text_and_partner
from kcrf.commands.parsers import OVERWRITE, CommandParser, check_out, declare
from kcrf.commands.quiet import quick_import
from kcrf.commands.streams import Lines, Progress
from kcrf.corpora.annotation_tools import PreAnnotation, doccano_line, label_studio_task
from kcrf.corpora.classified import classified_line
from kcrf.corpora.entities import entity_line
from kcrf.corpora.lines import decode_lines
from kcrf.corpora.tables import pair_of
from kcrf.corpora.tagged import tagged_line
from kcrf.files import json_line, write_lines
from kcrf.progress_bars import print_note
from kcrf.tasks import TASKS, task_of
from kcrf.tasks.tokens import sentence_of_tokens

_DIGITS = 6

EPILOG = """The input has one text per line, for a run of pos one sentence of tokens separated by spaces. The texts of
which the model is least certain come first. Each has the model's predictions, for annotators to correct.
`kcrf train` reads the output, and the exports of doccano and Label Studio.

examples:
  kcrf suggest --model runs/people unlabeled.txt --train train.jsonl --count 200 --out next.jsonl
  kcrf suggest --model runs/people unlabeled.txt --format label-studio --out next.json"""
OPTIONS = """
--count N:100  How many texts to suggest. [%(default)s]
--until X      Suggest as many texts as this F1 needs by the learning curve of --train, instead of --count. [no]
--format {json,doccano,label-studio}:json  The output. json: an object per line, as `kcrf tag`, `kcrf segment --json`
               and `kcrf classify` write it. doccano: JSONL to import into doccano. label-studio: a JSON array of tasks
               with predictions, to import into Label Studio from a file that ends in .json. [%(default)s]
--train FILE   The labeled texts, as `kcrf train` reads them: no text is suggested that is nearly one of them. [none]
--strategy {mean-entropy,token-entropy,sequence-entropy,least-confidence}:mean-entropy  How uncertainty is measured.
               mean-entropy: the entropy of the tag sequences per token. token-entropy: the mean entropy of the tags.
               sequence-entropy: the entropy of the tag sequences, and least-confidence: minus the log probability of
               the best one; both prefer long texts. [%(default)s]
"""


def add_options(parser: CommandParser) -> None:
    declare(parser, STANDARD)
    add_model_options(parser)
    declare(parser, "--out FILE  Where to write; a file that does not exist. [standard output]" + OVERWRITE)


def run(options: Namespace) -> None:
    if options.count < 1:
        raise ValueError(f"--count must be at least 1. Received: {options.count}")
    if options.out:
        check_out(options.out, options.file, options.overwrite)
    if options.format == "label-studio" and options.out and Path(options.out).suffix != ".json":
        raise ValueError(f"--format label-studio needs --out with a name that ends in .json. Received: {options.out}")
    with checked_input(options, tuple(TASKS)) as lines, _on_disk(lines) as lines:
        items = labeled_items(options)
        if options.until is not None:
            options.count = _count_until(options, items)
        labeled = ["\t".join(filter(None, getattr(item, "texts", (item.text,)))) for item in items]
        texts = _Texts(lines, options)
        with quick_import():
            from kcrf.taggers import load_tagger

            tagger = load_tagger(options.opened, options.standard)
        with Progress(lines, "suggest", "characters") as progress:
            chosen = tagger.suggest(
                texts,
                options.count,
                options.strategy,
                labeled,
                options.batch_size,
                lambda count: progress.update(count, lines.position),
            )
    _check_count(len(chosen), len(texts), options)
    _write(options, [_line(options, suggestion) for suggestion in chosen])


def _check_count(chosen: int, total: int, options: Namespace) -> None:
    """Raises ValueError if no text was chosen, and prints a note if fewer were chosen than the user wants."""
    name = options.file or "<stdin>"
    if not total:
        raise ValueError(f"{name}: needs at least one text. Received: none")
    if not chosen:
        or_labeled = f" or nearly one of those in {options.train}" if options.train else ""
        raise ValueError(f"{name}: needs a text to label. Received: {total:,} lines, all of them empty{or_labeled}")
    if chosen < options.count:
        reason = "the input has no more"
        if total > chosen:
            reason = f"the other {total - chosen:,} are empty, or nearly the same as these or as labeled ones"
        print_note(f"{name}: {chosen:,} texts instead of {options.count:,}: {reason}")


def _write(options: Namespace, lines: list[str]) -> None:
    """Writes the lines; for Label Studio, the elements of one array."""
    if options.format == "label-studio":
        lines = ["[", *(f"{line}," for line in lines[:-1]), lines[-1], "]"]
    if options.out:
        write_lines(options.out, lines)
    else:
        sys.stdout.buffer.write("".join(f"{line}\n" for line in lines).encode("utf-8", "surrogatepass"))
        sys.stdout.buffer.flush()


# -- texts


@contextmanager
def _on_disk(lines: Lines) -> Iterator[Lines]:
    """A context with `Lines` that can be read twice: the lines of a pipe are copied to a temporary file."""
    if lines.source.seekable():
        yield lines
        return
    with tempfile.TemporaryFile() as file:
        shutil.copyfileobj(lines.source, file)
        file.seek(0)
        yield Lines(file, lines.name)


class _Texts(Sequence[Any]):
    """The texts of an input as a sequence that keeps only their offsets in the file in memory."""

    def __init__(self, lines: Lines, options: Namespace) -> None:
        self._lines, self._offsets, self.name = lines, array("q"), lines.name
        self._first_offset, self._text_of = lines.source.tell(), function_of_line(options)
        self._of_tokens = task_of(options.model_task).needs_tokens

    def __len__(self) -> int:
        return len(self._offsets)

    def __iter__(self) -> Iterator[Any]:
        return map(self._text_of, checked_texts(self._recorded_lines(), self.name, self._of_tokens))

    def _recorded_lines(self) -> Iterator[str]:
        """Yields the lines, and records their offsets."""
        position = self._lines.position
        for line in self._lines:
            self._offsets.append(self._first_offset + position)
            yield line
            position = self._lines.position

    def __getitem__(self, index: Any) -> Any:
        self._lines.source.seek(self._offsets[index])
        return self._text_of(next(decode_lines([self._lines.source.readline()], self.name)))


def function_of_line(options: Namespace) -> Callable[[str], Any]:
    """The function from a line to a text, pair of texts or sentence, as the model takes it."""
    task = task_of(options.model_task)
    if task.output == "label" and options.opened.read_config().config.facts.pairs:
        return lambda line: tuple(pair_of(options.file or "<stdin>", line))
    return sentence_of_tokens if task.needs_tokens else str


def labeled_items(options: Namespace) -> list[Any]:
    """The items of the file --train, which is read with the options of the training set of the run."""
    if options.train is None:
        return []
    sources = (options.opened.read_config().data or {}).get("sources") or {}
    task, defaults = task_of(options.model_task), {"column": -1, "repair": True, "strip_tags": True, "fields": None}
    of_run = {name: sources[name] for name in task.file_options if sources.get(name) is not None}
    return task.check("train", task.read_file(options.train, defaults | of_run))


def _count_until(options: Namespace, labeled: list[Any]) -> int:
    """How many more sentences a score needs, by the learning curve of the models of `kcrf curve`."""
    from kcrf.commands.curve import curve_settings, in_words
    from kcrf.training import learning_curve

    if not 0 < options.until < 1 or not labeled:
        raise ValueError(f"--until needs --train FILE and a score above 0 and below 1. Received: {options.until}")
    curve = learning_curve(curve_settings({"task": options.model_task}), labeled)
    print_note(in_words(curve, options.until))
    if (needed := curve.size(options.until)) is None:
        raise ValueError(f"--until must be within reach of sentences like these. Received: {options.until}")
    return max(1, round(needed.value - curve.count))


# -- what is written


def _line(options: Namespace, suggestion: Any) -> str:
    """A line of the output: the text with its predictions, as `kcrf train` reads it or for an annotation tool."""
    if options.format != "json":
        return _pre_annotated(options.format, suggestion)
    text, found, score = suggestion.text, suggestion.prediction, {"uncertainty": round(suggestion.score, _DIGITS)}
    task = task_of(options.model_task)
    if task.output == "label":
        return classified_line(*text_and_partner(text), label=found.label, **score)
    labels = [span.label for span in found]
    if task.needs_tokens:
        return tagged_line([span.text for span in found], labels, **score)
    if options.model_task == "ner":
        return entity_line(text, [replace(span, probability=None).as_dict() for span in found], **score)
    tags = {"tags": labels} if task.has_word_classes else {}
    return json_line({"text": text, "words": [span.text for span in found], **tags, **score})


def _pre_annotated(output_format: str, suggestion: Any) -> str:
    """A suggestion as an annotation tool imports it."""
    text, text_b = text_and_partner(getattr(suggestion.text, "text", suggestion.text))
    found, score = suggestion.prediction, round(suggestion.score, _DIGITS)
    if isinstance(found, list):
        annotation = PreAnnotation(text, [(span.start, span.end, span.label or "word") for span in found], (), score)
    else:
        labels = [found.label] if isinstance(found.label, str) else found.label
        annotation = PreAnnotation(text, [], labels, score, text_b)
    if output_format == "doccano":
        if text_b is not None:
            raise ValueError("--format doccano needs a run of single texts. Received: a run of pairs")
        return doccano_line(annotation)
    return label_studio_task(annotation, round(math.exp(-suggestion.score), _DIGITS))
