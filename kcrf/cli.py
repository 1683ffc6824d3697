"""The command line: kcrf demo | train | segment | tag | score | report | download."""

import argparse
import json
import os
import shlex
import sys

from kcrf import __version__
from kcrf.training_options import TRAINING_OPTIONS, asked, conll, refuse_beside_resume

__all__ = ["main"]


def main(arguments=None):
    """Runs a command; returns the exit status, 2 after an error that the user can mend, told on standard error."""
    options = _parser().parse_args(arguments)
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # TensorFlow's notes, where it is not the backend
    try:
        options.run(options)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the reader left: nothing to tell
    except (OSError, ValueError, ImportError) as error:
        print(f"kcrf {options.command}: {_told(error)}", file=sys.stderr)
        return 2
    except KeyboardInterrupt as interruption:
        print(f"kcrf {options.command}: stopped", *filter(None, interruption.args), sep="; ", file=sys.stderr)
        return 130
    return 0


def _told(error):
    another = "name another by the environment variable KERAS_BACKEND=tensorflow|jax|torch"
    if isinstance(error, ModuleNotFoundError) and error.name in ("tensorflow", "jax", "torch"):
        return (
            f"the Keras backend {error.name} is not installed. Install one, as in: pip install 'kcrf[{error.name}]', "
            f"or {another}"
        )
    if "Unable to import backend" in str(error) or getattr(error, "name", None) == "openvino":
        return f"{another}. Received: {os.environ.get('KERAS_BACKEND')}"
    return str(error)


def _parser():
    parser = argparse.ArgumentParser(
        prog="kcrf", description="Sequence labelling with Keras: train a CRF tagger, use it, score it."
    )
    parser.add_argument("--version", action="version", version=f"kcrf {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for add in (_add_demo, _add_train, _add_segment, _add_tag, _add_score, _add_report, _add_download):
        add(commands)
    return parser


def _add_command(commands, name, run, summary, epilog):
    parser = commands.add_parser(
        name,
        help=summary,
        description=summary,
        epilog=epilog,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(run=run)
    return parser


def _add_demo(commands):
    parser = _add_command(
        commands,
        "demo",
        _demo,
        "Train softmax, CRF x1 and CRF x100 on the built-in corpus and compare them (about 2 minutes).",
        "example:\n  kcrf demo --text 今天天气真好",
    )
    parser.add_argument("--out", default="runs/demo", help="folder for the three models and the picture [%(default)s]")
    parser.add_argument("--text", action="append", default=[], help="a text to segment at the end; may be repeated")


def _demo(options):
    from kcrf.demo import run_demo

    run_demo(options.out, options.text)


def _add_train(commands):
    parser = _add_command(
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
    _add_conll(data)
    data.add_argument("--out", metavar="RUN_DIR", help="folder for the model, its scores and the log")
    data.add_argument("--resume", metavar="RUN_DIR", help="go on with an interrupted run; takes no other option")
    for title, options in TRAINING_OPTIONS.items():
        group = parser.add_argument_group(title)
        for flag, arguments in options.items():
            group.add_argument(flag, **arguments)


def _add_conll(parser):
    parser.add_argument("--column", type=int, metavar="N", help="of CoNLL: where tags are, from 0 on [-1, the last]")
    parser.add_argument(
        "--repair", action="store_true", default=None, help="of CoNLL: read illegal tags as conlleval does"
    )


def _train(options):
    from kcrf.progress import TrainingProgress
    from kcrf.run_records import read_run
    from kcrf.training import resume_tagger, train_tagger

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
    _print_scores(out, scores)
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
    from kcrf.corpora import read_segmented, split
    from kcrf.entity_files import read_entities

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


def _print_scores(title, parts):
    from rich.console import Console

    from kcrf.reports import table_of_parts

    Console().print(table_of_parts(title, parts))


def _add_segment(commands):
    parser = _add_command(
        commands,
        "segment",
        _segment,
        "Segment text: one line in, one line out, words separated by one blank.",
        "With --top-k a line gives up to K lines, each a probability, a tab and the words; an empty one ends them.\n\n"
        "example:\n  echo 今天天气真好 | kcrf segment --model runs/mine",
    )
    kinds = parser.add_mutually_exclusive_group()
    kinds.add_argument("--confidence", action="store_true", help="write word/probability, as in 天气/0.987")
    kinds.add_argument("--top-k", type=int, metavar="K", help="write the K most probable segmentations of each line")
    _add_input(parser)


def _segment(options):
    from kcrf.taggers import WordSegmenter

    _check_top_k(options)
    segmenter = WordSegmenter(options.model)

    def write(lines, on_batch):
        if options.top_k is not None:
            best = segmenter.top_k_batch(lines, options.top_k, options.batch_size, on_batch)
            return ["".join(f"{p:.4f}\t{' '.join(words)}\n" for p, words in ways) for ways in best]
        found = segmenter.segment_batch(lines, options.batch_size, on_batch, options.confidence)
        if options.confidence:
            found = [[f"{word}/{probability:.3f}" for word, probability in words] for words in found]
        return [" ".join(words) for words in found]

    _over_lines(options, write)


def _add_tag(commands):
    parser = _add_command(
        commands,
        "tag",
        _tag,
        "Find entities: one line of text in, one JSON object out, with the text and its entities.",
        "With --top-k the object has, too, `alternatives`: the k most probable analyses with their probability.\n\n"
        "example:\n  echo 李雷住在上海。 | kcrf tag --model runs/people",
    )
    parser.add_argument("--top-k", type=int, metavar="K", help="list the K most probable analyses of each line too")
    parser.add_argument(
        "--min-confidence",
        type=float,
        metavar="X",
        help="find all entities whose posterior is at least X; less finds more [as the run was trained]",
    )
    _add_input(parser)


def _tag(options):
    from dataclasses import asdict

    from kcrf.entity_files import entity_line
    from kcrf.taggers import EntityRecognizer

    _check_top_k(options)
    recognizer = EntityRecognizer(options.model, options.min_confidence)

    def write(lines, on_batch):
        found = recognizer.recognize_batch(lines, options.batch_size, on_batch)
        if options.top_k is None:
            return [entity_line(text, list(map(asdict, entities))) for text, entities in zip(lines, found)]
        best = recognizer.top_k_batch(lines, options.top_k, options.batch_size)
        return [
            entity_line(
                text,
                list(map(asdict, entities)),
                alternatives=[{"probability": p, "entities": list(map(asdict, those))} for p, those in alternatives],
            )
            for text, entities, alternatives in zip(lines, found, best)
        ]

    _over_lines(options, write)


def _check_top_k(options):
    if options.top_k is not None and options.top_k < 1:
        raise ValueError(f"--top-k must be at least 1. Received: {options.top_k}")


def _add_input(parser):
    parser.add_argument("--model", required=True, metavar="RUN_DIR", help="a folder that `kcrf train` wrote")
    parser.add_argument("file", nargs="?", metavar="FILE", help="UTF-8 text [standard input]")
    parser.add_argument("--batch-size", type=int, default=64, metavar="N", help="windows at a time [%(default)s]")


_LINES_AT_A_TIME = 1000


def _over_lines(options, process):
    """Writes what `process(lines, on_batch)` makes of the lines of the input, a list of as many lines."""
    from itertools import islice

    from kcrf.corpora import decode_lines
    from kcrf.progress import bar

    if options.batch_size < 1:
        raise ValueError(f"--batch-size must be at least 1. Received: {options.batch_size}")
    if not options.file and sys.stdin is None:
        raise ValueError("needs FILE, or text on standard input. Received: neither")
    source = open(options.file, "rb") if options.file else sys.stdin.buffer
    with source, bar() as progress:
        task = progress.add_task("characters", total=None)
        lines = decode_lines(source, options.file or "<stdin>")
        while chunk := list(islice(lines, _LINES_AT_A_TIME)):
            made = process(chunk, lambda count: progress.advance(task, count))
            sys.stdout.buffer.write("".join(f"{line}\n" for line in made).encode("utf-8"))
            sys.stdout.buffer.flush()


def _add_score(commands):
    parser = _add_command(
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
    _add_conll(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of a table")


def _score(options):
    scores = _entity_scores(options) if options.task == "ner" else _word_scores(options)
    if options.json:
        print(json.dumps(scores))
    else:
        _print_scores(options.pred, {"all": scores})


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
    from kcrf.entity_files import read_entities
    from kcrf.metrics import entity_scores

    gold, predicted = (read_entities(path, **conll(options)) for path in (options.gold, options.pred))
    for number, (right, judged) in enumerate(zip(gold, predicted), 1):
        if right.text != judged.text:
            raise ValueError(
                f"{options.pred}: gold and prediction must have the same sentences. Received: sentence {number} "
                f"{judged.text[:40]!r}, in the gold {right.text[:40]!r}"
            )
    return entity_scores([sentence.spans for sentence in gold], [sentence.spans for sentence in predicted])


def _add_report(commands):
    parser = _add_command(
        commands,
        "report",
        _report,
        "Write one HTML page about training runs, side by side.",
        "The page holds settings, scores, learning curves, transitions by epoch, the most frequent mistakes and the\n"
        "calibration of the confidences. It needs no other file.\n\n"
        "example:\n  kcrf report runs/crf_x1 runs/crf_x100 --out compared.html",
    )
    parser.add_argument("runs", nargs="+", metavar="RUN_DIR", help="a folder that `kcrf train` wrote")
    parser.add_argument("--out", metavar="FILE.html", help="where to [report.html in the first RUN_DIR]")


def _report(options):
    from kcrf.reports import write_report

    path = options.out or os.path.join(options.runs[0], "report.html")
    write_report(options.runs, path)
    print(path)


def _add_download(commands):
    from kcrf.downloads import CORPORA

    parser = _add_command(
        commands,
        "download",
        _download,
        "Fetch a public corpus and check that it is whole.",
        "corpora:\n"
        + "".join(f"  {name}: {corpus.summary}\n" for name, corpus in CORPORA.items())
        + "\nexample:\n  kcrf download weibo data/weibo",
    )
    parser.add_argument("name", choices=sorted(CORPORA), help="which one")
    parser.add_argument("directory", metavar="DIR", help="the folder to put it into")


def _download(options):
    from kcrf.downloads import download

    for path in download(options.name, options.directory):
        print(path)
