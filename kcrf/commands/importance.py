"""kcrf importance: marks the words of labeled texts that are important for a classifier."""

from argparse import Namespace
from typing import Any

from kcrf.commands.parsers import add_command, add_fields_option, add_overwrite_option, check_out, fields_argument
from kcrf.commands.quiet import quiet_import


def add_importance(commands: Any) -> None:
    """Adds `kcrf importance`."""
    summary = "Mark the words that are important for a classifier, for `kcrf pretrain --mask selected`."
    add_command(commands, "importance", summary, _add_options, _importance)


def _add_options(parser: Any) -> None:
    parser.epilog = (
        "Each text is rebuilt word by word. A word is important if adding it makes the label almost as probable as\n"
        "with the whole text. An important word is marked and removed again (https://arxiv.org/abs/2004.09733).\n\n"
        "examples:\n"
        "  kcrf train --task classify --train reviews.tsv --out runs/reviews\n"
        "  kcrf importance --model runs/reviews reviews.tsv --out important.jsonl\n"
        "  kcrf train --task ner --train important.jsonl --out runs/important\n"
        "  kcrf pretrain --text more.txt --mask selected --task-model runs/important --out pretrained/reviews"
    )
    parser.add_argument("file", metavar="FILE", help="Labeled texts, as for `kcrf train --task classify`.")
    parser.add_argument("--model", required=True, metavar="RUN", help="A run of `kcrf train --task classify`.")
    parser.add_argument(
        "--out", required=True, metavar="FILE", help="The file to write: JSON lines, as for `kcrf train --task ner`."
    )
    add_overwrite_option(parser)
    parser.add_argument(
        "--threshold",
        type=float,
        default=0.05,
        metavar="X",
        help="Largest difference between the probability of the label with the whole text and with the rebuilt text. "
        "Use a smaller value to mark fewer words. [%(default)s]",
    )
    add_fields_option(parser)


def _importance(options: Namespace) -> None:
    from kcrf.commands.train import read_part
    from kcrf.corpora import sentence_line
    from kcrf.files import write_lines

    if not 0 < options.threshold < 1:
        raise ValueError(f"--threshold must be above 0 and below 1. Received: {options.threshold}")
    check_out(options.out, options.file, options.overwrite)
    examples = read_part("classify", {"train": options.file, "fields": fields_argument(options)}, "train")
    with quiet_import():
        from kcrf.pretraining.importance import important_words
        from kcrf.taggers import TextClassifier

        classifier = TextClassifier(options.model)
    sentences = important_words(classifier, examples, options.threshold)
    write_lines(options.out, map(sentence_line, sentences))
    print(f"{options.out}: {sum(len(s.spans) for s in sentences):,} important words in {len(sentences):,} texts")
