"""Training data in which only some of the entities are marked: which labels the other text probably has.

If training sums over all labels of the other text, nothing says what is no entity, and the model finds entities
everywhere. If all of it counts as no entity, the model learns to miss entities. So the labels are estimated by models
of other sentences (Jie et al., 2019, "Better Modeling of Incomplete Annotations for Named Entity Recognition"): a
linear model of each half of the sentences labels the other half, given the entities that are marked. Models of the
estimates then estimate again.

The first models learn that most entities are none. Therefore one number is added to the scores of all tags that begin
an entity, so that as many entities are expected as the validation set has, for its length (the expected entity ratio
of Effland and Collins, 2021, "Partially Supervised Named Entity Recognition via the Expected Entity Ratio Loss").
"""

import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import redirect_stderr
from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np

from kcrf.augmentation.copies import copies_wanted
from kcrf.chains import FORBIDDEN, Packing, expected_counts
from kcrf.corpora import Sentence, entity_types
from kcrf.corpora.entities import sentence_line
from kcrf.corpora.sentences import outside_spans
from kcrf.files import parse_json
from kcrf.progress_bars import print_note
from kcrf.readers.word_tokens import choose_units
from kcrf.runs import RunWriter, Settings
from kcrf.runs.names import ESTIMATES
from kcrf.runs.stages import AugmentationConfig
from kcrf.taggers.constraints import SpanConstraints, allowed_tags
from kcrf.taggers.estimates import begins_of
from kcrf.tags import TagScheme
from kcrf.training.data import RunData, read_data
from kcrf.training.linear import linear_tagger, train_linear_models
from kcrf.training.plan import plan_run
from kcrf.training.stage import Stage
from kcrf.training.stages.old_labels import spans_in_units
from kcrf.training.trainers import trainer_of

ROUNDS, EPOCHS = 2, 8
_FEW = 0.05  # a fraction of the marked entities
SURE = 0.8  # the probability from which a label counts as known
_LOWEST, _HIGHEST, _HALVINGS = -8.0, 12.0, 14  # of the search for the number that is added
_WINDOWS = 64  # of a recursion


class Incomplete(Stage):
    """Estimates the labels that the training data do not mark."""

    def prepare(self, data: RunData, folder: RunWriter | None) -> RunData:
        """The data with estimated labels, which are read from the run folder, or written into it."""
        config, marked = self.config, data.parts["train"]
        if folder is None:
            return data
        if not folder.file(ESTIMATES).is_file():
            for stage in config.stages:
                if isinstance(stage, AugmentationConfig):  # refused before the estimation
                    copies_wanted(config.data.task, stage, config.training.seed)
            settings = Settings(data=replace(config.data, limit=None), seed=config.training.seed)
            sentences = estimated_sentences(settings, marked, data.parts["valid"])
            folder.save_text(ESTIMATES, "".join(f"{sentence_line(sentence)}\n" for sentence in sentences))
        stored = folder.file(ESTIMATES)
        lines = stored.read_bytes().decode("utf-8", "surrogatepass").split("\n")
        items = [parse_json(f"{stored}:{number}", line) for number, line in enumerate(lines, 1) if line]
        train = [_with_labels(*pair) for pair in zip(marked, items, strict=True)]
        return replace(data, parts={**data.parts, "train": train})


def _with_labels(sentence: Sentence, item: dict[str, Any]) -> Sentence:
    spans = [(entity["start"], entity["end"], entity["label"]) for entity in item["entities"]]
    return replace(sentence, spans=spans, unknown=[(start, end) for start, end in item.get("unknown", ())])


def estimated_sentences(user: Settings, train: Sequence[Sentence], valid: Sequence[Sentence]) -> list[Sentence]:
    """The sentences of a training set with the labels that are sure, and without those that are not."""
    if len(train) < 2:
        raise ValueError("`incomplete` needs at least two training sentences. Received: 1")
    train, marked = opened(train), sum(len(sentence.spans) for sentence in train)
    count = entities_to_expect(train, valid)
    print_note(f"train: {marked:,} entities are marked, and {count:,.0f} more are expected, as in the validation set")
    if count < _FEW * marked:
        print_note("valid: has hardly more entities for its length than the training set; are all of them marked?")
    order = np.random.default_rng(user.seed).permutation(len(train))
    halves, settings = (order[0::2], order[1::2]), _settings_of_models(user, train)
    sentences = train
    if any(map(_known_outside, train)):
        print_note("train: some text is known to be outside of entities; compare with a run without `incomplete`")
    else:  # a first model needs text outside of entities
        sentences = [replace(sentence, unknown=[]) for sentence in train]
    for number in range(ROUNDS):
        print_note(f"train: estimating the labels that are not marked, round {number + 1} of {ROUNDS}")
        sentences = _estimated(settings, train, sentences, valid, halves, marked + count)
    entities, unknown = (sum(len(getattr(s, name)) for s in sentences) for name in ("spans", "unknown"))
    print_note(f"train: {entities - marked:,} entities are estimated; {unknown:,} stretches of text remain unknown")
    return sentences


def _estimated(
    settings: Settings,
    train: Sequence[Sentence],
    sentences: Sequence[Sentence],
    valid: Sequence[Sentence],
    halves: Any,
    count: float,
) -> list[Sentence]:
    """The labels of each half of the sentences, by a model of the present labels of the other half."""
    taggers = [_tagger(settings, [sentences[i] for i in half], valid) for half in halves[::-1]]
    pairs = list(zip(taggers, halves, strict=True))
    estimators = [Estimator(tagger, [train[i] for i in half]) for tagger, half in pairs]
    bias = bias_for(lambda bias: sum(each.entities(bias) for each in estimators), count)
    estimated = dict(zip(np.concatenate(halves).tolist(), chain(*(each.sentences(bias) for each in estimators))))
    return [estimated[number] for number in range(len(train))]


def opened(sentences: Sequence[Sentence]) -> list[Sentence]:
    """The sentences with what is not known as `unknown`: as they say, or if none says it, all outside of entities."""
    if any(sentence.unknown for sentence in sentences):
        return list(sentences)
    return [replace(s, unknown=outside_spans(s.spans, [(0, len(s.text))])) for s in sentences]


def _known_outside(sentence: Sentence) -> list[Any]:
    """The `(start, end)` of text that is known to be outside of entities."""
    return outside_spans(sorted([*sentence.spans, *sentence.unknown]), [(0, len(sentence.text))])


def entities_to_expect(train: Sequence[Sentence], valid: Sequence[Sentence]) -> float:
    """How many entities of a training set are not marked, if it has as many as a validation set, for its length.

    >>> some = [Sentence("李雷在上海", [(0, 2, "PER")]), Sentence("没有人", [])]
    >>> entities_to_expect(some, [Sentence("王五在南京", [(0, 2, "PER"), (3, 5, "LOC")])])
    2.2
    """
    entities, characters = sum(len(s.spans) for s in valid), sum(len(s.text) for s in valid)
    characters -= sum(end - start for sentence in valid for start, end in sentence.unknown)
    if not entities:
        raise ValueError("`incomplete` needs a validation set in which all entities are marked. Received: no entity")
    total, marked = sum(len(s.text) for s in train), sum(len(s.spans) for s in train)
    return max(0.0, entities / characters * total - marked)


def _settings_of_models(user: Settings, train: Sequence[Sentence]) -> Settings:
    units = user.units or choose_units(train)
    types = user.types or entity_types(train)
    return Settings(
        task="ner",
        encoder="linear",
        solver="adagrad",
        epochs=EPOCHS,
        seed=user.seed,
        scheme=user.scheme,
        units=units,
        types=types,
    )


def _tagger(settings: Settings, train: Sequence[Sentence], valid: Sequence[Sentence]) -> Any:
    """A linear tagger. Its notes are omitted: those on the whole training set say the same."""
    with redirect_stderr(io.StringIO()):
        plan = plan_run(settings, read_data(settings, train, valid))
    tagger = linear_tagger(plan, train_linear_models(plan, plan.windows))
    trainer_of(plan.config.task).calibrate(tagger, plan.data.parts["valid"])
    return tagger


def bias_for(entities: Callable[[float], float], count: float) -> float:
    """The number that makes an increasing function have a value, by bisection between -8 and 12.

    >>> round(bias_for(lambda bias: 10 + 2 * bias, 13), 3)
    1.5
    """
    low, high = _LOWEST, _HIGHEST
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if entities(middle) > count else (middle, high)
    return (low + high) / 2


class Estimator:
    """The probabilities of the labels of sentences by a linear tagger, given the labels that are known."""

    def __init__(self, tagger: Any, sentences: Sequence[Sentence]) -> None:
        self._scheme, self._given = tagger.scheme, list(sentences)
        model, self._temperature = tagger.network.model, tagger.network.temperature
        self._transitions = model.constrained_transitions() / self._temperature
        self._begins = begins_of(self._scheme).sum(axis=0)  # (tags,)
        texts, tokens = [s.text for s in sentences], [s.tokens for s in sentences]
        self._readings = tagger.reader.read(texts, tokens)
        self._spans = [
            spans_in_units(self._scheme, reading.units, sentence.spans)
            for sentence, reading in zip(sentences, self._readings, strict=True)
        ]
        windows = [(i, window) for i, reading in enumerate(self._readings) for window in reading.windows]
        windows = sorted((w for w in windows if len(w[1].positions)), key=lambda item: len(item[1].positions))
        self._batches = [self._batch(model, windows[i : i + _WINDOWS]) for i in range(0, len(windows), _WINDOWS)]

    def _batch(self, model: Any, windows: Any) -> Any:
        """Windows, their packing, and their emission scores `(positions, tags)` with only what is possible."""
        packing = Packing.of_lengths([len(window.positions) for _, window in windows])
        features = np.concatenate([window.inputs["ngrams"][window.positions] for _, window in windows])
        allowed = np.concatenate([self._allowed(*item) for item in windows])  # (positions, tags)
        emissions = np.where(allowed, model.emissions(features) / self._temperature, FORBIDDEN).astype("float64")
        model.forbid(emissions, packing)
        return windows, packing, emissions

    def _allowed(self, number: int, window: Any) -> np.ndarray:
        """The tags that the units of a window may have, `(units, tags)`."""
        units, sentence = self._readings[number].units, self._given[number]
        outside = [
            (int(np.searchsorted(units[:, 0], start)), int(np.searchsorted(units[:, 1], end, side="right")))
            for start, end in _known_outside(sentence)
        ]
        outside = [(first, stop) for first, stop in outside if first < stop]
        known = SpanConstraints(self._spans[number], [], outside)
        return allowed_tags(self._scheme, known, window.first, len(window.positions))

    def entities(self, bias: float) -> float:
        """The expected number of entities, the marked ones included, with a number added to their begin."""
        return sum(float((counts.marginals * self._begins).sum()) for *_, counts in self._counts(bias))

    def _counts(self, bias: float) -> Iterator[Any]:
        for windows, packing, emissions in self._batches:
            yield windows, packing, expected_counts(emissions + bias * self._begins, self._transitions, packing)

    def marginals(self, bias: float) -> list[np.ndarray]:
        """The probability of each tag of each unit, `(units, tags)` for each sentence."""
        rows = [np.zeros((len(reading.units), len(self._scheme))) for reading in self._readings]
        for windows, packing, counts in self._counts(bias):
            for (number, window), own in zip(windows, np.split(counts.marginals, packing.first[1:]), strict=True):
                start, stop = window.keep
                rows[number][start:stop] = own[start - window.first : stop - window.first]
        return rows

    def sentences(self, bias: float) -> list[Sentence]:
        """The sentences with the entities that are marked or sure; what is not sure is unknown."""
        columns = zip(self._given, self._readings, self._spans, self.marginals(bias), strict=True)
        return [labeled(self._scheme, *of_sentence) for of_sentence in columns]


def labeled(scheme: TagScheme, sentence: Sentence, reading: Any, marked: Any, marginals: np.ndarray) -> Sentence:
    """A sentence with its marked entities and the sure ones. What is neither known nor sure is unknown."""
    is_unknown = marginals.max(axis=1, initial=0) < SURE  # (units,)
    tags = np.where(is_unknown, 0, marginals.argmax(axis=1))
    spans = []
    for start, end, label in scheme.decode(tags):
        if any(start < stop and first < end for first, stop, _ in marked):
            continue
        whole = tags[start:end].tolist() == scheme.encode([(0, end - start, label)], end - start)
        if not whole or is_unknown[end : end + 1].any():  # it may be longer
            is_unknown[start:end] = True
        else:
            spans.append((int(reading.units[start, 0]), int(reading.units[end - 1, 1]), label))
    spans = sorted([*sentence.spans, *spans])
    unknown: Any = [tuple(map(int, reading.units[unit])) for unit in np.flatnonzero(is_unknown)]
    return replace(sentence, spans=spans, unknown=_joined(outside_spans(spans, unknown)))


def _joined(parts: Iterable[Any]) -> list[Any]:
    """Sorted parts, neighbors in one.

    >>> _joined([(0, 1), (1, 2), (4, 5)])
    [(0, 2), (4, 5)]
    """
    joined: list[tuple[int, int]] = []
    for start, end in parts:
        if joined and joined[-1][1] == start:
            start = joined.pop()[0]
        joined.append((start, end))
    return joined
