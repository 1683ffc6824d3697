"""Builds the BERT of a run, with or without its pretrained weights."""

from typing import Any, NamedTuple

from kcrf.backend import keras, ops
from kcrf.layers import LayerPooling, TransformersEncoder
from kcrf.layers.dense import ResidualAdd
from kcrf.models import build_transformer_model
from kcrf.networks.embeddings import embed_vectors
from kcrf.runs import SettingError


class Bert(NamedTuple):
    """The symbolic tensors of a BERT."""

    inputs: dict[str, Any]  # by name, (batch, time, ...)
    states: list[Any]  # the outputs of its layers, (batch, time, features), from the lowest
    pooled: Any  # the output of its pooler, (batch, features), or None
    padding: int  # the id of the padding token

    @property
    def mask(self) -> Any:
        """Whether a position is not padding, `(batch, time)` bool: True for all pieces, even without a tag."""
        return ops.not_equal(self.inputs["Input-Token"], self.padding)


def build_bert(model: Any, reader: Any, checkpoint: Any, with_pool: bool = False) -> Bert:
    """Builds the BERT of a run from a `ModelConfig`, with new weights if `checkpoint` is None."""
    if "transformers" in reader.config:
        return _of_transformers(model, reader.config, checkpoint, with_pool)
    bert = build_transformer_model(
        reader.config,
        checkpoint,
        model=reader.config["model_type"],
        return_keras_model=False,
        skip_top_layers=0 if checkpoint is None else model.skip_top_layers,
        skip_pooler=model.skip_pooler or None,
        mixout=model.mixout,
        with_pool=with_pool,
    )
    inputs, padding = {tensor.name: tensor for tensor in bert.inputs}, bert.config["masked_token_id"]
    if model.vectors is None or model.vectors_at == "top":
        return Bert(inputs, bert.hidden_states, bert.outputs[0] if with_pool else None, padding)
    vectors = embed_vectors(inputs, reader.vectors, model.train_vectors)
    options = {"use_bias": False, "kernel_initializer": "zeros"}  # so that training starts from the pretrained BERT
    projected = keras.layers.Dense(bert.hidden_size, name="Vectors-Projection", **options)(vectors)
    states = [ResidualAdd(name="Vectors-Add")([bert.embedded, projected])]
    for index in range(bert.num_hidden_layers):
        states.append(bert.apply_main_layers(states[-1], index))
    return Bert(inputs, states[1:], bert.apply_pooler(states[-1]) if with_pool else None, padding)


def _of_transformers(model: Any, config: dict[str, Any], checkpoint: Any, with_pool: bool) -> Bert:
    """Builds an encoder that has no layers here, by `transformers` on PyTorch."""
    at_embeddings = model.vectors is not None and model.vectors_at == "embeddings"
    refused = {"mixout": model.mixout, "pool": with_pool and "pooler", "vectors_at": at_embeddings and "embeddings"}
    for name, value in refused.items():
        if value:
            raise SettingError(name, f"needs another value for {config['model_type']!r} of transformers", value)
    depth, padding = config["num_hidden_layers"], config["masked_token_id"]
    encoder = TransformersEncoder(
        config["transformers"],
        checkpoint,
        pad_token_id=padding,
        layers=depth,
        skip_top_layers=0 if checkpoint is None else model.skip_top_layers,
        output_layers=range(depth),
        name="Encoder",
    )
    names = ["Input-Token", "Input-Segment"][: 1 + (config["type_vocab_size"] > 1)]
    inputs = {name: keras.Input((None,), dtype="int32", name=name) for name in names}
    return Bert(inputs, encoder(*inputs.values()), None, padding)


def combine_states(states: list[Any], model: Any) -> Any:
    """The hidden vectors of a BERT, `(batch, time, features)`: of its last layer, or combined from `read_layers`."""
    if model.read_layers == "last":
        return states[-1]
    chosen = [states[number] for number in layer_numbers(model.read_layers, len(states))]
    return LayerPooling(model.layer_pooling, name="Layers")(chosen)


def layer_numbers(read_layers: str, count: int) -> list[int]:
    """The numbers of the layers to read, from 0 for the lowest."""
    if read_layers == "all":
        return list(range(count))
    numbers = [-1] if read_layers == "last" else list(map(int, read_layers.split(",")))
    if not all(-count <= number < count for number in numbers) or len({n % count for n in numbers}) < len(numbers):
        raise SettingError("read_layers", f"must be different ones of the {count} layers", read_layers)
    return [number % count for number in numbers]
