"""kcrf report"""

import os
from argparse import Namespace
from typing import Any

from kcrf.commands.parsers import add_command, add_overwrite_option, check_is_new


def add_report(commands: Any) -> None:
    """Adds `kcrf report`."""
    add_command(commands, "report", "Write one HTML page that compares training runs.", _add_options, _report)


def _add_options(parser: Any) -> None:
    parser.epilog = (
        "The page shows settings, scores, learning curves, transitions by epoch, the most frequent mistakes and the\n"
        "calibration of the confidences. It needs no other file.\n\n"
        "example:\n  kcrf report runs/crf_x1 runs/crf_x100 --out compared.html"
    )
    parser.add_argument("runs", nargs="+", metavar="RUN_DIR", help="A folder that `kcrf train` wrote.")
    parser.add_argument("--out", metavar="FILE", help="The HTML file to write. [report.html in the first RUN_DIR]")
    add_overwrite_option(parser)


def _report(options: Namespace) -> None:
    from kcrf.reports import write_report

    path = options.out or os.path.join(options.runs[0], "report.html")
    if options.out is not None:
        check_is_new(path, options.overwrite)
    write_report(options.runs, path)
    print(path)
