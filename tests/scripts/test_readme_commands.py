"""The command lines of README.md, one after another in one folder: each works, and none touches the user's files."""

import os
import re
import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from kcrf.commands import main
from kcrf.corpora import Sentence, load_mini
from kcrf.corpora.conll import conll_lines

BACKENDS = ["torch"]
ROOT = Path(__file__).parents[2]
SMALL = ["--epochs", "1", "--limit", "60", "--learning-rate", "0.01"]
FROM_SCRATCH = ["--width", "16", "--depth", "1"]
# A width is given, or comes with a BERT or with the model of another run; a linear model has none.
NEEDS_NO_WIDTH = {"--bert", "--width", "--extend", "--encoder"}


def command_lines():
    """The lines of the block that begins with `kcrf train`, without comments, as lists of words."""
    blocks = (ROOT / "README.md").read_text(encoding="utf-8").split("```")
    block = next(block for block in blocks if block.startswith("\nkcrf train"))
    return [shlex.split(line, comments=True) for line in block.splitlines() if line]


def write_inputs(folder):
    """The files that README's lines read, small ones. Returns their names and contents."""
    words, people = load_mini(), load_mini("ner")
    texts = ["".join(sentence) for sentence in words.test[:20]]
    reviews = [f"{text}很好\tgood" for text in texts] + [f"{text}不好\tbad" for text in texts]
    products = [Sentence(s.text, [(*span[:2], "PRODUCT") for span in s.spans], s.tokens) for s in people.train[120:160]]
    contents = {
        "words.txt": [" ".join(sentence) for sentence in words.train[:200]],
        "tagged.txt": [" ".join(f"{word}/{'w' if word in '，。' else 'n'}" for word in s) for s in words.train[:200]],
        "pku.txt": [" ".join(sentence) for sentence in words.train[200:300]],
        "gsd.txt": [" ".join(part for word in s for part in (word[:1], word[1:])) for s in words.train[300:400]],
        "dictionary.txt": ["图书馆", "天气 100"],
        "names.tsv": ["北京\tLOC", "联合国\tORG"],
        "text.txt": texts,
        "large.txt": texts * 10,
        "unlabeled.txt": ["".join(sentence) for sentence in words.train],
        "train.conll": [line for sentence in people.train[:120] for line in conll_lines(sentence)],
        "test.conll": [line for sentence in people.test[:20] for line in conll_lines(sentence)],
        "some.conll": [line for s in people.train[:120] for line in conll_lines(replace(s, spans=s.spans[:1]))],
        "all.conll": [line for sentence in people.valid[:20] for line in conll_lines(sentence)],
        "products.conll": [line for sentence in products for line in conll_lines(sentence)],
        "reviews.tsv": reviews,
        "vectors.txt": [f"{character} {' '.join(['0.5'] * 8)}" for character in "今天气好人在大学"],
    }
    for name, lines in contents.items():
        (folder / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    return {name: (folder / name).read_bytes() for name in contents}


def shortened(command):
    """The arguments of a README line with options that make its training short."""
    _, name, *options = command
    if name == "train":
        return [name, *options, *SMALL, *([] if NEEDS_NO_WIDTH & {*options} else FROM_SCRATCH)]
    return [name, *options, *(["--steps", "2", "--every", "2"] if name == "pretrain" else [])]


def run(arguments):
    """The exit status of a command; of a server only of its options."""
    if arguments[0] == "serve":
        with pytest.raises(SystemExit) as exit:
            main([*arguments, "--help"])
        return exit.value.code
    if arguments[0] == "export":  # on TensorFlow, in a process of its own
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        return subprocess.run([sys.executable, "-m", "kcrf", *arguments], env=environment).returncode
    return main(arguments)


@pytest.mark.parametrize("readme", ["README.md", "README.zh.md"])
def test_the_readmes_name_every_command(readme):
    listed = re.search(r"^  COMMAND\n(.*?)^options:", help_text(), re.MULTILINE | re.DOTALL)
    names = re.findall(r"^    (\w+)", listed[1], re.MULTILINE)
    text = " ".join((ROOT / readme).read_text(encoding="utf-8").split())
    assert len(names) > 10 and [name for name in names if f"kcrf {name}" not in text] == []


def help_text():
    """The output of `kcrf --help`."""
    command = [sys.executable, "-m", "kcrf", "--help"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout


@pytest.mark.slow
def test_the_command_lines_of_the_readme_run_in_one_folder(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    before = write_inputs(tmp_path)
    tiny = "--layers 1 --width 64 --vocab-size 200 --length 128 --batch-size 8 --steps 2 --every 2"
    assert main(["pretrain", "--text", "unlabeled.txt", "--out", "BERT", *tiny.split()]) == 0
    lines = command_lines()
    assert len(lines) > 10
    for line in lines:
        status = run(shortened(line))
        assert status == 0, f"{shlex.join(line)}\n{capfd.readouterr().err}"
    assert {name: (tmp_path / name).read_bytes() for name in before} == before
    outs = [line[line.index("--out") + 1] for line in lines if "--out" in line]
    assert all((tmp_path / out).exists() for out in outs) and len(set(outs)) == len(outs)
