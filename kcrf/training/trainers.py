"""Model, loss, tagger and scores of training for each kind of output: tags of a text, or its label."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from kcrf import distillation as losses
from kcrf.backend import COMPILES_SHAPES, keras
from kcrf.metrics.bootstrap import span_counts
from kcrf.monitor import CRFMonitor
from kcrf.networks.classification import build_classifier
from kcrf.networks.keras_networks import KerasClassificationNetwork, KerasTaggingNetwork
from kcrf.networks.tagging import build_network, crf_of, output_of_standard
from kcrf.readers.standards import reader_of_standard
from kcrf.runs import RunConfig, RunWriter, TrainingConfig
from kcrf.runs.formats import classifications_text, predictions_text
from kcrf.runs.names import PREDICTIONS
from kcrf.runs.resolve import BATCH_SIZES
from kcrf.taggers.load import TAGGERS
from kcrf.taggers.standards import StandardsTagger
from kcrf.taggers.text_classifier import TextClassifier
from kcrf.tasks import Task
from kcrf.training.batches import Batches, held_out_batch

_WINDOWS_FOR_TEMPERATURE = 512
Parts = Mapping[str, list[Any]]
Sources = Mapping[str, Any]
Scores = dict[str, Any]


class Trainer:
    """A kind of output: its batches, model, loss, tagger and scores."""

    batch_options: Mapping[str, bool] = {}  # of its `Batches`

    def batches(self, training: TrainingConfig, windows: Sequence[Any]) -> Batches:
        """The `Batches` of windows."""
        size = training.batch_size or BATCH_SIZES[0]
        return Batches(windows, size, training.seed, training.batch_tokens, **self.batch_options)


class TaggingTrainer(Trainer):
    """Tags for the tokens of a text. With several segmentation standards, the model has an output for each of them."""

    def build(self, config: RunConfig, reader: Any, checkpoint: Any = None) -> Any:
        """The model, not compiled, with new weights or the weights of a checkpoint of its BERT."""
        return build_network(config.model, config.data.tag_scheme(), reader, checkpoint, config.data.standards)

    def loss(self, config: RunConfig, model: Any) -> Any:
        """The loss of the model, or a dict with a loss for each output."""
        if config.data.standards:
            return {name: self._loss(config, output_of_standard(model, name)) for name in config.data.standards}
        return self._loss(config, model)

    def _loss(self, config: RunConfig, model: Any) -> Any:
        layer, weights = crf_of(model), config.soft_targets
        if weights is not None:
            return losses.SequenceDistillationLoss(layer, *weights) if layer else losses.TagDistillationLoss(*weights)
        return layer.sparse_loss if layer else keras.losses.SparseCategoricalCrossentropy(True, ignore_class=-1)

    def wrap(self, config: RunConfig, model: Any, reader: Any) -> Any:
        """The tagger, or the `StandardsTagger`, around a model."""
        make, scheme, taggers = TAGGERS[config.task.name].of, config.data.tag_scheme(), {}
        if not config.data.standards:
            return make(KerasTaggingNetwork(model, scheme), reader, config)
        for name in config.data.standards:
            network = KerasTaggingNetwork(output_of_standard(model, name), scheme)
            taggers[name] = make(network, reader_of_standard(reader, name), config)
        return StandardsTagger(taggers, keras.Model(model.input, model.output))  # without the optimizer

    def monitors(self, tagger: Any, valid: list[Any]) -> list[CRFMonitor]:
        """A list with a `CRFMonitor`, or an empty one without a single CRF."""
        if tagger.crf is None:
            return []
        batch = held_out_batch(tagger.reader, valid, tagger.scheme)
        return [CRFMonitor(tagger.crf, batch, tagger.scheme, verbose=0)]

    def calibrate(self, tagger: Any, valid: list[Any]) -> Any:
        """Fits the temperature on the validation set. Returns it, or a dict by standard if there are several."""
        if isinstance(tagger, StandardsTagger):
            return {name: self.calibrate(one, _of_standard(valid, name)) for name, one in tagger.taggers.items()}
        batch = held_out_batch(tagger.reader, valid, tagger.scheme, _WINDOWS_FOR_TEMPERATURE)
        tagger.network.fit_temperature(*batch)
        return tagger.network.temperature

    def score(self, plan: Any, folder: RunWriter, tagger: Any) -> Scores:
        """The scores of the held-out parts; also writes the predictions for the last of them into the folder."""
        parts, sources = plan.data.parts, (plan.run.data or {}).get("sources") or {}
        scores, last = {}, list(parts)[-1]
        for name in list(parts)[1:]:
            judge, learned = (plan.judge, plan.data.apart.parts) if plan.judge and name == "valid" else (tagger, parts)
            sentences, words = parts[name], _training_words(tagger, sources, learned, name)
            if name == last:
                predictions, facts = zip(*judge.predictions_and_facts(sentences), strict=True)
            else:
                predictions = judge.predictions(sentences, with_probabilities=False)
            scores[name] = tagger.score(sentences, predictions, words)
        rows = [[(*span.key, span.probability) for span in spans] for spans in predictions]
        scored = [s.scored(spans) for s, spans in zip(sentences, rows, strict=True)]
        keys = [[span[:-1] for span in spans] for spans in scored]
        tagger.counts = span_counts([sentence.spans for sentence in sentences], keys)
        folder.save_text(PREDICTIONS, predictions_text(sentences, scored, facts))
        return scores


def _training_words(tagger: Any, sources: Sources, parts: Parts, name: str) -> Any:
    """The set of in-vocabulary words of a part, or a dict of sets if there are several standards: of the training set
    and, when the test set is scored, of a validation set that was held out from it."""
    files = sources["valid"] or () if "valid" in sources else None  # of standards, a dict by some of their names

    def words(standard: str | None = None) -> set[str]:
        is_held_out = files is not None and (standard not in files if standard else not files)
        sentences = [*parts["train"], *(parts["valid"] if is_held_out and name != "valid" else ())]
        chosen = sentences if standard is None else _of_standard(sentences, standard)
        return {word for sentence in chosen for word in sentence.texts_of(sentence.spans)}

    return {one: words(one) for one in tagger.taggers} if isinstance(tagger, StandardsTagger) else words()


def _of_standard(sentences: list[Any], standard: str) -> list[Any]:
    return [sentence for sentence in sentences if sentence.standard == standard]


class ClassificationTrainer(Trainer):
    """One label, several labels, or one number, for a text."""

    batch_options = {"carry": True, "any_length": not COMPILES_SHAPES}

    def build(self, config: RunConfig, reader: Any, checkpoint: Any = None) -> Any:
        """The model, not compiled, with new weights or the weights of a checkpoint of its BERT."""
        return build_classifier(config.model, config.data.labels, reader, checkpoint)

    def loss(self, config: RunConfig, model: Any) -> Any:
        """The loss of the model."""
        labels, weights = config.data.labels, config.soft_targets
        if weights is not None:
            return losses.LabelDistillationLoss(*weights) if labels else losses.NumberDistillationLoss(*weights)
        if config.facts.multilabel:
            return keras.losses.BinaryCrossentropy(from_logits=True)
        if labels:
            return keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        return keras.losses.MeanSquaredError()

    def wrap(self, config: RunConfig, model: Any, reader: Any) -> Any:
        """The `TextClassifier` around a model."""
        return TextClassifier.of(KerasClassificationNetwork(model), reader, config)

    def monitors(self, classifier: Any, valid: list[Any]) -> list[CRFMonitor]:
        """No callbacks: there are no transitions."""
        return []

    def calibrate(self, classifier: Any, valid: list[Any]) -> Any:
        """Returns 1: the probabilities of the network are not scaled."""
        return 1.0

    def score(self, plan: Any, folder: RunWriter, classifier: Any) -> Scores:
        """The scores of the held-out parts; also writes the predictions for the last of them into the folder."""
        scores, parts = {}, plan.data.parts
        for name in list(parts)[1:]:
            predictions = classifier.predictions(parts[name])
            scores[name] = classifier.score(parts[name], predictions)
        folder.save_text(PREDICTIONS, classifications_text(parts[name], predictions))
        return scores


_TRAINERS = {"tags": TaggingTrainer(), "label": ClassificationTrainer()}


def trainer_of(task: Task) -> Any:
    """The trainer of a task."""
    return _TRAINERS[task.output]


def finish_run(plan: Any, folder: RunWriter, tagger: Any) -> Scores:
    """Calibrates and scores the best model of a run, and writes both into its folder, which completes the run."""
    config, valid = plan.config, plan.data.parts["valid"]
    trainer = trainer_of(config.task)
    if plan.judge:
        tagger.curve = plan.judge.curve
        temperature = tagger.network.temperature = plan.judge.calibrate(valid)
    else:
        temperature = trainer.calibrate(tagger, valid)
    folder.save_config(replace(plan.run, config=replace(config, temperature=temperature)))
    scores = trainer.score(plan, folder, tagger)
    folder.save_scores(scores)
    return scores
