"""Tests of kcrf.taggers.text_classifier, kcrf.tasks.classification: texts with several labels, from files to scores."""

import itertools
import json
import math

import numpy as np
import pytest
from sklearn.metrics import f1_score, precision_recall_fscore_support
from sklearn.preprocessing import MultiLabelBinarizer

from kcrf import commands
from kcrf.corpora import Example, read_classified
from kcrf.metrics import multilabel_scores
from kcrf.reports import write_report
from kcrf.runs import SettingError, Settings, read_run
from kcrf.tasks import task_of
from kcrf.training import train_classifier

WORDS = {"food": "soup", "room": "bed", "staff": "waiter"}
TEXTS = [(" ".join(["a", *map(WORDS.get, some)]), some) for n in range(4) for some in itertools.combinations(WORDS, n)]
SETTINGS = Settings(task="classify", epochs=12, batch_size=8, width=16, depth=1, learning_rate=0.02, seed=1)
ASKED = ["a soup for the waiter", "a bed", "nothing"]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """The folder of a run, and its classifier."""
    folder = tmp_path_factory.mktemp("several") / "run"
    classifier, _ = train_classifier(SETTINGS, TEXTS * 8, TEXTS, out=folder)
    return folder, classifier


def write(tmp_path, *lines):
    path = tmp_path / "texts.jsonl"
    path.write_text("".join(f"{line if isinstance(line, str) else json.dumps(line)}\n" for line in lines))
    return path


# -- data


def test_a_list_of_labels_is_sorted_and_one_label_is_a_string():
    assert [Example("x", each).label for each in (["b", "a"], {"a"}, ("a ",), [])] == [("a", "b"), "a", "a", ()]
    assert [Example("x", each).labels for each in (["b", "a"], "a", [], 0.5)] == [("a", "b"), ("a",), (), (0.5,)]


@pytest.mark.parametrize("label", [[0, 1], {"x": 1}, np.array([0, 1]), ["x", "x"], [""], ["x", None]])
def test_labels_that_are_no_different_strings_are_refused(label):
    with pytest.raises(ValueError, match="here:1: (several labels must be different strings|`label` must be text)"):
        Example("a film", label, source="here:1")


@pytest.mark.parametrize(
    "lines",
    [
        [{"text": "a", "label": ["x", "y"]}, {"text": "b", "label": ["y"]}, {"text": "c", "label": []}],
        [{"id": 1, "data": "a", "label": ["y", "x"]}, {"data": "b", "label": ["y"]}, {"data": "c", "label": []}],
        [
            {"text": text, "label": label, "probabilities": {"x": 0.5, "y": 0.9}}
            for text, label in (("a", ["x", "y"]), ("b", "y"), ("c", []))
        ],
    ],
    ids=["json", "doccano", "kcrf classify"],
)
def test_files_with_several_labels(lines, tmp_path):
    assert read_classified(write(tmp_path, *lines)) == [Example("a", ("x", "y")), Example("b", "y"), Example("c", ())]


def test_lines_of_fasttext_with_several_labels(tmp_path):
    path = write(tmp_path, "__label__x __label__y a", "__label__y b")
    assert read_classified(path) == [Example("a", ("x", "y")), Example("b", "y")]


def test_texts_without_a_label_are_skipped_or_counted_aloud(tmp_path, capsys):
    few = [{"text": "a", "label": ["x"]}, {"text": "b", "label": ["y"]}, {"text": "c", "label": []}]
    assert len(read_classified(write(tmp_path, *few))) == 2
    assert "skipped 1 texts without a label" in capsys.readouterr().err
    assert len(read_classified(write(tmp_path, *few, {"text": "d", "label": ["x", "y"]}))) == 4
    assert "1 texts without a label count as labeled, with none" in capsys.readouterr().err


def test_each_label_is_in_what_is_drawn_and_what_is_held_out_is_a_tenth():
    texts = [Example(f"text {n}", ["common", "rare"] if n == 7 else ["common"] * (n % 2)) for n in range(40)]
    for seed in range(20):
        train, valid = task_of("classify").hold_out(texts, seed)
        assert (len(train), len(valid)) == (36, 4)
        assert {label for example in train for label in example.labels} == {"common", "rare"}


# -- scores


def test_the_scores_are_those_of_scikit_learn():
    random, labels = np.random.default_rng(0), ["a", "b", "c", "d"]
    gold, predicted = (
        [[label for label in labels if p < share] for p, share in random.random((50, 2))] for _ in range(2)
    )
    gold, predicted = ([random.permutation(row).tolist() for row in rows] for rows in (gold, predicted))
    for rows in (gold, predicted):
        for row in rows[::3]:
            row.append("b") if "b" not in row else row.remove("b")
    scores = multilabel_scores(gold, predicted, labels)
    binary = MultiLabelBinarizer(classes=labels)
    true, found = binary.fit_transform(gold), binary.fit_transform(predicted)
    expected = precision_recall_fscore_support(true, found, average="micro", zero_division=0)[:3]
    np.testing.assert_allclose([scores[name] for name in ("precision", "recall", "f")], expected)
    occurring = (true | found).any(axis=0)
    by_label = f1_score(true, found, average=None, zero_division=0)
    np.testing.assert_allclose(scores["macro_f"], by_label[occurring].mean())
    np.testing.assert_allclose([scores["labels"][label]["f"] for label in labels], by_label)
    assert scores["accuracy"] == (true == found).all(axis=1).mean()


def test_bad_arguments_of_the_scores():
    with pytest.raises(ValueError, match=r"Labels must be in \['a'\]. Received: b"):
        multilabel_scores([{"a"}], [{"b"}], ["a"])
    with pytest.raises(ValueError, match="the same number of labels, at least one. Received: 1 in gold, 0"):
        multilabel_scores([{"a"}], [], ["a"])


# -- models


def test_it_learns_which_labels_a_text_has(run):
    folder, classifier = run
    assert [found.label for found in classifier.predict([text for text, _ in TEXTS])] == [labels for _, labels in TEXTS]
    assert read_run(folder).scores["valid"]["f"] == read_run(folder).scores["valid"]["accuracy"] == 1
    assert [row["found"] for row in read_run(folder).predictions] == [list(labels) for _, labels in TEXTS]


def test_probabilities_are_sigmoids_and_every_set_of_labels_has_one(run):
    _, classifier = run
    (reading,) = classifier.reader.read_texts([(ASKED[0], None)], 128)
    inputs = {name: np.array([row]) for name, row in reading.windows[0].inputs.items()}
    scores = np.asarray(classifier.network.scores(inputs))[0]
    (found,) = classifier.predict(ASKED[:1])
    expected = [1 / (1 + math.exp(-score)) for score in scores.tolist()]
    np.testing.assert_allclose(list(found.probabilities.values()), expected, rtol=1e-5)
    assert found.label == tuple(name for name, p in found.probabilities.items() if p >= 0.5)
    assert found.probability == max(joint_probabilities(found))


def joint_probabilities(found):
    """The probability of each set of labels, by enumeration."""
    choices = [((p, 1 - p)) for p in found.probabilities.values()]
    return [math.prod(each) for each in itertools.product(*choices)]


@pytest.mark.parametrize("strategy", ["mean-entropy", "least-confidence"])
def test_uncertainties_are_those_of_all_sets_of_labels(run, strategy):
    _, classifier = run
    expected = []
    for found in classifier.predict(ASKED):
        sets = joint_probabilities(found)
        np.testing.assert_allclose(sum(sets), 1)
        entropy = -sum(p * math.log(p) for p in sets)
        expected.append(entropy if strategy == "mean-entropy" else -math.log(max(sets)))
    np.testing.assert_allclose(classifier.uncertainties(ASKED, strategy), expected, rtol=1e-6)


def test_the_estimate_sums_probabilities_of_labels(run):
    _, classifier = run
    estimate, found = classifier.estimate(ASKED), classifier.predict(ASKED)
    chosen = [each.probabilities[label] for each in found for label in each.label]
    assert estimate.all.found == len(chosen)
    assert math.isclose(estimate.all.right, sum(chosen))
    assert math.isclose(estimate.labels["food"].true, sum(each.probabilities["food"] for each in found))


def test_commands_read_and_write_lists(run, tmp_path, capsys):
    folder, classifier = run
    gold = write(tmp_path, *({"text": text, "label": list(labels)} for text, labels in TEXTS))
    lines = tmp_path / "lines.txt"
    lines.write_text("".join(f"{text}\n" for text, _ in TEXTS))
    commands.main(["classify", "--model", str(folder), str(lines)])
    written = capsys.readouterr().out
    assert [json.loads(line)["label"] for line in written.splitlines()] == [list(labels) for _, labels in TEXTS]
    predicted = tmp_path / "predicted.jsonl"
    predicted.write_text(written)
    commands.main(["score", "--task", "classify", "--gold", str(gold), "--pred", str(predicted), "--json"])
    assert json.loads(capsys.readouterr().out)["f"] == 1
    commands.main(["suggest", "--model", str(folder), str(lines), "--count", "8"])
    suggested = {row["text"]: row["label"] for row in map(json.loads, capsys.readouterr().out.splitlines())}
    assert suggested  # without near-duplicates
    assert suggested.items() <= {text: list(labels) for text, labels in TEXTS}.items()


def test_a_report_says_which_labels_are_wrong(tmp_path):
    wrong = [(text, ["food"]) for text, _ in TEXTS]
    train_classifier(SETTINGS, TEXTS * 8, TEXTS, wrong, out=tmp_path / "run")
    row = next(row for row in read_run(tmp_path / "run").predictions if row["found"] == ["room", "staff"])
    assert row["gold"] == ["food"]
    write_report([tmp_path / "run"], tmp_path / "report.html")
    html = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "room, staff" in html
    assert 'id="confusion"' not in html


# -- what is refused


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"metric": "matthews"}, "must be f, macro_f or accuracy if texts have several labels"),
        ({"teacher": "runs/teacher"}, "needs texts with one label each"),
    ],
)
def test_settings_that_need_one_label(changes, message, tmp_path):
    with pytest.raises(SettingError, match=message):
        train_classifier(Settings(task="classify", **changes), TEXTS, TEXTS, out=tmp_path / "run")


def test_a_validation_set_with_several_labels_needs_a_training_set_with_several(tmp_path):
    single, several = [("a", "x"), ("b", "y")] * 4, [("a", ["x", "y"])]
    with pytest.raises(ValueError, match="needs one label, as each .* has. Received: \\('x', 'y'"):
        train_classifier(Settings(task="classify"), single, several, out=tmp_path / "run")
