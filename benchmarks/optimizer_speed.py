"""Speed of one optimizer step on the variables of BERT-base, compared with Keras' own AdamW.

    KERAS_BACKEND=jax python benchmarks/optimizer_speed.py [--repeats 7] [--layers 12]

TensorFlow and JAX steps are compiled (XLA). The optimizers take turns, and the ratio is that of their fastest steps,
so that other load on the machine matters less. Prints one JSON line.
"""

import argparse
import json
import os
import time
from contextlib import ExitStack

os.environ.setdefault("KERAS_BACKEND", "tensorflow")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np

from kcrf.backend import backend_name, keras
from kcrf.optimizers import AdamWeightDecay, layerwise_decay


def bert_variables(layers, hidden=768, vocabulary=21128):
    """Names and shapes as in BERT-base for Chinese, with a CRF head."""
    dense = [("kernel", (hidden, hidden)), ("bias", (hidden,))]
    norm = [("gamma", (hidden,)), ("beta", (hidden,))]
    wide = [("dense/kernel", (hidden, 4 * hidden)), ("dense/bias", (4 * hidden,))]
    wide += [("dense_1/kernel", (4 * hidden, hidden)), ("dense_1/bias", (hidden,))]
    shapes = {f"Embedding-{part}/embeddings": (n, hidden) for part, n in (("Token", vocabulary), ("Position", 512))}
    shapes |= {f"Embedding-Norm/{leaf}": shape for leaf, shape in norm}
    for i in range(layers):
        attention = f"Transformer-{i}-MultiHeadSelfAttention"
        shapes |= {f"{attention}/{part}/{leaf}": shape for part in "qkvo" for leaf, shape in dense}
        shapes |= {f"Transformer-{i}-FeedForward/{leaf}": shape for leaf, shape in wide}
        shapes |= {f"{attention}-Norm/{leaf}": shape for leaf, shape in norm}
        shapes |= {f"Transformer-{i}-FeedForward-Norm/{leaf}": shape for leaf, shape in norm}
    shapes |= {"Dense/kernel": (hidden, 4), "Dense/bias": (4,), "CRF/transitions": (4, 4)}
    return shapes


def variables_of(shapes):
    made = []
    for path, shape in shapes.items():
        *scopes, leaf = path.split("/")
        with ExitStack() as stack:
            for scope in scopes:
                stack.enter_context(keras.name_scope(scope))
            made.append(keras.Variable(np.full(shape, 0.02, "float32"), name=leaf))
    return made


def optimizers(layers):
    """Name to a function that makes the optimizer."""
    groups = ["Embedding-", *(f"Transformer-{i}-" for i in range(layers))]

    def keras_adamw():
        optimizer = keras.optimizers.AdamW(1e-5, weight_decay=0.01)
        optimizer.exclude_from_weight_decay(var_names=["bias", "gamma", "beta"])
        return optimizer

    return {
        "keras.AdamW": keras_adamw,
        "AdamWeightDecay": lambda: AdamWeightDecay(1e-5),
        "AdamWeightDecay, CRF x100": lambda: AdamWeightDecay(1e-5, lr_multipliers={"CRF": 100}),
        "AdamWeightDecay, layerwise": lambda: AdamWeightDecay(1e-5, lr_multipliers=layerwise_decay(groups, 0.9)),
    }


def stepper(optimizer, shapes):
    """A function that makes one step and returns when it has finished."""
    variables = variables_of(shapes)
    gradients = [keras.ops.full(shape, 1e-3, "float32") for shape in shapes.values()]
    optimizer.build(variables)
    if backend_name() == "tensorflow":
        import tensorflow as tf

        step = tf.function(lambda: optimizer.apply(gradients), jit_compile=True)
        return lambda: (step(), variables[-1].numpy())
    if backend_name() == "jax":
        return jax_stepper(optimizer, variables, gradients)
    import torch

    def step():
        optimizer.apply(gradients)
        if torch.cuda.is_available():
            torch.cuda.synchronize()

    return torch.no_grad()(step)


def jax_stepper(optimizer, variables, gradients):
    import jax

    compiled = jax.jit(optimizer.stateless_apply, donate_argnums=(0, 2))
    state = [[v.value for v in optimizer.variables], [v.value for v in variables]]

    def step():
        state[1], state[0] = compiled(state[0], gradients, state[1])
        jax.block_until_ready(state)

    return step


def measure(repeats, layers):
    shapes = bert_variables(layers)
    steps = {name: stepper(make(), shapes) for name, make in optimizers(layers).items()}
    times = {name: [] for name in steps}
    for turn in range(repeats + 2):  # two turns warm up
        for name, step in steps.items():
            start = time.perf_counter()
            step()
            if turn >= 2:
                times[name].append(time.perf_counter() - start)
    best = {name: min(seconds) for name, seconds in times.items()}
    parameters = sum(int(np.prod(shape)) for shape in shapes.values())
    return {
        "backend": backend_name(),
        "parameters": parameters,
        "variables": len(shapes),
        "milliseconds": {name: round(1e3 * seconds, 1) for name, seconds in best.items()},
        "ratio to keras.AdamW": {name: round(seconds / best["keras.AdamW"], 3) for name, seconds in best.items()},
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--layers", type=int, default=12)
    arguments = parser.parse_args()
    print(json.dumps(measure(arguments.repeats, arguments.layers)))
