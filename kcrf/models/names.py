"""The names of an encoder's variables in Google's checkpoints."""

from typing import Any

from kcrf.checkpoints.names import ALBERT_BLOCK, PARTS

# Arrays that need care when they are loaded or saved.
WORD_EMBEDDINGS = "bert/embeddings/word_embeddings"
OUTPUT_BIAS = "cls/predictions/output_bias"
POSITIONS = "embeddings/position_embeddings"  # the end of the name; rows are positions
ROW_PER_TOKEN = ("embeddings/word_embeddings", OUTPUT_BIAS)  # arrays whose rows are tokens
EMBEDDING_MAPPING = "bert/encoder/embedding_hidden_mapping_in"
TRANSPOSED = "cls/seq_relationship/output_weights"  # (out, in), unlike all other kernels

# The layers of a block here, and their parts, in the order of `PARTS`.
BLOCK = (
    *(f"MultiHeadSelfAttention{part}" for part in ("/query", "/key", "/value", "/output", "-Norm")),
    *(f"FeedForward{part}" for part in ("/intermediate", "/output", "-Norm")),
)
# From other layers to scopes in Google's checkpoints.
OUTSIDE_BLOCKS = {
    "Embedding-Norm": "{scope}/embeddings/LayerNorm",
    "Embedding-Mapping": EMBEDDING_MAPPING,
    "Pooler-Dense": "{scope}/pooler/dense",
    "MLM-Dense": "cls/predictions/transform/dense",
    "MLM-Norm": "cls/predictions/transform/LayerNorm",
    "Discriminator-Dense": "discriminator_predictions/dense",
    "Discriminator-Prediction": "discriminator_predictions/dense_1",
}
ARRAYS = {  # whole names, without a kernel and a bias
    "Embedding-Token/embeddings": "{scope}/embeddings/word_embeddings",
    "Embedding-Segment/embeddings": "{scope}/embeddings/token_type_embeddings",
    "Embedding-Position/embeddings": "{scope}/embeddings/position_embeddings",
    "NSP-Proba/kernel": "cls/seq_relationship/output_weights",
    "NSP-Proba/bias": "cls/seq_relationship/output_bias",
    "MLM-Bias/bias": OUTPUT_BIAS,
}


def variable_mapping(config: Any) -> dict[str, Any]:
    """Google's checkpoint names of all variables that an encoder may have, a dict by path.

    >>> mapping = variable_mapping({"model": "bert", "num_hidden_layers": 1, "prefix": ""})
    >>> mapping["Transformer-0-MultiHeadSelfAttention/query/kernel"]
    'bert/encoder/layer_0/attention/self/query/kernel'
    """
    model, scope = config["model"], "electra" if config["model"] == "electra" else "bert"
    parts = {name: google_name.format(scope=scope) for name, google_name in OUTSIDE_BLOCKS.items()}
    names = {name: google_name.format(scope=scope) for name, google_name in ARRAYS.items()}
    if model == "ernie":
        names["Embedding-Task/embeddings"] = "bert/embeddings/task_type_embeddings"
    if model == "electra":
        parts["Embedding-Mapping"] = "electra/embeddings_project"
    block = list(zip(BLOCK, PARTS, strict=True))
    if model == "albert":
        parts |= {f"Transformer-{name}": f"{ALBERT_BLOCK}/{of_albert}" for name, (*_, of_albert, _) in block}
    else:
        for index in range(config["num_hidden_layers"]):
            scope_of_layer = f"{scope}/encoder/layer_{index}"
            parts |= {f"Transformer-{index}-{name}": f"{scope_of_layer}/{google}" for name, (_, google, *_) in block}
    for name, google_name in parts.items():
        for leaf in ("gamma", "beta") if name.endswith("Norm") else ("kernel", "bias"):
            names[f"{name}/{leaf}"] = f"{google_name}/{leaf}"
    return {config["prefix"] + name: google_name for name, google_name in names.items()}
