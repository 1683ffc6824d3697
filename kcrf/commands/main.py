"""The command line: kcrf demo | train | segment | tag | score | report | download."""

import argparse
import os
import sys

from kcrf.commands.download import add_download
from kcrf.commands.parsers import add_command
from kcrf.commands.report import add_report
from kcrf.commands.score import add_score
from kcrf.commands.tag import add_segment, add_tag
from kcrf.commands.train import add_train
from kcrf.version import __version__

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
    for add in (_add_demo, add_train, add_segment, add_tag, add_score, add_report, add_download):
        add(commands)
    return parser


def _add_demo(commands):
    parser = add_command(
        commands,
        "demo",
        _demo,
        "Train softmax, CRF x1 and CRF x100 on the built-in corpus and compare them (about 2 minutes).",
        "example:\n  kcrf demo --text 今天天气真好",
    )
    parser.add_argument("--out", default="runs/demo", help="folder for the three models and the picture [%(default)s]")
    parser.add_argument("--text", action="append", default=[], help="a text to segment at the end; may be repeated")


def _demo(options):
    from kcrf.commands.demo import run_demo

    run_demo(options.out, options.text)
