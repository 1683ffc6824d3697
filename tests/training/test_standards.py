"""Tests of kcrf.training.data, kcrf.training.fit.

One model of several segmentation standards: losses, features, scores, resuming, exporting, and what is refused.
"""

import json
import shutil
from dataclasses import replace

import h5py
import numpy as np
import oracles
import pytest

from kcrf.backend import ops
from kcrf.commands.main import main
from kcrf.corpora import Sentence, load_mini, split
from kcrf.readers import TagsOfStandard
from kcrf.readers.padding import training_batch
from kcrf.reports import write_report
from kcrf.reports.comparison import differences_from_the_best, why_not_comparable
from kcrf.runs import RunFolder, SettingError, Settings, read_run
from kcrf.runs.formats import read_predictions
from kcrf.runs.names import LINEAR, WEIGHTS
from kcrf.taggers import WordSegmenter, load_tagger
from kcrf.taggers.estimates import held_out_of
from kcrf.training import linear as linear_training
from kcrf.training import resume_tagger, train_tagger
from kcrf.training.data import read_data
from kcrf.training.fit import compile_model
from kcrf.training.plan import plan_run
from kcrf.training.stages.table import STAGES
from kcrf.training.trainers import TaggingTrainer

CORPUS = load_mini()
SHORT = [[words for words in part if 4 <= len("".join(words)) <= 14] for part in (CORPUS.train, CORPUS.valid)]
SMALL = {"width": 16, "depth": 1, "batch_size": 8, "character_width": 8, "bigram_width": 8}
SMALL |= {"learning_rate": 0.01, "linear_weight": 0.0}
TEXTS = ["".join(words) for words in CORPUS.test[:12]]


def in_halves(words):
    """The words of another standard: one of two characters or more is two words."""
    return [part for word in words for part in ((word[:1], word[1:]) if len(word) > 1 else (word,))]


def parts_of(rows):
    """Half of the sentences by the standard of the corpus, the other half by that of halves."""
    return {"whole": rows[::2], "halves": list(map(in_halves, rows[1::2]))}


LONGER = parts_of(CORPUS.train[:200])
TRAIN, VALID, TEST = parts_of(SHORT[0][:160]), parts_of(SHORT[1][:24]), parts_of(CORPUS.test[:40])


def words_of(part):
    return [word for words in part for word in words]


@pytest.fixture(scope="module")
def linear(tmp_path_factory):
    path = tmp_path_factory.mktemp("runs") / "linear"
    settings = Settings(encoder="linear", solver="adagrad", epochs=3)
    tagger, scores = train_tagger(settings, LONGER, parts_of(CORPUS.valid[:40]), TEST, out=path)
    for standard in tagger.taggers:
        assert f"{standard} <WordSegmenter: task cws, encoder linear" in repr(tagger)
    return path, scores


@pytest.fixture(scope="module")
def neural(tmp_path_factory):
    path = tmp_path_factory.mktemp("runs") / "neural"
    _, scores = train_tagger(Settings(**SMALL, epochs=4), TRAIN, VALID, TEST, out=path)
    return path, scores


@pytest.mark.once
def test_the_loss_is_the_sum_of_the_losses_of_the_crf_of_each_standard():
    """Each sentence of a mixed batch costs what the CRF of its standard says, by enumeration, and nothing else."""
    settings = Settings(**SMALL, epochs=1, dropout=0.0, constraints=False)
    rows = {"whole": [list("天地人"), ["天地", "玄黄"]], "halves": [["宇", "宙洪荒"], ["日"]]}
    plan = plan_run(settings, read_data(settings, rows, rows), table=STAGES)
    trainer = TaggingTrainer()
    model = trainer.build(plan.config, plan.reader)
    random = np.random.default_rng(0)
    for variable in model.variables:
        variable.assign(variable + random.normal(0, 0.3, variable.shape).astype("float32"))
    compile_model(model, plan.config, trainer.loss(plan.config, model), 1)
    inputs, targets = training_batch(plan.windows)
    outputs = model(inputs)
    expected = 0.0
    for number, standard in enumerate(["whole", "whole", "halves", "halves"]):
        emissions = np.asarray(ops.convert_to_numpy(outputs[standard]), "float64")[number]
        transitions = ops.convert_to_numpy(model.get_layer(f"CRF-{standard}").trans).astype("float64")
        other = targets["halves" if standard == "whole" else "whole"][number]
        mask = inputs["characters"][number] != 0
        assert (other == -1).all() and (targets[standard][number][mask] >= 0).all()
        expected -= oracles.log_likelihood(emissions, targets[standard][number], mask, transitions) / 4
    loss = model.evaluate(inputs, targets, verbose=0, batch_size=4, return_dict=True)["loss"]
    np.testing.assert_allclose(loss, expected, rtol=1e-5)


@pytest.mark.once
def test_sentences_of_one_standard_do_not_move_the_head_of_another():
    settings = Settings(**SMALL, epochs=1)
    plan = plan_run(settings, read_data(settings, TRAIN, VALID), table=STAGES)
    trainer = TaggingTrainer()
    model = trainer.build(plan.config, plan.reader)
    compile_model(model, plan.config, trainer.loss(plan.config, model), 10)
    windows = [(inputs, target) for inputs, target in plan.windows if target.standard == "whole"][:8]
    before = {v.path: np.array(ops.convert_to_numpy(v)) for v in model.trainable_variables}
    for _ in range(2):  # the learning rate of the first step is 0
        model.train_on_batch(*training_batch(windows))
    moved = {v.path for v in model.trainable_variables if not np.array_equal(before[v.path], ops.convert_to_numpy(v))}
    assert moved and not [path for path in moved if "-halves/" in path]
    assert any("-whole/" in path for path in moved) and any(path.startswith("Convolution-0") for path in moved)


def test_tags_are_unknown_to_other_standards():
    targets = TagsOfStandard([0, 3], "a", ("a", "b")), TagsOfStandard([2], "b", ("a", "b"))
    _, targets = training_batch([({"x": [1] * len(target.tags)}, target) for target in targets])
    assert targets["a"][:, :2].tolist() == [[0, 3], [-1, -1]] and targets["b"][:, :2].tolist() == [[-1, -1], [2, -1]]


@pytest.mark.once
def test_a_standard_has_words_of_its_own_and_those_of_the_others_as_other_features():
    settings = Settings(**SMALL, epochs=1)
    rows = {"whole": [["天地", "玄黄"]] * 12, "halves": [["玄", "黄"], ["天地"]] * 6}
    plan = plan_run(settings, read_data(settings, rows, rows), table=STAGES)
    own, other = (plan.reader.readers[name].read(["玄黄"])[0].windows[0].inputs["words"][0] for name in rows)
    assert own.shape == other.shape == (16,)
    assert own[0] > 0 and own[8] == 0  # of "whole" alone: a word here, none there
    assert other[0] == 0 and other[8] > 0
    assert other[8] not in own  # another feature, with an embedding of its own
    trained = [inputs["words"][0] for inputs, target in plan.windows if target.standard == "whole"]
    assert all(row[0] > 0 for row in trained)  # the word is in other sentences too


@pytest.mark.once
def test_each_standard_is_learned(neural):
    path, scores = neural
    for part in ("valid", "test"):
        by_standard = scores[part]["standards"]
        assert list(by_standard) == ["whole", "halves"]
        mean = sum(own["f"] for own in by_standard.values()) / 2
        np.testing.assert_allclose(scores[part]["f"], mean)
    found = {name: WordSegmenter(path, standard=name).segment_batch(TEXTS) for name in TRAIN}
    lengths = {name: np.mean([len(word) for word in words_of(words)]) for name, words in found.items()}
    assert lengths["halves"] < 1.2 < lengths["whole"], lengths
    header, *rows = (path / "log.csv").read_text().splitlines()
    columns = {name: [float(row.split(",")[i]) for row in rows] for i, name in enumerate(header.split(","))}
    own = np.array([columns["valid_f_whole"], columns["valid_f_halves"]])
    np.testing.assert_allclose(columns["valid_f"], own.mean(axis=0))
    assert max(columns["valid_f"]) == pytest.approx(scores["valid"]["f"])  # the kept epoch has the best mean
    lines = [json.loads(line) for line in (path / "predictions.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [line["standard"] for line in lines] == ["whole"] * 20 + ["halves"] * 20
    assert set(RunFolder(path).read_config().config.temperature) == {"whole", "halves"}


@pytest.mark.once
def test_oov_words_of_a_standard_are_those_that_its_own_sentences_lack(linear):
    _, scores = linear
    known = {name: set(words_of(part)) for name, part in LONGER.items()}
    for name, part in TEST.items():
        words = words_of(part)
        rate = sum(word not in known[name] for word in words) / len(words)
        np.testing.assert_allclose(scores["test"]["standards"][name]["oov_rate"], rate)


@pytest.mark.once
def test_an_estimate_is_calibrated_by_the_held_out_sentences_of_its_standard(linear):
    path, _ = linear
    rows = read_predictions(path / "predictions.jsonl")
    for name in TRAIN:
        segmenter, of_standard = WordSegmenter(path, standard=name), [row for row in rows if row["standard"] == name]
        held_out = held_out_of(of_standard, lambda texts: np.zeros(2))
        right = [span.probability for spans in segmenter.predict(TEXTS) for span in spans]
        by_chance = held_out.spread * sum(p * (1 - p) for p in right)
        width = 1.96 * np.hypot(by_chance**0.5 / len(right), held_out.deviation)
        value, low, _ = segmenter.estimate(TEXTS).all.precision
        assert value - low == pytest.approx(width, rel=1e-4)
        expected, real = sum(row["expected"] for row in of_standard), sum(len(row["gold"]) for row in of_standard)
        assert held_out.ratio == pytest.approx((real + 1) / (expected + 1))


@pytest.mark.once
def test_a_linear_model_of_a_standard_has_weights_of_its_own(linear):
    """Emissions by the definition: the sum of the weights of the features, of the arrays under the standard's name."""
    path, _ = linear
    arrays = RunFolder(path).read_arrays(LINEAR)
    for name in TRAIN:
        segmenter = WordSegmenter(path, standard=name)
        rows = segmenter.reader.read(TEXTS)[0].windows[0].inputs["ngrams"]
        weights = arrays[f"{name}.scores"].astype("float64") * float(arrays[f"{name}.scale"])
        expected = [sum(weights[feature] for feature in row) for row in rows]
        np.testing.assert_allclose(segmenter.decoder.emissions(TEXTS[:1])[: len(rows)], expected, rtol=1e-4, atol=1e-4)
    assert not np.array_equal(arrays["whole.scores"], arrays["halves.scores"])


@pytest.mark.once
def test_the_weights_are_saved_without_the_optimizer(neural):
    """It is three times as large; and JAX, which gives its buffers away, could not save it after the last epoch."""
    path, _ = neural
    with h5py.File(path / WEIGHTS) as file:
        assert "layers" in file and "optimizer" not in file


@pytest.mark.slow
@pytest.mark.parametrize("encoder", ["linear", "cnn"])
def test_a_run_that_is_resumed_ends_with_the_same_scores(encoder, tmp_path, monkeypatch):
    settings = Settings(encoder="linear", epochs=3) if encoder == "linear" else Settings(**SMALL, epochs=3)
    _, expected = train_tagger(settings, TRAIN, VALID, out=tmp_path / "whole")
    saved = []
    module = linear_training if encoder == "linear" else __import__("kcrf.training.callbacks", fromlist=["save_state"])
    name = "_save" if encoder == "linear" else "save_state"
    save = getattr(module, name)

    def interrupted(*arguments):
        save(*arguments)
        saved.append(1)
        if len(saved) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(module, name, interrupted)
    with pytest.raises(KeyboardInterrupt):
        train_tagger(settings, TRAIN, VALID, out=tmp_path / "halves")
    _, scores = resume_tagger(tmp_path / "halves", TRAIN, VALID)
    assert len(saved) == 3 and scores == expected


@pytest.mark.once
def test_a_model_without_a_standard_or_with_a_wrong_one_is_refused(linear):
    path, _ = linear
    for standard in (None, "msr"):
        with pytest.raises(ValueError, match=f"must be one of whole, halves. Received: {standard or 'none'}"):
            WordSegmenter(path, standard=standard)
    with pytest.raises(ValueError, match="`standard` needs a model of several standards"):
        WordSegmenter(standard="whole")


@pytest.mark.once
@pytest.mark.parametrize(
    ("parts", "settings", "reason"),
    [
        (({"a": [["天"]], "b": [["地"]]}, {"a": [["天"]]}), {}, "`train` needs two items to hold one out"),
        (({"a": [["天"]]}, {"a": [["天"]]}, {"c": [["天"]]}), {}, "`test` needs sentences of each of the standards a"),
        (({"a": [["天"]]}, [["天"]]), {}, "`valid` needs sentences of each of the standards a. Received: None"),
        (([["天"]], {"a": [["天"]]}), {}, "`valid` needs sentences of no standard"),
        (({"a": [["天"]], "b": []}, [["天"]]), {}, r"`train\['b'\]` needs at least one sentence"),
        (({"a/b": [["天"]]}, [["天"]]), {}, "The name of a standard needs"),
        (({"a": [["天"]]}, {"a": [["天"]]}), {"teacher": "x"}, "`teacher` needs a student of one"),
        (({"a": [Sentence("天", [])]}, {"a": []}), {"task": "ner"}, "`train` must be a list for task='ner'"),
    ],
)
def test_parts_that_do_not_fit_are_refused(parts, settings, reason, tmp_path):
    with pytest.raises(ValueError, match=reason):
        train_tagger(Settings(**settings), *parts, out=tmp_path / "run")
    assert not (tmp_path / "run").exists() or not any((tmp_path / "run").iterdir())


@pytest.mark.once
def test_a_tenth_is_held_out_of_each_standard_that_lacks_a_validation_set():
    """As `split` divides the sentences of the standard; the command leaves it to `train_tagger`, too."""
    given = {name: TRAIN[name][:20] for name in ("halves", "whole")}
    data = read_data(Settings(), given, {"whole": TRAIN["whole"][20:25]})
    rest, held_out = split(given["halves"], 0.1, Settings().seed)
    for part, expected in (("train", [rest, given["whole"]]), ("valid", [held_out, TRAIN["whole"][20:25]])):
        texts = ["".join(words) for sentences in expected for words in sentences]
        assert [sentence.text for sentence in data.whole[part]] == texts


@pytest.mark.once
def test_a_sample_without_a_standard_is_refused(tmp_path):
    with pytest.raises(SettingError, match="`limit` must leave a sentence of each standard, also of .* Received: 1"):
        train_tagger(Settings(limit=1), TRAIN, VALID, out=tmp_path / "run")


@pytest.mark.once
def test_the_predictions_of_a_run_have_the_scores_of_the_run(linear, capsys):
    path, scores = linear
    assert main(["score", "--json", "--pred", str(path / "predictions.jsonl")]) == 0
    scored, expected = json.loads(capsys.readouterr().out), scores["test"]
    for name in ("f", "recall", "precision"):
        assert scored[name] == pytest.approx(expected[name])
        for standard, row in scored["standards"].items():
            assert row[name] == pytest.approx(expected["standards"][standard][name])


@pytest.mark.once
def test_texts_that_differ_from_the_gold_are_named_by_their_line(linear, tmp_path, capsys):
    path = linear[0] / "predictions.jsonl"
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    gold = [" ".join(row["text"][start:end] for start, end, _ in row["gold"]) for row in rows]
    number = 1 + max(i for i, row in enumerate(rows) if row["standard"] == "halves")
    gold[number - 1] = "别 的 话"
    (tmp_path / "gold.txt").write_text("\n".join(gold), encoding="utf-8")
    assert main(["score", "--gold", str(tmp_path / "gold.txt"), "--pred", str(path)]) == 2
    assert f"{path}:{number}: " in capsys.readouterr().err


@pytest.mark.once
def test_a_run_of_one_standard_is_compared_with_one_without(linear):
    run = read_run(linear[0])
    one = replace(run, predictions=[row for row in run.predictions if row["standard"] == "whole"])
    none = replace(run, predictions=[{**row, "standard": None} for row in one.predictions])
    assert why_not_comparable([one, none], "test") is None
    ((_, _, count, (difference, *_)),) = differences_from_the_best({"a": one, "b": none}, "test")
    assert (count, difference) == (len(one.predictions), 0.0)


@pytest.mark.once
def test_reports_compare_the_mean_of_the_standards(linear, tmp_path):
    path, scores = linear
    other = tmp_path / "other"
    shutil.copytree(path, other)
    rows = [json.loads(line) for line in (path / "predictions.jsonl").read_text(encoding="utf-8").splitlines()]
    for row in rows:  # of one standard, all words are wrong
        row["found"] = row["found"] if row["standard"] == "whole" else [[0, len(row["text"]), "", 1.0]]
    (other / "predictions.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    ((best, name, count, (difference, *_)),) = differences_from_the_best(
        {"a": read_run(path), "b": read_run(other)}, "test"
    )
    assert (best, name, count) == ("a", "b", len(rows))
    assert difference == pytest.approx(scores["test"]["standards"]["halves"]["f"] / 2)


@pytest.mark.once
def test_a_sample_and_copies_keep_their_standards():
    settings = Settings(limit=20, augment=1, augment_by="join")
    data = plan_run(settings, read_data(settings, TRAIN, VALID), table=STAGES).data
    standards = [sentence.standard for sentence in data.parts["train"]]
    assert standards == ["whole"] * 10 + ["halves"] * 10
    for sentence, copies in zip(data.parts["train"], data.copies, strict=True):
        assert all(copy.standard == sentence.standard and copy.text.startswith(sentence.text) for copy in copies)
    last = data.copies[9]  # is not joined with a sentence of the other standard
    assert not last


@pytest.mark.slow
def test_the_command_line_trains_and_uses_standards(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, rows in TRAIN.items():
        (tmp_path / f"{name}.txt").write_text("".join(f"{' '.join(row)}\n" for row in rows), encoding="utf-8")
        (tmp_path / f"{name}.test").write_text("".join(f"{' '.join(row)}\n" for row in TEST[name]), encoding="utf-8")
    (tmp_path / "text").write_text("\n".join(TEXTS), encoding="utf-8")
    files = ["--standard=whole=whole.txt", "--standard=halves=halves.txt", "--test=halves=halves.test"]
    assert main(["train", "--encoder", "linear", "--epochs", "2", *files, "--out", "runs/both"]) == 0
    shown = capsys.readouterr().out
    assert shown.count("halves") == 2  # of the validation and the test set
    line = "kcrf segment --model runs/both --standard whole FILE"  # without a standard it would not run
    assert f"saved to runs/both; try: {line}\n" in shown
    assert main(["info", "runs/both"]) == 0 and f"use: {line}\n" in capsys.readouterr().out
    sources = RunFolder("runs/both").read_config().data["sources"]
    assert sources["train"] == {name: str(tmp_path / f"{name}.txt") for name in TRAIN} and sources["valid"] is None
    for name in TRAIN:
        assert main(["segment", "--model", "runs/both", "--standard", name, "text", "--out", f"{name}.out"]) == 0
        expected = WordSegmenter("runs/both", standard=name).segment_lines(TEXTS)
        assert (tmp_path / f"{name}.out").read_text(encoding="utf-8").splitlines() == expected
    assert main(["export", "runs/both", "--standard", "halves", "--out", "halves.npz"]) == 0
    assert WordSegmenter("halves.npz").segment_lines(TEXTS) == expected
    capsys.readouterr()
    assert main(["suggest", "--model", "runs/both", "--standard", "halves", "--count", "1", "text"]) == 0
    suggested = json.loads(capsys.readouterr().out)
    assert suggested["words"] == WordSegmenter("halves.npz").segment(suggested["text"])
    for command in (["segment", "--model", "runs/both", "text"], ["export", "runs/both"]):
        assert main(command) == 2
        assert "--standard must be one of whole, halves. Received: none" in capsys.readouterr().err


@pytest.mark.slow
def test_a_bert_has_a_head_for_each_standard(tmp_path):
    from kcrf.models import build_transformer_model, save_pretrained

    characters = sorted({c for part in (*TRAIN.values(), *VALID.values()) for c in "".join(words_of(part)).lower()})
    vocab = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *characters]
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
    bert = build_transformer_model(vocab_size=len(vocab), max_position=32, **sizes)
    save_pretrained(bert, tmp_path / "bert", vocab=vocab)
    settings = Settings(bert=str(tmp_path / "bert"), epochs=1, batch_size=16, learning_rate=3e-3)
    tagger, scores = train_tagger(settings, TRAIN, VALID, out=tmp_path / "run")
    assert list(scores["valid"]["standards"]) == ["whole", "halves"]
    sentence = "".join(TRAIN["whole"][0])
    for name in TRAIN:
        assert "".join(WordSegmenter(tmp_path / "run", standard=name).segment(sentence)) == sentence
    again = Settings(bert=str(tmp_path / "run"), epochs=1, batch_size=16)  # its BERT, without the heads
    train_tagger(again, TRAIN["whole"], VALID["whole"], out=tmp_path / "again")


@pytest.mark.once
@pytest.mark.parametrize("encoder", ["linear", "neural"])
def test_the_report_has_the_transitions_of_each_standard(encoder, request, tmp_path):
    path = request.getfixturevalue(encoder)[0]
    record = read_run(path)
    for standard in ("whole", "halves"):
        epochs = record.transitions[standard]
        assert [epoch for epoch, _ in epochs] == [row["epoch"] for row in record.log]
        best = max(record.log, key=lambda row: row["valid_f"])["epoch"]
        if encoder == "linear":
            expected = RunFolder(path).read_arrays(LINEAR)[f"{standard}.transitions"]
        else:
            expected = ops.convert_to_numpy(load_tagger(path, standard=standard).crf.trans)
        np.testing.assert_allclose(dict(epochs)[best], expected, atol=1e-5)
    write_report([path], tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    last = len(record.log)
    for standard in ("whole", "halves"):
        assert f"<title>Transitions of {standard} after epoch 1</title>" in page
        assert f"<title>Transitions of {standard} after epoch {last}</title>" in page


def test_a_model_of_one_standard_needs_no_name(tmp_path):
    whole = [{"whole": part["whole"]} for part in (TRAIN, VALID)]
    train_tagger(Settings(encoder="linear", epochs=1), *whole, out=tmp_path / "run")
    unnamed, named = (WordSegmenter(tmp_path / "run", **name) for name in ({}, {"standard": "whole"}))
    assert unnamed.segment_batch(TEXTS) == named.segment_batch(TEXTS)
    with pytest.raises(ValueError, match="`standard` must be one of whole. Received: halves"):
        WordSegmenter(tmp_path / "run", standard="halves")


def test_one_file_for_two_standards_is_refused(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "words.txt").write_text("今天 天气\n", encoding="utf-8")
    assert main("train --standard a=words.txt --standard b=./words.txt --out run".split()) == 2
    assert (
        capsys.readouterr().err
        == "kcrf train: --standard needs a file of each standard. Received: ./words.txt for two\n"
    )
