"""Tests of kcrf.commands.main.

Mistakes of newcomers on the command line: before training, each gets one sentence that says how to correct it.
"""

import json
import pty
import subprocess
import sys
import warnings
from functools import partial
from os import close
from pathlib import Path

import pytest
from small_runs import RUNS

from kcrf.commands import main
from kcrf.corpora import load_mini
from kcrf.corpora.conll import conll_lines
from kcrf.taggers import user_dictionary, word_segmenter

BACKENDS = ["torch"]
WORDS, PEOPLE = RUNS / "words", RUNS / "entities"
pytestmark = pytest.mark.usefixtures("small_runs")
TRAIN = "train --out run --train"
SENTENCES = load_mini().train[:40]
TEXT = "".join(" ".join(words) + "\n" for words in SENTENCES)
CONLL = "\n".join(line for sentence in load_mini("ner").train[:40] for line in conll_lines(sentence)) + "\n"
POS = "".join("".join(f"{word}\t{'nvda'[len(word) % 4]}\n" for word in words) + "\n" for words in SENTENCES)
REVIEWS = "".join(f"很好{i}\tgood\n不好{i}\tbad\n" for i in range(10))
OBJECT = {"text": "李雷在上海", "entities": [{"start": 0, "end": 2, "label": "PER"}]}
FILES = {
    "words.txt": TEXT,
    "copy.txt": TEXT,
    "one_word.txt": TEXT.replace(" ", "\n"),
    "zero_width.txt": TEXT.replace(" ", "\u200b"),
    "raw.txt": TEXT.replace(" ", ""),
    "mac.txt": TEXT.replace(" ", "").replace("\n", "\r"),
    "train.conll": CONLL,
    "swapped.conll": "\n".join("\t".join(line.split("\t")[::-1]) for line in CONLL.split("\n")),
    "three.conll": CONLL.replace("\t", "\t_\t").replace("\n\n", "\n \n") + "x\tO\tNN\n",
    "first_of_three.conll": "".join(f"{line}\tNN\n" if line else "\n" for line in CONLL.splitlines()),
    "noblank.conll": CONLL.replace("\n\n", "\n"),
    "reviews.tsv": REVIEWS,
    "pos.conll": POS,
    "pos_swapped.conll": "\n".join("\t".join(line.split("\t")[::-1]) for line in POS.split("\n")),
    "lemmas.conll": "\n".join(f"{line}\t{line.partition(chr(9))[0]}" if line else "" for line in POS.split("\n")),
    "array.json": json.dumps([OBJECT, OBJECT]),
    "pretty.json": json.dumps([OBJECT], indent=2),
    "objects.jsonl": json.dumps(OBJECT) + "\n",
    "names.tsv": "上海\tLOC\n",
    "table.csv": "id,text\n1,李雷昨天去了上海。\n",
    "tags.tsv": "上海\tB-LOC\n",
}
MISTAKES = [
    (f"{TRAIN} one_word.txt", "one_word.txt: needs a sentence of words per line. Received: one word on nearly every"),
    (f"{TRAIN} zero_width.txt", "words separated by '\\u200b'"),
    (f"{TRAIN} raw.txt", "needs words separated by spaces. Received: text that is not segmented in 40 of 40 lines"),
    (
        f"{TRAIN} reviews.tsv",
        "reviews.tsv: needs one sentence of words per line. Received: what looks like texts with a",
    ),
    (f"{TRAIN} array.json", "array.json: needs one sentence of words per line. Received: texts with entities, which"),
    (f"{TRAIN} pretty.json", "pretty.json: needs one sentence of words per line. Received: texts with entities, which"),
    (f"{TRAIN} train.conll", "what looks like entities, which --task ner"),
    (
        f"{TRAIN} train.conll --task classify",
        "train.conll: needs texts with a label each. Received: what looks like token",
    ),
    (f"{TRAIN} swapped.conll", "what looks like entities, which --task ner"),
    (f"{TRAIN} first_of_three.conll --task ner", "Received: 'NN'; --column 1 has tags"),
    (f"{TRAIN} words.txt --task ner", "sentences of words, which --task cws"),
    (f"{TRAIN} pos.conll", "what looks like a token and its tag per line (a, d, n), which --task pos and"),
    (
        f"{TRAIN} pos.conll --task ner",
        "Received: 'a'; --task pos and `kcrf.corpora.read_tagged` read classes of tokens",
    ),
    (f"{TRAIN} words.txt --task pos", "words.txt: needs a token and its tag on a line. Received: what looks like sent"),
    (f"{TRAIN} words.txt --task cws-pos", "words.txt: needs a token and its tag on a line. Received: what looks like"),
    (f"{TRAIN} pos_swapped.conll --task pos", "4 different tokens; the tags are in the first column, where the tokens"),
    (f"{TRAIN} lemmas.conll --task pos", "needs tags of few classes, such as parts of speech. Received: "),
    (f"{TRAIN} noblank.conll --task ner", "one sentence of 740 tokens (an empty line ends a sentence), so none can"),
    (
        f"{TRAIN} reviews.tsv --encoder linear --task classify",
        "--encoder cannot be used with --task classify.",
    ),
    (f"{TRAIN} words.txt —task ner", "Did you mean --task?"),
    ("train words.txt --out run", "Did you mean --train words.txt?"),
    (
        f"segment --model {RUNS} raw.txt",
        "a run folder, as `kcrf train` writes it, has it. Did you mean {RUNS}/",
    ),
    (f"segment --model {WORDS}/model.weights.h5 raw.txt", "Did you mean {RUNS}/words?"),
    (
        f"segment --model {WORDS} raw.txt words.txt",
        "unrecognized arguments: words.txt. One FILE at a time; `cat` joins",
    ),
    (f"segment --model {WORDS} objects.jsonl", "objects.jsonl:1: needs a text. Received: a JSON object; `jq -r .text`"),
    (
        f"tag --model {PEOPLE} pretty.json",
        "pretty.json:1: needs a text. Received: a JSON array; `jq -r '.[].text'` takes",
    ),
    (f"segment --model {WORDS} mac.txt", "mac.txt:1: needs lines that end in"),
    (f"tag --model {PEOPLE} train.conll", "train.conll:1: needs a text. Received: a token and its tag; --input conll"),
    (f"tag --model {PEOPLE} objects.jsonl", "objects.jsonl:1: needs a text. Received: a JSON object"),
    (f"segment --model {WORDS} raw.txt --out none/x", "none/x: needs a folder that exists"),
    (f"segment --model {WORDS} raw.txt --out .", ".: needs a file to write. Received: a folder"),
    ("label --dictionary names.tsv objects.jsonl", "objects.jsonl:1: needs a text. Received: a JSON object"),
    ("label --dictionary names.tsv train.conll", "train.conll:1: needs a text. Received: a token and its tag"),
    (f"tag --model {PEOPLE} table.csv", "table.csv:1: needs a text. Received: the names of columns, 'id,text'"),
    ("pretrain --text table.csv --out run", "table.csv:1: needs a text. Received: the names of columns, 'id,text'"),
    ("label --dictionary tags.tsv raw.txt", "tags.tsv:1: needs an entity type, as LOC. Received: a tag, 'B-LOC'"),
    ("score --gold words.txt --pred one_word.txt", "one_word.txt: needs a line for each line of the gold. Received: "),
    (f"export {WORDS} --out words", "--out must end in .onnx; .npz and .html need --encoder linear. Received: words"),
]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    for name, text in FILES.items():
        (tmp_path / name).write_bytes(text.encode())
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(("command", "message"), MISTAKES)
def test_a_mistake_is_a_sentence_that_names_the_mend(folder, monkeypatch, capsys, command, message):
    for module in ("kcrf.training", "kcrf.export"):
        monkeypatch.setitem(sys.modules, module, None)  # it is noticed before
    try:
        status = main(command.split(" "))
    except SystemExit as stopped:  # of argparse
        status = stopped.code
    assert status == 2
    assert message.replace("{RUNS}", str(RUNS)) in capsys.readouterr().err
    assert not (folder / "run").exists()


@pytest.mark.parametrize(
    "change",
    [
        lambda text: "\ufeff" + text.replace("\n", "\r\n"),
        lambda text: text.replace(" ", "\t"),
        lambda text: text.replace(" ", "\u3000"),
        lambda text: text.replace("\n", " \n\n"),
        lambda text: text + "\ufeff" + text,
    ],
    ids=["bom and crlf", "tabs", "ideographic spaces", "empty lines", "concatenated"],
)
def test_what_editors_do_to_a_file_changes_no_word(folder, capsys, change):
    (folder / "changed.txt").write_bytes(change(TEXT).encode())
    assert main("augment words.txt --out plain --by join".split()) == 0
    assert main("augment changed.txt --out other --by join".split()) == 0
    plain, other = ((folder / name).read_text(encoding="utf-8") for name in ("plain", "other"))
    assert set(plain.splitlines()) <= set(other.splitlines())


def test_scores_on_training_texts_and_on_the_gold_itself_are_told(folder, capsys):
    for part in ("valid", "test"):
        command = f"train --out {part} --train words.txt --{part} copy.txt --encoder linear --epochs 1"
        assert main(command.split()) == 0
        assert f"{part}: 40 of 40 texts are in the training data, too; scores will be" in capsys.readouterr().err
    assert main("score --gold words.txt --pred ./words.txt --json".split()) == 0
    assert "--gold and --pred are the same file, words.txt" in capsys.readouterr().err


def test_a_command_that_reads_the_terminal_says_so(folder):
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "kcrf", "segment", "--model", str(WORDS)]
    environment = {"PYTHONPATH": str(Path(__file__).parents[2]), "KERAS_BACKEND": "torch"}
    process = subprocess.Popen(command, stdin=theirs, stderr=subprocess.PIPE, env=environment)
    assert process.stderr.readline() == b"kcrf segment: reading from the terminal; Ctrl-D ends the text\n"
    process.kill()
    process.communicate()
    close(ours)
    close(theirs)


def test_messages_on_the_words_of_the_user_name_the_options(tmp_path, monkeypatch, capsys):
    def show(message, category, file, line, *more):
        print(warnings.formatwarning(message, category, file, line), end="", file=sys.stderr)

    (tmp_path / "words").write_text("中华人民共和国\n", encoding="utf-8")
    (tmp_path / "text.txt").write_text("今天\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(warnings, "showwarning", show)
    warnings.simplefilter("always")
    command = ["segment", "--model", str(WORDS), "--words", "words", "text.txt"]
    assert main(command) == 0
    error = capsys.readouterr().err
    assert error.startswith("kcrf segment: 1 of 1 --words change nothing") and "--force-words takes words" in error
    without = partial(user_dictionary.reader_with_words, None)
    monkeypatch.setattr(word_segmenter, "reader_with_words", lambda reader, *rest, **more: without(*rest, **more))
    assert main(command) == 2
    error = capsys.readouterr().err
    assert (
        error == "kcrf segment: --words needs a model with a lexicon, or --force-words. Received: a model without one\n"
    )
