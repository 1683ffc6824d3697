"""The models that a server offers: a run folder, its name, and what is answered for a text."""

from collections.abc import Mapping
from dataclasses import asdict
from os import PathLike

from kcrf.taggers import EntityRecognizer, TextClassifier, WordSegmenter
from kcrf.taggers.open import open_run

__all__ = ["PATHS", "ServedModel", "load_models"]

PATHS = {"cws": "/segment", "ner": "/recognize", "classify": "/classify"}  # of the tasks
_WARM_UP = "今天天气真好。"  # any text: what a backend compiles depends on the length alone


class _Segmenter:
    """Answers with words."""

    def __init__(self, run_dir):
        self._model, self.pairs = WordSegmenter(run_dir), False

    def compute(self, texts, top_k):
        """The answer for each text, a dict."""
        found = self._model.segment_batch(texts, confidence=True)
        results = [{"words": _words(text, words)} for text, words in zip(texts, found, strict=True)]
        best = self._model.top_k_batch(texts, top_k) if top_k else []
        for text, result, rows in zip(texts, results, best):
            result["alternatives"] = [
                {"probability": round(p, 6), "words": _words(text, [(word,) for word in words])} for p, words in rows
            ]
        return results


def _words(text, words):
    """Dicts of words `(text, probability)` or `(text,)`, with their places in the text, white space left out."""
    found, end = [], 0
    for word, *sure in words:
        start = text.index(word, end)
        end = start + len(word)
        found.append({"text": word, "start": start, "end": end, **({"confidence": round(sure[0], 6)} if sure else {})})
    return found


class _Recognizer:
    """Answers with entities."""

    def __init__(self, run_dir):
        self._model, self.pairs = EntityRecognizer(run_dir), False

    def compute(self, texts, top_k):
        """The answer for each text, a dict."""
        results = [{"entities": list(map(_entity, row))} for row in self._model.recognize_batch(texts)]
        best = self._model.top_k_batch(texts, top_k) if top_k else []
        for result, rows in zip(results, best):
            result["alternatives"] = [
                {"probability": round(p, 6), "entities": list(map(_entity, row))} for p, row in rows
            ]
        return results


def _entity(entity):
    members = asdict(entity)
    sure = members.pop("confidence")
    return members if sure is None else {**members, "confidence": round(sure, 6)}


class _Classifier:
    """Answers with a label, or a number."""

    def __init__(self, run_dir):
        self._model = TextClassifier(run_dir)
        self.pairs = self._model.pairs

    def compute(self, texts, top_k):
        """The answer for each text, or pair of texts, a dict."""
        results = []
        for found in self._model.classify_batch(texts):
            rounded = {label: round(p, 6) for label, p in found.probabilities.items()}
            sure = None if found.probability is None else round(found.probability, 6)
            results.append({"label": found.label, "probability": sure, "probabilities": rounded})
        return results


_KINDS = {"cws": _Segmenter, "ner": _Recognizer, "classify": _Classifier}


class ServedModel:
    """A model under a name.

    Args:
        name: Its name.
        run_dir: Its run folder.

    Attributes:
        task: "cws", "ner" or "classify".
        path: Where requests for it go, as "/segment".
        labels: The types of entities, or the labels of texts, a list. Empty for words and numbers.
        pairs: Whether it classifies pairs of texts.
        compute: A function of texts and a number of alternatives that returns a dict for each text.
    """

    def __init__(self, name: str, run_dir: str | PathLike[str]) -> None:
        settings = open_run(run_dir).read_settings()
        self.name, self.task, self.path = name, settings.task, PATHS[settings.task]
        self.labels = list(settings.labels if self.task == "classify" else settings.tag_scheme().types)
        model = _KINDS[self.task](run_dir)
        self.pairs, self.compute = model.pairs, model.compute

    def warm_up(self) -> None:
        """Computes a few texts, so that the first requests do not wait for a backend to begin.

        TensorFlow's graphs serve any shape after the second one. JAX compiles each of its few shapes at its first use.
        """
        for length, rows in ((16, 1), (128, 1), (16, 8)):
            text = (_WARM_UP * 20)[:length]
            self.compute([(text, text) if self.pairs else text] * rows, 4)


def load_models(runs: Mapping[str, str | PathLike[str]]) -> dict[str, ServedModel]:
    """The `ServedModel` of each run folder, a dict.

    Args:
        runs: A dict from names to folders.

    Raises:
        FileNotFoundError: A run folder, or a file of it, is missing.
        ValueError: A run was written by a newer version, or a file in it is damaged.
    """
    return {name: ServedModel(name, folder) for name, folder in runs.items()}
