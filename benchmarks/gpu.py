"""Speed on a GPU: the CRF alone, and training steps of a BERT with and without a CRF, beside other libraries.

    python benchmarks/gpu.py                          everything that is installed, in less than four minutes
    python benchmarks/gpu.py --out results.json       also writes the results with versions and the name of the card
    python benchmarks/gpu.py --tiny                   small sizes, which also run on a CPU: tests the script

Prints milliseconds, the median of calls after two that compile; a call ends when its value is on the host. Loss +
gradient are of the emissions and transitions of a batch with lengths between half and full; all contenders of a shape
must compute the same loss. A step is forward, backward and optimizer. Each backend runs in a process of its own: torch
starts no measurement after half of `--seconds`, and JAX none after all of them. What is not installed, fails, or has no
time left is left out and named. The file of `--out` is written after every measurement.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from functools import partial
from importlib import metadata
from pathlib import Path

import numpy as np

STARTED = float(os.environ.get("GPU_STARTED", time.time()))
SHAPES = ["32,128,4", "64,128,9", "32,256,31", "64,512,9", "16,2048,4", "32,128,128"]
SHARES = {"torch": 0.5, "jax": 1.0}  # of the seconds, when the last measurement of a backend starts
GRACE = 20  # seconds for a measurement that has started
MARK = "kcrf-gpu "  # before each result of a process: libraries print, too
PACKAGES = ("kcrf", "keras", "torch", "triton", "jax", "jaxlib", "numpy", "transformers", "pytorch-crf")
BERT = {"vocab_size": 30_522, "hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12}
TINY = {"vocab_size": 99, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}


def main():
    arguments = parsed()
    if arguments.worker:
        return work(arguments)
    results = {"devices": [], "versions": versions(), "seconds": 0, "rows": []}
    for backend, share in SHARES.items():
        for key, value in found_by(backend, share * arguments.seconds, arguments):
            results[key].append(value)
            results["seconds"] = round(time.time() - STARTED)
            if arguments.out:  # after every row, so that a run that is stopped leaves its results
                Path(arguments.out).write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    show(results)


def found_by(backend, until, arguments):
    """Yields ("devices" or "rows", value) as the process of a backend finds them; it ends soon after `until`."""
    environment = {**os.environ, "KERAS_BACKEND": backend, "GPU_STARTED": str(STARTED), "TF_CPP_MIN_LOG_LEVEL": "3"}
    environment["PYTHONPATH"] = os.pathsep.join([str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    environment.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    command = [sys.executable, __file__, "--worker", backend, "--seconds", str(until), *["--tiny"] * arguments.tiny]
    with tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=errors, text=True)
        limit = threading.Timer(max(0, until + GRACE - (time.time() - STARTED)), process.kill)
        limit.start()
        for line in process.stdout:
            if line.startswith(MARK):
                yield json.loads(line.removeprefix(MARK))
        limit.cancel()
        if process.wait():
            errors.seek(0)
            lines = (
                ["ended by a signal: no time left"] if process.returncode < 0 else errors.read().strip().splitlines()
            )
            reason = (lines or ["no reason given"])[-1][:200]
            yield "rows", {"task": "all", "name": f"kcrf {backend}", "case": "", "left out": reason}


def parsed():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tiny", action="store_true", help="small sizes, to test the script on a CPU")
    parser.add_argument(
        "--seconds", type=float, default=210, help="start no measurement after this time (default: 210)"
    )
    parser.add_argument("--out", help="a JSON file for the results")
    parser.add_argument("--worker", choices=("torch", "jax"), help=argparse.SUPPRESS)
    return parser.parse_args()


def versions():
    found = {}
    for name in PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = None
    return found


def show(results):
    print("; ".join(results["devices"]) or "no device")
    print(", ".join(f"{name} {version}" for name, version in results["versions"].items() if version))
    for task in dict.fromkeys(row["task"] for row in results["rows"]):
        rows = [row for row in results["rows"] if row["task"] == task]
        cases = list(dict.fromkeys(row["case"] for row in rows))
        print(f"\n| {task}, ms | " + " | ".join(cases) + " |\n|---|" + "---:|" * len(cases))
        for name in dict.fromkeys(row["name"] for row in rows):
            cells = {row["case"]: row for row in rows if row["name"] == name}
            texts = (f"{cells[c]['ms']:.3g}" if c in cells and "ms" in cells[c] else "-" for c in cases)
            print(f"| {name} | " + " | ".join(texts) + " |")
        for row in rows:
            if "left out" in row:
                print(f"{row['name']} {row['case']}: left out, {row['left out']}")
    print(f"\n{results['seconds']} seconds")


def work(arguments):
    """Prints all measurements of one backend, each as it ends."""
    from crf_speed import Problem

    def tell(*found):
        print(MARK + json.dumps(found), flush=True)

    tell("devices", f"{arguments.worker}: {device_name(arguments.worker)}")
    found = {}
    for shape in ["4,16,4"] if arguments.tiny else SHAPES:
        try:
            problem = Problem(*map(int, shape.split(",")))
            found[shape] = {"torch": torch_crf, "jax": jax_crf}[arguments.worker](problem), {}
        except Exception as error:  # no memory: another shape may fit
            tell("rows", {"task": "all", "name": arguments.worker, "case": shape, "left out": reason_of(error)})

    def chains(is_wanted):
        for shape, (tasks, values) in found.items():
            for task, contenders in tasks.items():
                for name in filter(is_wanted, contenders):
                    known = values if task.startswith("loss") else {}
                    tell("rows", measured(arguments, task, name, shape, contenders[name], known))

    def steps(precision):
        models = {"torch": {"kcrf torch": kcrf_step, "Hugging Face": hugging_face_step}, "jax": {"kcrf jax": kcrf_step}}
        task, case = ("step of a tiny BERT", "4 x 16") if arguments.tiny else ("step of BERT base", "32 x 128")
        for name, make in models[arguments.worker].items():
            for head in ("softmax", "CRF"):
                step = partial(make, arguments, head, precision)
                tell("rows", measured(arguments, f"{task}, {precision}", f"{name}, {head}", case, step, {}))

    # JAX may not have the time for all: a step of a BERT compiles for a minute, and each contender for seconds.
    chains(lambda name: name.startswith("kcrf"))
    steps("bfloat16")
    chains(lambda name: not name.startswith("kcrf"))
    steps("float32")


def device_name(backend):
    if backend == "torch":
        import torch

        from kcrf.crf.chain import kernels_for

        if not torch.cuda.is_available():
            return "cpu"
        kernels = "" if kernels_for(torch.zeros(1, 1, 2, device="cuda")) else ", without kernels in Triton"
        return torch.cuda.get_device_name() + kernels
    import jax

    return jax.devices()[0].device_kind


def measured(arguments, task, name, case, make, values):
    """A row with the median milliseconds of `make()`; a call returns a value that is complete."""
    row = {"task": task, "name": name, "case": case}
    if time.time() - STARTED > arguments.seconds:
        return {**row, "left out": "no time left"}
    try:
        step = make()
        value = step()
        step()
    except Exception as error:  # a contender that fails must not hide the others
        return {**row, "left out": reason_of(error)}
    if values and "softmax" not in name and abs(value - values["loss"]) > 1e-3 * abs(values["loss"]):
        return {**row, "left out": f"another loss: {value} instead of {values['loss']}"}
    if "softmax" not in name:
        values.setdefault("loss", value)
    times, until = [], time.perf_counter() + 1.5
    while len(times) < 3 or time.perf_counter() < until and len(times) < 30:
        began = time.perf_counter()
        step()
        times.append(time.perf_counter() - began)
    return {**row, "ms": 1e3 * statistics.median(times), "calls": len(times)}


def reason_of(error):
    return f"{type(error).__name__}: {error}".splitlines()[0][:200]


def torch_crf(problem):
    import torch

    from kcrf import crf

    device = "cuda" if torch.cuda.is_available() else "cpu"
    tensors = [torch.tensor(x, device=device) for x in (problem.emissions, problem.transitions)]
    emissions, transitions = (x.requires_grad_() for x in tensors)
    tags, mask = torch.tensor(problem.tags, device=device).long(), torch.tensor(problem.mask, device=device)

    def with_gradient(loss):
        def step():
            value = loss(emissions, transitions, tags, mask)
            torch.autograd.grad(value, (emissions, transitions), allow_unused=True)
            if device == "cuda":
                torch.cuda.synchronize()
            return value.item()

        return lambda: step

    def kcrf_loss(emissions, transitions, tags, mask):
        return -crf.log_likelihood(emissions, tags, mask, transitions).sum()

    def softmax_loss(emissions, _, tags, mask):
        return -(emissions.log_softmax(-1).gather(2, tags[:, :, None])[:, :, 0] * mask).sum()

    def peer():
        from torchcrf import CRF

        layer = CRF(problem.size, batch_first=True).to(device)
        with torch.no_grad():
            layer.transitions.copy_(transitions)
            layer.start_transitions.zero_()
            layer.end_transitions.zero_()
        return layer

    def peer_loss():
        layer = peer()

        def loss(emissions, _, tags, mask):
            value = -layer(emissions, tags, mask)
            torch.autograd.grad(value, (emissions, layer.transitions), retain_graph=True)
            return value

        return lambda: loss(emissions, transitions, tags, mask).item()

    def decoding():
        return lambda: crf.viterbi(emissions.detach(), mask, transitions.detach()).sum().item()

    def peer_decoding():
        layer = peer()
        return lambda: len(layer.decode(emissions.detach(), mask))

    return {
        "loss + gradient": {
            "kcrf torch": with_gradient(kcrf_loss),
            "pytorch-crf": peer_loss,
            "softmax torch": with_gradient(softmax_loss),
        },
        "decoding": {"kcrf torch": decoding, "pytorch-crf": peer_decoding},
    }


def jax_crf(problem):
    import jax
    from crf_speed import jax_scan, kcrf_loss, softmax_loss, textbook_loss

    from kcrf import crf

    arrays = [jax.numpy.asarray(x) for x in (problem.emissions, problem.transitions, problem.tags, problem.mask)]

    def with_gradient(loss):
        step = jax.jit(jax.value_and_grad(loss, argnums=(0, 1)))
        return lambda: lambda: float(jax.block_until_ready(step(*arrays))[0])

    decode = jax.jit(lambda emissions, transitions, _, mask: crf.viterbi(emissions, mask, transitions))
    return {
        "loss + gradient": {
            "kcrf jax": with_gradient(kcrf_loss),
            "textbook jax": with_gradient(textbook_loss(jax_scan)),
            "softmax jax": with_gradient(softmax_loss),
        },
        "decoding": {"kcrf jax": lambda: lambda: jax.block_until_ready(decode(*arrays)) is None},
    }


def sentences(arguments, tags=9):
    batch, length = (4, 16) if arguments.tiny else (32, 128)
    random = np.random.default_rng(0)
    tokens = random.integers(1, TINY["vocab_size"], (batch, length)).astype("int32")
    tokens[np.arange(length) >= random.integers(length // 2, length + 1, batch)[:, None]] = 0
    return tokens, random.integers(0, tags, (batch, length)).astype("int32")


def kcrf_step(arguments, head, precision, tags=9):
    from kcrf.backend import keras, ops
    from kcrf.layers import ConditionalRandomField
    from kcrf.models import build_transformer_model
    from kcrf.optimizers import AdamWeightDecay

    keras.config.set_dtype_policy("mixed_bfloat16" if precision == "bfloat16" else precision)
    size = TINY if arguments.tiny else BERT
    sizes = {**size, "intermediate_size": 4 * size["hidden_size"], "hidden_act": "gelu", "max_position": 512}
    encoder = build_transformer_model(**sizes, dropout_rate=0.1, attention_dropout_rate=0.1)
    outputs = keras.layers.Dense(tags, dtype="float32")(encoder.output)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    if head == "CRF":
        layer = ConditionalRandomField(lr_multiplier=100)
        outputs, loss = layer(outputs), layer.sparse_loss
    model = keras.Model(encoder.inputs, outputs)
    keras.config.set_dtype_policy("float32")  # for the measurements that follow
    model.compile(AdamWeightDecay(2e-5), loss)
    tokens, labels = map(ops.convert_to_tensor, sentences(arguments))  # on the device, as Hugging Face's
    inputs = [tokens, ops.zeros_like(tokens)]
    return lambda: float(model.train_on_batch(inputs, labels))


def hugging_face_step(arguments, head, precision, tags=9):
    import torch
    from transformers import BertConfig, BertForTokenClassification

    device = "cuda" if torch.cuda.is_available() else "cpu"
    size = TINY if arguments.tiny else BERT
    config = BertConfig(**size, intermediate_size=4 * size["hidden_size"], num_labels=tags)
    model = BertForTokenClassification(config).to(device).train()
    parameters = list(model.parameters())
    if head == "CRF":
        from torchcrf import CRF

        layer = CRF(tags, batch_first=True).to(device)
        parameters += list(layer.parameters())
    optimizer = torch.optim.AdamW(parameters, 2e-5)
    ids, labels = (torch.tensor(x, device=device).long() for x in sentences(arguments))
    mask = ids != 0

    def step():
        with torch.autocast(device, torch.bfloat16, enabled=precision == "bfloat16"):
            output = model(ids, attention_mask=mask, labels=None if head == "CRF" else labels.where(mask, -100))
        loss = output.loss if head != "CRF" else -layer(output.logits.float(), labels, mask, reduction="mean")
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


if __name__ == "__main__":
    main()
