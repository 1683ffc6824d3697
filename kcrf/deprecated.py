"""Old places and old names, for one release: they work, and a warning says the new ones."""

import warnings
from collections.abc import Callable
from functools import wraps
from importlib import import_module
from typing import Any, TypeVar

__all__ = ["moved_names", "renamed_arguments"]

Function = TypeVar("Function", bound=Callable[..., Any])

_NEW_PLACES = {  # of the names that have left the page of a folder
    "kcrf.augmentation": {
        "OPERATIONS": "kcrf.augmentation.copies",
        "back_translate": "kcrf.augmentation.translation",
        "copies_wanted": "kcrf.augmentation.copies",
        "read_synonym_vectors": "kcrf.augmentation.synonyms",
    },
    "kcrf.checkpoints": {
        "Checkpoint": "kcrf.checkpoints.open",
        "NAME_MAPS": "kcrf.checkpoints.names",
        "layer_owner": "kcrf.checkpoints.names",
    },
    "kcrf.corpora": {
        "classified_line": "kcrf.corpora.classified",
        "conll_lines": "kcrf.corpora.conll",
        "entity_line": "kcrf.corpora.json_lines",
        "iterate_texts": "kcrf.corpora.texts",
        "join_tokens": "kcrf.corpora.conll",
        "read_conll_tokens": "kcrf.corpora.conll",
        "read_word_list": "kcrf.corpora.word_list",
    },
    "kcrf.crf": {
        "log_probability_within": "kcrf.crf.functions",
        "log_sums_onward": "kcrf.crf.functions",
    },
    "kcrf.distillation": {
        "expected_targets": "kcrf.distillation.teachers",
        "soften": "kcrf.distillation.teachers",
    },
    "kcrf.export": {"FORMATS": "kcrf.export.write"},
    "kcrf.layers": {
        "AutoLearningRate": "kcrf.layers.learning_rates",
        "MixoutDense": "kcrf.layers.dense",
        "TaskEmbedding": "kcrf.layers.embeddings",
        "with_learning_rate_multiplier": "kcrf.layers.learning_rates",
    },
    "kcrf.metrics": {
        "TextMismatch": "kcrf.metrics.scores",
        "bootstrap_difference": "kcrf.metrics.bootstrap",
        "bootstrap_scores": "kcrf.metrics.bootstrap",
        "f1_of_counts": "kcrf.metrics.bootstrap",
        "is_forbidden": "kcrf.metrics.transitions",
        "span_counts": "kcrf.metrics.bootstrap",
    },
    "kcrf.models": dict.fromkeys(
        ("K", "Keras2Model", "Model", "keras", "load_bert4keras_weights"), "kcrf.bert4keras.models"
    ),
    "kcrf.optimizers": {"WarmupExponentialDecay": "kcrf.optimizers.schedules"},
    "kcrf.pretraining": {
        "choose_positions": "kcrf.pretraining.masking",
        "hide": "kcrf.pretraining.masking",
        "important_words": "kcrf.pretraining.importance",
        "learn_vocabulary": "kcrf.pretraining.vocabulary",
    },
    "kcrf.serving": {
        "ServedModel": "kcrf.serving.models",
        "open_socket": "kcrf.serving.server",
        "run_server": "kcrf.serving.server",
    },
    "kcrf.taggers": {"load_tagger": "kcrf.taggers.open_model"},
    "kcrf.training": {"load_tagger": "kcrf.taggers.open_model"},
}


def moved_names(module: str) -> Callable[[str], Any]:
    """The `__getattr__` of a module from which names have moved.

    Args:
        module: The name of the module.

    Returns:
        A function that takes a name, and returns the object that the new module defines. It warns of the new place with
        a `DeprecationWarning`. For a name that has not moved it raises an `AttributeError`.

    >>> moved_names("kcrf.taggers")("load_tagger").__module__  # doctest: +SKIP
    'kcrf.taggers.open_model'
    """
    places = _NEW_PLACES[module]

    def __getattr__(name):
        """Returns the object from its new place."""
        if name not in places:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        warnings.warn(f"{module}.{name} is now {places[name]}.{name}", DeprecationWarning, stacklevel=2)
        return getattr(import_module(places[name]), name)

    return __getattr__


def renamed_arguments(**names: str) -> Callable[[Function], Function]:
    """A decorator for a function some of whose keyword arguments have new names.

    Args:
        names: The new name of each old name.

    Returns:
        A decorator. The decorated function takes an argument under its old name too, and warns with a
        `DeprecationWarning`. It raises a `TypeError` if an argument is given under both names.

    >>> renamed_arguments(colour="color")(lambda color: color)(color="red")
    'red'
    """

    def decorate(function):
        @wraps(function)
        def call(*args, **kwargs):
            for old, new in names.items():
                if old in kwargs and new not in kwargs:
                    warnings.warn(f"`{old}` of {function.__name__} is now `{new}`", DeprecationWarning, stacklevel=2)
                    kwargs[new] = kwargs.pop(old)
            return function(*args, **kwargs)

        return call

    return decorate
