"""Pages with bert4keras' names, and for each name that is missing there the name to use instead."""

from collections.abc import Callable
from typing import Any

from kcrf.backend.old_names import EXTENSIONS
from kcrf.bert4keras.changes import change_keras

_OLD_HOST = "bert4keras itself, together with kcrf on tf_keras (PORTING.md, The old host)"
_GENERATION = (
    f"{_OLD_HOST}, or keras-hub. Generating text is out of scope (application='lm' and 'unilm', GPT, T5, "
    "AutoRegressiveDecoder): kcrf tags, classifies and encodes"
)
_MODEL_CLASS = "`build_transformer_model(..., return_keras_model=False)` gives an object with .model, .layers, .inputs"
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
        **dict.fromkeys(("GatedAttentionUnit", "SinusoidalPositionEmbedding"), _OLD_HOST),
        "RelativePositionEmbeddingT5": _GENERATION,
        "ScaleOffset": "`keras.layers.LayerNormalization` or `keras.layers.Rescaling`",
        "Concatenate1D": "`keras.layers.Concatenate(axis=1)`",
        **dict.fromkeys(("BatchSplit", "BatchConcat"), "`keras.distribution.DataParallel`"),
    },
    "models": {
        **dict.fromkeys(("GPT", "GPT2", "GPT2_ML", "T5", "T5_Base", "T5_Encoder", "T5_Decoder"), _GENERATION),
        **dict.fromkeys(("LM_Mask", "UniLM_Mask"), _GENERATION),
        **dict.fromkeys(("extend_with_language_model", "extend_with_unified_language_model"), _GENERATION),
        **dict.fromkeys(("BERT", "ALBERT", "NEZHA", "ELECTRA"), _MODEL_CLASS),
        **dict.fromkeys(("ALBERT_Unshared", "RoFormer", "RoFormerV2"), _OLD_HOST),
        "data_parallel": "`keras.distribution.DataParallel`",
        "build_transformer_model": _GENERATION,  # for models that only bert4keras can build
    },
    "optimizers": {
        **dict.fromkeys(("Lion", "LionV2"), "`keras.optimizers.Lion`"),
        **dict.fromkeys(("AdaFactor", "AdaFactorV1", "AdaFactorV2"), _ADAFACTOR),
        **dict.fromkeys((f"extend_with_{name}_v2" for name in EXTENSIONS), "the name without the ending"),
    },
    "snippets": {
        "AutoRegressiveDecoder": _GENERATION,
        "WebServing": "any web framework around `model.predict`",
        "parallel_apply": "`multiprocessing.Pool.imap`",
        "parallel_apply_generator": "`multiprocessing.Pool.imap_unordered`",
        **dict.fromkeys(("insert_arguments", "delete_arguments"), "arguments in the signature of `__init__`"),
        "orthogonally_resize": _OLD_HOST,
        "longest_common_substring": "`difflib.SequenceMatcher.find_longest_match`",
        "longest_common_subsequence": "`difflib.SequenceMatcher.get_matching_blocks`",
    },
    "tokenizers": {"SpTokenizer": _GENERATION, "TokenizerBase": "`kcrf.bert4keras.tokenizers.Tokenizer`"},
}


def page(name: str) -> Callable[[str], Any]:
    """Changes Keras, as each of the six pages does, and returns the `__getattr__` of the page."""
    change_keras()

    def missing(of_page: str) -> Any:
        raise explain(name, of_page)

    return missing


def explain(module: str, name: str) -> Exception:
    """Makes the error for a name that a page lacks.

    If bert4keras has the name it is an ImportError: `from ... import name` shows the message of an ImportError, but
    replaces the message of an AttributeError.
    """
    if name in _ALTERNATIVES[module]:
        return ImportError(
            f"kcrf.bert4keras.{module} has no {name}, which bert4keras has. Instead: {_ALTERNATIVES[module][name]}."
        )
    return AttributeError(f"module 'kcrf.bert4keras.{module}' has no attribute {name!r}")
