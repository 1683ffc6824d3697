"""Configurations of encoders: read from Google's and Hugging Face's files and from arguments, completed, checked, and
written for Hugging Face.
"""

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from numbers import Integral
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from kcrf.checkpoints.names import CONFIG_FILES
from kcrf.extras import needs_extra
from kcrf.files import read_json

Source = str | PathLike[str] | Mapping[str, Any] | None


class UnknownModelError(ValueError):
    """A configuration names a model that has no layers here."""


@dataclass(frozen=True)
class Family:
    """How a family of models differs from BERT."""

    shared: bool = False  # one block for all layers
    relative: bool = False  # fixed relative positions instead of trained absolute ones
    counts_tokens: bool = False  # positions count the tokens that are not padding, from the id of padding on
    heads: tuple[str, ...] = ("with_pool", "with_nsp", "with_mlm")
    head_activation: str | None = None  # of `with_mlm`; None: as in the layers


FAMILIES = {
    "bert": Family(),
    "roberta": Family(),  # wwm, MacBERT, brightmart's roberta_zh: BERT under another name
    "ernie": Family(),  # BERT, from version 2 with an embedding of the pretraining task
    "albert": Family(shared=True),
    "electra": Family(heads=("with_discriminator",)),
    "nezha": Family(relative=True),
    "xlm-roberta": Family(counts_tokens=True, heads=("with_pool", "with_mlm"), head_activation="gelu"),
    "distilbert": Family(heads=("with_mlm",)),
}
# Other names of an architecture in Hugging Face's files. Without a file "roberta" is BERT, as in bert4keras.
SAME_AS = dict.fromkeys(("roberta", "camembert"), "xlm-roberta")

LIKE_BERT = {"bert", "roberta", "ernie"}  # one architecture

# Entries of a configuration file, which are arguments too, with their defaults. None: derived by `_fill`, or required.
REQUIRED = ("vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size")
ARCHITECTURE: dict[str, Any] = {
    **dict.fromkeys(REQUIRED, None),
    "hidden_act": "gelu",
    "max_position": 512,
    "segment_vocab_size": 2,
    "task_vocab_size": 0,  # of ERNIE 2 and 3; 0 for no embedding of tasks
    "embedding_size": None,
    "embedding_mapping": None,  # whether a Dense layer widens the embeddings; required if they are narrower
    "attention_head_size": None,
    "attention_key_size": None,
    "dropout_rate": 0.0,
    "attention_dropout_rate": 0.0,
    "layer_norm_eps": 1e-12,
    "initializer_range": 0.02,
    "pad_token_id": 0,  # after which positions begin, in families that count tokens
    "masked_token_id": None,  # the padding token of the tokenizer
}
ALIASES = {  # names in configuration files
    "max_position_embeddings": "max_position",
    "type_vocab_size": "segment_vocab_size",
    "hidden_dropout_prob": "dropout_rate",
    "attention_probs_dropout_prob": "attention_dropout_rate",
}
OF_DISTILBERT = {  # its names in configuration files, and BERT's
    "dim": "hidden_size",
    "n_layers": "num_hidden_layers",
    "n_heads": "num_attention_heads",
    "hidden_dim": "intermediate_size",
    "activation": "hidden_act",
    "dropout": "hidden_dropout_prob",
    "attention_dropout": "attention_probs_dropout_prob",
}
DEFAULTS: dict[str, dict[str, Any]] = {  # of Hugging Face, where a file lacks an entry
    "xlm-roberta": {"pad_token_id": 1},
    "distilbert": {"type_vocab_size": 0},
}
HEADS = ("with_pool", "with_nsp", "with_mlm", "with_discriminator")
OPTIONS: dict[str, Any] = {
    **dict.fromkeys(HEADS, False),
    **dict.fromkeys(("keep_tokens", "compound_tokens", "sequence_length", "hierarchical_position"), None),
    **dict.fromkeys(("custom_position_ids", "shared_segment_embeddings"), False),
    "mixout": 0.0,
    **dict.fromkeys(("output_layers", "layers"), None),
    "prefix": "",
    "name": None,
}
# Entries that change what a model computes, with the only value that is supported.
SUPPORTED: dict[str, Any] = {
    "position_embedding_type": "absolute",
    "num_hidden_groups": 1,
    "inner_group_num": 1,
    "is_decoder": False,
    "ln_type": "postln",
    "max_relative_position": 64,
}
ACTIVATIONS = {  # by names in configuration files, the names of this package
    **dict.fromkeys(("gelu", "gelu_erf", "gelu_python"), "gelu"),
    **dict.fromkeys(("gelu_tanh", "gelu_new", "gelu_fast", "gelu_pytorch_tanh"), "gelu_tanh"),
    **dict.fromkeys(("silu", "swish"), "silu"),
    **{name: name for name in ("relu", "tanh")},
}


def encoder_settings(config_path: Source, model: str | None, options: Mapping[str, Any]) -> dict[str, Any]:
    """All settings of an encoder, from a configuration file and arguments. Arguments take precedence.

    The setting "model" is the family that the file names, or `model`, or "bert".
    """
    written = read_config(config_path, model)
    model = written.get("model_type", model or "bert")
    lacks = [name for name in HEADS if name not in FAMILIES[model].heads]
    supported = [name for name in (*OPTIONS, *ARCHITECTURE, *ALIASES) if name not in lacks]
    unknown = sorted(name for name, value in options.items() if name not in supported and (value or name not in lacks))
    if unknown:
        raise ValueError(f"`build_transformer_model` has for {model=} {supported}. Received: {', '.join(unknown)}")
    settings = {**ARCHITECTURE, **OPTIONS}
    for source in (DEFAULTS.get(model, {}), written, options):
        renamed = {ALIASES.get(name, name): value for name, value in source.items()}
        settings.update({name: value for name, value in renamed.items() if name in settings})
    _fill(settings, config_path, arguments={ALIASES.get(name, name) for name in options})
    return {"model": model, **settings}


def _fill(settings: dict[str, Any], config_path: Source, arguments: Collection[str]) -> None:
    """Derives missing settings from the others. Raises ValueError if settings contradict each other."""
    where = "the configuration" if isinstance(config_path, Mapping) else config_path
    absent = [name for name in REQUIRED if settings[name] is None]
    if absent:
        raise ValueError(f"A transformer needs {', '.join(absent)}. Received: neither in {where} nor as arguments")
    wrong = [f"{n}={settings[n]!r}" for n in REQUIRED if not isinstance(settings[n], Integral) or settings[n] < 1]
    if wrong:
        raise ValueError(f"A transformer needs positive ints for {', '.join(REQUIRED)}. Received: {', '.join(wrong)}")
    most = {"vocab_size": 1 << 24, "max_position": 1 << 24, "intermediate_size": 1 << 20, "num_hidden_layers": 1 << 10}
    large = [name for name in (*REQUIRED, "max_position") if (settings[name] or 0) > most.get(name, 1 << 16)]
    if large:
        name = large[0]
        raise ValueError(f"{where}: {name} must be at most {most.get(name, 1 << 16):,}. Received: {settings[name]:,}")
    if settings["hidden_act"] not in ACTIVATIONS:
        raise ValueError(f"`hidden_act` must be one of {sorted(ACTIVATIONS)}. Received: {settings['hidden_act']!r}")
    hidden, heads = settings["hidden_size"], settings["num_attention_heads"]
    if settings["attention_head_size"] is None and hidden % heads:
        raise ValueError(f"`hidden_size` must be a multiple of `num_attention_heads`. Received: {hidden} and {heads}")
    if settings["mixout"]:  # replaces dropout
        settings.update({name: 0.0 for name in ("dropout_rate", "attention_dropout_rate") if name not in arguments})
    derived = {"embedding_size": hidden, "attention_head_size": hidden // heads, "prefix": ""}
    derived["masked_token_id"] = settings["pad_token_id"]
    derived |= dict.fromkeys(("dropout_rate", "attention_dropout_rate"), 0.0)
    settings.update({name: value for name, value in derived.items() if settings[name] is None})
    settings["embedding_mapping"] = settings["embedding_mapping"] or settings["embedding_size"] != hidden
    settings["attention_key_size"] = settings["attention_key_size"] or settings["attention_head_size"]
    settings["with_pool"] = settings["with_pool"] or bool(settings["with_nsp"])
    if settings["keep_tokens"] is not None:
        tokens = list(settings["keep_tokens"])
        if any(isinstance(token, (bool, np.bool_)) for token in tokens):
            raise ValueError(f"`keep_tokens` must be ids of tokens, ints, not a mask. Received: {tokens[0]}")
        settings["keep_tokens"] = [int(token) for token in tokens]
        settings["vocab_size"] = len(settings["keep_tokens"])
    settings["vocab_size"] += len(settings["compound_tokens"] or [])


def read_config(source: Source, model: str | None = None) -> dict[str, Any]:
    """Reads the entries of a configuration, and checks that they describe a supported model."""
    if source is None:
        return {}
    where, config = ("The configuration", dict(source)) if isinstance(source, Mapping) else _read_file(Path(source))
    named = str(config.get("model_type") or "")
    family = SAME_AS.get(named, named) or _family_of(config, model)
    if family not in FAMILIES:
        raise UnknownModelError(
            f"{where}: model_type must be one of {sorted({*FAMILIES, *SAME_AS})}, others are not supported; "
            f"`kcrf.layers.TransformersEncoder` has them on PyTorch. Received: {family!r}"
        )
    if model in LIKE_BERT and family in LIKE_BERT:
        family = model
    elif model not in (None, family):
        print(f"{where}: model_type is {named or family!r}, so that is built. Received: model={model!r}")
    if family == "distilbert":
        config = {OF_DISTILBERT.get(name, name): value for name, value in config.items()}
    config = {**DEFAULTS.get(family, {}), **config, "model_type": family}
    _check_ints(where, config)
    for name, value in SUPPORTED.items():
        if config.get(name, value) != value:
            raise ValueError(f"{where}: {name} must be {value!r}. Received: {config[name]!r}")
    if config.get("use_task_id"):
        config["task_vocab_size"] = config.get("task_type_vocab_size", 3)
    if "ln_type" in config:  # the first albert_zh, see `kcrf.models.loading`
        config["embedding_size"] = config["hidden_size"]
    if named == "albert":  # Hugging Face's ALBERT always maps
        config["embedding_mapping"] = True
    return config


def encoder_config(folder: str | PathLike[str]) -> dict[str, Any]:
    """Reads the configuration of an encoder in a folder.

    If it has no layers here, the entry "transformers" is the whole configuration, from which `transformers` builds it,
    and a line says so.
    """
    try:
        return read_config(folder)
    except UnknownModelError as error:
        unknown = error
    kind = _read_file(Path(folder))[1]["model_type"]
    with needs_extra("transformers", f"{folder}: {kind!r} has no layers in kcrf, and"):
        from transformers import AutoConfig
    try:
        config = AutoConfig.from_pretrained(folder)
    except ValueError:  # a model that the installed version does not know
        raise unknown from None
    if config.is_encoder_decoder:
        raise ValueError(f"{folder}: needs an encoder. Received: {kind!r}, which has a decoder, too")
    print(f"{folder}: {kind!r} has no layers in kcrf, so transformers computes it")
    names = ("num_hidden_layers", "vocab_size", "max_position_embeddings", "type_vocab_size", "pad_token_id")
    values = {name: getattr(config, name, None) for name in names}
    own = {name: value for name, value in values.items() if value is not None}
    return {"type_vocab_size": 0, **own, "model_type": kind, "transformers": json.loads(config.to_json_string(False))}


def has_config(folder: str | PathLike[str]) -> bool:
    """Whether a folder contains a configuration file of an encoder."""
    return any((Path(folder) / name).is_file() for name in CONFIG_FILES)


def _read_file(path: Path) -> tuple[Path, dict[str, Any]]:
    if path.is_dir():
        if not has_config(path):
            raise FileNotFoundError(f"{path}: no BERT there; its folder has one of {', '.join(CONFIG_FILES)}")
        path = next(path / name for name in CONFIG_FILES if (path / name).is_file())
    return path, read_json(path)


def _family_of(config: Mapping[str, Any], model: str | None) -> str:
    if "n_heads" in config:  # others call it num_attention_heads
        return "distilbert"
    if model or "num_hidden_groups" in config:
        return model or "albert"
    return "nezha" if config.get("use_relative_position") else "bert"


def _check_ints(where: object, config: dict[str, Any]) -> None:
    if config.get("pad_token_id", 0) is None:  # no padding token: Hugging Face then pads with 0
        del config["pad_token_id"]
    for name in ("num_hidden_layers", "vocab_size", "max_position_embeddings", "pad_token_id"):
        if type(config.get(name, 1)) is not int:
            raise ValueError(f"{where}: {name} must be an int. Received: {config[name]!r}")


def huggingface_config(config: Mapping[str, Any]) -> dict[str, Any]:
    """A configuration with Hugging Face's names, from which Hugging Face and kcrf build the same encoder."""
    classes = {"bert": "Bert", "roberta": "Bert", "ernie": "Ernie", "albert": "Albert", "electra": "Electra"}
    classes |= {"nezha": "Nezha", "xlm-roberta": "XLMRoberta", "distilbert": "DistilBert"}
    tasks, family = config["task_vocab_size"], config["model"]
    written = {
        "model_type": {"roberta": "bert"}.get(family, family),
        "architectures": [classes[family] + "Model"],
        **{name: config[name] for name in (*REQUIRED, "embedding_size")},
        "hidden_act": {"gelu_erf": "gelu", "gelu_tanh": "gelu_new"}.get(config["hidden_act"], config["hidden_act"]),
        **{name: config[own] for name, own in ALIASES.items()},
        **{name: config[name] for name in ("layer_norm_eps", "initializer_range", "pad_token_id", "masked_token_id")},
        **({"use_task_id": True, "task_type_vocab_size": tasks} if tasks else {}),
    }
    if family != "distilbert":
        return written
    names = {name: own for own, name in OF_DISTILBERT.items()}
    return {names.get(name, name): value for name, value in written.items() if name != "type_vocab_size"}
