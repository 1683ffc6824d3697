"""Translates names of arrays between Google's and Hugging Face's checkpoints, and finds the layer of an array."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

CONFIG_FILES = ("config.json", "bert_config.json", "albert_config.json")  # in this order, if a folder has several
Row = tuple[str, str, bool]  # Google's name, Hugging Face's name, whether the array is transposed
# By kind of layer: the suffixes of both names, and whether one array is the transpose of the other.
ENDINGS = {
    "dense": (("/kernel", ".weight", True), ("/bias", ".bias", False)),
    "norm": (("/gamma", ".weight", False), ("/beta", ".bias", False)),
    "table": (("", ".weight", False),),
    "array": (("", "", False),),
    "early dense": (("/kernel", "/kernel", False), ("/bias", "/bias", False)),
    "early norm": (("/gamma", "/gamma", False), ("/beta", "/beta", False)),
}

PARTS = (  # of a layer: its kind, and the ends of names: of Google, of DistilBERT, of ALBERT (Google, Hugging Face)
    ("dense", "attention/self/query", "attention.q_lin", "attention_1/self/query", "attention.query"),
    ("dense", "attention/self/key", "attention.k_lin", "attention_1/self/key", "attention.key"),
    ("dense", "attention/self/value", "attention.v_lin", "attention_1/self/value", "attention.value"),
    ("dense", "attention/output/dense", "attention.out_lin", "attention_1/output/dense", "attention.dense"),
    ("norm", "attention/output/LayerNorm", "sa_layer_norm", "LayerNorm", "attention.LayerNorm"),
    ("dense", "intermediate/dense", "ffn.lin1", "ffn_1/intermediate/dense", "ffn"),
    ("dense", "output/dense", "ffn.lin2", "ffn_1/intermediate/output/dense", "ffn_output"),
    ("norm", "output/LayerNorm", "output_layer_norm", "LayerNorm_1", "full_layer_layer_norm"),
)


def _rows(kind: str, *pairs: Sequence[str]) -> list[Row]:
    return [(google + a, hf + b, transposed) for google, hf in pairs for a, b, transposed in ENDINGS[kind]]


def _body(google: str, huggingface: str) -> list[Row]:
    """The rows for embeddings and transformer layers, whose names differ only in their separators."""
    tables = ("word_embeddings", "position_embeddings", "token_type_embeddings")
    layer, layers = f"{google}/encoder/layer_{{}}", f"{huggingface}.encoder.layer.{{}}"
    parts = [(kind, f"{layer}/{name}", f"{layers}.{name.replace('/', '.')}") for kind, name, *_ in PARTS]
    return [
        *_rows("table", *((f"{google}/embeddings/{name}", f"{huggingface}.embeddings.{name}") for name in tables)),
        *_rows("norm", (f"{google}/embeddings/LayerNorm", f"{huggingface}.embeddings.LayerNorm")),
        *(row for kind, *pair in parts for row in _rows(kind, pair)),
    ]


POOLER_AND_HEADS = [
    *_rows("dense", ("bert/pooler/dense", "bert.pooler.dense")),
    *_rows("dense", ("cls/predictions/transform/dense", "cls.predictions.transform.dense")),
    *_rows("norm", ("cls/predictions/transform/LayerNorm", "cls.predictions.transform.LayerNorm")),
    *_rows("array", ("cls/predictions/output_bias", "cls.predictions.bias")),
    *_rows("array", ("cls/seq_relationship/output_weights", "cls.seq_relationship.weight")),
    *_rows("array", ("cls/seq_relationship/output_bias", "cls.seq_relationship.bias")),
]
ROBERTA_HEAD = [
    *_rows("dense", ("bert/pooler/dense", "roberta.pooler.dense")),
    *_rows("dense", ("cls/predictions/transform/dense", "lm_head.dense")),
    *_rows("norm", ("cls/predictions/transform/LayerNorm", "lm_head.layer_norm")),
    *_rows("array", ("cls/predictions/output_bias", "lm_head.bias")),
]
DISTILBERT_LAYERS = [
    row
    for kind, google, hf, *_ in PARTS
    for row in _rows(kind, (f"bert/encoder/layer_{{}}/{google}", f"distilbert.transformer.layer.{{}}.{hf}"))
]
DISTILBERT_HEAD = [
    *_rows("dense", ("cls/predictions/transform/dense", "vocab_transform")),
    *_rows("norm", ("cls/predictions/transform/LayerNorm", "vocab_layer_norm")),
    *_rows("array", ("cls/predictions/output_bias", "vocab_projector.bias")),
]
ALBERT_BLOCK = "bert/encoder/transformer/group_0/inner_group_0"
ALBERT_LAYER = "albert.encoder.albert_layer_groups.0.albert_layers.0"
EARLY_ALBERT = "bert/encoder/layer_shared"  # albert_zh before Google published its ALBERT
ALBERT_PARTS = [(kind, f"{ALBERT_BLOCK}/{google}", hf, early) for kind, early, _, google, hf in PARTS]
TASKS = "bert/embeddings/task_type_embeddings"  # of ERNIE
EMBEDDING_MAPPING = "encoder/embedding_hidden_mapping_in"


def _embeddings(huggingface: str) -> list[Row]:
    return [row for row in _body("bert", huggingface) if "layer_{}" not in row[0]]


def _like_bert(*prefixes: str) -> list[Row]:
    """The rows for models with BERT's parts. Names are read with any of the prefixes and written with the first."""
    return [
        (google, huggingface.replace("bert.", f"{prefix}."), transposed)
        for prefix in prefixes
        for google, huggingface, transposed in _body("bert", "bert") + POOLER_AND_HEADS
    ]


NAME_MAPS = {
    "bert": _like_bert("bert", "ernie"),
    "roberta": _like_bert("bert", "ernie"),  # RoBERTa-wwm and MacBERT have BERT's names
    "ernie": _like_bert("ernie", "bert")
    + _rows("table", *((TASKS, f"{name}.embeddings.task_type_embeddings") for name in ("ernie", "bert"))),
    "nezha": _like_bert("nezha"),
    "xlm-roberta": _body("bert", "roberta") + ROBERTA_HEAD,
    "distilbert": _embeddings("distilbert") + DISTILBERT_LAYERS + DISTILBERT_HEAD,
    "electra": [
        *_body("electra", "electra"),
        *_rows("dense", ("electra/embeddings_project", "electra.embeddings_project")),
        *_rows("dense", ("discriminator_predictions/dense", "discriminator_predictions.dense")),
        *_rows("dense", ("discriminator_predictions/dense_1", "discriminator_predictions.dense_prediction")),
        *_rows("dense", ("generator_predictions/dense", "generator_predictions.dense")),
        *_rows("norm", ("generator_predictions/LayerNorm", "generator_predictions.LayerNorm")),
        *_rows("array", ("generator_predictions/output_bias", "generator_lm_head.bias")),
    ],
    "albert": [
        *_embeddings("albert"),
        *(row for kind, name, hf, _ in ALBERT_PARTS for row in _rows(kind, (name, f"{ALBERT_LAYER}.{hf}"))),
        *_rows("dense", (f"bert/{EMBEDDING_MAPPING}", f"albert.{EMBEDDING_MAPPING.replace('/', '.')}")),
        *_rows("dense", ("bert/pooler/dense", "albert.pooler")),
        *_rows("dense", ("cls/predictions/transform/dense", "predictions.dense")),
        *_rows("norm", ("cls/predictions/transform/LayerNorm", "predictions.LayerNorm")),
        *_rows("array", ("cls/predictions/output_bias", "predictions.bias")),
        *_rows("array", ("cls/seq_relationship/output_weights", "sop_classifier.classifier.weight")),
        *_rows("array", ("cls/seq_relationship/output_bias", "sop_classifier.classifier.bias")),
        *(row for kind, a, _, b in ALBERT_PARTS for row in _rows(f"early {kind}", (a, f"{EARLY_ALBERT}/{b}"))),
        *_rows("array", (f"bert/{EMBEDDING_MAPPING}/kernel", "bert/embeddings/word_embeddings_2")),
    ],
}
# Copies of other arrays, and buffers.
TIED = re.compile(
    r"(^|\.)(position_ids|token_type_ids|positions_encoding"
    r"|(predictions|lm_head)\.decoder\.(weight|bias)|vocab_projector\.weight)$"
)


def google_names(mapping: Mapping[str, Any], model: str = "bert") -> Mapping[str, Any]:
    """Renames the arrays of a checkpoint to Google's names, and transposes kernels to Google's shape (in, out).

    Args:
        mapping: A mapping from names to arrays, such as `open_checkpoint` returns. The names are Google's, or Hugging
            Face's with or without the prefix of the model, with `LayerNorm.weight` or `LayerNorm.gamma`.
        model: "bert", "roberta", "ernie", "albert", "electra", "nezha", "xlm-roberta" or "distilbert".

    Returns:
        A lazy mapping with `shape(name)`. Unknown names are kept; copies of tied weights and buffers are omitted.

    Raises:
        ValueError: `model` is not one of these.

    >>> list(google_names({"encoder.layer.3.output.dense.weight": None, "bert.embeddings.LayerNorm.beta": None}))
    ['bert/encoder/layer_3/output/dense/kernel', 'bert/embeddings/LayerNorm/beta']
    """
    table = {huggingface: (google, transposed) for google, huggingface, transposed in _name_map(model)}
    prefixes = ["", *sorted({name.split(".")[0] + "." for name in table if ".embeddings." in name})]
    renamed = {}
    for name in mapping:
        plain = re.sub(r"\.gamma$", ".weight", re.sub(r"\.beta$", ".bias", name.removeprefix("module.")))
        full_names = [prefix + plain for prefix in prefixes if _template(prefix + plain)[0] in table]
        if full_names:
            template, number = _template(full_names[0])
            renamed[table[template][0].format(number)] = (name, table[template][1])
        elif not TIED.search(name):
            renamed[name] = (name, False)
    return _RenamedArrays(mapping, renamed)


def huggingface_names(mapping: Mapping[str, Any], model: str = "bert") -> Mapping[str, Any]:
    """Renames arrays from Google's names to Hugging Face's, and transposes kernels to (out, in).

    >>> list(huggingface_names({"bert/pooler/dense/bias": None}))
    ['bert.pooler.dense.bias']
    """
    table = {google: (huggingface, transposed) for google, huggingface, transposed in reversed(_name_map(model))}
    renamed = {}
    for name in mapping:
        template, number = _template(name)
        hf, transposed = table.get(template, (template, False))
        renamed[hf.format(number)] = (name, transposed)
    return _RenamedArrays(mapping, renamed)


def _name_map(model: str) -> list[Row]:
    if model not in NAME_MAPS:
        raise ValueError(f"`model` is one of {', '.join(NAME_MAPS)}. Received: model={model!r}")
    return NAME_MAPS[model]


def _template(name: str) -> tuple[str, str]:
    """Replaces the layer number in a name by {}. Returns the new name and the number, or "" if there is no number."""
    match = re.search(r"(?<=\blayer[._])\d+(?=[./])", name)
    return (name[: match.start()] + "{}" + name[match.end() :], match.group()) if match else (name, "")


class LazyMapping(Mapping[str, Any]):
    """Base of mappings that read an array when it is accessed, but not to tell whether it is there."""

    _entries: Mapping[str, Any]

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)


class _RenamedArrays(LazyMapping):
    """The arrays of another mapping under other names, some of them transposed."""

    def __init__(self, mapping: Mapping[str, Any], renamed: dict[str, tuple[str, bool]]) -> None:
        self._mapping, self._entries = mapping, renamed

    def __getitem__(self, name: str) -> Any:
        source, transposed = self._entries[name]
        return self._mapping[source].T if transposed else self._mapping[source]

    def shape(self, name: str) -> tuple[int, ...]:
        """The shape of an array, without reading the array if the wrapped mapping has a method `shape`."""
        source, transposed = self._entries[name]
        shape = self._mapping.shape(source) if hasattr(self._mapping, "shape") else self._mapping[source].shape
        return tuple(shape[::-1] if transposed else shape)

    def source(self, name: str) -> str:
        """The name of an array in the file."""
        return self._entries[name][0]


def layer_owner(name: str) -> int | str:
    """The part of the model to which an array belongs, from its name in Google's or Hugging Face's style."""
    number = _template(name)[1]
    if number:
        return int(number)
    if re.search(r"inner_group_|albert_layers|layer_shared", name):
        return "shared"
    if re.search(r"(^|[/.])(embeddings|embeddings_project|embedding_hidden_mapping_in)[/.]", name):
        return "embeddings"
    return "pooler" if re.search(r"(^|[/.])pooler[/.]", name) else "head"
