"""kcrf score"""

import json

from kcrf.commands.parsers import add_command, add_conll, print_scores
from kcrf.commands.training_options import conll

__all__ = ["add_score"]


def add_score(commands):
    """Adds the parser of `kcrf score`."""
    parser = add_command(
        commands,
        "score",
        _score,
        "Score words by SIGHAN's measure (cws), entities by conlleval's (ner).",
        "Both files hold the same text. For cws line by line, words separated by blanks; for ner as CoNLL or as JSON\n"
        "lines, each file in its own way.\n\n"
        "examples:\n  kcrf score --gold gold.txt --pred mine.txt --words training_words.txt\n"
        "  kcrf score --task ner --gold test.conll --pred tagged.jsonl",
    )
    parser.add_argument("--task", choices=["cws", "ner"], default="cws", help="what is scored [%(default)s]")
    parser.add_argument("--gold", required=True, metavar="FILE", help="what is right")
    parser.add_argument("--pred", required=True, metavar="FILE", help="what is judged")
    parser.add_argument("--words", metavar="FILE", help="cws: the words of the training text, for OOV and IV figures")
    add_conll(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of a table")


def _score(options):
    scores = _entity_scores(options) if options.task == "ner" else _word_scores(options)
    if options.json:
        print(json.dumps(scores))
    else:
        print_scores(options.pred, {"all": scores})


def _word_scores(options):
    from kcrf.corpora import read_lines, read_segmented
    from kcrf.metrics import TextMismatch, segmentation_scores

    gold, predicted = read_segmented(options.gold), [line.split() for line in read_lines(options.pred)]
    words = options.words and {word for line in read_lines(options.words) for word in line.split()}
    try:
        return segmentation_scores(gold, predicted, words)
    except TextMismatch as error:
        raise ValueError(f"{options.pred}:{error.line}: {error}") from None


def _entity_scores(options):
    from kcrf.corpora import read_entities
    from kcrf.metrics import entity_scores

    gold, predicted = (read_entities(path, **conll(options)) for path in (options.gold, options.pred))
    for number, (right, judged) in enumerate(zip(gold, predicted), 1):
        if right.text != judged.text:
            raise ValueError(
                f"{options.pred}: gold and prediction must have the same sentences. Received: sentence {number} "
                f"{judged.text[:40]!r}, in the gold {right.text[:40]!r}"
            )
    return entity_scores([sentence.spans for sentence in gold], [sentence.spans for sentence in predicted])
