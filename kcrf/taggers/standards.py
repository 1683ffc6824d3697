"""Tags sentences of several segmentation standards, each by the tagger of its standard. Needs no Keras."""

from statistics import mean

from kcrf.corpora.sentences import for_each_standard


class StandardsTagger:
    """The taggers of one model by standard. They share its encoder, and each has its own head.

    Args:
        taggers: A dict from standards to `Tagger`s.
        model: The whole model, without an optimizer.

    Attributes:
        crf: None: each of the taggers has one.
        advice: None: there are several CRFs.
        metric: The score whose mean over the standards chooses the best epoch.
        scheme: The `TagScheme` of all standards.
    """

    crf = advice = None

    def __init__(self, taggers, model):
        self.taggers, self.model = taggers, model
        first = next(iter(taggers.values()))
        self.metric, self.scheme = first.metric, first.scheme

    @property
    def crfs(self):
        """The `ConditionalRandomField` of each standard that has one."""
        return {standard: tagger.crf for standard, tagger in self.taggers.items() if tagger.crf is not None}

    def with_advice(self, advice):
        """The same tagger: there is no advice on several CRFs."""
        return self

    def spans_of(self, sentences):
        """The spans of sentences, as `Tagger.spans_of`, each by the tagger of its standard."""

        def spans(standard, numbers):
            return self.taggers[standard].spans_of([sentences[number] for number in numbers])

        return for_each_standard(sentences, spans)

    def scores(self, sentences, training_words=None):
        """The scores of the predictions of this tagger, as `score`."""
        return self.score(sentences, self.spans_of(sentences), training_words)

    def score(self, sentences, predicted, training_words=None):
        """The scores of predicted spans.

        Args:
            sentences: List of `kcrf.corpora.Sentence` with their standards.
            predicted: For each a list of `(start, end)`.
            training_words: A dict from standards to the in-vocabulary words. Defaults to None.

        Returns:
            A dict of the means over the standards, the sums of counts, and under "standards" a dict of the scores of
            each, as `Tagger.score` returns them.
        """
        rows = {}
        for sentence, spans in zip(sentences, predicted, strict=True):
            rows.setdefault(sentence.standard, []).append((sentence, spans))
        words = training_words or {}
        scores = {
            standard: tagger.score(*zip(*rows[standard], strict=True), words.get(standard))
            for standard, tagger in self.taggers.items()
            if standard in rows
        }
        return scores_of_standards(scores)


def scores_of_standards(scores):
    """The means over the standards, the sums of counts, and the scores themselves under "standards".

    Args:
        scores: A dict from standards to dicts of scores. A mean is None where a score is None.
    """
    columns = {key: [row[key] for row in scores.values()] for key in next(iter(scores.values()))}
    return {**{key: _mean(values) for key, values in columns.items()}, "standards": scores}


def _mean(values):
    if None in values:
        return None
    return sum(values) if all(isinstance(value, int) for value in values) else mean(values)
