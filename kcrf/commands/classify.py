"""kcrf classify: texts in, a label for each out."""

from kcrf.commands.parsers import add_command
from kcrf.commands.quiet import quiet_import
from kcrf.commands.tag import add_input_options, checked_input, write_results

__all__ = ["add_classify"]


def add_classify(commands):
    """Adds `kcrf classify`."""
    summary = "Classify texts: a JSON object out for each line, with its label and the probability of every label."
    add_command(commands, "classify", summary, _add_options, _classify)


def _add_options(parser):
    parser.epilog = (
        "A line is a text; for a run that was trained on pairs, two texts with a tab between them.\n\n"
        "example:\n  echo 房间很干净 | kcrf classify --model runs/reviews"
    )
    add_input_options(parser, "Texts")


def _classify(options):
    with checked_input(options, "classify") as lines:
        from kcrf.corpora import classified_line
        from kcrf.runs import RunFolder

        texts = _texts(lines, options.file or "<stdin>", RunFolder(options.model).read_settings().pairs)
        with quiet_import():
            from kcrf.taggers import TextClassifier

        classifier = TextClassifier(options.model)

        def process(items, on_batch):
            found = classifier.classify_batch(items, options.batch_size, on_batch)
            return [classified_line(*_pair(item), **_members(result)) for item, result in zip(items, found)]

        write_results(texts, process, "texts")


def _texts(lines, name, pairs):
    """Yields the texts of lines: strings, or for pairs tuples of two strings."""
    for number, line in enumerate(lines, 1):
        parts = tuple(line.split("\t"))
        if pairs and len(parts) != 2:
            raise ValueError(
                f"{name}:{number}: needs two texts with a tab between them, for a run that was trained on pairs. "
                f"Received: {len(parts)}"
            )
        yield parts if pairs else line


def _pair(item):
    return (item, None) if isinstance(item, str) else item


def _members(result):
    """The members of the object that is written for a `Classification`."""
    if result.probability is None:
        return {"label": round(result.label, 6)}
    return {"label": result.label, "probabilities": {name: round(p, 6) for name, p in result.probabilities.items()}}
