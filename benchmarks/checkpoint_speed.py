"""How long reading every array of a BERT-base takes, compared with reading the same bytes into memory.

    KERAS_BACKEND=jax python benchmarks/checkpoint_speed.py [--folder FOLDER] [--rounds 7]

Makes a checkpoint of BERT-base's size (409 MB of random numbers) in three formats, where TensorFlow and torch are
installed. In every round each is read three times: its bytes into one array, all its arrays, and into a model that is
already built; files are in the page cache. The best round counts. Memory is the largest total size of NumPy arrays
while all are read and kept, in a round of its own. The peak is that of building and loading a model in a fresh
process, beyond what the process used before (Linux only: VmHWM).
"""

import argparse
import contextlib
import subprocess
import sys
import tempfile
import time
import tracemalloc
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from kcrf.backend import backend_name
from kcrf.checkpoints import open_checkpoint, write_safetensors, write_tf_checkpoint
from kcrf.checkpoints.names import huggingface_names
from kcrf.models import build_transformer_model
from kcrf.models.loading import load_checkpoint

SQUARE, WIDE, VOCABULARY = 768, 3072, 21128
BASE = {"vocab_size": VOCABULARY, "hidden_size": SQUARE, "intermediate_size": WIDE, "with_pool": True}
BASE |= {"num_hidden_layers": 12, "num_attention_heads": 12}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        return print(peak(options.worker))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(options.folder or name)
        model = build_transformer_model(**BASE)
        for kind, path, file in written(folder):
            bytes_alone, arrays, loaded = measured(path, file, model, options.rounds)
            size = file.stat().st_size / 1e6
            print(
                f"{kind:12s}{size:6.0f} MB  bytes {bytes_alone * 1e3:6.0f} ms  arrays {arrays * 1e3:6.0f} ms"
                f"  {arrays / bytes_alone:5.2f} x  memory {memory(path) / 1e6:.0f} MB"
                f"  into {backend_name()} {loaded * 1e3:6.0f} ms  {loaded / bytes_alone:5.2f} x"
                f"  peak {in_own_process(path) / size:.2f} x"
            )


def in_own_process(path):
    """`peak`, in megabytes, of a fresh process."""
    command = [sys.executable, __file__, "--worker", str(path)]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()[-1])


def peak(path):
    """Peak memory of building a model and loading it, in megabytes."""
    build_transformer_model(**{**BASE, "num_hidden_layers": 1})  # the backend's own memory
    Path("/proc/self/clear_refs").write_text("5")
    before = resident("VmRSS")
    model = build_transformer_model(checkpoint_path=path, **BASE)
    return (resident("VmHWM") - before) / 1e3 if model else None


def resident(name):
    """Kilobytes of this process in memory: now (VmRSS), or at most (VmHWM)."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith(name)).split()[1])


def memory(path):
    """The peak of the memory that Python and NumPy allocate, in bytes."""
    tracemalloc.start()
    checkpoint = open_checkpoint(path)
    kept = {name: checkpoint[name] for name in checkpoint}
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak if kept else 0


def shapes():
    yield from (
        ("bert/embeddings/word_embeddings", (VOCABULARY, SQUARE)),
        ("bert/embeddings/position_embeddings", (512, SQUARE)),
        ("bert/embeddings/token_type_embeddings", (2, SQUARE)),
        ("bert/embeddings/LayerNorm/beta", (SQUARE,)),
        ("bert/embeddings/LayerNorm/gamma", (SQUARE,)),
        ("bert/pooler/dense/kernel", (SQUARE, SQUARE)),
        ("bert/pooler/dense/bias", (SQUARE,)),
    )
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


def measured(path, file, model, rounds):
    """Seconds to read the bytes of a file into one array, all arrays of the checkpoint, and the model."""
    best = [float("inf")] * 3
    for _ in range(rounds):
        for place, read in enumerate((lambda: bytes_of(file), lambda: arrays_of(path), lambda: into(model, path))):
            start = time.perf_counter()
            kept = read()
            best[place] = min(best[place], time.perf_counter() - start)
            del kept
    return best


def bytes_of(file):
    memory = np.empty(file.stat().st_size, np.uint8)
    with open(file, "rb", buffering=0) as opened:
        opened.readinto(memory)
    return memory


def arrays_of(path):
    checkpoint = open_checkpoint(path)
    return {name: checkpoint[name] for name in checkpoint}


def into(model, path):
    with contextlib.redirect_stdout(None):
        load_checkpoint(model, path, keep_old=False)


if __name__ == "__main__":
    main()
