"""The BERT of a run, with or without its pretrained weights."""

from kcrf.layers import LayerPooling
from kcrf.models import build_transformer_model

__all__ = ["build_bert", "build_bert_states", "layer_numbers"]


def build_bert(settings, reader, checkpoint, **options):
    """The BERT that a run is built on.

    Args:
        settings: `Settings`, with a `bert`.
        reader: The `PieceReader` with its configuration.
        checkpoint: Whatever `build_transformer_model` loads, or None to load nothing.
        **options: As for `build_transformer_model`, such as `with_pool`.

    Returns:
        A `keras.Model`.
    """
    return build_transformer_model(
        reader.config,
        checkpoint,
        model=reader.config["model_type"],
        skip_top_layers=0 if checkpoint is None else settings.skip_top_layers,
        skip_pooler=settings.skip_pooler or None,
        mixout=settings.mixout,
        **options,
    )


def build_bert_states(settings, reader, checkpoint):
    """A BERT and its hidden vectors, `(batch, time, features)`: of the last layer, or of `settings.layers` combined."""
    if settings.layers == "last":
        bert = build_bert(settings, reader, checkpoint)
        return bert, bert.output
    bert = build_bert(settings, reader, checkpoint, output_layers=layer_numbers(settings, reader))
    return bert, LayerPooling(settings.layer_pooling, name="Layers")(bert.output)


def layer_numbers(settings, reader):
    """The numbers of the layers that are read, for "last" too, from 0 for the lowest."""
    count = reader.config["num_hidden_layers"]
    if settings.layers == "all":
        return list(range(count))
    numbers = [-1] if settings.layers == "last" else list(map(int, settings.layers.split(",")))
    if not all(-count <= number < count for number in numbers) or len({n % count for n in numbers}) < len(numbers):
        raise ValueError(f"`layers` must be different ones of the {count} layers. Received: layers={settings.layers!r}")
    return [number % count for number in numbers]
