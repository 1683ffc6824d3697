"""Trains a model further, and adds entity types to it: its training data, initial weights, and soft labels.

The training data mark the new types alone. Elsewhere, the tags are O or of an old type, and the old model predicts
their probabilities, given that it has O where entities of new types are marked. The soft labels are the distribution of
the old model over tag sequences, with the marked entities written into each sequence.
"""

from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from functools import partial
from typing import Any

from kcrf.backend import keras, ops
from kcrf.corpora import Sentence, entity_types
from kcrf.files import sha256_of
from kcrf.layers.learning_rates import LayerWithMultiplier
from kcrf.linear import LinearModel
from kcrf.progress_bars import print_note
from kcrf.readers import Reader, WordReader
from kcrf.readers.vocabulary import UNKNOWN
from kcrf.runs import RunConfig, RunFolder, RunWriter, Settings
from kcrf.runs.extension import extended_settings
from kcrf.runs.names import LINEAR, WEIGHTS
from kcrf.runs.setup import load_setup
from kcrf.taggers.decoder import parts_of_sentences
from kcrf.taggers.load import load_tagger
from kcrf.taggers.open_model import open_model
from kcrf.tasks.entities import note_cut_entities
from kcrf.training.data import RunData
from kcrf.training.stage import Stage
from kcrf.training.stages.old_labels import constraints_of_old, spans_in_units, with_new_types
from kcrf.training.stages.teacher import tag_targets


class Extension(Stage):
    """Adds types to the model of another run, which predicts its own types where the data do not mark them."""

    def __init__(self, settings: Any, config: RunConfig) -> None:
        super().__init__(settings, config)
        self._path = settings.extend
        self._old: RunConfig = RunFolder(self._path).read_config().config

    @classmethod
    def begun(cls, user: Settings) -> Settings:
        return extended_settings(user.said())

    @classmethod
    def completed(cls, user: Settings, data: RunData) -> Settings:
        """The settings with the types of the old run, followed by the new types of the training data. Prints notes on
        standard error about old types that are marked, and about characters with unknown tags."""
        old, train = RunFolder(user.extend).read_config().config.data.types, data.whole["train"]  # type: ignore[arg-type]
        in_data = entity_types(train)
        types = grown_types(user.extend, old, in_data, user.types)
        marked = marked_types(user.marked, old, types, in_data)
        old_and_marked = [label for label in old if label in in_data]
        if types == old:
            print_note(f"train: no new type, so {user.extend} is trained further on these sentences")
        elif old_and_marked and user.marked is None:
            print_note(
                f"train: {', '.join(old_and_marked)} of {user.extend} are marked, too, and taken as marked wherever "
                f"they occur; if only the new types are, give their names: marked {','.join(types[len(old) :])}"
            )
        unknown = sum(end - start for sentence in train for start, end in sentence.unknown)
        if unknown:
            possible = ", ".join(label for label in types if label not in marked)
            print_note(f"train: {unknown:,} characters have unknown tags, taken as O or one of: {possible or 'none'}")
        return replace(user, types=types)

    def _marked(self, data: RunData) -> tuple[str, ...]:
        """The types that the sentences of the training set mark wherever they occur."""
        in_data = entity_types(data.whole["train"])
        return marked_types(self.settings.marked, self._old.data.types, self.config.data.types, in_data)

    def prepare(self, data: RunData, folder: RunWriter | None) -> RunData:
        """The data with old types in the validation set: predicted by the old model if none of them is marked. The test
        set does not change. Notes on standard error say what has been predicted, and what the scores count."""
        weights = LINEAR if self._old.model.encoder == "linear" else WEIGHTS
        data = replace(data, models={"extend": sha256_of(RunFolder(self._path).existing(weights))})
        marked = self._marked(data)
        unmarked = [label for label in self._old.data.types if label not in marked]
        for name in [name for name in ("valid", "test") if name in data.parts]:
            if not unmarked or {*entity_types(data.parts[name])} & {*unmarked}:
                continue
            names = ", ".join(unmarked)
            if name == "test":
                print_note(f"test: {names} are not marked, so predictions of these types count as wrong")
                continue
            print_note(f"valid: {names} are not marked, so the predictions of {self._path} stand for them")
            sentences = with_predictions(load_tagger(self._path), data.parts[name], unmarked)
            data = replace(data, parts={**data.parts, name: sentences})
        return data

    def reader(self, make: Callable[[], Reader], data: RunData) -> Reader:
        """The reader of the old run, with the vocabulary of the training set unless a BERT has its own. Notes entities
        that begin or end inside its words."""
        setup = load_setup(RunFolder(self._path))
        reader, model, train = setup.reader, setup.config.model, data.parts["train"]
        if isinstance(reader, WordReader):
            note_cut_entities(data.whole, reader.splits, "taken as O or an old type", "a new model of characters")
        if model.bert is not None or model.encoder == "linear":
            return reader
        return reader.grown(train) if isinstance(reader, WordReader) else reader.grown(train, model.min_bigrams)  # type: ignore[attr-defined]

    def for_training(self, reader: Reader) -> "FixedReader":
        """The reader with its whole lexicon, which was counted in other sentences."""
        return FixedReader(reader)

    def initial_weights(self, model: Any) -> None:
        """Copies the weights of the old model. The weights of the new tags keep their initial values."""
        load_weights(model, self._path)

    def initial_linear_model(self, model: LinearModel) -> None:
        """Copies the scores of the old model, if it is linear."""
        if self._old.model.encoder == "linear":
            arrays = RunFolder(self._path).read_arrays(LINEAR)
            old = LinearModel.from_arrays(arrays, self._old.data.tag_scheme())
            size = len(old.scheme)
            model.scores[:, :size], model.transitions[:size, :size] = old.scores, old.transitions

    def targets(self, windows: list[Any], reader: Reader, data: RunData, folder: RunWriter) -> list[Any]:
        """The windows with the predictions of the old model given the marked entities, and with the new types."""
        return tag_targets(self._path, windows, reader, data, folder, partial(self._counts, self._marked(data)))

    def _counts(
        self, marked: Collection[str], tagger: Any, sentences: list[Sentence], readings: list[Any], on_batch: Any
    ) -> list[Any]:
        print_note(f"{len(sentences):,} texts: the types that are not marked are predicted by {self._path}")
        new, old = self.config.data.tag_scheme(), tagger.scheme
        spans = [spans_in_units(new, r.units, s.spans) for r, s in zip(readings, sentences, strict=True)]
        span_constraints = [constraints_of_old(spans_of_one, old, marked) for spans_of_one in spans]
        constraints = old if self.config.model.constraints else None
        parts = parts_of_sentences(sentences)
        counts = tagger.decoder.expected_counts(parts, constraints, on_batch=on_batch, limits=span_constraints)
        grown = []
        for reading, spans_of_one, counts_of_windows in zip(readings, spans, counts, strict=True):
            windows = zip(reading.windows, counts_of_windows, strict=True)
            grown.append([with_new_types(own, spans_of_one, window.first, old, new) for window, own in windows])
        return grown


def grown_types(path: Any, old: Iterable[str], in_data: Iterable[str], user: Iterable[str] = ()) -> tuple[str, ...]:
    """The types of an extended model: the types of the old run, then the new ones, if there are any.

    >>> grown_types("runs/people", ("PER", "LOC"), ("ORG", "PER"))
    ('PER', 'LOC', 'ORG')
    """
    old, user = tuple(old), tuple(user)
    if user and user[: len(old)] != old:
        raise ValueError(f"`types` must begin with those of {path}, {', '.join(old)}. Received: {', '.join(user)}")
    return (*old, *(label for label in user or sorted(in_data) if label not in old))


def marked_types(
    marked: str | None, old: Iterable[str], types: Iterable[str], in_data: Iterable[str]
) -> tuple[str, ...]:
    """The types that new training data mark wherever they occur.

    >>> marked_types(None, ("PER", "LOC"), ("PER", "LOC", "ORG"), {"ORG", "PER"})
    ('PER', 'ORG')
    """
    types, new = tuple(types), [label for label in types if label not in tuple(old)]
    names = set(in_data) | set(new) if marked is None else {name.strip() for name in marked.split(",")}
    if not set(new) <= names <= set(types):
        raise ValueError(
            f"`marked` must be names of {', '.join(types)}, with the new types, {', '.join(new)}. Received: {marked}"
        )
    return tuple(label for label in types if label in names)


def with_predictions(tagger: Any, sentences: list[Sentence], types: Collection[str]) -> list[Sentence]:
    """The sentences with the predicted entities of these types that overlap no marked entity and no unknown text."""
    completed_sentences = []
    for sentence, predicted in zip(sentences, tagger.decoder.spans_of(sentences), strict=True):
        occupied = [*sentence.spans, *sentence.unknown]
        additions = [
            span
            for span in predicted
            if span[2] in types and all(span[1] <= start or end <= span[0] for start, end, *_ in occupied)
        ]
        completed_sentences.append(replace(sentence, spans=sorted([*sentence.spans, *additions])))
    return completed_sentences


class FixedReader:
    """The reader of an old run, for training: its lexicon was counted in other sentences, so all of it can be used."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    def read_training(self, sentences: Any, copies: Any = None) -> list[Any]:
        """The `Reading` of each sentence, followed by the readings of its augmented copies."""
        return Reader.read_training(self._reader, sentences, copies)


def load_weights(model: Any, run: Any) -> None:
    """Copies the weights of a run into a model of the same layers with more tags and entries of vocabularies, all last.
    At first, what is new in a vocabulary has the vector of what is unknown, so the old tags have the same scores."""
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
