"""Characters a second of word segmenters, their F1, time to the first output and memory, each in its own process.

    python benchmarks/segment_speed.py --run runs/pku --student runs/small --test pku_test_gold.utf8 [--threads 1 2]
    python benchmarks/segment_speed.py --linear runs/linear --test pku_test_gold.utf8 --threads 1 \\
        --only linear "linear, lines" "linear, command" jieba pkuseg --pkuseg pkuseg-0.0.25/pkuseg/models/default

The runs are of `kcrf train --task cws`; both are exported first, which needs TensorFlow. Every segmenter cuts all
texts of the test part once to warm up and then --rounds times; the fastest round counts. "one by one" calls `predict`
with one sentence, as the examples of bert4keras do, and decodes it by itself; it cuts 200 sentences. "command" is
`kcrf segment --workers` with a worker for each core, which cuts the texts 20 times over; its time includes the start.
jieba has its own dictionary, of another standard. "linear" is a linear model, without --linear the ready-made one;
"lines" are strings with spaces in place of lists of words. On one core, seconds are those of the processor, which other
programs disturb less. pkuseg is the package spacy-pkuseg, with the model in a folder that --pkuseg names: the source
distribution of pkuseg 0.0.25 has one, pkuseg/models/default. Prints a table in Markdown; --json FILE keeps the figures.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ONE_BY_ONE = {f"one by one, {backend}": backend for backend in ("tensorflow", "torch")}
COMMANDS = {f"{kind}, command": kind for kind in ("onnx int8", "student int8", "linear")}
LINEAR = ("linear", "linear, lines")
KINDS = ("torch", "jax", "tensorflow", *ONE_BY_ONE, "onnx", "onnx int8", "student", "student int8", *LINEAR, *COMMANDS)
OTHERS = ("jieba", "pkuseg")
BACKENDS = {**ONE_BY_ONE, "student": "torch"}
FEW = 200  # sentences, one by one
TIMES = 20  # over, by a command


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", type=Path)
    parser.add_argument("--student", type=Path)
    parser.add_argument("--linear", type=Path, help="a linear model. [the ready-made one]")
    parser.add_argument("--test", type=Path, required=True)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", nargs="+", choices=KINDS + OTHERS, default=[*KINDS, "jieba"])
    parser.add_argument("--pkuseg", type=Path, help="the folder of a model of pkuseg")
    parser.add_argument("--json", type=Path, help="where to keep the figures")
    parser.add_argument("--child", nargs=2, metavar=("KIND", "MODEL"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        print(json.dumps(measure(*options.child, options.test, options.rounds)))
        return
    with tempfile.TemporaryDirectory() as folder:
        models = exported(options, Path(folder))
        rows = [
            {"kind": kind, "threads": threads, **run(kind, threads, models, options)}
            for threads in options.threads
            for kind in options.only
            for run in [by_command if kind in COMMANDS else in_a_process]
        ]
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1))
    print(table(rows))


def exported(options, folder):
    """The model of each kind; what is exported is in a folder."""
    models = {kind: options.run for kind in KINDS} | {
        "student": options.student,
        **dict.fromkeys([*LINEAR, "linear, command"], options.linear or "-"),
        "jieba": "-",
        "pkuseg": options.pkuseg,
    }
    for kind, run, flags in (
        ("onnx", options.run, []),
        ("onnx int8", options.run, ["--int8"]),
        ("student int8", options.student, ["--int8"]),
    ):
        if {kind, f"{kind}, command"} & set(options.only):
            models[kind] = models[f"{kind}, command"] = folder / f"{kind.replace(' ', '_')}.onnx"
            command = [sys.executable, "-m", "kcrf", "export", run, "--out", models[kind], *flags]
            subprocess.run(list(map(str, command)), check=True, stdout=subprocess.DEVNULL)
    return models


def in_a_process(kind, threads, models, options):
    """What `measure` returns, of a new process with this many threads and cores."""
    names = ("OMP_NUM_THREADS", "TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS")
    environment = {**os.environ, **dict.fromkeys(names, str(threads)), "KERAS_BACKEND": BACKENDS.get(kind, kind)}
    command = [sys.executable, __file__, "--test", options.test, "--rounds", options.rounds]
    command = on_cores(threads, [*command, "--child", kind, models[kind]])
    done = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def on_cores(count, command):
    """A command that uses this many cores."""
    cores = sorted(os.sched_getaffinity(0))[:count]
    return list(map(str, ["taskset", "-c", ",".join(map(str, cores)), *command]))


def by_command(kind, threads, models, options):
    """What `measure` returns, of a command with this many workers and cores, but for first output and memory."""
    gold = sentences_of(options.test)
    with tempfile.TemporaryDirectory() as folder:
        text, out = Path(folder) / "text.txt", Path(folder) / "words.txt"
        text.write_text("".join("".join(words) + "\n" for words in gold * TIMES), encoding="utf-8")
        model = [] if models[kind] == "-" else ["--model", models[kind]]
        command = [sys.executable, "-m", "kcrf", "segment", *model, text, "--out", out]
        command = on_cores(threads, [*command, "--overwrite", "--workers", threads, "--no-keep-latin"])
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        seconds = []
        for _ in range(options.rounds):
            began = clock_of_children(threads)()
            subprocess.run(command, env=environment, check=True)
            seconds.append(clock_of_children(threads)() - began)
        found = [line.split() for line in out.read_text(encoding="utf-8").splitlines()]
    return figures(gold * TIMES, found, min(seconds))


def clock_of_children(threads):
    """A clock: of the processor on one core, of the wall on several."""
    if threads > 1:
        return time.perf_counter
    return lambda: sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])


def measure(kind, model, test, rounds):
    """Characters a second, F1, seconds to the first output, and megabytes at most."""
    began = time.perf_counter()
    segment = SEGMENTERS.get(kind, by_kcrf)(model)
    segment(["今天天气真好。"])
    first = time.perf_counter() - began
    gold = sentences_of(test)[: FEW if kind in ONE_BY_ONE else None]
    texts = ["".join(words) for words in gold]
    found, seconds = segment(texts), []
    found = [words.split() if isinstance(words, str) else words for words in found]
    clock = time.process_time if len(os.sched_getaffinity(0)) == 1 else time.perf_counter
    for _ in range(rounds):
        began = clock()
        segment(texts)
        seconds.append(clock() - began)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {**figures(gold, found, min(seconds)), "first_output_seconds": round(first, 2), "megabytes": round(memory)}


def sentences_of(test):
    """The sentences of the test part, lists of words."""
    from kcrf.corpora import read_segmented

    return [words for words in read_segmented(test) if words]


def figures(gold, found, seconds):
    """Characters a second and F1 of a segmenter that found these words in this many seconds."""
    from kcrf.metrics import segmentation_scores

    return {
        "characters_a_second": round(sum(len("".join(words)) for words in gold) / seconds),
        "f": round(segmentation_scores(gold, found)["f"], 4),
    }


def by_kcrf(model):
    from kcrf.taggers import WordSegmenter

    return WordSegmenter(None if model == "-" else model, keep_latin=False).segment_batch


def by_lines(model):
    from kcrf.taggers import WordSegmenter

    return WordSegmenter(None if model == "-" else model, keep_latin=False).segment_lines


def by_jieba(_):
    import logging

    import jieba

    jieba.setLogLevel(logging.ERROR)
    return lambda texts: [jieba.lcut(text) for text in texts]


def by_pkuseg(model):
    import spacy_pkuseg

    segmenter = spacy_pkuseg.pkuseg(str(model))
    return lambda texts: [segmenter.cut(text) for text in texts]


def one_by_one(model):
    """One sentence a `predict`, and a Viterbi in NumPy, as bert4keras' `ViterbiDecoder` has it."""
    import numpy as np
    from keras import ops

    from kcrf.snippets import ViterbiDecoder
    from kcrf.taggers import load_tagger
    from kcrf.tags import tags_to_words

    tagger = load_tagger(model)
    chain, _ = tagger.network.chains(np.zeros((1, 1, 4), "float32"))
    decoder = ViterbiDecoder(ops.convert_to_numpy(chain["transitions"]), starts=[0, 1], ends=[0, 3])  # BMES

    def segment(texts):
        words = []
        for text in texts:
            (reading,) = tagger.reader.read([text])
            tags = []
            for window in reading.windows:
                inputs = {name: np.array([row]) for name, row in window.inputs.items()}
                scores = tagger.model.predict(inputs, verbose=0)[0]
                tags += window.kept(decoder.decode(scores)).tolist()
            words.append(tags_to_words(text, tags))
        return words

    return segment


SEGMENTERS = {
    "linear, lines": by_lines,
    "jieba": by_jieba,
    "pkuseg": by_pkuseg,
    **dict.fromkeys(ONE_BY_ONE, one_by_one),
}


def table(rows):
    """The figures in Markdown."""
    lines = ["| segmenter | threads | characters a second | F1 | first output | memory |", "|---|---|---|---|---|---|"]
    lines += [
        f"| {row['kind']} | {row['threads']} | {row['characters_a_second']:,} | {row['f']:.4f} | "
        f"{row.get('first_output_seconds', '-')} s | {row.get('megabytes', '-')} MB |"
        for row in rows
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
