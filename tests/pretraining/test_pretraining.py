"""Tests of kcrf.pretraining.batches, kcrf.pretraining.train.

Masked language models: scores, batches, learning, what is written, further pretraining, interruptions.
"""

import json
import os
import re
import shutil
from dataclasses import replace

import numpy as np
import pytest
from kills import killed
from seeds import set_seeds

from kcrf import commands
from kcrf.backend import backend_name, keras, ops
from kcrf.checkpoints import google_names, open_checkpoint
from kcrf.models import build_transformer_model
from kcrf.pretraining import PretrainingSettings, pretrain, resume_pretraining
from kcrf.pretraining.batches import POSITIONS, MaskedBatches, masked_language_model
from kcrf.pretraining.windows import Window
from kcrf.readers import PieceReader
from kcrf.runs import Settings
from kcrf.tokenizers import load_vocab
from kcrf.training import train_segmenter

SIZES = {"vocab_size": 30, "hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 16}
WORDS = ["今天", "明天", "天气", "很好", "下雨", "我们", "出去", "回家"]
TINY = PretrainingSettings(
    layers=1, width=64, vocab_size=100, length=16, steps=12, every=4, batch_size=8, learning_rate=3e-3, mask="words"
)


SCRATCH = {name: getattr(PretrainingSettings(), name) for name in ("layers", "width", "vocab_size")}  # as by default


def lines(count, seed=0):
    """Lines of 4 words in which the second word follows from the first, and the fourth from the third."""
    pairs = np.random.default_rng(seed).integers(0, 4, (count, 2))
    return ["".join(WORDS[2 * one] + WORDS[2 * one + 1] for one in row) for row in pairs.tolist()]


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    path = tmp_path_factory.mktemp("text") / "text.txt"
    path.write_text("\n".join(lines(600)), encoding="utf-8")
    return path


@pytest.mark.once
def test_little_text_needs_a_number_of_steps(tmp_path, capsys):
    path, out = tmp_path / "text.txt", tmp_path / "bert"
    path.write_text("\n".join(lines(60)), encoding="utf-8")
    command = ["pretrain", "--text", str(path), "--out", str(out), "--layers", "1", "--width", "64", "--length", "16"]
    assert commands.main(command) == 2
    error = capsys.readouterr().err
    assert re.search(r"--steps is needed for so little text: the default, 10,000, is \d,\d{3} epochs over it", error)
    assert not out.exists()
    settings = replace(TINY, steps=10_000, patience=1, learning_rate=1e-12)
    assert len(pretrain(settings, [path], out)) > 1  # who asks for so many steps gets them


@pytest.fixture(scope="module")
def whole(text, tmp_path_factory):
    """A finished pretraining."""
    out = tmp_path_factory.mktemp("whole") / "bert"
    return out, pretrain(TINY, [text], out)


def test_scores_are_those_of_the_whole_model_at_the_positions():
    set_seeds(0)
    transformer = build_transformer_model(**SIZES, with_mlm="linear", return_keras_model=False)
    model = masked_language_model(transformer)
    random = np.random.default_rng(0)
    tokens, segments = random.integers(1, 30, (3, 9)), np.zeros((3, 9), int)
    tokens[1, 6:] = 0
    positions = np.array([[0, 4, 8], [5, 1, 1], [3, 2, 7]])
    found = model.predict_on_batch({"Input-Token": tokens, "Input-Segment": segments, POSITIONS: positions})
    everywhere = transformer.model.predict_on_batch([tokens, segments])
    np.testing.assert_allclose(found, np.take_along_axis(everywhere, positions[:, :, None], axis=1), atol=1e-5)
    assert len(model.trainable_variables) == len(transformer.model.trainable_variables)


class Rows:
    """Windows whose tokens say which they are."""

    def __getitem__(self, number):
        return Window(np.array([2, *range(10 + 20 * number, 29 + 20 * number)]), np.ones(20, bool))


VOCABULARY = {"[PAD]": 0, "[UNK]": 1, "[CLS]": 2, "[SEP]": 3, "[MASK]": 4, **{str(n): n for n in range(5, 300)}}
READER = PieceReader({}, VOCABULARY, True)


@pytest.mark.once
def test_batches_have_every_window_once_in_a_pass_and_new_masks_in_the_next():
    settings = replace(TINY, length=20, mask="tokens", batch_size=3)
    numbers = np.array([0, 2, 3, 5, 7, 9])
    batches = MaskedBatches(Rows(), numbers, settings, READER, steps=4)  # two passes a round
    seen = [(batch[0]["Input-Token"], batch[0][POSITIONS], *batch[1:]) for batch in (batches[i] for i in range(4))]
    masks = {}
    for part, (shown, positions, targets, weights) in enumerate(seen):
        assert shown.shape == (3, 20) and positions.shape == targets.shape == (3, 3) and (weights == 1).all()
        for row in range(3):
            number = int(targets[row, 0] - 10) // 20
            original = Rows()[number][0]
            np.testing.assert_array_equal(targets[row], original[positions[row]])
            hidden = np.isin(np.arange(20), positions[row])
            np.testing.assert_array_equal(shown[row][~hidden], original[~hidden])
            masks.setdefault(number, []).append((part // 2, positions[row].tolist()))
    assert sorted(masks) == numbers.tolist()
    assert all([turn for turn, _ in drawn] == [0, 1] for drawn in masks.values())
    assert sum(one == other for (_, one), (_, other) in masks.values()) < 2
    batches.draw(1)
    assert not np.array_equal(batches[0][1], seen[0][2])
    batches.draw(0)
    np.testing.assert_array_equal(batches[0][0]["Input-Token"], seen[0][0])


@pytest.mark.once
def test_static_and_held_out_masks_stay():
    settings = replace(TINY, length=20, mask="tokens", batch_size=4)
    static = MaskedBatches(Rows(), np.array([3]), replace(settings, static=True), READER, steps=1)
    dynamic = MaskedBatches(Rows(), np.array([3]), settings, READER, steps=1)
    assert len(np.unique(static[0][1], axis=0)) == 1 < len(np.unique(dynamic[0][1], axis=0))
    held_out = MaskedBatches(Rows(), np.arange(6), settings, READER)
    before = [held_out[i][1].tolist() for i in range(len(held_out))]
    held_out.draw(3)
    assert [len(rows) for rows in before] == [4, 2]
    assert before == [held_out[i][1].tolist() for i in range(2)]


@pytest.mark.slow
def test_what_follows_from_its_neighbors_is_learned(text, tmp_path):
    """Guessing by frequency costs more than 2 nats and is right one time in four."""
    settings = replace(TINY, steps=400, every=100, mask="tokens", batch_size=32)
    rows = pretrain(settings, [text], tmp_path / "bert")
    assert [row["step"] for row in rows] == [100, 200, 300, 400]
    assert rows[-1]["valid_loss"] < 0.9 < 2 < rows[0]["loss"] and rows[-1]["valid_accuracy"] > 0.75


@pytest.mark.once
def test_the_folder_is_a_bert_for_everybody(whole, tmp_path):
    import transformers

    out, _ = whole
    vocabulary = load_vocab(out / "vocab.txt")
    ids = np.array([[vocabulary["[CLS]"], vocabulary["今"], vocabulary["[MASK]"], vocabulary["[SEP]"]]])
    ours = build_transformer_model(out, out, with_mlm="linear").predict_on_batch([ids, np.zeros_like(ids)])
    theirs = transformers.AutoModelForMaskedLM.from_pretrained(out).eval()
    import torch

    np.testing.assert_allclose(ours, theirs(torch.tensor(ids)).logits.detach().numpy(), atol=2e-5)
    assert transformers.AutoTokenizer.from_pretrained(out).tokenize("今天 Ab") == ["今", "天", "[UNK]"]
    sentences = [line_words(line) for line in lines(20)]
    settings = Settings(bert=str(out), epochs=1, batch_size=8)
    segmenter, _ = train_segmenter(settings, sentences, sentences, out=tmp_path / "run")
    assert segmenter.model.get_layer("Embedding-Token").get_weights()[0].shape == (len(vocabulary), 64)
    log = (out / "pretraining" / "log.csv").read_text().splitlines()
    assert log[0] == "epoch,step,loss,accuracy,valid_loss,valid_accuracy,seconds" and len(log) == 4
    assert {path.name for path in (out / "pretraining").iterdir()} == {"about.json", "log.csv"}


@pytest.mark.slow
def test_the_best_weights_are_written_in_googles_format_too(text, tmp_path):
    out, wild = tmp_path / "bert", replace(TINY, learning_rate=3.0, warmup=0.99, google_checkpoint=True)
    rows = pretrain(wild, [text], out)
    assert rows[-1]["valid_loss"] > min(row["valid_loss"] for row in rows)  # so the last weights are not the best ones
    ids = np.array([[2, 7, 8, 9, 3]])
    found, expected = (
        build_transformer_model(config, weights, with_mlm="linear").predict_on_batch([ids, np.zeros_like(ids)])
        for config, weights in ((out / "bert_config.json", out / "bert_model.ckpt"), (out, out / "model.safetensors"))
    )
    np.testing.assert_array_equal(found, expected)


def line_words(line):
    return [line[i : i + 2] for i in range(0, len(line), 2)]


@pytest.mark.once
def test_further_pretraining_begins_with_the_weights_of_the_bert(whole, text, tmp_path):
    out, rows = whole
    still = PretrainingSettings(bert=str(out), length=16, steps=2, batch_size=8, learning_rate=1e-12, mask="words")
    more = pretrain(still, [text], tmp_path / "more")
    assert more[-1]["valid_loss"] == pytest.approx(min(row["valid_loss"] for row in rows), abs=1e-4)
    before, after = open_checkpoint(out), open_checkpoint(tmp_path / "more")
    assert set(before) == set(after)
    for name in before:
        np.testing.assert_allclose(before[name], after[name], atol=1e-6)
    assert (tmp_path / "more" / "vocab.txt").read_text() == (out / "vocab.txt").read_text()


@pytest.mark.once
def test_a_new_model_has_room_for_longer_windows_and_starts_from_sinusoids(text, tmp_path):
    out = tmp_path / "short"
    pretrain(replace(TINY, steps=1, positions=24, learning_rate=1e-12), [text], out)
    name = "bert/embeddings/position_embeddings"
    found = google_names(open_checkpoint(out), "bert")[name]
    angles = np.arange(24)[:, None] / 10_000 ** (np.arange(0, 64, 2) / 64)
    expected = 0.02 * 2**0.5 * np.concatenate([np.sin(angles), np.cos(angles)], axis=1)
    np.testing.assert_allclose(found, expected, atol=1e-6)
    longer = PretrainingSettings(bert=str(out), length=24, steps=1, batch_size=8, learning_rate=1e-12)
    pretrain(longer, [text], tmp_path / "long")
    np.testing.assert_allclose(google_names(open_checkpoint(tmp_path / "long"), "bert")[name], expected, atol=1e-6)
    with pytest.raises(ValueError, match="`length` must be at most 24"):
        pretrain(replace(longer, length=25), [text], tmp_path / "longer")


@pytest.mark.slow
@pytest.mark.once
def test_dropout_is_that_of_the_settings_but_what_is_written_keeps_the_models_own(text, whole, tmp_path):
    assert json.loads((whole[0] / "config.json").read_text())["hidden_dropout_prob"] == 0.1
    settings, weights = replace(TINY, **SCRATCH, bert=str(whole[0]), steps=4), {}
    for dropout in (None, 0.1, 0.0):
        out = tmp_path / str(dropout)
        pretrain(replace(settings, dropout=dropout), [text], out)
        config = json.loads((out / "config.json").read_text())
        assert config["hidden_dropout_prob"] == config["attention_probs_dropout_prob"] == 0.1
        weights[dropout] = open_checkpoint(out)["bert.embeddings.word_embeddings.weight"]
    np.testing.assert_array_equal(weights[None], weights[0.1])
    assert not np.array_equal(weights[0.0], weights[0.1])


@pytest.mark.once
def test_a_bert_without_a_head_gets_one_and_keeps_its_pooler(text, whole, tmp_path):
    from kcrf.models import save_pretrained

    vocabulary = load_vocab(whole[0] / "vocab.txt")
    bert = build_transformer_model(**{**SIZES, "vocab_size": len(vocabulary)}, with_pool=True, max_position=16)
    save_pretrained(bert, tmp_path / "old", vocab=vocabulary)
    settings = PretrainingSettings(bert=str(tmp_path / "old"), length=16, steps=2, batch_size=4)
    pretrain(settings, [text], tmp_path / "new")
    before, after = open_checkpoint(tmp_path / "old"), open_checkpoint(tmp_path / "new")
    assert set(before) < set(after) and any(name.startswith("cls.predictions") for name in set(after) - set(before))
    pooler = [name for name in before if "pooler" in name]
    assert len(pooler) == 2 and all(np.array_equal(before[name], after[name]) for name in pooler)


@pytest.mark.once
def test_tokens_keep_their_ids_where_a_vocabulary_has_one_twice(text, tmp_path):
    import transformers

    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *dict.fromkeys("今天明今" + "".join(WORDS))]
    old, new = tmp_path / "old", tmp_path / "new"
    config = transformers.BertConfig(**{**SIZES, "vocab_size": len(tokens) + 1})
    transformers.BertForMaskedLM(config).save_pretrained(old)
    (old / "vocab.txt").write_text("\n".join([*tokens[:6], tokens[5], *tokens[6:]]) + "\n", encoding="utf-8")
    pretrain(PretrainingSettings(bert=str(old), length=16, steps=1, batch_size=4), [text], new)
    ids = load_vocab(new / "vocab.txt")
    assert all(ids[token] == number for token, number in load_vocab(old / "vocab.txt").items())
    known = transformers.AutoTokenizer.from_pretrained(new)
    assert known.convert_tokens_to_ids(["今", "天", "下"]) == [ids["今"], ids["天"], ids["下"]]


@pytest.mark.once
def test_accumulated_gradients_make_an_update_of_several_batches(text, tmp_path):
    rows = pretrain(replace(TINY, accumulate=3, steps=4), [text], tmp_path / "bert")
    assert [row["step"] for row in rows] == [4] and np.isfinite(rows[0]["valid_loss"])


class Rates(keras.callbacks.Callback):
    """Notes the learning rate of each update."""

    def __init__(self):
        super().__init__()
        self.rates = {}

    def on_train_batch_end(self, batch, logs=None):
        optimizer = self.model.optimizer
        self.rates[int(optimizer.iterations)] = float(ops.convert_to_numpy(optimizer.learning_rate))

    def report(self, row):
        """Does nothing."""


@pytest.mark.once
def test_accumulated_gradients_leave_the_schedule_as_it_is(text, tmp_path):
    rates = {}
    for accumulate in (1, 3):
        noted = Rates()
        settings = replace(TINY, accumulate=accumulate, steps=8, every=8, warmup=0.25, schedule="linear")
        pretrain(settings, [text], tmp_path / str(accumulate), progress=noted)
        rates[accumulate] = [noted.rates[update] for update in range(1, 9)]
    expected = np.interp(np.arange(1, 9), [0, 2, 8], [0, 3e-3, 0])
    np.testing.assert_allclose(rates[1], expected, atol=1e-8)
    np.testing.assert_allclose(rates[3], expected, atol=1e-8)


@pytest.mark.slow
@pytest.mark.once
@pytest.mark.parametrize("precision", ["bfloat16"])
def test_other_precisions_learn_too_and_leave_the_policy_as_it_was(precision, text, tmp_path):
    rows = pretrain(replace(TINY, precision=precision), [text], tmp_path / "bert")
    assert rows[-1]["valid_loss"] < rows[0]["valid_loss"] and keras.config.dtype_policy().name == "float32"
    assert open_checkpoint(tmp_path / "bert")["cls.predictions.bias"].dtype == np.float32


@pytest.mark.once
def test_training_stops_where_the_held_out_loss_no_longer_falls(text, tmp_path):
    rows = pretrain(replace(TINY, patience=1, learning_rate=1e-12), [text], tmp_path / "bert")
    assert len(rows) < 4 and rows[-1]["valid_loss"] >= min(row["valid_loss"] for row in rows[:-1])


class Rounds(keras.callbacks.Callback):
    """Notes the rounds, and presses Ctrl-C after so many."""

    def __init__(self, most):
        super().__init__()
        self.most, self.steps = most, []

    def report(self, row):
        self.steps.append(row["step"])
        if len(self.steps) == self.most:
            raise KeyboardInterrupt


@pytest.mark.once
def test_an_interrupted_pretraining_goes_on_after_the_last_round(whole, text, tmp_path):
    with pytest.raises(KeyboardInterrupt):
        pretrain(TINY, [text], tmp_path / "bert", Rounds(2))
    with pytest.raises(FileExistsError, match="--resume to resume"):
        pretrain(TINY, [text], tmp_path / "bert")
    progress = Rounds(9)
    rows = resume_pretraining(tmp_path / "bert", progress)
    assert progress.steps == [12]
    without_time = [[{**row, "seconds": 0} for row in log] for log in (rows, whole[1])]
    assert without_time[0] == without_time[1]
    best = min(rows, key=lambda row: row["valid_loss"])
    assert best is rows[-1]  # so that the test of the weights compares those of the last round
    assert (tmp_path / "bert" / "model.safetensors").read_bytes() == (whole[0] / "model.safetensors").read_bytes()


@pytest.mark.slow
def test_further_pretraining_is_resumed_without_the_bert_that_it_began_with(whole, text, tmp_path):
    bert = shutil.copytree(whole[0], tmp_path / "bert")
    further = PretrainingSettings(bert=str(bert), length=16, steps=12, every=4, batch_size=8, learning_rate=1e-3)
    pretrain(further, [text], tmp_path / "at once")
    with pytest.raises(KeyboardInterrupt):
        pretrain(further, [text], tmp_path / "resumed", Rounds(1))
    shutil.rmtree(bert)
    resume_pretraining(tmp_path / "resumed")
    at_once, resumed = ((tmp_path / name / "model.safetensors").read_bytes() for name in ("at once", "resumed"))
    assert at_once == resumed


STOPS = ["new.state.npz", 2, "new.about.json", 8, "new.log.csv", "/state.npz"]
PRETRAINING = """
from test_pretraining import TINY
from kcrf.pretraining import pretrain, resume_pretraining

resume_pretraining(folder) if command == "resume" else pretrain(TINY, [os.environ["TEXT"]], folder)
"""


@pytest.mark.slow
@pytest.mark.once
@pytest.mark.parametrize("first", STOPS)
def test_kill_9_changes_nothing(first, whole, text, tmp_path, monkeypatch):
    monkeypatch.setenv("TEXT", str(text))
    out = tmp_path / "bert"
    assert killed(out, first, "train", PRETRAINING)
    if not (out / "pretraining" / "about.json").exists():
        pretrain(TINY, [text], out)
    elif first != "/state.npz":  # which is removed at the end
        resume_pretraining(out)
    with pytest.raises(FileNotFoundError, match="that was interrupted. Received: one that is complete"):
        resume_pretraining(out)
    for name in ("model.safetensors", "config.json", "vocab.txt", "tokenizer_config.json", "pretraining/about.json"):
        assert (out / name).read_bytes() == (whole[0] / name).read_bytes(), name
    assert {path.name for path in out.rglob("*")} == {path.name for path in whole[0].rglob("*")}


@pytest.mark.once
def test_bad_input_is_refused_and_nothing_is_written(text, whole, tmp_path, capsys):
    out = tmp_path / "bert"
    with pytest.raises(TypeError, match="`texts` must be a list of files. Received: "):
        pretrain(TINY, str(text), out)
    (tmp_path / "short.txt").write_text("今天\n")
    (tmp_path / "greek.txt").write_text("αβγ δε\n" * 99)
    further = ("--bert", str(whole[0]), "--out", str(out), "--text")
    cases = {
        (*further, str(text), "--length", "32"): "length must be at most 16, the positions of",
        (*further, str(tmp_path / "greek.txt"), "--length", "16"): "a text whose tokens are nearly all unknown",
        ("--out", str(out)): "needs --text, or --resume FOLDER",
        ("--text", str(text), str(tmp_path / "none"), "--out", str(out)): "none: no such file",
        ("--text", str(tmp_path / "short.txt"), "--out", str(out)): "needs a text of at least 256 tokens. Received: 3",
        ("--text", str(text), "--out", str(whole[0])): "needs a new or an empty folder",
        ("--text", str(text), "--out", str(text)): "needs a folder to write the model into. Received: a file",
        ("--text", str(text), "--out", str(out), "--width", "100"): "--width must be a multiple of 64",
        ("--text", str(text), "--out", str(out), "--bert", "x", "--layers", "2"): "--layers needs",
        ("--resume", str(out)): "needs a pretraining that was interrupted. Received: a folder without one",
        ("--resume", str(out), "--steps", "3"): "Received: also --steps",
    }
    for options, message in cases.items():
        assert commands.main(["pretrain", *options]) == 2, options
        assert message in capsys.readouterr().err.replace("`", ""), options
        assert not out.exists(), options
    assert json.loads((whole[0] / "pretraining" / "about.json").read_text())["is_complete"]


@pytest.mark.slow
def test_after_an_error_before_the_first_round_the_folder_is_free_again(text, tmp_path, monkeypatch):
    out = tmp_path / "bert"
    for name in ("_compile", "RoundEnd.on_epoch_end"):
        with monkeypatch.context() as patch:
            patch.setattr(f"kcrf.pretraining.train.{name}", lambda *_, **__: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                pretrain(TINY, [text], out)
        assert not out.exists()
    (out / "pretraining").mkdir(parents=True)
    (out / "pretraining" / "notes").touch()
    with pytest.raises(ZeroDivisionError), monkeypatch.context() as patch:
        patch.setattr("kcrf.pretraining.train._compile", lambda *_: 1 / 0)
        pretrain(TINY, [text], out)
    assert [path.name for path in out.rglob("*")] == ["pretraining", "notes"]
    with pytest.raises(KeyboardInterrupt), monkeypatch.context() as patch:
        patch.setattr("kcrf.pretraining.train._compile", interrupt)
        pretrain(TINY, [text], out)
    assert len(resume_pretraining(out)) == 3


@pytest.mark.once
def test_text_out_of_a_pipe_serves_where_it_is_read_once(whole, text, tmp_path):
    def pipe():
        reading, writing = os.pipe()  # its buffer holds a text of 64 KiB
        os.write(writing, text.read_bytes())
        os.close(writing)
        return reading, f"/dev/fd/{reading}"

    file, path = pipe()
    with pytest.raises(ValueError, match="needs a regular file for a new vocabulary. Received: a pipe"):
        pretrain(TINY, [path], tmp_path / "new")
    os.close(file)
    file, path = pipe()
    further = PretrainingSettings(bert=str(whole[0]), length=16, steps=1, batch_size=4)
    assert [row["step"] for row in pretrain(further, [path], tmp_path / "new")] == [1]
    os.close(file)


@pytest.mark.once
def test_a_bert_that_cannot_learn_hidden_tokens_and_a_folder_with_a_vocabulary_are_refused(text, whole, tmp_path):
    import transformers

    bert = tmp_path / "electra"
    transformers.ElectraConfig().save_pretrained(bert)
    (bert / "vocab.txt").write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n")
    with pytest.raises(ValueError, match="electra: needs a model that predicts hidden tokens. Received: an ELECTRA"):
        pretrain(replace(TINY, bert=str(bert), **SCRATCH), [text], tmp_path / "out")
    (bert / "config.json").write_bytes((whole[0] / "config.json").read_bytes())
    (bert / "vocab.txt").write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\n今\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"needs a mask token, as \[MASK\]"):
        pretrain(replace(TINY, bert=str(bert), **SCRATCH), [text], tmp_path / "out")
    (bert / "config.json").unlink()
    with pytest.raises(FileExistsError, match="Received: a folder with vocab.txt"):
        pretrain(TINY, [text], bert)
    assert "今" in (bert / "vocab.txt").read_text(encoding="utf-8")


def interrupt(*_):
    raise KeyboardInterrupt


@pytest.mark.slow
def test_the_command_pretrains(text, tmp_path, capsys):
    out = tmp_path / "bert"
    options = ["--layers", "1", "--width", "64", "--vocab-size", "100", "--length", "16"]
    options += ["--steps", "2", "--every", "1", "--batch-size", "4"]
    assert commands.main(["pretrain", "--text", str(text), "--out", str(out), *options]) == 0
    printed, progress = capsys.readouterr()
    assert "validation loss" in printed and "step 2, loss" in progress and "2 steps" in progress
    about = json.loads((out / "pretraining" / "about.json").read_text())
    assert about["backend"] == backend_name() and about["settings"]["steps"] == 2
    assert ops.shape(build_transformer_model(out, out).weights[0])[-1] == 64
