"""A script for bert4keras works after its imports are replaced: names, weights, losses, and three whole scripts."""

import importlib
import re
from pathlib import Path

import changed_keras  # noqa: F401 (takes back the changes of `kcrf.bert4keras`)
import numpy as np
import pytest
from bert4keras_host import bert4keras_python  # noqa: F401 (a fixture)
from forks import SCRIPT, run_python
from numpy.testing import assert_allclose, assert_array_equal
from oracles import log_likelihood

from kcrf.backend import K, keras, set_gelu
from kcrf.bert4keras.models import build_transformer_model, load_bert4keras_weights
from kcrf.layers import ConditionalRandomField

ROOT = Path(__file__).parents[2]
BACKENDS = ["torch"]
STRANGERS = sorted((Path(__file__).parent / "strangers").glob("*.py"))
IMPORTED = {  # by the six examples of bert4keras that examples/ answers
    "backend": ["keras", "K", "set_gelu"],
    "layers": ["ConditionalRandomField"],
    "models": ["build_transformer_model"],
    "optimizers": ["Adam", "extend_with_piecewise_linear_lr"],
    "snippets": ["DataGenerator", "ViterbiDecoder", "open", "sequence_padding", "to_array"],
    "tokenizers": ["Tokenizer"],
}
random = np.random.default_rng(0)


@pytest.mark.parametrize(
    "script",
    [pytest.param(path, id=path.stem, marks=[pytest.mark.slow] * (path.stem != "generator")) for path in STRANGERS],
)
def test_a_strangers_script_survives_the_swap(script, tmp_path):
    text = script.read_text(encoding="utf-8")
    text = re.sub(r"^from bert4keras\.", "from kcrf.bert4keras.", text, flags=re.M)
    assert "from bert4keras" not in text
    (tmp_path / "script.py").write_text(text, encoding="utf-8")
    run = run_python(SCRIPT, tmp_path / "script.py", cwd=tmp_path)
    assert run.returncode == 0, run.stderr
    warned = [line for line in run.stderr.splitlines() if "UserWarning" in line]
    assert all("save_weights('best_model.weights') writes 'best_model.weights.h5'" in line for line in warned)
    assert float(run.stdout.rpartition("score: ")[2]) > 0.9, run.stdout


def names_in(document):
    """The names of bert4keras in the first column of a document's tables."""
    return set(re.findall(r"^\| `(\w+\.\w+)`", (ROOT / document).read_text(encoding="utf-8"), flags=re.M))


@pytest.mark.parametrize("document", ["PORTING.md", "PORTING.zh.md"])
def test_the_table_has_every_name_that_the_scripts_import_and_they_are_here(document):
    for module, names in IMPORTED.items():
        for name in names:
            assert hasattr(importlib.import_module(f"kcrf.bert4keras.{module}"), name)
            assert f"{module}.{name}" in names_in(document)


@pytest.mark.parametrize("document", ["PORTING.md", "PORTING.zh.md"])
def test_the_tests_that_a_document_names_exist(document):
    named = re.findall(r"`tests/([\w/]+\.py)::(\w+)`", (ROOT / document).read_text(encoding="utf-8"))
    assert len(named) > 10
    for file, test in named:
        assert f"def {test}(" in (ROOT / "tests" / file).read_text(encoding="utf-8"), f"{file}::{test}"


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("from kcrf.bert4keras.snippets import AutoRegressiveDecoder", "or keras-hub. Generating text is out of scope"),
        (
            "from kcrf.bert4keras.layers import ScaleOffset",
            "kcrf.bert4keras.layers has no ScaleOffset, which bert4keras has. Instead:",
        ),
        (
            "from kcrf.bert4keras.models import T5",
            "Generating text is out of scope (application='lm' and 'unilm', GPT, T5",
        ),
        ("from kcrf.bert4keras.optimizers import AdaFactor", "Instead: `keras.optimizers.Adafactor(learning_rate, eps"),
        ("from kcrf.bert4keras.tokenizers import SpTokenizer", "Instead: bert4keras itself"),
        ("from kcrf.bert4keras.backend import recompute_grad", "Instead: `keras.remat`"),
    ],
)
def test_what_is_not_here_says_so_at_the_import_and_where_to_go(statement, message):
    with pytest.raises(ImportError, match=re.escape(message)):
        exec(statement, {})


def test_what_is_not_here_says_so_at_the_call_and_where_to_go():
    with pytest.raises(ValueError, match="keras-hub have others. Received: model='t5'"):
        build_transformer_model(model="t5")
    with pytest.raises(ValueError, match="keras-hub have others. Received: application='unilm'"):
        build_transformer_model(application="unilm")
    with pytest.raises(ImportError, match="cannot import name 'Nonsense'"):
        exec("from kcrf.bert4keras.snippets import Nonsense", {})


SIZES = {"vocab_size": 20, "hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 2}
SIZES |= {"intermediate_size": 16, "max_position": 16, "hidden_act": "gelu"}
TOKENS = np.array([[1, 2, 3, 4, 5, 6, 7], [8, 9, 2, 3, 0, 0, 0]])


@pytest.fixture
def gelu_again():
    yield
    set_gelu("erf")


@pytest.mark.parametrize("version", ["erf", "tanh"])
def test_set_gelu_says_what_gelu_means_in_models_built_afterwards(version, gelu_again):
    before = build_transformer_model(**SIZES)
    set_gelu(version)
    model = build_transformer_model(**SIZES)
    named = build_transformer_model(**{**SIZES, "hidden_act": f"gelu_{version}"})
    for one in (model, named):
        one.set_weights([w * 3 for w in before.get_weights()])
    assert_array_equal(model.predict([TOKENS, TOKENS * 0], verbose=0), named.predict([TOKENS, TOKENS * 0], verbose=0))
    with pytest.raises(ValueError, match="'erf' or 'tanh'. Received: version='exact'"):
        set_gelu("exact")


OLD_MODEL = """
import tf_keras as keras
from bert4keras.models import build_transformer_model
from bert4keras.layers import ConditionalRandomField
L = keras.layers
bert = build_transformer_model(**inputs["sizes"])
x = L.Dense(3)(L.Bidirectional(L.LSTM(4, return_sequences=True))(L.BatchNormalization()(bert.output)))
model = keras.Model(bert.input, ConditionalRandomField(lr_multiplier=1000)(x))
rng = np.random.default_rng(1)
model.set_weights([np.abs(rng.normal(size=w.shape)) / (1000 if w.shape == (3, 3) else 1) for w in model.get_weights()])
for name in inputs["names"]:
    model.save_weights(inputs["folder"] + "/" + name)
model.save(inputs["folder"] + "/model.h5", include_optimizer=False)
outputs["predictions"] = model.predict([inputs["tokens"], inputs["tokens"] * 0], verbose=0)
outputs["trans"] = np.array(model.layers[-1].trans)
"""


def new_model(k=1000, **changes):
    bert = build_transformer_model(**{**SIZES, **changes})
    x = keras.layers.BatchNormalization()(bert.output)
    x = keras.layers.Bidirectional(keras.layers.LSTM(4, return_sequences=True))(x)
    return keras.Model(bert.input, ConditionalRandomField(lr_multiplier=k, name="CRF")(keras.layers.Dense(3)(x)))


@pytest.mark.slow
def test_weight_files_of_a_bert4keras_script_give_its_predictions(tmp_path, bert4keras_python):  # noqa: F811
    pytest.importorskip("h5py")
    names = ["best_model.h5", "best_model.weights", "new.weights.h5"]
    theirs = bert4keras_python(OLD_MODEL, sizes=SIZES, tokens=TOKENS, names=names, folder=str(tmp_path))
    readable = [(names[0], 1000), ("model.h5", 7)]
    if importlib.util.find_spec("tensorflow"):
        readable += [(names[1], 5)]
    for name, k in readable:
        model = new_model(k)
        load_bert4keras_weights(model, tmp_path / name, lr_multiplier=1000)
        predictions = model.predict([TOKENS, TOKENS * 0], verbose=0)
        assert_allclose(predictions, theirs["predictions"], rtol=1e-5, atol=1e-5)
        assert_allclose(K.eval(model.get_layer("CRF").trans), theirs["trans"], rtol=1e-5)
    model = new_model()
    before = model.get_weights()
    with pytest.raises(ValueError, match="`lr_multiplier` must say what `CRF` had .* stored divided by it"):
        load_bert4keras_weights(model, tmp_path / "best_model.h5")
    for k, size in ((1, "0.000"), (10**6, "890")):
        with pytest.warns(UserWarning, match=f"largest score of `CRF` is .*{re.escape(size)}.*lr_multiplier={k}"):
            load_bert4keras_weights(new_model(), tmp_path / "best_model.h5", lr_multiplier=k)
    with pytest.raises(ValueError, match="new.weights.h5: needs the HDF5 format of Keras 2"):
        load_bert4keras_weights(model, tmp_path / "new.weights.h5", lr_multiplier=1000)
    with pytest.raises(FileNotFoundError, match="absent.h5: no such file, nor absent.h5.index"):
        load_bert4keras_weights(model, tmp_path / "absent.h5", lr_multiplier=1000)
    for now, after in zip(model.get_weights(), before, strict=True):
        assert_array_equal(now, after)
    with pytest.raises(ValueError, match="`Embedding-Token` needs .*21, 8.* Received: for Embedding-Token .*20, 8"):
        load_bert4keras_weights(new_model(vocab_size=21), tmp_path / "best_model.h5", lr_multiplier=1000)
    with pytest.raises(ValueError, match="best_model.h5: needs weights for the layers .*Received: weights of"):
        load_bert4keras_weights(new_model(num_hidden_layers=3), tmp_path / "best_model.h5", lr_multiplier=1000)


TRAINING = """
import tf_keras as keras
from bert4keras.layers import ConditionalRandomField
keras.utils.set_random_seed(0)
x = keras.layers.Input((None, 12))
y = keras.layers.Bidirectional(keras.layers.LSTM(6, return_sequences=True))(keras.layers.Masking()(x))
y = keras.layers.Dense(4)(y)
layer = ConditionalRandomField(lr_multiplier=inputs["k"])
model = keras.Model(x, layer(y))
model.save_weights(inputs["path"])
model.compile(keras.optimizers.Adam(0.01, epsilon=1e-12), loss=layer.sparse_loss)
outputs["losses"] = np.array([model.train_on_batch(*batch) for batch in zip(inputs["words"], inputs["tags"])])
outputs["predictions"] = model.predict(inputs["words"][0], verbose=0)
outputs["trans"] = np.array(layer.trans)
"""


@pytest.mark.slow
@pytest.mark.parametrize("k", [1, 10])
def test_fifty_steps_cost_what_they_cost_with_bert4keras(k, tmp_path, bert4keras_python):  # noqa: F811
    words = random.integers(1, 12, (50, 8, 9)) * (np.arange(9) < random.integers(2, 10, (50, 8, 1)))
    tags, words = words % 4, np.eye(12, dtype="float32")[words] * (words > 0)[..., None]
    path = str(tmp_path / "start.h5")
    theirs = bert4keras_python(TRAINING, words=words, tags=tags, k=k, path=path)
    x = keras.Input((None, 12))
    y = keras.layers.Bidirectional(keras.layers.LSTM(6, return_sequences=True))(keras.layers.Masking()(x))
    y = keras.layers.Dense(4)(y)
    layer = ConditionalRandomField(lr_multiplier=k)
    model = keras.Model(x, layer(y))
    load_bert4keras_weights(model, path, lr_multiplier=k)
    # bert4keras' gradients are k times as large, so that an epsilon that matters would matter less there.
    optimizer = keras.optimizers.Adam(0.01, epsilon=1e-12)
    model.compile(optimizer, loss=layer.sparse_loss, jit_compile=K.backend() == "jax")
    losses = [float(model.train_on_batch(*batch)) for batch in zip(words, tags)]
    assert np.mean(losses[-10:]) < 0.9 * np.mean(losses[:10])
    assert_allclose(losses, theirs["losses"], rtol=1e-4)
    assert_allclose(K.eval(layer.trans), theirs["trans"], rtol=1e-3, atol=1e-3)
    predictions = model.predict(words[0], verbose=0)
    assert_array_equal(np.isinf(predictions), np.isinf(theirs["predictions"]))
    real = np.isfinite(predictions)
    assert_allclose(predictions[real], theirs["predictions"][real], rtol=1e-3, atol=1e-3)


WRONG_THERE = """
import tf_keras as keras
from bert4keras.backend import K
from bert4keras.layers import ConditionalRandomField
from bert4keras.snippets import ViterbiDecoder
layer = ConditionalRandomField()
layer.build((None, None, 3))
layer.set_weights([inputs["trans"]])
loss = lambda tags, y_pred: K.eval(layer.sparse_loss(K.constant(tags), K.constant(y_pred)))
for name in inputs["cases"]:
    outputs[name] = loss(inputs["tags"], inputs[name])
try:
    loss(inputs["tags"][:, :1], inputs["unmasked"][:, :1])
    outputs["one step"] = "works"
except Exception as error:
    outputs["one step"] = type(error).__name__
outputs["unknown"] = loss(inputs["tags"] * 0 - 1, inputs["unmasked"])
given = inputs["unmasked"][0].copy()
ViterbiDecoder(inputs["trans"], starts=[0]).decode(given)
outputs["given"] = given
outputs["impossible"] = ViterbiDecoder(inputs["trans"], starts=[0], ends=[1]).decode(inputs["unmasked"][0][:1]).tolist()
keras.mixed_precision.set_global_policy("mixed_float16")
try:
    x = keras.layers.Input((None, 3))
    half = ConditionalRandomField()
    model = keras.Model(x, half(keras.layers.Dense(3)(x)))
    model.compile("adam", loss=half.sparse_loss)
    model.train_on_batch(inputs["unmasked"], inputs["tags"])
    outputs["half"] = "works"
except Exception as error:
    outputs["half"] = type(error).__name__
keras.mixed_precision.set_global_policy("float32")
x = keras.layers.Input((None, 3))
layer = ConditionalRandomField()
model = keras.Model(x, layer(x))
model.compile("adam", loss=layer.sparse_loss)
model.save("saved.h5")
try:
    keras.models.load_model("saved.h5", custom_objects={"ConditionalRandomField": ConditionalRandomField})
    outputs["loaded"] = "works"
except Exception as error:
    outputs["loaded"] = type(error).__name__
"""
MASKS = {
    "unmasked": [True] * 5,
    "right": [True, True, True, False, False],
    "left": [False, True, True, True, True],
    "hole": [True, False, True, True, True],
    "empty": [False] * 5,
}


def test_what_is_wrong_there_is_right_here(bert4keras_python):  # noqa: F811
    trans, emissions = random.normal(size=(3, 3)).astype("float32"), random.normal(size=(2, 5, 3)).astype("float32")
    tags = random.integers(0, 3, (2, 5))
    cases = {name: np.where(np.array(mask)[None, :, None], emissions, -np.inf) for name, mask in MASKS.items()}
    cases["one tag"] = emissions.copy()
    cases["one tag"][:, 2, (tags[0, 2] + 1) % 3] = -np.inf
    tags[1, 2] = tags[0, 2]
    theirs = bert4keras_python(WRONG_THERE, trans=trans, tags=tags, cases=list(cases), **cases)
    layer = ConditionalRandomField()
    layer.build((None, None, 3))
    layer._trans.assign(trans)
    for name, y_pred in cases.items():
        mask, scores = MASKS.get(name, [True] * 5), np.maximum(y_pred, -1e9)
        truth = [-log_likelihood(x, y, mask, trans) for x, y in zip(scores, tags, strict=True)]
        assert_allclose(K.eval(layer.sparse_loss(tags, y_pred)), truth, rtol=1e-5, atol=1e-5, err_msg=name)
        right_there = np.allclose(theirs[name], truth, rtol=1e-4, atol=1e-4)
        assert right_there == (name in ("unmasked", "right")), name
    one_step = layer.sparse_loss(tags[:, :1], emissions[:, :1])
    truth = [-log_likelihood(x[:1], y[:1], [True], trans) for x, y in zip(emissions, tags, strict=True)]
    assert_allclose(K.eval(one_step), truth, rtol=1e-5, atol=1e-5)
    assert_allclose(K.eval(layer.sparse_loss(tags * 0 - 1, emissions)), 0, atol=1e-5)
    assert (theirs["unknown"] > 1).all()
    assert np.isinf(theirs["given"]).any() and theirs["impossible"] == [0]
    assert "works" not in (theirs["one step"], theirs["half"], theirs["loaded"])
