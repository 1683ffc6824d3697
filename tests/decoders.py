"""The results of decoders as tuples, in the form of the gold spans of sentences."""

from kcrf.taggers.spans import Part


def parts_of(texts, constraints=None):
    """The parts of texts, with the constraints of each."""
    return [Part(text, [], constraints=c) for text, c in zip(texts, constraints or [None] * len(texts), strict=True)]


def keys(tagger, texts, constraints=None):
    """For each text its spans, `(start, end)` or `(start, end, label)`."""
    decoder = getattr(tagger, "decoder", tagger)
    return [[span.key for span in row] for row in decoder.spans(parts_of(texts, constraints), with_probabilities=False)]


def tuples(tagger, texts, constraints=None, with_labels=True):
    """For each text its spans with their probabilities."""
    found = getattr(tagger, "decoder", tagger).spans(parts_of(texts, constraints), with_labels=with_labels)
    return [[(*span.key, span.probability) for span in row] for row in found]


def ways(tagger, texts, k, constraints=None, with_labels=True):
    """For each text the k best `(spans, probability)`."""
    found = getattr(tagger, "decoder", tagger).k_best(parts_of(texts, constraints), k, with_labels=with_labels)
    return [[([span.key for span in spans], p) for spans, p in best] for best in found]


def entropies(tagger, texts):
    """The entropy of the tag sequences of each text, in nats."""
    return getattr(tagger, "decoder", tagger).uncertainties(parts_of(texts))[0]
