"""kcrf demo"""

from kcrf.commands.parsers import add_command
from kcrf.commands.quiet import quiet_import

__all__ = ["add_demo"]


def add_demo(commands):
    """Adds `kcrf demo`."""
    summary = "Train softmax, CRF x1 and CRF x100 on a built-in corpus and compare them; takes some minutes."
    add_command(commands, "demo", summary, _add_options, _demo)


def _add_options(parser):
    parser.epilog = (
        "The three word segmenters differ in the head alone: x1 and x100 are how many times faster the CRF's\n"
        "transitions learn than the other weights.\n\nexample:\n  kcrf demo --text 今天天气真好"
    )
    parser.add_argument("--out", default="runs/demo", help="Folder for the three runs and a picture. [%(default)s]")
    parser.add_argument(
        "--text", action="append", default=[], help="A text to segment at the end, besides three built-in ones. [none]"
    )


def _demo(options):
    with quiet_import():
        from kcrf.commands.heads import compare_heads

    compare_heads(options.out, options.text)
