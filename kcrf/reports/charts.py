"""Charts as inline SVG: lines over epochs, heat maps, a reliability diagram. They need no library.

Colors are variables of `report.css`, which differ between light and dark pages: `--run-1` to `--run-6` for runs,
`--cold`, `--warm` and `--middle` for heat maps. Sizes are in pixels; no chart is wider than a phone.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape
from math import ceil, floor, log10
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from kcrf.metrics.transitions import is_forbidden

WIDTH, HEIGHT = 340, 210
LEFT, RIGHT, TOP, BOTTOM = 46, 12, 12, 30
COLORS = 6
MOST_EPOCHS = 8  # with a number on the axis, and the last one
LARGE = 900  # width of a heat map with many tags
NARROW = 230  # width of a heat map with few and short tags: two fit side by side on a phone
SMALLEST_FIGURE = 8  # font size in pixels; cells with less room have no number
LETTER = 0.62  # width of a letter divided by the font size


def run_color(number: int) -> str:
    """The CSS color of a run, by its index."""
    return f"var(--run-{number % COLORS + 1})"


def line_chart(
    title: str,
    lines: Mapping[int, Sequence[tuple[float, float]]],
    bands: Mapping[int, Sequence[tuple[float, float, float]]] | None = None,
) -> str:
    """Draws values over epochs, one line for each run. Points show their value as a tooltip.

    For runs of one epoch, writes the values instead.
    """
    bands = bands or {}
    points = [point for line in [*lines.values(), *bands.values()] for point in line]
    epochs = [epoch for epoch, *_ in points]
    if min(epochs) == max(epochs):
        rows = (f'<li style="color:{run_color(number)}">{line[0][1]:.5g}</li>' for number, line in lines.items())
        return f'<ul class="only">{"".join(rows)}</ul>'
    values = [value for _, *ends in points for value in ends]
    ticks = _ticks(min(values), max(values))
    low, high = min(ticks[0], *values), max(ticks[-1], *values)
    x = _scale(min(epochs), max(epochs), LEFT, WIDTH - RIGHT)
    y = _scale(low, high, HEIGHT - BOTTOM, TOP)
    epoch_ticks = range(int(min(epochs)), int(max(epochs)) + 1, max(1, ceil((max(epochs) - min(epochs)) / MOST_EPOCHS)))
    parts = [_y_axis(ticks, y, WIDTH - RIGHT), _x_axis(epoch_ticks, x, HEIGHT)]
    for number, band in bands.items():
        corners = [(epoch, low) for epoch, low, _ in band] + [(epoch, high) for epoch, _, high in reversed(band)]
        path = " ".join(f"{x(epoch):.1f},{y(value):.1f}" for epoch, value in corners)
        parts.append(f'<polygon style="opacity:0.18" fill="{run_color(number)}" points="{path}"/>')
    for number, line in lines.items():
        path = " ".join(f"{x(epoch):.1f},{y(value):.1f}" for epoch, value in line)
        parts.append(f'<polyline class="line" stroke="{run_color(number)}" points="{path}"/>')
        for epoch, value in line:
            parts.append(
                f'<circle cx="{x(epoch):.1f}" cy="{y(value):.1f}" r="2.6" fill="{run_color(number)}">'
                f"<title>epoch {epoch}: {value:.5g}</title></circle>"
            )
    return _svg(title, WIDTH, HEIGHT, parts)


def curves(rows: Sequence[Mapping[str, float]]) -> str:
    """Draws the loss and the score of a run over its epochs, which are the rows of its log."""
    score = next((name for row in rows for name in row if name.startswith("valid_")), None)
    titles = {"loss": "loss", score: "score on the validation set"} if score else {}
    charts = []
    for name, title in titles.items():
        line = [(row["epoch"], row[name]) for row in rows if name in row]
        charts.append(f"<small>{title}</small>{line_chart(title, {0: line})}" if len(line) > 1 else "")
    return "".join(charts)


def heat_map(
    title: str, matrix: ArrayLike, labels: Sequence[str], allowed: ArrayLike | None = None, limit: float | None = None
) -> str:
    """Draws a transition matrix, from the tag of the row to the tag of the column: warm above 0, cold below.

    Illegal cells are crossed out, and framed if they score above a legal one in the same row. Cells have their score as
    a tooltip, and written into them where there is room. Labels wider than a cell are turned by 90 degrees.
    """
    matrix = np.asarray(matrix, "float64")
    allowed = np.ones(matrix.shape, bool) if allowed is None else np.asarray(allowed)
    forbidden = is_forbidden(matrix)
    limit = limit or np.abs(matrix[~forbidden]).max(initial=0.0) or 1.0
    lowest_legal = np.where(allowed, matrix, np.inf).min(axis=1)
    size = len(matrix)
    width = {"small": NARROW, "large": LARGE}.get(size_of(labels), WIDTH)
    font = 13 if width == NARROW else max(4.5, min(11.0, 0.62 * width / size))
    longest = max(len(label) for label in labels) * font * LETTER
    left = 12 + longest
    cell = (width - left - 4) / size
    upright = longest > cell - 2
    top = 12 + (longest if upright else font)
    figures = {place: f"{score:+z.2f}" for place, score in np.ndenumerate(matrix) if not forbidden[place]}
    room = min(12.5, (cell - 4) / (LETTER * max(map(len, figures.values()), default=1)))
    parts = _names(labels, font, (left, top), cell, upright)
    for (i, j), score in np.ndenumerate(matrix):
        corner = left + j * cell, top + i * cell
        tooltip = f"{labels[i]} to {labels[j]}: " + ("forbidden" if forbidden[i, j] else f"{score:+.3f}")
        fill = "var(--middle)" if forbidden[i, j] else _heat(score / limit)
        illegal_wins = not allowed[i, j] and score > lowest_legal[i]
        parts.append(_square(corner, cell, fill, tooltip, not allowed[i, j], illegal_wins))
        if room >= SMALLEST_FIGURE and (i, j) in figures:
            parts.append(_figure(corner, cell, room, figures[i, j], on_dark=abs(score) > limit / 2))
    return _svg(title, width, top + size * cell + 4, parts)


def size_of(labels: Sequence[str]) -> str:
    """The size of a heat map: "small" if it fits half the width of a phone, "large" if it needs that of the page."""
    return "small" if len(labels) * max(map(len, labels)) <= 25 else "large" if len(labels) > 20 else ""


def reliability_diagram(title: str, rows: Sequence[Sequence[Any]]) -> str:
    """Draws accuracy by confidence. On the diagonal, confidences are probabilities.

    Bars of fewer items are fainter.
    """
    height = WIDTH - LEFT - RIGHT + TOP + BOTTOM  # a square of 0 to 1
    x, y = _scale(0, 1, LEFT, WIDTH - RIGHT), _scale(0, 1, height - BOTTOM, TOP)
    ticks = (0, 0.25, 0.5, 0.75, 1)
    parts = [_y_axis(ticks, y, WIDTH - RIGHT), _x_axis(ticks, x, height)]
    most = max(row[2] for row in rows)
    for low, high, count, confidence, right in rows:
        if count:
            side = f'x="{x(low) + 1:.1f}" y="{y(right):.1f}" width="{x(high) - x(low) - 2:.1f}"'
            tooltip = f"{count} with {low:.2f} to {high:.2f}: mean confidence {confidence:.3f}, accuracy {right:.3f}"
            fill = f'style="opacity:{0.1 + 0.4 * count / most:.2f}" height="{y(0) - y(right):.1f}"'
            bar = f'<rect class="bar" {side} {fill}><title>{tooltip}</title></rect>'
            point = f'<circle class="point" cx="{x(confidence):.1f}" cy="{y(right):.1f}" r="4"/>'
            parts.append(bar + point)
    parts.append(f'<line class="diagonal" x1="{x(0)}" y1="{y(0)}" x2="{x(1)}" y2="{y(1)}"/>')
    return _svg(title, WIDTH, height, parts)


def scatter_plot(title: str, points: Sequence[tuple[float, float]]) -> str:
    """Draws points `(x, y)` in a square with one scale for both axes, and its diagonal."""
    height = WIDTH - LEFT - RIGHT + TOP + BOTTOM
    values = [value for point in points for value in point]
    ticks = _ticks(min(values), max(values))
    low, high = min(ticks[0], *values), max(ticks[-1], *values)
    x, y = _scale(low, high, LEFT, WIDTH - RIGHT), _scale(low, high, height - BOTTOM, TOP)
    parts = [_y_axis(ticks, y, WIDTH - RIGHT), _x_axis(ticks, x, height)]
    parts += [f'<circle class="point" cx="{x(a):.1f}" cy="{y(b):.1f}" r="2" opacity="0.5"/>' for a, b in points]
    parts.append(f'<line class="diagonal" x1="{x(low)}" y1="{y(low)}" x2="{x(high)}" y2="{y(high)}"/>')
    return _svg(title, WIDTH, height, parts)


def box_plot(title: str, groups: Mapping[str, Sequence[float]]) -> str:
    """Draws the spread of numbers: a box from quartile to quartile with a line at the median, and all points."""
    row, values = 34, [value for numbers in groups.values() for value in numbers]
    ticks = _ticks(min(values), max(values))
    x = _scale(min(ticks[0], *values), max(ticks[-1], *values), LEFT, WIDTH - RIGHT)
    height, parts = TOP + row * len(groups) + BOTTOM, []
    for number, (name, numbers) in enumerate(groups.items()):
        low, middle, high = np.quantile(numbers, (0.25, 0.5, 0.75)).tolist()
        y = TOP + row * number
        parts.append(
            f'<text class="tick axis" x="{LEFT - 10}" y="{y + 21}" text-anchor="end">{number + 1}</text>'
            f'<rect class="bar" x="{x(low):.1f}" y="{y + 4}" width="{max(1.0, x(high) - x(low)):.1f}" height="26" '
            f'style="opacity:0.3"><title>{escape(name)}: median {middle:.4f}</title></rect>'
            f'<line class="line" stroke="{run_color(0)}" x1="{x(middle):.1f}" y1="{y + 4}" x2="{x(middle):.1f}" '
            f'y2="{y + 30}"/>'
        )
        parts += [
            f'<circle class="point" cx="{x(value):.1f}" cy="{y + 17}" r="3"><title>{value:.4f}</title></circle>'
            for value in numbers
        ]
    return _svg(title, WIDTH, height, [*parts, _x_axis(ticks, x, height)])


def _svg(title: str, width: float, height: float, parts: Iterable[str]) -> str:
    head = f'<svg role="img" viewBox="0 0 {width} {height:.0f}" xmlns="http://www.w3.org/2000/svg">'
    return f"{head}<title>{escape(title)}</title>{''.join(parts)}</svg>"


def _scale(low: float, high: float, first: float, last: float) -> Callable[[float], float]:
    """The linear function from values to pixels. If all values are equal, the middle."""
    if high == low:
        return lambda value: (first + last) / 2
    return lambda value: first + (value - low) / (high - low) * (last - first)


def _ticks(low: float, high: float) -> list[float]:
    """Round numbers from below `low` to above `high`: multiples of 1, 2 or 5 times a power of ten."""
    if low == high:
        return [low]
    rough = (high - low) / 4
    power = 10.0 ** floor(log10(rough))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough)
    return [round(step * n, 10) for n in range(floor(low / step), ceil(high / step) + 1)]


def _x_axis(ticks: Iterable[float], x: Callable[[float], float], height: float) -> str:
    return "".join(
        f'<text class="tick axis" x="{x(tick):.1f}" y="{height - 12}" text-anchor="middle">{tick:g}</text>'
        for tick in ticks
    )


def _y_axis(ticks: Iterable[float], y: Callable[[float], float], right: float) -> str:
    return "".join(
        f'<line class="grid" x1="{LEFT}" y1="{y(tick):.1f}" x2="{right}" y2="{y(tick):.1f}"/>'
        f'<text class="tick axis" x="{LEFT - 6}" y="{y(tick) + 4:.1f}" text-anchor="end">{tick:g}</text>'
        for tick in ticks
    )


def _heat(share: float) -> str:
    """The CSS color of a value from -1, cold, over 0 to 1, warm."""
    share = max(-1.0, min(1.0, share))
    return f"color-mix(in oklab, var(--{'warm' if share > 0 else 'cold'}) {abs(share):.0%}, var(--middle))"


def _names(labels: Sequence[str], font: float, corner: tuple[float, float], cell: float, upright: bool) -> list[str]:
    """The labels next to the rows and above the columns of a heat map, whose first cell has this corner."""
    (left, top), parts = corner, []
    for i, label in enumerate(labels):
        x, y = left + (i + 0.5) * cell + (font / 3 if upright else 0), top + (i + 0.5) * cell + font / 3
        above = f'x="{x:.1f}" y="{top - 6:.1f}" text-anchor="{"start" if upright else "middle"}"'
        turn = f' transform="rotate(-90 {x:.1f} {top - 6:.1f})"' if upright else ""
        for place in (above + turn, f'x="{left - 6:.1f}" y="{y:.1f}" text-anchor="end"'):
            parts.append(f'<text class="tick" {place} font-size="{font:.1f}">{escape(label)}</text>')
    return parts


def _figure(corner: tuple[float, float], side: float, font: float, text: str, on_dark: bool) -> str:
    x, y = corner[0] + side / 2, corner[1] + side / 2 + font / 3
    kind = "figure on-dark" if on_dark else "figure"
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" font-size="{font:.1f}" text-anchor="middle">{text}</text>'


def _square(corner: tuple[float, float], side: float, fill: str, tooltip: str, crossed: bool, framed: bool) -> str:
    (x, y), gap = corner, min(1.5, side / 12)
    end_x, end_y = x + side - gap, y + side - gap
    frame = ' class="framed"' if framed else ""
    parts = [
        f'<rect x="{x + gap / 2:.1f}" y="{y + gap / 2:.1f}" width="{side - gap:.1f}" height="{side - gap:.1f}"'
        f' rx="{min(4, side / 8):.1f}" style="fill:{fill}"{frame}><title>{escape(tooltip)}</title></rect>'
    ]
    if crossed:
        parts.append(
            f'<path class="cross" d="M{x + gap:.1f},{y + gap:.1f}L{end_x:.1f},{end_y:.1f}'
            f'M{end_x:.1f},{y + gap:.1f}L{x + gap:.1f},{end_y:.1f}"/>'
        )
    return "".join(parts)
