"""Pages with bert4keras' names, and for each name that is missing there the name to use instead."""

from collections.abc import Callable
from functools import partial
from typing import Any, NoReturn

from kcrf.bert4keras.changes import change_keras

_OLD_HOST = "bert4keras itself, together with kcrf on tf_keras (PORTING.md, The old host)"
_GENERATION = (
    f"{_OLD_HOST}, or keras-hub. Generating text is out of scope (application='lm' and 'unilm', GPT, T5, "
    "AutoRegressiveDecoder): kcrf tags, classifies and encodes"
)
_MODEL_CLASS = "`build_transformer_model(..., return_keras_model=False)` gives an object with .model, .layers, .inputs"
_VERSION = "the name without the ending"
_ADAFACTOR = (
    "`keras.optimizers.Adafactor(learning_rate, epsilon_1=1e-30, epsilon_2=1e-3, clip_threshold=1.0, "
    "relative_step=False)` for `AdaFactor(learning_rate, epsilon1, epsilon2, clipping_threshold=1.0)`; `beta2=None` is "
    "`beta_2_decay=-0.8`, and `beta1`, `multiply_by_parameter_scale=False` and `min_dim_size_to_factor` have no "
    "counterpart"
)

_ALTERNATIVES = {
    "backend": {
        "recompute_grad": "`keras.remat`",
        "sequence_masking": "`ops.where(mask, x, value)`",
        "piecewise_linear": "`kcrf.optimizers.PiecewiseLinear`",
        "sinusoidal_embeddings": _OLD_HOST,
        "apply_rotary_position_embeddings": _OLD_HOST,
        "attention_normalize": "`ops.softmax`",
        "get_available_gpus": "`keras.distribution.list_devices`",
        "tf": "`import tensorflow as tf`",
    },
    "layers": {
        "GatedAttentionUnit": _OLD_HOST,
        "SinusoidalPositionEmbedding": _OLD_HOST,
        "RelativePositionEmbeddingT5": _GENERATION,
        "ScaleOffset": "`keras.layers.LayerNormalization` or `keras.layers.Rescaling`",
        "Concatenate1D": "`keras.layers.Concatenate(axis=1)`",
        "BatchSplit": "`keras.distribution.DataParallel`",
        "BatchConcat": "`keras.distribution.DataParallel`",
    },
    "models": {
        **dict.fromkeys(("GPT", "GPT2", "GPT2_ML", "T5", "T5_Base", "T5_Encoder", "T5_Decoder"), _GENERATION),
        **dict.fromkeys(("LM_Mask", "UniLM_Mask"), _GENERATION),
        **dict.fromkeys(("extend_with_language_model", "extend_with_unified_language_model"), _GENERATION),
        **dict.fromkeys(("BERT", "ALBERT", "NEZHA", "ELECTRA"), _MODEL_CLASS),
        **dict.fromkeys(("ALBERT_Unshared", "RoFormer", "RoFormerV2"), _OLD_HOST),
        "data_parallel": "`keras.distribution.DataParallel`",
    },
    "optimizers": {
        "Lion": "`keras.optimizers.Lion`",
        "LionV2": "`keras.optimizers.Lion`",
        **dict.fromkeys(("AdaFactor", "AdaFactorV1", "AdaFactorV2"), _ADAFACTOR),
        "extend_with_weight_decay_v2": _VERSION,
        "extend_with_layer_adaptation_v2": _VERSION,
        "extend_with_piecewise_linear_lr_v2": _VERSION,
        "extend_with_gradient_accumulation_v2": _VERSION,
        "extend_with_lookahead_v2": _VERSION,
        "extend_with_lazy_optimization_v2": _VERSION,
        "extend_with_exponential_moving_average_v2": _VERSION,
        "extend_with_parameter_wise_lr_v2": _VERSION,
    },
    "snippets": {
        "AutoRegressiveDecoder": _GENERATION,
        "WebServing": "any web framework around `model.predict`",
        "parallel_apply": "`multiprocessing.Pool.imap`",
        "parallel_apply_generator": "`multiprocessing.Pool.imap_unordered`",
        "insert_arguments": "arguments in the signature of `__init__`",
        "delete_arguments": "arguments in the signature of `__init__`",
        "orthogonally_resize": _OLD_HOST,
        "longest_common_substring": "`difflib.SequenceMatcher.find_longest_match`",
        "longest_common_subsequence": "`difflib.SequenceMatcher.get_matching_blocks`",
    },
    "tokenizers": {
        "SpTokenizer": _GENERATION,
        "TokenizerBase": "`kcrf.bert4keras.tokenizers.Tokenizer`",
    },
}

# For models that only bert4keras' `build_transformer_model` can build.
_ALTERNATIVES["models"]["build_transformer_model"] = _GENERATION


def page(name: str) -> Callable[[str], Any]:
    """Changes Keras, as each of the six pages does, and returns the `__getattr__` of the page."""
    change_keras()
    return partial(_raise, name)


def _raise(module: str, name: str) -> NoReturn:
    raise explain(module, name)


def explain(module: str, name: str) -> Exception:
    """Makes the error for a name that a page lacks.

    If bert4keras has the name it is an ImportError: `from ... import name` shows the message of an ImportError, but
    not that of an AttributeError.

    >>> print(explain("snippets", "parallel_apply"))
    kcrf.bert4keras.snippets has no parallel_apply, which bert4keras has. Instead: `multiprocessing.Pool.imap`.
    """
    if name in _ALTERNATIVES[module]:
        return ImportError(
            f"kcrf.bert4keras.{module} has no {name}, which bert4keras has. Instead: {_ALTERNATIVES[module][name]}."
        )
    return AttributeError(f"module 'kcrf.bert4keras.{module}' has no attribute {name!r}")
