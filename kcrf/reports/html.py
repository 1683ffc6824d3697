"""Pieces of HTML that several sections of the page share."""

import re
from html import escape

from kcrf.reports.charts import reliability_diagram, run_color
from kcrf.reports.titles import SETS, format_value

_LANGUAGES = {  # the script of a text and the language that a browser should choose its glyphs for
    "ja": re.compile("[\u3040-\u30ff]"),
    "ko": re.compile("[\uac00-\ud7af]"),
    "zh": re.compile("[\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"),
}


def in_language(*texts):
    """The `lang` attribute for an element with these texts: ' lang="zh"' for Chinese; "" where English fits.

    >>> in_language("北京"), in_language("Beijing")
    (' lang="zh"', '')
    """
    text = "".join(texts)
    code = next((code for code, script in _LANGUAGES.items() if script.search(text)), None)
    return f' lang="{code}"' if code else ""


def chip(number):
    """A small square in the color of a run."""
    return f'<span class="chip" style="background:{run_color(number)}"></span>'


def missing(file, content):
    """The paragraph instead of content that a run folder lacks."""
    return f'<p class="soft">No {content}: <code>{file}</code> is not in the run folder.</p>'


def of_part(run):
    """ " of the test set", or "" for a run that was not scored."""
    return f" of the {SETS[run.part]}" if run.part else ""


def each_run(runs, show):
    """The HTML of `show(number, run)` for each run, in the color of the run; under its name if there are several."""
    blocks = []
    for number, (name, run) in enumerate(runs.items()):
        heading = f"<h3>{chip(number)}{escape(name)}</h3>" if len(runs) > 1 else ""
        blocks.append(f'<div style="--run:{run_color(number)}">{heading}{show(number, run)}</div>')
    return f'<div class="each-run">{"".join(blocks)}</div>' if blocks else ""


def table(head, rows, kind=""):
    """A table.

    Args:
        head: The HTML of the headings. All columns but the first hold numbers.
        rows: For each row its class and the HTML of its cells.
        kind: The class of the table. Defaults to none.
    """
    head = "".join(f'<th class="{"number" if i else "first"}">{cell}</th>' for i, cell in enumerate(head))
    body = "".join(f'<tr class="{name}">{"".join(cells)}</tr>' for name, cells in rows)
    return f'<div class="wide"><table class="{kind}"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def number_cell(value, kind=""):
    """A cell with a number."""
    return f'<td class="number {kind}">{escape(format_value(value))}</td>'


def calibration_table(rows, error, items):
    """The results of `kcrf.metrics.calibration` as a number, a diagram and a table; `items` names what it counts."""
    lines = [
        ("", [f"<td>{low:.1f} to {high:.1f}</td>", *(number_cell(value) for value in (count, mean, share))])
        for low, high, count, mean, share in rows
        if count
    ]
    head = ["confidence", "count", "mean", "correct"]
    return (
        f'<p>Expected calibration error <b>{error:.4f}</b> <span class="soft">over {items}: the mean distance '
        "between confidence and accuracy. At 0, confidences are probabilities.</span></p>"
        f'<div class="halves">{reliability_diagram("Accuracy by confidence", rows)}{table(head, lines)}</div>'
    )


def spans(pieces):
    """Words or entities in boxes, each `(text, label)`."""
    boxes = (
        f'<span class="piece"{in_language(text)}>{escape(text)}'
        f"{f'<small>{escape(label)}</small>' if label else ''}</span>"
        for text, label in pieces
    )
    return "".join(boxes) or '<span class="soft">nothing</span>'
