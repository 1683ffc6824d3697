"""kcrf segment: text in, its words out, a line for each line."""

from __future__ import annotations

import argparse
from argparse import Namespace
from typing import TYPE_CHECKING, Any

from kcrf.commands.model_input import STANDARD, add_input_options, checked_input, checked_texts
from kcrf.commands.parsers import CommandParser, declare
from kcrf.commands.quiet import quick_import
from kcrf.commands.streams import Process, write_results
from kcrf.files import json_line

if TYPE_CHECKING:
    from kcrf.taggers import Span


EPILOG = """With --k-best each line gives up to K lines, each a probability, a tab and the words, and an empty line
after them. With --labels a class follows each word, as in 天气/NOUN; with --probabilities its
probability as well, as in 天气/NOUN/0.987.

examples:
  echo 今天天气真好 | kcrf segment --model runs/mine
  echo 今天天气真好 | kcrf segment --model runs/joint --labels
  kcrf segment --model runs/mine large.txt --out words.txt --workers 4"""
_OUTPUTS = """
--probabilities  Write word/probability, as in 天气/0.987. [no]
--k-best K       Write the K most probable segmentations of each line. [only the best]
"""
_OPTIONS = """
--labels         Write word/class, as in 天气/NOUN. Needs a run of --task cws-pos, or no --model. [no]
--json           Write a JSON object for each line, with its text and its words; with --labels also with their `tags`,
                 with --probabilities with their `probabilities`, with --k-best with `alternatives`. [no]
--words FILE     A user dictionary: one word per line, with or without a count and a word class after it. The words are
                 added to the lexicon features of the model, which decides. [none]
--force-words    Always segment the words in --words as words, whatever the model predicts; with --labels, also with
                 their classes, if the model has them. [no]
"""


def add_options(parser: CommandParser) -> None:
    declare(parser.add_mutually_exclusive_group(), _OUTPUTS)
    declare(parser, _OPTIONS)
    help = "Never cut runs of Latin letters and digits, such as Python3. [yes]"
    parser.add_argument("--keep-latin", action=argparse.BooleanOptionalAction, default=True, help=help)
    declare(parser, STANDARD)
    add_input_options(parser, default="the small models for Chinese that come with kcrf")


def run(options: Namespace) -> None:
    from kcrf.tasks import TASKS

    if options.model is None:
        from kcrf.taggers.open_model import built_in_segmenter

        options.model = str(built_in_segmenter(options.labels))
    if options.force_words and options.words is None:
        raise ValueError("--force-words needs --words FILE. Received: no --words")
    with checked_input(options) as lines:
        if options.labels and not TASKS[options.model_task].has_word_classes:
            raise ValueError(f"--labels needs a run of --task cws-pos. Received: {options.model}, which has no classes")
        from kcrf.corpora.dictionary import read_user_dictionary

        options.words = read_user_dictionary(options.words) if options.words else {}
        in_blocks = options.k_best is not None and not options.json
        write_results(lines, checked_texts(lines, lines.name), _segmenting, options, in_blocks=in_blocks)


def _segmenting(options: Namespace) -> Process:
    """The function that segments texts, for `write_results`."""
    with quick_import():
        from kcrf.taggers import WordSegmenter

        segmenter = WordSegmenter(
            options.opened or options.model,
            options.words,
            options.force_words,
            options.keep_latin,
            options.standard,
            options.labels,
        )

    def process(texts: list[str], on_batch: Any) -> list[str]:
        if options.k_best is not None:
            best = segmenter.k_best_batch(texts, options.k_best, options.batch_size, on_batch)
            return [_analyses(*item, options) for item in zip(texts, best, strict=True)]
        if not (options.probabilities or options.json):
            return segmenter.segment_lines(texts, options.batch_size, on_batch)
        spans = segmenter.predict(texts, options.batch_size, on_batch)
        return [_words(*item, options) for item in zip(texts, spans, strict=True)]

    return process


def _words(text: str, spans: list[Any], options: Namespace) -> str:
    """A line for the words of a text, with `--probabilities` or `--json` or both."""
    if not options.json:
        return " ".join(f"{_word(span)}/{span.probability:.3f}" for span in spans)
    members = _members(spans, options)
    if options.probabilities:
        members["probabilities"] = [round(span.probability, 6) for span in spans]
    return json_line({"text": text, **members})


def _members(spans: list[Span], options: Namespace) -> dict[str, Any]:
    """The members `words` and, with --labels, `tags` of a JSON object."""
    words = {"words": [span.text for span in spans]}
    return {**words, "tags": [span.label for span in spans]} if options.labels else words


def _analyses(text: str, best: list[tuple[list[Span], float]], options: Namespace) -> str:
    """A block of lines, or a line of JSON, for the most probable `(spans, probability)` of a text."""
    if not options.json:
        return "".join(f"{p:.4f}\t{' '.join(map(_word, spans))}\n" for spans, p in best)
    alternatives = [{"probability": round(p, 6), **_members(spans, options)} for spans, p in best]
    return json_line({"text": text, **_members(best[0][0], options), "alternatives": alternatives})


def _word(span: Span) -> str:
    return f"{span.text}/{span.label}" if span.label else span.text
