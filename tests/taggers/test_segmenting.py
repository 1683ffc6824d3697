"""Tests of kcrf.taggers.

From a training file to words: the run folder, the tagger and the command line, with a model of a few seconds.
"""

import io
import json
import os
import shutil
import subprocess
import sys
from contextlib import redirect_stdout
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from configs import model_of
from conftest import few
from decoders import keys
from forks import KCRF, run_python
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from kcrf import commands
from kcrf.backend import backend_name, keras, ops
from kcrf.corpora import load_mini
from kcrf.metrics import segmentation_scores
from kcrf.networks.embeddings import ENCODERS
from kcrf.networks.tagging import build_network
from kcrf.readers import CharacterReader, Lexicon, Vocabulary
from kcrf.runs import RunWriter, Settings, read_run
from kcrf.taggers import WordSegmenter, load_tagger
from kcrf.tags import bmes
from kcrf.training import train_segmenter

TINY = {"width": 16, "depth": 1, "batch_size": 8, "epochs": 2, "learning_rate": 0.01, "seed": 5, "linear_weight": 0.0}


def write_words(path, sentences):
    path.write_text("".join("  ".join(words) + "\n" for words in sentences), encoding="utf-8")
    return str(path)


@pytest.fixture(scope="session")
def trained(tmp_path_factory):
    """A run folder that the command line made, with its training and test files."""
    folder, corpus = tmp_path_factory.mktemp("trained"), load_mini()
    train = write_words(folder / "train.txt", corpus.train[:160])
    test = write_words(folder / "test.txt", corpus.test[:20])
    options = [f"--{name.replace('_', '-')}={value}" for name, value in TINY.items()]
    arguments = ["train", "--task", "cws", "--train", train, "--test", test, "--out", str(folder / "run"), *options]
    with redirect_stdout(io.StringIO()) as told:
        assert commands.main(arguments) == 0
    (folder / "told.txt").write_text(told.getvalue(), encoding="utf-8")
    return folder


@pytest.fixture(scope="session")
def segmenter(trained):
    return WordSegmenter(trained / "run")


@pytest.mark.once
def test_a_run_folder_holds_the_model_its_settings_its_scores_and_the_log(trained):
    run = trained / "run"
    assert {p.name for p in run.iterdir()} == {
        "config.json",
        "vocabulary.json",
        "model.weights.h5",
        "scores.json",
        "log.csv",
        "transitions.json",
        "predictions.jsonl",
    }
    assert json.loads((run / "config.json").read_text())["settings"]["seed"] == 5
    scores = json.loads((run / "scores.json").read_text())
    rows = (run / "log.csv").read_text().splitlines()
    assert rows[0].startswith("epoch,loss,valid_f") and len(rows) == 3
    best = max(float(row.split(",")[2]) for row in rows[1:])
    assert_allclose(scores["valid"]["f"], best, atol=1e-3)  # the weights kept are those of the best epoch
    assert 0.2 < scores["test"]["f"] < 1 and scores["test"]["true_words"] > 100


@pytest.mark.once
def test_training_ends_with_its_scores_and_with_what_to_do_about_the_crf(trained):
    *table, last = (trained / "told.txt").read_text(encoding="utf-8").splitlines()
    scores = json.loads((trained / "run" / "scores.json").read_text())
    assert any(f"{scores['test']['f']:.4f}" in line for line in table)
    advice = read_run(trained / "run").advice.replace("lr_multiplier", "--crf-lr-multiplier")
    assert last == f"CRF {advice}".replace("`constraints`", "--constraints")
    assert last.startswith("CRF after epoch 2: transitions ")


@pytest.mark.once
@pytest.mark.parametrize("head", ["crf", "softmax"])
def test_training_that_diverges_says_so_and_leaves_nothing(head, tmp_path):
    wild = Settings(**{**TINY, "learning_rate": 1e30}, head=head)
    with pytest.raises(ValueError, match="a finite loss. Received: .* in epoch 1; use a lower learning rate"):
        train_segmenter(wild, [["今天", "天气", "好"]] * 160, [["天气", "好"]], out=tmp_path / "run")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_a_run_may_be_made_and_used_in_the_folder_it_is(trained, tmp_path, monkeypatch):
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    arguments = ["--train", str(trained / "train.txt"), "--out", ".", "--epochs", "1", "--width", "8"]
    arguments += ["--linear-weight", "0"]
    assert commands.main(["train", *arguments]) == 0
    assert WordSegmenter(".").segment("好的") and [p.name for p in tmp_path.iterdir()] == ["here"]


@pytest.mark.once
def test_the_scores_in_the_run_are_those_of_its_output(trained, tmp_path, capsys):
    text = (trained / "test.txt").read_text(encoding="utf-8")
    plain = tmp_path / "plain.txt"
    plain.write_text("".join("".join(line.split()) + "\n" for line in text.splitlines()), encoding="utf-8")
    options = ["--batch-size", "3", "--no-keep-latin"]  # the scores are those of the model alone
    run = run_python(KCRF, "segment", "--model", trained / "run", *options, plain, cwd=tmp_path)
    predicted = tmp_path / "predicted.txt"
    predicted.write_text(run.stdout, encoding="utf-8", newline="")
    assert commands.main(["score", "--json", "--gold", str(trained / "test.txt"), "--pred", str(predicted)]) == 0
    scores = json.loads(capsys.readouterr().out)
    kept = json.loads((trained / "run" / "scores.json").read_text())["test"]
    assert {key: scores[key] for key in scores} == {key: kept[key] for key in scores}


@pytest.mark.slow
@pytest.mark.parametrize("with_valid", [False, True])
def test_the_words_of_the_whole_training_file_count_as_known(with_valid, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    parts = {"train": load_mini().train[:30], "valid": load_mini().valid[:5], "test": load_mini().test[:10]}
    for name, sentences in parts.items():
        Path(name).write_text("".join(" ".join(words) + "\n" for words in sentences), encoding="utf-8")
    options = ["--valid", "valid"] if with_valid else []
    command = ["train", "--train", "train", "--test", "test", *options, "--out", "run", "--epochs", "1", "--width", "8"]
    command += ["--linear-weight", "0"]
    assert commands.main(command) == 0
    known = {word for words in parts["train"] for word in words}
    words = [word for sentence in parts["test"] for word in sentence]
    rate = sum(word not in known for word in words) / len(words)
    assert json.loads(Path("run/scores.json").read_text())["test"]["oov_rate"] == pytest.approx(rate)


@pytest.mark.once
def test_standard_input_gives_one_line_for_one_line(trained):
    text = "今天天气真好。\r\n\n \u3000\n他 说：Ａ１\u2028好\x00的\nlast\n"
    run = run_python(KCRF, "segment", "--model", trained / "run", cwd=trained, stdin=text)
    lines = run.stdout.split("\n")
    assert len(lines) == 6
    for source, line in zip(text.split("\n"), lines, strict=True):
        assert "".join(source.split()) == "".join(line.split(" "))
    assert lines[1] == lines[2] == ""


@pytest.mark.once
def test_a_blank_last_line_and_a_last_line_without_an_end_count(trained, tmp_path, capfdbinary):
    for text, expected in ((b"\xe5\xa5\xbd\n\n", 2), (b"\xe5\xa5\xbd\n\xe5\xa5\xbd", 2), (b"", 0)):
        (tmp_path / "text.txt").write_bytes(text)
        assert commands.main(["segment", "--model", str(trained / "run"), str(tmp_path / "text.txt")]) == 0
        assert capfdbinary.readouterr().out.count(b"\n") == expected


TEXTS = [
    "",
    "   \t\u3000",
    "好",
    "👨\u200d👩\u200d👧\u200d👦是一家",
    "１２３，456。",
    "a\x00b\x1b\x7f\u0301é",
    "\ud800lone",
    "\ufeff开头",
    "甲乙丙丁" * 5000,
    "一句话。" * 5000,
]


@pytest.mark.once
@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
def test_no_character_is_lost(segmenter, text):
    words = segmenter.segment(text)
    assert "".join(words) == "".join(text.split())
    assert all(word and not any(c.isspace() for c in word) for word in words)


@pytest.mark.once
@settings(max_examples=60)
@given(st.lists(st.text(st.characters(exclude_categories=()), max_size=40), max_size=4))
def test_no_character_of_any_unicode_text_is_lost(segmenter, texts):
    found = segmenter.segment_batch(texts, batch_size=3)
    assert ["".join(words) for words in found] == ["".join(text.split()) for text in texts]


@pytest.mark.once
def test_one_text_where_several_are_expected_is_refused(segmenter):
    for method in (segmenter.segment_batch, segmenter.k_best_batch):
        with pytest.raises(TypeError, match="must be a list of strings; for one text call `.*`. Received: '好的'"):
            method("好的")


@pytest.mark.once
def test_words_of_the_held_out_part_are_out_of_vocabulary(tmp_path):
    """A word of `valid` that `train` lacks is unknown: the model never learned it."""
    corpus = load_mini()
    train, valid = [["今天", "天气", "好"]] * 8, corpus.valid[:6]
    tagger, scores = train_segmenter(Settings(**TINY), train, valid, valid, out=tmp_path / "run")
    words = [keys(tagger, ["".join(sentence)])[0] for sentence in valid]
    found = [["".join(s)[start:end] for start, end in spans] for s, spans in zip(valid, words, strict=True)]
    assert tagger.advice == read_run(tmp_path / "run").advice and tagger.advice.startswith("after epoch 2: ")
    expected = segmentation_scores(valid, found, training_words={"今天", "天气", "好"})
    assert expected["oov_rate"] > 0.8
    for part in ("valid", "test"):
        assert_allclose([scores[part][name] for name in expected], list(expected.values()), atol=1e-12)


@pytest.mark.once
def test_a_batch_is_segmented_as_its_texts_one_by_one(segmenter):
    texts = ["".join(words) for words in load_mini().valid[:12]]
    assert segmenter.segment_batch(texts, batch_size=5) == [segmenter.segment(text) for text in texts]


@pytest.mark.once
def test_the_best_segmentations_come_in_order_as_one_by_one_and_sum_to_at_most_one(segmenter):
    texts = ["他说今天 天气真好", "", "".join(map("".join, load_mini().valid[:8])), "好"]
    settled = []
    found = segmenter.k_best_batch(texts, 3, batch_size=2, on_batch=settled.append)
    for text, ways in zip(texts, found, strict=True):
        alone = segmenter.k_best(text, 3)
        assert [words for words, _ in ways] == [words for words, _ in alone]
        assert_allclose([p for _, p in ways], [p for _, p in alone], rtol=1e-3)
        probabilities = [p for _, p in ways]
        assert probabilities == sorted(probabilities, reverse=True) and sum(probabilities) <= 1 + 1e-5
        assert len({tuple(words) for words, _ in ways}) == len(ways) <= 3
        assert all("".join(span.text for span in spans) == "".join(text.split()) for spans, _ in ways)
        assert [span.text for span in ways[0][0]] == segmenter.segment(text)
    assert found[1] == [([], 1.0)] and sum(settled) == sum(len("".join(text.split())) for text in texts)


@pytest.mark.once
def test_the_command_writes_the_best_segmentations_of_each_line(trained, segmenter, tmp_path, capfdbinary):
    (tmp_path / "text.txt").write_text("今天天气\n\n真好\n", encoding="utf-8")
    command = ["segment", "--model", str(trained / "run"), str(tmp_path / "text.txt"), "--k-best"]
    assert commands.main([*command, "2"]) == 0
    blocks = capfdbinary.readouterr().out.decode().split("\n\n")
    expected = [
        "\n".join(f"{p:.4f}\t{' '.join(span.text for span in spans)}" for spans, p in segmenter.k_best(text, 2))
        for text in ("今天天气", "", "真好")
    ]
    assert blocks == [*expected, ""]
    assert commands.main([*command, "0"]) == 2
    assert b"--k-best must be at least 1. Received: 0" in capfdbinary.readouterr().err


@pytest.mark.once
def test_the_command_drops_a_byte_order_mark_and_says_where_text_is_missing(trained, segmenter, tmp_path, capfdbinary):
    (tmp_path / "text.txt").write_bytes("\ufeff今天天气\n".encode())
    assert commands.main(["segment", "--model", str(trained / "run"), str(tmp_path / "text.txt")]) == 0
    assert capfdbinary.readouterr().out.decode() == " ".join(segmenter.segment("今天天气")) + "\n"
    command = [sys.executable, "-m", "kcrf", "segment", "--model", str(trained / "run")]
    done = subprocess.run(["sh", "-c", '"$@" <&-', "sh", *command], capture_output=True, text=True)
    assert done.returncode == 2 and "needs FILE, or text on standard input. Received: neither" in done.stderr


@pytest.mark.once
@pytest.mark.parametrize("backend", ["pytorch", "openvino"])
def test_a_backend_that_keras_cannot_run_is_named_and_scores_need_none(backend, tmp_path):
    (tmp_path / "words.txt").write_text("今天 好\n明天 好\n", encoding="utf-8")
    environment = {**os.environ, "KERAS_BACKEND": backend}
    for arguments, status, told in (
        (["score", "--gold", "words.txt", "--pred", "words.txt", "--json"], 0, '"f": 1.0'),
        (
            ["train", "--train", "words.txt", "--out", "run"],
            2,
            f"to tensorflow, jax or torch. Received: KERAS_BACKEND={backend}",
        ),
    ):
        command = [sys.executable, "-m", "kcrf", *arguments]
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
        assert done.returncode == status and told in done.stdout + done.stderr and "Traceback" not in done.stderr


@pytest.mark.once
@pytest.mark.parametrize("encoder", few(*sorted(ENCODERS)))
@pytest.mark.parametrize("head", few("crf", "softmax"))
def test_padding_changes_no_score_under_any_encoder(encoder, head):
    letters = [chr(i) for i in range(28)]
    reader = CharacterReader(Vocabulary(letters, letters), Lexicon({}, {}))
    model = build_network(model_of(Settings(encoder=encoder, head=head, width=16, depth=2)), bmes(), reader)
    random = np.random.default_rng(0)
    short = {name: random.integers(2, 30, (2, 6)).astype("int32") for name in ("characters", "bigrams")}
    short["words"] = random.integers(0, Lexicon.size, (2, 6, Lexicon.width)).astype("int32")
    long = {name: np.pad(x, [[0, 0], [0, 5], [0, 0]][: x.ndim]) for name, x in short.items()}
    scores, padded = (ops.convert_to_numpy(model(x)) for x in (short, long))
    assert_allclose(padded[:, :6], scores, atol=1e-5)
    if head == "crf":
        assert (padded[:, 6:] == -np.inf).all()


@pytest.mark.once
def test_without_a_lexicon_a_model_reads_characters_and_pairs_alone(trained, tmp_path):
    data = ["--train", str(trained / "train.txt"), "--test", str(trained / "test.txt")]
    options = ["--no-lexicon", "--no-ngrams", "--epochs=1", "--width=8", "--depth=1"]
    with redirect_stdout(io.StringIO()):
        assert commands.main(["train", *data, "--out", str(tmp_path / "run"), *options]) == 0
    assert set(load_tagger(tmp_path / "run").model.input) == {"characters", "bigrams"}
    inputs = {"characters", "bigrams", "words", "types", "ngrams"}
    assert set(load_tagger(trained / "run").model.input) == inputs
    content = json.loads((tmp_path / "run" / "vocabulary.json").read_text(encoding="utf-8"))
    assert set(content) == {"characters", "bigrams"}


ENCODERS_HERE = [
    pytest.param(name, marks=[pytest.mark.slow] * (name in ("bilstm", "transformer")))
    for name in sorted(ENCODERS)
    if backend_name() == "torch" or name == "cnn"
]


@pytest.mark.once
@pytest.mark.parametrize("encoder", ENCODERS_HERE)
def test_every_encoder_learns_the_training_text(encoder, tmp_path):
    sentences = [words for words in load_mini().train if len("".join(words)) <= 8][:16]
    chosen = Settings(
        encoder=encoder,
        width=32,
        depth=1,
        batch_size=4,
        epochs=12,
        learning_rate=0.01,
        dropout=0.0,
        bigram_dropout=0.0,
        min_bigrams=1,
    )
    _, scores = train_segmenter(chosen, sentences, sentences, out=tmp_path / "run")
    assert scores["valid"]["f"] > 0.9


@pytest.mark.slow
def test_the_same_seed_trains_the_same_model_and_another_does_not(tmp_path):
    corpus = load_mini()
    weights = []
    for number, seed in enumerate((1, 1, 2)):
        chosen = Settings(**{**TINY, "seed": seed, "epochs": 1})
        tagger, _ = train_segmenter(chosen, corpus.train[:40], corpus.valid[:5], out=tmp_path / str(number))
        weights.append(np.concatenate([w.ravel() for w in tagger.model.get_weights()]))
    assert_allclose(weights[0], weights[1], atol=1e-6)
    assert np.abs(weights[0] - weights[2]).max() > 0.01


def run_cli(capsys, *arguments):
    """Exit status and what stood on standard error."""
    return commands.main(list(map(str, arguments))), capsys.readouterr().err


@pytest.mark.once
def test_errors_of_the_user_are_told_in_one_line(trained, tmp_path, capsys):
    empty = tmp_path / "empty.txt"
    empty.write_text("")
    good = trained / "train.txt"
    assert run_cli(capsys, "train", "--train", tmp_path / "none.txt", "--out", tmp_path / "x") == (
        2,
        f"kcrf train: {tmp_path}/none.txt: no such file\n",
    )
    status, told = run_cli(capsys, "train", "--train", empty, "--out", tmp_path / "x")
    assert status == 2 and "needs at least one line of words" in told
    status, told = run_cli(capsys, "train", "--train", good, "--out", tmp_path)
    assert status == 2 and "is not a run folder" in told and empty.exists()
    status, told = run_cli(capsys, "train", "--train", good, "--out", empty)
    assert status == 2 and "needs a folder to write the run into. Received: a file" in told
    status, told = run_cli(capsys, "train", "--train", good, "--out", tmp_path / "x", "--epochs", "0")
    assert status == 2 and "--epochs must be positive. Received: 0" in told
    status, told = run_cli(capsys, "segment", "--model", tmp_path, good)
    assert status == 2 and "config.json: no such file; a run folder" in told
    status, told = run_cli(capsys, "segment", "--model", trained / "run", tmp_path / "none.txt")
    assert status == 2 and "none.txt" in told


@pytest.mark.once
@pytest.mark.parametrize(("name", "value"), [("width", 10**6), ("depth", 10**9)])
def test_sizes_beyond_the_file_of_the_weights_are_refused_before_anything_is_allocated(trained, tmp_path, name, value):
    shutil.copytree(trained / "run", tmp_path / "copy")
    config = json.loads((tmp_path / "copy" / "config.json").read_text())
    config["run"]["model"][name] = value
    (tmp_path / "copy" / "config.json").write_text(json.dumps(config))
    with pytest.raises(ValueError, match=rf"copy: needs weights for width .*{value}.* Received: [\d,]+ bytes"):
        WordSegmenter(tmp_path / "copy")


@pytest.mark.once
def test_a_score_of_different_texts_names_the_line_and_the_column(tmp_path, capsys):
    gold, pred = write_words(tmp_path / "gold.txt", [["我", "们"], ["好"]]), tmp_path / "pred.txt"
    write_words(pred, [["我们"], ["坏"]])
    status, told = run_cli(capsys, "score", "--gold", gold, "--pred", pred)
    assert status == 2 and f"{pred}:2: line 2, column 1: gold and prediction must be the same text" in told


@pytest.mark.once
def test_score_prints_a_table_or_json(tmp_path, capsys):
    gold, pred = (
        write_words(tmp_path / "gold.txt", [["我们", "好"]]),
        write_words(tmp_path / "pred.txt", [["我", "们", "好"]]),
    )
    words = write_words(tmp_path / "words.txt", [["好"]])
    assert commands.main(["score", "--gold", gold, "--pred", pred, "--words", words]) == 0
    table = capsys.readouterr().out
    assert "0.3333" in table and "OOV recall" in table
    assert commands.main(["score", "--gold", gold, "--pred", pred, "--words", words, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["iv_recall"] == 1.0


@pytest.mark.once
@pytest.mark.parametrize("missing", ["config.json", "vocabulary.json", "model.weights.h5"])
def test_a_run_folder_that_misses_a_file_names_it(trained, tmp_path, missing):
    copy = shutil.copytree(trained / "run", tmp_path / "run")
    (copy / missing).unlink()
    with pytest.raises(FileNotFoundError, match=f"{missing}: no such file; a run folder"):
        load_tagger(copy)


@pytest.mark.once
def test_damaged_and_newer_run_folders_are_refused(trained, tmp_path):
    copy = shutil.copytree(trained / "run", tmp_path / "run")
    weights = bytearray((copy / "model.weights.h5").read_bytes())
    weights[-len(weights) // 3] ^= 1  # a bit that HDF5 does not notice
    (copy / "model.weights.h5").write_bytes(weights)
    with pytest.raises(ValueError, match="model.weights.h5: cannot be read as the weights of this run .*SHA-256"):
        load_tagger(copy)
    (copy / "model.weights.h5").write_bytes(b"nonsense")
    with pytest.raises(ValueError, match="model.weights.h5: cannot be read as the weights of this run"):
        load_tagger(copy)
    (copy / "vocabulary.json").write_text("{")
    with pytest.raises(ValueError, match="vocabulary.json: needs a JSON object"):
        load_tagger(copy)
    for content in ({"characters": ["a"]}, {"characters": 5, "bigrams": ["b"]}, {"characters": [], "bigrams": [1]}):
        (copy / "vocabulary.json").write_text(json.dumps(content))
        with pytest.raises(ValueError, match="vocabulary.json: needs lists of strings, characters and bigrams"):
            load_tagger(copy)
    config = json.loads((copy / "config.json").read_text())
    for name, value in {"types": None, "crf_lr_multiplier": [1], "width": "16", "epochs": 0}.items():
        (copy / "config.json").write_text(json.dumps({**config, "settings": {**config["settings"], name: value}}))
        with pytest.raises(ValueError, match="config.json: needs the settings of a run. Received: "):
            load_tagger(copy)
    (copy / "config.json").write_text(json.dumps({"format": 99, "kcrf": "9.0"}))
    with pytest.raises(ValueError, match="needs run format 1.* Received: format 99, written by kcrf 9.0"):
        load_tagger(copy)


@pytest.mark.once
def test_training_into_a_run_folder_replaces_it_when_done_and_not_before(trained, tmp_path):
    copy, corpus = shutil.copytree(trained / "run", tmp_path / "run"), load_mini()
    chosen = Settings(**{**TINY, "epochs": 1})
    with pytest.raises(RuntimeError, match="stop"):
        train_segmenter(chosen, corpus.train[:20], corpus.valid[:5], out=copy, progress=StopsAtOnce(), overwrite=True)
    assert (copy / "log.csv").read_text() == (trained / "run" / "log.csv").read_text()
    assert [p.name for p in tmp_path.iterdir()] == ["run"]
    with pytest.raises(FileExistsError, match="needs overwrite=True to replace a complete run"):
        train_segmenter(chosen, corpus.train[:20], corpus.valid[:5], out=copy)
    train_segmenter(chosen, corpus.train[:20], corpus.valid[:5], out=copy, overwrite=True)
    assert len((copy / "log.csv").read_text().splitlines()) == 2
    assert [p.name for p in tmp_path.iterdir()] == ["run"]


class StopsAtOnce(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        raise RuntimeError("stop")

    def report(self, row):
        pass


# Room for all but the weights.
NO_LARGE_FILES = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))\n"


@pytest.mark.once
@pytest.mark.parametrize("has_model", few(True, False, rest="slow"))
def test_a_full_disk_is_told_and_leaves_the_old_model_as_it_was(has_model, trained, tmp_path):
    run = tmp_path / "run"
    if has_model:
        shutil.copytree(trained / "run", run)
    before = {p.name: p.read_bytes() for p in run.glob("*")}
    arguments = ["--train", trained / "train.txt", "--out", run, "--epochs", "1", "--width", "16", "--depth", "1"]
    arguments += ["--linear-weight", "0"]
    arguments += ["--overwrite"] * has_model

    command = run_python(NO_LARGE_FILES + KCRF, "train", *arguments, cwd=tmp_path, PYTHONDONTWRITEBYTECODE="1")
    assert command.returncode == 2, command.stderr
    told = command.stderr.splitlines()[-1]
    assert told.endswith("model.weights.h5: file too large")
    assert {p.name: p.read_bytes() for p in run.glob("*")} == before
    assert [p.name for p in tmp_path.iterdir()] == ["run"] * has_model
    assert not has_model or WordSegmenter(run).segment("好的")


@pytest.mark.once
def test_a_first_save_that_fails_leaves_nothing_half_written(tmp_path):
    class Broken:
        variables = []

        def save_weights(self, path):
            Path(path).write_bytes(b"half")
            raise OSError("No space left on device")

    with pytest.raises(OSError, match="No space left"), RunWriter.create(tmp_path / "run") as folder:
        folder.save_weights(Broken())
    assert list(tmp_path.iterdir()) == []


@pytest.mark.once
def test_help_tells_a_newcomer_what_to_do(capsys):
    for command, words in {
        "demo": "--text",
        "train": "--learning-rate",
        "segment": "standard input",
        "tag": "JSON",
        "score": "SIGHAN",
        "download": "weibo",
    }.items():
        with pytest.raises(SystemExit) as stopped:
            commands.main([command, "--help"])
        assert stopped.value.code == 0
        text = capsys.readouterr().out
        assert words in text and ("example:" in text or "examples:" in text)


def path_probabilities(tagger, text):
    """The probability of every tag sequence that the scheme writes, by enumeration in float64."""
    emissions = tagger.decoder.emissions([text]).astype(float)
    trans = ops.convert_to_numpy(tagger.crf.trans).astype(float)
    legal = [tags for tags in product(range(4), repeat=len(text)) if not tagger.scheme.violations(tags)]
    at = np.arange(len(text))
    scores = np.array([emissions[at, tags].sum() + trans[tags[:-1], tags[1:]].sum() for tags in map(np.array, legal)])
    return dict(zip(legal, np.exp(scores - scores.max()), strict=True))


@pytest.mark.once
@pytest.mark.parametrize("spans", [[(2, 5)], [(0, 1), (4, 6)], []])
def test_known_words_leave_the_probabilities_of_the_sequences_that_have_them(trained, spans):
    segmenter, text = WordSegmenter(trained / "run"), "研究生命起源"
    tagger = segmenter
    left = {p: ws for p, ws in path_probabilities(tagger, text).items() if set(spans) <= set(tagger.scheme.decode(p))}
    total, words = sum(left.values()), lambda path: [text[a:b] for a, b in tagger.scheme.decode(path)]
    ranked = sorted(left, key=left.get, reverse=True)
    assert segmenter.segment(text, spans=spans) == words(ranked[0])
    best = segmenter.k_best(text, k=3, spans=spans)
    assert [[span.text for span in spans] for spans, _ in best] == [words(path) for path in ranked[:3]]
    assert_allclose([p for _, p in best], [left[path] / total for path in ranked[:3]], atol=1e-5)
    (found,) = segmenter.predict([text], spans=[spans])
    assert [span.key for span in found] == tagger.scheme.decode(ranked[0])
    for span in found:
        expected = sum(p for path, p in left.items() if span.key in tagger.scheme.decode(path)) / total
        assert span.text == text[span.start : span.end]
        assert_allclose(span.probability, expected, atol=1e-5)


@pytest.mark.once
@pytest.mark.parametrize("length", [6, 300])
@pytest.mark.parametrize("with_probabilities", [False, True])
def test_known_words_stand_in_texts_of_any_length(trained, length, with_probabilities):
    segmenter = WordSegmenter(trained / "run")
    text = " ".join(["".join(chr(0x4E00 + (7 * i + j) % 3000) for j in range(length)) for i in range(3)])
    spans = [(start, start + 3) for start in range(1, len(text) - 3, 9) if " " not in text[start : start + 3]]
    if with_probabilities:
        words = [span.text for span in segmenter.predict([text], spans=[spans])[0]]
    else:
        words = segmenter.segment(text, spans=spans)
    assert "".join(words) == text.replace(" ", "")
    ends = np.cumsum([0, *map(len, words)])
    starts_without_blanks = [(start - text.count(" ", 0, start), 3) for start, _ in spans]
    assert set(starts_without_blanks) <= set(zip(ends.tolist(), map(len, words), strict=False))


@pytest.mark.once
def test_a_users_words_reach_the_model_through_its_lexicon(trained, monkeypatch):
    plain, more = WordSegmenter(trained / "run"), WordSegmenter(trained / "run", words={"研究生": 4, "命起": None})
    before, after = plain.reader.lexicon, more.reader.lexicon
    assert after.words["研究生"] == before.words["研究生"] + 4 and after.words["命起"] == before.words["命起"] + 5
    assert after.words["研究生"] <= after.strings["研究生"]
    assert plain.segment("研究生命起源") == WordSegmenter(trained / "run").segment("研究生命起源")
    with pytest.warns(UserWarning, match=r"1 of 2 `words` change nothing, such as '中华人民共和国'"):
        WordSegmenter(trained / "run", words=["中华人民共和国", "共和"])


@pytest.mark.once
def test_forced_words_of_any_length_yield_to_given_spans(trained):
    segmenter = WordSegmenter(trained / "run", words=["究生命", "命起源远流长啊"], force_words=True)
    assert "究生命" in segmenter.segment("研究生命起源")
    assert "命起源远流长啊" in segmenter.segment("生命起源远流长啊")
    assert "究生命" not in segmenter.segment("研究生命起源", spans=[(0, 2)])


@pytest.mark.once
def test_latin_words_and_numbers_stay_whole_unless_asked(trained):
    text = "他用Python3写了hello-world共3.14万行"
    words = WordSegmenter(trained / "run").segment(text)
    assert "".join(words) == text
    for run in ("Python3", "hello", "world", "3.14"):
        assert sum(run in word for word in words) >= 1, words
    cut = WordSegmenter(trained / "run", keep_latin=False).segment("x" * 40)
    assert len(WordSegmenter(trained / "run").segment("x" * 40)) == 1 < len(cut)


@pytest.mark.once
@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"words": ["a b"]}, "`words` must be strings without white space. Received: 'a b'"),
        ({"words": [""]}, "`words` must be strings without white space. Received: ''"),
        ({"words": {"上海": 0}}, "counts of `words` must be positive integers. Received: '上海': 0"),
    ],
)
def test_words_that_cannot_be_are_refused(trained, arguments, message):
    with pytest.raises(ValueError, match=message):
        WordSegmenter(trained / "run", **arguments)


@pytest.mark.once
def test_known_words_must_fit_the_text(segmenter):
    with pytest.raises(ValueError, match="`spans` must be words without white space"):
        segmenter.segment("上 海", spans=[(0, 3)])
    with pytest.raises(ValueError, match="`spans` needs a list for each of the 2 texts. Received: 1"):
        segmenter.segment_batch(["上海", "下雨"], spans=[[]])


@pytest.mark.once
def test_the_command_line_takes_words(trained, tmp_path, capsysbinary):
    (tmp_path / "words.txt").write_text("究生命 3 n\n", encoding="utf-8")
    (tmp_path / "text.txt").write_text("研究生命起源\n", encoding="utf-8")
    command = ["segment", "--model", str(trained / "run"), str(tmp_path / "text.txt")]
    words = ["--words", str(tmp_path / "words.txt")]
    assert commands.main([*command, *words, "--force-words"]) == 0
    assert "究生命" in capsysbinary.readouterr().out.decode().split()
    assert commands.main([*command, *words, "--no-keep-latin"]) == 0
    assert commands.main([*command, "--force-words"]) == 2
    assert b"--force-words needs --words FILE. Received: no --words" in capsysbinary.readouterr().err
    assert commands.main([*command, "--words", str(tmp_path / "none.txt")]) == 2
