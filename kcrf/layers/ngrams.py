"""Emission scores of a linear model: each feature of a position has one score for each tag."""

from typing import Any, Unpack

import numpy as np

from kcrf.backend import Tensor, TensorLike, keras, ops
from kcrf.backend.hints import LayerOptions
from kcrf.layers.learning_rates import LayerWithMultiplier, with_learning_rate_multiplier


@keras.saving.register_keras_serializable(package="kcrf")
class NGramScores(LayerWithMultiplier):
    """The sum of the scores of the features at each position, one score for each tag, float32 `(batch, time, tags)`.

    With a CRF on top this is the model of CRFsuite; added to the emissions of a neural encoder it is "wide and deep"
    (Cheng et al., 2016, https://arxiv.org/abs/1606.07792). The features: `kcrf.readers.CharacterNGrams`, `WordNGrams`.

    Args:
        tags: The number of tags.
        buckets: The number of features. Inputs are integers `(batch, time, features)` below it; 0 is no feature.
        dropout: The fraction of the features that training omits. Defaults to 0.5.
        lr_multiplier: How many times faster the scores learn than the rest of the model. Defaults to 10.
        seed: The seed of the dropout. Defaults to a random one.

    >>> layer = NGramScores(tags=4, buckets=2**14)
    >>> tuple(layer(np.array([[[7, 9], [9, 0]]])).shape)
    (1, 2, 4)
    """

    def __init__(
        self,
        tags: int,
        buckets: int,
        dropout: float = 0.5,
        lr_multiplier: float = 10,
        seed: int | None = None,
        **kwargs: Unpack[LayerOptions],
    ) -> None:
        super().__init__(lr_multiplier, **kwargs)
        for name, value in (("tags", tags), ("buckets", buckets)):
            if not isinstance(value, int | np.integer) or value < 1:
                raise ValueError(f"`{name}` must be a positive integer. Received: {name}={value!r}")
        if not 0 <= dropout < 1:
            raise ValueError(f"`dropout` must be a probability, 0 <= dropout < 1. Received: dropout={dropout}")
        self.tags, self.buckets, self.dropout, self.seed = int(tags), int(buckets), dropout, seed
        self._omit = keras.layers.Dropout(dropout, seed=seed, dtype=self.dtype_policy)
        self.supports_masking = True

    def build(self, input_shape: Any) -> None:
        if len(input_shape) != 3:
            raise ValueError(f"NGramScores needs inputs (batch, time, features). Received: {tuple(input_shape)}")
        initializer = keras.initializers.get("zeros")
        self._stored = self._add_divided_weight("scores", (self.buckets, self.tags), initializer)
        self.built = True

    @property
    def scores(self) -> Tensor:
        """The score of each feature for each tag, `(buckets, tags)`."""
        return ops.convert_to_tensor(self._stored) * self.multiplier

    def call(self, inputs: TensorLike, training: bool = False) -> Tensor:
        self._trained = self._trained or bool(training)
        scores = ops.take(self._stored, inputs, axis=0)  # (batch, time, features, tags)
        scores = with_learning_rate_multiplier(scores, self.multiplier)
        weights = ops.cast(ops.not_equal(inputs, 0), "float32")  # (batch, time, features)
        return ops.sum(scores * self._omit(weights, training=training)[..., None], axis=2)

    def compute_output_shape(self, input_shape: Any) -> Any:
        return (*input_shape[:-1], self.tags)

    def compute_output_spec(self, inputs: Any, training: bool = False) -> Any:
        return keras.KerasTensor(self.compute_output_shape(inputs.shape), dtype="float32")

    def get_config(self) -> dict[str, Any]:
        own = {"tags": self.tags, "buckets": self.buckets, "dropout": self.dropout, "seed": self.seed}
        return {**super().get_config(), **own}
