"""The command line: kcrf demo | train | segment | score."""

import argparse
import json
import os
import sys
from dataclasses import fields

from kcrf import __version__

__all__ = ["main"]


def main(arguments=None):
    """Runs a command; returns the exit status, 2 after an error that the user can mend, told on standard error."""
    options = _parser().parse_args(arguments)
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # TensorFlow's notes on its own start-up
    try:
        options.run(options)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the reader left: nothing to tell
    except (OSError, ValueError, ImportError) as error:
        print(f"kcrf {options.command}: {_told(error)}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(f"kcrf {options.command}: stopped", file=sys.stderr)
        return 130
    return 0


def _told(error):
    if isinstance(error, ModuleNotFoundError) and error.name in ("tensorflow", "jax", "torch"):
        return (
            f"the Keras backend {error.name} is not installed. Install one, as in: pip install 'kcrf[{error.name}]', "
            "or name another by the environment variable KERAS_BACKEND=tensorflow|jax|torch"
        )
    return str(error)


def _parser():
    parser = argparse.ArgumentParser(
        prog="kcrf", description="Sequence labelling with Keras: train a CRF tagger, use it, score it."
    )
    parser.add_argument("--version", action="version", version=f"kcrf {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for add in (_add_demo, _add_train, _add_segment, _add_score):
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
        "Train a word segmenter on segmented text.",
        "FILE is UTF-8 text, one sentence a line, words separated by blanks.\n\n"
        "example:\n  kcrf train --task cws --train words.txt --out runs/mine\n"
        "  kcrf segment --model runs/mine text.txt",
    )
    # The defaults of the options below are those of kcrf.training.Settings, which imports Keras: too slow for --help.
    parser.add_argument("--task", choices=["cws"], help="cws: Chinese word segmentation [cws]")
    parser.add_argument("--train", required=True, metavar="FILE", help="segmented text to learn from")
    parser.add_argument("--valid", metavar="FILE", help="to choose the best epoch by [a tenth of --train, by seed]")
    parser.add_argument("--test", metavar="FILE", help="to score once at the end")
    parser.add_argument("--out", required=True, metavar="RUN_DIR", help="folder for the model, its scores and the log")
    parser.add_argument("--encoder", choices=["cnn", "bilstm", "transformer"], help="what reads the text [cnn]")
    parser.add_argument("--head", choices=["crf", "softmax"], help="what scores the tags [crf]")
    parser.add_argument(
        "--crf-lr-multiplier",
        type=float,
        metavar="N",
        help="how many times faster the CRF learns than the rest: about 1e-2 / learning rate [10]",
    )
    parser.add_argument("--learning-rate", type=float, metavar="X", help="of Adam, at its peak [1e-3]")
    parser.add_argument("--epochs", type=int, metavar="N", help="times through --train [8]")
    parser.add_argument("--batch-size", type=int, metavar="N", help="windows of up to 128 characters a step [64]")
    parser.add_argument("--width", type=int, metavar="N", help="size of a hidden vector [256]")
    parser.add_argument("--depth", type=int, metavar="N", help="layers of the encoder [4]")
    parser.add_argument("--dropout", type=float, metavar="X", help="share of hidden values dropped in training [0.4]")
    parser.add_argument("--seed", type=int, metavar="N", help="draws weights, batches and the held-out tenth [0]")


def _train(options):
    from kcrf.corpora import read_segmented, split
    from kcrf.progress import TrainingProgress
    from kcrf.reports import score_table
    from kcrf.training import Settings, train_segmenter

    given = {field.name: getattr(options, field.name, None) for field in fields(Settings)}
    settings = Settings(**{name: value for name, value in given.items() if value is not None})
    train = [words for words in read_segmented(options.train) if words]
    valid, test = (
        path and [words for words in read_segmented(path) if words] for path in (options.valid, options.test)
    )
    if valid is None:
        train, valid = split(train, 0.1, settings.seed)
    _, scores = train_segmenter(settings, train, valid, test, options.out, TrainingProgress("training"))
    _print(score_table(f"{options.out}", *_columns_and_rows(scores)))


_SCORES = {
    "recall": "recall",
    "precision": "precision",
    "f": "F1",
    "oov_rate": "OOV rate",
    "oov_recall": "OOV recall",
    "iv_recall": "IV recall",
}


def _columns_and_rows(parts):
    return ["part", *_SCORES.values()], [[name, *(s.get(key) for key in _SCORES)] for name, s in parts.items()]


def _print(table):
    from rich.console import Console

    Console().print(table)


def _add_segment(commands):
    parser = _add_command(
        commands,
        "segment",
        _segment,
        "Segment text: one line in, one line out, words separated by one blank.",
        "example:\n  echo 今天天气真好 | kcrf segment --model runs/mine",
    )
    parser.add_argument("--model", required=True, metavar="RUN_DIR", help="a folder that `kcrf train` wrote")
    parser.add_argument("file", nargs="?", metavar="FILE", help="UTF-8 text [standard input]")
    parser.add_argument("--batch-size", type=int, default=64, metavar="N", help="windows at a time [%(default)s]")


_LINES_AT_A_TIME = 1000


def _segment(options):
    from kcrf.corpora import decode_lines
    from kcrf.progress import bar
    from kcrf.taggers import WordSegmenter

    if options.batch_size < 1:
        raise ValueError(f"--batch-size must be at least 1. Received: {options.batch_size}")
    source = open(options.file, "rb") if options.file else sys.stdin.buffer
    with source, bar() as progress:
        segmenter = WordSegmenter(options.model)
        task = progress.add_task("characters", total=None)
        chunk = []
        for line in decode_lines(source, options.file or "<stdin>"):
            chunk.append(line)
            if len(chunk) == _LINES_AT_A_TIME:
                _write_segmented(segmenter, chunk, options.batch_size, progress, task)
                chunk = []
        _write_segmented(segmenter, chunk, options.batch_size, progress, task)


def _write_segmented(segmenter, lines, batch_size, progress, task):
    found = segmenter.segment_batch(lines, batch_size, on_batch=lambda count: progress.advance(task, count))
    sys.stdout.buffer.write("".join(" ".join(words) + "\n" for words in found).encode("utf-8"))
    sys.stdout.buffer.flush()


def _add_score(commands):
    parser = _add_command(
        commands,
        "score",
        _score,
        "Score a segmentation by SIGHAN's measure.",
        "Both files hold the same text, line by line, words separated by blanks.\n\n"
        "example:\n  kcrf score --gold gold.txt --pred mine.txt --words training_words.txt",
    )
    parser.add_argument("--gold", required=True, metavar="FILE", help="the right words")
    parser.add_argument("--pred", required=True, metavar="FILE", help="the words to judge")
    parser.add_argument("--words", metavar="FILE", help="the words of the training text, for the OOV and IV figures")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of a table")


def _score(options):
    from kcrf.corpora import read_lines, read_segmented
    from kcrf.metrics import TextMismatch, segmentation_scores
    from kcrf.reports import score_table

    gold, predicted = read_segmented(options.gold), [line.split() for line in read_lines(options.pred)]
    words = options.words and {word for line in read_lines(options.words) for word in line.split()}
    try:
        scores = segmentation_scores(gold, predicted, words)
    except TextMismatch as error:
        raise ValueError(f"{options.pred}:{error.line}: {error}") from None
    if options.json:
        print(json.dumps(scores))
    else:
        _print(score_table(f"{options.pred}", *_columns_and_rows({"all": scores})))
