"""Optimizers written out in NumPy float64, and variables with paths. Imports nothing of ours."""

from contextlib import ExitStack

import numpy as np

SHAPES = {
    "Embedding-Token/embeddings": (5, 3),
    "Embedding-Norm/gamma": (3,),
    "Transformer-1-FeedForward/dense/kernel": (3, 4),
    "Transformer-1-FeedForward/dense/bias": (4,),
    "Transformer-10-FeedForward/kernel": (4, 2),
    "CRF/transitions": (2, 2),
}


def make_variables(keras, values):
    """Keras variables from a dict of path to array."""
    made = []
    for path, value in values.items():
        *scopes, leaf = path.split("/")
        with ExitStack() as stack:
            for scope in scopes:
                stack.enter_context(keras.name_scope(scope))
            made.append(keras.Variable(np.asarray(value, "float32"), name=leaf))
    return made


def draw(steps, shapes=SHAPES, seed=0):
    """Start values and one list of gradients per step, from tiny to large, a few of them exactly zero."""
    rng = np.random.default_rng(seed)
    start = {path: rng.normal(size=shape).astype("float32") for path, shape in shapes.items()}
    scales = 10.0 ** rng.uniform(-4, 1, size=steps)
    gradients = [[(rng.normal(size=shape) * scale).astype("float32") for shape in shapes.values()] for scale in scales]
    for gradient in gradients:
        gradient[0][1] = 0.0  # a token that never occurs
    return start, gradients


def clip(gradients, norm):
    total = np.sqrt(sum(np.sum(np.square(g, dtype="float64")) for g in gradients))
    return [g * min(1.0, norm / total) for g in gradients]


def adam(start, gradients, rate, correct=True, epsilon=1e-6, factors=1.0, decay=0.0, decayed=(), pull=0.0, pulled=(),
         clip_norm=None, every=1, beta_1=0.9, beta_2=0.999):  # fmt: skip
    """All values after each batch, for settings per path; `rate` is a function of the step, 0 first."""
    values = {path: np.array(value, "float64") for path, value in start.items()}
    origin = {path: value.copy() for path, value in values.items()}
    m = {path: np.zeros_like(value) for path, value in values.items()}
    v = {path: np.zeros_like(value) for path, value in values.items()}
    trace, kept, step = [], [], 0
    for batch in gradients:
        kept.append(batch)
        if len(kept) == every:
            mean = [sum(np.asarray(g, "float64") for g in each) / every for each in zip(*kept, strict=True)]
            mean = clip(mean, clip_norm) if clip_norm else mean
            eta, step, kept = rate(step), step + 1, []
            for path, g in zip(values, mean, strict=True):
                m[path] = beta_1 * m[path] + (1 - beta_1) * g
                v[path] = beta_2 * v[path] + (1 - beta_2) * g * g
                first, second = (1 - beta_1**step, 1 - beta_2**step) if correct else (1.0, 1.0)
                update = m[path] / first / (np.sqrt(v[path] / second) + epsilon)
                update += decay * (path in decayed) * values[path]
                update += pull * (path in pulled) * (values[path] - origin[path])
                values[path] = values[path] - eta * (factors[path] if factors != 1.0 else 1.0) * update
        trace.append({path: value.copy() for path, value in values.items()})
    return trace


def google_bert(start, gradients, rate):
    """`AdamWeightDecayOptimizer` and `create_optimizer` of google-research/bert, in the order of their statements."""
    values = {path: np.array(value, "float64") for path, value in start.items()}
    slots = {path: [np.zeros_like(value), np.zeros_like(value)] for path, value in values.items()}
    for global_step, batch in enumerate(gradients):
        for (path, param), grad in zip(list(values.items()), clip(batch, 1.0), strict=True):
            next_m = 0.9 * slots[path][0] + 0.1 * grad
            next_v = 0.999 * slots[path][1] + 0.001 * np.square(grad)
            update = next_m / (np.sqrt(next_v) + 1e-6)
            if not any(part in path for part in ("LayerNorm", "layer_norm", "Norm", "bias")):
                update += 0.01 * param
            values[path] = param - rate(global_step) * update
            slots[path] = [next_m, next_v]
    return values
