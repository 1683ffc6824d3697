"""Speed of the CRF (loss with gradient, and decoding), compared with other libraries and with plain C.

    python benchmarks/crf_speed.py                                      everything that is installed
    python benchmarks/crf_speed.py --shapes 32,128,31 --backends jax --repeats 5 --out results.json

Loss + gradient (of emissions and transitions) of a batch of mixed lengths, between half and full. Besides kcrf, jitted
and not: the textbook scan (logsumexp of [batch, tags, tags], autodiff), a softmax cross-entropy, bert4keras' layer on
tf_keras with its ViterbiDecoder, pytorch-crf, and as the lower limit a scaled forward-backward recursion in C on one
thread: `C` for any number of tags, and one compiled for a fixed number of tags. Each library has its own process;
they take turns and must compute the same value first. A figure is the median over the turns, a ratio the median of the
ratios within a turn, so that other load on the machine matters less.

Then kcrf's recursions in one loop and in blocks of time (`--parts blocks`), whatever the library itself would choose,
and on torch in its operators.

Then the growth with the length (up to 4,096, time and memory), and what a CRF adds to a training step of a 4-layer,
256-wide transformer. A run that was stopped continues from the file of `--out`. bert4keras runs under the interpreter
named by BERT4KERAS_PYTHON (default: .venv-bert4keras next to the package), pytorch-crf where it is installed.
"""

import argparse
import ctypes
import inspect
import json
import math
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from importlib import metadata
from pathlib import Path

import numpy as np

CLOCK = time.process_time if os.environ.get("CRF_SPEED_PROCESSOR") else time.perf_counter
ROOT = Path(__file__).resolve().parents[1]
BERT4KERAS = os.environ.get("BERT4KERAS_PYTHON", str(ROOT / ".venv-bert4keras/bin/python"))
SHAPES = ["64,128,4", "32,256,4", "32,512,4", "32,128,9", "32,128,31", "32,256,45", "32,128,128"]
BLOCKS = ["64,128,4", "32,256,4", "32,512,4", "16,2048,4", "32,256,9", "8,1025,9", "64,512,9", "8,512,12"]
LONG = ["8,1024,9", "8,4096,9", "32,1024,9"]
BACKENDS = {
    "tensorflow": (sys.executable, {"KERAS_BACKEND": "tensorflow"}),
    "jax": (sys.executable, {"KERAS_BACKEND": "jax"}),
    "torch": (sys.executable, {"KERAS_BACKEND": "torch"}),
    "bert4keras": (BERT4KERAS, {"TF_KERAS": "1", "TF_USE_LEGACY_KERAS": "1"}),
}
# the targets: name, task, contender, what it is compared with, and the largest ratio by the number of tags
JITTED = ("kcrf tensorflow jit", "kcrf jax jit")
WANTED = [
    *(
        (f"{ours} / {limit}", "loss", ours, limit, lambda tags: 2 if tags >= 31 else 3)
        for ours in JITTED
        for limit in ("C", "C, made for the tags")
    ),
    ("tensorflow jit / textbook", "loss", JITTED[0], "textbook tensorflow jit", lambda tags: 1),
    ("jax jit / textbook", "loss", JITTED[1], "textbook jax jit", lambda tags: 1),
    *((f"{ours} / bert4keras", "loss", ours, "bert4keras", lambda tags: 1 / 5) for ours in JITTED),
    *((f"{ours} / pytorch-crf", "loss", ours, "pytorch-crf 2 threads", lambda tags: 1 / 5) for ours in JITTED),
    ("tensorflow graph / bert4keras", "loss", "kcrf tensorflow graph", "bert4keras", lambda tags: 1 / 3),
    *(
        (
            f"torch / pytorch-crf, {n} threads",
            "loss",
            f"kcrf torch {n} threads",
            f"pytorch-crf {n} threads",
            lambda tags: 1 / 3,
        )
        for n in (1, 2)
    ),
    *((f"{ours} / ViterbiDecoder", "decode", ours, "bert4keras", lambda tags: 1 / 10) for ours in JITTED),
    *((f"{ours} / pytorch-crf", "decode", ours, "pytorch-crf 2 threads", lambda tags: 1 / 10) for ours in JITTED),
    ("torch / pytorch-crf", "decode", "kcrf torch 2 threads", "pytorch-crf 2 threads", lambda tags: 1 / 10),
    ("CRF / softmax", "training step", "crf", "softmax", lambda tags: 1.03),
]


class Problem:
    """One batch of mixed lengths with gold tags, the same in every process."""

    def __init__(self, batch, time, tags):
        rng = np.random.default_rng(0)
        self.time, self.size = time, tags
        self.emissions = rng.normal(0, 2, (batch, time, tags)).astype("float32")
        self.transitions = rng.normal(0, 1, (tags, tags)).astype("float32")
        self.tags = rng.integers(0, tags, (batch, time)).astype("int32")
        self.lengths = rng.integers(time // 2, time + 1, batch).astype("int32")
        self.lengths[0] = time
        self.mask = np.arange(time) < self.lengths[:, None]

    def checksum(self, decoded):
        """A checksum of a decoding: the sum of the tags at real positions."""
        return float(np.where(self.mask, np.asarray(decoded), 0).sum())


# --- contenders: functions from a problem to {task: {name: step}}; a step computes its value and returns it


def tensorflow_steps(problem):
    import tensorflow as tf

    from kcrf import crf

    arguments = [tf.constant(x) for x in (problem.emissions, problem.transitions, problem.tags, problem.mask)]

    def with_gradient(loss, jit):
        @tf.function(autograph=False, jit_compile=jit)
        def step(emissions, transitions, tags, mask):
            with tf.GradientTape() as tape:
                tape.watch([emissions, transitions])
                value = loss(emissions, transitions, tags, mask)
            return value, tape.gradient(value, [emissions, transitions])

        return lambda: float(step(*arguments)[0])

    def decoding(jit):
        step = tf.function(lambda e, trans, gold, mask: crf.viterbi(e, mask, trans), autograph=False, jit_compile=jit)
        return lambda: problem.checksum(step(*arguments))

    def scan(step, state, inputs):
        return tf.scan(step, inputs, state)[-1]

    loss = {
        "kcrf tensorflow jit": with_gradient(kcrf_loss, True),
        "kcrf tensorflow graph": with_gradient(kcrf_loss, False),
        "textbook tensorflow jit": with_gradient(textbook_loss(scan), True),
        "softmax tensorflow jit": with_gradient(softmax_loss, True),
    }
    return {"loss": loss, "decode": {"kcrf tensorflow jit": decoding(True), "kcrf tensorflow graph": decoding(False)}}


def jax_steps(problem):
    import jax

    from kcrf import crf

    arguments = [jax.numpy.asarray(x) for x in (problem.emissions, problem.transitions, problem.tags, problem.mask)]

    def with_gradient(loss, jit=jax.jit):
        step = jit(jax.value_and_grad(loss, argnums=(0, 1)))
        return lambda: float(jax.block_until_ready(step(*arguments))[0])

    decode = jax.jit(lambda e, trans, gold, mask: crf.viterbi(e, mask, trans))
    loss = {
        "kcrf jax jit": with_gradient(kcrf_loss),
        "kcrf jax eager": with_gradient(kcrf_loss, jit=lambda f: f),
        "textbook jax jit": with_gradient(textbook_loss(jax_scan)),
        "softmax jax jit": with_gradient(softmax_loss),
    }
    return {"loss": loss, "decode": {"kcrf jax jit": lambda: problem.checksum(decode(*arguments))}}


def loop_and_blocks(name, problem):
    """kcrf's contenders on one thread without XLA, each in one loop over time and in blocks; on torch in operators."""
    from kcrf import crf
    from kcrf.crf import blocks, chain, forward_backward
    from kcrf.crf.chain import takes_chain

    operators = chain.kernels_for

    def prepared(step, recursion, functions):
        shortest = math.inf if recursion == "one loop" else 0

        def call():
            blocks.LIMITS["operations"] = {"sum": shortest, "max": shortest}, math.inf
            kernels_for = operators if recursion == "operators" else lambda emissions: None
            chain.kernels_for = forward_backward.kernels_for = kernels_for
            vars(crf).update(functions)
            return step()

        return call

    found = {}
    for recursion in ("one loop", "blocks", *(["operators"] if name == "torch" else [])):
        axes = {"log_likelihood": None, "viterbi": 1}  # of time
        functions = {of: takes_chain(axis)(inspect.unwrap(getattr(crf, of))) for of, axis in axes.items()}  # retraced
        for task, steps in globals()[f"{name}_steps"](problem).items():
            own = {who: step for who, step in steps.items() if re.match("kcrf(?!.*(jit|2 threads))", who)}
            own = {f"{who}, {recursion}": prepared(step, recursion, functions) for who, step in own.items()}
            found.setdefault(task, {}).update(own)
    return found


def jax_scan(step, state, inputs):
    import jax

    return jax.lax.scan(lambda s, x: (step(s, x), None), state, inputs)[0]


def jax_memory(problem):
    """Bytes that XLA sets aside for the intermediate results of a loss + gradient."""
    import jax

    arguments = problem.emissions, problem.transitions, problem.tags, problem.mask

    def reserved(loss):
        compiled = jax.jit(jax.value_and_grad(loss, argnums=(0, 1))).lower(*arguments).compile()
        return compiled.memory_analysis().temp_size_in_bytes

    losses = {"kcrf": kcrf_loss, "textbook": textbook_loss(jax_scan), "softmax": softmax_loss}
    return {name: reserved(loss) for name, loss in losses.items()}


def torch_steps(problem):
    import torch

    from kcrf import crf

    emissions, transitions = (torch.tensor(x, requires_grad=True) for x in (problem.emissions, problem.transitions))
    arguments = emissions, transitions, torch.tensor(problem.tags).long(), torch.tensor(problem.mask)

    def with_gradient(loss):
        def step():
            value = loss(*arguments)
            torch.autograd.grad(value, arguments[:2], allow_unused=True)
            return value.item()

        return step

    def scan(step, state, inputs):
        for item in zip(*inputs, strict=True):
            state = step(state, item)
        return state

    loss = {"kcrf torch": kcrf_loss, "textbook torch": textbook_loss(scan), "softmax torch": softmax_loss}
    loss = {name: with_gradient(function) for name, function in loss.items()}
    decode = {"kcrf torch": lambda: problem.checksum(crf.viterbi(emissions, arguments[3], transitions).numpy())}
    try:
        loss["pytorch-crf"], decode["pytorch-crf"] = pytorch_crf_steps(problem, arguments)
    except ImportError:
        print("pytorch-crf is not installed", file=sys.stderr)

    def on(threads, step):
        def call():
            torch.set_num_threads(threads)
            return step()

        return call

    steps = {"loss": loss, "decode": {name: torch.no_grad()(step) for name, step in decode.items()}}
    return {
        task: {f"{name} {n} threads": on(n, step) for name, step in of.items() for n in (2, 1)}
        for task, of in steps.items()
    }


def pytorch_crf_steps(problem, arguments):
    import torch
    from torchcrf import CRF

    emissions, _, tags, mask = arguments
    layer = CRF(problem.size, batch_first=True)
    with torch.no_grad():
        layer.transitions.copy_(torch.tensor(problem.transitions))
        layer.start_transitions.zero_()
        layer.end_transitions.zero_()

    def loss():
        value = -layer(emissions, tags, mask)
        torch.autograd.grad(value, (emissions, layer.transitions))
        return value.item()

    return loss, lambda: float(sum(map(sum, layer.decode(emissions, mask))))


def bert4keras_steps(problem):
    import tensorflow as tf
    from bert4keras.layers import ConditionalRandomField
    from bert4keras.snippets import ViterbiDecoder

    layer = ConditionalRandomField()
    layer.build((None, problem.time, problem.size))
    layer._trans.assign(problem.transitions)
    outputs = tf.constant(np.where(problem.mask[:, :, None], problem.emissions, -np.inf).astype("float32"))
    tags = tf.constant(problem.tags)

    @tf.function(autograph=False)
    def step(tags, outputs):
        with tf.GradientTape() as tape:
            tape.watch(outputs)
            value = tf.reduce_sum(layer.sparse_loss(tags, outputs))
        return value, tape.gradient(value, [outputs, layer._trans])

    decoder = ViterbiDecoder(problem.transitions)
    sentences = [emissions[:length] for emissions, length in zip(problem.emissions, problem.lengths, strict=True)]
    return {
        "loss": {"bert4keras": lambda: float(step(tags, outputs)[0])},
        "decode": {"bert4keras": lambda: float(sum(decoder.decode(nodes).sum() for nodes in sentences))},
    }


def kcrf_loss(emissions, transitions, tags, mask):
    from kcrf import crf
    from kcrf.backend import ops

    return -ops.sum(crf.log_likelihood(emissions, tags, mask, transitions))


def textbook_loss(scan):
    """The CRF as it is usually written, for `scan(step, state, inputs) -> last state`, time first."""
    from kcrf.backend import ops

    def loss(emissions, transitions, tags, mask):
        def step(state, inputs):
            emission, link = inputs
            moved = ops.logsumexp(state[:, :, None] + transitions, axis=1) + emission
            return ops.where(link, moved, state)

        real = ops.cast(mask, "float32")
        inputs = (ops.swapaxes(emissions[:, 1:], 0, 1), ops.swapaxes(mask[:, 1:], 0, 1)[:, :, None])
        log_z = ops.logsumexp(scan(step, emissions[:, 0], inputs), axis=1)
        emitted = ops.take_along_axis(emissions, tags[:, :, None], axis=2)[:, :, 0] * real
        pairs = tags[:, :-1] * transitions.shape[0] + tags[:, 1:]
        moved = ops.take(ops.reshape(transitions, (-1,)), pairs) * real[:, 1:]
        return ops.sum(log_z) - ops.sum(emitted) - ops.sum(moved)

    return loss


def softmax_loss(emissions, transitions, tags, mask):
    from kcrf.backend import ops

    picked = ops.take_along_axis(ops.log_softmax(emissions), tags[:, :, None], axis=2)[:, :, 0]
    return -ops.sum(picked * ops.cast(mask, "float32"))


def c_steps(problem):
    plain, known = compiled_limit(problem), compiled_limit(problem, f"-DTAGS={problem.size}")
    return {"loss": {"C": lambda: plain()[0], "C, made for the tags": lambda: known()[0]}}


def compiled_limit(problem, *flags):
    """A function that returns the loss and the gradients of emissions and transitions."""
    with tempfile.TemporaryDirectory() as folder:
        source, library = str(Path(__file__).with_name("crf_limit.c")), str(Path(folder, "crf.so"))
        flags = ["-O3", "-march=native", "-ffast-math", *flags, "-shared", "-fPIC"]  # else sums are not vectorized
        subprocess.run(["gcc", *flags, source, "-o", library, "-lm"], check=True)
        function = ctypes.CDLL(library).crf
    function.restype = ctypes.c_double
    gradients = np.empty_like(problem.emissions), np.empty_like(problem.transitions)
    arrays = [problem.emissions, problem.tags, problem.lengths, problem.transitions, *gradients]
    pointers = [x.ctypes.data_as(ctypes.c_void_p) for x in arrays]
    return lambda: (function(*problem.emissions.shape, *pointers), *gradients)


def check_limit():
    """Compares the C code with the textbook in NumPy float64 and with its finite differences."""
    problem = Problem(3, 6, 5)

    def loss(emissions, transitions):
        total = 0.0
        for scores, tags, length in zip(emissions, problem.tags, problem.lengths, strict=True):
            state = scores[0]
            for row in scores[1:length]:
                state = np.logaddexp.reduce(state[:, None] + transitions, axis=0) + row
            total += np.logaddexp.reduce(state) - scores[range(length), tags[:length]].sum()
            total -= transitions[tags[: length - 1], tags[1:length]].sum()
        return total

    value, *gradients = compiled_limit(problem)()
    points = [problem.emissions.astype("float64"), problem.transitions.astype("float64")]
    np.testing.assert_allclose(value, loss(*points), rtol=1e-5)
    for point, gradient in zip(points, gradients, strict=True):
        for index in np.ndindex(point.shape):
            kept, sides = point[index], []
            for point[index] in (kept + 1e-5, kept - 1e-5):
                sides.append(loss(*points))
            point[index] = kept
            np.testing.assert_allclose(gradient[index], (sides[0] - sides[1]) / 2e-5, atol=1e-5)


def transformer_steps(shape, tags=4, vocabulary=4000, width=256, layers=4):
    """A jitted training step, with Adam, of a small BERT with a softmax or a CRF on top."""
    from kcrf.backend import keras
    from kcrf.layers import ConditionalRandomField
    from kcrf.models import build_transformer_model

    sizes = {"vocab_size": vocabulary, "hidden_size": width, "num_hidden_layers": layers, "num_attention_heads": 4}
    sizes |= {"intermediate_size": 4 * width, "hidden_act": "gelu", "max_position": 512}
    problem = Problem(shape[0], shape[1], tags)
    tokens = np.random.default_rng(0).integers(5, vocabulary, problem.tags.shape).astype("int32") * problem.mask

    def training(head):
        encoder = build_transformer_model(**sizes)
        scores = keras.layers.Dense(tags)(encoder.output)
        layer = ConditionalRandomField(100)
        loss = layer.sparse_loss if head == "crf" else keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        model = keras.Model(encoder.input, layer(scores) if head == "crf" else scores)
        model.compile("adam", loss=loss, jit_compile=True)
        return lambda: float(model.train_on_batch([tokens, np.zeros_like(tokens)], problem.tags) * 0)

    return {"training step": {head: training(head) for head in ("crf", "softmax")}}


# --- a worker: a process that makes contenders and runs them one at a time; requests and answers are lines of JSON


def work(name):
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print must not mix with the answers
    sys.path.insert(0, str(ROOT))
    steps = {}
    for line in sys.stdin:
        question = json.loads(line)
        if "make" in question:
            steps, answer = made(name, **question["make"])
        else:
            answer = timed(steps[question["task"]][question["name"]])
        print(json.dumps(answer), file=answers, flush=True)


def made(name, kind, shape):
    """The steps after warming up, and their values (or why there is none)."""
    if kind == "memory":
        return {}, jax_memory(Problem(*shape))
    if kind == "transformer":
        steps = transformer_steps(shape)
    elif kind == "blocks":
        steps = loop_and_blocks(name, Problem(*shape))
    else:
        steps = globals()[f"{name}_steps"](Problem(*shape))
    if kind == "long":
        steps = {"loss": {name: step for name, step in steps["loss"].items() if re.search("^C|jit|2 threads", name)}}
    return steps, {task: {name: warmed(step) for name, step in of.items()} for task, of in steps.items()}


def warmed(step):
    try:
        step()
        return step()
    except Exception as error:  # a contender may fail at a shape; the others go on
        return f"{type(error).__name__}: {str(error)[:200]}"


def timed(step, least=0.03):
    """Seconds a call: the median over a turn, which lasts 30 ms or one call."""
    seconds = []
    while sum(seconds) < least:
        started = CLOCK()
        step()
        seconds.append(CLOCK() - started)
    return statistics.median(seconds)


class Worker:
    """A worker process seen from the main one; it lives for one case."""

    def __init__(self, name):
        self.process = start(name, stdin=subprocess.PIPE)

    def ask(self, **question):
        self.send(**question)
        return self.receive()

    def send(self, **question):
        self.process.stdin.write(json.dumps(question) + "\n")
        self.process.stdin.flush()

    def receive(self):
        answer = self.process.stdout.readline()
        if not answer:
            raise RuntimeError(f"A worker ended; CRF_SPEED_VERBOSE=1 shows why. It ran {self.process.args}")
        return json.loads(answer)

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def start(name, **options):
    python, own = BACKENDS.get(name, (sys.executable, {}))
    kept = {k: v for k, v in os.environ.items() if k != "KERAS_BACKEND" and (k != "PYTHONPATH" or python != BERT4KERAS)}
    environment = {**kept, **own, "TF_CPP_MIN_LOG_LEVEL": "3"}
    command = [python, "-W", "ignore", __file__, "--worker", name]
    errors = None if os.environ.get("CRF_SPEED_VERBOSE") else subprocess.DEVNULL
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=errors, text=True, **options)


# --- the run


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shapes", nargs="*", default=SHAPES, help="batch,time,tags")
    parser.add_argument("--backends", nargs="+", choices=BACKENDS, default=list(BACKENDS))
    parser.add_argument("--repeats", type=int, default=7, help="turns of every contender")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--out", type=Path, help="JSON; a run that was stopped goes on from it")
    parser.add_argument("--processor-time", action="store_true", help="measure it in place of wall time, on one thread")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker:
        return work(arguments.worker)
    if arguments.processor_time:
        one = ("CRF_SPEED_PROCESSOR", "OMP_NUM_THREADS", "TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS")
        os.environ.update(dict.fromkeys(one, "1"))  # read by the workers
    results = run(arguments)
    show(results)


def run(arguments):
    results = json.loads(arguments.out.read_text()) if arguments.out and arguments.out.exists() else {}
    check_limit()
    if "bert4keras" in arguments.backends and not Path(BERT4KERAS).exists():
        print(f"without bert4keras: no {BERT4KERAS}", file=sys.stderr)
        arguments.backends.remove("bert4keras")
    results["machine"] = machine()
    for part in arguments.parts:
        for shape, names in PARTS[part](arguments):
            key = " ".join((part, shape, *(names if part == "transformer" else ())))
            if key not in results:
                print(key, file=sys.stderr, flush=True)
                results[key] = (
                    remember(shape, *names) if part == "memory" else compare(part, shape, names, arguments.repeats)
                )
                save(results, arguments.out)
    return results


# part of the benchmark -> its cases: a shape and the contenders
PARTS = {
    "shapes": lambda arguments: [(shape, ["c", *arguments.backends]) for shape in arguments.shapes],
    "blocks": lambda arguments: [(shape, without(arguments, "bert4keras", "jax")) for shape in BLOCKS],
    "long": lambda arguments: [(shape, ["c", *without(arguments, "bert4keras")]) for shape in LONG],
    "memory": lambda arguments: [(shape, ["jax"]) for shape in (*LONG, "8,1024,36") if "jax" in arguments.backends],
    "transformer": lambda arguments: [("32,128", [name]) for name in without(arguments, "bert4keras", "torch")],
}


def without(arguments, *names):
    return [name for name in arguments.backends if name not in names]


def compare(part, shape, names, repeats):
    """Makes the contenders of a case, checks that they agree, and lets them take turns."""
    workers = [Worker(name) for name in names]
    for worker in workers:
        worker.send(make={"kind": part, "shape": numbers(shape)})
    values = [worker.receive() for worker in workers]
    failed = disagreeing(values)
    turns = [
        (worker, task, name)
        for worker, tasks in zip(workers, values, strict=True)
        for task, found in tasks.items()
        for name in found
        if name not in failed.get(task, ())
    ]
    load, seconds = [os.getloadavg()[0]], {}
    for _ in range(repeats):
        for worker, task, name in turns:
            seconds.setdefault(task, {}).setdefault(name, []).append(worker.ask(task=task, name=name))
    load.append(os.getloadavg()[0])
    for worker in workers:
        worker.close()
    return {"seconds": seconds, "failed": failed, "load average": load}


def disagreeing(values):
    """{task: {name: reason}} for what failed or gave another value than the first contender (C, or kcrf)."""
    failed = {}
    for task in {task for tasks in values for task in tasks}:
        found = {name: value for tasks in values for name, value in tasks.get(task, {}).items()}
        expected = next(value for value in found.values() if not isinstance(value, str))
        for name, value in found.items():
            if isinstance(value, str):
                failed.setdefault(task, {})[name] = value
            elif "softmax" not in name and abs(value - expected) > 1e-3 * abs(expected):
                failed.setdefault(task, {})[name] = f"value {value} where {expected} is right"
    return failed


def remember(shape, name):
    """Memory of the intermediate results, which only JAX reports, and the size of the emissions."""
    worker = Worker(name)
    found = worker.ask(make={"kind": "memory", "shape": numbers(shape)})
    worker.close()
    return {"bytes": found, "tensor": int(4 * np.prod(numbers(shape)))}


def save(results, path):
    if path:
        aside = path.with_suffix(".part")
        aside.write_text(json.dumps(results, indent=1), encoding="utf-8")
        os.replace(aside, path)


def numbers(text):
    return [int(part) for part in text.split(",")]


def machine():
    names = ("keras", "tensorflow", "tensorflow_cpu", "jax", "torch", "numpy", "pytorch-crf")
    versions = {name: version(name) for name in names}
    return {"cores": os.cpu_count(), "load average": os.getloadavg(), "versions": versions}


def version(name):
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


# --- the tables


def show(results):
    from rich.console import Console

    console = Console(width=None if sys.stdout.isatty() else 200)
    for part in ("shapes", "blocks", "long", "transformer"):
        cases = {key.split(" ", 1)[1]: value for key, value in results.items() if key.startswith(part + " ")}
        for task in dict.fromkeys(task for case in cases.values() for task in case["seconds"]):
            console.print(milliseconds(f"{part}: {task}, ms (times C)", task, cases))
        if part not in ("blocks", "long") and cases:
            console.print(verdicts(f"{part}: wanted", cases))
        for name, case in cases.items():
            for task, reasons in case["failed"].items():
                console.print(f"{name} {task} failed: {reasons}")
    memory = {key: value for key, value in results.items() if key.startswith("memory ")}
    for key, value in memory.items():
        sizes = ", ".join(f"{name} {size / value['tensor']:.1f}" for name, size in value["bytes"].items())
        console.print(
            f"{key}: intermediate results, in sizes of the emissions ({value['tensor'] / 1e6:.1f} MB): {sizes}"
        )


def milliseconds(title, task, cases):
    from rich.table import Table

    table = Table("", *cases, title=title)
    for name in dict.fromkeys(name for case in cases.values() for name in case["seconds"].get(task, {})):
        row = []
        for case in cases.values():
            found = case["seconds"].get(task, {})
            limit = ratio(found, name, "C")
            times = "" if limit is None or name == "C" else f" ({limit:.1f})"
            row.append(f"{1e3 * statistics.median(found[name]):.2f}{times}" if name in found else "")
        table.add_row(name, *row)
    return table


def ratio(seconds, name, rival):
    """The median of the turns' ratios, or None."""
    if name in seconds and rival in seconds:
        return statistics.median(a / b for a, b in zip(seconds[name], seconds[rival], strict=True))


def verdicts(title, cases):
    from rich.table import Table

    table = Table("task", "ratio", *cases, title=title)
    for label, task, ours, rival, wanted in WANTED:
        row = []
        for shape, case in cases.items():
            found = ratio(case["seconds"].get(task, {}), ours, rival)
            most = wanted(numbers(re.match(r"[\d,]+", shape)[0])[-1])
            row.append(verdict(found, most))
        if any(row):
            table.add_row(task, label, *row)
    return table


def verdict(found, most):
    """A ratio and whether it meets its target; a ratio to something slower is written as `1 / n`."""
    if found is None:
        return ""
    text = f"{found:.3g} of {most:.3g}" if most >= 1 else f"1/{1 / found:.3g} of 1/{1 / most:.3g}"
    return f"[green]{text}[/]" if found <= most else f"[red]{text}[/]"


if __name__ == "__main__":
    main()
