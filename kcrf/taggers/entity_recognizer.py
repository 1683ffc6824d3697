"""`EntityRecognizer`: recognizes entities in texts, with probabilities and the k best analyses."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from os import PathLike
from typing import Any

from kcrf.taggers.decoding import ignore
from kcrf.taggers.open_model import load_tagger
from kcrf.taggers.span_constraints import SpanConstraints, check_spans
from kcrf.taggers.text_input import as_list, as_text_input, one_per_text

__all__ = ["Entity", "EntityRecognizer", "entities_of"]


@dataclass(frozen=True)
class Entity:
    """An entity in a text.

    Attributes:
        start, end: Where it is: `[start, end)`, in characters of a text, in tokens of a list of tokens.
        label: Its type.
        text: Its characters.
        confidence: The posterior probability that exactly this span is an entity of this type. None in the results of
            `top_k`, which have one probability for all of their entities together.
    """

    start: int
    end: int
    label: str
    text: str
    confidence: float | None = None


class EntityRecognizer:
    """Finds entities with the model of a run folder, in texts of any length.

    Args:
        run_dir: A folder that `kcrf train --task ner` wrote, or a file that `kcrf export` made of it.
        min_confidence: Above 0 and below 1: find all entities whose posterior is at least that, and of those that
            overlap the surest; a lower one finds more. Defaults to None: as the run was trained, or if it was trained
            without, the entities of the best path.

    Raises:
        FileNotFoundError: It is no run folder, or a file is missing.
        ValueError: It was written by a newer version or for another task, or a file in it is damaged; or
            `min_confidence` is out of its range.

    Example:

        >>> recognizer = EntityRecognizer("runs/people")            # doctest: +SKIP
        >>> recognizer.recognize("李雷住在上海。")                   # doctest: +SKIP
        [Entity(start=0, end=2, label='PER', text='李雷', confidence=0.98), ...]

    A model whose units are words cuts a text into tokens by itself. Where the tokens are known, give them: a list of
    strings, or a `kcrf.corpora.Sentence` with its tokens. No entity then begins or ends inside a token.

        >>> recognizer = EntityRecognizer("runs/english")           # doctest: +SKIP
        >>> recognizer.recognize(["Kim", "lives", "in", "Leeds"])   # doctest: +SKIP
        [Entity(start=0, end=1, label='PER', text='Kim', confidence=0.97), ...]
    """

    def __init__(self, run_dir: str | PathLike[str], min_confidence: float | None = None) -> None:
        if min_confidence is not None and not 0 < min_confidence < 1:
            raise ValueError(f"`min_confidence` must be above 0 and below 1. Received: {min_confidence!r}")
        self._tagger = load_tagger(run_dir, ["ner"])
        if min_confidence is not None:
            self._tagger.min_confidence = min_confidence

    def recognize(self, text: Any, spans: Iterable[tuple[int, int, str]] = ()) -> list[Entity]:
        """The entities of a text.

        Args:
            text: A string of any length, the list of its tokens, or a `kcrf.corpora.Sentence`, whose tokens are used.
            spans: Entities that the text has, as `(start, end, label)` in its characters, or in tokens of a list. The
                rest, and the probabilities, are what the model finds with these given. Defaults to none.

        Returns:
            A list of `Entity` from left to right.

        Raises:
            ValueError: Spans overlap, are not in the text or have a label that the model does not know.
        """
        return self.recognize_batch([text], spans=[spans])[0]

    def recognize_batch(
        self,
        texts: Iterable[Any],
        batch_size: int = 64,
        on_batch: Callable[[int], object] = ignore,
        spans: Iterable[Iterable[tuple[int, int, str]]] | None = None,
    ) -> list[list[Entity]]:
        """The entities of several texts.

        Args:
            texts: Iterable of what `recognize` takes.
            batch_size: Windows of up to 128 positions in a batch. Defaults to 64.
            on_batch: Called after each batch with the number of characters whose tags it decided.
            spans: For each text what `recognize` takes. Defaults to None: none.

        Returns:
            A list with what `recognize` returns for each text.
        """
        inputs = list(map(as_text_input, as_list(texts, "recognize")))
        texts, tokens = [item.text for item in inputs], [item.tokens for item in inputs]
        spans_of_texts = self._tagger.spans(texts, batch_size, on_batch, True, self._constraints(inputs, spans), tokens)
        return list(map(entities_of, inputs, spans_of_texts))

    def _constraints(self, inputs, spans):
        types, spans = self._tagger.scheme.types, one_per_text(spans, inputs)
        return [
            SpanConstraints(item.in_characters(check_spans(text_spans, item, types)), [])
            for item, text_spans in zip(inputs, spans, strict=True)
        ]

    def top_k(
        self, text: Any, k: int = 5, spans: Iterable[tuple[int, int, str]] = ()
    ) -> list[tuple[float, list[Entity]]]:
        """The k most probable analyses of a text.

        Args:
            text: As for `recognize`.
            k: How many. Defaults to 5.
            spans: As for `recognize`. Defaults to none.

        Returns:
            A list of at most k `(probability, entities)`, best first.
        """
        return self.top_k_batch([text], k, spans=[spans])[0]

    def top_k_batch(
        self,
        texts: Iterable[Any],
        k: int = 5,
        batch_size: int = 64,
        on_batch: Callable[[int], object] = ignore,
        spans: Iterable[Iterable[tuple[int, int, str]]] | None = None,
    ) -> list[list[tuple[float, list[Entity]]]]:
        """A list with what `top_k` returns for each text; other arguments as for `recognize_batch`."""
        inputs = list(map(as_text_input, as_list(texts, "top_k")))
        texts, tokens = [item.text for item in inputs], [item.tokens for item in inputs]
        analyses = self._tagger.top_k(texts, k, batch_size, on_batch, self._constraints(inputs, spans), tokens)
        return [
            [(p, entities_of(item, spans)) for p, spans in best] for item, best in zip(inputs, analyses, strict=True)
        ]


def entities_of(source, spans):
    """The `Entity` of each span in characters of a `TextInput`; none for white space, as between two tokens."""
    spans = [span for span in spans if not source.text[slice(*span[:2])].isspace()]
    return [
        Entity(start, end, label, source.text[slice(*span[:2])], *confidences)
        for span, (start, end, label, *confidences) in zip(spans, source.as_counted(spans), strict=True)
    ]
