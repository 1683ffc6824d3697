"""Trains one tagger in several processes, on one or several machines, and resumes after a process was killed.

    python examples/train_distributed.py FOLDER [epochs]

Start the script once per process, with the same FOLDER on a shared disk. On TensorFlow, TF_CONFIG lists the processes.
On one machine:

    export KERAS_BACKEND=tensorflow
    for i in 0 1; do
        TF_CONFIG='{"cluster": {"worker": ["localhost:12345", "localhost:12346"]},
                    "task": {"type": "worker", "index": '$i'}}' python examples/train_distributed.py runs/two &
    done; wait

On JAX, Keras has its own environment variables. The address names the first process:

    export KERAS_BACKEND=jax KERAS_DISTRIBUTION_JOB_ADDRESSES=localhost:12345 KERAS_DISTRIBUTION_NUM_PROCESSES=2
    for i in 0 1; do KERAS_DISTRIBUTION_PROCESS_ID=$i python examples/train_distributed.py runs/two & done; wait

Without these variables, there is one process. Each process uses all of its devices. The losses equal those of one
device: the batches are the same, and each batch is divided among the devices. If a process is killed, end the others
and start all of them again: training resumes after the last complete epoch. FOLDER/tagger.keras is the trained model.
"""

import os
import sys
import tempfile
from pathlib import Path

import numpy as np

from kcrf.backend import backend_name, keras, ops
from kcrf.corpora import load_mini
from kcrf.files import write_aside
from kcrf.layers import ConditionalRandomField
from kcrf.readers import Vocabulary
from kcrf.readers.padding import pad
from kcrf.tags import bmes, words_to_tags

folder, epochs = Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 3
batch_size = 64  # of all devices together; must be a multiple of the number of devices
sentences = load_mini().train
vocabulary = Vocabulary.of("".join(words) for words in sentences)
steps = -(-len(sentences) // batch_size)  # per epoch
length = max(len("".join(words)) for words in sentences)


def batches(epoch):
    """Yields the batches of an epoch, the same in each process: characters, tags and weights of sentences.

    All batches have one shape. The last batch is padded with empty sentences of weight 0. The weights of the real
    sentences make the mean loss of the batch the mean over its real sentences, however they are divided among devices.
    """
    order = np.random.default_rng(epoch).permutation(len(sentences))
    for start in range(0, len(order), batch_size):
        chosen = [sentences[i] for i in order[start : start + batch_size]]
        characters = pad([vocabulary.encode("".join(words))[0] for words in chosen], length, count=batch_size)
        tags = pad([words_to_tags(words) for words in chosen], length, value=-1, count=batch_size)
        weights = np.where(np.arange(batch_size) < len(chosen), batch_size / len(chosen), 0)
        yield characters, tags, weights.astype("float32")


def build():
    """A compiled BiLSTM with a CRF."""
    keras.utils.set_random_seed(0)
    inputs = keras.Input((None,), dtype="int32")
    hidden = keras.layers.Embedding(len(vocabulary.characters) + 2, 64, mask_zero=True)(inputs)
    hidden = keras.layers.Bidirectional(keras.layers.LSTM(64, return_sequences=True))(hidden)
    crf = ConditionalRandomField(lr_multiplier=10, constraints=bmes())
    model = keras.Model(inputs, crf(keras.layers.Dense(4)(hidden)))
    model.compile(keras.optimizers.Adam(3e-3), loss=crf.sparse_loss)
    model.optimizer.build(model.trainable_variables)  # otherwise `load_weights` skips its variables
    return model


def on_jax():
    """The model, a function that trains one epoch and returns the loss, and whether this is the first process."""
    import jax

    if "KERAS_DISTRIBUTION_NUM_PROCESSES" in os.environ:
        keras.distribution.initialize()
    keras.distribution.set_distribution(keras.distribution.DataParallel(auto_shard_dataset=False))
    model, own = build(), slice(jax.process_index(), None, jax.process_count())

    def train(epoch):
        parts = (tuple(array[own] for array in batch) for batch in batches(epoch))
        return model.fit(parts, steps_per_epoch=steps, shuffle=False, verbose=0).history["loss"][0]

    return model, train, jax.process_index() == 0


def on_tensorflow():
    """As `on_jax`. `fit` of Keras 3 fails under this strategy (keras-team/keras#20585): a custom training step."""
    import tensorflow as tf

    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    with strategy.scope():
        model = build()
    devices = strategy.num_replicas_in_sync

    def step_on_device(characters, tags, weights):
        with tf.GradientTape() as tape:
            losses = model.loss(tags, model(characters, training=True))  # (sentences of this device,)
            loss = tf.reduce_sum(losses * weights) / batch_size
        gradients = tape.gradient(loss, model.trainable_variables)
        model.optimizer.apply(gradients, model.trainable_variables)  # sums the gradients of all devices
        return loss

    @tf.function
    def step(*batch):
        return strategy.reduce("SUM", strategy.run(step_on_device, args=batch), axis=None)

    def part(array):
        """The part of a batch for each device of this process."""
        return strategy.experimental_distribute_values_from_function(
            lambda device: tf.constant(array[device.replica_id_in_sync_group :: devices])
        )

    def train(epoch):
        return float(np.mean([step(*map(part, batch)) for batch in batches(epoch)]))

    return model, train, not strategy.cluster_resolver.task_id


def save(path, write):
    """On JAX, saving gathers the weights from all processes, so each process saves. The file of the first is kept."""
    if is_first:
        return write_aside(path, write)
    with tempfile.TemporaryDirectory() as aside:
        write(Path(aside) / path.name)


model, train, is_first = {"jax": on_jax, "tensorflow": on_tensorflow}[backend_name()]()
state = folder / "state.weights.h5"  # includes the optimizer's variables, and with them the number of steps
done = 0
if state.exists():
    model.load_weights(state)
    done = int(ops.convert_to_numpy(model.optimizer.iterations)) // steps
folder.mkdir(parents=True, exist_ok=True)
for epoch in range(done, epochs):
    loss = train(epoch)
    save(state, model.save_weights)
    if is_first:
        print(f"epoch {epoch + 1}: loss {loss:.6f}", flush=True)
save(folder / "tagger.keras", model.save)
