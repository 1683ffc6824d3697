"""Tokens a second of BERT encoders, forward and training step, of kcrf and other libraries on the same machine.

    python benchmarks/encoder_speed.py                                  every contender that is installed, both sizes
    python benchmarks/encoder_speed.py --hosts jax torch --sizes 4x256 --rounds 9
    python benchmarks/encoder_speed.py --step                           the cost of a step for the host, on torch

Float32, batches of full length, dropout 0.1 in training (attention included), Adam, mean squared error on the last
hidden state. The libraries of one backend share a process and take turns, so that other load on the machine affects
them equally: the best round of each counts, and the ratio is the median of the rounds' ratios to kcrf. keras-hub
always uses the tanh formula of GELU, the others erf; "kcrf, tanh" is there to compare with it. bert4keras runs under
the interpreter named by BERT4KERAS_PYTHON (default: .venv-bert4keras next to the package).

`--step` measures the processor time of the forward pass, the backward pass and the optimizer of 12 layers, 32 wide,
with a softmax over four tags, one thread. On a GPU, Python takes this time: arithmetic is little. It also counts the
bytes that the forward pass keeps for the gradient, without and with `build_transformer_model(remat=True)`.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
BERT4KERAS = os.environ.get("BERT4KERAS_PYTHON", str(ROOT / ".venv-bert4keras/bin/python"))
SIZES = {  # layers, width, heads
    "4x256": (4, 256, 4),
    "2x768": (2, 768, 12),
}
VOCABULARY, LENGTH = 21128, 128
OLD_HOST = {"TF_KERAS": "1", "TF_USE_LEGACY_KERAS": "1"}
HOSTS = {  # interpreter, environment, contenders
    "tensorflow": (sys.executable, {"KERAS_BACKEND": "tensorflow"}, ("kcrf", "kcrf, tanh", "keras-hub")),
    "jax": (sys.executable, {"KERAS_BACKEND": "jax"}, ("kcrf", "kcrf, tanh", "keras-hub")),
    "torch": (sys.executable, {"KERAS_BACKEND": "torch"}, ("kcrf", "kcrf, tanh", "keras-hub", "Hugging Face")),
    "tf_keras": (BERT4KERAS, OLD_HOST, ("bert4keras",)),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hosts", nargs="+", choices=HOSTS, default=list(HOSTS))
    parser.add_argument("--sizes", nargs="+", choices=SIZES, default=list(SIZES))
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--step", action="store_true")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.step:
        os.environ["KERAS_BACKEND"] = "torch"
        return print_step(arguments.rounds)
    if arguments.worker:
        return work(arguments)
    print(f"{'':28} {'size':6} {'forward':>16} {'training':>16}   tokens a second (times kcrf's)")
    for size in arguments.sizes:
        for host in arguments.hosts:
            in_own_process(host, size, arguments)


def in_own_process(host, size, arguments):
    """Prints the lines of one host."""
    interpreter, environment, _ = HOSTS[host]
    command = [interpreter, __file__, "--worker", host, "--sizes", size]
    command += ["--batch", str(arguments.batch), "--rounds", str(arguments.rounds)]
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    environment = {**os.environ, **environment, "TF_CPP_MIN_LOG_LEVEL": "3", "PYTHONPATH": path}
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
    except FileNotFoundError:
        return print(f"{host:28} not here: no {interpreter}")
    if done.returncode:
        return print(f"{host:28} failed: {(done.stderr.strip().splitlines() or ['no reason given'])[-1][:90]}")
    for name, modes in json.loads(done.stdout.strip().splitlines()[-1]).items():
        told = modes if isinstance(modes, str) else " ".join(f"{r:9,.0f} ({q:.2f})" for r, q in modes)
        print(f"{host + ' ' + name:28} {size:6} {told}", flush=True)


def work(arguments):
    """All contenders of a host: (best rate, ratio to the first) of forward and training."""
    tokens = np.random.default_rng(0).integers(1, VOCABULARY, (arguments.batch, LENGTH)).astype("int32")
    makers = {"kcrf": kcrf_steps, "kcrf, tanh": tanh_steps, "keras-hub": hub_steps}
    makers |= {"Hugging Face": hf_steps, "bert4keras": bert4keras_steps}
    steps, results = {}, {}
    for name in HOSTS[arguments.worker][2]:
        try:
            steps[name] = makers[name](*SIZES[arguments.sizes[0]], tokens)
        except ImportError as error:
            results[name] = f"not here: {error}"
    modes = [seconds({name: both[mode] for name, both in steps.items()}, arguments.rounds) for mode in (0, 1)]
    for name in steps:
        ratios = [statistics.median(a / b for a, b in zip(mode[next(iter(steps))], mode[name])) for mode in modes]
        results[name] = [(tokens.size / min(mode[name]), ratio) for mode, ratio in zip(modes, ratios)]
    print(json.dumps(results))


def seconds(steps, rounds, repeats=3):
    """Seconds a step in every round of each contender, in turns, after two calls that compile."""
    for step in steps.values():
        step(), step()
    times = {name: [] for name in steps}
    for number in range(rounds):
        for name in list(steps)[:: 1 if number % 2 else -1]:
            started = time.perf_counter()
            for _ in range(repeats):
                steps[name]()
            times[name].append((time.perf_counter() - started) / repeats)
    return times


def keras_steps(model, inputs, shape):
    """Forward and training step of a compiled Keras model; both wait for the result and return NumPy values."""
    target = np.zeros(shape, "float32")
    return lambda: model.predict_on_batch(inputs), lambda: model.train_on_batch(inputs, target)


def kcrf_steps(layers, width, heads, tokens, **options):
    from kcrf.models import build_transformer_model

    model = build_transformer_model(**{**sizes(layers, width, heads), **options})
    model.compile(optimizer="adam", loss="mse")
    return keras_steps(model, [tokens, np.zeros_like(tokens)], (*tokens.shape, width))


def tanh_steps(*arguments):
    return kcrf_steps(*arguments, hidden_act="gelu_tanh")


def bert4keras_steps(layers, width, heads, tokens):
    from bert4keras.models import build_transformer_model

    model = build_transformer_model(**sizes(layers, width, heads))
    model.compile(optimizer="adam", loss="mse")
    return keras_steps(model, [tokens, np.zeros_like(tokens)], (*tokens.shape, width))


def sizes(layers, width, heads):
    return {
        "vocab_size": VOCABULARY,
        "hidden_size": width,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "intermediate_size": 4 * width,
        "hidden_act": "gelu",
        "max_position": 512,
        "dropout_rate": 0.1,
        "attention_dropout_rate": 0.1,
    }


def hub_steps(layers, width, heads, tokens):
    import keras
    import keras_hub

    backbone = keras_hub.models.BertBackbone(VOCABULARY, layers, heads, width, 4 * width, dropout=0.1)
    model = keras.Model(backbone.input, backbone.output["sequence_output"])
    model.compile(optimizer="adam", loss="mse")
    inputs = {"token_ids": tokens, "segment_ids": np.zeros_like(tokens), "padding_mask": np.ones_like(tokens)}
    return keras_steps(model, inputs, (*tokens.shape, width))


def hf_steps(layers, width, heads, tokens):
    import torch
    from transformers import BertConfig, BertModel

    config = BertConfig(
        vocab_size=VOCABULARY,
        hidden_size=width,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        intermediate_size=4 * width,
    )
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = BertModel(config, add_pooling_layer=False).to(device)
    optimizer = torch.optim.Adam(model.parameters())
    ids = torch.tensor(tokens, dtype=torch.long, device=device)
    inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}

    def forward():
        model.eval()
        with torch.no_grad():
            return model(**inputs).last_hidden_state.cpu().numpy()

    def train():
        model.train()
        optimizer.zero_grad()
        loss = model(**inputs).last_hidden_state.square().mean()
        loss.backward()
        optimizer.step()
        return loss.item()

    return forward, train


def print_step(rounds):
    """Prints the parts of a step of kcrf and of Hugging Face, which take turns, and what is kept for the gradient."""
    import torch

    torch.set_num_threads(1)
    print(f"{'processor ms, median':28} {'forward':>9} {'backward':>9} {'optimizer':>9} {'step':>9}")
    for shape in ((2, 32), (4, 64)):
        tokens = np.random.default_rng(0).integers(1, 100, shape).astype("int32")
        makers = {"kcrf": kcrf_parts, "Hugging Face": hf_parts}
        contenders, times = {name: maker(tokens) for name, maker in makers.items()}, {name: [] for name in makers}
        for number in range(rounds + 2):
            for name in list(contenders)[:: 1 if number % 2 else -1]:
                forward, backward, update = contenders[name]
                at = [time.process_time()]
                loss = forward()
                at.append(time.process_time())
                backward(loss)
                at.append(time.process_time())
                update()
                at.append(time.process_time())
                if number > 1:
                    times[name].append([at[1] - at[0], at[2] - at[1], at[3] - at[2], at[3] - at[0]])
        medians = {name: [1e3 * statistics.median(part) for part in zip(*rows)] for name, rows in times.items()}
        for name, parts in medians.items():
            print(f"{name:18} {shape!s:9} " + " ".join(f"{part:9.1f}" for part in parts))
        ratios = zip(*[[a / b for a, b in zip(*rows)] for rows in zip(times["kcrf"], times["Hugging Face"])])
        print(f"{'ratio, median of rounds':28} " + " ".join(f"{statistics.median(part):9.2f}" for part in ratios))
    sizes_kept = [kept(remat) / 1e6 for remat in (False, True)]
    print("kept for the gradient, 4x256, 8 x 128 tokens: {:.1f} MB, with remat {:.1f} MB".format(*sizes_kept))


def tiny_tagger(**options):
    from kcrf.backend import keras
    from kcrf.models import build_transformer_model

    encoder = build_transformer_model(**options)
    return keras.Model(encoder.inputs, keras.layers.Dense(4)(encoder.output))


def kcrf_parts(tokens):
    import torch

    from kcrf.backend import keras
    from kcrf.optimizers import AdamWeightDecay

    model, optimizer = tiny_tagger(**{**sizes(12, 32, 2), "vocab_size": 100}), AdamWeightDecay(1e-4)
    loss, variables = keras.losses.SparseCategoricalCrossentropy(from_logits=True), model.trainable_variables
    inputs = [torch.tensor(tokens), torch.zeros(tokens.shape, dtype=torch.int32)]
    labels = torch.zeros(tokens.shape)

    def backward(value):
        model.zero_grad()
        value.backward()

    def update():
        with torch.no_grad():
            optimizer.apply([variable.value.grad for variable in variables], variables)

    return lambda: loss(labels, model(inputs, training=True)), backward, update


def hf_parts(tokens):
    import torch
    from transformers import BertConfig, BertForTokenClassification

    config = BertConfig(
        vocab_size=100,
        hidden_size=32,
        num_hidden_layers=12,
        num_attention_heads=2,
        intermediate_size=128,
        num_labels=4,
    )
    model = BertForTokenClassification(config).train()
    optimizer = torch.optim.AdamW(model.parameters(), 1e-4)
    ids = torch.tensor(tokens, dtype=torch.long)
    inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids), "labels": torch.zeros_like(ids)}

    def backward(value):
        optimizer.zero_grad()
        value.backward()

    return lambda: model(**inputs).loss, backward, optimizer.step


def kept(remat):
    """The bytes that a forward pass keeps for the gradient, without the weights."""
    import torch

    model, found = tiny_tagger(**sizes(*SIZES["4x256"]), remat=remat), {}

    def keep(x):
        found[x.data_ptr()] = x.nbytes
        return x

    tokens = torch.randint(1, VOCABULARY, (8, LENGTH), dtype=torch.int32)
    with torch.autograd.graph.saved_tensors_hooks(keep, lambda x: x):
        outputs = model([tokens, torch.zeros_like(tokens)], training=True)
    weights = {variable.value.data_ptr() for variable in model.trainable_variables}
    outputs.sum()  # the graph lives until here, so that no address is used twice
    return sum(size for address, size in found.items() if address not in weights)


if __name__ == "__main__":
    main()
