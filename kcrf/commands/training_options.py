"""The options of `kcrf train` that become `Settings`: when to use which, and how. Imports no Keras.

None is given where an option is left out: `kcrf.runs.settings` has the defaults, which the texts repeat in brackets;
two of them stand for training from scratch and for a BERT.
"""

import os
from argparse import ArgumentTypeError, BooleanOptionalAction
from dataclasses import fields

from kcrf.runs import Settings

__all__ = ["TRAINING_OPTIONS", "asked", "conll", "refuse_beside_resume"]


def _rate(text):
    """The type of a number or "auto"."""
    try:
        return text if text == "auto" else float(text)
    except ValueError:
        raise ArgumentTypeError(f"needs a number or auto. Received: {text}") from None


_COUNT, _SHARE = {"type": int, "metavar": "N"}, {"type": float, "metavar": "X"}

TRAINING_OPTIONS = {
    "model": {
        "--encoder": {
            "choices": ["cnn", "bilstm", "transformer", "none"],
            "help": "what reads the text. From scratch: cnn is the fastest and the best on a few million characters. "
            "With --bert: none, or bilstm on top of it, for few sentences [cnn, none]",
        },
        "--head": {"choices": ["crf", "softmax"], "help": "what scores the tags; softmax to compare with [crf]"},
        "--scheme": {
            "choices": ["bio", "bioes"],
            "help": "tags of entities; bioes tells ends and single characters apart and wants more data [bio]",
        },
        "--constraints": {
            "action": BooleanOptionalAction,
            "default": None,
            "help": "forbid illegal tags in training and use: for small data or many types [no]",
        },
        "--lexicon": {
            "action": BooleanOptionalAction,
            "default": None,
            "help": "let the model see how often what stands at a place is a word, or an entity, in the rest of "
            "--train: better from a few hundred sentences on; without a BERT only [yes]",
        },
        "--min-confidence": {
            **_SHARE,
            "help": "of entities: take all whose posterior is at least X, in place of those of the best path; 0.2 to "
            "0.4 for a better F1 where it is low, more for precision [the best path]",
        },
        "--width": {**_COUNT, "help": "size of a hidden vector, of the encoder and not of a BERT [256]"},
        "--depth": {**_COUNT, "help": "layers of the encoder [3, 1]"},
        "--dropout": {**_SHARE, "help": "share of hidden values dropped in training; more for less data [0.4, 0.1]"},
    },
    "training": {
        "--learning-rate": {**_SHARE, "help": "at its peak; with --bert 2e-5 to 1e-4, small models more [1e-3, 5e-5]"},
        "--crf-lr-multiplier": {
            "type": _rate,
            "metavar": "N|auto",
            "help": "how many times faster the CRF learns than the rest; auto: about 1e-2 / learning rate, more for "
            "short runs. 1: at a BERT's rate transitions stay as they began [10, auto]",
        },
        "--warmup": {**_SHARE, "help": "share of the steps in which the rate rises; more if it diverges [0.05, 0.1]"},
        "--epochs": {**_COUNT, "help": "times through --train; 10 or more for less than a thousand sentences [5]"},
        "--patience": {**_COUNT, "help": "stop after N epochs without a better one: for small data [never]"},
        "--batch-size": {**_COUNT, "help": "windows of up to 128 positions a step; 16 for small data [64, 32]"},
        "--batch-tokens": {**_COUNT, "help": "positions a step instead, when sentences differ much in length"},
        "--seed": {**_COUNT, "help": "draws weights, batches and the held-out tenth [0]"},
    },
    "BERT": {
        "--bert": {
            "metavar": "FOLDER",
            "help": "fine-tune the BERT in a folder in Google's or Hugging Face's format: the best there is, and slow",
        },
        "--bert-layers": {**_COUNT, "help": "use its N lowest layers: faster, and a little worse [all]"},
        "--skip-top-layers": {
            **_COUNT,
            "help": "do not load its top N layers but draw them anew: 1 or 2 of 12, where with few "
            "sentences one seed does well and the next fails [0]",
        },
        "--lower-case": {
            "action": BooleanOptionalAction,
            "default": None,
            "help": "whether its tokenizer lowers the text [as its folder says, else as its vocabulary does]",
        },
        "--word-case": {
            "action": BooleanOptionalAction,
            "default": None,
            "help": "let the head see which words have capitals: for names, where its tokenizer lowers the text [no]",
        },
        "--head-lr-multiplier": {
            **_SHARE,
            "help": "how many times faster what is on top learns: 10 to 100 for a BiLSTM [10]",
        },
        "--layerwise-decay": {
            **_SHARE,
            "help": "factor on the learning rate from each layer to the one below: 0.8 to 0.95 for small data [1]",
        },
        "--weight-decay": {**_SHARE, "help": "share of the weights that goes per step, times the rate [0.01]"},
        "--bias-correction": {
            "action": BooleanOptionalAction,
            "default": None,
            "help": "of Adam; without it, as in the first BERT, short runs fail more often [yes]",
        },
        "--mixout": {
            **_SHARE,
            "help": "probability with which a weight counts as its pretrained value, in place of dropout: 0.1 to 0.9 "
            "for under 1,000 sentences [0]",
        },
        "--prior-decay": {
            **_SHARE,
            "help": "pull towards the pretrained weights, as --weight-decay to 0: 0.01 to 1 for small data [0]",
        },
    },
}


def asked(options):
    """The settings and the sources of the data that parsed options ask for."""
    absent = [f"--{name}" for name in ("train", "out") if getattr(options, name) is None]
    if absent:
        raise ValueError(f"needs {' and '.join(absent)}, or --resume RUN_DIR")
    given = {field.name: getattr(options, field.name, None) for field in fields(Settings)}
    if given["bert"] is not None:
        given["bert"] = os.path.abspath(given["bert"])
    settings = Settings(**{name: value for name, value in given.items() if value is not None})
    files = {name: getattr(options, name) for name in ("train", "valid", "test")}
    sources = {name: path and os.path.abspath(path) for name, path in files.items()}
    return settings, {**sources, **conll(options)}


def conll(options):
    """The arguments of `kcrf.corpora.read_entities` beside the path."""
    return {"column": -1 if options.column is None else options.column, "repair": bool(options.repair)}


def refuse_beside_resume(options):
    """Raises ValueError if there is any option beside --resume."""
    names = ("task", "train", "valid", "test", "out", "column", "repair", *(field.name for field in fields(Settings)))
    given = sorted(name for name in names if getattr(options, name, None) is not None)
    if given:
        raise ValueError(f"--resume goes on with the settings of the run. Received: also {', '.join(given)}")
