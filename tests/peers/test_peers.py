"""The claims of README about other CRF layers, checked with these packages if they are installed."""

import itertools

import numpy as np
import oracles
import pytest
from bert4keras_host import bert4keras_python  # noqa: F401 (a fixture)
from numpy.testing import assert_allclose

BACKENDS = ["torch"]

random = np.random.default_rng(0)
EMISSIONS = random.normal(size=(1, 5, 3)).astype("float32")
TAGS = np.array([[0, 1, 2, 0, 1]])
TRANSITIONS = (2 * random.normal(size=(3, 3)) - 5).astype("float32")  # a constant that changes no likelihood
START, END = random.normal(size=(2, 3)).astype("float32")
RIGHT, LEFT, HOLES = (np.array([row], bool) for row in ([1, 1, 1, 0, 0], [0, 0, 1, 1, 1], [1, 0, 1, 0, 1]))


def likelihood(mask, start=None, end=None):
    wide = [None if x is None else x.astype("float64") for x in (TRANSITIONS, start, end)]
    return oracles.log_likelihood(EMISSIONS[0], TAGS[0], mask[0], *wide)


@pytest.fixture
def torch_crf():
    torch, torchcrf = pytest.importorskip("torch"), pytest.importorskip("torchcrf")
    layer = torchcrf.CRF(3, batch_first=True)
    for stored, scores in (("transitions", TRANSITIONS), ("start_transitions", START), ("end_transitions", END)):
        getattr(layer, stored).requires_grad_(False).copy_(torch.tensor(scores))
    return torch, layer


def test_pytorch_crf_is_right_with_padding_on_the_right_only(torch_crf):
    torch, layer = torch_crf
    emissions, tags = torch.tensor(EMISSIONS), torch.tensor(TAGS)
    assert_allclose(float(layer(emissions, tags, torch.tensor(RIGHT))), likelihood(RIGHT, START, END), rtol=1e-5)
    with pytest.raises(ValueError, match="mask of the first timestep must all be on"):
        layer(emissions, tags, torch.tensor(LEFT))
    holes = float(layer(emissions, tags, torch.tensor(HOLES)))  # and no word about it
    assert abs(holes - likelihood(HOLES, START, END)) > 0.1


def test_pytorch_crf_has_no_unknown_tags_and_sums_in_the_type_of_its_input(torch_crf):
    torch, layer = torch_crf
    emissions, mask = torch.tensor(EMISSIONS), torch.ones((1, 5), dtype=torch.bool)
    with pytest.raises(IndexError):
        layer(emissions, torch.full((1, 5), -100), mask)
    unknown, last = (float(layer(emissions, torch.full((1, 5), tag), mask)) for tag in (-1, 2))
    assert unknown == last  # -1 counts from the end
    emissions = torch.tensor(random.normal(size=(1, 512, 3)), dtype=torch.bfloat16)
    tags = torch.tensor(random.integers(0, 3, (1, 512)))
    mask = torch.ones((1, 512), dtype=torch.bool)
    coarse = float(layer.bfloat16()(emissions, tags, mask))
    fine = float(layer.float()(emissions.float(), tags, mask))  # the same rounded scores
    assert abs(coarse / fine - 1) > 1e-3


BERT4KERAS = """
import tensorflow as tf
import tf_keras as keras
from bert4keras.backend import K
from bert4keras.layers import ConditionalRandomField
from bert4keras.snippets import ViterbiDecoder

def made(k=1, **settings):
    layer = ConditionalRandomField(lr_multiplier=k, **settings)
    layer.build((None, None, 3))
    layer.set_weights([inputs["transitions"] / k])
    return layer

def losses(tags, emissions, mask):
    y_pred = np.where(mask[:, :, None], emissions, -np.inf).astype("float32")
    return K.eval(made().sparse_loss(K.constant(tags), K.constant(y_pred)))

for name in ("right", "left", "holes"):
    outputs[name] = losses(inputs["tags"], inputs["emissions"], inputs[name])
paths = inputs["paths"]
outputs["all"] = losses(paths, np.repeat(inputs["emissions"], len(paths), 0), np.repeat(inputs["holes"], len(paths), 0))

def name_of_error(call):
    try:
        call()
    except Exception as error:
        return type(error).__name__

one = np.ones((1, 1), bool)
outputs["length 1"] = name_of_error(lambda: losses(inputs["tags"][:, :1], inputs["emissions"][:, :1], one))
half = tf.constant(inputs["emissions"], "float16")
outputs["float16"] = name_of_error(lambda: made(dtype="float16").sparse_loss(tf.constant(inputs["tags"]), half))
for k in (1, 100):
    layer = made(k)
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(layer.sparse_loss(K.constant(inputs["tags"]), K.constant(inputs["emissions"])))
    (gradient,) = tape.gradient(loss, layer.weights)
    outputs[f"moved {k}"] = k * gradient.numpy()  # what SGD at rate 1 takes from the scores in force
nodes = np.array(inputs["emissions"][0])
ViterbiDecoder(trans=inputs["transitions"], starts=[0], ends=[0]).decode(nodes)
outputs["nodes"] = nodes

x = keras.layers.Input((None, 3))
layer = ConditionalRandomField()
model = keras.Model(x, layer(x))
model.compile("adam", loss=layer.sparse_loss)
model.save(inputs["folder"] + "/model.h5")
owned = {"ConditionalRandomField": ConditionalRandomField}
load = lambda **settings: keras.models.load_model(inputs["folder"] + "/model.h5", owned, **settings)
outputs["load"], outputs["load uncompiled"] = name_of_error(load), name_of_error(lambda: load(compile=False))
"""


def test_bert4keras_layer_is_what_the_table_says(tmp_path, bert4keras_python):  # noqa: F811
    paths = np.zeros((27, 5), int)
    paths[:, HOLES[0]] = list(itertools.product(range(3), repeat=3))
    arrays = {"emissions": EMISSIONS, "tags": TAGS, "transitions": TRANSITIONS, "paths": paths}
    theirs = bert4keras_python(BERT4KERAS, folder=str(tmp_path), right=RIGHT, left=LEFT, holes=HOLES, **arrays)
    assert_allclose(-theirs["right"], likelihood(RIGHT), rtol=1e-5)
    assert abs(-theirs["left"] - likelihood(LEFT)) > 0.1 and abs(-theirs["holes"] - likelihood(HOLES)) > 0.1
    assert theirs["all"].min() < 0 and abs(np.exp(-theirs["all"]).sum() - 1) > 0.1  # no likelihood at all
    assert theirs["length 1"] == "InvalidArgumentError" and theirs["float16"] in ("TypeError", "InvalidArgumentError")
    assert_allclose(theirs["moved 100"], 100**2 * theirs["moved 1"], rtol=1e-3)
    assert not np.isfinite(theirs["nodes"]).all()  # the decoder writes into the caller's array
    assert theirs["load"] == "ValueError" and theirs["load uncompiled"] is None
