"""kcrf label: unlabeled text in, sentences with the names of a dictionary as entities out."""

import sys

from kcrf.commands.parsers import add_command, add_overwrite_option, check_out


def add_label(commands):
    """Adds `kcrf label`."""
    summary = "Label the entities of unlabeled text with a dictionary of names, as training data for `kcrf train`."
    add_command(commands, "label", summary, _add_options, _label)


def _add_options(parser):
    parser.epilog = (
        "The output has one JSON object per line, which `kcrf train --task ner` reads. At each position the longest\n"
        "name is marked. Text outside of names has unknown tags, because the dictionary may lack entities: add\n"
        "sentences whose entities are all marked, or the model finds entities everywhere.\n\n"
        "example:\n"
        "  kcrf label --dictionary names.tsv text.txt --out labeled.jsonl\n"
        "  cat gold.jsonl labeled.jsonl > train.jsonl\n"
        "  kcrf train --task ner --train train.jsonl --valid dev.jsonl --out runs/people"
    )
    parser.add_argument("file", metavar="FILE", help="UTF-8 text, one text per line.")
    parser.add_argument(
        "--dictionary", required=True, metavar="FILE", help="One name per line, then a tab and its entity type."
    )
    parser.add_argument(
        "--unmarked",
        choices=("unknown", "outside"),
        default="unknown",
        help="The tags of text outside of names: unknown, or outside of entities. Use outside if the dictionary has "
        "nearly all names. [unknown]",
    )
    parser.add_argument("--out", metavar="FILE", help="Where to write. [standard output]")
    add_overwrite_option(parser)


def _label(options):
    from kcrf.corpora import label_with_names, read_names
    from kcrf.corpora.entities import sentence_line
    from kcrf.files import write_lines
    from kcrf.progress_bars import print_note

    if options.out is not None:
        check_out(options.out, options.file, options.overwrite)
    names = read_names(options.dictionary)
    texts = _read_texts(options.file)
    sentences = label_with_names(texts, names, options.unmarked)
    lines = list(map(sentence_line, sentences))
    if options.out is None:
        sys.stdout.write("".join(f"{line}\n" for line in lines))
    else:
        write_lines(options.out, lines)
    entity_count = sum(len(sentence.spans) for sentence in sentences)
    marked_texts = sum(bool(sentence.spans) for sentence in sentences)
    ambiguous_names = sum(label is None for label in names.values())
    ambiguous = f"; {ambiguous_names:,} names with several types are left unknown" if ambiguous_names else ""
    print_note(f"{entity_count:,} entities in {marked_texts:,} of {len(texts):,} texts are marked{ambiguous}")


def _read_texts(path):
    """The lines of a file that are not blank."""
    from kcrf.commands.model_input import checked_texts
    from kcrf.commands.streams import Lines
    from kcrf.corpora.lines import check_is_file

    check_is_file(path)
    with open(path, "rb") as file:
        texts = [line.strip() for line in checked_texts(Lines(file, path)) if line.strip()]
    if not texts:
        raise ValueError(f"{path}: needs one text per line. Received: a file without any")
    return texts
