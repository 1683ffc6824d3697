"""Tags sentences of several segmentation standards, each by the segmenter of its standard. Needs no Keras."""

from collections.abc import Callable, Mapping, Sequence
from statistics import mean
from typing import Any

from kcrf.corpora import Sentence
from kcrf.corpora.sentences import for_each_group
from kcrf.taggers.spans import Span
from kcrf.taggers.word_segmenter import WordSegmenter


class StandardsTagger:
    """The segmenters of one model by standard, as in `tagger.taggers["pku"].segment(text)`.

    They share its encoder, and each has its own head. The mean of `metric` over the standards chooses the best epoch.
    """

    crf = advice = curve = None  # each of the segmenters has a CRF
    counts: Any = None

    def __init__(self, taggers: Mapping[Any, WordSegmenter], model: Any) -> None:
        self.taggers: dict[Any, WordSegmenter] = dict(taggers)
        self.model = model
        first = next(iter(self.taggers.values()))
        self.metric, self.scheme = first.metric, first.scheme

    def __repr__(self) -> str:
        return f"<StandardsTagger: {', '.join(f'{name} {tagger!r}' for name, tagger in self.taggers.items())}>"

    @property
    def crfs(self) -> dict[str, Any]:
        """The `ConditionalRandomField` of each standard that has one."""
        return {standard: tagger.crf for standard, tagger in self.taggers.items() if tagger.crf is not None}

    def scores(self, items: Sequence[Sentence], training_words: Any = None) -> dict[str, Any]:
        """As `Tagger.scores`; `training_words` is a dict by standard. The result is as for `score`."""
        return self.score(items, self.predictions(items, with_probabilities=False), training_words)

    def predictions(self, items: Sequence[Sentence], with_probabilities: bool = True) -> list[list[Span]]:
        """As `Tagger.predictions`, each by the segmenter of its standard."""
        return self._for_each(items, lambda tagger, part: tagger.predictions(part, with_probabilities))

    def predictions_and_facts(self, items: Sequence[Sentence]) -> list[tuple[list[Span], dict[str, Any]]]:
        """As `SpanTagger.predictions_and_facts`."""
        return self._for_each(items, WordSegmenter.predictions_and_facts)

    def _for_each(self, items: Sequence[Sentence], compute: Callable[..., Any]) -> list[Any]:
        """The values of a function of the segmenter of each standard and its sentences."""
        return for_each_group([self.taggers[item.standard] for item in items], compute, items)

    def score(
        self, items: Sequence[Sentence], predictions: Sequence[list[Span]], training_words: Any = None
    ) -> dict[str, Any]:
        """The scores of predicted spans."""
        words, scores = training_words or {}, {}
        for standard, tagger in self.taggers.items():
            rows = [row for row in zip(items, predictions, strict=True) if row[0].standard == standard]
            if rows:
                sentences, found = zip(*rows, strict=True)
                scores[standard] = tagger.score(sentences, found, words.get(standard))
        return scores_of_standards(scores)


def scores_of_standards(scores: Mapping[Any, Mapping[str, Any]]) -> dict[str, Any]:
    """The means over the standards, the sums of counts, and the scores themselves under "standards"."""
    columns = {key: [row[key] for row in scores.values()] for key in next(iter(scores.values()))}
    return {**{key: _mean(values) for key, values in columns.items()}, "standards": scores}


def _mean(values: list[Any]) -> Any:
    if None in values:
        return None
    return sum(values) if all(isinstance(value, int) for value in values) else mean(values)
