"""kcrf train"""

import shlex
from argparse import Namespace
from dataclasses import replace
from pathlib import Path
from typing import Any

from kcrf.augmentation.copies import copies_wanted
from kcrf.commands.model_input import read_texts
from kcrf.commands.parsers import CommandParser, command_to_use, print_scores
from kcrf.commands.quiet import quiet_import
from kcrf.commands.training_options import COMMON, add_training_options, refuse_beside_resume, settings_and_sources
from kcrf.corpora.conll import marks_ends
from kcrf.metrics.bootstrap import bootstrap_scores, interval
from kcrf.progress_bars import print_note
from kcrf.runs import RunFolder
from kcrf.runs.stages import AugmentationConfig
from kcrf.tasks import task_of

Sources = dict[str, Any]
_FEW = 1000  # held-out sentences: the interval of more is narrow
_MANY_TOKENS = 200  # of one sentence: the file probably has no empty lines

_USAGE = """kcrf train --train FILE --out RUN_DIR [OPTION ...]
       kcrf train --standard NAME=FILE --standard NAME=FILE --out RUN_DIR [OPTION ...]
       kcrf train --resume RUN_DIR"""
EPILOG = """FILE is UTF-8 text. For cws: one sentence per line, words separated by spaces. For ner: CoNLL, one
token and its tag per line, an empty line between sentences; or JSON lines as `kcrf tag` writes them, an
export of doccano, Label Studio, Prodigy or brat, or a file of CLUENER or CMeEE. For pos and cws-pos: CoNLL,
CoNLL-U or JSON lines, or one sentence per line with words as in 今天/t or today_NN. A tag ? is not known.
For classify: one text and its label per line, or two texts and their label, in columns separated by tabs
or commas, or JSON lines.

Defaults are in square brackets. `kcrf train --help all` lists all options.

examples:
  kcrf train --train words.txt --out runs/words
  kcrf train --task cws-pos --train tagged.txt --out runs/joint
  kcrf train --standard pku=pku.txt --standard gsd=gsd.txt --out runs/both
  kcrf train --task ner --train train.conll --valid dev.conll --out runs/people
  kcrf train --task ner --train train.conll --bert MiniLM-L6 --skip-top-layers 1 --out runs/bert
  kcrf train --task pos --train train.conllu --column XPOS --out runs/pos
  kcrf train --task classify --train reviews.tsv --bert MiniLM-L6 --out runs/reviews
  kcrf train --resume runs/people"""


def add_options(parser: CommandParser) -> None:
    parser.common, parser.usage = COMMON, _USAGE
    add_training_options(parser)


def run(options: Namespace) -> None:
    if options.resume is not None:
        refuse_beside_resume(options)
        _train(options.resume, *_interrupted_run(options.resume), resumes=True)
        return
    settings, sources = settings_and_sources(options)
    settings = with_scheme_of_file(settings, sources)
    if settings.vectors is not None and not settings.continues and not Path(settings.vectors).is_file():
        raise FileNotFoundError(f"{settings.vectors}: no such file; --vectors takes a file of word vectors")
    _refuse_other_run(options.out, options.overwrite)
    _train(options.out, settings, sources, overwrite=options.overwrite)


def with_scheme_of_file(settings: Any, sources: Sources) -> Any:
    """The settings with the scheme bioes if the tags of the training file mark where entities end, as E-PER does."""
    if settings.task != "ner" or settings.scheme is not None or settings.continues:
        return settings
    if not marks_ends(sources["train"], sources["column"]):
        return settings
    print_note("train: the tags mark where entities end, so the model does, too: --scheme bioes")
    return replace(settings, scheme="bioes")


def _train(out: str, settings: Any, sources: Sources, resumes: bool = False, overwrite: bool = False) -> None:
    """Trains or resumes a run, and prints its scores."""
    try:
        tagger, scores = _run_training(out, settings, sources, resumes, overwrite)
    except KeyboardInterrupt:
        command = f"kcrf train --resume {shlex.quote(str(out))}"
        raise KeyboardInterrupt(f"continue with: {command}" if _is_resumable(out) else "") from None
    print_scores(out, scores)
    print(f"saved to {out}; try: {command_to_use(out, RunFolder(out).read_config().config)}")
    _print_expected(tagger)
    if tagger.advice:
        advice = tagger.advice.replace("lr_multiplier", "--crf-lr-multiplier")
        print("CRF", advice.replace("`constraints`", "--constraints"))


def _print_expected(tagger: Any) -> None:
    """Prints the interval of F1 on texts like the held-out ones, and what helps to raise it."""
    counts, curve = tagger.counts, tagger.curve
    if counts is None or len(counts) > _FEW or not counts[:, 1].any():
        return
    low, high = interval(bootstrap_scores(counts))
    if low == high:  # nothing is left to gain, or too little is known
        return
    needs = "`kcrf curve` says how many more sentences a better score needs" if curve is None else curve.needs()
    print(f"expected on texts like these: F1 {low:.2f} to {high:.2f}; {needs}; `kcrf suggest` names them")


def _run_training(out: str, settings: Any, sources: Sources, resumes: bool, overwrite: bool) -> Any:
    """Trains; returns the tagger and the scores. Keras is imported only once options and data are valid."""
    (train, valid, test), unlabeled = _read_parts(settings, sources), _read_unlabeled(settings.task, sources)
    if settings.augment:  # raises ValueError if the copies cannot be made
        copies_wanted(settings.task, settings.part(AugmentationConfig), settings.seed)
    with quiet_import():
        from kcrf.training import resume_tagger, train_tagger
        from kcrf.training.progress import TrainingProgress

    progress = TrainingProgress("training")
    if resumes:
        return resume_tagger(out, train, valid, test, progress, unlabeled)
    return train_tagger(settings, train, valid, test, out, progress, sources, overwrite, unlabeled)


def _refuse_other_run(run_dir: str, overwrite: bool) -> None:
    """Refuses a folder with a run, finished or not, without --overwrite."""
    if overwrite:
        return
    if _is_resumable(run_dir):
        raise FileExistsError(
            f"{run_dir}: has an unfinished run. `kcrf train --resume {shlex.quote(str(run_dir))}` resumes it; "
            "--overwrite replaces it"
        )
    if RunFolder(run_dir).file("scores.json").is_file():
        raise FileExistsError(f"{run_dir}: needs --overwrite to replace a finished run. Received: no --overwrite")


def _is_resumable(run_dir: str) -> bool:
    try:
        return RunFolder.interrupted(run_dir) is not None
    except FileNotFoundError:
        return False


def _interrupted_run(run_dir: str) -> tuple[Any, Sources]:
    """The settings and the sources of an interrupted run."""
    folder = RunFolder.interrupted(run_dir)
    sources = (folder.read_config().data or {}).get("sources")
    if sources is None:
        raise ValueError(f"{run_dir}: needs a run of `kcrf train`, which notes its files. Received: one from a script")
    return folder.read_settings(), sources


def _read_parts(settings: Any, sources: Sources) -> Any:
    """The training, validation and test set, or None where there is none. Several standards have dicts of sets."""
    parts = [sources[name] and read_part(settings.task, sources, name) for name in ("train", "valid", "test")]
    if not isinstance(sources["train"], dict):
        _check_held_out(settings, sources["train"], *parts[:2])
        return parts
    for name, path in sources["train"].items():
        _check_held_out(settings, path, parts[0][name], (parts[1] or {}).get(name))
    return parts


def _check_held_out(settings: Any, path: str, train: Any, valid: Any) -> None:
    """Checks that a part of the training data can be held out if there is no validation set."""
    if valid is None and len(train) < 2:
        count = len(getattr(train[0], "tokens", ()))
        ends = f" of {count:,} tokens (an empty line ends a sentence)" if count >= _MANY_TOKENS else ""
        raise ValueError(f"{path}: one sentence{ends}, so none can be held out. Received: no --valid FILE")
    if valid is None and settings.incomplete:
        raise ValueError(f"{path}: --incomplete needs --valid FILE, in which all entities are marked. Received: none")


def _read_unlabeled(task: str, sources: Sources) -> list[Any]:
    """The unlabeled texts: strings, or for pairs tuples of two strings. Empty if no file was given."""
    path = sources.get("unlabeled")  # runs of older versions lack the key
    return [] if path is None else list(map(task_of(task).read_unlabeled_line, read_texts(path)))


def read_part(task: str, sources: Sources, name: str) -> Any:
    """The sentences of a file without empty ones, or its examples for classification; of several standards a dict."""
    files, read = sources[name], task_of(task).read_file
    if isinstance(files, dict):
        return {standard: read(path, sources) for standard, path in files.items()}
    return read(files, sources)
