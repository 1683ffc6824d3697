"""kcrf demo"""

from argparse import Namespace
from typing import Any

from kcrf.commands.parsers import add_command
from kcrf.commands.quiet import quiet_import


def add_demo(commands: Any) -> None:
    """Adds `kcrf demo`."""
    summary = "Train segmenters with three heads (softmax, CRF x1, CRF x100) on a built-in corpus and compare them."
    add_command(commands, "demo", summary, _add_options, _demo)


def _add_options(parser: Any) -> None:
    parser.epilog = (
        "The three word segmenters differ only in the head. x1 and x100 are the learning-rate multipliers of the CRF.\n"
        "Training takes a few minutes. The last lines show held-out sentences with the wrong words marked.\n\n"
        "example:\n  kcrf demo --text 今天天气真好"
    )
    parser.add_argument("--out", default="runs/demo", help="Folder for the three runs and a heat map. [%(default)s]")
    parser.add_argument(
        "--text", action="append", default=[], help="A text to segment at the end; may be repeated. [none]"
    )


def _demo(options: Namespace) -> None:
    with quiet_import():
        from kcrf.commands.heads import compare_heads

    compare_heads(options.out, options.text)
