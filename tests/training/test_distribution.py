"""Tests of kcrf.training.

Training on two devices is training on one: same losses, same gradients. Runs in a process of its own, with two.
"""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose

from kcrf.backend import backend_name

# Plain gradient descent at rate 1: what the weights lose is the gradient.
COMMON = """
import json
import numpy as np
from kcrf.backend import keras, ops, set_random_seed
from kcrf.layers import ConditionalRandomField

words = np.random.default_rng(0).integers(1, 20, (16, 6)).astype("int32")
words[::2, 4:] = 0
words[3, 1] = 0
tags = np.where(words % 2, 3, 1)
tags[1::4, 2] = -1  # unknown

def train(model_layer):
    model, layer = model_layer
    model.compile(keras.optimizers.SGD(1.0), loss=layer.sparse_loss, metrics=[layer.viterbi_accuracy], jit_compile=JIT)
    before = [ops.convert_to_numpy(w) for w in model.weights]
    losses = model.fit(words, tags, batch_size=16, epochs=1, shuffle=False, verbose=0).history["loss"]
    gradients = [(old - ops.convert_to_numpy(new)).tolist() for old, new in zip(before, model.weights)]
    losses += model.fit(words, tags, batch_size=16, epochs=2, shuffle=False, verbose=0).history["loss"]
    loss, accuracy = model.evaluate(words, tags, batch_size=16, verbose=0)
    return {"losses": losses + [loss], "accuracy": accuracy, "gradients": gradients}

def small():
    set_random_seed(1)
    inputs = keras.Input((None,), dtype="int32")
    x = keras.layers.Embedding(20, 8, mask_zero=True)(inputs)
    layer = ConditionalRandomField(10, use_boundary=True)
    return keras.Model(inputs, layer(keras.layers.Dense(4)(x))), layer
"""

TENSORFLOW = """
JIT = False
import tensorflow as tf
cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": True})  # it takes longer than it saves here
one = train(small())
strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
assert strategy.num_replicas_in_sync == 2
with strategy.scope():
    two = train(small())
"""

JAX = """
JIT = True
import jax
assert len(jax.devices()) == 2
one = train(small())
keras.distribution.set_distribution(keras.distribution.DataParallel(devices=keras.distribution.list_devices()))
model_layer = small()
assert len(model_layer[1]._trans._value.sharding.device_set) == 2
two = train(model_layer)
"""


WRONG = """
keras.distribution.set_distribution(keras.distribution.DataParallel(devices=keras.distribution.list_devices()))
model, layer = small()
model.compile("sgd", loss=layer.sparse_loss)
wrong = tags.copy()
wrong[5, 2] = 7
losses = [model.evaluate(words, wrong, batch_size=16, verbose=0)]
losses += model.fit(words, wrong, batch_size=16, verbose=0).history["loss"]
losses += [model.evaluate(words, tags, batch_size=16, verbose=0)]
print("RESULT", json.dumps(losses))
"""


def run_on_two_devices(body):
    """What the program prints after "RESULT", and its errors."""
    flags = os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=2"
    command, environment = [sys.executable, "-c", COMMON + body], {**os.environ, "XLA_FLAGS": flags}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-3000:]
    line = next(line for line in done.stdout.splitlines() if line.startswith("RESULT"))
    return json.loads(line.removeprefix("RESULT")), done.stderr


@pytest.mark.skipif(backend_name() != "jax", reason="an error on one device makes others wait on JAX")
def test_a_wrong_label_on_one_of_two_devices_is_named_and_no_device_waits_for_the_other():
    losses, errors = run_on_two_devices(WRONG)
    assert np.isnan(losses[:2]).all() and np.isfinite(losses[2])  # nothing was learned
    assert errors.count("below 4, the number of tags, or negative if unknown. Received: label 7 in sentence") >= 2


@pytest.mark.slow
@pytest.mark.skipif(backend_name() == "torch", reason="Keras distributes on TensorFlow and JAX only")
def test_two_devices_have_the_losses_and_gradients_of_one():
    body = {"tensorflow": TENSORFLOW, "jax": JAX}[backend_name()]
    (one, two), _ = run_on_two_devices(body + 'print("RESULT", json.dumps([one, two]))')
    assert_allclose(two["losses"], one["losses"], rtol=1e-4)
    assert_allclose(two["accuracy"], one["accuracy"], rtol=1e-6)
    assert len(one["gradients"]) == 6  # embedding, kernel, bias, trans, start, end
    for on_two, on_one in zip(two["gradients"], one["gradients"], strict=True):
        assert_allclose(on_two, on_one, rtol=1e-3, atol=2e-5)
