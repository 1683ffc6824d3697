"""kcrf classify: texts in, a label for each out."""

from kcrf.commands.model_input import add_input_options, checked_input
from kcrf.commands.parsers import add_command, fields_argument
from kcrf.commands.quiet import quick_import
from kcrf.commands.streams import write_results


def add_classify(commands):
    """Adds `kcrf classify`."""
    summary = "Classify texts: a JSON object out for each line, with its label and the probability of every label."
    add_command(commands, "classify", summary, _add_options, _classify)


def _add_options(parser):
    parser.epilog = (
        "examples:\n  echo 房间很干净 | kcrf classify --model runs/reviews\n"
        "  kcrf classify --model runs/rte --input table --fields sentence1,sentence2 test.tsv > found.jsonl"
    )
    parser.add_argument(
        "--input",
        choices=["text", "table", "json"],
        default="text",
        help="The input. text: one text per line; for a run that was trained on pairs, two texts with a tab "
        "between them. table: columns between tabs or commas. json: one object per line, with the members text and, "
        "for pairs, text_b. [%(default)s]",
    )
    parser.add_argument(
        "--fields",
        metavar="TEXT",
        help="Where the text is, or TEXT,TEXT_B for pairs of texts: names of columns in the first line of the table "
        "or of JSON members, or numbers of columns from 0, for a table without names. [text and text_b]",
    )
    add_input_options(parser, "Texts")


def _classify(options):
    if options.fields is not None and options.input == "text":
        raise ValueError("--fields needs --input table or json. Received: --input text")
    fields = fields_argument(options)
    with checked_input(options) as lines:
        from kcrf.corpora.tables import iterate_texts

        pairs = options.opened.read_config().config.facts.pairs
        texts = iterate_texts(lines, options.file or "<stdin>", options.input, fields, pairs)
        write_results(lines, texts, _classifying, options, "texts")


def _classifying(options):
    """The function that classifies texts, for `write_results`."""
    from kcrf.corpora.classified import classified_line

    with quick_import():
        from kcrf.taggers import TextClassifier

        classifier = TextClassifier(options.opened or options.model)

    def process(items, on_batch):
        classifications = classifier.predict(items, options.batch_size, on_batch)
        return [classified_line(*_pair(item), **_members(result)) for item, result in zip(items, classifications)]

    return process


def _pair(item):
    return (item, None) if isinstance(item, str) else item


def _members(result):
    """The members of the object that is written for a `Classification`."""
    if result.probability is None:
        return {"label": result.label}
    return {"label": result.label, "probabilities": {name: round(p, 6) for name, p in result.probabilities.items()}}
