"""kcrf report"""

import os
from argparse import Namespace

from kcrf.commands.parsers import OVERWRITE, CommandParser, check_is_new

EPILOG = """The page shows settings, scores, learning curves, transitions by epoch, the most frequent mistakes and the
calibration of the confidences. It needs no other file.

example:
  kcrf report runs/crf_x1 runs/crf_x100 --out compared.html"""

OPTIONS = "--out FILE  The HTML file to write. [report.html in the first RUN_DIR]" + OVERWRITE


def add_options(parser: CommandParser) -> None:
    parser.add_argument("runs", nargs="+", metavar="RUN_DIR", help="A folder that `kcrf train` wrote.")


def run(options: Namespace) -> None:
    from kcrf.reports import write_report

    path = options.out or os.path.join(options.runs[0], "report.html")
    if options.out is not None:
        check_is_new(path, options.overwrite)
    write_report(options.runs, path)
    print(path)
