"""kcrf.runs.stages: The settings that a user gives: defaults, and what is refused."""

import pickle
from dataclasses import FrozenInstanceError, replace
from pathlib import Path

import numpy as np
import pytest

from kcrf.runs import DataConfig, ModelConfig, SettingError, Settings, TrainingConfig
from kcrf.runs.stages import AugmentationConfig, TeacherConfig

BACKENDS = ["torch"]

# Written down once more, by hand. None: chosen by the size of the data.
FROM_SCRATCH = {
    "encoder": "cnn",
    "learning_rate": 1e-3,
    "crf_lr_multiplier": "auto",
    "constraints": True,
    "epochs": None,
    "patience": None,
    "batch_size": None,
    "width": None,
    "depth": 3,
    "dropout": 0.4,
    "lexicon": True,
    "warmup": 0.05,
}
OF_A_BERT = {
    "encoder": "none",
    "learning_rate": 5e-5,
    "crf_lr_multiplier": "auto",
    "constraints": True,
    "epochs": None,
    "patience": None,
    "batch_size": 32,
    "width": 256,
    "depth": 1,
    "dropout": 0.1,
    "lexicon": False,
    "warmup": 0.1,
}


def test_defaults_depend_on_the_task_and_on_a_bert():
    assert Settings().values().items() >= {**FROM_SCRATCH, "scheme": "bmes"}.items()
    assert Settings(bert="x", task="ner").values().items() >= {**OF_A_BERT, "scheme": "bio"}.items()
    assert Settings(head="softmax").values()["constraints"] is False
    extending = [Settings(extend="x", **more) for more in ({}, {"encoder": "linear"}, {"bert": "y"})]
    rates = [settings.values()["learning_rate"] for settings in extending]
    assert rates == [3e-4, None, 5e-5]  # of a network, trained weights are kept by a smaller one
    given = dict.fromkeys(set(FROM_SCRATCH) - {"crf_lr_multiplier"})
    assert Settings(**given, scheme=None) == Settings()


def test_a_setting_that_the_user_left_open_stays_open():
    assert Settings().epochs is None and Settings().learning_rate is None and Settings(bert="x").scheme is None
    assert Settings(task="ner", epochs=2).said() == {"task": "ner", "epochs": 2}


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"width": "16"}, "`width` must be an int. Received: '16'"),
        ({"width": True}, "`width` must be an int. Received: True"),
        ({"seed": None}, "`seed` must be an int. Received: None"),
        ({"epochs": 2.5}, "`epochs` must be an int. Received: 2.5"),
        ({"constraints": 1}, "`constraints` must be True or False. Received: 1"),
        ({"types": ["A", 3]}, "`types` must be a tuple of strings. Received: .'A', 3."),
        ({"types": "PER"}, "`types` must be a tuple of strings. Received: 'PER'"),
        ({"crf_lr_multiplier": [1]}, "`crf_lr_multiplier` must be a number or a string. Received: .1."),
        ({"learning_rate": float("nan")}, "`learning_rate` must be positive. Received: nan"),
        ({"learning_rate": float("inf")}, "`learning_rate` must be positive. Received: inf"),
        ({"task": ["ner"]}, "`task` must be a string"),
        (
            {"bert": "x", "read_layers": "1,1"},
            "`read_layers` must be .last.*different numbers .* Received: '1,1'",
        ),
        ({"bert": "x", "read_layers": "top"}, "`read_layers` must be"),
        (
            {"task": "classify", "bert": "x", "pool": "pooler", "read_layers": "all"},
            "`pool` needs read_layers='last'. Received: pool='pooler' and read_layers='all'",
        ),
        (
            {"task": "classify", "bert": "x", "pool": "cnn", "encoder": "bilstm"},
            "`pool` needs encoder='none'. Received: pool='cnn'",
        ),
        (
            {"bert": "x", "layer_pooling": "mean"},
            "`layer_pooling` has no effect with read_layers='last'. Received: .* read_layers='last'",
        ),
        (
            {"task": "classify", "bert": "x", "pool": "cnn", "read_layers": "all", "layer_pooling": "mean"},
            "`pool` needs layer_pooling='concat'. Received: .*'mean'",
        ),
        ({"seed": -1}, "`seed` must be at least 0. Received: -1"),
        ({"lower_case": False}, "`lower_case` needs `bert`. Received: lower_case=False and bert=None"),
        ({"bert": "x", "lexicon": True}, "`lexicon` needs bert=None. Received: lexicon=True and bert='x'"),
        ({"pool": "mean"}, "`pool` needs task='classify'. Received: pool='mean' and task='cws'"),
        (
            {"task": "cws-pos", "augment": 2},
            "`augment` needs task='cws' or task='ner' or task='classify'. Received: augment=2 and task='cws-pos'",
        ),
        ({"task": "classify", "scheme": "bio"}, "`scheme` needs task='cws' or task='ner'. Received: scheme='bio' and"),
        ({"task": "ner", "scheme": "bmes"}, "`scheme` is one of .'bio', 'bioes'. for ner. Received: 'bmes'"),
        ({"task": "classify", "head": "crf"}, "`head` is 'softmax' for classify. Received: 'crf'"),
        ({"encoder": "none"}, "`encoder` is one of .* without a BERT. Received: 'none'"),
        ({"steps": 100, "epochs": 3}, "`steps` takes the place of `epochs`. Received: steps=100 and epochs=3"),
        ({"batch_tokens": 99, "batch_size": 3}, "`batch_tokens` takes the place of `batch_size`"),
        ({"augment": 1, "synonyms": "a", "synonym_vectors": "b"}, "`synonym_vectors` takes the place of `synonyms`"),
        ({"head": "softmax", "crf_lr_multiplier": 100}, "`crf_lr_multiplier` needs head='crf'. Received: .*'softmax'"),
        ({"encoder": "linear", "width": 8}, "`width` has no effect with encoder='linear'. Received: width=8 and"),
        ({"encoder": "linear", "ngrams": False}, "`encoder` needs ngrams=True. Received: encoder='linear' and ngrams="),
        ({"encoder": "linear", "task": "classify"}, "`encoder` cannot be used with task='classify'. Received: "),
        ({"encoder": "linear", "crf_lr_multiplier": 2}, "`crf_lr_multiplier` has no effect with encoder='linear'"),
        ({"encoder": "linear", "solver": "adagrad", "l2": 1}, "`l2` has no effect with solver='adagrad'"),
        (
            {"encoder": "linear", "l2": 1, "batch_size": 8},
            "`batch_size` needs l2=None. Received: .*l2=1",
        ),
        ({"encoder": "linear", "teacher": "x", "teacher_temperature": 2}, "`encoder` needs teacher_temperature=1"),
        ({"linear_weight": 0.5, "head": "softmax"}, "`linear_weight` needs head='crf'"),
        ({"linear_weight": 0.5, "encoder": "linear"}, "`linear_weight` has no effect with encoder='linear'"),
        (
            {"task": "ner", "incomplete": True, "extend": "x"},
            "`incomplete` has no effect with `extend`. Received: ",
        ),
        ({"task": "classify", "crf_lr_multiplier": 9}, "`crf_lr_multiplier` needs head='crf'. Received: .*'softmax'"),
    ],
)
def test_values_of_a_wrong_type_or_without_meaning_are_refused(values, message):
    with pytest.raises(SettingError, match=message) as caught:
        Settings(**values)
    assert caught.value.name in values


def test_a_setting_error_carries_the_name_and_survives_pickling():
    with pytest.raises(SettingError) as caught:
        Settings(steps=100, epochs=3)
    error = pickle.loads(pickle.dumps(caught.value))
    assert (error.name, error.received) == ("steps", {"steps": 100, "epochs": 3}) and str(error) == str(caught.value)


def test_parts_and_flat_keywords_are_the_same_settings():
    flat = Settings(task="ner", width=64, epochs=3, augment=2, teacher="run")
    parts = {"data": DataConfig(task="ner"), "model": ModelConfig(width=64), "training": TrainingConfig(epochs=3)}
    stages = [TeacherConfig(teacher="run"), AugmentationConfig(augment=2)]
    assert Settings(**parts, stages=stages) == flat and Settings(**parts, stages=stages).stages == flat.stages
    assert flat.training.epochs == flat.epochs == 3 and flat.learning_rate is None
    assert replace(flat, width=8, augment=None) == Settings(task="ner", width=8, epochs=3, teacher="run")
    assert pickle.loads(pickle.dumps(flat)) == flat and repr(Settings(task="pos")) == "Settings(task='pos')"


def test_a_misspelled_setting_is_refused_with_the_one_that_was_meant():
    with pytest.raises(TypeError, match="Settings has no 'epoch'. Did you mean 'epochs'?"):
        Settings(epoch=3)
    with pytest.raises(AttributeError, match="no attribute 'epoch'"):
        Settings().epoch  # noqa: B018


def test_numbers_of_numpy_paths_and_lists_are_taken():
    settings = Settings(epochs=np.int64(3), learning_rate=np.float32(0.5), types=["A"], task="ner", bert=Path("x"))
    values = settings.values()
    assert [values[name] for name in ("epochs", "learning_rate", "types", "bert")] == [3, 0.5, ("A",), "x"]
    assert (type(values["epochs"]), type(values["learning_rate"])) == (int, float)  # which JSON can write
    with pytest.raises(FrozenInstanceError):
        settings.epochs = 4
