"""Taggers and classifiers as SavedModels: network, decoding and probabilities as one TensorFlow function."""

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from kcrf import crf
from kcrf.backend import ops
from kcrf.chains import roles_of
from kcrf.crf.functions import log_sums_onward
from kcrf.files import folder_aside
from kcrf.networks.tagging import mask_of
from kcrf.runs import RunConfig
from kcrf.tags import TagScheme


def signature_of(model: Any) -> dict[str, Any]:
    """The inputs of a model, a dict of ints, as TensorFlow names and types them; batch and time are free."""
    return {name: tf.TensorSpec(x.shape, "int32", name=name) for name, x in model.input.items()}


def tagger_function(network: Any) -> tf.Module:
    """A `tf.Module` whose function `serve` has the "tags" and "confidences" that `kcrf.export.chain_graph` has."""
    best, likely = network.chains(np.zeros((1, 1, len(network.scheme)), "float32"))

    def outputs(inputs: dict[str, Any]) -> dict[str, Any]:
        emissions, mask = network.model(inputs, training=False), mask_of(inputs)
        emissions = tf.where(mask[:, :, None], emissions, 0.0)
        tags = crf.viterbi(replace(best, emissions=emissions, mask=mask))
        chain = replace(likely, emissions=emissions / network.temperature, mask=mask)
        confidences = _confidences(chain, network.scheme, tf.maximum(tags, 0))
        return {"tags": tags, "confidences": tf.where(mask, confidences, 1.0)}

    return _module(network.model, outputs)


def classifier_function(network: Any, config: RunConfig) -> tf.Module:
    """A `tf.Module` whose function `serve` has "probabilities", or for regression "numbers"."""

    def outputs(inputs: dict[str, Any]) -> dict[str, Any]:
        scores = network.model(inputs, training=False)
        if config.data.labels:
            return {"probabilities": (tf.nn.sigmoid if config.facts.multilabel else tf.nn.softmax)(scores)}
        return {"numbers": scores * config.facts.deviation + config.facts.mean}

    return _module(network.model, outputs)


def _module(model: Any, outputs: Callable[[dict[str, Any]], dict[str, Any]]) -> tf.Module:
    """A `tf.Module` that serves the outputs. Its inputs have `_` for `-`, which TensorFlow allows in no argument."""
    module = tf.Module()
    module.variables_of_model = model.variables  # tracked, so that they are saved
    names = {name.replace("-", "_"): name for name in model.input}
    specs = signature_of(model)
    signature = {argument: tf.TensorSpec(specs[name].shape, "int32", name=argument) for argument, name in names.items()}
    serve = tf.function(lambda **inputs: outputs({names[argument]: x for argument, x in inputs.items()}))
    module.serve = serve.get_concrete_function(**signature)
    return module


def _confidences(chain: Any, scheme: TagScheme, tags: Any) -> Any:
    """Factors `(batch, time)`; their product over a span of the best path is the probability of the span."""
    marginals = crf.marginals(chain)
    onward = tf.maximum(chain.emissions, crf.FORBIDDEN) + log_sums_onward(chain)
    # Real positions from left to right, then the masked ones: the neighbors of a position are next to it.
    order = tf.argsort(tf.cast(~chain.mask, "int32"), axis=1, stable=True)
    tags, marginals, onward, real = (
        tf.gather(x, order, axis=1, batch_dims=1) for x in (tags, marginals, onward, chain.mask)
    )
    before = tf.pad(tags[:, :-1], [[0, 0], [1, 0]])
    transitions = ops.convert_to_tensor(chain.transitions)
    conditionals = tf.nn.softmax(tf.gather(transitions, before) + onward)  # (batch, time, tags)
    begins, longer = roles_of(scheme)
    at = tf.where(tf.gather(begins, tags)[..., None], marginals, conditionals)
    factors = tf.gather(at, tags, axis=2, batch_dims=2)
    another = tf.gather(longer, tags)[:, :-1]  # the tag that would make a span longer, or -1
    goes_on = tf.gather(conditionals[:, 1:], tf.maximum(another, 0), axis=2, batch_dims=2)
    ends = (another >= 0) & (another != tags[:, 1:]) & real[:, 1:]
    factors *= tf.pad(tf.where(ends, 1 - goes_on, 1.0), [[0, 0], [0, 1]], constant_values=1.0)
    return tf.gather(factors, tf.argsort(order, axis=1), axis=1, batch_dims=1)


def write_saved_model(module: tf.Module, path: Path, texts: Mapping[str, str]) -> None:
    """Writes a SavedModel, with the texts in its folder `assets.extra`."""
    with folder_aside(path) as folder:
        aside = folder / path.name
        tf.saved_model.save(module, str(aside), signatures={"serving_default": module.serve})
        (aside / "assets.extra").mkdir()
        for name, text in texts.items():
            (aside / "assets.extra" / name).write_text(text, encoding="utf-8")
        os.replace(aside, path)
