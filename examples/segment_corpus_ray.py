"""Segments a folder of text files on several workers, or several machines, with Ray Data.

    pip install '.[onnx]' 'ray[data]'
    python examples/segment_corpus_ray.py texts words --workers 2 [--model RUN]

For each `*.txt` under `texts`, the script writes the output of `kcrf segment` to a file of the same name under `words`.
Each worker loads the model once. A worker that dies is replaced, and its unfinished file is processed again. A file is
written under another name and then renamed, so it is either complete or absent. If the script is started again, it
processes only the missing files. For another model, use another folder. With RAY_ADDRESS in the environment, the script
runs on that cluster; its machines must share both folders.
"""

import argparse
import os
from pathlib import Path

import ray

from kcrf.corpora import read_lines
from kcrf.files import write_aside
from kcrf.taggers import WordSegmenter


class Segmenter:
    """A worker: created once in its process, then called with one file after another."""

    def __init__(self, model):
        self._segmenter = WordSegmenter(model)
        print(f"process {os.getpid()} has loaded the model", flush=True)

    def __call__(self, batch):
        return {"characters": [self._do(*map(Path, paths)) for paths in zip(batch["text"], batch["words"])]}

    def _do(self, text, words):
        """Writes the words of a file. Returns the number of characters."""
        lines = read_lines(text)

        def write(path):
            with open(path, "w", encoding="utf-8", newline="\n") as file:
                for start in range(0, len(lines), 1000):
                    found = self._segmenter.segment_batch(lines[start : start + 1000])
                    file.writelines(" ".join(row) + "\n" for row in found)

        words.parent.mkdir(parents=True, exist_ok=True)
        write_aside(words, write)
        return sum(map(len, lines))


parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
parser.add_argument("texts", type=Path)
parser.add_argument("words", type=Path)
parser.add_argument("--workers", type=int, default=2)
parser.add_argument("--model", help="Run folder or exported file. [the ready-made segmenter]")
options = parser.parse_args()
texts, words = options.texts.resolve(), options.words.resolve()
if words.is_relative_to(texts) or texts.is_relative_to(words):
    parser.error(f"`words` must be a folder next to `texts`. Received: {texts} and {words}")

files = [(path, words / path.relative_to(texts)) for path in sorted(texts.rglob("*.txt"))]
todo = [{"text": str(text), "words": str(result)} for text, result in files if not result.exists()]
print(f"{len(files)} files, {len(files) - len(todo)} of them done before")
if todo:
    data = ray.data.from_items(todo, override_num_blocks=len(todo))  # one file per block
    done = data.map_batches(
        Segmenter,
        fn_constructor_args=[options.model and str(Path(options.model).resolve())],
        compute=ray.data.ActorPoolStrategy(size=options.workers),
        batch_size=1,
    )
    characters = sum(row["characters"] for row in done.iter_rows())
    print(f"{len(todo)} files done, {characters:,} characters")
