"""BERT and its relatives, built from a configuration file and loaded from a checkpoint, as bert4keras builds them.

Credit for the recipe, the names of layers and arguments: bert4keras, https://github.com/bojone/bert4keras (Apache-2.0).
"""

import os
from collections.abc import Iterable, Mapping
from contextlib import nullcontext
from os import PathLike
from typing import Any, cast

from kcrf import layers
from kcrf.backend import Model, Tensor, TensorLike, keras, replaced_on_old_host
from kcrf.checkpoints.configs import FAMILIES, LIKE_BERT, encoder_settings
from kcrf.layers.dense import BiasAdd, Dropout, ResidualAdd, TruncatedNormal, activation_of, dense, hidden_activation
from kcrf.layers.embeddings import FirstRowEmbedding
from kcrf.layers.pooling import FirstToken
from kcrf.models.encoders import checkpoint_names, complete_sources, encoder_record, variables_by_path
from kcrf.models.loading import load_checkpoint
from kcrf.models.saving import save_weights_as_checkpoint
from kcrf.tokenizers.vocabularies import padding_id, tokenizer_files

_SIZES = (
    *("attention_head_size", "attention_key_size", "embedding_size", "hidden_size", "intermediate_size"),
    *("num_attention_heads", "num_hidden_layers", "vocab_size"),
)

ONLY_ENCODERS = (
    "kcrf has only encoders of the BERT family; bert4keras, together with kcrf (PORTING.md, The old host), and "
    "keras-hub have others"
)


@replaced_on_old_host("kcrf.bert4keras.models_of_bert4keras")
def build_transformer_model(
    config_path: str | PathLike[str] | dict[str, Any] | None = None,
    checkpoint_path: str | PathLike[str] | Mapping[str, Any] | None = None,
    model: str | type | None = None,
    application: str = "encoder",
    return_keras_model: bool = True,
    skip_top_layers: int = 0,
    skip_pooler: bool | None = None,
    skip: Iterable[str] = (),
    ignore_invalid_weights: bool = False,
    remat: bool = False,
    **options: Any,
) -> Model:
    """Builds an encoder of the BERT family and loads a checkpoint, if one is given.

    The inputs are `Input-Token` and `Input-Segment`, ints `(batch, time)`. A model with one kind of segment or none, as
    XLM-R and DistilBERT, has no `Input-Segment`. The tokenizer's files beside the configuration name the padding token;
    without them it is `pad_token_id` of the configuration, 0 for BERT. The output is the last hidden state
    `(batch, time, hidden_size)` with the padding mask, or the outputs of the heads. Layers have bert4keras' names:
    `Transformer-11-FeedForward-Norm` is the top of a BERT-base.

    Args:
        config_path: Google's `bert_config.json`, Hugging Face's `config.json`, a folder that holds one, or a dict with
            the entries of one. Defaults to `None`: the configuration in the folder `checkpoint_path`; without one the
            arguments must describe the model.
        checkpoint_path: Whatever `kcrf.checkpoints.open_checkpoint` opens. Defaults to `None`: the checkpoint in the
            folder `config_path`, if it holds one. Otherwise the weights are random, and a line says so.
        model: "bert", "roberta" (wwm, MacBERT and others with BERT's names, as in bert4keras), "ernie", "albert",
            "electra", "nezha", "xlm-roberta" (also RoBERTa and CamemBERT of Hugging Face) or "distilbert". If the
            configuration names another `model_type`, that is built, and a line says so. Defaults to `None`: what the
            configuration says, else "bert".
        application: "encoder".
        return_keras_model: `False` returns the `Transformer`, which has `.model`. Defaults to `True`.
        skip_top_layers: Number of top layers that are freshly initialized instead of loaded, an int, as in Zhang et al.
            2021, "Revisiting Few-sample BERT Fine-tuning", https://arxiv.org/abs/2006.05987. Defaults to 0.
        skip_pooler: Whether the pooler is freshly initialized too. Defaults to `skip_top_layers > 0`.
        skip: More weights not to load: regular expressions, searched in variable paths such as
            `Transformer-0-FeedForward/output/kernel` and in checkpoint names. Defaults to none.
        ignore_invalid_weights: Whether to accept a checkpoint that does not fit. Weights that it lacks, or has in
            another shape, then keep their initial values, and arrays that the encoder lacks are not used. Defaults to
            `False`: both raise an error.
        remat: Whether training keeps only the inputs of attention and feed-forward layers, and computes the rest again
            for the gradient: less memory, more time. It is not saved with the model. Defaults to `False`.
        **options: `with_pool`, `with_nsp`, `with_mlm` (`True`, or the activation of the head; Electra has
            `with_discriminator` instead), `keep_tokens`, `compound_tokens`, `sequence_length`,
            `hierarchical_position`, `custom_position_ids`, `shared_segment_embeddings`, `layers`, `prefix`, `name` as
            in bert4keras; `mixout=p` (see `kcrf.layers.dense.MixoutDense`; dropout is then 0 unless given);
            `output_layers=[0, -1, "embeddings"]`, the hidden states to return, in a list, before the outputs of heads;
            and any entry of the configuration: `hidden_act` ("gelu" by erf, "gelu_tanh"), `dropout_rate`,
            `attention_dropout_rate`, `max_position`, `segment_vocab_size`, `layer_norm_eps`, ...

    Returns:
        A `keras.Model`. If a checkpoint was loaded, `model.kcrf_load_report` is its `LoadReport`.

    Raises:
        ValueError: An unknown model or argument, a configuration that lacks an entry or asks for something that is not
            supported, more top layers to skip than there are, or any for ALBERT, whose layers share their weights.
        FileNotFoundError: There is no such file.

    >>> sizes = dict(vocab_size=9, hidden_size=4, num_hidden_layers=2, num_attention_heads=2, intermediate_size=8)
    >>> build_transformer_model(**sizes).output_shape
    (None, None, 4)
    """
    if application != "encoder":
        raise ValueError(f"`application` must be 'encoder': {ONLY_ENCODERS}. Received: application={application!r}")
    if model is not None and model not in FAMILIES:
        raise ValueError(f"`model` must be one of {sorted(FAMILIES)}: {ONLY_ENCODERS}. Received: model={model!r}")
    config_path, checkpoint_path = complete_sources(config_path, checkpoint_path)
    settings = _settings(config_path, model, options)
    transformer = Transformer(**settings, remat=remat)
    transformer.remember_tokenizer(config_path)
    if checkpoint_path is not None:
        skips = {"skip_top_layers": skip_top_layers, "skip_pooler": skip_pooler, "skip": skip}
        skips["ignore_invalid_weights"] = ignore_invalid_weights
        transformer.load_weights_from_checkpoint(checkpoint_path, **skips)
    elif skip_top_layers or skip:
        raise ValueError("`skip_top_layers` and `skip` need a checkpoint. Received: checkpoint_path=None")
    elif isinstance(config_path, (str, os.PathLike)):
        print(f"{config_path}: a configuration without weights, so all weights are random")
    if settings["mixout"]:  # its dropout of 0 is of this training alone: `save_pretrained` writes the configured rates
        configured = encoder_settings(config_path, model, {**options, "mixout": 0.0})
        record = encoder_record(transformer.model, settings["prefix"])
        record.config |= {name: configured[name] for name in ("dropout_rate", "attention_dropout_rate")}
    return transformer.model if return_keras_model else cast(Model, transformer)


def _settings(config_path: Any, model: Any, options: dict[str, Any]) -> dict[str, Any]:
    settings = encoder_settings(config_path, model, options)
    if settings["model"] in LIKE_BERT and settings["task_vocab_size"]:
        settings["model"] = "ernie"
    settings["hidden_act"] = hidden_activation(settings["hidden_act"])
    if isinstance(config_path, (str, os.PathLike)) and "pad_token_id" not in options:
        settings["masked_token_id"] = padding_id(config_path, settings["masked_token_id"])
    return settings


class Transformer:
    """An encoder with its layers by name; `build_transformer_model(..., return_keras_model=False)` returns one.

    `model` is the `keras.Model`, `config` a dict from which the encoder can be built again, and `hidden_states`,
    `inputs` and `outputs` are lists of symbolic tensors.
    """

    def __init__(
        self,
        model: str,
        layers: Any = None,
        output_layers: Any = None,
        name: str | None = None,
        keep_tokens: Any = None,
        compound_tokens: Any = None,
        remat: bool = False,
        **settings: Any,
    ) -> None:
        self._remat = remat
        self.family = FAMILIES[model]
        self.config = {"model": model, **settings}
        self.layers = {} if layers is None else layers
        self.keep_tokens, self.compound_tokens = keep_tokens, compound_tokens
        self._has_weights = bool(self.layers)  # whether the weights are more than initial values
        self.inputs = self._inputs()
        self.embedded = self.apply_embeddings(self.inputs)
        self.hidden_states = []
        for index in range(settings["num_hidden_layers"]):
            below = self.hidden_states[-1] if index else self.embedded
            self.hidden_states.append(self.apply_main_layers(below, index))
        if isinstance(output_layers, int | str):
            raise ValueError(f"`output_layers` must be a list, as in [-1]. Received: output_layers={output_layers!r}")
        chosen = [self._hidden_state(index) for index in (() if output_layers is None else output_layers)]
        self.outputs = chosen + self._heads() or [self.hidden_states[-1]]
        single = len(self.outputs) == 1 and output_layers is None
        self.model = keras.Model(self.inputs, self.outputs[0] if single else self.outputs, name=name)

    def load_weights_from_checkpoint(
        self, checkpoint_path: str | PathLike[str] | Mapping[str, Any] | None, **options: Any
    ) -> Any:
        """Loads a checkpoint with the options of `build_transformer_model`. Returns the `LoadReport`.

        If the checkpoint does not fit or is damaged, the weights stay as they are.
        """
        tokens = {"keep_tokens": self.keep_tokens, "compound_tokens": self.compound_tokens}
        options = {"prefix": self.config["prefix"], "keep_old": self._has_weights, **tokens, **options}
        report = load_checkpoint(self.model, checkpoint_path, **options)
        self._has_weights = True
        return report

    def save_weights_as_checkpoint(self, filename: str | PathLike[str]) -> None:
        """Writes the weights in Google's TensorFlow format. Needs TensorFlow."""
        save_weights_as_checkpoint(self.model, filename, prefix=self.config["prefix"])

    def remember_tokenizer(self, config_path: str | PathLike[str] | dict[str, Any] | None) -> None:
        """Remembers the tokenizer next to a configuration for `save_pretrained`, unless tokens are cut or added."""
        if not isinstance(config_path, (str, os.PathLike)) or self.keep_tokens or self.compound_tokens:
            return
        encoder_record(self.model, self.config["prefix"]).tokenizer = tokenizer_files(config_path)

    def apply(self, layer: Any, inputs: TensorLike, name: str, **arguments: Any) -> Tensor:
        """Calls the layer of this name. If there is none yet, `layer(name=..., **arguments)` makes it."""
        name = self.config["prefix"] + name
        if name not in self.layers:
            recomputed = self._remat and layer in (layers.MultiHeadAttention, layers.FeedForward)
            with keras.RematScope("list_of_layers", layer_names=[name]) if recomputed else nullcontext():
                self.layers[name] = layer(name=name, **arguments)
        return self.layers[name](inputs)

    def variable_mapping(self) -> dict[str, Any]:
        """The names in Google's checkpoints of the encoder's variables: a dict by path."""
        return checkpoint_names(encoder_record(self.model, self.config["prefix"]), variables_by_path(self.model))

    def __getattr__(self, name: str) -> Any:
        """Sizes by bert4keras' names: `hidden_size`, `num_hidden_layers`, `vocab_size` and others of `config`."""
        if name in _SIZES:
            return self.config[name]
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    @property
    def input(self) -> Tensor:
        """The input of the model, a list where there are several."""
        return self.model.input

    @property
    def output(self) -> Tensor:
        """The output of the model, a list where there are several."""
        return self.model.output

    @property
    def initializer(self) -> Tensor:
        """A new initializer as in the encoder, for layers on top of it."""
        return TruncatedNormal(stddev=self.config["initializer_range"])

    def _dense(self, inputs: Any, units: int, name: str, activation: Any = None) -> Any:
        arguments = {"mixout": self.config["mixout"], "kernel_initializer": self.initializer}
        return self.apply(dense, inputs, name, units=units, activation=activation, **arguments)

    def _norm(self, inputs: Any, name: str) -> Any:
        return self.apply(layers.LayerNormalization, inputs, name, epsilon=self.config["layer_norm_eps"])

    def _dropout(self, inputs: Any, name: str) -> Any:
        rate = self.config["dropout_rate"]
        return self.apply(Dropout, inputs, name, rate=rate) if rate else inputs

    def _inputs(self) -> list[Any]:
        names = ["Input-Token"] + ["Input-Segment"] * (self.config["segment_vocab_size"] > 1)
        names += ["Input-Position"] * bool(self.config["custom_position_ids"])
        shape = (self.config["sequence_length"],)
        return [keras.Input(shape, dtype="int32", name=self.config["prefix"] + name) for name in names]

    def apply_embeddings(self, inputs: TensorLike) -> Tensor:
        """The embeddings of a list of inputs like `Transformer.inputs`, by the layers of this encoder."""
        config, inputs, count = self.config, list(inputs), self.config["segment_vocab_size"]

        def table(rows: int) -> dict[str, Any]:  # with an initializer of its own: others would draw the same values
            sizes = {"input_dim": rows, "output_dim": config["embedding_size"]}
            return {**sizes, "embeddings_initializer": self.initializer}

        x = self.apply(
            layers.Embedding,
            inputs.pop(0),
            "Embedding-Token",
            mask_zero=True,
            padding_id=config["masked_token_id"],
            transformer_config=config,
            **table(config["vocab_size"]),
        )
        if count == 1:
            x = self.apply(FirstRowEmbedding, x, "Embedding-Segment", **table(1))
        elif count > 1:
            name = "Embedding-Token" if config["shared_segment_embeddings"] else "Embedding-Segment"
            segments = self.apply(keras.layers.Embedding, inputs.pop(0), name, **table(count))
            x = self.apply(ResidualAdd, [x, segments], "Embedding-Token-Segment")
        if not self.family.relative:
            x = self.apply(
                layers.PositionEmbedding,
                [x, inputs.pop(0)] if config["custom_position_ids"] else x,
                "Embedding-Position",
                hierarchical=config["hierarchical_position"],
                custom_position_ids=config["custom_position_ids"],
                padding_id=config["pad_token_id"] if self.family.counts_tokens else None,
                **table(config["max_position"]),
            )
        if config.get("task_vocab_size"):
            x = self.apply(FirstRowEmbedding, x, "Embedding-Task", **table(config["task_vocab_size"]))
        x = self._dropout(self._norm(x, "Embedding-Norm"), "Embedding-Dropout")
        x = self._dense(x, config["hidden_size"], "Embedding-Mapping") if config["embedding_mapping"] else x
        if self.family.relative:
            size, name = config["attention_key_size"], "Embedding-Relative-Position"
            self._positions = self.apply(layers.RelativePositionEmbedding, x, name, output_dim=size)
        return x

    def apply_main_layers(self, inputs: TensorLike, index: int) -> Tensor:
        """The output of the transformer layer of this index for other hidden states `(batch, time, hidden_size)`.

        The inputs are those with which `apply_embeddings` was called last.
        """
        x, config, block = inputs, self.config, "Transformer-" if self.family.shared else f"Transformer-{index}-"
        arguments = {"mixout": config["mixout"], "kernel_initializer": self.initializer}
        attended = self.apply(
            layers.MultiHeadAttention,
            [x, self._positions] if self.family.relative else x,
            block + "MultiHeadSelfAttention",
            heads=config["num_attention_heads"],
            head_size=config["attention_head_size"],
            key_size=config["attention_key_size"],
            out_dim=config["hidden_size"],
            attention_dropout=config["attention_dropout_rate"],
            **arguments,
        )
        x = self._residual(x, attended, block + "MultiHeadSelfAttention")
        arguments |= {"units": config["intermediate_size"], "activation": activation_of(config["hidden_act"])}
        transformed = self.apply(layers.FeedForward, x, block + "FeedForward", **arguments)
        return self._residual(x, transformed, block + "FeedForward")

    def _residual(self, x: Any, change: Any, name: str) -> Any:
        x = self.apply(ResidualAdd, [x, self._dropout(change, name + "-Dropout")], name + "-Add")
        return self._norm(x, name + "-Norm")

    def _hidden_state(self, index: int) -> Any:
        count = len(self.hidden_states)
        if index == "embeddings":
            return self.embedded
        if not isinstance(index, int) or not -count <= index < count:
            raise ValueError(
                f"`output_layers` takes 'embeddings' and the indices of {count} layers. Received: {index!r} among them"
            )
        return self.hidden_states[index]

    def _heads(self) -> Any:
        config, x, outputs = self.config, self.hidden_states[-1], []
        if config["with_pool"]:
            outputs.append(self.apply_pooler(x))
        if config["with_mlm"]:
            activation = activation_of(self.family.head_activation or config["hidden_act"])
            y = self._norm(self._dense(x, config["embedding_size"], "MLM-Dense", activation), "MLM-Norm")
            y = self.layers[config["prefix"] + "Embedding-Token"](y, reverse=True)
            y, activation = self.apply(BiasAdd, y, "MLM-Bias"), _head_activation("softmax", config["with_mlm"])
            outputs.append(self.apply(keras.layers.Activation, y, "MLM-Activation", activation=activation))
        if config["with_discriminator"]:
            y = self._dense(x, config["hidden_size"], "Discriminator-Dense", activation_of(config["hidden_act"]))
            activation = _head_activation("sigmoid", config["with_discriminator"])
            outputs.append(self._dense(y, 1, "Discriminator-Prediction", activation))
        return outputs

    def apply_pooler(self, x: TensorLike) -> Tensor:
        """The output of the pooler, `(batch, hidden_size)`, or with `with_nsp` the NSP probabilities, `(batch, 2)`."""
        config = self.config
        x = self.apply(FirstToken, x, "Pooler")
        x = self._dense(x, config["hidden_size"], "Pooler-Dense", _head_activation("tanh", config["with_pool"]))
        activation = _head_activation("softmax", config["with_nsp"])
        return self._dense(x, 2, "NSP-Proba", activation) if config["with_nsp"] else x


def _head_activation(default: Any, option: Any) -> Any:
    """The activation of a head: `with_mlm=True` means its default, `with_mlm="linear"` a linear one."""
    return default if option is True else option
