"""A browser of sentences with gold and predicted spans, filtered by mistakes. It works without a script."""

from html import escape

from kcrf.reports.html import each_run, in_language, missing, of_part
from kcrf.reports.mistakes import KINDS, kinds_of_mistakes

MOST_WRONG, MOST_RIGHT = 200, 50  # sentences shown, so that the page stays small


def sentences_section(runs):
    """The section with the sentences of all runs."""
    return each_run(runs, _browser)


def _browser(number, run):
    if run.predictions is None:
        return missing("predictions.jsonl", "predictions")
    kinds = [kinds_of_mistakes(sentence) for sentence in run.predictions]
    wrong = [i for i, mistakes in enumerate(kinds) if mistakes][:MOST_WRONG]
    right = [i for i, mistakes in enumerate(kinds) if not mistakes][:MOST_RIGHT]
    items = "".join(_sentence(i, run.predictions[i], kinds[i]) for i in sorted(wrong + right))
    counts = {kind: sum(kind in mistakes for mistakes in kinds) for kind in KINDS}
    filters = _filters(number, sum(map(bool, kinds)), {kind: count for kind, count in counts.items() if count})
    shown = f"{len(wrong)} of {sum(map(bool, kinds))} sentences with mistakes and {len(right)} without"
    return (
        f'<div class="browser">{filters}<p class="soft">The first {shown}, of {len(kinds)} sentences{of_part(run)}. '
        "Red spans are wrong predictions, with their confidence; yellow spans were missed. Hover over a span for its "
        "confidence.</p>"
        f"<ol>{items}</ol></div>"
    )


def _filters(number, wrong, counts):
    """Buttons that choose which sentences are shown; the style sheet does it."""
    options = [("all", "all", ""), ("wrong", f"with mistakes ({wrong})", " checked" if wrong else "")]
    options += [(_class_of(kind), f"{kind} ({count})", "") for kind, count in counts.items()]
    labels = (
        f'<label><input type="radio" name="show-{number}" class="show-{name}"{state}> {text}</label>'
        for name, text, state in options
    )
    return f'<div class="filters">{"".join(labels)}</div>'


def _class_of(kind):
    return kind.replace(" ", "-")


def _sentence(index, sentence, kinds):
    text, gold, predicted = sentence["text"], sentence["gold"], sentence["found"]
    names = " ".join(map(_class_of, ["wrong", *sorted(kinds)] if kinds else ["right"]))
    common = {tuple(span[:3]) for span in gold} & {tuple(span[:3]) for span in predicted}
    lines = f'<div class="found">{_boxes(text, predicted, common)}</div>'
    if kinds:
        lines += f'<div class="gold"><small>gold</small> {_boxes(text, gold, common)}</div>'
    return f'<li class="{names}" value="{index + 1}"{in_language(text)}>{lines}</li>'


def _boxes(text, spans, common):
    """A text with its spans in boxes; those that are not in `common` are marked."""
    parts, end = [], 0
    for start, stop, label, *confidence in sorted(map(tuple, spans)):
        parts.append(escape(text[end:start]))
        note, is_marked = escape(label), (start, stop, label) not in common
        if confidence and is_marked:
            note = f"{note} {confidence[0]:.2f}".strip()
        title = f' title="{confidence[0]:.3f}"' if confidence else ""
        parts.append(
            f'<span class="piece{" marked" if is_marked else ""}"{title}>{escape(text[start:stop])}'
            f"{f'<small>{note}</small>' if note else ''}</span>"
        )
        end = stop
    return "".join([*parts, escape(text[end:])])
