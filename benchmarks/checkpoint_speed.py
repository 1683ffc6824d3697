"""How long reading every array of a BERT-base takes, beside reading the same bytes into memory.

    python benchmarks/checkpoint_speed.py [--folder FOLDER] [--rounds 7]

Makes a checkpoint of BERT-base's size (412 MB of random numbers) in three formats, where TensorFlow and torch are
installed, and reads each after the bytes of its file, in turn; files are in the page cache. The best round counts.
Memory is the greatest sum of NumPy's arrays while all are read and kept, in a round of its own.
"""

import argparse
import sys
import tempfile
import time
import tracemalloc
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from kcrf.checkpoints import huggingface_names, open_checkpoint, write_safetensors, write_tf_checkpoint

SQUARE, WIDE, VOCABULARY = 768, 3072, 21128


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder")
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(options.folder or name)
        for kind, path, file in written(folder):
            bytes_alone, arrays = measured(path, file, options.rounds)
            size = file.stat().st_size / 1e6
            print(
                f"{kind:12s}{size:6.0f} MB  bytes {bytes_alone * 1e3:6.0f} ms  arrays {arrays * 1e3:6.0f} ms"
                f"  {arrays / bytes_alone:5.2f} x  memory {memory(path) / 1e6:.0f} MB"
            )


def memory(path):
    """The peak of traced bytes, NumPy's arrays among them."""
    tracemalloc.start()
    checkpoint = open_checkpoint(path)
    kept = {name: checkpoint[name] for name in checkpoint}
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak if kept else 0


def shapes():
    yield from (
        ("bert/embeddings/word_embeddings", (VOCABULARY, SQUARE)),
        ("bert/pooler/dense/kernel", (SQUARE, SQUARE)),
    )
    yield "bert/embeddings/position_embeddings", (512, SQUARE)
    for layer in (f"bert/encoder/layer_{number}" for number in range(12)):
        for part in ("attention/self/query", "attention/self/key", "attention/self/value", "attention/output/dense"):
            yield from ((f"{layer}/{part}/kernel", (SQUARE, SQUARE)), (f"{layer}/{part}/bias", (SQUARE,)))
        yield from (
            (f"{layer}/intermediate/dense/kernel", (SQUARE, WIDE)),
            (f"{layer}/output/dense/kernel", (WIDE, SQUARE)),
        )
        yield from ((f"{layer}/intermediate/dense/bias", (WIDE,)), (f"{layer}/output/dense/bias", (SQUARE,)))
        for norm in ("attention/output/LayerNorm", "output/LayerNorm"):
            yield from ((f"{layer}/{norm}/{part}", (SQUARE,)) for part in ("beta", "gamma"))


def written(folder):
    """Writes the checkpoint in each format that can be written here; yields name, path, and the file with the bytes."""
    rng = np.random.default_rng(0)
    arrays = {name: rng.standard_normal(shape, np.float32) for name, shape in shapes()}
    write_safetensors(folder / "model.safetensors", huggingface_names(arrays))
    yield "safetensors", folder / "model.safetensors", folder / "model.safetensors"
    try:
        write_tf_checkpoint(folder / "bert_model.ckpt", arrays)
        yield "TensorFlow", folder / "bert_model.ckpt", folder / "bert_model.ckpt.data-00000-of-00001"
    except ImportError as error:
        print(error)
    try:
        import torch

        torch.save({name: torch.from_numpy(array) for name, array in arrays.items()}, folder / "pytorch_model.bin")
        yield "torch", folder / "pytorch_model.bin", folder / "pytorch_model.bin"
    except ImportError:
        print("torch is not installed")


def measured(path, file, rounds):
    """Seconds to read the bytes of a file into one array, and to read all arrays of the checkpoint."""
    alone, arrays = [], []
    for _ in range(rounds):
        start = time.perf_counter()
        memory = np.empty(file.stat().st_size, np.uint8)
        with open(file, "rb", buffering=0) as opened:
            opened.readinto(memory)
        alone.append(time.perf_counter() - start)
        del memory
        start = time.perf_counter()
        checkpoint = open_checkpoint(path)
        kept = {name: checkpoint[name] for name in checkpoint}
        arrays.append(time.perf_counter() - start)
        del kept
    return min(alone), min(arrays)


if __name__ == "__main__":
    main()
