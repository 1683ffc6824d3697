"""Model, loss, tagger and scores of training for each kind of output: tags of a text, or its label."""

from kcrf.backend import COMPILES_SHAPES, keras
from kcrf.distillation import (
    LabelDistillationLoss,
    NumberDistillationLoss,
    SequenceDistillationLoss,
    TagDistillationLoss,
)
from kcrf.monitor import CRFMonitor
from kcrf.taggers.classification_model import build_classifier
from kcrf.taggers.classifier import Classifier
from kcrf.taggers.decoding import texts_and_tokens
from kcrf.taggers.keras_networks import KerasClassificationNetwork, KerasTaggingNetwork
from kcrf.taggers.networks import build_network, crf_of
from kcrf.taggers.trained_tagger import KerasTagger
from kcrf.training.batches import Batches, held_out_batch

__all__ = ["trainer_of"]

_WINDOWS_FOR_TEMPERATURE = 512


class TaggingTrainer:
    """Tags for the tokens of a text."""

    def batches(self, training, windows):
        """The `Batches` of windows."""
        return Batches(windows, training.batch_size, training.seed, training.batch_tokens)

    def build(self, config, reader, checkpoint=None):
        """The model, not compiled, with new weights or the weights of a checkpoint of its BERT."""
        return build_network(config.model, config.data.tag_scheme(), reader, checkpoint)

    def loss(self, config, model):
        """The loss of the model."""
        layer, teacher = crf_of(model), config.teacher
        if teacher.teacher is not None:
            weights = (teacher.teacher_weight, teacher.teacher_temperature)
            return SequenceDistillationLoss(layer, *weights) if layer else TagDistillationLoss(*weights)
        return layer.sparse_loss if layer else keras.losses.SparseCategoricalCrossentropy(True, ignore_class=-1)

    def wrap(self, config, model, reader):
        """The `KerasTagger` around a model."""
        network, metric = KerasTaggingNetwork(model, config.data.tag_scheme()), config.training.metric
        return KerasTagger(network, reader, config.model.min_confidence, metric=metric)

    def monitors(self, tagger, valid):
        """A list with a `CRFMonitor`, or an empty one without a CRF."""
        if tagger.crf is None:
            return []
        batch = held_out_batch(tagger.reader, valid, tagger.scheme)
        return [CRFMonitor(tagger.crf, batch, tagger.scheme, verbose=0)]

    def calibrate(self, tagger, valid):
        """Fits the temperature of the tagger on the validation set, and returns it."""
        batch = held_out_batch(tagger.reader, valid, tagger.scheme, _WINDOWS_FOR_TEMPERATURE)
        tagger.network.fit_temperature(*batch)
        return tagger.network.temperature

    def score(self, folder, tagger, parts, sources):
        """The scores of the held-out parts; also writes the predictions for the last of them into the folder."""
        scores, last = {}, list(parts)[-1]
        for name in list(parts)[1:]:
            sentences, training_words = parts[name], _words(_known_part(sources, parts, name))
            if name == last:
                spans = _save_predictions(folder, tagger, sentences)
            else:
                spans = tagger.spans_of(sentences)
            scores[name] = tagger.score(sentences, spans, training_words)
        return scores


def _save_predictions(folder, tagger, sentences):
    """Writes the predictions for sentences into the folder, and returns the predicted spans."""
    texts, tokens = texts_and_tokens(sentences)
    predictions = tagger.spans_with_confidence(texts, tokens=tokens)
    scored = [sentence.scored(spans) for sentence, spans in zip(sentences, predictions, strict=True)]
    folder.save_predictions(sentences, scored)
    return [[span[:-1] for span in spans] for spans in predictions]


def _known_part(sources, parts, name):
    """The sentences whose words are in-vocabulary: those of the training file, which may include the validation set."""
    is_of_train = name != "valid" and "valid" in sources and sources["valid"] is None
    return [*parts["train"], *parts["valid"]] if is_of_train else parts["train"]


def _words(sentences):
    """The set of words, or of the texts of entities."""
    return {sentence.text[start:end] for sentence in sentences for start, end, *_ in sentence.spans}


class ClassificationTrainer:
    """One label, or one number, for a text."""

    def batches(self, training, windows):
        """The `Batches` of windows."""
        options = {"carry": True, "any_length": not COMPILES_SHAPES}
        return Batches(windows, training.batch_size, training.seed, training.batch_tokens, **options)

    def build(self, config, reader, checkpoint=None):
        """The model, not compiled, with new weights or the weights of a checkpoint of its BERT."""
        return build_classifier(config.model, config.data.labels, reader, checkpoint)

    def loss(self, config, model):
        """The loss of the model."""
        labels, teacher = config.data.labels, config.teacher
        if teacher.teacher is not None:
            kind = LabelDistillationLoss if labels else NumberDistillationLoss
            return kind(teacher.teacher_weight, teacher.teacher_temperature)
        if labels:
            return keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        return keras.losses.MeanSquaredError()

    def wrap(self, config, model, reader):
        """The `Classifier` around a model."""
        network = KerasClassificationNetwork(model)
        return Classifier(network, reader, config.data, config.facts, config.training.metric)

    def monitors(self, classifier, valid):
        """No callbacks: there are no transitions."""
        return []

    def calibrate(self, classifier, valid):
        """Returns 1: the probabilities of labels are those of the network."""
        return 1.0

    def score(self, folder, classifier, parts, sources):
        """The scores of the held-out parts; also writes the predictions for the last of them into the folder."""
        scores = {}
        for name in list(parts)[1:]:
            predictions = classifier.classify([example.texts for example in parts[name]])
            scores[name] = classifier.score(parts[name], predictions)
        folder.save_classifications(parts[name], predictions)
        return scores


_TRAINERS = {"tags": TaggingTrainer(), "label": ClassificationTrainer()}


def trainer_of(task):
    """The trainer of a `kcrf.tasks.Task`."""
    return _TRAINERS[task.output]
