"""`build_transformer_model` on tf_keras: bert4keras builds the model, kcrf loads the checkpoint into it."""

import warnings
from typing import Any

from kcrf.backend import path_of
from kcrf.checkpoints.configs import ALIASES, ARCHITECTURE, FAMILIES, encoder_settings, read_config
from kcrf.layers.embeddings import EncoderRecord
from kcrf.models.loading import fresh_value, load_checkpoint

SHARED_OPTIONS = ("prefix", "keep_tokens", "compound_tokens")  # options that change which weights are loaded
_NOT_THERE = {"distilbert", "xlm-roberta"}  # families that bert4keras cannot build
KERAS_3_OPTIONS = ("mixout", "output_layers")
ACTIVATIONS = dict.fromkeys(("gelu_new", "gelu_fast", "gelu_pytorch_tanh"), "gelu_tanh")  # bert4keras' name for each


def build_transformer_model(
    config_path: Any = None,
    checkpoint_path: Any = None,
    model: str | None = None,
    application: str = "encoder",
    return_keras_model: bool = True,
    skip_top_layers: int = 0,
    skip_pooler: Any = None,
    skip: Any = (),
    ignore_invalid_weights: bool = False,
    **options: Any,
) -> Any:
    """Builds a model by bert4keras and loads a checkpoint, with the arguments of both libraries.

    kcrf loads the checkpoints of BERT's family; any other model is built and loaded by bert4keras alone. Paths in
    `skip` are the names of bert4keras' variables, as in `Transformer-0-FeedForward/dense/kernel`.
    """
    refused = [name for name in KERAS_3_OPTIONS if options.get(name)]
    if refused:
        raise ValueError(f"{' and '.join(refused)} need Keras 3: bert4keras builds the model here. Received: {options}")
    given, model = model, model or "bert"
    if model not in FAMILIES:
        if skip_top_layers or skip_pooler or skip:
            raise ValueError(f"`skip` and its like need a model of {sorted(FAMILIES)}. Received: model={model!r}")
        others = {"application": application, "return_keras_model": return_keras_model, **options}
        others |= {"config_path": config_path, "checkpoint_path": checkpoint_path, "model": model}
        return _build(ignore_invalid_weights=ignore_invalid_weights, **others)
    if checkpoint_path is None and (skip_top_layers or skip):
        raise ValueError("`skip_top_layers` and `skip` need a checkpoint. Received: checkpoint_path=None")
    settings = {**read_config(config_path, given), **options}
    if absent := _NOT_THERE & {model, settings.get("model_type")}:
        raise ValueError(f"bert4keras has no {absent.pop()} and builds the model: use Keras 3. Received: {config_path}")
    if settings.get("layer_norm_eps", 1e-12) != 1e-12:
        raise ValueError(f"bert4keras has layer_norm_eps=1e-12 alone. Received: {settings['layer_norm_eps']}")
    settings["hidden_act"] = ACTIVATIONS.get(settings.get("hidden_act", "gelu"), settings.get("hidden_act", "gelu"))
    transformer = _build(model=model, application=application, return_keras_model=False, **settings)
    shared = {name: value for name, value in options.items() if name in (*ARCHITECTURE, *ALIASES, *SHARED_OPTIONS)}
    config = {"model": model, **encoder_settings(config_path, given, shared)}
    variables, loaded = _describe(transformer, config), set()
    if checkpoint_path is not None:
        skips = (skip_top_layers, skip_pooler, skip, ignore_invalid_weights)
        tokens = (transformer.keep_tokens, transformer.compound_tokens)
        loaded = load_checkpoint(transformer.model, checkpoint_path, transformer.prefix, *skips, *tokens).loaded
    # bert4keras' one unseeded initializer repeats its numbers
    for path in set(variables) - loaded:
        variables[path].assign(fresh_value(path, variables[path].shape, config["initializer_range"]))
    return transformer.model if return_keras_model else transformer


def _build(**settings: Any) -> Any:
    try:
        from bert4keras import models
    except ImportError as error:
        raise ImportError(f"On tf_keras bert4keras builds models; PORTING.md, The old host ({error})") from None
    with warnings.catch_warnings():
        # tf_keras warns that query, key and value, which share an initializer, will be equal. Fresh values differ.
        warnings.filterwarnings("ignore", "The initializer TruncatedNormal is unseeded", UserWarning)
        return models.build_transformer_model(**settings)


def _describe(transformer: Any, config: dict[str, Any]) -> dict[str, Any]:
    """Puts an `EncoderRecord` on the token embedding. Returns the variables of the encoder by path."""
    variables, names = {}, {}
    for layer, google_names in transformer.variable_mapping().items():
        if transformer.prefixed(layer) in transformer.layers:
            weights = transformer.layers[transformer.prefixed(layer)].trainable_weights
            variables.update({path_of(w): w for w in weights})
            names.update(zip(map(path_of, weights), google_names, strict=False))
    embedding = transformer.layers[transformer.prefixed("Embedding-Token")]
    embedding.encoder_record = EncoderRecord(config, names)
    return variables
