"""kcrf classify: texts in, a label for each out."""

from argparse import Namespace
from collections.abc import Callable
from typing import Any

from kcrf.commands.model_input import add_input_options, checked_input, text_and_partner
from kcrf.commands.parsers import CommandParser, fields_argument
from kcrf.commands.quiet import quick_import
from kcrf.commands.streams import write_results

EPILOG = """examples:
  echo 房间很干净 | kcrf classify --model runs/reviews
  kcrf classify --model runs/rte --input table --fields sentence1,sentence2 test.tsv > found.jsonl"""
OPTIONS = """
--input {text,table,json}:text  The input. text: one text per line; for a run that was trained on pairs, two texts with
                                a tab between them. table: columns between tabs or commas. json: one object per line,
                                with the members text and, for pairs, text_b. [%(default)s]
--fields TEXT  Where the text is, or TEXT,TEXT_B for pairs of texts: names of columns in the first line of the table or
               of JSON members, or numbers of columns from 0, for a table without names. [text and text_b]
"""


def add_options(parser: CommandParser) -> None:
    add_input_options(parser, "Texts")


def run(options: Namespace) -> None:
    if options.fields is not None and options.input == "text":
        raise ValueError("--fields needs --input table or json. Received: --input text")
    fields = fields_argument(options)
    with checked_input(options) as lines:
        from kcrf.corpora.tables import iterate_texts

        config = options.opened.read_config().config
        name, pairs, labels = options.file or "<stdin>", config.facts.pairs, config.data.labels
        texts = iterate_texts(lines, name, options.input, fields, pairs, labels)
        write_results(lines, texts, _classifying, options, "texts")


def _classifying(options: Namespace) -> Callable[..., list[str]]:
    """The function that classifies texts, for `write_results`."""
    from kcrf.corpora.classified import classified_line

    with quick_import():
        from kcrf.taggers import TextClassifier

        classifier = TextClassifier(options.opened or options.model)

    def process(items: list[Any], on_batch: Any) -> list[str]:
        results = classifier.predict(items, options.batch_size, on_batch)
        return [classified_line(*text_and_partner(item), **_members(each)) for item, each in zip(items, results)]

    return process


def _members(result: Any) -> dict[str, Any]:
    """The members of the object that is written for a `Classification`."""
    if result.probability is None:
        return {"label": result.label}
    return {"label": result.label, "probabilities": {name: round(p, 6) for name, p in result.probabilities.items()}}
