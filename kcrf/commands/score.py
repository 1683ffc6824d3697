"""kcrf score"""

import json
import os
import re
import sys
from pathlib import Path

from kcrf.commands.parsers import (
    add_command,
    add_conll_options,
    add_fields_option,
    conll_arguments,
    fields_argument,
    print_scores,
    refuse_data_options,
)

__all__ = ["add_score"]

_MOST_PAIRS = 10
_CONFIDENCE = re.compile(r'"(?:confidence|confidences|probabilities)": ?[\[{\d]')


def add_score(commands):
    """Adds `kcrf score`."""
    summary = "Score words as SIGHAN (cws), entities as conlleval (ner), tokens (pos), labels as GLUE (classify)."
    add_command(commands, "score", summary, _add_options, _score)


def _add_options(parser):
    parser.epilog = (
        "GOLD and PRED hold the same text. For cws: one sentence per line, words separated by blanks. For ner:\n"
        "CoNLL or JSON lines, also one of each. For pos: as `kcrf train --task pos` reads them. For classify:\n"
        "columns, or JSON lines as `kcrf classify` writes them;\n"
        "numbers with decimals are correlated. The predictions.jsonl of a run folder holds both, and so needs neither\n"
        "--task nor --gold.\n"
        "\n"
        "examples:\n"
        "  kcrf score --gold gold.txt --pred mine.txt --words training_words.txt\n"
        "  kcrf score --task ner --gold test.conll --pred tagged.jsonl\n"
        "  kcrf score --task pos --gold test.conllu --column XPOS --pred tagged.conll --words training_words.txt\n"
        "  kcrf score --task classify --gold test.tsv --pred classified.jsonl\n"
        "  kcrf score --pred runs/people/predictions.jsonl"
    )
    parser.add_argument(
        "--task",
        choices=list(_HOW),
        help="What to score: words (cws), entities (ner), tags of tokens (pos) or labels of texts (classify). [cws]",
    )
    parser.add_argument("--gold", metavar="GOLD", help="The file with the correct words or entities.")
    parser.add_argument("--pred", required=True, metavar="PRED", help="The file to score.")
    parser.add_argument(
        "--words",
        metavar="FILE",
        help="The words of the training data, separated by blanks. Adds the recall of words that are in it (IV) and of "
        "those that are not (OOV); for pos their accuracy. Only with --task cws and pos. [no such scores]",
    )
    add_fields_option(parser)
    add_conll_options(parser)
    parser.add_argument("--json", action="store_true", help="Print a JSON object instead of a table. [no]")


def _score(options):
    task, gold, predicted = _read_run(options) or (options.task or "cws", None, None)
    refuse_data_options(options, task)
    if options.gold is None and gold is None:
        raise ValueError("needs --gold GOLD; only the predictions.jsonl of a run folder holds it. Received: no --gold")
    _check_gold(options)
    read, score = _HOW[task]
    gold = gold if options.gold is None else read(options, options.gold)
    predicted = read(options, options.pred) if predicted is None else predicted
    scores = score(options, gold, predicted)
    if options.json:
        print(json.dumps(scores))
    else:
        print_scores(options.pred, {"all": scores})
        _print_confusion(scores.get("confusion", ()))


def _print_confusion(confusion):
    """Prints the most frequent pairs of a gold and a predicted tag that differ."""
    if confusion:
        from rich.console import Console

        from kcrf.reports import score_table

        Console().print(score_table("most frequent mistakes", ["gold", "predicted", "count"], confusion[:_MOST_PAIRS]))


def _check_gold(options):
    """Refuses a gold file that a command wrote, for predictions that none wrote: they were exchanged."""
    if options.gold is not None and os.path.abspath(options.gold) == os.path.abspath(options.pred):
        print(f"kcrf score: --gold and --pred are the same file, {options.gold}", file=sys.stderr)
    if options.gold is not None and _is_predicted(Path(options.gold)) and not _is_predicted(Path(options.pred)):
        raise ValueError(
            f"{options.gold}: --gold needs the correct words, entities or labels. Received: predictions of `kcrf`; "
            "exchange --gold and --pred"
        )


def _is_predicted(path):
    """Whether a `kcrf` command wrote a file: it is of a run, or has confidences."""
    if _is_of_run(path):
        return True
    if not path.is_file() or not _is_json(path):
        return False
    with open(path, encoding="utf-8", errors="replace") as file:
        return any(_CONFIDENCE.search(line) for line in file)


def _read_run(options):
    """The task, the gold and the predictions if --pred is of a run folder, else None."""
    from kcrf.corpora import Example, Sentence
    from kcrf.runs import read_run

    path = Path(options.pred)
    if not _is_of_run(path):
        return None
    run = read_run(path.parent)
    task = run.settings.get("task")
    if options.task not in (None, task):
        raise ValueError(f"--task {options.task} needs such predictions. Received: {path} of --task {task}")
    if task == "classify":
        rows = run.predictions
        return task, *(
            [Example(row["text"], str(row[key]), row["text_b"]) for row in rows] for key in ("gold", "found")
        )
    parts = []
    for key in ("gold", "found"):
        spans = [sorted(span[:3] for span in row[key]) for row in run.predictions]
        texts = [row["text"] for row in run.predictions]
        if task == "cws":
            parts.append([[text[start:end] for start, end, _ in row] for text, row in zip(texts, spans)])
        else:
            parts.append([Sentence(*item, _extents(gold)) for item, gold in zip(zip(texts, spans), run.predictions)])
    return task, *parts


def _extents(row):
    """Where the gold spans of a prediction are: of --task pos, the tokens that are scored."""
    return sorted((start, end) for start, end, *_ in row["gold"])


def _is_of_run(path):
    return path.name == "predictions.jsonl" and path.is_file() and path.with_name("config.json").is_file()


def _read_words(options, path):
    from kcrf.corpora import read_lines, read_segmented

    if path == options.gold:
        return read_segmented(path, bool(options.strip_tags))
    return [line.split() for line in read_lines(path)]


def _read_entities(options, path):
    from kcrf.corpora import read_entities

    return read_entities(path, **conll_arguments(options))


def _word_scores(options, gold, predicted):
    from kcrf.metrics import segmentation_scores
    from kcrf.metrics.scores import TextMismatch

    if len(gold) != len(predicted):
        raise ValueError(
            f"{options.pred}: needs a line for each line of the gold. Received: {len(predicted)} lines, in the gold "
            f"{len(gold)}"
        )
    try:
        return segmentation_scores(gold, predicted, _training_words(options))
    except TextMismatch as error:
        raise ValueError(f"{options.pred}:{error.line}: {error}") from None


def _read_labels(options, path):
    from kcrf.corpora.classified import read_all_classified

    of_gold = path == options.gold or not _is_json(path)  # the predictions may be JSON, whose members have fixed names
    return read_all_classified(path, fields_argument(options) if of_gold else None)


def _is_json(path):
    return _json_line(path) is not None


def _json_line(path):
    """The first line of a file that is not blank, if it begins as a JSON object, else None."""
    from kcrf.corpora import read_lines
    from kcrf.corpora.lines import BEGINS_OBJECT

    first = next((line for line in read_lines(path) if line.strip()), "")
    return first if BEGINS_OBJECT.match(first) else None


def _entity_scores(options, gold, predicted):
    from kcrf.metrics import entity_scores

    _check_texts(options, "sentence", [s.text for s in gold], [s.text for s in predicted])
    scored = [sentence.scored(other.spans) for sentence, other in zip(gold, predicted)]
    return entity_scores([sentence.spans for sentence in gold], scored)


def _read_tags(options, path):
    from kcrf.corpora import read_lines, read_tagged

    first = next((line for line in read_lines(path) if line.strip() and not line.startswith("#")), "")
    has_one_tag = path != options.gold and len(first.split("\t")) == 2  # as `kcrf tag` writes it
    return read_tagged(path, -1 if options.column is None or has_one_tag else options.column)


def _token_scores(options, gold, predicted):
    from kcrf.corpora.tagged import tags_of_tokens
    from kcrf.metrics import token_scores

    _check_texts(options, "sentence", *([" ".join(_tokens(s)) for s in part] for part in (gold, predicted)))
    tags = ([tags_of_tokens(sentence) for sentence in part] for part in (gold, predicted))
    return token_scores(list(map(_tokens, gold)), *tags, _training_words(options))


def _tokens(sentence):
    return [sentence.text[start:end] for start, end in sentence.tokens]


def _training_words(options):
    """The words in --words, a set, or None."""
    from kcrf.corpora import read_lines

    return options.words and {word for line in read_lines(options.words) for word in line.split()}


def _label_scores(options, gold, predicted):
    from kcrf.corpora.classified import check_spellings, have_decimals, sorted_labels
    from kcrf.metrics import classification_scores, regression_scores

    gold, predicted = _decided(gold, predicted)
    _check_texts(options, "text", [e.texts for e in gold], [e.texts for e in predicted])
    labels = [[example.label for example in examples] for examples in (gold, predicted)]
    known = _known_labels(Path(options.pred))
    if not known and have_decimals(labels[0] + labels[1]):
        return regression_scores(*([float(label) for label in row] for row in labels))
    check_spellings([*gold, *predicted])
    others = sorted_labels({*labels[0], *labels[1]} - {*known})
    return classification_scores(*labels, (*known, *others))


def _decided(gold, predicted):
    """Gold and prediction without the texts on whose label annotators did not agree."""
    from kcrf.corpora.classified import undecided_examples

    undecided = undecided_examples(gold)
    if len(predicted) == len(gold):
        predicted = [example for number, example in enumerate(predicted) if number not in undecided]
    return [example for number, example in enumerate(gold) if number not in undecided], predicted


def _known_labels(path):
    """The labels of the classifier in their order, of its run or as `kcrf classify` writes them; () of numbers."""
    from kcrf.runs import RunFolder

    if _is_of_run(path):
        return RunFolder(path.parent).read_config().config.data.labels
    probabilities = json.loads(_json_line(path) or "{}").get("probabilities")
    return tuple(probabilities) if isinstance(probabilities, dict) else ()


def _check_texts(options, what, gold, predicted):
    """Raises ValueError where the texts of gold and prediction differ."""
    for number, (correct, found) in enumerate(zip(gold, predicted), 1):
        if correct != found:
            raise ValueError(
                f"{options.pred}: gold and prediction must have the same {what}s. Received: {what} {number} "
                f"{_short(found)!r}, in the gold {_short(correct)!r}"
            )
    if len(gold) != len(predicted):
        raise ValueError(
            f"{options.pred}: gold and prediction must have the same {what}s. Received: {len(predicted)} {what}s, in "
            f"the gold {len(gold)}"
        )


def _short(text):
    return text[:40] if isinstance(text, str) else " | ".join(part[:40] for part in text if part is not None)


_HOW = {
    "cws": (_read_words, _word_scores),
    "ner": (_read_entities, _entity_scores),
    "pos": (_read_tags, _token_scores),
    "classify": (_read_labels, _label_scores),
}
