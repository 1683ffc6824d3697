"""The conditional random field as a Keras layer."""

from typing import Any, Unpack

import numpy as np

from kcrf import backend, crf
from kcrf.backend import Tensor, TensorLike, backend_name, check_if, constant_beside, keras, ops
from kcrf.backend.hints import KeyedLayerOptions, LayerOptions
from kcrf.chains import Posterior, span_probabilities
from kcrf.crf.functions import log_sums_onward
from kcrf.layers import checks
from kcrf.layers.accuracies import DenseAccuracy, SparseAccuracy, ViterbiAccuracy
from kcrf.layers.chain_layer import BoundToLayer, ChainLayer, real_positions
from kcrf.layers.labels import has_rank
from kcrf.layers.learning_rates import with_learning_rate_multiplier
from kcrf.layers.losses import DenseLoss, SparseLoss
from kcrf.tags import TagScheme


@keras.saving.register_keras_serializable(package="kcrf")
class ConditionalRandomField(ChainLayer):
    """A linear-chain CRF on top of emission scores, trained by its own loss.

    The layer returns its inputs in float32, with masked positions at -inf: its losses and decoders, which are methods,
    read the mask from there. It returns no Keras mask.

    Args:
        lr_multiplier: How many times faster than the rest of the model the CRF learns, exact under Adam and SGD. On a
            pretrained encoder it must be 100 to 1000 (Su Jianlin, kexue.fm/archives/7196);
            `suggest_lr_multiplier(learning_rate, steps)` gives a good value. Defaults to 1.
        use_boundary: Whether to learn scores for the first and the last tag of a sentence. Defaults to False.
        constraints: A `kcrf.tags.TagScheme`. Starts, transitions and ends that it forbids have probability 0 in the
            loss and in decoding, and labels that break it are errors in `fit`. Defaults to None: nothing is forbidden.
        transition_initializer: Initializer of the transition scores, before they are divided by `lr_multiplier`.
            Defaults to "glorot_uniform", as in bert4keras.

    Shapes:
        Inputs `(batch, time, tags)` and, by Keras or as `mask=`, a mask `(batch, time)`; outputs as the inputs.

    Weights:
        `trans (tags, tags)` and with `use_boundary` `start`, `end (tags,)`, stored divided by `lr_multiplier`.

    >>> inputs = keras.Input((None,), dtype="int32")
    >>> x = keras.layers.Embedding(100, 16, mask_zero=True)(inputs)
    >>> layer = ConditionalRandomField(lr_multiplier=100)
    >>> model = keras.Model(inputs, layer(keras.layers.Dense(4)(x)))
    >>> model.compile("adam", loss=layer.sparse_loss, metrics=[layer.sparse_accuracy])
    """

    def __init__(
        self,
        lr_multiplier: float = 1,
        use_boundary: bool = False,
        constraints: TagScheme | None = None,
        transition_initializer: Any = "glorot_uniform",
        **kwargs: Unpack[KeyedLayerOptions],
    ) -> None:
        checks.refuse_arguments_of_other_layers(kwargs)
        super().__init__(lr_multiplier, **kwargs)
        self.use_boundary = use_boundary
        self.constraints = _as_scheme(constraints)
        self.transition_initializer = keras.initializers.get(transition_initializer)
        self._scores_are_used = False  # by a loss, a metric or a decoder
        self._labels_are_checked = False

    def build(self, input_shape: Any) -> None:
        if len(input_shape) != 3 or input_shape[-1] is None:
            needed = f"`{self.name}` needs inputs of shape (batch, time, tags)"
            raise ValueError(f"{needed}. Received: shape={tuple(input_shape)}")
        size = input_shape[-1]
        if self.constraints is not None and len(self.constraints) != size:
            raise ValueError(
                f"`{self.name}` needs one score for each of the {len(self.constraints)} tags of its constraints "
                f"{self.constraints.labels}. Received: shape={tuple(input_shape)}"
            )
        if not self.is_loaded:
            checks.warn_of_tags_as_multiplier(self, size)
        self._add_transitions(size)
        if self.use_boundary:
            self._start = self._add_scores("start", (size,), "zeros")
            self._end = self._add_scores("end", (size,), "zeros")
        self.built = True

    def __call__(self, inputs: Any, *args: Any, **kwargs: Any) -> Tensor:
        if not self.is_loaded:
            checks.warn_of_inputs(self, inputs)
            if not args and kwargs.get("mask") is None and getattr(inputs, "_keras_mask", None) is None:
                checks.warn_of_unused_mask(self, inputs)
        return super().__call__(inputs, *args, **kwargs)

    def call(self, inputs: Any, mask: Any = None, training: bool = False) -> Any:
        outputs = super().call(inputs, mask=mask, training=training)
        if not training and self._trained and self.trainable and not self._scores_are_used:
            checks.warn_once(self, "unused scores")
        return outputs

    def check_labels(self, y_true: TensorLike, y_pred: TensorLike) -> None:
        """Warns if the labels `(batch, time)` of the first batch with unknown ends look padded, without a mask."""
        is_first = backend_name() != "torch" or not (self._labels_are_checked or backend.is_tracing())
        if is_first and has_rank(y_true) and len(y_true.shape) == 2:
            self._labels_are_checked |= backend_name() == "torch"  # elsewhere a compiled step asks for each batch
            unknown = ops.any(y_true[:, :1] < 0) | ops.any(y_true[:, -1:] < 0)
            check_if(unknown & ops.all(real_positions(y_pred)), lambda: backend.on_host(self._look_at_labels, y_true))

    def _look_at_labels(self, labels: np.ndarray) -> None:
        if backend_name() == "torch" or not self._labels_are_checked:
            self._labels_are_checked = True
            checks.warn_of_padding(self, [], labels)

    def compute_output_spec(self, inputs: Any, mask: Any = None, training: bool = False) -> Any:
        if not self.is_loaded and backend.mask_ignores_inputs(mask):
            checks.warn_once(self, "mask")
        return super().compute_output_spec(inputs, mask=mask, training=training)

    def _add_transitions(self, size: int) -> None:
        self._trans = self._add_scores("trans", (size, size))

    def _add_scores(self, name: str, shape: Any, initializer: Any = None) -> Any:
        return self._add_divided_weight(name, shape, keras.initializers.get(initializer) or self.transition_initializer)

    @property
    def trans(self) -> Tensor:
        """The transition scores, `(tags, tags)`, from row to column, `crf.FORBIDDEN` where forbidden."""
        return self._effective(self._trans, "allowed_transitions")

    @property
    def start(self) -> Tensor | None:
        """The scores of the first tag, `(tags,)`, or None without `use_boundary`."""
        return self._effective(self._start, "allowed_starts") if self.use_boundary else None

    @property
    def end(self) -> Tensor | None:
        """The scores of the last tag, `(tags,)`, or None without `use_boundary`."""
        return self._effective(self._end, "allowed_ends") if self.use_boundary else None

    def _effective(self, stored: Any, allowed: Any) -> Any:
        self._scores_are_used = True
        scores = with_learning_rate_multiplier(ops.convert_to_tensor(stored), self.multiplier)
        may = None if self.constraints is None else constant_beside(scores, getattr(self.constraints, allowed))
        return scores if may is None else ops.where(may, scores, constant_beside(scores, np.float32(crf.FORBIDDEN)))

    def scores(self) -> tuple[Tensor, Tensor | None, Tensor | None]:
        """The transitions `(tags, tags)` and the starts and ends `(tags,)`, each None if all tags score the same."""
        trans, start, end = self.trans, self.start, self.end
        if self.constraints is not None and not self.use_boundary:
            ends = self.constraints.allowed_starts, self.constraints.allowed_ends
            start, end = (constant_beside(trans, np.where(x, np.float32(0), np.float32(crf.FORBIDDEN))) for x in ends)
        return trans, start, end

    @property
    def sparse_loss(self) -> SparseLoss:
        """The loss for tags as ints, `(y_true (batch, time), y_pred) -> (batch,)`: minus the log likelihood.

        Negative tags are unknown: the likelihood sums over all their possible values. Tags that are too large, and in
        `fit` and `evaluate` tags that the constraints forbid, raise an error; TensorFlow's XLA and several devices
        under JAX cannot: there the loss is NaN.
        """
        return SparseLoss(layer=self)

    @property
    def dense_loss(self) -> DenseLoss:
        """The loss for one-hot tags, `(y_true (batch, time, tags), y_pred) -> (batch,)`. A row of zeros is unknown."""
        return DenseLoss(layer=self)

    @property
    def sparse_accuracy(self) -> SparseAccuracy:
        """The fraction of tokens whose tag has the largest emission: a `keras.Metric`, also a function.

        Masked positions and negative (unknown) tags do not count. The transitions are ignored. A `sample_weight` is
        `(batch,)` or `(batch, time)`.
        """
        return SparseAccuracy()

    @property
    def dense_accuracy(self) -> DenseAccuracy:
        """`sparse_accuracy` for one-hot tags."""
        return DenseAccuracy()

    @property
    def viterbi_accuracy(self) -> ViterbiAccuracy:
        """The fraction of tokens whose tag on the best path is right, sparse or one-hot: a `keras.Metric`.

        On JAX, compile it together with a loss of this layer.
        """
        return ViterbiAccuracy(layer=self)

    def decode(self, y_pred: TensorLike, constraints: TagScheme | None = None) -> Tensor:
        """The best path of each sentence, `(batch, time)` int32, -1 where masked, or if a score is NaN or infinite.

        It follows `constraints`, a `kcrf.tags.TagScheme`, whether the layer was trained with them or not.
        """
        return crf.viterbi(self.chain(y_pred).constrained(constraints))

    def top_k(self, y_pred: TensorLike, k: int, constraints: TagScheme | None = None) -> tuple[Tensor, Tensor]:
        """The k best paths, `(batch, k, time)`, and their scores `(batch, k)`; see `crf.top_k_paths` and `decode`."""
        return crf.top_k_paths(self.chain(y_pred).constrained(constraints), k)

    def marginals(self, y_pred: TensorLike, temperature: float = 1.0) -> Tensor:
        """The posterior probability of every tag, `(batch, time, tags)`, 0 where masked."""
        return crf.marginals(self.chain(y_pred).divided(temperature))

    def expected_counts(
        self, y_pred: TensorLike, constraints: TagScheme | None = None, temperature: float = 1.0
    ) -> tuple[Tensor, Tensor]:
        """The expected number of each tag, `(batch, time, tags)`, and transition, `(batch, tags, tags)`."""
        return crf.expected_counts(self.chain(y_pred).divided(temperature).constrained(constraints))

    def entropy(self, y_pred: TensorLike) -> Tensor:
        """The entropy over paths in nats, `(batch,)`."""
        return crf.entropy(self.chain(y_pred))

    def span_confidence(
        self, y_pred: TensorLike, spans: Any, scheme: TagScheme | None = None, temperature: float = 1.0
    ) -> list[np.ndarray]:
        """The posterior probability that exactly this span is a word, or an entity of its type.

        Args:
            y_pred: The output of the layer, `(batch, time, tags)`.
            spans: For each sentence a list of `(start, end)` under BMES, of `(start, end, label)` under BIO and BIOES;
                half-open, in positions of `y_pred`. Masked positions inside a span are skipped. Spans may overlap.
            scheme: A `kcrf.tags.TagScheme`. Defaults to the constraints of the layer.
            temperature: All scores are divided by it (Guo et al., 2017). Defaults to 1.

        Returns:
            For each sentence a NumPy array with one probability per span: the sum over all paths with its tags.

        >>> from kcrf.tags import bmes
        >>> layer = ConditionalRandomField(constraints=bmes(), transition_initializer="zeros")
        >>> (found,) = layer.span_confidence(layer(ops.zeros((1, 2, 4))), [[(0, 2), (0, 1)]])  # "be" or "ss"
        >>> found.round(4)
        array([0.5, 0.5], dtype=float32)
        """
        y_pred, scheme = ops.convert_to_numpy(y_pred), scheme or self.constraints
        if scheme is None or len(scheme) != y_pred.shape[-1]:
            raise ValueError(f"`scheme` must have {y_pred.shape[-1]} tags. Received: {scheme and scheme.labels}")
        if len(spans) != len(y_pred):
            raise ValueError(f"`spans` needs a list for each of {len(y_pred)} sentences. Received: {len(spans)} lists")
        if not any(map(len, spans)):
            return [np.zeros(0, "float32") for _ in spans]
        rows = 1 << (len(y_pred) - 1).bit_length()  # a power of 2: few shapes are compiled
        padded = np.pad(y_pred, [(0, rows - len(y_pred)), (0, 0), (0, 0)], constant_values=-np.inf)
        chain = self.chain(padded).divided(temperature)
        emissions = np.maximum(ops.convert_to_numpy(chain.emissions), crf.FORBIDDEN, dtype="float64")
        onward = emissions + ops.convert_to_numpy(log_sums_onward(chain))
        arrays = map(ops.convert_to_numpy, (crf.marginals(chain), onward, chain.transitions, chain.mask))
        return span_probabilities(Posterior(*arrays), scheme, spans)

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "use_boundary": self.use_boundary,
            "constraints": self.constraints and self.constraints.get_config(),
            "transition_initializer": keras.initializers.serialize(self.transition_initializer),
        }


def _as_scheme(constraints: Any) -> Any:
    """The `TagScheme` that was given as one or as its config; None for None."""
    if isinstance(constraints, dict):
        return TagScheme.from_config(constraints)
    if constraints is not None and not isinstance(constraints, TagScheme):
        raise ValueError(f"`constraints` must be a kcrf.tags.TagScheme or None. Received: {constraints!r}")
    return constraints


@keras.saving.register_keras_serializable(package="kcrf")
class ViterbiTags(BoundToLayer, keras.layers.Layer):
    """The tags of the best path of the outputs of `crf`, as a layer: int32 `(batch, time)`, -1 where masked.

    With `confidences`, also the posterior probability of each tag, 0 where masked. The path follows `constraints`.

    >>> inputs = keras.Input((None, 4))
    >>> layer = ConditionalRandomField()
    >>> tagger = keras.Model(inputs, ViterbiTags(layer)(layer(inputs)))
    """

    def __init__(
        self,
        crf: Any = None,
        confidences: bool = False,
        key: str | None = None,
        constraints: TagScheme | None = None,
        **kwargs: Unpack[LayerOptions],
    ) -> None:
        super().__init__(**kwargs, autocast=False)
        self._bind(crf, key)
        self.confidences = confidences
        self.constraints = _as_scheme(constraints)

    def __call__(self, inputs: Any, *args: Any, **kwargs: Any) -> Tensor:
        self._layer_for(inputs)
        return super().__call__(inputs, *args, **kwargs)

    def call(self, inputs: Any) -> Any:
        if backend.exports_onnx():
            raise ValueError(
                "Decoding on PyTorch cannot be exported: PyTorch writes the loop over time for the length of one "
                "example. Export on the TensorFlow backend, or a run folder by `kcrf export`; or export the model "
                f"without `{self.name}` and decode its outputs. Received: backend 'torch'"
            )
        layer = self._layer()
        tags = layer.decode(inputs, self.constraints)
        if not self.confidences:
            return tags
        chosen = ops.one_hot(tags, inputs.shape[-1], dtype="float32")  # a row of zeros for -1
        return tags, ops.sum(chosen * layer.marginals(inputs), axis=-1)

    def compute_output_spec(self, inputs: Any) -> Any:
        tags = keras.KerasTensor(inputs.shape[:2], dtype="int32")
        return (tags, keras.KerasTensor(inputs.shape[:2], dtype="float32")) if self.confidences else tags

    def get_config(self) -> dict[str, Any]:
        constraints = self.constraints and self.constraints.get_config()
        own = {"confidences": self.confidences, "key": self._layer_key, "constraints": constraints}
        return {**super().get_config(), **own}
