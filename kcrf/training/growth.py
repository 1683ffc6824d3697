"""Adds entity types to a trained model: its training data, its initial weights, and its soft labels.

The training data mark the new types alone. Elsewhere, the tags are O or of an old type, and the old model predicts
their probabilities, given that it has O where entities of new types are marked. The soft labels are the distribution of
the old model over tag sequences, with the marked entities written into each sequence.
"""

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from kcrf.backend import keras, ops
from kcrf.corpora import Sentence, entity_types
from kcrf.layers.learning_rates import LayerWithMultiplier
from kcrf.linear import LinearModel
from kcrf.progress_bars import print_note
from kcrf.readers import Reader, tags_of_units
from kcrf.readers.units import with_copies
from kcrf.readers.vocabulary import UNKNOWN
from kcrf.runs import RunConfig, RunFolder, Settings
from kcrf.runs.extension import grown_types, marked_types
from kcrf.runs.names import LINEAR
from kcrf.taggers.open_model import load_trained_tagger, open_model
from kcrf.taggers.span_constraints import SpanConstraints
from kcrf.tags import TagScheme
from kcrf.training.data import RunData


def with_all_types(user: Settings, data: RunData) -> Settings:
    """The settings with the types of the old run, followed by the new types of the training data.

    Prints notes on standard error about old types that are marked, and about characters with unknown tags.

    Raises:
        ValueError: The data have no new type, or `marked` names other types than those of the model.
    """
    old, train = _old_config(user).data.types, data.whole["train"]
    in_data = entity_types(train)
    types = grown_types(user.extend, old, in_data, user.types)
    marked = marked_types(user.marked, old, types, in_data)
    old_and_marked = [label for label in old if label in in_data]
    if old_and_marked and user.marked is None:
        print_note(
            f"train: {', '.join(old_and_marked)} of {user.extend} are marked, too, and taken as marked wherever they "
            f"occur; if only the new types are, give their names: marked {','.join(types[len(old) :])}"
        )
    unknown = sum(end - start for sentence in train for start, end in sentence.unknown)
    if unknown:
        possible = ", ".join(label for label in types if label not in marked)
        print_note(f"train: {unknown:,} characters have unknown tags, taken as O or one of: {possible or 'no type'}")
    return replace(user, types=types)


def marked_by(config: RunConfig, sentences: Sequence[Sentence]) -> tuple[str, ...]:
    """The types that the sentences of the training set mark wherever they occur."""
    old = _old_config(config.teacher).data.types
    return marked_types(config.teacher.marked, old, config.data.types, entity_types(sentences))


def _old_config(settings: Any) -> RunConfig:
    """The configuration of the run that `settings.extend` names."""
    return RunFolder(settings.extend).read_config().config


def completed(config: RunConfig, data: RunData) -> RunData:
    """The data of a run, with old types in the validation set: predicted by the old model if none of them is marked.

    The test set does not change. Notes on standard error say what has been predicted, and what the scores count.
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
        sentences = with_predictions(load_trained_tagger(run), data.parts[name], unmarked)
        data = replace(data, parts={**data.parts, name: sentences})
    return data


def with_predictions(tagger: Any, sentences: list[Sentence], types: Collection[str]) -> list[Sentence]:
    """The sentences with the predicted entities of these types that overlap no marked entity and no unknown text."""
    completed_sentences = []
    for sentence, predicted in zip(sentences, tagger.spans_of(sentences), strict=True):
        occupied = [*sentence.spans, *sentence.unknown]
        additions = [
            span
            for span in predicted
            if span[2] in types and all(span[1] <= start or end <= span[0] for start, end, *_ in occupied)
        ]
        completed_sentences.append(replace(sentence, spans=sorted([*sentence.spans, *additions])))
    return completed_sentences


class FixedReader:
    """The reader of an old run, for training: its lexicon was counted in other sentences, so all of it can be used.

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
    """Copies the weights of a run into a model of the same layers with more tags and entries of vocabularies, all last.

    At first, what is new in a vocabulary has the vector of what is unknown, so the old tags have the same scores.

    Args:
        model: The Keras model. The weights of the new tags keep their initial values.
        run: The run folder.
    """
    old_model = open_model(run)[0].model  # type: ignore[union-attr]
    multipliers, old_multipliers = _multipliers(model), _multipliers(old_model)
    embeddings = {id(layer.embeddings) for layer in model.layers if isinstance(layer, keras.layers.Embedding)}
    for variable, old_variable in zip(model.weights, old_model.weights, strict=True):
        factor = old_multipliers.get(id(old_variable), 1.0) / multipliers.get(id(variable), 1.0)
        value = ops.convert_to_numpy(variable).copy()
        if id(variable) in embeddings:
            value[:] = ops.convert_to_numpy(old_variable)[UNKNOWN]
        value[tuple(map(slice, old_variable.shape))] = ops.convert_to_numpy(old_variable) * factor
        variable.assign(value)


def _multipliers(model: Any) -> dict[int, float]:
    """The multiplier of each variable that is stored divided by one, by the variable's id."""
    layers = [layer for layer in model.layers if isinstance(layer, LayerWithMultiplier)]
    return {id(variable): layer.multiplier for layer in layers for variable in layer.weights}


def starting_linear_model(config: RunConfig, buckets: int) -> LinearModel:
    """The initial linear model of a run: all scores are 0, except for those of the linear model that it extends."""
    model = LinearModel.new(config.data.tag_scheme(), buckets, config.model.constraints)
    if config.teacher.extend is None or _old_config(config.teacher).model.encoder != "linear":
        return model
    folder = RunFolder(config.teacher.extend)
    old = LinearModel.from_arrays(folder.read_arrays(LINEAR), _old_config(config.teacher).data.tag_scheme())
    size = len(old.scheme)
    model.scores[:, :size], model.transitions[:size, :size] = old.scores, old.transitions
    return model


def spans_in_units(scheme: TagScheme, units: np.ndarray, spans: Sequence[tuple[int, int, str]]) -> list[Any]:
    """Converts entities from characters to units. An entity that begins or ends inside a unit is cut to whole units.

    Args:
        scheme: The `TagScheme` of the extended model.
        units: `(units, 2)`, the start and the end of each unit, in characters.
        spans: `(start, end, label)`, in characters.

    Returns:
        A list of `(start, end, label)`, in units.
    """
    tags = tags_of_units(scheme, units, spans)
    return scheme.decode([max(tag, 0) for tag in tags])


def constraints_of_old(spans: Sequence[Any], old: TagScheme, marked: Collection[str]) -> SpanConstraints:
    """The constraints of a sentence on the predictions of the old model.

    Entities of old types that the sentence marks are given, and there is no entity where it marks a new type. An old
    type that the data mark wherever it occurs is forbidden elsewhere.

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
    """The expected counts of the old model in a window, with the entities of new types written into its tag sequences.

    All tag sequences of the old model have O at these entities. There, the tags are replaced in the expected tags, and
    the transitions from and to them in the expected transitions.

    Args:
        tags: `(units, old tags)`, the expected tags of the old model.
        steps: `(old tags, old tags)`, its expected transitions.
        spans: `(start, end, label)` of all entities of the sentence, in units.
        first: The index of the first unit of the window in the sentence.
        old: The `TagScheme` of the old model.
        new: The `TagScheme` of the extended model, whose first types are those of the old model.

    Returns:
        The expected tags `(units, new tags)` and the expected transitions `(new tags, new tags)`.
    """
    count, size = tags.shape
    padded = np.zeros((count, len(new)), tags.dtype)
    padded[:, :size] = tags
    written, is_new = padded.copy(), np.zeros(count, bool)
    for start, end, label in spans:
        start, end = max(start - first, 0), min(end - first, count)
        if label not in old.types and start < end:
            inside = new.encode([(0, end - start, label)], end - start)  # a piece of an entity counts as an entity
            written[start:end], is_new[start:end] = np.eye(len(new))[inside], True
    touched = np.flatnonzero(is_new[:-1] | is_new[1:])  # one tag is certain, so the expected transition is a product
    grown = np.zeros((len(new), len(new)), steps.dtype)
    grown[:size, :size] = steps
    grown += written[touched].T @ written[touched + 1] - padded[touched].T @ padded[touched + 1]
    return written, np.maximum(grown, 0)
