"""kcrf augment: a training file in, with altered copies of its sentences or texts out."""

from kcrf.commands.parsers import (
    add_command,
    add_conll_options,
    add_fields_option,
    add_overwrite_option,
    check_out,
    reading_arguments,
    refuse_data_options,
)
from kcrf.commands.train import read_part

__all__ = ["add_augment"]


def add_augment(commands):
    """Adds `kcrf augment`."""
    summary = "Write a training file with altered copies of its sentences or texts, whose labels stay true."
    add_command(commands, "augment", summary, _add_options, _augment)


def _add_options(parser):
    from kcrf.augmentation.copies import OPERATIONS

    names = "\n".join(f"  {task}: {', '.join(names)}" for task, names in OPERATIONS.items())
    parser.epilog = (
        f"what --by takes:\n{names}\n\n"
        "FILE is as for `kcrf train`. Copies stand after their sentence. `kcrf train --augment N` makes them without\n"
        "a file, of the training part alone. Do not hold out a part of a file with copies.\n\n"
        "examples:\n"
        "  kcrf augment --task ner train.conll --copies 2 --by mentions,shuffle --out more.conll\n"
        "  kcrf augment --task classify reviews.tsv --synonyms cilin.txt --out more.jsonl\n"
        '  kcrf augment --task classify reviews.tsv --translate "zh2en | en2zh" --out more.jsonl'
    )
    parser.add_argument("file", metavar="FILE", help="The training data.")
    parser.add_argument("--task", choices=list(OPERATIONS), default="cws", help="What it has labels for. [%(default)s]")
    parser.add_argument(
        "--out",
        required=True,
        metavar="FILE",
        help="The file to write: as FILE is for cws; CoNLL for ner where all sentences have tokens; else JSON lines.",
    )
    add_overwrite_option(parser)
    parser.add_argument("--copies", type=int, metavar="N", help="Copies of each. [1]")
    parser.add_argument(
        "--by",
        metavar="NAME,...",
        help="How copies are altered. [all, without synonyms those that need none; none with --translate]",
    )
    parser.add_argument(
        "--share",
        type=float,
        metavar="X",
        help="The share of the words, tokens or entities that are altered. [0.1 for classify, else 0.3]",
    )
    _add_sources(parser)
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="The same seed, the same text. [%(default)s]")
    add_fields_option(parser)
    add_conll_options(parser)


def _add_sources(parser):
    source = parser.add_mutually_exclusive_group()
    source.add_argument(
        "--synonyms", metavar="FILE", help="A dictionary: one group of synonyms per line. [no synonyms]"
    )
    source.add_argument(
        "--synonym-vectors",
        metavar="FILE",
        help="Vectors of words, as word2vec and GloVe write them as text: the nearest words serve as synonyms.",
    )
    parser.add_argument(
        "--translate",
        metavar="CMD",
        help="Also copy each text as this command translates it there and back: lines in, as many lines out. Only for "
        "classify. [no translation]",
    )


def _augment(options):
    from kcrf.files import write_lines
    from kcrf.tasks import task_of

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


def _check_is_used(options):
    """Raises ValueError if there are options for copies where a translation takes the place of these."""
    names = ("copies", "share", "synonyms", "synonym_vectors")
    unused_options = [f"--{name.replace('_', '-')}" for name in names if getattr(options, name) is not None]
    if options.translate is not None and options.by is None and unused_options:
        raise ValueError(f"{', '.join(unused_options)} together with --translate needs --by NAME,... Received: no --by")


def _copies(options, items):
    """For each item a list of its copies."""
    from kcrf.augmentation import altered_copies
    from kcrf.augmentation.copies import copies_wanted
    from kcrf.augmentation.translation import back_translate

    copies = [[] for _ in items]
    if options.translate is None or options.by is not None:
        copies = altered_copies(items, **copies_wanted(options.task, _augmentation(options), options.seed))
    if options.translate is not None:
        translated = back_translate(items, options.translate)
        copies = [[*one, *other] for one, other in zip(copies, translated, strict=True)]
    return copies


def _augmentation(options):
    """The `AugmentationConfig` of a run with such copies."""
    from kcrf.runs import AugmentationConfig, Settings

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
