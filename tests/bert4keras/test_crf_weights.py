"""kcrf.bert4keras.crf_weights against the packages that wrote the weights: their numbers, or their formula."""

import numpy as np
import pytest
from bert4keras_host import bert4keras_python  # noqa: F401 (a fixture)
from conftest import few
from numpy.testing import assert_allclose, assert_array_equal

from kcrf.backend import ops
from kcrf.bert4keras.crf_weights import load_crf_weights
from kcrf.checkpoints import write_safetensors
from kcrf.layers import ConditionalRandomField, MaximumEntropyMarkovModel

BACKENDS = ["torch", "tensorflow", "jax"]

random = np.random.default_rng(0)
EMISSIONS = random.normal(size=(4, 6, 4)).astype("float32")
LENGTHS = np.array([6, 4, 1, 3])
MASK = np.arange(6) < LENGTHS[:, None]
TAGS = random.integers(0, 4, (4, 6))
TRANSITIONS = random.normal(size=(4, 4)).astype("float32")
START, END = random.normal(size=(2, 4)).astype("float32")
TFA = {"crf/chain_kernel:0": TRANSITIONS, "crf/left_boundary:0": START, "crf/right_boundary:0": END}


def numpy(x):
    return ops.convert_to_numpy(x)


def built(**arguments):
    layer = ConditionalRandomField(name="CRF", **arguments)
    layer.build((None, None, 4))
    return layer


def losses_and_tags(layer):
    y_pred = layer(EMISSIONS, mask=MASK)
    return numpy(layer.sparse_loss(TAGS, y_pred)), numpy(layer.decode(y_pred))


@pytest.mark.once
@pytest.mark.parametrize("k", few(100, 1))
def test_pytorch_crfs_weights_give_its_likelihoods_and_its_tags(k):
    torch, torchcrf = pytest.importorskip("torch"), pytest.importorskip("torchcrf")
    torch.manual_seed(0)
    theirs = torchcrf.CRF(4, batch_first=True)
    for scores in theirs.parameters():
        torch.nn.init.normal_(scores)
    tensors = [torch.tensor(x) for x in (EMISSIONS, TAGS, MASK)]
    layer = built(use_boundary=True, lr_multiplier=k)
    load_crf_weights(layer, theirs.state_dict(), "pytorch-crf")
    losses, tags = losses_and_tags(layer)
    assert_allclose(losses, -theirs(*tensors, reduction="none").detach().numpy(), rtol=1e-5)
    for found, expected, length in zip(tags, theirs.decode(tensors[0], tensors[2]), LENGTHS, strict=True):
        assert found[:length].tolist() == expected


def test_a_prefix_chooses_among_several_crfs_of_one_model():
    names = ("transitions", "start_transitions", "end_transitions")
    weights = {f"crf.{name}": x for name, x in zip(names, (TRANSITIONS, START, END), strict=True)}
    weights |= {f"other.{name.removeprefix('crf.')}": x + 1 for name, x in list(weights.items())}
    layer = built(use_boundary=True)
    load_crf_weights(layer, weights, "pytorch-crf", prefix="crf.")
    for found, expected in zip((layer.trans, layer.start, layer.end), (TRANSITIONS, START, END), strict=True):
        assert_allclose(numpy(found), expected, rtol=1e-6)
    with pytest.raises(ValueError, match=r"one 'transitions'; choose by `prefix`. Received: \['crf.transitions'"):
        load_crf_weights(layer, weights, "pytorch-crf")


def tfa(emissions, tags, length, kernel, left, right):
    """TensorFlow Addons' loss and best path of one sentence: boundaries go onto the emissions, then plain loops."""
    x = emissions[:length].astype("float64")
    x[0] += left
    x[-1] += right
    score = sum(x[t, tags[t]] for t in range(length)) + sum(kernel[tags[t - 1], tags[t]] for t in range(1, length))
    alpha, best, back = x[0], x[0], []
    for row in x[1:]:
        alpha = np.log(np.exp(alpha[:, None] + kernel).sum(0)) + row
        back.append((best[:, None] + kernel).argmax(0))
        best = (best[:, None] + kernel).max(0) + row
    path = [int(best.argmax())]
    for pointers in reversed(back):
        path.append(int(pointers[path[-1]]))
    return np.log(np.exp(alpha).sum()) - score, path[::-1]


@pytest.mark.once
@pytest.mark.parametrize("boundary", [True, False])
def test_tensorflow_addons_weights_give_its_formulas(boundary):
    layer = built(use_boundary=boundary, lr_multiplier=10)
    load_crf_weights(layer, TFA if boundary else {"crf/chain_kernel:0": TRANSITIONS}, "tfa")
    boundaries = (START, END) if boundary else (0.0, 0.0)
    losses, tags = losses_and_tags(layer)
    for row, length in enumerate(LENGTHS):
        loss, path = tfa(EMISSIONS[row], TAGS[row], length, TRANSITIONS.astype("float64"), *boundaries)
        assert_allclose(losses[row], loss, rtol=1e-5)
        assert tags[row, :length].tolist() == path


def test_checkpoint_files_are_opened_and_object_graph_names_understood(tmp_path):
    suffix = "/.ATTRIBUTES/VARIABLE_VALUE"
    weights = {f"layer-2/{name.split('/')[1][:-2]}{suffix}": x for name, x in TFA.items()}
    write_safetensors(tmp_path / "crf.safetensors", weights)
    layer = built(use_boundary=True)
    load_crf_weights(layer, tmp_path / "crf.safetensors", "tfa")
    assert_allclose(numpy(layer.end), END, rtol=1e-6)


BERT4KERAS = """
import tf_keras as keras
from bert4keras.backend import K
from bert4keras.layers import ConditionalRandomField
from bert4keras.snippets import ViterbiDecoder
x = keras.layers.Input((None, 4))
layer = ConditionalRandomField(lr_multiplier=1000)
model = keras.Model(x, layer(keras.layers.Masking(-7.0)(x)))
layer.set_weights([inputs["transitions"] / 1000])
y_pred = model.predict(inputs["emissions"], verbose=0)
outputs["losses"] = K.eval(layer.sparse_loss(K.constant(inputs["tags"]), K.constant(y_pred)))
decoder = ViterbiDecoder(trans=K.eval(layer.trans))
paths = [decoder.decode(np.array(y[:n])) for y, n in zip(y_pred, inputs["lengths"])]
outputs["paths"] = np.array([np.pad(p, (0, y_pred.shape[1] - len(p)), constant_values=-1) for p in paths])
model.compile(keras.optimizers.Adam(0.0), loss=layer.sparse_loss)
model.train_on_batch(inputs["emissions"], inputs["tags"])
for name in inputs["names"]:
    model.save_weights(inputs["folder"] + "/" + name)
"""


@pytest.mark.slow
def test_bert4keras_weight_files_of_all_kinds_give_its_losses_and_its_tags(tmp_path, bert4keras_python):  # noqa: F811
    padded = np.where(MASK[:, :, None], EMISSIONS, np.float32(-7.0))
    names = ["best_model.weights", "best_model.h5", "best_model.weights.h5"]  # TensorFlow's, Keras 2's, Keras 3's
    asked = {"transitions": TRANSITIONS, "emissions": padded, "tags": TAGS, "lengths": LENGTHS}
    theirs = bert4keras_python(BERT4KERAS, names=names, folder=str(tmp_path), **asked)
    for name, k, boundary in zip(names, (1, 1000, 10), (False, True, False), strict=True):
        layer = built(lr_multiplier=k, use_boundary=boundary)
        if boundary:
            layer._start.assign(START)
        pytest.importorskip("tensorflow")
        load_crf_weights(layer, tmp_path / name, "bert4keras", lr_multiplier=1000)
        losses, tags = losses_and_tags(layer)
        assert_allclose(losses, theirs["losses"], rtol=1e-4)
        assert_array_equal(tags, theirs["paths"])


MEMM = """
import tf_keras as keras
from bert4keras.backend import K
from bert4keras.layers import MaximumEntropyMarkovModel
for rank in (None, 2):
    x = keras.layers.Input((None, 4))
    layer = MaximumEntropyMarkovModel(lr_multiplier=100, hidden_dim=rank)
    model = keras.Model(x, layer(keras.layers.Masking(-7.0)(x)))
    layer.set_weights([w / 100 for w in ([inputs["full"]] if rank is None else [inputs["left"], inputs["right"]])])
    y_pred = model.predict(inputs["emissions"], verbose=0)
    outputs[f"loss_{rank}"] = K.eval(layer.sparse_loss(K.constant(inputs["tags"]), K.constant(y_pred)))[None]
    for name in inputs["names"]:
        model.save_weights(f"{inputs['folder']}/{rank}_{name}")
"""


def memm(**arguments):
    layer = MaximumEntropyMarkovModel(name="MEMM", **arguments)
    layer.build((None, None, 4))
    return layer


@pytest.mark.once
def test_bert4keras_memm_weights_of_full_and_low_rank_give_its_losses(tmp_path, bert4keras_python):  # noqa: F811
    pytest.importorskip("tensorflow")
    left, right = random.normal(size=(2, 4, 2)).astype("float32")
    names = ["best_model.weights", "best_model.h5", "best_model.weights.h5"]
    padded = np.where(MASK[:, :, None], EMISSIONS, np.float32(-7.0))
    weights = {"full": TRANSITIONS, "left": left, "right": right}
    theirs = bert4keras_python(MEMM, names=names, folder=str(tmp_path), emissions=padded, tags=TAGS, **weights)
    for rank, transitions in ((None, TRANSITIONS), (2, left @ right.T)):
        for name, k in zip(names, (1, 100, 10), strict=True):
            layer = memm(lr_multiplier=k, hidden_dim=rank)
            load_crf_weights(layer, tmp_path / f"{rank}_{name}", "bert4keras", lr_multiplier=100)
            assert_allclose(numpy(layer.trans), transitions, rtol=1e-5, atol=1e-6)
            losses = numpy(layer.sparse_loss(TAGS, layer(EMISSIONS, mask=MASK)))
            assert_allclose(losses.sum() / MASK.sum(), theirs[f"loss_{rank}"][0], rtol=1e-5)  # theirs: per token


@pytest.mark.parametrize(
    ("arguments", "source", "kind", "message"),
    [
        ({}, TFA, "tfa", "`MEMM` is a MEMM, .* of kind 'bert4keras'. Received: kind='tfa'"),
        ({"hidden_dim": 2}, {"trans": TRANSITIONS}, "bert4keras", r"an array 'l_trans'. Received: \['trans'\]"),
        ({}, {"l_trans": TRANSITIONS}, "bert4keras", r"an array 'trans'. Received: \['l_trans'\]"),
        (
            {"hidden_dim": 2},
            {"l_trans": TRANSITIONS[:, :2], "r_trans": TRANSITIONS},
            "bert4keras",
            r"needs 'r_trans' of shape \(4, 2\). Received: \(4, 4\)",
        ),
    ],
)
def test_weights_that_a_memm_cannot_take_are_refused(arguments, source, kind, message):
    with pytest.raises(ValueError, match=message):
        load_crf_weights(memm(**arguments), source, kind, lr_multiplier=1 if kind == "bert4keras" else None)


def test_an_h5_file_is_read_without_what_an_optimizer_left_there(tmp_path):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "model.h5", "w") as file:
        file["model_weights/CRF/CRF/trans:0"] = TRANSITIONS / 10
        file["optimizer_weights/Adam/m/CRF/trans:0"] = TRANSITIONS * 0
        file["optimizer_weights/Adam/v/CRF/trans:0"] = TRANSITIONS * 0
    layer = built(lr_multiplier=1000)
    load_crf_weights(layer, tmp_path / "model.h5", "bert4keras", lr_multiplier=10)
    assert_allclose(numpy(layer.trans), TRANSITIONS, rtol=1e-5)
    assert_allclose(numpy(layer._trans), TRANSITIONS / 1000, rtol=1e-5)
    with pytest.raises(FileNotFoundError, match="absent.h5: no checkpoint here"):
        load_crf_weights(layer, tmp_path / "absent.h5", "bert4keras", lr_multiplier=10)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: load_crf_weights(built(), TFA, "keras-contrib"), "one of .*'tfa'.* Received: kind='keras-contrib'"),
        (lambda: load_crf_weights(ConditionalRandomField(), TFA, "tfa"), "must be built before weights"),
        (lambda: load_crf_weights(built(), {"trans": TRANSITIONS}, "bert4keras"), "made with .*, lr_multiplier=None"),
        (lambda: load_crf_weights(built(), TFA, "tfa", lr_multiplier=10), "kind='tfa', lr_multiplier=10"),
        (lambda: load_crf_weights(built(), TFA, "tfa"), "first and last tags .*left_boundary.* use_boundary=True to"),
        (
            lambda: load_crf_weights(built(use_boundary=True), {"chain_kernel": TRANSITIONS}, "tfa"),
            "needs 'left_boundary' and 'right_boundary', which the source lacks",
        ),
        (
            lambda: load_crf_weights(built(use_boundary=True), {"transitions": TRANSITIONS}, "pytorch-crf"),
            "needs 'start_transitions' and 'end_transitions', which the source lacks",
        ),
        (
            lambda: load_crf_weights(built(), {"a.b": END}, "tfa"),
            r"array 'chain_kernel'. Received: \['a.b'\], prefix=''",
        ),
        (
            lambda: load_crf_weights(built(), {"chain_kernel": TRANSITIONS[:3, :3]}, "tfa"),
            r"`CRF` needs 'chain_kernel' of shape \(4, 4\). Received: \(3, 3\)",
        ),
        (
            lambda: load_crf_weights(built(use_boundary=True), TFA | {"crf/right_boundary:0": END[:3]}, "tfa"),
            r"'crf/right_boundary:0' of shape \(4,\). Received: \(3,\)",
        ),
    ],
)
def test_what_does_not_fit_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_what_is_refused_changes_nothing():
    layer = built(use_boundary=True)
    before = numpy(layer.trans)
    with pytest.raises(ValueError):
        load_crf_weights(layer, TFA | {"crf/right_boundary:0": END[:3]}, "tfa")
    assert_array_equal(numpy(layer.trans), before)
