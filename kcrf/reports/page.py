"""Training runs, side by side, as one HTML page that needs nothing else."""

from html import escape
from pathlib import Path

from kcrf.files import write_aside
from kcrf.reports.sections import SECTIONS, anchor, cards
from kcrf.runs import read_run
from kcrf.version import __version__

__all__ = ["write_report"]


def write_report(run_dirs, path):
    """Writes a page about training runs, side by side: settings, scores, curves, transitions, mistakes, calibration.

    The page holds all it shows, text and pictures: no other file, no script, no network. A file that a run folder does
    not have is a section that says so.

    Args:
        run_dirs: Folders that `kcrf train` wrote, in the order in which they are shown.
        path: The HTML file.

    Raises:
        FileNotFoundError: One of them is no run folder.
        IsADirectoryError: `path` is a folder.
        ValueError: There is none; or a file in one is damaged, which the message names with its line.

    Example:

    >>> write_report(["runs/crf_x1", "runs/crf_x100"], "report.html")  # doctest: +SKIP
    """
    if not run_dirs:
        raise ValueError("A report needs at least one run folder. Received: none")
    runs = dict(zip(_names(run_dirs), map(read_run, run_dirs), strict=True))
    style = Path(__file__).with_name("report.css").read_text(encoding="utf-8")
    sections = {title: section(runs) for title, section in SECTIONS.items()}
    links = "".join(f'<a href="#{anchor(title)}">{title}</a>' for title in sections)
    body = "".join(f'<section id="{anchor(t)}"><h2>{t}</h2>{content}</section>' for t, content in sections.items())
    page = (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>kcrf report: {escape(', '.join(runs))}</title><style>{style}</style></head><body><main>"
        "<header><h1>Training report</h1>"
        f'<p class="soft">kcrf {__version__}, {len(runs)} run{"s" * (len(runs) > 1)}</p>'
        f"<nav>{links}</nav></header>{cards(runs)}{body}</main></body></html>\n"
    )
    path = Path(path)
    if path.is_dir():
        raise IsADirectoryError(f"{path}: needs the name of a file for the report. Received: a folder")
    path.parent.mkdir(parents=True, exist_ok=True)
    content = page.encode("utf-8", errors="replace")  # a lone surrogate becomes a question mark
    write_aside(path, lambda aside: aside.write_bytes(content))


def _names(run_dirs):
    """The last part of each path, as many parts as it takes to tell them apart."""
    parts = [Path(run_dir).resolve().parts for run_dir in run_dirs]
    for count in range(1, max(map(len, parts)) + 1):
        names = ["/".join(part[-count:]) for part in parts]
        if len(set(names)) == len(names):
            return names
    return [f"{name} ({number})" for number, name in enumerate(names, 1)]
