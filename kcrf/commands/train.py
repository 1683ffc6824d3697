"""kcrf train"""

import shlex

from kcrf.commands.parsers import add_command, print_scores
from kcrf.commands.quiet import quiet_import

__all__ = ["add_train"]


def add_train(commands):
    """Adds `kcrf train`."""
    summary = "Train a tagger that finds words (cws) or named entities (ner)."
    add_command(commands, "train", summary, _add_options, _train)


def _add_options(parser):
    from kcrf.commands.training_options import add_training_options

    parser.usage = "kcrf train --train FILE --out RUN_DIR [OPTION ...]\n       kcrf train --resume RUN_DIR"
    parser.epilog = (
        "FILE is UTF-8 text. For cws: a sentence a line, words separated by blanks. For ner: CoNLL, a token and its\n"
        "tag a line, an empty line between sentences; or JSON lines as `kcrf tag` writes them.\n\n"
        "Defaults are in square brackets.\n\n"
        "examples:\n"
        "  kcrf train --train words.txt --out runs/words\n"
        "  kcrf train --task ner --train train.conll --valid dev.conll --out runs/people\n"
        "  kcrf train --task ner --train train.conll --bert MiniLM-L6 --skip-top-layers 1 --out runs/bert\n"
        "  kcrf train --resume runs/people"
    )
    add_training_options(parser)


def _train(options):
    from kcrf.commands.training_options import refuse_beside_resume, settings_and_sources

    out = options.resume or options.out
    if options.resume is not None:
        refuse_beside_resume(options)
        settings, sources = _interrupted_run(out)
    else:
        settings, sources = settings_and_sources(options)
        _refuse_finished_run(out, options.overwrite)
    parts = _read_parts(settings, sources)
    try:
        tagger, scores = _run_training(options, settings, sources, parts)
    except KeyboardInterrupt:
        command = f"kcrf train --resume {shlex.quote(str(out))}"
        raise KeyboardInterrupt(f"continue with: {command}" if _is_resumable(out) else "") from None
    print_scores(out, scores)
    if tagger.advice:
        print(
            "CRF",
            tagger.advice.replace("lr_multiplier", "--crf-lr-multiplier").replace("`constraints`", "--constraints"),
        )


def _run_training(options, settings, sources, parts):
    """Trains; returns the tagger and the scores. Keras is imported only here, once options and data are valid."""
    with quiet_import():
        from kcrf.training import resume_tagger, train_tagger
        from kcrf.training.progress import TrainingProgress

    progress = TrainingProgress("training")
    if options.resume is not None:
        return resume_tagger(options.resume, *parts, progress=progress)
    return train_tagger(settings, *parts, options.out, progress, sources, options.overwrite)


def _refuse_finished_run(run_dir, overwrite):
    from kcrf.runs import RunFolder

    if not overwrite and RunFolder(run_dir).file("scores.json").is_file():
        raise FileExistsError(f"{run_dir}: needs --overwrite to replace a finished run. Received: no --overwrite")


def _is_resumable(run_dir):
    from kcrf.runs import RunFolder

    try:
        return RunFolder.interrupted(run_dir) is not None
    except FileNotFoundError:
        return False


def _interrupted_run(run_dir):
    """The settings and the sources of an interrupted run."""
    from kcrf.runs import RunFolder

    folder = RunFolder.interrupted(run_dir)
    sources = (folder.read_config()["data"] or {}).get("sources")
    if sources is None:
        raise ValueError(f"{run_dir}: needs a run of `kcrf train`, which notes its files. Received: one from a script")
    return folder.read_settings(), sources


def _read_parts(settings, sources):
    """The sentences for training, for validation and, or None, for testing."""
    from kcrf.corpora import read_entities, read_segmented, split

    def read(path):
        if settings.task == "cws":
            return [words for words in read_segmented(path) if words]
        return [sentence for sentence in read_entities(path, sources["column"], sources["repair"]) if sentence.text]

    train, valid, test = (sources[name] and read(sources[name]) for name in ("train", "valid", "test"))
    if valid is None and len(train) < 2:
        raise ValueError(f"{sources['train']}: one sentence, so none can be held out. Received: no --valid FILE")
    if valid is None:
        train, valid = split(train, 0.1, settings.seed)
    return train, valid, test
