"""Results as HTML: `render`, and the lists of results that a notebook shows as marked text. Needs no Keras."""

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any, SupportsIndex, TypeVar
from zlib import crc32

from kcrf.progress_bars import is_notebook
from kcrf.taggers.constraints import check_spans
from kcrf.taggers.spans import Span

Item = TypeVar("Item")
Source = str | Sequence[str]

_MOST = 100  # texts shown
_DOUBT = 0.9  # lower probabilities are written beside the label
# Colors are mixed with the page's own, which may be light or dark whatever the browser prefers.
_STYLE = """<style>
.kcrf { --run-1: hsl(215 80% 55%); line-height: 2; white-space: pre-wrap; overflow-wrap: anywhere; margin: .4em 0; }
.kcrf mark { color: inherit; border-radius: .3em; padding: .1em .3em; margin: 0 .1em; }
.kcrf small { font-size: .75em; margin-left: .4em; opacity: .8; }
.kcrf i { display: inline-block; height: .6em; border-radius: .2em; margin-right: .5em; }
.kcrf svg { display: block; width: 100%; max-width: 420px; line-height: 1; }
.kcrf svg text { fill: currentColor; font-size: 11px; }
.kcrf svg .grid { stroke: currentColor; opacity: .2; }
.kcrf svg .line { fill: none; stroke-width: 2; }
</style>"""


class Results(list[Item]):
    """A list of results. A notebook shows them as marked text."""

    def _repr_html_(self) -> str:
        return to_html(self)


class Spans(Results[Span]):
    """The spans of a text, a list.

    Attributes:
        source: The text, or its list of tokens if spans are counted in tokens.
    """

    def __init__(self, spans: Iterable[Span], source: Source) -> None:
        super().__init__(spans)
        self.source = source

    def __reduce_ex__(self, protocol: SupportsIndex) -> Any:
        return Spans, (list(self), self.source)


def render(results: Any, spans: Iterable[Any] | None = None) -> str | None:
    """Shows texts with their words, entities or tokens marked: in a notebook; elsewhere it returns the HTML.

    Args:
        results: The result of a tagger for a text or several texts. Or a text, or a list of tokens, with `spans`.
        spans: Spans of that text: `Span`, `(start, end, label)`, `(start, end)`, or dicts with the keys start, end and
            label. Defaults to None: `results` are results.

    Returns:
        The HTML, in which all text is escaped. In a notebook None: the cell shows the HTML.

    Raises:
        TypeError: `results` is a text without spans, or no result of a tagger.
        ValueError: Spans overlap, or are not in the text.

    >>> render("李雷住在上海。", [(0, 2, "PER"), (4, 6, "LOC")]).count("<mark")
    2
    """
    html = to_html(results if spans is None else _given(results, spans))
    if not is_notebook():
        return html
    from IPython.display import HTML, display

    display(HTML(html))
    return None


def to_html(results: Any) -> str:
    """The HTML of the result for a text, or of a list of them."""
    if isinstance(results, str | Mapping):
        raise TypeError(f"needs the result of a tagger, or a text with `spans`. Received: {results!r}"[:200])
    are_many = isinstance(results, list | tuple) and not isinstance(results, Spans)
    many = results if are_many and not (results and isinstance(results[0], Span)) else [results]
    blocks = list(map(_content, many[:_MOST]))
    blocks += [f"<small>… and {len(many) - _MOST} more</small>"] if len(many) > _MOST else []
    return in_style("".join(f'<div class="kcrf">{block}</div>' for block in blocks))


def in_style(html: str) -> str:
    """HTML with the style of its classes. Lone surrogates, which no notebook can save, become question marks."""
    return (_STYLE + html).encode("utf-8", "replace").decode("utf-8")


def _content(result: Any) -> str:
    """The HTML of the result for a text: marked text, or the bars of a `Classification`."""
    if isinstance(result, Spans):
        return marked(result.source, result)
    if isinstance(result, list | tuple) and all(isinstance(span, Span) for span in result):
        return " ".join(_mark(span, number) for number, span in enumerate(result))  # its text is not known
    if hasattr(result, "probabilities"):
        return bars(result)
    raise TypeError(f"needs the result of a tagger, or a text with `spans`. Received: {result!r}"[:200])


def marked(source: Source, spans: Iterable[Span]) -> str:
    """The HTML of a text, or of its tokens, with its spans marked."""
    parts, end = [], 0
    for number, span in enumerate(spans):
        parts += [escape(_text(source[end : span.start])), _mark(span, number)]
        end = span.end
    blank = "" if isinstance(source, str) else " "
    return blank.join(filter(None, [*parts, escape(_text(source[end:]))]))


def _mark(span: Span, number: int) -> str:
    probability = span.probability
    is_doubtful = probability is not None and probability < _DOUBT
    note = " ".join(filter(None, [escape(span.label), f"{probability:.0%}" if is_doubtful else ""]))
    hue = crc32(span.label.encode("utf-8", "replace")) % 360 if span.label else (215, 150)[number % 2]
    title = "" if probability is None else f' title="{probability:.4f}"'
    color = f"background:color-mix(in srgb, hsl({hue} 80% 50%) 25%, transparent)"
    return f'<mark style="{color}"{title}>{escape(span.text)}{f"<small>{note}</small>" if note else ""}</mark>'


def bars(classification: Any) -> str:
    """The HTML of a `Classification`: a bar for each label, the most probable first."""
    if not classification.probabilities:
        return escape(str(classification.label))
    rows = sorted(classification.probabilities.items(), key=lambda item: -item[1])
    bar = '<i style="width:{width:.1f}em;background:hsl(215 80% 55%)"></i>'
    return "\n".join(f"{bar.format(width=12 * p)}{escape(label)}<small>{p:.1%}</small>" for label, p in rows)


def _given(source: Source, spans: Iterable[Any]) -> Spans:
    """The spans of a user, from left to right."""
    if isinstance(source, Spans) or not isinstance(source, str | Sequence):
        raise TypeError(f"`spans` needs a text before it. Received: {source!r}"[:200])
    given = [(s["start"], s["end"], s.get("label") or "") if isinstance(s, Mapping) else s for s in spans]
    found = {span.key: span for span in given if isinstance(span, Span)}
    checked = check_spans(given, source, None)
    return Spans([found.get(key) or _span(source, *key) for key in checked], source)


def _span(source: Source, start: int, end: int, label: str | None = None) -> Span:
    return Span(start, end, _text(source[start:end]), label or "")


def _text(source: Source) -> str:
    return source if isinstance(source, str) else " ".join(source)
