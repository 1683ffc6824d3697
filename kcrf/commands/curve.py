"""kcrf curve: how good a model is with more labeled sentences."""

from argparse import Namespace
from pathlib import Path
from typing import Any

import numpy as np

from kcrf.commands.parsers import OVERWRITE, CommandParser, add_reading_options, check_out, reading_arguments
from kcrf.commands.quiet import quiet_import
from kcrf.commands.train import read_part, with_scheme_of_file
from kcrf.commands.training_options import add_settings, given_settings
from kcrf.extras import needs_extra
from kcrf.files import write_aside
from kcrf.reports.tables import TITLES, score_table
from kcrf.runs.settings import FIELDS, RULES, Settings

EPILOG = """FILE is training data, as `kcrf train` reads it. Models are trained on growing parts of it, three times,
and scored on the rest. They are linear models without augmented copies, which take seconds, unless --encoder or
--bert names others. All settings of `kcrf train` are options: `kcrf curve --help all` lists them.

example:
  kcrf curve --task ner --train labeled.jsonl --goal 0.9 --out curve.png"""
OPTIONS = f"""
--train FILE!  The labeled sentences.
--goal X       The score to reach. [the next round one]
--out FILE     A picture to write: .png, .svg or .pdf. [none]
{OVERWRITE}"""


def add_options(parser: CommandParser) -> None:
    parser.common = frozenset("--train --task --goal --encoder --out --overwrite --seed".split())
    add_settings(parser, FIELDS, RULES)
    add_reading_options(parser)


def run(options: Namespace) -> None:
    if options.goal is not None and not 0 < options.goal < 1:
        raise ValueError(f"--goal must be above 0 and below 1. Received: {options.goal}")
    if options.out is not None:
        check_out(options.out, options.train, options.overwrite)
    settings = curve_settings(given_settings(options, FIELDS))
    sources = {"train": options.train, **reading_arguments(options)}
    items = read_part(settings.task, sources, "train")
    with quiet_import():
        from rich.console import Console

        from kcrf.training import learning_curve
    curve = learning_curve(with_scheme_of_file(settings, sources), items)
    columns = ["sentences", TITLES[curve.metric], "lowest", "highest"]
    rows = [[f"{n:,}", float(s.mean()), float(s.min()), float(s.max())] for n, s in zip(curve.sizes, curve.scores.T)]
    Console().print(score_table(options.train, columns, rows))
    print(in_words(curve, options.goal))
    if options.out is not None:  # after the scores: drawing may lack a package
        _draw(options.out, curve)


def curve_settings(given: dict[str, Any]) -> Settings:
    """The settings of the models of a curve: without others, they are linear, which learn no augmented copies."""
    if "bert" not in given and given.get("task") != "classify":
        given = {"encoder": "linear"} | given
    return Settings(**({"augment": 0} | given if given.get("encoder") == "linear" else given))


def in_words(curve: Any, goal: float | None) -> str:
    """Two sentences: the present score, and how many sentences the goal needs; and the score of twice as many."""
    now, twice = curve.score(curve.count), curve.score(2 * curve.count)
    return (
        f"{TITLES[curve.metric]} {now.value:.3f} with {curve.count:,} sentences; {curve.needs(goal)}. "
        f"With twice as many, {twice.value:.3f} ({twice.low:.3f} to {twice.high:.3f})."
    )


def _draw(path: str, curve: Any) -> None:
    """Draws the scores, the power law and its interval."""
    with needs_extra("reports", "Drawing"):
        from matplotlib.figure import Figure
    figure = Figure(figsize=(5, 3.2), layout="constrained")
    axes, sizes = figure.subplots(), np.geomspace(curve.sizes[0], 4 * curve.count)
    value, low, high = np.transpose([curve.score(size) for size in sizes])
    axes.fill_between(sizes, low, high, alpha=0.2)
    axes.plot(sizes, value)
    axes.plot(curve.sizes, curve.scores.T, "k.")
    axes.set(xscale="log", xlabel="labeled sentences", ylabel=TITLES[curve.metric])
    axes.set_xticks(ticks := [*curve.sizes, 2 * curve.count, 4 * curve.count], list(map(str, ticks)))
    axes.minorticks_off()
    write_aside(Path(path), lambda place: figure.savefig(place, format=Path(path).suffix[1:] or "png", dpi=150))
