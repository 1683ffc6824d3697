"""Training runs, side by side, as one HTML page."""

import re
import shlex
from collections.abc import Iterable, Mapping
from datetime import datetime
from os import PathLike
from pathlib import Path
from typing import Any

from kcrf.extras import needs_extra
from kcrf.files import write_aside
from kcrf.reports.charts import run_color
from kcrf.reports.sections import sections
from kcrf.reports.tables import SETS, TITLES, format_value
from kcrf.runs import RunRecord, read_run
from kcrf.runs.names import CONFIG, LOG, SCORES
from kcrf.version import __version__

_LANGUAGES = {  # the script of a text and the language that a browser should choose its glyphs for
    "ja": re.compile("[\u3040-\u30ff]"),
    "ko": re.compile("[\uac00-\ud7af]"),
    "zh": re.compile("[\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"),
}


def write_report(run_dirs: Iterable[str | PathLike[str]], path: str | PathLike[str]) -> None:
    """Writes a page about training runs: scores, transitions, curves, mistakes, sentences, calibration, settings.

    The page contains everything it shows and needs no network. Its words are English, or Chinese where the
    browser is. Where a run folder lacks a file, the section says so.

    Args:
        run_dirs: Folders that `kcrf train` wrote, in the order in which they are shown.
        path: The HTML file.

    >>> write_report(["runs/crf_x1", "runs/crf_x100"], "report.html")  # doctest: +SKIP
    """
    if isinstance(run_dirs, (str, PathLike)):
        raise TypeError(f"`run_dirs` must be a list of run folders. Received: {str(run_dirs)!r}")
    run_dirs = list(run_dirs)
    if not run_dirs:
        raise ValueError("A report needs at least one run folder. Received: none")
    runs = dict(zip(_names(run_dirs), map(read_run, run_dirs), strict=True))
    path = Path(path)
    if path.is_dir():
        raise IsADirectoryError(f"{path}: needs the name of a file for the report. Received: a folder")
    path.parent.mkdir(parents=True, exist_ok=True)
    cards = [_card(name, run) for name, run in runs.items()]
    page = _render(runs=list(runs), cards=cards, sections=sections(runs), version=__version__)
    content = page.encode("utf-8", errors="replace")  # a lone surrogate becomes a question mark
    write_aside(path, lambda aside: aside.write_bytes(content))


def _card(name: str, run: RunRecord) -> dict[str, Any]:
    """The main score of a run, how long it took, when and from what it was trained."""
    about = [f"{TITLES[run.metric]} on the {SETS[run.part]}" if run.part else "not scored yet"]
    if run.log:
        about.append(f"{len(run.log)} epoch{'s' * (len(run.log) > 1)}")
        seconds = run.log[-1].get("seconds")
        about += [f"{seconds / 60:.1f} min" if seconds >= 60 else f"{seconds:.0f} s"] if seconds is not None else []
    files = [file for name in (SCORES, LOG, CONFIG) if (file := run.path / name).is_file()]
    date = datetime.fromtimestamp(files[0].stat().st_mtime).strftime("%Y-%m-%d %H:%M")
    return {"name": name, "score": run.score, "about": about, "date": date, "command": _command(run)}


def _command(run: RunRecord) -> str:
    """The command that trains such a run, or the settings of a run from a script."""
    if not run.sources.get("train"):
        return f"Settings({', '.join(f'{name}={value!r}' for name, value in run.said.items())})"
    words = ["kcrf train"]
    sources = {name: x for name, x in run.sources.items() if x is not False and (name, x) != ("column", -1)}
    for name, value in {**sources, **run.said, "out": run.path}.items():
        option = "--from" if name == "from_run" else f"--{name.replace('_', '-')}"
        if isinstance(value, Mapping):
            option = "--standard" if name == "train" else option
            words += [f"{option} {shlex.quote(f'{standard}={file}')}" for standard, file in value.items()]
        elif isinstance(value, bool):
            words.append(option if value else f"--no-{option[2:]}")
        elif value not in (None, [], ()):
            words.append(f"{option} {shlex.quote(str(value))}")
    return " ".join(words)


def _render(**values: Any) -> str:
    """Fills in the template of the page."""
    with needs_extra("reports", "A report"):
        from jinja2 import Environment
    environment = Environment(autoescape=True, keep_trailing_newline=True)
    filters: Mapping[str, Any] = {"color": run_color, "figure": format_value, "language": _language}
    environment.filters.update(filters)
    folder = Path(__file__).parent
    template = environment.from_string((folder / "report.html").read_text(encoding="utf-8"))
    style = (folder / "report.css").read_text(encoding="utf-8")
    return template.render(style=style, **values)


def _language(text: str) -> str:
    """The `lang` attribute for an element with a text: "zh" for Chinese, "" where English fits."""
    return next((code for code, script in _LANGUAGES.items() if script.search(text)), "")


def _names(run_dirs: list[Any]) -> list[str]:
    """The names of the runs: the last parts of their paths, as many as make them different."""
    parts = [Path(run_dir).resolve().parts for run_dir in run_dirs]
    for count in range(1, max(map(len, parts)) + 1):
        names = ["/".join(part[-count:]) for part in parts]
        if len(set(names)) == len(names):
            return names
    return [f"{name} ({number})" for number, name in enumerate(names, 1)]
