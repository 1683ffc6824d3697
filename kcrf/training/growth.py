"""A model that gets more entity types: its data, its first weights, and its soft labels.

Where a sentence has no entity of a new type, its tags are O or of an old type, and the old model says how probable
each is, given that it finds nothing where new types are marked. So the soft labels are the old model's distribution
over tag sequences with the marked entities written into each sequence.
"""

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from kcrf.backend import ops
from kcrf.corpora import Sentence, entity_types
from kcrf.layers.learning_rates import LayerWithMultiplier
from kcrf.linear import LinearModel
from kcrf.progress_bars import print_note
from kcrf.readers import Reader, tags_of_units
from kcrf.readers.units import with_copies
from kcrf.runs import RunConfig, RunFolder, Settings
from kcrf.runs.extension import grown_types, marked_types
from kcrf.runs.names import LINEAR
from kcrf.taggers.open_model import load_trained_tagger, open_model
from kcrf.taggers.span_constraints import SpanConstraints
from kcrf.tags import TagScheme
from kcrf.training.data import RunData

__all__ = [
    "FixedReader",
    "completed",
    "known_to_old",
    "load_weights",
    "marked_by",
    "spans_in_units",
    "starting_linear_model",
    "with_all_types",
    "with_new_types",
]


def with_all_types(user: Settings, data: RunData) -> Settings:
    """The settings with the types of the run that is extended and the new types of the training data.

    Notes on standard error say how the data are understood.

    Raises:
        ValueError: The data have no new type, or `marked` does not fit.
    """
    old, train = _old_config(user).data.types, data.whole["train"]
    found = entity_types(train)
    types = grown_types(user.extend, old, found, user.types)
    marked = marked_types(user.marked, old, types, found)
    also = [label for label in old if label in found]
    if also and user.marked is None:
        print_note(
            f"train: {', '.join(also)} of {user.extend} are marked, too, and taken as marked wherever they occur; "
            f"if only the new types are, give their names: marked {','.join(types[len(old) :])}"
        )
    unknown = sum(end - start for sentence in train for start, end in sentence.unknown)
    if unknown:
        rest = ", ".join(label for label in types if label not in marked)
        print_note(f"train: {unknown:,} characters have unknown tags, taken as O or one of: {rest or 'no type'}")
    return replace(user, types=types)


def marked_by(config: RunConfig, sentences: Sequence[Sentence]) -> tuple[str, ...]:
    """The types that sentences of the training set mark wherever they occur."""
    old = _old_config(config.teacher).data.types
    return marked_types(config.teacher.marked, old, config.data.types, entity_types(sentences))


def _old_config(settings: Any) -> RunConfig:
    return RunFolder(settings.extend).read_config().config


def completed(config: RunConfig, data: RunData) -> RunData:
    """The data of a run whose validation set has the old types, too: as the old model predicts them, if not marked.

    Test sets stay as they are.
    """
    run: Any = config.teacher.extend
    old = _old_config(config.teacher).data.types
    marked = marked_by(config, data.whole["train"])
    unmarked = [label for label in old if label not in marked]
    for name in [name for name in ("valid", "test") if name in data.parts]:
        if not unmarked or {*entity_types(data.parts[name])} & {*unmarked}:
            continue
        names = ", ".join(unmarked)
        if name == "test":
            print_note(f"test: {names} are not marked, so predictions of these types count as wrong")
            continue
        print_note(f"valid: {names} are not marked, so the predictions of {run} stand for them")
        sentences = _with_predictions(load_trained_tagger(run), data.parts[name], unmarked)
        data = replace(data, parts={**data.parts, name: sentences})
    return data


def _with_predictions(tagger: Any, sentences: list[Sentence], types: Collection[str]) -> list[Sentence]:
    """The sentences with the predicted entities of some types, where nothing is marked or unknown."""
    filled = []
    for sentence, predicted in zip(sentences, tagger.spans_of(sentences), strict=True):
        taken = [*sentence.spans, *sentence.unknown]
        free = [
            span
            for span in predicted
            if span[2] in types and all(span[1] <= start or end <= span[0] for start, end, *_ in taken)
        ]
        filled.append(replace(sentence, spans=sorted([*sentence.spans, *free])))
    return filled


class FixedReader:
    """A reader whose lexicon was counted in other sentences: training reads sentences as use does.

    Args:
        reader: The reader of the run that is extended.
    """

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    def read_training(self, sentences: Any, copies: Any = None) -> list[Any]:
        """The `Reading` of each sentence, followed by those of its augmented copies."""
        sentences = with_copies(sentences, copies)
        return self._reader.read([s.text for s in sentences], [s.tokens for s in sentences])


def load_weights(model: Any, run: Any) -> None:
    """Puts the weights of a run into a model of the same layers with more tags, the new tags last.

    Args:
        model: The Keras model. What the new tags add keeps its initial values.
        run: The run folder.
    """
    old = open_model(run)[0].model  # type: ignore[union-attr]
    ours, theirs = _multipliers(model), _multipliers(old)
    for variable, source in zip(model.weights, old.weights, strict=True):
        value = ops.convert_to_numpy(variable).copy()
        value[tuple(map(slice, source.shape))] = (
            ops.convert_to_numpy(source) * theirs.get(id(source), 1.0) / ours.get(id(variable), 1.0)
        )
        variable.assign(value)


def _multipliers(model: Any) -> dict[int, float]:
    """The multiplier by which each variable that has one is divided, by the variable's id."""
    layers = [layer for layer in model.layers if isinstance(layer, LayerWithMultiplier)]
    return {id(variable): layer.multiplier for layer in layers for variable in layer.weights}


def starting_linear_model(config: RunConfig, buckets: int) -> LinearModel:
    """The linear model that a run begins with: scores of 0, but those of the run that is extended."""
    model = LinearModel.new(config.data.tag_scheme(), buckets, config.model.constraints)
    if config.teacher.extend is None:
        return model
    folder = RunFolder(config.teacher.extend)
    old = LinearModel.from_arrays(folder.read_arrays(LINEAR), _old_config(config.teacher).data.tag_scheme())
    size = len(old.scheme)
    model.scores[:, :size], model.transitions[:size, :size] = old.scores, old.transitions
    return model


def spans_in_units(scheme: TagScheme, units: np.ndarray, spans: Sequence[tuple[int, int, str]]) -> list[Any]:
    """Entities in units of a model. An entity that begins or ends inside a unit is cut to its whole units.

    Args:
        scheme: The `TagScheme` of the extended model.
        units: `(units, 2)`, start and end of each, in characters.
        spans: `(start, end, label)`, in characters.
    """
    tags = tags_of_units(scheme, units, spans)
    return scheme.decode([max(tag, 0) for tag in tags])


def known_to_old(spans: Sequence[Any], old: TagScheme, marked: Collection[str]) -> SpanConstraints:
    """What a sentence says to the old model: marked entities of its types, and no entity where a new type is marked.

    Args:
        spans: `(start, end, label)`, in units.
        old: The `TagScheme` of the old model.
        marked: The types that the sentence marks wherever they occur.
    """
    of_old_types = [span for span in spans if span[2] in old.types]
    outside = [span[:2] for span in spans if span[2] not in old.types]
    return SpanConstraints(of_old_types, [], outside, tuple(label for label in old.types if label not in marked))


def with_new_types(
    tags: np.ndarray, steps: np.ndarray, spans: Sequence[Any], first: int, old: TagScheme, new: TagScheme
) -> tuple[np.ndarray, np.ndarray]:
    """The expected counts of the old model in a window, with the entities of new types written into its sequences.

    The old model has O there, in all of its sequences. Each of these tags is replaced in the count of tags, and each
    step from or to it in the count of steps.

    Args:
        tags: `(units, old tags)`, the expected tags of the old model.
        steps: `(old tags, old tags)`, its expected steps.
        spans: `(start, end, label)` of all entities of the sentence, in units.
        first: The number of the first unit of the window.
        old: The `TagScheme` of the old model.
        new: That of the extended model, whose first types are those of the old one.

    Returns:
        `(units, new tags)` and `(new tags, new tags)`.
    """
    count, size = tags.shape
    padded = np.zeros((count, len(new)), tags.dtype)
    padded[:, :size] = tags
    written, is_new = padded.copy(), np.zeros(count, bool)
    for start, end, label in spans:
        start, end = max(start - first, 0), min(end - first, count)
        if label not in old.types and start < end:
            inside = new.encode([(0, end - start, label)], end - start)  # of a piece as of a whole entity
            written[start:end], is_new[start:end] = np.eye(len(new))[inside], True
    touched = np.flatnonzero(is_new[:-1] | is_new[1:])  # a tag there is certain, so the step counts are products
    grown = np.zeros((len(new), len(new)), steps.dtype)
    grown[:size, :size] = steps
    grown += written[touched].T @ written[touched + 1] - padded[touched].T @ padded[touched + 1]
    return written, np.maximum(grown, 0)
