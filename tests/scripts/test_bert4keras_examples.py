"""The examples of bert4keras that train or use an encoder, after the swap of the import lines, on tiny made-up data.

The scripts in bert4keras_examples/ make the same calls in the same order, in their own words. Where a line cannot stay
as it is, the line that replaces it stands under a comment with the hosts and the line of bert4keras:

    # on jax: mask = K.random_binomial(shape=[1], p=0.5)
    mask = keras.random.binomial([1], 1, 0.5, seed=self.seeds)

On other hosts the test puts the old line back. Nothing behind the colon marks an added line, "deleted on" a line that
nothing replaces. docs/bert4keras_examples.md has the table; running this file as a script writes it.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests"), str(ROOT / "examples")]

from forks import SCRIPT, run_python  # noqa: E402
from tiny_checkpoint import tiny_checkpoint  # noqa: E402

from kcrf.backend import backend_name  # noqa: E402

FOLDER = Path(__file__).parent / "bert4keras_examples"
# The scripts set no seed, and with an unlucky one such small data teach them little.
SEEDED = "from kcrf.backend import keras\nkeras.utils.set_random_seed(0)\n" + SCRIPT
SCRIPTS = {path.stem: path.read_text(encoding="utf-8") for path in FOLDER.glob("*_*.py")}
HOSTS = ["tensorflow", "jax", "torch"]
HERE = backend_name()
TABLE = ROOT / "docs" / "bert4keras_examples.md"

# `make test` runs these.
SHORT = {"basic_extract_features"}
NAMES = [pytest.param(name, marks=pytest.mark.once if name in SHORT else pytest.mark.slow) for name in sorted(SCRIPTS)]
# What the unchanged script says on Keras 3: which call replaces the line.
ERRORS = {
    "task_iflytek_adversarial_training": "kcrf.bert4keras.adversarial: adversarial(model, 'Embedding-Token', epsilon)",
    "task_iflytek_bert_of_theseus": "from kcrf.bert4keras.models import Keras2Model as Model",
    "task_iflytek_gradient_penalty": "adversarial.gradient_penalty(model, 'Embedding-Token', scale)",
    "task_iflytek_multigpu": "to run on Keras 3, unset both and delete lines such as os.environ['TF_KERAS'] = '1'",
    "task_sentiment_integrated_gradients": "from kcrf.bert4keras.layers import GradientTimesInput",
    "task_sentiment_virtual_adversarial_training": "virtual_adversarial(model, 'Embedding-Token')",
}

CHANGED = re.compile(r"^( *)# on ([\w, ]+):(?: (.+))?\n(.+\n)", re.MULTILINE)
DELETED = re.compile(r"^( *)# deleted on ([\w, ]+): (.+)\n", re.MULTILINE)


def changes(name):
    """The changed lines of a script: triples of the hosts, the line of bert4keras or "", and the new line or ""."""
    found = [(match.start(), *match.groups()[1:], "") for match in DELETED.finditer(SCRIPTS[name])]
    found += [(match.start(), *match.groups(default="")[1:]) for match in CHANGED.finditer(SCRIPTS[name])]
    for _, hosts, old, new in sorted(found):
        yield HOSTS if hosts == "any" else hosts.split(", "), old, new.strip()


def script_for(name, host):
    """The script with the lines of bert4keras wherever they work on the host; "bert4keras" has all of them."""

    def chosen(match):
        indent, hosts, old, new = (*match.groups(default=""), "")[:4]
        changed = host in (HOSTS if hosts == "any" else hosts.split(", "))
        return new if changed else f"{indent}{old}\n" if old else ""

    return DELETED.sub(chosen, CHANGED.sub(chosen, SCRIPTS[name]))


def table():
    """The page docs/bert4keras_examples.md."""
    rows, details = [], []
    for name in sorted(SCRIPTS):
        marked = list(changes(name))
        counts = [sum(host in hosts for hosts, old, _ in marked if old) for host in HOSTS]
        cells = [f"{count} line{'s' * (count > 1)}" if count else "unchanged" for count in counts]
        rows.append(f"| `{name}` | {' | '.join(cells)} |")
        details += [_details(name, marked)] if marked else []
    return PAGE.format(rows="\n".join(rows), details="\n".join(details))


def _details(name, marked):
    lines = [f"### `{name}`", ""]
    for hosts, old, new in marked:
        where = "" if hosts == HOSTS else f" ({', '.join(hosts)})"
        if old and new:
            lines.append(f"- `{old}` becomes `{new}`{where}")
        else:
            lines.append(f"- delete `{old}`{where}" if old else f"- add `{new}`{where}")
    return "\n".join([*lines, ""])


PAGE = """# The examples of bert4keras after the swap

Seventeen of the 32 examples of bert4keras train or use an encoder; the others generate text. The table says how much of
each must change besides paths, sizes and the import lines, in which `kcrf.bert4keras` replaces `bert4keras`.
`tests/scripts/bert4keras_examples/` has scripts with the same calls on tiny made-up data; `make test-all` runs all of
them on each backend, `make test` three. A function or class of the example that one line replaces counts as one line,
and an import that a new line needs is not counted. `tf.distribute` in the example for several devices splits batches on
TensorFlow alone. What else changes with
Keras 3 is in [PORTING.md](../PORTING.md).

| example | TensorFlow | JAX | PyTorch |
|---|---|---|---|
{rows}

## The changed lines

Where a line cannot stay, the error that it raises on Keras 3 names what replaces it.

{details}"""


def write_data(folder):
    """Tiny encoders, and files in the formats that the scripts read."""
    rng = np.random.default_rng(0)
    filler = "春天的山风水人地花月"

    def text(length, mark=""):
        return mark * 3 + "".join(rng.choice(list(filler), length))

    letters = "abcdefghijklmnopqrstuvwxyz"
    vocabulary = [filler, letters, "甲乙丙是在王李明红学校谁去问题答。？,"]
    sizes = dict(hidden_size=32, intermediate_size=48, num_attention_heads=2, max_position=32)
    for family in ("bert", "albert"):
        tiny_checkpoint(vocabulary, model=family, folder=folder / family, hidden_dropout_prob=0.0, **sizes)
    for part, count in (("train", 72), ("valid", 24), ("test", 2)):
        labels = rng.integers(0, 3, count)
        rows = [{"id": i, "sentence": text(3, "甲乙丙"[k]), "label": str(k)} for i, k in enumerate(labels)]
        _write(folder / f"classes.{part}.json", (json.dumps(row, ensure_ascii=False) for row in rows))
    pairs = [(text(2, "甲乙"[i % 2]), text(2, "甲乙"[i // 2 % 2])) for i in range(48)]
    _write(folder / "pairs.data", (f"{a}\t{b}\t{int('甲' in b)}" for a, b in pairs))
    names = [a + b for a in "王李" for b in "明红"]
    pairs = [(rng.choice(names), rng.choice(["学校", "春天", "花山"])) for _ in range(36)]
    triples = [(name, "是" if name[0] == "王" else "在", thing) for name, thing in pairs]
    rows = [{"text": "地月" + "".join(triple) + "。", "triple": triple} for triple in triples]
    _write(folder / "relations.json", (json.dumps(row, ensure_ascii=False) for row in rows))
    people = ["".join(f"{c} O\n" for c in text(3)) + f"{n[0]} B-PER\n{n[1]} I-PER\n去 O\n" for n in names * 9]
    _write(folder / "entities.txt", people)
    _write(folder / "words.txt", ("  ".join([*rng.permutation(names[:2]), "去", "学校", "。"]) for _ in range(36)))
    answers = [{"answer": f"{n}", "passage": f"{text(2)}{n}去学校。"} for n in names * 6]
    rows = [{"question": "谁去学校？", "passages": [row]} for row in answers]
    (folder / "questions.json").write_text(json.dumps(rows, ensure_ascii=False), encoding="utf-8")


def _write(path, lines):
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    write_data(folder)
    return folder


def put_together(name, host, data, folder):
    """Writes a script as it stands for a host into a folder, and links to the data. Returns its path."""
    for path in data.iterdir():
        (folder / path.name).symlink_to(path)
    (folder / "texts.py").symlink_to(FOLDER / "texts.py")
    for script in {name, "task_sentiment_albert"}:
        (folder / f"{script}.py").write_text(script_for(script, host), encoding="utf-8")
    return folder / f"{name}.py"


@pytest.mark.parametrize("name", NAMES)
def test_an_example_runs_with_the_lines_of_the_table(name, data, tmp_path):
    script = put_together(name, HERE, data, tmp_path)
    done = run_python(SEEDED, script, cwd=tmp_path, PYTHONPATH=str(ROOT))
    assert done.returncode == 0, done.stderr[-4000:]
    assert float(done.stdout.rpartition("score: ")[2]) >= 0.9, done.stdout[-2000:]


@pytest.mark.once
@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(ERRORS))
def test_the_unchanged_line_says_what_replaces_it(name, data, tmp_path):
    script = put_together(name, "bert4keras", data, tmp_path)
    # The script imports TensorFlow, beside which the triton of PyTorch would end the process.
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "KERAS_BACKEND": "tensorflow"}
    done = subprocess.run([sys.executable, script], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert ERRORS[name] in done.stderr


@pytest.mark.once
def test_every_change_of_the_table_is_explained_by_an_error():
    changed = {name for name in SCRIPTS if any("torch" in hosts for hosts, _, _ in changes(name))}
    assert changed == set(ERRORS) and len(SCRIPTS) == 17


@pytest.mark.once
def test_the_page_is_what_the_scripts_say():
    assert TABLE.read_text(encoding="utf-8") == table()


if __name__ == "__main__":
    TABLE.write_text(table(), encoding="utf-8")
