"""`EntityRecognizer`: recognizes entities in texts, with probabilities and the k best analyses."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from kcrf.taggers.constraints import SpanConstraints, check_spans
from kcrf.taggers.coverage import threshold_of_run
from kcrf.taggers.estimates import HeldOut
from kcrf.taggers.open_model import RunPath
from kcrf.taggers.spans import Part, Span, part_of
from kcrf.taggers.tagger import SpanTagger


class EntityRecognizer(SpanTagger):
    """Recognizes named entities in texts of any length.

    Args:
        run_dir: A folder that `kcrf train --task ner` wrote, or a file that `kcrf export` wrote.
        min_probability: Return every entity with at least this posterior probability, and among overlapping entities
            the most probable one. Above 0 and below 1; lower values favor recall. Defaults to None: the setting of
            the run, or if it has none, the entities on the best path.
        coverage: Return candidates for people to check: so many, overlapping ones too, that at most a fraction of
            `1 - coverage` of the real entities is expected to be missing, in texts like the held-out sentences of the
            run. Defaults to None: no candidates.

    >>> recognizer = EntityRecognizer("runs/people")            # doctest: +SKIP
    >>> recognizer.recognize("李雷住在上海。")                   # doctest: +SKIP
    [Span(start=0, end=2, text='李雷', label='PER', probability=0.98), ...]

    A word-level model splits a text into tokens. If you already have the tokens, pass them as a list of strings, or as
    a `kcrf.corpora.Sentence` with its tokens. Entities then begin and end at token boundaries.

    >>> recognizer = EntityRecognizer("runs/english")           # doctest: +SKIP
    >>> recognizer.recognize(["Kim", "lives", "in", "Leeds"])   # doctest: +SKIP
    [Span(start=0, end=1, text='Kim', label='PER', probability=0.97), ...]
    """

    tasks = ("ner",)
    _verb = "recognize"

    def __init__(self, run_dir: RunPath, min_probability: float | None = None, coverage: float | None = None) -> None:
        if isinstance(min_probability, str) or min_probability is not None and not 0 < min_probability < 1:
            raise ValueError(f"`min_probability` must be above 0 and below 1. Received: {min_probability!r}")
        self._load(run_dir)
        if min_probability is not None:
            self.decoder.min_probability = min_probability
        if coverage is not None:
            self.decoder.overlaps = True
            self.decoder.min_probability = threshold_of_run(self.decoder, self.run, coverage)

    def recognize(self, text: Any, spans: Iterable[Any] = ()) -> list[Span]:
        """Recognizes the entities of a text.

        Args:
            text: A string of any length, a list of tokens, or a `kcrf.corpora.Sentence`, whose tokens are used.
            spans: Entities that you already know, as `(start, end, label)` or `Span`, in characters of the text, or in
                tokens of the list. The other entities and all probabilities are predicted given these entities.
                Defaults to no entities.

        Returns:
            A list of `Span`s from left to right.
        """
        return self.predict([text], spans=[spans])[0]

    recognize_batch = SpanTagger.predict  # by the name of the task

    def _held_out(self, unseen_in: Any) -> HeldOut:
        held_out = super()._held_out(unseen_in)
        if not self.decoder.overlaps and self.decoder.min_probability == self.config.model.min_probability:
            return held_out
        return held_out._replace(mean=None, reason="held-out texts have predictions of another minimum probability")

    def _parts_of_text(self, text: Any, spans: Iterable[Any]) -> list[Part]:
        part = part_of(text)
        checked = check_spans(spans, part, self.labels)
        found = part.in_characters(checked)
        for given, (start, end, _) in zip(checked, found, strict=True):
            if part.text[start:end].isspace():
                raise ValueError(f"`spans` must not be white space alone. Received: {given!r} in {part.text!r}")
        return [replace(part, constraints=SpanConstraints(list(found), [])) if found else part]
