"""`TokenTagger`: predicts a class for each token of a sentence, such as its part of speech."""

from collections.abc import Iterable
from typing import Any

from kcrf.corpora import Sentence
from kcrf.taggers.decoder import OnBatch, ignore
from kcrf.taggers.spans import Part, Span, part_of
from kcrf.taggers.tagger import SpanTagger

_NO_LABEL = "?"  # of a token without a unit


class TokenTagger(SpanTagger):
    """Predicts a class for each token with the model of a run folder, in sentences of any length.

    A sentence is a list of strings, or a `kcrf.corpora.Sentence` with tokens. `predict` returns a `Span` for each
    token. The class is "?", with the probability 0, for a token that a BERT's tokenizer removes (a control character).

    Args:
        run_dir: A folder that `kcrf train --task pos` wrote, or a file that `kcrf export` wrote.

    >>> tagger = TokenTagger("runs/pos")                            # doctest: +SKIP
    >>> tagger.tag(["Kim", "slept"])                                # doctest: +SKIP
    ['PROPN', 'VERB']
    >>> tagger([["Kim", "slept"]])[0][0]                            # doctest: +SKIP
    Span(start=0, end=1, text='Kim', label='PROPN', probability=0.99)
    """

    tasks = ("pos",)
    _verb = "tag"

    def tag(self, tokens: Any) -> list[str]:
        """The class of each token of a sentence: a list of strings, or a `kcrf.corpora.Sentence` with tokens."""
        return self.tag_batch([tokens])[0]

    def tag_batch(self, sentences: Iterable[Any], batch_size: int = 64, on_batch: OnBatch = ignore) -> list[list[str]]:
        """A list with the result of `tag` for each sentence; the other arguments are as for `predict`."""
        return [[span.label for span in spans] for spans in self.predict(sentences, batch_size, on_batch)]

    def _completed(self, part: Part, spans: list[Span]) -> list[Span]:
        """The span of each token."""
        by_place = {(span.start, span.end): span for span in spans}
        return [by_place.get((a, b)) or Span(a, b, part.text[a:b], _NO_LABEL, 0.0) for a, b in part.tokens]

    def _parts_of_text(self, text: Any, spans: Iterable[Any]) -> list[Part]:
        if isinstance(text, str):
            raise TypeError(f"`tokens` must be a list of strings; split the text into tokens. Received: {text[:40]!r}")
        if spans is not None and list(spans):
            raise ValueError("`spans` needs a model of words or of entities. Received: one of the classes of tokens")
        part = part_of(text)
        if isinstance(text, Sentence) and text.text.strip() and not text.tokens:
            raise ValueError(f"a Sentence needs tokens to be tagged. Received: {text.text[:40]!r} without tokens")
        return [part]
