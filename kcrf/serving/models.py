"""The models that a server offers: each a run folder or exported file under a name, and its answer for a text."""

import os
from collections.abc import Mapping
from dataclasses import asdict
from os import PathLike
from typing import Any, Protocol

from kcrf.taggers import EntityRecognizer, TextClassifier, TokenTagger, WordSegmenter
from kcrf.taggers.open_model import open_run
from kcrf.tasks.tokens import sentence_of_tokens

_WARM_UP = "今天天气真好。"  # any text: what a backend compiles depends on the length alone


class LoadedBeforeFork(Exception):
    """A model was loaded in another process: the threads of its backend are not in this one."""


class _Service(Protocol):
    """Answers requests with a model, which it loads from a run folder or an exported file.

    Attributes:
        path: The path of its requests.
    """

    path: str

    def __init__(self, run_dir: str | PathLike[str]) -> None: ...

    def compute(self, texts: list[Any], top_k: int) -> list[dict[str, Any]]:
        """The answer for each text, with `top_k` alternatives if there are any."""


class _Segmenter:
    """Answers with words, and with their classes if the model has classes."""

    path = "/segment"

    def __init__(self, run_dir, standard=None):
        self._model = WordSegmenter(run_dir, standard=standard)
        self._has_classes = bool(self._model.classes)

    def compute(self, texts, top_k):
        """The answer for each text, a dict."""
        sentences = self._model.segment_batch_with_confidence(texts, tags=self._has_classes)
        answers = [{"words": _words(text, words)} for text, words in zip(texts, sentences, strict=True)]
        alternatives = self._model.k_best_batch(texts, top_k, tags=self._has_classes) if top_k else []
        for text, answer, paths in zip(texts, answers, alternatives):
            answer["alternatives"] = [{"probability": round(p, 6), "words": _words(text, words)} for words, p in paths]
        return answers


def _words(text, words):
    """Dicts of words with their places in the text, white space left out.

    Args:
        text: A string.
        words: Strings, or tuples of a word, its class if the model has classes, and its probability if there is one.
    """
    members, end = [], 0
    for word, *values in ((word,) if isinstance(word, str) else word for word in words):
        start = text.index(word, end)
        end = start + len(word)
        members.append({"text": word, "start": start, "end": end})
        for value in values:
            members[-1] |= {"label": value} if isinstance(value, str) else {"confidence": round(value, 6)}
    return members


class _Recognizer:
    """Answers with entities."""

    path = "/tag"

    def __init__(self, run_dir):
        self._model = EntityRecognizer(run_dir)

    def compute(self, texts, top_k):
        """The answer for each text, a dict."""
        answers = [{"entities": list(map(_entity, entities))} for entities in self._model.recognize_batch(texts)]
        alternatives = self._model.k_best_batch(texts, top_k) if top_k else []
        for answer, paths in zip(answers, alternatives):
            answer["alternatives"] = [
                {"probability": round(p, 6), "entities": list(map(_entity, entities))} for entities, p in paths
            ]
        return answers


def _entity(entity):
    members = asdict(entity)
    confidence = members.pop("confidence")
    return members if confidence is None else {**members, "confidence": round(confidence, 6)}


class _TokenTagger:
    """Answers with the tokens, which white space separates, and their classes."""

    path = "/pos"

    def __init__(self, run_dir):
        self._model = TokenTagger(run_dir)

    def compute(self, texts, top_k):
        """The answer for each text, a dict."""
        sentences = list(map(sentence_of_tokens, texts))
        tags_of_texts = self._model.tag_batch_with_confidence(sentences)
        return [
            {"tokens": list(map(_token, [s.text] * len(row), s.tokens, row))}
            for s, row in zip(sentences, tags_of_texts)
        ]


def _token(text, extent, tag):
    start, end = extent
    return {"text": text[start:end], "start": start, "end": end, "label": tag[0], "confidence": round(tag[1], 6)}


class _Classifier:
    """Answers with a label, or a number."""

    path = "/classify"

    def __init__(self, run_dir):
        self._model = TextClassifier(run_dir)

    def compute(self, texts, top_k):
        """The answer for each text, or pair of texts, a dict."""
        return [_label(prediction) for prediction in self._model.classify_batch(texts)]


def _label(prediction):
    return {
        "label": prediction.label,
        "probability": None if prediction.probability is None else round(prediction.probability, 6),
        "probabilities": {label: round(p, 6) for label, p in prediction.probabilities.items()},
    }


_SERVICES: dict[str, type[_Service]] = {  # by task
    "cws": _Segmenter,
    "ner": _Recognizer,
    "pos": _TokenTagger,
    "cws-pos": _Segmenter,
    "classify": _Classifier,
}


class ServedModel:
    """A model under a name. It is loaded in the process that computes, and computes in no other.

    Args:
        name: Its name.
        run_dir: Its run folder or exported file.
        standard: The segmentation standard, for a run of several. Defaults to None: the run has one.

    Attributes:
        run: The name without that of the standard.
        task: "cws", "cws-pos", "ner", "pos" or "classify".
        path: The path of its requests, such as "/segment".
        labels: The types of entities, or the classes of words, tokens or texts, a list. Empty for words without classes
            and for numbers.
        pairs: Whether it classifies pairs of texts.
    """

    def __init__(self, name: str, run_dir: str | PathLike[str], standard: str | None = None) -> None:
        config = open_run(run_dir).read_config().config
        self.name, self.run, self.standard = f"{name}:{standard}" if standard else name, name, standard
        self.task = config.data.task
        self._service = _SERVICES[self.task]
        self.path = self._service.path
        self.labels = list(config.data.labels or config.data.types)
        self.pairs = config.facts.pairs
        self._run_dir = run_dir
        self._process: int | None = None
        self._model: Any = None

    def load(self) -> None:
        """Loads the network, unless it is loaded. Backends start threads then, so a process loads it after it forks.

        Raises:
            FileNotFoundError: A file is missing.
            ValueError: A file is damaged, or was written by a newer version.
        """
        if self._model is None:
            standard = {"standard": self.standard} if self.standard else {}
            self._model, self._process = self._service(self._run_dir, **standard), os.getpid()

    def is_usable(self) -> bool:
        """Whether it can compute here: it is not loaded yet, or this process has loaded it."""
        return self._process in (None, os.getpid())

    def compute(self, texts: list, top_k: int) -> list[dict]:
        """The answer for each text.

        Args:
            texts: Strings; tuples of two for a model of pairs.
            top_k: The number of alternatives to add.

        Raises:
            LoadedBeforeFork: Another process has loaded the model.
        """
        if not self.is_usable():
            raise LoadedBeforeFork(
                f"The model {self.name} was loaded before this process was forked. Fork first, then load it"
            )
        self.load()
        return self._model.compute(texts, top_k)

    def warm_up(self) -> None:
        """Computes a few texts, so that the first requests do not wait for a backend to begin.

        TensorFlow's graphs serve any shape after the second one. JAX compiles each of its few shapes at its first use.
        """
        for length, rows in ((16, 1), (128, 1), (16, 8)):
            text = (_WARM_UP * 20)[:length]
            self.compute([(text, text) if self.pairs else text] * rows, 4)


def load_models(runs: Mapping[str, str | PathLike[str]]) -> dict[str, ServedModel]:
    """The `ServedModel` of each run folder or exported file, a dict; for a run of several standards one for each.

    The networks are loaded later, in the process that answers: when the application starts or, where the ASGI server
    starts no lifespan, at the first request. So an application may be built before its server forks.

    Args:
        runs: A dict from names to run folders or exported files.

    Raises:
        FileNotFoundError: A run folder, or its settings, is missing.
        ValueError: A run was written by a newer version, or its settings are damaged.
    """
    models = (
        ServedModel(name, run_dir, standard)
        for name, run_dir in runs.items()
        for standard in open_run(run_dir).read_config().config.data.standards or (None,)
    )
    return {model.name: model for model in models}
