"""What differs between the tasks of training: how data are checked, which network is built, what is scored."""

import reprlib
from collections import Counter
from dataclasses import replace

import numpy as np

from kcrf.backend import COMPILES_SHAPES, backend_name, keras
from kcrf.corpora import Example, Sentence, entity_types
from kcrf.corpora.classified import as_number, check_spellings, have_decimals, recurring, sorted_labels
from kcrf.distillation import (
    LabelDistillationLoss,
    NumberDistillationLoss,
    SequenceDistillationLoss,
    TagDistillationLoss,
)
from kcrf.metrics.classes import CLASSIFICATION_METRICS, REGRESSION_METRICS
from kcrf.monitor import CRFMonitor
from kcrf.progress_bars import print_note
from kcrf.readers.unit_choice import choose_units, entities_that_cut_tokens, splits_of
from kcrf.readers.units import with_copies
from kcrf.readers.whole import SEPARATOR
from kcrf.taggers import Tagger
from kcrf.taggers.classifier import Classifier
from kcrf.taggers.keras_networks import KerasClassificationNetwork, KerasTaggingNetwork
from kcrf.taggers.networks import build_network, crf_of
from kcrf.taggers.pooled import build_classifier
from kcrf.training.batches import Batches, held_out_batch, tagged_windows

__all__ = ["as_sentence", "task_of"]

_WINDOWS_FOR_TEMPERATURE = 512
_FEW_LABELS = 20  # this many may occur once each without being taken for the wrong column


class TaggingTask:
    """Words and named entities: a tag for each unit of a text."""

    def check(self, name, items):
        """The items of a part as `Sentence`s. Raises ValueError if none has a text."""
        sentences = [as_sentence(item) for item in items]
        if not any(sentence.text for sentence in sentences):
            raise ValueError(f"`{name}` needs at least one sentence with words. Received: {len(items)} empty sentences")
        return sentences

    def content(self, sentences):
        """What of a part must be the same for a run to be resumed."""
        return [(s.text, s.spans) for s in sentences]

    def labels(self, sentences):
        """None: sentences have no labels whose proportions a sample should keep."""
        return None

    def text(self, sentence):
        """The text whose characters get vectors."""
        return sentence.text

    def texts(self, sentences):
        """The texts of a part as a reader takes them, and their tokens."""
        return [sentence.text for sentence in sentences], [sentence.tokens for sentence in sentences]

    def with_data(self, settings, parts):
        """The settings, for entities with the types of the training part; warns of what the other parts cannot show."""
        if settings.task != "ner":
            return settings
        if not settings.types:
            settings = replace(settings, types=entity_types(parts["train"]))
            if not settings.types:
                raise ValueError("`train` needs at least one entity. Received: sentences without any")
        for name, part in parts.items():
            unseen = Counter(label for sentence in part for *_, label in sentence.spans if label not in settings.types)
            if unseen:
                counts = ", ".join(f"{label} ({count})" for label, count in sorted(unseen.items()))
                print_note(f"{name}: entities of types that the training part lacks count as missed: {counts}")
        if not any(sentence.spans for sentence in parts["valid"]):
            print_note("valid: no entity, so no epoch is better than another: the last one is kept")
        return _with_units(settings, parts)

    def windows(self, settings, reader, sentences, copies=None):
        """The windows of the training part, of each sentence followed by those of its copies, with their tags."""
        readings, sentences = reader.read_training(sentences, copies), with_copies(sentences, copies)
        return tagged_windows(sentences, readings, settings.tag_scheme(), whole_spans=settings.constraints)

    def batches(self, settings, windows):
        """The `Batches` of windows."""
        return Batches(windows, settings.batch_size, settings.seed, settings.batch_tokens)

    def build(self, settings, reader, checkpoint=None):
        """The model, not compiled, with the weights of a checkpoint of its BERT or with new ones."""
        return build_network(settings, reader, checkpoint)

    def loss(self, settings, model):
        """The loss of the model."""
        layer, teaching = crf_of(model), (settings.teacher_weight, settings.teacher_temperature)
        if settings.teacher is not None:
            return SequenceDistillationLoss(layer, *teaching) if layer else TagDistillationLoss(*teaching)
        return layer.sparse_loss if layer else keras.losses.SparseCategoricalCrossentropy(True, ignore_class=-1)

    def wrap(self, settings, model, reader):
        """The `Tagger` around a model."""
        return Tagger(KerasTaggingNetwork(model, settings.tag_scheme()), reader, settings.min_confidence)

    def monitors(self, tagger, model, valid):
        """A list with a `CRFMonitor`, or an empty one without a CRF."""
        if tagger.crf is None:
            return []
        batch = held_out_batch(tagger.reader, valid, tagger.scheme)
        monitor = CRFMonitor(tagger.crf, batch, tagger.scheme, verbose=0)
        monitor.set_model(model)
        monitor.on_train_begin()
        return [monitor]

    def calibrate(self, folder, settings, tagger, valid):
        """Fits the temperature of the tagger on the held-out part, and writes it into the folder."""
        tagger.fit_temperature(*held_out_batch(tagger.reader, valid, tagger.scheme, _WINDOWS_FOR_TEMPERATURE))
        folder.save_config(
            replace(settings, temperature=tagger.temperature), folder.read_config()["data"], backend_name()
        )

    def score(self, folder, tagger, parts):
        """The scores of the held-out parts; also writes what was found in the last of them into the folder."""
        scores, last = {}, list(parts)[-1]
        for name in list(parts)[1:]:
            sentences, known = parts[name], _words(_known_part(folder, parts, name))
            found = tagger.spans_of(sentences, confidence=name == last)
            if name == last:
                folder.save_predictions(sentences, found)
                found = [[span[:-1] for span in spans] for spans in found]
            scores[name] = tagger.score(sentences, found, known)
        return scores


def _with_units(settings, parts):
    """The settings, for entities from scratch with what carries the tags."""
    if settings.bert is not None:
        return settings
    settings = replace(settings, units=settings.units or choose_units(parts["train"]))
    if settings.units == "words":
        splits = splits_of(parts["train"])
        for name, part in parts.items():
            _warn_of_cut_words(name, part, splits)
    return settings


def _warn_of_cut_words(name, sentences, splits):
    cut = entities_that_cut_tokens(sentences, splits)
    if cut:
        what = "the tags there are taken as unknown" if name == "train" else "they cannot be found, and count as missed"
        count = sum(len(sentence.spans) for sentence in sentences)
        print_note(
            f"{name}: {len(cut)} of {count} entities begin or end inside a word, such as {cut[0]!r}: {what}; "
            "--units characters can find them"
        )


def as_sentence(item):
    """A `Sentence`, made from a list of words if it is not one."""
    if isinstance(item, Sentence):
        return item
    ends = np.cumsum([0, *map(len, item)]).tolist()
    return Sentence("".join(item), list(zip(ends, ends[1:])))


def _known_part(folder, parts, name):
    """The sentences whose words count as known: of the file of the training data, of which valid may be a part."""
    sources = (folder.read_config()["data"] or {}).get("sources") or {}
    is_of_train = name != "valid" and "valid" in sources and sources["valid"] is None
    return [*parts["train"], *parts["valid"]] if is_of_train else parts["train"]


def _words(sentences):
    """The set of words, or of the texts of entities."""
    return {sentence.text[start:end] for sentence in sentences for start, end, *_ in sentence.spans}


class ClassificationTask:
    """One label, or one number, for a text or a pair of texts."""

    def check(self, name, items):
        """The items of a part as `Example`s with labels as strings. Raises ValueError if there is none."""
        if not len(items):
            raise ValueError(f"`{name}` needs at least one text with its label. Received: none")
        return [_as_example(name, number, item) for number, item in enumerate(items, 1)]

    def content(self, examples):
        """What of a part must be the same for a run to be resumed."""
        return [(example.text, example.text_b, example.label) for example in examples]

    def labels(self, examples):
        """The labels whose proportions a sample keeps, or None."""
        return recurring([example.label for example in examples])

    def text(self, example):
        """The text whose characters get vectors."""
        return example.text if example.text_b is None else f"{example.text}{SEPARATOR}{example.text_b}"

    def texts(self, examples):
        """All texts of a part, of a pair both, and None in place of tokens."""
        return [text for example in examples for text in example.texts if text], None

    def with_data(self, settings, parts):
        """The settings with what follows from the data: pairs, labels or the range of the numbers, metric and pool."""
        train = parts["train"]
        is_pair = train[0].text_b is not None
        odd = next((e for part in parts.values() for e in part if (e.text_b is not None) is not is_pair), None)
        if odd is not None:
            needed = "a pair of texts, as the first has" if is_pair else "one text, as the first has"
            raise ValueError(f"{odd.source}: needs {needed}. Received: {len(odd.texts) - (odd.text_b is None)}")
        labels = [example.label for example in train]
        pool = settings.pool or ("max" if settings.bert is None else "first")
        settings = replace(settings, pairs=is_pair, pool=pool)
        if settings.metric in REGRESSION_METRICS or not (settings.metric or settings.labels) and have_decimals(labels):
            return _with_numbers(settings, parts)
        if not (settings.metric or settings.labels):
            _check_for_numbers(train)
        return _with_labels(settings, parts)

    def windows(self, settings, reader, examples, copies=None):
        """The texts of the training part and their copies, each in a window, with the numbers that are learnt."""
        examples = with_copies(examples, copies)
        readings = reader.read_texts([example.texts for example in examples], settings.max_length)
        numbers = {label: number for number, label in enumerate(settings.labels)}
        if numbers:
            targets = [numbers[example.label] for example in examples]
        else:
            targets = [(float(example.label) - settings.mean) / settings.deviation for example in examples]
        return [(r.windows[0].inputs, target) for r, target in zip(readings, targets, strict=True)]

    def batches(self, settings, windows):
        """The `Batches` of these windows."""
        options = {"carry": True, "any_length": not COMPILES_SHAPES}
        return Batches(windows, settings.batch_size, settings.seed, settings.batch_tokens, **options)

    def build(self, settings, reader, checkpoint=None):
        """The model, not compiled, with the weights of a checkpoint of its BERT or with new ones."""
        return build_classifier(settings, reader, checkpoint)

    def loss(self, settings, model):
        """The loss of the model."""
        if settings.teacher is not None:
            kind = LabelDistillationLoss if settings.labels else NumberDistillationLoss
            return kind(settings.teacher_weight, settings.teacher_temperature)
        if settings.labels:
            return keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        return keras.losses.MeanSquaredError()

    def wrap(self, settings, model, reader):
        """The `Classifier` around a model."""
        return Classifier(KerasClassificationNetwork(model), reader, settings)

    def monitors(self, classifier, model, valid):
        """No callbacks: there are no transitions."""
        return []

    def calibrate(self, folder, settings, classifier, valid):
        """Nothing: probabilities of labels are those of the network."""

    def score(self, folder, classifier, parts):
        """The scores of the held-out parts; also writes what was found in the last of them into the folder."""
        scores = {}
        for name in list(parts)[1:]:
            found = classifier.classify([example.texts for example in parts[name]])
            scores[name] = classifier.score(parts[name], found)
        folder.save_classifications(parts[name], found)
        return scores


def _as_example(name, number, item):
    """An `Example` with a label that is a string, made out of `(text, label)` or `(text, text_b, label)` if needed."""
    source = f"`{name}`, text {number}"
    if not isinstance(item, Example):
        if not isinstance(item, (tuple, list, np.ndarray)) or len(item) not in (2, 3):
            raise ValueError(
                f"{source}: needs an `Example`, (text, label) or (text, text_b, label). Received: {reprlib.repr(item)}"
            )
        *texts, label = item
        item = Example(texts[0], label, *texts[1:], source=source)
    return replace(item, label=str(item.label), source=item.source or source)


def _with_numbers(settings, parts):
    if settings.labels:
        raise ValueError(f"`labels` needs a metric of classes. Received: metric={settings.metric!r}")
    for part in parts.values():
        for example in part:
            if as_number(example.label) is None:
                raise ValueError(f"{example.source}: needs a number. Received: {example.label!r}")
    numbers = np.array([float(example.label) for example in parts["train"]])
    if numbers.min() == numbers.max():
        raise ValueError(f"`train` needs different numbers. Received: {numbers[0]:g} for all {len(numbers)} texts")
    scale = {"mean": float(numbers.mean()), "deviation": float(numbers.std())}
    return replace(settings, metric=settings.metric or REGRESSION_METRICS[0], **scale)


def _check_for_numbers(examples):
    """Refuses the first label that is no number where nearly all are: without it, they would be learnt as numbers."""
    odd = [example for example in examples if as_number(example.label) is None]
    numbers = [example.label for example in examples if as_number(example.label) is not None]
    if odd and len(odd) <= len(examples) / 10 and have_decimals(numbers):
        raise ValueError(
            f"{odd[0].source}: needs a number, as {len(numbers)} of {len(examples)} labels are; metric='accuracy' "
            f"treats them as names. Received: {odd[0].label!r}"
        )


def _with_labels(settings, parts):
    counts = Counter(example.label for example in parts["train"])
    labels = settings.labels or sorted_labels(counts)
    settings = replace(settings, labels=labels, metric=settings.metric or CLASSIFICATION_METRICS[0])
    if len(labels) < 2:
        raise ValueError(
            f"{parts['train'][0].source}: the training part needs two labels or more. "
            f"Received: {', '.join(labels)} for all {counts.total()} texts"
        )
    check_spellings(parts["train"])
    once = sum(count == 1 for count in counts.values())
    if once > max(_FEW_LABELS, counts.total() / 2):
        raise ValueError(
            f"`train` needs labels that recur. Received: {once} labels that occur once, as {next(iter(counts))[:40]!r} "
            f"of {parts['train'][0].source}; is that the column of the label?"
        )
    absent = [label for label in labels if not counts[label]]
    if absent:
        raise ValueError(f"`train` needs an example of each label. Received: none of {_some(absent)}")
    for part in parts.values():
        for example in part:
            if example.label not in labels:
                raise ValueError(
                    f"{example.source}: needs one of the labels of the training part, {_some(labels)}. "
                    f"Received: {example.label!r}"
                )
    if settings.metric == "f" and len(labels) != 2:
        raise ValueError(f"metric='f' needs two labels; macro_f takes the mean. Received: {_some(labels)}")
    return settings


def _some(labels, most=10):
    """The first labels, for a message."""
    return ", ".join(labels[:most]) + f" and {len(labels) - most} more" * (len(labels) > most)


_TASKS = {"cws": TaggingTask(), "ner": TaggingTask(), "classify": ClassificationTask()}


def task_of(settings):
    """The `TaggingTask` or `ClassificationTask` of settings."""
    return _TASKS[settings.task]
