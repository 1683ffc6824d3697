"""kcrf importance: marks the words of labeled texts that are important for a classifier."""

from argparse import Namespace

from kcrf.commands.parsers import OVERWRITE, CommandParser, add_fields_option, check_out, declare, fields_argument
from kcrf.commands.quiet import quiet_import

_EPILOG = """Each text is rebuilt word by word. A word is important if adding it makes the label almost as probable as
with the whole text. An important word is marked and removed again (https://arxiv.org/abs/2004.09733).

examples:
  kcrf train --task classify --train reviews.tsv --out runs/reviews
  kcrf importance --model runs/reviews reviews.tsv --out important.jsonl
  kcrf train --task ner --train important.jsonl --out runs/important
  kcrf pretrain --text more.txt --mask selected --task-model runs/important --out pretrained/reviews"""
_OPTIONS = f"""
FILE              Labeled texts, as for `kcrf train --task classify`.
--model RUN!      A run of `kcrf train --task classify`.
--out FILE!       The file to write: JSON lines, as for `kcrf train --task ner`.
{OVERWRITE}
--threshold X:0.05  Largest difference between the probability of the label with the whole text and with the rebuilt
                    text. Use a smaller value to mark fewer words. [%(default)s]
"""


def add_options(parser: CommandParser) -> None:
    parser.epilog = _EPILOG
    declare(parser, _OPTIONS)
    add_fields_option(parser)


def run(options: Namespace) -> None:
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
