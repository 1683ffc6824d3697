"""What compiled code (numba) saves: lines segmented with a linear model, from file to file, and a training run.

    python benchmarks/compiled.py --text FILE [--turns 25] [--train words.txt valid.txt] [--json FILE]

FILE has lines of segmented text, whose spaces are removed. Each figure is processor time on one thread. `lines` calls
`segment_lines` of the included segmenter in turn with NumPy, with compiled code and with jieba, on about 120,000
characters; the least and the median of the turns count. `file` is `kcrf segment FILE --out` on the whole text, `train`
is `kcrf train --task cws --epochs 2`, each once as a new process with `KCRF_COMPILED=1` and `0`, the start included.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from kcrf.chains import recursions
from kcrf.taggers import WordSegmenter, line_segmenter

CHARACTERS = 120_000


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--text", type=Path, required=True)
    parser.add_argument("--turns", type=int, default=25)
    parser.add_argument("--train", type=Path, nargs=2, metavar=("TRAIN", "VALID"))
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    texts = ["".join(line.split()) for line in options.text.read_text(encoding="utf-8").splitlines()]
    texts = [text for text in texts if text]
    rows = {"lines": in_turns(texts, options.turns), "file": from_file_to_file(texts)}
    if options.train:
        rows["train"] = training(*options.train)
    print(json.dumps(rows, indent=1))
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1))


def in_turns(texts, turns):
    """Nanoseconds a character, the least and the median, by NumPy, compiled code and jieba."""
    import jieba

    jieba.setLogLevel(60)
    few, count = [], 0
    while count < CHARACTERS:
        few.append(texts[len(few)])
        count += len(few[-1])
    runs = {
        "NumPy": segmenter(False, few),
        "compiled": segmenter(True, few),
        "jieba": lambda: list(map(jieba.lcut, few)),
    }
    found = {name: [] for name in runs}
    for _ in range(turns):
        for name, run in runs.items():
            began = time.process_time()
            run()
            found[name].append((time.process_time() - began) / count * 1e9)
    return {name: {"least": min(values), "median": statistics.median(values)} for name, values in found.items()}


def segmenter(is_compiled, texts):
    """A function that segments the texts with compiled code or without, called once."""
    own = WordSegmenter(keep_latin=False)

    def run():
        line_segmenter._WORTH_COMPILING = 0 if is_compiled else 1 << 60
        recursions._KERNELS[:] = recursions._KERNELS if is_compiled else []
        return own.segment_lines(texts)

    run()
    return run


def from_file_to_file(texts):
    """Characters a processor second of `kcrf segment`."""
    with tempfile.TemporaryDirectory() as folder:
        path, out = Path(folder) / "text.txt", Path(folder) / "words.txt"
        path.write_text("\n".join(texts) + "\n", encoding="utf-8")
        command = ["segment", str(path), "--out", str(out), "--overwrite", "--no-keep-latin"]
        seconds = {name: seconds_of(command, flag) for name, flag in (("NumPy", "0"), ("compiled", "1"))}
    return {name: sum(map(len, texts)) / value for name, value in seconds.items()}


def training(train, valid):
    """Processor seconds of a default run of two epochs."""
    seconds = {}
    for name, flag in (("compiled", "1"), ("NumPy", "0")):
        with tempfile.TemporaryDirectory() as folder:
            command = ["train", "--task", "cws", "--epochs", "2", "--train", str(train), "--valid", str(valid)]
            seconds[name] = seconds_of([*command, "--out", f"{folder}/run"], flag)
    return seconds


def seconds_of(command, flag):
    environment = {**os.environ, "KCRF_COMPILED": flag, "OMP_NUM_THREADS": "1"}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-m", "kcrf", *command], env=environment, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


if __name__ == "__main__":
    main()
