"""Training runs, side by side, as one HTML page."""

from collections.abc import Iterable
from html import escape
from os import PathLike
from pathlib import Path

from kcrf.files import write_aside
from kcrf.reports.sections import SECTIONS, anchor, cards
from kcrf.runs import read_run
from kcrf.version import __version__


def write_report(run_dirs: Iterable[str | PathLike[str]], path: str | PathLike[str]) -> None:
    """Writes a page about training runs: scores, transitions, curves, mistakes, sentences, calibration, settings.

    The page contains everything it shows; it needs no other file, no script and no network. Where a run folder lacks a
    file, the section says so.

    Args:
        run_dirs: Folders that `kcrf train` wrote, in the order in which they are shown.
        path: The HTML file.

    Raises:
        FileNotFoundError: One of them is no run folder.
        IsADirectoryError: `path` is a folder.
        TypeError: `run_dirs` is a path.
        ValueError: There is no run folder, or a file in one is damaged. Names the file and the line.

    Example:

    >>> write_report(["runs/crf_x1", "runs/crf_x100"], "report.html")  # doctest: +SKIP
    """
    if isinstance(run_dirs, (str, PathLike)):
        raise TypeError(f"`run_dirs` must be a list of run folders. Received: {str(run_dirs)!r}")
    run_dirs = list(run_dirs)
    if not run_dirs:
        raise ValueError("A report needs at least one run folder. Received: none")
    runs = dict(zip(_names(run_dirs), map(read_run, run_dirs), strict=True))
    style = Path(__file__).with_name("report.css").read_text(encoding="utf-8")
    sections = {title: content for title, section in SECTIONS.items() if (content := section(runs))}
    links = "".join(f'<a href="#{anchor(title)}">{title}</a>' for title in sections)
    body = "".join(_section(title, content) for title, content in sections.items())
    page = (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>kcrf report: {escape(', '.join(runs))}</title><style>{style}</style></head><body><main>"
        "<header><h1>Training report</h1>"
        f'<p class="soft">kcrf {__version__}, {len(runs)} run{"s" * (len(runs) > 1)}</p>'
        f"<nav>{links}</nav></header>{cards(runs)}"
        f'<div class="sections">{body}</div></main></body></html>\n'
    )
    path = Path(path)
    if path.is_dir():
        raise IsADirectoryError(f"{path}: needs the name of a file for the report. Received: a folder")
    path.parent.mkdir(parents=True, exist_ok=True)
    content = page.encode("utf-8", errors="replace")  # a lone surrogate becomes a question mark
    write_aside(path, lambda aside: aside.write_bytes(content))


def _section(title, content):
    return f'<section id="{anchor(title)}"><h2>{title}</h2>{content}</section>'


def _names(run_dirs):
    """The names of the runs: the last parts of their paths, as many as make them different."""
    parts = [Path(run_dir).resolve().parts for run_dir in run_dirs]
    for count in range(1, max(map(len, parts)) + 1):
        names = ["/".join(part[-count:]) for part in parts]
        if len(set(names)) == len(names):
            return names
    return [f"{name} ({number})" for number, name in enumerate(names, 1)]
