"""kcrf train"""

import shlex

from kcrf.commands.parsers import add_command, add_conll, print_scores
from kcrf.commands.training_options import TRAINING_OPTIONS, asked, refuse_beside_resume

__all__ = ["add_train"]


def add_train(commands):
    """Adds the parser of `kcrf train`."""
    parser = add_command(
        commands,
        "train",
        _train,
        "Train a tagger: a word segmenter (cws) or a recogniser of entities (ner).",
        "FILE is UTF-8 text. For cws: one sentence a line, words separated by blanks. For ner: CoNLL, a token and its\n"
        "tag a line, a blank line between sentences; or JSON lines as `kcrf tag` writes them.\n\n"
        "examples:\n  kcrf train --train words.txt --out runs/words\n"
        "  kcrf train --task ner --train train.conll --valid dev.conll --out runs/people\n"
        "  kcrf train --task ner --train train.conll --bert MiniLM-L6 --skip-top-layers 1 --out runs/bert\n"
        "  kcrf train --resume runs/people\n\n"
        "Defaults stand in brackets; of two, the first is for training from scratch, the second for --bert.",
    )
    data = parser.add_argument_group("data")
    data.add_argument("--task", choices=["cws", "ner"], help="cws: word segmentation; ner: named entities [cws]")
    data.add_argument("--train", metavar="FILE", help="what to learn from")
    data.add_argument("--valid", metavar="FILE", help="to choose the best epoch by [a tenth of --train, by seed]")
    data.add_argument("--test", metavar="FILE", help="to score once at the end")
    add_conll(data)
    data.add_argument("--out", metavar="RUN_DIR", help="folder for the model, its scores and the log")
    data.add_argument("--resume", metavar="RUN_DIR", help="go on with an interrupted run; takes no other option")
    for title, options in TRAINING_OPTIONS.items():
        group = parser.add_argument_group(title)
        for flag, arguments in options.items():
            group.add_argument(flag, **arguments)


def _train(options):
    from kcrf.runs import read_run
    from kcrf.training import resume_tagger, train_tagger
    from kcrf.training.progress import TrainingProgress

    progress, out = TrainingProgress("training"), options.resume or options.out
    try:
        if options.resume is not None:
            refuse_beside_resume(options)
            settings, sources = _begun(out)
            _, scores = resume_tagger(out, *_read_parts(settings, sources), progress=progress)
        else:
            settings, sources = asked(options)
            _, scores = train_tagger(settings, *_read_parts(settings, sources), out, progress, sources)
    except KeyboardInterrupt:
        command = f"kcrf train --resume {shlex.quote(str(out))}"
        raise KeyboardInterrupt(f"go on with: {command}" if _can_go_on(out) else "") from None
    print_scores(out, scores)
    if advice := read_run(out).advice:
        print("CRF", advice.replace("lr_multiplier", "--crf-lr-multiplier").replace("`constraints`", "--constraints"))


def _can_go_on(run_dir):
    from kcrf.runs import RunFolder

    try:
        return RunFolder.interrupted(run_dir) is not None
    except FileNotFoundError:
        return False


def _begun(run_dir):
    """The settings and the sources of an interrupted run."""
    from kcrf.runs import RunFolder

    folder = RunFolder.interrupted(run_dir)
    sources = (folder.read_config()["data"] or {}).get("sources")
    if sources is None:
        raise ValueError(f"{run_dir}: needs a run of `kcrf train`, which notes its files. Received: one from a script")
    return folder.read_settings(), sources


def _read_parts(settings, sources):
    """The parts train, valid and test."""
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
