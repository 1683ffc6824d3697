"""Tokens a second of BERT encoders, forward and training step, ours beside others' on the same machine.

    python benchmarks/encoder_speed.py                        every contender that is installed, both sizes
    python benchmarks/encoder_speed.py --only kcrf-torch hf-torch --sizes 4x256 --seconds 10

Every contender runs in a process of its own, float32, batches of full length, dropout 0.1 in training (attention
included), Adam, mean squared error on the last hidden state. The best of several timed rounds counts. bert4keras runs
under the interpreter named by BERT4KERAS_PYTHON (default: .venv-bert4keras beside the package). keras-hub always takes
the tanh formula of GELU, the others erf.
"""

import argparse
import json
import os
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
CONTENDERS = {  # interpreter, environment
    "kcrf-tensorflow": (sys.executable, {"KERAS_BACKEND": "tensorflow"}),
    "kcrf-jax": (sys.executable, {"KERAS_BACKEND": "jax"}),
    "kcrf-torch": (sys.executable, {"KERAS_BACKEND": "torch"}),
    "hub-tensorflow": (sys.executable, {"KERAS_BACKEND": "tensorflow"}),
    "hub-jax": (sys.executable, {"KERAS_BACKEND": "jax"}),
    "hub-torch": (sys.executable, {"KERAS_BACKEND": "torch"}),
    "hf-torch": (sys.executable, {}),
    "bert4keras": (BERT4KERAS, {"TF_KERAS": "1", "TF_USE_LEGACY_KERAS": "1"}),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=CONTENDERS, default=list(CONTENDERS))
    parser.add_argument("--sizes", nargs="+", choices=SIZES, default=list(SIZES))
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=4.0, help="measured time per contender, size and mode")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker:
        return work(arguments)
    print(f"{'':16} {'size':6} {'forward':>12} {'training':>12}   tokens a second")
    for size in arguments.sizes:
        for name in arguments.only:
            print(f"{name:16} {size:6} {in_own_process(name, size, arguments)}", flush=True)


def in_own_process(name, size, arguments):
    """One line of the table."""
    interpreter, environment = CONTENDERS[name]
    command = [interpreter, __file__, "--worker", name, "--sizes", size]
    command += ["--batch", str(arguments.batch), "--seconds", str(arguments.seconds)]
    environment = {**os.environ, **environment, "TF_CPP_MIN_LOG_LEVEL": "3", "PYTHONPATH": str(ROOT)}
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
    except FileNotFoundError:
        return f"not here: no {interpreter}"
    if done.returncode:
        return "not here: " + (done.stderr.strip().splitlines() or ["no reason given"])[-1][:90]
    result = json.loads(done.stdout.strip().splitlines()[-1])
    return f"{result['forward']:12,.0f} {result['training']:12,.0f}"


def work(arguments):
    family = arguments.worker.split("-")[0]
    tokens = np.random.default_rng(0).integers(1, VOCABULARY, (arguments.batch, LENGTH)).astype("int32")
    makers = {"kcrf": kcrf_steps, "hub": hub_steps, "hf": hf_steps, "bert4keras": bert4keras_steps}
    forward, train = makers[family](*SIZES[arguments.sizes[0]], tokens)
    rates = {
        name: rate(step, tokens.size, arguments.seconds) for name, step in (("forward", forward), ("training", train))
    }
    print(json.dumps(rates))


def rate(step, tokens, seconds, rounds=4):
    """Tokens a second, the best of several rounds, after two calls that compile."""
    step()
    started = time.perf_counter()
    step()
    repeats = max(1, int(seconds / rounds / (time.perf_counter() - started)))
    best = float("inf")
    for _ in range(rounds):
        started = time.perf_counter()
        for _ in range(repeats):
            step()
        best = min(best, (time.perf_counter() - started) / repeats)
    return tokens / best


def keras_steps(model, inputs, shape):
    """Forward and training step of a compiled Keras model, to the end: both return NumPy values."""
    target = np.zeros(shape, "float32")
    return lambda: model.predict_on_batch(inputs), lambda: model.train_on_batch(inputs, target)


def kcrf_steps(layers, width, heads, tokens):
    from kcrf.models import build_transformer_model

    model = build_transformer_model(**sizes(layers, width, heads))
    model.compile(optimizer="adam", loss="mse")
    return keras_steps(model, [tokens, np.zeros_like(tokens)], (*tokens.shape, width))


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


if __name__ == "__main__":
    main()
