"""What the parsers of several commands share."""

import argparse

__all__ = ["add_command", "add_conll", "add_input", "check_top_k", "print_scores"]


def add_command(commands, name, run, summary, epilog):
    """Adds a parser for a command and returns it; `run(options)` runs the command."""
    parser = commands.add_parser(
        name,
        help=summary,
        description=summary,
        epilog=epilog,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(run=run)
    return parser


def add_conll(parser):
    """Adds the options on how to read CoNLL files."""
    parser.add_argument("--column", type=int, metavar="N", help="of CoNLL: where tags are, from 0 on [-1, the last]")
    parser.add_argument(
        "--repair", action="store_true", default=None, help="of CoNLL: read illegal tags as conlleval does"
    )


def print_scores(title, parts):
    """Prints the scores of parts as a table."""
    from rich.console import Console

    from kcrf.reports import table_of_parts

    Console().print(table_of_parts(title, parts))


def check_top_k(options):
    """Raises ValueError if --top-k is below 1."""
    if options.top_k is not None and options.top_k < 1:
        raise ValueError(f"--top-k must be at least 1. Received: {options.top_k}")


def add_input(parser):
    """Adds the options of commands that read text line by line."""
    parser.add_argument("--model", required=True, metavar="RUN_DIR", help="a folder that `kcrf train` wrote")
    parser.add_argument("file", nargs="?", metavar="FILE", help="UTF-8 text [standard input]")
    parser.add_argument("--batch-size", type=int, default=64, metavar="N", help="windows at a time [%(default)s]")
