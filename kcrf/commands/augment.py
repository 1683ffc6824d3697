"""kcrf augment: a training file in, with augmented examples out."""

from argparse import Namespace
from typing import Any

from kcrf.augmentation import altered_copies
from kcrf.augmentation.copies import OPERATIONS, copies_wanted
from kcrf.augmentation.translation import back_translate
from kcrf.commands.parsers import (
    OVERWRITE,
    CommandParser,
    add_reading_options,
    check_out,
    declare,
    reading_arguments,
    refuse_data_options,
)
from kcrf.commands.train import read_part
from kcrf.files import write_lines
from kcrf.runs import Settings
from kcrf.runs.stages import AugmentationConfig
from kcrf.tasks import task_of

_EPILOG = """FILE is as for `kcrf train`. The copies follow their sentence. `kcrf train --augment N` needs no such file:
it augments the training set only. Do not hold out a validation set from a file with copies.

examples:
  kcrf augment --task ner train.conll --copies 2 --by mentions,shuffle --out more.conll
  kcrf augment --task classify reviews.tsv --synonyms cilin.txt --out more.jsonl
  kcrf augment --task classify reviews.tsv --translate "zh2en | en2zh" --out more.jsonl"""
_OUT = f"""
--out FILE!  The file to write. For cws: one sentence per line. For ner: CoNLL if all sentences have tokens, else JSON
             lines. For classify: JSON lines.
{OVERWRITE}
--copies N     Augmented copies of each sentence or text. [1]
--by NAME,...  Operations, names separated by commas. [all; without synonyms, all that need none; with --translate,
               none]
--share X      The fraction of the words, tokens or entities that change. [0.1 for classify, else 0.3]
"""
_SYNONYMS = """
--synonyms FILE         A dictionary: one group of synonyms per line. [no synonyms]
--synonym-vectors FILE  Word vectors in the text format of word2vec and GloVe, whose nearest words serve as synonyms.
"""
_OTHERS = """
--translate CMD  Add a copy of each text that this command has translated to another language and back. It reads lines,
                 and writes as many. Only for classify. [no translation]
--seed N:0       The seed of all random choices. [%(default)s]
"""


def add_options(parser: CommandParser) -> None:
    operations = "\n".join(f"  {task}: {', '.join(names)}" for task, names in OPERATIONS.items())
    parser.epilog = f"operations of --by:\n{operations}\n\n{_EPILOG}"
    tasks = ",".join(OPERATIONS)
    declare(parser, f"FILE  The training data.\n--task {{{tasks}}}:cws  The task of the training data. [%(default)s]")
    declare(parser, _OUT)
    declare(parser.add_mutually_exclusive_group(), _SYNONYMS)
    declare(parser, _OTHERS)
    add_reading_options(parser)


def run(options: Namespace) -> None:
    task = task_of(options.task)
    if options.translate is not None and task.output != "label":
        raise ValueError(
            "--translate needs --task classify: a translation does not keep words or entities. "
            f"Received: --task {options.task}"
        )
    refuse_data_options(options, options.task)
    _check_is_used(options)
    check_out(options.out, options.file, options.overwrite)
    sources = {"train": options.file, **reading_arguments(options)}
    items = read_part(options.task, sources, "train")
    copies = _copies(options, items)
    all_items = [copy for item, copies_of_item in zip(items, copies, strict=True) for copy in (item, *copies_of_item)]
    write_lines(options.out, task.file_lines(all_items))
    print(f"{options.out}: {len(items):,} as they were, {len(all_items) - len(items):,} altered copies")


def _check_is_used(options: Namespace) -> None:
    """Raises ValueError if there are options for operations, but --translate replaces the operations."""
    names = ("copies", "share", "synonyms", "synonym_vectors")
    unused_options = [f"--{name.replace('_', '-')}" for name in names if getattr(options, name) is not None]
    if options.translate is not None and options.by is None and unused_options:
        raise ValueError(f"{', '.join(unused_options)} together with --translate needs --by NAME,... Received: no --by")


def _copies(options: Namespace, items: list[Any]) -> list[list[Any]]:
    """For each item a list of its copies."""
    copies = [[] for _ in items]
    if options.translate is None or options.by is not None:
        copies = altered_copies(items, **copies_wanted(options.task, _augmentation(options), options.seed))
    if options.translate is not None:
        translated = back_translate(items, options.translate)
        copies = [[*one, *other] for one, other in zip(copies, translated, strict=True)]
    return copies


def _augmentation(options: Namespace) -> Any:
    """The `AugmentationConfig` of a run with the same copies."""
    copies = 1 if options.copies is None else options.copies
    if copies < 1:
        raise ValueError(f"--copies must be at least 1. Received: {copies}")
    if options.share is not None and not 0 < options.share < 1:
        raise ValueError(f"--share must be above 0 and below 1. Received: {options.share}")
    if options.seed < 0:
        raise ValueError(f"--seed must be at least 0. Received: {options.seed}")
    sources = {"synonyms": options.synonyms, "synonym_vectors": options.synonym_vectors}
    how = {"augment": copies, "augment_by": options.by, "augment_share": options.share}
    return Settings(task=options.task, **how, **sources).part(AugmentationConfig)
