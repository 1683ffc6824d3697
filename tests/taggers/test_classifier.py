"""Tests of kcrf.taggers.

Text classification from the training file to the labels of new texts: from scratch and on a BERT, pairs, numbers.
"""

import json
import random
import shutil
from dataclasses import replace

import numpy as np
import pytest
from configs import model_of
from conftest import few

from kcrf import commands
from kcrf.backend import backend_name, keras, ops
from kcrf.corpora import Example
from kcrf.corpora.classified import classified_line
from kcrf.metrics import classification_scores, regression_scores
from kcrf.models import build_transformer_model, save_pretrained
from kcrf.networks.classification import build_classifier
from kcrf.networks.tagging import build_network
from kcrf.readers import CharacterReader, Vocabulary, encoder_reader
from kcrf.readers.windows import bounds_of_parts
from kcrf.runs import DivergedError, RunFolder, SettingError, Settings, read_run
from kcrf.taggers import EntityRecognizer, TextClassifier
from kcrf.tags import bio
from kcrf.training import resume_tagger, train_classifier, train_segmenter

WORDS = {"good": ("good", "fine", "great"), "bad": ("bad", "poor", "awful")}
QUICK = {"task": "classify", "epochs": 3, "batch_size": 8, "learning_rate": 3e-3, "dropout": 0.0, "seed": 1}
SCRATCH = {**QUICK, "width": 16, "depth": 1, "bigram_dropout": 0.0, "learning_rate": 0.02}


def reviews(count, seed):
    """Texts of one length in pieces, so that few graphs are compiled."""
    rng = random.Random(seed)
    labels = [rng.choice(sorted(WORDS)) for _ in range(count)]
    return [(f"it is a {rng.choice(WORDS[label])} film", label) for label in labels]


PARTS = {"train": reviews(64, 0), "valid": reviews(16, 1), "test": reviews(12, 2)}
PAIRS = [(a, b, f"then {y}") for (a, _), (b, y) in zip(reviews(96, 3), reviews(96, 4))]  # the second text decides


@pytest.fixture(scope="module")
def bert(tmp_path_factory):
    """The folder of a BERT of two small layers that knows the words."""
    folder = tmp_path_factory.mktemp("bert")
    words = sorted({word for text, _ in PARTS["train"] for word in text.split()})
    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
    vocab = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *words]
    model = build_transformer_model(vocab_size=len(vocab), max_position=64, with_pool=True, **sizes)
    save_pretrained(model, folder, vocab=vocab)
    return folder


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run from scratch."""
    folder = tmp_path_factory.mktemp("run") / "run"
    train_classifier(Settings(**SCRATCH), **PARTS, out=folder)
    return folder


@pytest.fixture(scope="module")
def bert_run(bert, tmp_path_factory):
    """A run on top of a copy of that BERT, which is no longer there."""
    folder = tmp_path_factory.mktemp("bert_run")
    copy = shutil.copytree(bert, folder / "bert")
    train_classifier(Settings(**{**QUICK, "epochs": 6}, bert=str(copy)), **PARTS, out=folder / "run")
    shutil.rmtree(copy)
    return folder / "run"


@pytest.mark.once
@pytest.mark.parametrize("kind", few("bert_run", "run"))
def test_a_run_stands_alone_and_classifies_as_it_was_scored(kind, request):
    folder = request.getfixturevalue(kind)
    classifier = TextClassifier(folder)
    assert classifier.labels == ("bad", "good") and not classifier.pairs
    found = classifier.predict(text for text, _ in PARTS["test"])
    rows = read_run(folder).predictions
    assert [(item.label, row["text"]) for item, row in zip(found, rows)] == [
        (row["found"], text) for row, (text, _) in zip(rows, PARTS["test"])
    ]
    for item, row in zip(found, rows, strict=True):
        assert item.probabilities == pytest.approx(row["probabilities"], abs=2e-5)
        assert item.probability == max(item.probabilities.values()) == item.probabilities[item.label]
        assert sum(item.probabilities.values()) == pytest.approx(1)
    scores = json.loads((folder / "scores.json").read_text())
    gold = [label for _, label in PARTS["test"]]
    assert scores["test"] == classification_scores(gold, [item.label for item in found], ["bad", "good"])
    assert scores["test"]["accuracy"] >= {"bert_run": 1, "run": 0.75}[kind]  # from scratch, rounding decides the rest


@pytest.mark.once
def test_the_log_has_the_metric_and_the_best_epoch_is_kept(run):
    record = read_run(run)
    assert set(record.log[0]) == {"epoch", "loss", "valid_accuracy", "seconds"} and len(record.log) == 3
    assert max(row["valid_accuracy"] for row in record.log) == record.scores["valid"]["accuracy"]
    assert record.settings["labels"] == ["bad", "good"] and record.settings["metric"] == "accuracy"


@pytest.mark.once
def test_a_text_is_classified_as_in_any_batch_and_length_does_not_matter(run, bert_run):
    for folder in (run, bert_run):
        classifier = TextClassifier(folder)
        texts = ["", "good", "\x00", "\ud800", "it is a bad film " * 60, "a poor film", "长" * 700]
        together = classifier.predict(texts, batch_size=3)
        for text, item in zip(texts, together):
            assert classifier.classify(text).probabilities == pytest.approx(item.probabilities, abs=1e-5)
        assert classifier.predict([]) == []


@pytest.mark.once
def test_a_long_text_is_classified_by_all_of_it(run):
    classifier, filler = TextClassifier(run), "it is a film。" * 40
    assert len(filler) > 2 * 128  # the evidence is beyond the positions that are learned
    good, bad = classifier.probabilities([filler + "good " * 90, filler + "bad " * 90])
    assert good[1] > bad[1] + 0.05
    parts = bounds_of_parts(filler + "good " * 90, 128, whole=True)
    separately = classifier.probabilities([(filler + "good " * 90)[slice(*part)] for part in parts])
    lengths = [end - start for start, end in parts]
    assert good == pytest.approx(np.average(separately, axis=0, weights=lengths), abs=1e-6)
    counts = []
    classifier.predict([filler, "good"], batch_size=2, on_batch=counts.append)
    assert sum(counts) == 2  # texts, not windows


@pytest.mark.once
def test_pairs_that_are_cut_are_pointed_out(tmp_path):
    pairs = [("a film", f"a {word} film", word) for word in ("good", "bad") * 8]
    classifier, _ = train_classifier(Settings(**SCRATCH), pairs, pairs, out=tmp_path / "run")
    classifier.classify("a" * 63, "b" * 64)  # with the separator, 128 positions
    with pytest.warns(UserWarning, match="pairs of texts are cut to 128 positions"):
        classifier.classify("a film", "a film " * 30)


@pytest.mark.once
def test_only_what_the_run_was_trained_on_is_taken(run):
    classifier = TextClassifier(run)
    with pytest.raises(TypeError, match="for one text call `classify`. Received: 'a text'"):
        classifier.predict("a text")
    with pytest.raises(TypeError, match="The model needs strings. Received: .'a', 'b'."):
        classifier.classify("a", "b")
    for item in ({"text": "a good film"}, {"a good film"}, None, 3):
        with pytest.raises(TypeError, match="The model needs strings. Received: "):
            classifier.predict([item])
    with pytest.raises(TypeError, match="`texts` must be a list of texts. Received: .'text': "):
        classifier.predict({"text": ["a good film"]})
    with pytest.raises(ValueError, match="needs a run of --task ner. Received: one of --task classify"):
        EntityRecognizer(run)


@pytest.mark.once
def test_more_positions_than_the_bert_has_are_refused(bert, tmp_path):
    for length in (256, 100):
        with pytest.raises(ValueError, match=f"must be at most 64, as many positions as .*bert.* Received: {length}"):
            train_classifier(Settings(**QUICK, bert=str(bert), max_length=length), **PARTS, out=tmp_path / "run")
        assert not (tmp_path / "run").exists()


@pytest.mark.once
def test_texts_may_be_iterated_once(tmp_path):
    settings = Settings(**{**SCRATCH, "epochs": 1})
    train_classifier(settings, **PARTS, out=tmp_path / "lists")
    train_classifier(settings, **{name: zip(*zip(*part)) for name, part in PARTS.items()}, out=tmp_path / "zips")
    scores, others = ((tmp_path / name / "scores.json").read_text() for name in ("lists", "zips"))
    assert scores == others
    with pytest.raises(ValueError, match="`valid` needs at least one text with its label. Received: none"):
        train_classifier(settings, PARTS["train"], iter(()), out=tmp_path / "none")


@pytest.mark.slow
def test_pairs_are_learned_on_a_bert(bert, tmp_path):
    settings = Settings(**{**QUICK, "epochs": 20}, bert=str(bert), metric="f")
    _, scores = train_classifier(settings, PAIRS[:80], PAIRS[:16], out=tmp_path / "run")
    assert scores["valid"]["accuracy"] == 1
    classifier = TextClassifier(tmp_path / "run")
    assert classifier.pairs and classifier.classify(*PAIRS[0][:2]).label == PAIRS[0][2]
    with pytest.raises(TypeError, match="needs pairs of strings. Received: 'a text'"):
        classifier.classify("a text")
    assert read_run(tmp_path / "run").predictions[0]["text_b"] == PAIRS[0][1]


@pytest.mark.once
def test_numbers_are_learned_in_their_own_units(tmp_path):
    """The numbers are large: without standardization, the loss would be infinite or the learning rate too small."""
    train = [(text, str(5000.5 + 300 * (label == "good"))) for text, label in PARTS["train"]]
    settings = Settings(**{**SCRATCH, "epochs": 8})
    classifier, scores = train_classifier(settings, train, train, out=tmp_path / "run")
    assert scores["valid"]["pearson"] > 0.85 and scores["valid"]["mean_error"] < 100
    found = TextClassifier(tmp_path / "run").classify("it is a great film")
    assert 5150 < found.label < 5450 and found.probability is None and found.probabilities == {}
    numbers = [item.label for item in classifier.predict([text for text, _ in train])]
    assert regression_scores([float(label) for _, label in train], numbers) == pytest.approx(scores["valid"])


@pytest.mark.slow
@pytest.mark.once
def test_small_numbers_are_written_as_they_were_found(tmp_path, capsys):
    """1e-7 and 2e-7: with six decimals, all of them would be 0."""
    gold, run = tmp_path / "gold.tsv", tmp_path / "run"
    gold.write_text("".join(f"{text}\t{1e-7 * (1 + (label == 'good'))}\n" for text, label in PARTS["train"]))
    options = ["--width", "16", "--depth", "1", "--epochs", "2", "--batch-size", "8", "--learning-rate", "0.02"]
    train = ["train", "--task", "classify", "--train", str(gold), "--valid", str(gold), "--out", str(run), *options]
    classify = ["classify", "--model", str(run), "--input", "table", "--fields", "0", "--out", str(tmp_path / "pred")]
    assert commands.main(train) == commands.main([*classify, str(gold)]) == 0
    scores = json.loads((run / "scores.json").read_text())["valid"]
    for arguments in (
        ["--gold", str(gold), "--pred", str(tmp_path / "pred")],
        ["--pred", str(run / "predictions.jsonl")],
    ):
        capsys.readouterr()
        assert commands.main(["score", "--task", "classify", "--json", *arguments]) == 0
        assert json.loads(capsys.readouterr().out) == pytest.approx(scores, rel=1e-4)
    assert scores["pearson"] != 0


@pytest.mark.once
def test_whole_numbers_are_labels_unless_the_metric_is_of_numbers(tmp_path):
    train = [(text, len(label)) for text, label in PARTS["train"][:16]]  # 3 and 4
    for metric, labels in ((None, ["3", "4"]), ("spearman", [])):
        settings = Settings(**{**SCRATCH, "epochs": 1}, metric=metric)
        _, scores = train_classifier(settings, train, train, out=tmp_path / str(metric))
        record = read_run(tmp_path / str(metric))
        assert record.settings["labels"] == labels and ("accuracy" in scores["valid"]) is (metric is None)
        assert f"valid_{metric or 'accuracy'}" in record.log[0] and record.predictions[0]["gold"] in ("3", "4", 3, 4)


class Stops(keras.callbacks.Callback):
    """Interrupts training when an epoch begins."""

    def on_epoch_begin(self, epoch, logs=None):
        if epoch == 2:
            raise KeyboardInterrupt

    def report(self, row):
        """Does nothing."""


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["scratch", "bert"])
def test_an_interrupted_run_goes_on_to_the_same_weights(kind, bert, tmp_path):
    settings = Settings(**(SCRATCH if kind == "scratch" else {**QUICK, "bert": str(bert), "dropout": 0.2}))
    train_classifier(settings, **PARTS, out=tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        train_classifier(settings, **PARTS, out=tmp_path / "run", progress=Stops())
    with pytest.raises(ValueError, match="needs the data that the run began with. Received: test"):
        resume_tagger(tmp_path / "run", **{**PARTS, "test": reviews(3, 9)})
    resume_tagger(tmp_path / "run", **PARTS)
    for name in ("scores.json", "predictions.jsonl"):
        assert (tmp_path / "run" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    one, other = (TextClassifier(tmp_path / name).model.get_weights() for name in ("whole", "run"))
    for a, b in zip(one, other, strict=True):
        np.testing.assert_array_equal(a, b)


TWO = [("a", "x"), ("b", "y")]
REFUSED = {
    "one label": ([("a", "x"), ("b", "x")], TWO, {}, "`train`, text 1: .* two labels or more. Received: x for all 2"),
    "one label of a file": (
        [Example("a", "x", source="train.tsv:1")],
        TWO,
        {},
        "train.tsv:1: the training set needs two labels or more. Received: x for all 1 texts",
    ),
    "a label in two spellings": (
        [("a", "1"), ("b", "0"), ("c", 1.0)],
        TWO,
        {},
        "`train`, text 3: needs one spelling of a label. Received: '1.0', and '1' elsewhere",
    ),
    "an unknown label": (
        TWO,
        [Example("a", "z", source="dev.tsv:3")],
        {},
        "dev.tsv:3: needs one of the labels of .* x, y. Rec.* 'z'",
    ),
    "a label without example": (
        TWO,
        TWO,
        {"labels": ("x", "y", "z")},
        "needs an example of each label. Received: none of z",
    ),
    "pairs and texts": (TWO, [("a", "b", "x")], {}, "`valid`, text 1: needs one text, as the first has. Received: 2"),
    "F1 of three labels": ([*TWO, ("c", "z")], TWO, {"metric": "f"}, "`metric` needs two labels to be 'f'; here are"),
    "no number": (
        [("a", "1"), ("b", "x")],
        TWO,
        {"metric": "pearson"},
        "`train`, text 2: needs a number. Received: 'x'",
    ),
    "one number": ([("a", "1.5"), ("b", "1.5")], [("a", "1")], {}, "needs different numbers. Received: 1.5 for all 2"),
    "texts as labels": ([("x", f"a text {i}") for i in range(50)], TWO, {}, "labels that recur. Received: 50 labels"),
    "a number that is missing": (
        [*((f"text {i}", f"{i}.5") for i in range(20)), ("a", "nan")],
        TWO,
        {},
        "`train`, text 21: needs a number, as 20 of 21 labels are; metric='accuracy' .* Received: 'nan'",
    ),
    "another task": (TWO, TWO, {"task": "cws"}, "`settings` must have task='classify'. Received: task='cws'"),
    "a text that is None": ([*TWO, (None, "x")], TWO, {}, "`train`, text 3: `text` must be a string. Received: None"),
    "a second text of pandas": ([("a", np.nan, "x")], TWO, {}, "`text_b` must be a string. Received: nan"),
    "a label that is None": ([*TWO, ("a", None)], TWO, {}, "`train`, text 3: `label` must be text .* Received: 'None'"),
    "a label of pandas": ([*TWO, ("a", np.nan)], TWO, {}, "`train`, text 3: `label` must be text .* Received: 'nan'"),
    "a dict": ([{"body": "a"}], TWO, {}, "`train`, item 1: needs text and label. Received: a dict of body"),
    "an empty text": ([*TWO, (" ", "x")], TWO, {}, "`train`, text 3: `text` must not be empty"),
    "nothing": ([], TWO, {}, "`train` needs at least one text with its label. Received: none"),
    "no labels": (["text"], TWO, {}, "needs an `Example`, .text, label. or"),
}


@pytest.mark.once
@pytest.mark.parametrize("case", REFUSED)
def test_data_that_cannot_be_learned_are_refused_and_nothing_is_left(case, tmp_path):
    train, valid, settings, message = REFUSED[case]
    with pytest.raises(ValueError, match=message):
        train_classifier(Settings(**{**SCRATCH, **settings}), train, valid, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.once
def test_the_command_line_trains_classifies_and_scores(tmp_path, capfdbinary):
    data, run, pred = tmp_path / "train.csv", tmp_path / "run", tmp_path / "pred.jsonl"
    data.write_text("id,label,review\n" + "".join(f"7,{label},{text}\n" for text, label in PARTS["train"]))
    options = ["--width", "16", "--depth", "1", "--epochs", "3", "--batch-size", "8", "--learning-rate", "0.02"]
    arguments = ["train", "--task", "classify", "--train", str(data), "--out", str(run), *options]
    assert commands.main([*arguments, "--fields", "review,label"]) == 0
    out, err = capfdbinary.readouterr()
    assert b"accuracy" in out and b"held-out accuracy" in err
    config = RunFolder(run).read_config()
    assert config.data["sources"]["fields"] == ["review", "label"]
    texts = tmp_path / "texts.txt"
    texts.write_text("".join(f"{text}\n" for text, _ in PARTS["test"]))
    assert commands.main(["classify", "--model", str(run), str(texts)]) == 0
    written = capfdbinary.readouterr().out
    pred.write_bytes(written)
    found = TextClassifier(run).predict(text for text, _ in PARTS["test"])
    rows = [json.loads(line) for line in written.splitlines()]
    assert [(row["text"], row["label"]) for row in rows] == [(t, f.label) for (t, _), f in zip(PARTS["test"], found)]
    assert rows[0]["probabilities"] == pytest.approx(found[0].probabilities, abs=1e-6)
    gold = tmp_path / "gold.tsv"
    gold.write_text("".join(f"{text}\t{label}\n" for text, label in PARTS["test"]))
    classify = ["classify", "--model", str(run), "--fields", "0", str(gold)]
    assert commands.main([*classify, "--input", "table"]) == 0
    assert capfdbinary.readouterr().out == written
    assert json.loads(written.splitlines()[0])["text"] == PARTS["test"][0][0]
    table = tmp_path / "table.csv"
    table.write_text('id,"text, in English"\n' + "".join(f"1,{text}\n" for text, _ in PARTS["test"]))
    fields = ["--input", "table", "--fields", '"text, in English"']
    assert commands.main(["classify", "--model", str(run), *fields, str(table)]) == 0
    assert capfdbinary.readouterr().out == written
    assert commands.main(classify) == 2
    assert b"--fields needs --input table or json. Received: --input text" in capfdbinary.readouterr().err
    score = ["score", "--task", "classify", "--gold", str(gold), "--pred", str(pred), "--json"]
    assert commands.main(score) == 0
    expected = classification_scores([x for _, x in PARTS["test"]], [f.label for f in found], ["bad", "good"])
    assert json.loads(capfdbinary.readouterr().out) == expected
    assert commands.main(["score", "--pred", str(run / "predictions.jsonl"), "--json"]) == 0
    assert json.loads(capfdbinary.readouterr().out) == json.loads((run / "scores.json").read_text())["valid"]
    gold.write_text("".join(f"{text}\t{label}\n" for text, label in PARTS["test"]).replace("good", "1.0"))
    pred.write_text(pred.read_text().replace("good", "1"))
    assert commands.main(score) == 2
    assert b"needs one spelling of a label. Received: '1', and '1.0' elsewhere" in capfdbinary.readouterr().err
    gold.write_text("another text\tgood\n")
    assert commands.main(score) == 2
    assert b"must have the same texts. Received: text 1 'it is" in capfdbinary.readouterr().err


@pytest.mark.once
def test_names_of_columns_that_may_have_been_read_as_an_example_are_pointed_out(tmp_path, capsys):
    data = tmp_path / "train.csv"
    data.write_text("post,kind\n" + "".join(f"{text},{label}\n" for text, label in PARTS["train"]))
    arguments = ["train", "--task", "classify", "--train", str(data), "--width", "8", "--depth", "1", "--epochs", "1"]
    for name, more, is_noted in (("0", [], True), ("1", ["--fields", "post,kind"], False)):
        assert commands.main([*arguments, "--out", str(tmp_path / name), *more]) == 0
        noted = f"{data}:1: the label 'kind' is in this line alone; if it has the names of the columns, give them"
        assert (noted in capsys.readouterr().err) is is_noted


@pytest.mark.once
@pytest.mark.parametrize(
    ("names", "valid", "metric"),
    [(("3.5", "4"), 16, "accuracy"), (("no", "yes", "maybe"), 2, "accuracy"), (("no", "yes"), 1, "f")],
)
def test_the_predictions_of_a_run_are_scored_as_in_the_run(names, valid, metric, tmp_path, capsys):
    """Labels that are numbers, but were learned as names; labels of which the held-out part has none."""
    train = [(f"it is a film {i}", names[i % len(names)]) for i in range(16)]
    settings = Settings(**{**SCRATCH, "epochs": 1, "learning_rate": 1e-9}, metric=metric)
    _, scores = train_classifier(settings, train, train[:valid], out=tmp_path / "run")
    capsys.readouterr()
    assert commands.main(["score", "--pred", str(tmp_path / "run" / "predictions.jsonl"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == scores["valid"]


@pytest.mark.once
def test_labels_that_differ_in_white_space_alone_are_one_and_given_labels_are_different(tmp_path):
    train = [(f"it is a film {i}", "good" if i % 2 else "bad" + " " * (i % 4)) for i in range(16)]
    classifier, _ = train_classifier(Settings(**{**SCRATCH, "epochs": 1}), train, train, out=tmp_path / "run")
    assert classifier.labels == ("bad", "good")
    with pytest.raises(ValueError, match=r"`labels` must be different ones. Received: \('bad', 'good', 'good'\)"):
        settings = Settings(**{**SCRATCH, "epochs": 1}, labels=("bad", "good", "good"))
        train_classifier(settings, train, train, out=tmp_path / "other")
    with pytest.raises(TypeError, match="`unlabeled` must be a list of texts. Received: 'texts.txt'"):
        train_classifier(settings, train, train, out=tmp_path / "other", unlabeled="texts.txt")


@pytest.mark.once
def test_of_many_rare_labels_none_is_held_out_whole(tmp_path):
    """16 labels, of which 6 occur once: a tenth at random held out one, and so the training set lacked it."""
    data = tmp_path / "train.csv"
    labels = [f"intent {i}" for i in range(16)] + [f"intent {i}" for i in range(10)]
    data.write_text("text,label\n" + "".join(f"it is a film {i},{label}\n" for i, label in enumerate(labels)))
    arguments = ["train", "--task", "classify", "--train", str(data), "--width", "8", "--depth", "1", "--epochs", "1"]
    assert commands.main([*arguments, "--out", str(tmp_path / "run")]) == 0
    assert len(read_run(tmp_path / "run").settings["labels"]) == 16
    assert len(read_run(tmp_path / "run").predictions) == 2


@pytest.mark.once
def test_errors_of_the_command_line_name_file_and_line(tmp_path, capsys):
    data, run = tmp_path / "train.tsv", tmp_path / "run"
    data.write_text("good film\tgood\n \tgood\n")
    arguments = ["train", "--train", str(data), "--out", str(run)]
    assert commands.main([*arguments, "--task", "classify"]) == 2
    assert f"{data}:2: `text` must not be empty" in capsys.readouterr().err
    assert commands.main([*arguments, "--fields", "0,1"]) == 2
    assert "--fields needs --task classify. Received: --task cws" in capsys.readouterr().err
    assert commands.main([*arguments, "--pool", "mean"]) == 2
    assert "--pool needs --task classify" in capsys.readouterr().err
    data.write_text("good film\tgood\nbad film\tbad\nfilm\tnone\n")
    assert commands.main([*arguments, "--valid", str(data), "--task", "classify", "--metric", "f"]) == 2
    assert (
        "--metric needs two labels to be 'f'; here are bad, good, none; macro_f takes the mean. Received: 'f'"
        in capsys.readouterr().err
    )
    assert not run.exists()


@pytest.mark.once
def test_a_line_of_a_pair_needs_two_texts(bert, tmp_path, capsys):
    run, texts = tmp_path / "run", tmp_path / "texts.txt"
    train_classifier(Settings(**{**QUICK, "epochs": 1}, bert=str(bert)), PAIRS[:8], PAIRS[:8], out=run)
    texts.write_text("good film\tbad film\nbad film\n")
    assert commands.main(["classify", "--model", str(run), str(texts)]) == 2
    assert f"{texts}:2: needs two texts with a tab between them" in capsys.readouterr().err
    texts.write_text("good film\tbad film\n")
    assert commands.main(["classify", "--model", str(run), str(texts)]) == 0
    assert json.loads(capsys.readouterr().out).keys() == {"text", "text_b", "label", "probabilities"}


# -- what of the encoder is read


def outputs(settings, reader, texts):
    """The model and what it makes of texts, `(texts, labels)`."""
    model = build_classifier(model_of(settings), settings.labels, reader)
    inputs = [reading.windows[0].inputs for reading in reader.read_texts(texts, 32)]
    length = max(len(next(iter(row.values()))) for row in inputs)
    padded = {name: np.array([row[name] + [0] * (length - len(row[name])) for row in inputs]) for name in inputs[0]}
    return model, padded, ops.convert_to_numpy(model(padded, training=False))


@pytest.mark.once
@pytest.mark.parametrize("pool", ["first", "pooler", "mean", "max", "cnn"])
def test_a_pool_is_its_definition(pool, bert):
    reader = encoder_reader(bert)
    settings = Settings(task="classify", labels=("x", "y", "z"), bert=str(bert), pool=pool)
    model, inputs, scores = outputs(settings, reader, [("good film", None), ("it is a bad film", "poor")])
    weights = {variable.path: ops.convert_to_numpy(variable) for variable in model.weights}
    states = [model.get_layer(f"Transformer-{i}-FeedForward-Norm").output for i in (0, 1)]
    low, top = map(ops.convert_to_numpy, keras.Model(model.input, states)(inputs, training=False))
    real = [top[i][inputs["Input-Token"][i] > 0] for i in (0, 1)]
    if pool == "pooler":
        vectors = np.tanh(top[:, 0] @ weights["Pooler-Dense/kernel"] + weights["Pooler-Dense/bias"])
    elif pool == "cnn":
        kernel, bias = weights["Pool-Convolution/kernel"], weights["Pool-Convolution/bias"]
        zero = np.zeros_like(low[:, 0])
        stack = [zero, low[:, 0], top[:, 0], zero]
        found = [sum(stack[i + j] @ kernel[j] for j in range(3)) + bias for i in range(2)]
        vectors = np.maximum(np.maximum(*found), 0)
    else:
        vectors = np.array([{"first": row[0], "mean": row.mean(0), "max": row.max(0)}[pool] for row in real])
    expected = vectors @ weights["Classes/kernel"] + weights["Classes/bias"]
    np.testing.assert_allclose(scores, expected, rtol=1e-4, atol=1e-6)


@pytest.mark.once
@pytest.mark.parametrize("pool", ["mean", "max"])
def test_padding_changes_no_score_and_an_empty_text_has_one(pool):
    reader = CharacterReader(Vocabulary.of(["good film"], min_bigrams=1))
    settings = Settings(task="classify", labels=("x", "y"), width=8, pool=pool)
    model, inputs, scores = outputs(settings, reader, [("good film", None), ("film", None), ("", None)])
    wider = {name: np.pad(rows, ((0, 0), (0, 7))) for name, rows in inputs.items()}
    np.testing.assert_allclose(ops.convert_to_numpy(model(wider, training=False)), scores, rtol=1e-4, atol=1e-6)
    bias = ops.convert_to_numpy(model.get_layer("Classes").bias)
    np.testing.assert_allclose(scores[2], bias, atol=1e-7)
    assert np.isfinite(scores).all() and classified_line("a", None) == '{"text": "a"}'


@pytest.mark.once
@pytest.mark.parametrize("task", ["classify", "ner"])
@pytest.mark.parametrize("mode", ["concat", "weighted", "mean", "max"])
def test_several_layers_are_combined(mode, task, bert):
    reader = encoder_reader(bert)
    settings = Settings(
        task=task,
        labels=("x", "y"),
        types=("X",),
        bert=str(bert),
        pool="first" if task == "classify" else None,
        head="softmax",
        read_layers="-1,0",
        layer_pooling=mode,
    )
    classify, config = task == "classify", model_of(settings)
    model = build_classifier(config, "xy", reader) if classify else build_network(config, bio(("X",)), reader)
    tokens = np.array([[2, 5, 4, 3]])
    inputs = {"Input-Token": tokens, "Input-Segment": 0 * tokens, "tagged": 1 * (tokens > 3)}
    inputs = {tensor.name: inputs[tensor.name] for tensor in model.inputs}
    states = [model.get_layer(f"Transformer-{i}-FeedForward-Norm").output for i in (1, 0)]
    top, low = map(ops.convert_to_numpy, keras.Model(model.input, states)(inputs, training=False))
    dense = model.get_layer("Classes" if task == "classify" else "Emissions")
    if mode == "weighted":
        model.get_layer("Layers").layer_weights.assign([np.log(3.0), 0.0])  # 3/4 of the top layer
    expected = {"concat": np.concatenate([top, low], -1), "weighted": 0.75 * top + 0.25 * low}
    expected |= {"mean": (top + low) / 2, "max": np.maximum(top, low)}
    vectors = expected[mode][:, 0] if task == "classify" else expected[mode]
    expected = vectors @ ops.convert_to_numpy(dense.kernel) + ops.convert_to_numpy(dense.bias)
    np.testing.assert_allclose(ops.convert_to_numpy(model(inputs, training=False)), expected, rtol=1e-4, atol=1e-6)


@pytest.mark.once
@pytest.mark.parametrize(
    "changes", [{"read_layers": "all", "layer_pooling": "weighted"}, {"pool": "cnn"}, {"pool": "pooler"}]
)
def test_a_run_that_reads_other_layers_is_loaded_as_it_was_trained(changes, bert, tmp_path):
    settings = Settings(**{**QUICK, "epochs": 1}, bert=str(bert), skip_top_layers=1, layerwise_decay=0.9, **changes)
    _, scores = train_classifier(settings, PARTS["train"][:16], PARTS["valid"], out=tmp_path / "run")
    found = TextClassifier(tmp_path / "run").predict(text for text, _ in PARTS["valid"])
    gold = [label for _, label in PARTS["valid"]]
    assert classification_scores(gold, [item.label for item in found], ["bad", "good"]) == scores["valid"]


@pytest.mark.once
@pytest.mark.parametrize("layers", ["2", "-3", "1,-1"])
def test_layers_that_the_bert_lacks_are_refused(layers, bert, tmp_path):
    settings = Settings(**QUICK, bert=str(bert), read_layers=layers)
    with pytest.raises(SettingError, match="`read_layers` must be different ones of the 2 layers. Received: '"):
        train_classifier(settings, **PARTS, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


# -- recipes


@pytest.mark.slow
def test_another_run_starts_from_the_bert_of_a_run(bert_run, tmp_path, capsys):
    """Without a step that changes weights, the BERT is that of the run, but for the layer that is drawn anew."""
    still = {**QUICK, "epochs": 1, "learning_rate": 1e-12}
    for name, more in (("pairs", {}), ("top", {"skip_top_layers": 1}), ("low", {"bert_layers": 1})):
        train_classifier(Settings(**still, bert=str(bert_run), **more), PAIRS[:8], PAIRS[:8], out=tmp_path / name)
        assert f"{bert_run}: " in capsys.readouterr().out  # the load report
        before, after = (
            {v.path: ops.convert_to_numpy(v) for v in TextClassifier(run).model.weights}
            for run in (bert_run, tmp_path / name)
        )
        for path in after:
            fresh = path.startswith("Classes") or name == "top" and path.startswith("Transformer-1-")
            is_same = np.allclose(before[path], after[path], atol=1e-7)
            assert is_same != fresh or "bias" in path or "Norm" in path, path
        assert ("Transformer-1-FeedForward/output/kernel" in after) is (name != "low")


@pytest.mark.once
def test_what_another_run_can_not_start_from_is_refused(run, bert_run, bert, tmp_path, capsys):
    data = tmp_path / "train.tsv"
    data.write_text("".join("\t".join(pair) + "\n" for pair in PAIRS[:16]))
    arguments = ["train", "--task", "classify", "--train", str(data), "--out", str(tmp_path / "run"), "--epochs", "1"]
    assert commands.main([*arguments, "--from", str(run)]) == 2
    assert f"{run}: needs a run that was trained with --bert. Received: one without" in capsys.readouterr().err
    assert commands.main([*arguments, "--from", str(bert)]) == 2
    told = capsys.readouterr().err
    assert "needs the settings of a run" in told and "without a task, which is for --bert" in told
    assert commands.main([*arguments, "--from", str(bert_run), "--bert", str(bert)]) == 2
    assert "--from takes the place of --bert" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()
    assert commands.main([*arguments, "--from", str(bert_run)]) == 0
    assert TextClassifier(tmp_path / "run").labels == ("then bad", "then good")


@pytest.mark.once
def test_a_limit_takes_a_sample_by_label_and_the_run_can_be_resumed(tmp_path):
    train = [(text, "rare" if i % 16 == 0 else label) for i, (text, label) in enumerate(PARTS["train"])]
    settings = Settings(**SCRATCH, limit=16)
    with pytest.raises(KeyboardInterrupt):
        train_classifier(settings, train, train, out=tmp_path / "run", progress=Stops())
    _, scores = resume_tagger(tmp_path / "run", train, train)
    assert scores["valid"]["examples"] == 64 and set(scores["valid"]["labels"]) == {"bad", "good", "rare"}
    with pytest.raises(ValueError, match="`limit` must be at least 3, a text of each label. Received: 2"):
        train_classifier(Settings(**SCRATCH, limit=2), train, train, out=tmp_path / "few")
    assert not (tmp_path / "few").exists()


@pytest.mark.once
def test_what_labels_are_follows_from_all_training_texts_not_from_a_sample(tmp_path):
    """Half stars are numbers, also where the sample has whole ones alone."""
    train = [(f"it is a film {i}", str(1 + i % 5 if i % 12 else 2.5)) for i in range(36)]
    settings = Settings(**{**SCRATCH, "epochs": 1}, limit=3)
    for seed in range(4):
        train_classifier(replace(settings, seed=seed), train, train, out=tmp_path / f"{seed}")
        assert read_run(tmp_path / f"{seed}").settings["metric"] == "pearson"


@pytest.mark.once
@pytest.mark.parametrize(("steps", "epochs"), [(1, 1), (8, 1), (9, 2), (24, 3)])
def test_steps_are_rounded_up_to_whole_epochs(steps, epochs, tmp_path):
    train_classifier(Settings(**{**SCRATCH, "epochs": None}, steps=steps), **PARTS, out=tmp_path / "run")
    record = read_run(tmp_path / "run")
    assert len(record.log) == record.settings["epochs"] == epochs  # of 8 batches
    assert record.settings["patience"] is None


@pytest.mark.once
def test_a_fresh_pooler_is_drawn_anew(bert, tmp_path):
    poolers = []
    for skip in (False, True):
        settings = Settings(
            **{**QUICK, "epochs": 1, "learning_rate": 1e-12}, bert=str(bert), pool="pooler", skip_pooler=skip
        )
        train_classifier(settings, **PARTS, out=tmp_path / str(skip))
        model = TextClassifier(tmp_path / str(skip)).model
        poolers.append(ops.convert_to_numpy(model.get_layer("Pooler-Dense").kernel))
    known = ops.convert_to_numpy(build_transformer_model(bert, bert, with_pool=True).get_layer("Pooler-Dense").kernel)
    np.testing.assert_allclose(poolers[0], known, atol=1e-7)
    assert not np.allclose(poolers[1], known, atol=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("pool", ["max", "first", "pooler", "mean", "cnn"])
def test_every_pool_is_learned_in_half_precision(pool, bert, tmp_path):
    losses, half = [], "bfloat16" if backend_name() == "jax" else "float16"  # JAX has no float16 on CPUs
    for precision in ("float32", half):
        settings = Settings(**{**QUICK, "epochs": 2}, bert=str(bert), pool=pool, precision=precision)
        train_classifier(settings, PARTS["train"], PARTS["valid"], out=tmp_path / precision)
        losses.append([row["loss"] for row in read_run(tmp_path / precision).log])
    np.testing.assert_allclose(*losses, rtol=0.15)  # steps are left out until the scale of the loss fits


@pytest.mark.slow
def test_all_runs_of_one_setting_are_summed_up_whatever_they_chose_themselves(tmp_path, capsys):
    """Each run holds out other sentences, long or short: then the number of windows, epochs and rates differ."""
    data, page = tmp_path / "words.txt", tmp_path / "report.html"
    lines = [*("我们 好 " * 300 for _ in range(6)), *("很好" for _ in range(38))]
    data.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    arguments = ["train", "--train", str(data), "--width", "8", "--depth", "1", "--batch-size", "2"]
    arguments += ["--linear-weight", "0", "--steps", "25"]
    folders = [str(tmp_path / f"{seed}") for seed in range(3)]
    for seed, folder in enumerate(folders):
        assert commands.main([*arguments, "--seed", str(seed), "--out", folder]) == 0
    assert commands.main(["report", *folders, "--out", str(page)]) == 0
    runs = list(map(read_run, folders))
    assert len({run.settings["crf_lr_multiplier"] for run in runs}) > 1
    scores = [run.scores["valid"]["f"] for run in runs]
    text = page.read_text()
    for number in (np.mean(scores), np.std(scores, ddof=1)):
        assert f"{number:.4f}" in text
    assert "all runs" in text and "crf_lr_multiplier=" not in text


@pytest.mark.slow
@pytest.mark.once
def test_weights_that_break_in_the_last_step_are_no_model(bert, tmp_path):
    """The loss of the only step is that of the first weights, and finite."""
    settings = {**QUICK, "bert": str(bert), "batch_size": 64, "epochs": 1, "learning_rate": 1e38}
    numbers = [(text, str(i / 2)) for i, (text, _) in enumerate(PARTS["train"])]
    for number, train in enumerate((PARTS["train"], numbers)):
        with pytest.raises(DivergedError, match="must be finite numbers; train it with a lower learning rate"):
            train_classifier(Settings(**settings), train, train, out=tmp_path / f"{number}")
        assert not (tmp_path / f"{number}").exists()
    words = [text.split() for text, _ in PARTS["train"]]
    with pytest.raises(DivergedError):
        train_segmenter(Settings(**{**settings, "task": "cws"}), words, words, out=tmp_path / "words")
