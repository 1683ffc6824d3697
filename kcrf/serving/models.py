"""The models that a server offers: each a run folder or exported file under a name, and its answer for a text."""

import os
from collections.abc import Mapping
from os import PathLike
from typing import Any, NamedTuple

from kcrf.runs import RunConfig
from kcrf.taggers import Classification, Span, TextClassifier, TokenTagger, load_tagger
from kcrf.taggers.open_model import open_run
from kcrf.taggers.user_dictionary import matches
from kcrf.tasks.tokens import sentence_of_tokens

_PATHS = {"cws": "/segment", "ner": "/tag", "pos": "/pos", "cws-pos": "/segment", "classify": "/classify"}  # by task
_MEMBERS = {"cws": "words", "ner": "entities", "pos": "tokens"}  # of an answer
_WARM_UP = "今天天气真好。"  # any text: what a backend compiles depends on the length alone


class LoadedBeforeFork(Exception):
    """A model was loaded in another process: the threads of its backend are not in this one."""


class Options(NamedTuple):
    """How to compute the texts of a request: the number of alternatives, the user's words, the least probability."""

    k_best: int = 0
    words: tuple[str, ...] = ()
    min_probability: float | None = None


def _answers(tagger: Any, texts: list[Any], options: Options) -> list[dict[str, Any]]:
    """The answer for each text: its words, entities or tokens, with alternatives; or its label."""
    if isinstance(tagger, TextClassifier):
        return [_label(prediction) for prediction in tagger.predict(texts)]
    name = _MEMBERS[tagger.tasks[0]]
    if isinstance(tagger, TokenTagger):
        texts = list(map(sentence_of_tokens, texts))
    given = [matches(text, options.words) for text in texts] if options.words else None
    answers = [{name: _members(spans)} for spans in _predictions(tagger, texts, options, given)]
    best = tagger.k_best_batch(texts, options.k_best, spans=given) if options.k_best else []
    for answer, analyses in zip(answers, best):
        answer["alternatives"] = [{"probability": round(p, 6), name: _members(spans)} for spans, p in analyses]
    return answers


def _predictions(tagger: Any, texts: list[Any], options: Options, given: list[Any] | None) -> list[list[Span]]:
    usual = tagger.decoder.min_probability
    try:
        tagger.decoder.min_probability = options.min_probability or usual
        return tagger.predict(texts, spans=given)
    finally:
        tagger.decoder.min_probability = usual


def _members(spans: list[Span]) -> list[dict[str, Any]]:
    return [span.as_dict() for span in spans]


def _label(prediction: Classification) -> dict[str, Any]:
    return {
        "label": prediction.label,
        "probability": None if prediction.probability is None else round(prediction.probability, 6),
        "probabilities": {label: round(p, 6) for label, p in prediction.probabilities.items()},
    }


class ServedModel:
    """A model under a name. It is loaded in the process that computes, and computes in no other."""

    def __init__(self, name: str, run_dir: str | PathLike[str], config: RunConfig, standard: str | None = None) -> None:
        self.name, self.run, self.standard = f"{name}:{standard}" if standard else name, name, standard
        self.task = config.data.task
        self.path = _PATHS[self.task]
        self.labels = list(config.data.labels or config.data.types)
        self.pairs, self.units = config.facts.pairs, config.data.units
        self._run_dir = run_dir
        self._process: int | None = None
        self._tagger: Any = None

    def load(self) -> None:
        """Loads the network, unless it is loaded. Backends start threads then, so a process loads it after it forks."""
        if self._tagger is None:
            self._tagger, self._process = load_tagger(self._run_dir, self.standard), os.getpid()

    def is_usable(self) -> bool:
        """Whether it can compute here: it is not loaded yet, or this process has loaded it."""
        return self._process in (None, os.getpid())

    def compute(self, texts: list[Any], options: Options) -> list[dict[str, Any]]:
        """The answer for each text."""
        if not self.is_usable():
            raise LoadedBeforeFork(f"The model {self.name} was loaded before the process forked. Fork, then load it")
        self.load()
        return _answers(self._tagger, texts, options)

    def warm_up(self) -> None:
        """Computes a few texts, so that the first requests do not wait for a backend to begin or to compile."""
        for length, rows in ((16, 1), (128, 1), (16, 8)):
            text = (_WARM_UP * 20)[:length]
            self.compute([(text, text) if self.pairs else text] * rows, Options(k_best=4))


def load_models(runs: Mapping[str, str | PathLike[str]]) -> dict[str, ServedModel]:
    """A dict with a `ServedModel` for each run folder or exported file, or for each standard of a run of several.

    The networks are loaded later, in the process that answers: when the application starts or, where the ASGI server
    starts no lifespan, at the first request. So an application may be built before its server forks.

    Args:
        runs: A dict from names to run folders or exported files.
    """
    models = {}
    for name, run_dir in runs.items():
        config = open_run(run_dir).read_config().config
        for standard in config.data.standards or (None,):
            model = ServedModel(name, run_dir, config, standard)
            models[model.name] = model
    return models
