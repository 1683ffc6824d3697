"""kcrf tag: text in, its entities or the classes of its tokens out."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from kcrf.commands.model_input import add_input_options, checked_input, checked_texts
from kcrf.commands.parsers import CommandParser
from kcrf.commands.quiet import quick_import
from kcrf.commands.streams import Lines, Process, write_results

if TYPE_CHECKING:
    from kcrf.taggers import Span
    from kcrf.tasks import Task


EPILOG = """The model decides what is predicted. For ner, a JSON object for each line has the text and its entities;
with --k-best also `alternatives`: the K most probable analyses, each with its probability. For pos, a JSON
object has the tokens of a sentence, their tags, and the probabilities of these. In a terminal, texts with
marks are shown instead.

examples:
  echo 李雷住在上海。 | kcrf tag --model runs/people
  kcrf tag --model runs/english --input conll test.conll > found.jsonl
  echo Kim slept . | kcrf tag --model runs/pos --output conll"""
OPTIONS = """
--input {text,tokens,conll}  The input. text: one text per line, which a word-level model splits into tokens. tokens:
                      one sentence per line, tokens separated by spaces. conll: one token per line, in the first column,
                      an empty line between sentences. [text for ner, tokens for pos]
--output {json,conll,marks}  The output. json: an object per sentence. conll: a token, a tab and its tag per line, an
                      empty line after each sentence; needs tokens as the input. marks: the text with its entities in
                      brackets, or tokens with their tags. [json; marks in a terminal]
--k-best K            Also list the K most probable analyses of each line. [no]
--min-probability X   Return every entity with a posterior probability of at least X, between 0 and 1. Lower values
                      favor recall. [the setting of the run]
--coverage X          Return candidates to check by hand: so many, overlapping ones too, that a fraction of at least X
                      of the real entities is expected among them, in texts like the held-out sentences of the run. [no]
"""


def add_options(parser: CommandParser) -> None:
    add_input_options(parser)


def run(options: Namespace) -> None:
    from kcrf.tasks import TASKS

    if options.min_probability is not None and not 0 < options.min_probability < 1:
        raise ValueError(f"--min-probability must be above 0 and below 1. Received: {options.min_probability}")
    if options.coverage is not None and (options.output in ("conll", "marks") or options.min_probability):
        other = "--min-probability" if options.min_probability else f"--output {options.output}"
        raise ValueError(f"--coverage needs JSON without a minimum probability. Received: also {other}")
    with checked_input(options) as lines:
        task = TASKS[options.model_task]
        _check_formats(options, task)
        make = _tagging if task.needs_tokens else _recognizing
        write_results(lines, _inputs(lines, options.input), make, options, in_blocks=options.output == "conll")


def _check_formats(options: Namespace, task: Task) -> None:
    """Sets the format of the input, and refuses options that the task of the model has no use for."""
    options.input = options.input or ("tokens" if task.needs_tokens else "text")
    is_read = options.out is None and options.k_best is None and sys.stdout is not None and sys.stdout.isatty()
    options.output = options.output or ("marks" if is_read and options.coverage is None else "json")
    for name in ("k_best", "min_probability", "coverage"):
        if task.needs_tokens and getattr(options, name) is not None:
            raise ValueError(f"--{name.replace('_', '-')} needs a run of --task ner. Received: --task {task.name}")
    if options.input == "text" and (task.needs_tokens or options.output == "conll"):
        reason = f"a run of --task {task.name}" if task.needs_tokens else "--output conll"
        raise ValueError(f"{reason} needs --input tokens or conll. Received: --input text")
    if options.k_best is not None and options.output != "json":
        raise ValueError(f"--k-best needs --output json. Received: --output {options.output}")


def _tagging(options: Namespace) -> Process:
    """The function that predicts a class for each token, for `write_results`."""
    from kcrf.corpora.tagged import tagged_line, tagged_lines

    with quick_import():
        from kcrf.taggers import TokenTagger

        tagger = TokenTagger(options.opened or options.model)

    def process(sentences: list[Any], on_batch: Any) -> list[str]:
        tokens = [sentence.texts_of(sentence.tokens) for sentence in sentences]
        predictions: list[Any] = tagger.predict(sentences, options.batch_size, on_batch)
        labels = [[span.label for span in spans] for spans in predictions]
        if options.output == "conll":
            return ["".join(f"{line}\n" for line in tagged_lines(*pair)[:-1]) for pair in zip(tokens, labels)]
        if options.output == "marks":
            return [" ".join(map("/".join, zip(words, tags, strict=True))) for words, tags in zip(tokens, labels)]
        return [
            tagged_line(words, tags, probabilities=[round(span.probability, 6) for span in spans])
            for words, tags, spans in zip(tokens, labels, predictions)
        ]

    return process


def _recognizing(options: Namespace) -> Process:
    """The function that recognizes entities, for `write_results`."""
    from kcrf.corpora.entities import entity_line

    with quick_import():
        from kcrf.taggers import EntityRecognizer

        recognizer = EntityRecognizer(options.opened or options.model, options.min_probability, options.coverage)

    def process(sentences: list[Any], on_batch: Any) -> list[str]:
        predictions = recognizer.predict(sentences, options.batch_size, on_batch)
        if options.output == "conll":
            return [_columns(*pair) for pair in zip(sentences, predictions, strict=True)]
        texts = [sentence if isinstance(sentence, str) else sentence.text for sentence in sentences]
        if options.output == "marks":
            return list(map(_marked, texts, predictions))
        entities_of_texts = list(map(_members, predictions))
        if options.k_best is None:
            return list(map(entity_line, texts, entities_of_texts))
        alternatives_of_texts = [
            [{"probability": round(p, 6), "entities": _members(spans)} for spans, p in best]
            for best in recognizer.k_best_batch(sentences, options.k_best, options.batch_size)
        ]
        return [
            entity_line(text, entities, alternatives=alternatives)
            for text, entities, alternatives in zip(texts, entities_of_texts, alternatives_of_texts, strict=True)
        ]

    return process


def _columns(sentence: Any, spans: list[Span]) -> str:
    """The block of CoNLL lines for a `Sentence` with tokens."""
    from dataclasses import replace

    from kcrf.corpora.conll import conll_lines

    lines = conll_lines(replace(sentence, spans=[span.key for span in spans]))
    return "".join(f"{line}\n" for line in lines[:-1])


def _marked(text: str, spans: list[Span]) -> str:
    """A text with its entities in brackets, each with its type."""
    parts, end = [], 0
    for span in spans:
        parts += [text[end : span.start], f"[{span.text} {span.label}]"]
        end = span.end
    return "".join([*parts, text[end:]])


def _members(spans: list[Span]) -> list[dict[str, Any]]:
    return [span.as_dict() for span in spans]


def _inputs(lines: Lines, kind: str) -> Iterator[Any]:
    """The texts of an input: strings, or `Sentence`s if the input has tokens."""
    from kcrf.corpora.conll import read_conll_tokens
    from kcrf.tasks.tokens import sentence_of_tokens

    if kind == "text":
        return checked_texts(lines, lines.name)
    if kind == "conll":
        return iter(read_conll_tokens(lines))
    return map(sentence_of_tokens, checked_texts(lines, lines.name, of_tokens=True))
