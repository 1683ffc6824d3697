"""kcrf label: unlabeled text in, sentences with the names of a dictionary as entities out."""

import sys
from argparse import Namespace

from kcrf.commands.parsers import OVERWRITE, check_out

EPILOG = """The output has one JSON object per line, which `kcrf train --task ner` reads. At each position the longest
name is marked. Text outside of names has unknown tags, because the dictionary may lack entities: add
sentences whose entities are all marked, or the model finds entities everywhere.

example:
  kcrf label --dictionary names.tsv text.txt --out labeled.jsonl
  cat gold.jsonl labeled.jsonl > train.jsonl
  kcrf train --task ner --train train.jsonl --valid dev.jsonl --out runs/people"""
OPTIONS = f"""
FILE                UTF-8 text, one text per line.
--dictionary FILE!  One name per line, then a tab and its entity type.
--unmarked {{unknown,outside}}:unknown  The tags of text outside of names: unknown, or outside of entities. Use outside
                    if the dictionary has nearly all names. [unknown]
--out FILE          Where to write. [standard output]
{OVERWRITE}
"""


def run(options: Namespace) -> None:
    from kcrf.commands.model_input import read_texts
    from kcrf.corpora import label_with_names, read_names
    from kcrf.corpora.entities import sentence_line
    from kcrf.files import write_lines
    from kcrf.progress_bars import print_note

    if options.out is not None:
        check_out(options.out, options.file, options.overwrite)
    names = read_names(options.dictionary)
    texts = list(map(str.strip, read_texts(options.file)))
    sentences = label_with_names(texts, names, options.unmarked)
    lines = list(map(sentence_line, sentences))
    if options.out is None:
        sys.stdout.write("".join(f"{line}\n" for line in lines))
    else:
        write_lines(options.out, lines)
    entity_count = sum(len(sentence.spans) for sentence in sentences)
    marked_texts = sum(bool(sentence.spans) for sentence in sentences)
    ambiguous_names = sum(label is None for label in names.values())
    ambiguous = f"; names with several types, which are left unknown: {ambiguous_names:,}" if ambiguous_names else ""
    print_note(f"{entity_count:,} entities in {marked_texts:,} of {len(texts):,} texts are marked{ambiguous}")
