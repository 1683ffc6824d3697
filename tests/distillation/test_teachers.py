"""Tests of kcrf.distillation.

The expected counts of a teacher in the windows of a student, and the student's runs: settings, files, resuming.
"""

import json
import shutil
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from decoders import keys
from numpy.testing import assert_allclose, assert_array_equal

from kcrf import commands, training
from kcrf.backend import keras, ops
from kcrf.commands import main
from kcrf.commands import train as train_command
from kcrf.corpora import Sentence, load_mini
from kcrf.models import build_transformer_model, save_pretrained
from kcrf.runs import RunFolder, Settings
from kcrf.taggers import load_tagger
from kcrf.taggers.decoder import parts_of_sentences
from kcrf.tasks import task_of
from kcrf.tasks.task import as_sentence
from kcrf.training import resume_tagger, train_classifier, train_tagger
from kcrf.training.stages import teacher as teacher_stage
from kcrf.training.stages.soft_targets import expected_targets, join_counts, split_counts

TINY = Settings(task="ner", width=8, depth=1, batch_size=16, epochs=2, learning_rate=0.02, seed=3, linear_weight=0.0)
CORPUS = load_mini("ner")
PARTS = {name: [s for s in getattr(CORPUS, name) if 8 < len(s.text) <= 16][:24] for name in ("train", "valid", "test")}
TEXTS = ["李雷在上海工作。", "", "北京下了一场大雨。", "   "]
BACKENDS = ["torch"]


@pytest.fixture(scope="module")
def teacher(tmp_path_factory):
    folder = tmp_path_factory.mktemp("teacher") / "run"
    train_tagger(TINY, **PARTS, out=folder)
    return folder


@pytest.fixture
def student(teacher):
    return replace(TINY, teacher=str(teacher))


class Interrupts(keras.callbacks.Callback):
    """Interrupts training after this many epochs."""

    def __init__(self, epochs=1):
        super().__init__()
        self._left = epochs

    def report(self, row):
        self._left -= 1
        if not self._left:
            raise KeyboardInterrupt

    def on_train_begin(self, logs=None):
        if not self._left:
            raise KeyboardInterrupt


def weights(run):
    return load_tagger(run).model.get_weights()


def assert_same_weights(one, other):
    for a, b in zip(weights(one), weights(other), strict=True):
        assert_array_equal(a, b)


def test_the_counts_of_a_tagger_are_those_of_each_window_alone(teacher):
    tagger = load_tagger(teacher)
    long = Sentence("李雷在上海工作" * 30, [])  # of several windows
    sentences = [PARTS["test"][0], long, Sentence("", []), PARTS["test"][1]]
    counts = tagger.decoder.expected_counts(parts_of_sentences(sentences), tagger.scheme, 1.5)
    for sentence, rows in zip(sentences, counts, strict=True):
        (reading,) = tagger.reader.read([sentence.text])
        assert len(rows) == len(reading.windows)
        for window, (tags, steps) in zip(reading.windows, rows, strict=True):
            inputs = {name: np.array([row]) for name, row in window.inputs.items()}
            alone = tagger.crf.expected_counts(tagger.model.predict_on_batch(inputs), tagger.scheme, 1.5)
            assert_allclose(tags, ops.convert_to_numpy(alone[0])[0], atol=1e-5)
            assert_allclose(steps, ops.convert_to_numpy(alone[1])[0], atol=1e-4)
    assert len(counts[1]) > 1 and counts[2] == []
    again = split_counts(join_counts(counts))
    for rows, same in zip(counts, again, strict=True):
        for (tags, steps), (more_tags, more_steps) in zip(rows, same, strict=True):
            assert_array_equal(tags, more_tags), assert_array_equal(steps, more_steps)


def test_counts_stand_where_the_student_has_its_units_and_other_units_are_refused():
    counts = [[(np.array([[0.9, 0.1], [0.2, 0.8]]), np.eye(2))]]
    pieces = [({"tokens": [1, 5, 6, 7, 2], "tagged": [0, 1, 0, 1, 0]}, [-1, 0, -1, 1, -1])]
    ((_, soft),) = expected_targets(["ab c"], counts, pieces)
    assert_allclose(soft.expected_tags, [[0, 0], [0.9, 0.1], [0, 0], [0.2, 0.8], [0, 0]])
    characters = [({"characters": [2, 3, 4]}, [0, 1, 1])]
    with pytest.raises(
        ValueError, match="same tokens as the student.* Received: 2 tokens of the teacher and 3 .* at 'ab c'"
    ):
        expected_targets(["ab c"], counts, characters)
    with pytest.raises(ValueError, match="same tokens as the student"):
        expected_targets(["ab c"], counts, pieces * 2)


def test_other_units_are_refused_before_the_teacher_begins(teacher, tmp_path, capsys):
    bert, vocab = tmp_path / "bert", ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *sorted(set("李雷在上海工作，"))]
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    save_pretrained(build_transformer_model(vocab_size=len(vocab), max_position=128, **sizes), bert, vocab=vocab)
    student = Settings(task="ner", types=("LOC", "ORG", "PER"), bert=str(bert), epochs=1, teacher=str(teacher))
    known = [Sentence("李雷在上海工作，", [(0, 2, "PER")])]
    for text, received in {
        "李雷2024年在上海": "10 tokens of the teacher and 7 of the student in a window, at '李雷2024",
        "李雷在上海工作，" * 16: "128 tokens of the teacher and 120 of the student in a window, at '李雷在上",
    }.items():
        with pytest.raises(ValueError, match=f"into the same windows; .* Received: {received}"):
            train_tagger(student, [*known, Sentence(text, [])], known, out=tmp_path / "student")
        assert "labeled by the teacher" not in capsys.readouterr().err
        assert not (tmp_path / "student").exists()


def test_as_many_words_that_are_others_are_refused(tmp_path):
    settings = replace(TINY, types=("LOC", "PER"), units="words", epochs=1)
    at_hyphens = [Sentence("Leeds-based firms saw Kim", [(0, 5, "LOC"), (22, 25, "PER")])] * 16
    at_underscores = [Sentence("UN-led firms saw Leeds_Kim", [(17, 22, "LOC"), (23, 26, "PER")])] * 16
    train_tagger(settings, at_hyphens, at_hyphens, out=tmp_path / "teacher")
    student = replace(settings, teacher=str(tmp_path / "teacher"))
    with pytest.raises(ValueError, match="the same tokens .* Received: 'UN' of the teacher and 'UN-led' of the stud"):
        train_tagger(student, at_underscores, at_underscores, out=tmp_path / "student")
    train_tagger(student, at_hyphens, at_hyphens, out=tmp_path / "same")


@pytest.mark.slow
def test_a_student_that_learns_from_its_teacher_alone_comes_to_answer_as_it_does(teacher, tmp_path):
    settings = replace(TINY, teacher=str(teacher), teacher_weight=1.0, epochs=12, dropout=0.0, lexicon=False)
    nonsense = [Sentence(s.text, [(0, 1, label)]) for s, label in zip(PARTS["train"], ["LOC", "ORG", "PER"] * 8)]
    train_tagger(settings, nonsense, PARTS["valid"], out=tmp_path / "student")  # the labels are not looked at
    ours, theirs = (
        load_tagger(run).decoder.expected_counts(parts_of_sentences(PARTS["train"]))
        for run in (tmp_path / "student", teacher)
    )
    distance = np.mean([np.abs(a[0][0] - b[0][0]).max(axis=-1).mean() for a, b in zip(ours, theirs, strict=True)])
    assert distance < 0.1
    assert RunFolder(tmp_path / "student").read_settings().teacher == str(teacher)


@pytest.mark.slow
@pytest.mark.parametrize("epochs", [0, 1])
def test_a_taught_run_goes_on_to_the_same_weights_without_its_teacher(student, teacher, tmp_path, epochs):
    train_tagger(student, **PARTS, out=tmp_path / "whole", unlabeled=TEXTS)
    copy = shutil.copytree(teacher, tmp_path / "teacher")
    settings = replace(student, teacher=str(copy))
    with pytest.raises(KeyboardInterrupt):
        train_tagger(settings, **PARTS, out=tmp_path / "run", progress=Interrupts(epochs), unlabeled=TEXTS)
    shutil.rmtree(copy)  # its answers are in the folder of the run
    with pytest.raises(ValueError, match="needs the data that the run began with. Received: unlabeled with other"):
        resume_tagger(tmp_path / "run", **PARTS, unlabeled=TEXTS[:1])
    resume_tagger(tmp_path / "run", **PARTS, unlabeled=TEXTS)
    assert_same_weights(tmp_path / "run", tmp_path / "whole")


WORDS = [["今天", "天气", "好"], ["明天", "也", "好"], ["我", "喜欢", "今天"]] * 8
TO_SEGMENT = ["昨天天气也好", "我喜欢晴天", "", "明天我也喜欢", "昨天天气也好", "明天也好"]  # the last two are not new


@pytest.fixture(scope="module")
def segmenter(tmp_path_factory):
    folder = tmp_path_factory.mktemp("segmenter") / "run"
    return folder, train_tagger(Settings(encoder="linear"), WORDS, WORDS, out=folder)[0]


def test_the_words_that_the_teacher_finds_are_in_the_lexicon_of_the_student(segmenter, tmp_path, monkeypatch):
    """Beside counts of the words of both, without those of the part of the data that a text belongs to."""
    planned, fit = [], training.train._train
    monkeypatch.setattr(training.train, "_train", lambda plan, *rest: planned.append(plan) or fit(plan, *rest))
    student = Settings(encoder="linear", teacher=str(segmenter[0]))
    train_tagger(student, WORDS, WORDS, out=tmp_path / "run", unlabeled=TO_SEGMENT)
    texts = ["昨天天气也好", "我喜欢晴天", "明天我也喜欢"]
    found = [[text[start:end] for start, end in spans] for text, spans in zip(texts, keys(segmenter[1], texts))]
    assert ["昨天", "天气", "也", "好"] in found
    lexicon = json.loads((tmp_path / "run" / "vocabulary.json").read_text(encoding="utf-8"))
    assert lexicon["words"] == Counter(word for row in [*WORDS, *found] for word in row if len(word) > 1)
    assert lexicon["strings"]["天气"] == sum("".join(row).count("天气") for row in [*WORDS, *found])
    assert [sentence.text for sentence in planned[0].data.unlabeled] == texts

    reader, windows = planned[0].reader, planned[0].windows
    own_parts = [WORDS[: len(WORDS) // 5], *([row] for row in found)]
    for (inputs, tags), row, part in zip([windows[0], *windows[-3:]], [WORDS[0], *found], own_parts, strict=True):
        others = reader.lexicon.without([as_sentence(words) for words in part])
        (expected,) = reader.ngrams.encode(["".join(row)], others)
        assert_array_equal(inputs["ngrams"], expected)
        assert (set(tags) == {-1}) == (row in found)


def test_a_run_whose_lexicon_has_the_words_of_a_teacher_goes_on_as_it_began(segmenter, tmp_path):
    student = Settings(encoder="linear", solver="adagrad", epochs=4, teacher=str(segmenter[0]))
    train_tagger(student, WORDS, WORDS, out=tmp_path / "whole", unlabeled=TO_SEGMENT)
    with pytest.raises(KeyboardInterrupt):
        train_tagger(student, WORDS, WORDS, out=tmp_path / "run", progress=Interrupts(2), unlabeled=TO_SEGMENT)
    stored = tmp_path / "run" / "teacher_words.npz"
    content = stored.read_bytes()
    stored.unlink()
    np.savez(stored, counts=np.zeros(2, int), spans=np.zeros((0, 2), int))
    with pytest.raises(ValueError, match="teacher_words.npz: needs the words of 3 texts. Received: arrays"):
        resume_tagger(tmp_path / "run", WORDS, WORDS, unlabeled=TO_SEGMENT)
    stored.write_bytes(content)
    resume_tagger(tmp_path / "run", WORDS, WORDS, unlabeled=TO_SEGMENT)
    losses = [
        [row.split(",")[:3] for row in (tmp_path / name / "log.csv").read_text().splitlines()]
        for name in ("run", "whole")
    ]
    assert losses[0] == losses[1] and len(losses[0]) == 5


def test_entities_that_the_teacher_finds_are_in_the_lexicon_of_the_student(tmp_path):
    sentences = [Sentence("李雷在上海工作", [(0, 2, "PER"), (3, 5, "LOC")]), Sentence("天气好", [])] * 8
    teacher, _ = train_tagger(Settings(task="ner", encoder="linear"), sentences, sentences, out=tmp_path / "teacher")
    assert keys(teacher, ["李雷在上海市"]) == [[(0, 2, "PER"), (3, 5, "LOC")]]
    student = Settings(task="ner", encoder="linear", teacher=str(tmp_path / "teacher"), augment=0)
    train_tagger(student, sentences, sentences, out=tmp_path / "run", unlabeled=["李雷在上海市", "好天气"])
    lexicon = json.loads((tmp_path / "run" / "vocabulary.json").read_text(encoding="utf-8"))
    assert lexicon["words"] == {"李雷": 9, "上海": 9}


@pytest.mark.slow
def test_answers_that_were_not_yet_written_are_asked_for_anew(student, tmp_path, monkeypatch):
    train_tagger(student, **PARTS, out=tmp_path / "whole")
    asked, load = [], teacher_stage.load_tagger
    monkeypatch.setattr(teacher_stage, "load_tagger", lambda path: asked.append(path) or load(path))
    with pytest.raises(KeyboardInterrupt):
        train_tagger(student, **PARTS, out=tmp_path / "run", progress=Interrupts(1))
    assert len(asked) == 1
    (tmp_path / "run" / "teacher.npz").unlink()
    resume_tagger(tmp_path / "run", **PARTS)
    assert len(asked) == 2
    assert_same_weights(tmp_path / "run", tmp_path / "whole")


@pytest.mark.slow
def test_texts_without_labels_have_answers_and_characters_of_their_own(student, tmp_path):
    train_tagger(replace(student, augment=1), **PARTS, out=tmp_path / "run", unlabeled=["龘龘龘", "  "])
    arrays = RunFolder(tmp_path / "run").read_arrays("teacher.npz")
    assert len(arrays["windows"]) > len(PARTS["train"]) + 1  # copies are answered, too; the blank text is left out
    assert arrays["units"][-1] == 3 and arrays["tags"].shape == (arrays["units"].sum(), 7)
    assert_allclose(arrays["tags"].sum(-1), 1.0, atol=1e-4)
    vocabulary = json.loads((tmp_path / "run" / "vocabulary.json").read_text(encoding="utf-8"))
    assert "龘" in vocabulary["characters"] and "龘龘" not in vocabulary["words"]


@pytest.mark.slow
@pytest.mark.parametrize("head", ["softmax", "crf"])
def test_words_are_taught_under_every_head(tmp_path, head):
    words = [["今天", "天气", "好"], ["明天", "也", "好"], ["我", "喜欢", "今天"]] * 8
    settings = Settings(width=8, depth=1, epochs=1, batch_size=8, head=head)
    train_tagger(settings, words, words, out=tmp_path / "teacher")
    student = replace(settings, teacher=str(tmp_path / "teacher"), teacher_temperature=2.0)
    (tmp_path / "words.txt").write_text("".join(" ".join(row) + "\n" for row in words), encoding="utf-8")
    (tmp_path / "texts.txt").write_text("今天也好\n我\t喜欢\n\n", encoding="utf-8")
    arguments = ["--width", "8", "--depth", "1", "--epochs", "1", "--batch-size", "8", "--head", head]
    arguments += [
        "--teacher",
        student.teacher,
        "--teacher-temperature",
        "2",
        "--unlabeled",
        str(tmp_path / "texts.txt"),
    ]
    assert main(["train", "--train", str(tmp_path / "words.txt"), "--out", str(tmp_path / "run"), *arguments]) == 0
    assert RunFolder(tmp_path / "run").read_settings().teacher_temperature == 2.0
    arrays = RunFolder(tmp_path / "run").read_arrays("teacher.npz")
    assert arrays["units"].tolist()[-2:] == [4, 3]


def test_white_space_separates_the_tokens_of_unlabeled_lines(tmp_path):
    (tmp_path / "texts.txt").write_text("Kim  slept\n  \nhere\n", encoding="utf-8")
    texts = train_command._read_unlabeled("pos", {"unlabeled": str(tmp_path / "texts.txt")})
    items = task_of("pos").unlabeled_items(texts, pairs=False)
    assert [item.tokens for item in items] == [[(0, 3), (5, 10)], [(0, 4)]]


REVIEWS = [(f"{a} {b}", a) for a in ("good", "bad") for b in ("film", "book", "song", "play")] * 2


@pytest.mark.slow
def test_classifiers_and_regressions_are_taught(tmp_path):
    settings = Settings(task="classify", width=16, depth=1, epochs=12, batch_size=8, learning_rate=0.02, seed=1)
    train_classifier(settings, REVIEWS, REVIEWS, out=tmp_path / "teacher")
    wrong = [(text, {"good": "bad", "bad": "good"}[label]) for text, label in REVIEWS]
    student = replace(settings, teacher=str(tmp_path / "teacher"), teacher_weight=1.0)
    unlabeled = ["good dance", "bad dance"]
    classifier, _ = train_classifier(student, wrong, REVIEWS, out=tmp_path / "student", unlabeled=unlabeled)
    assert [item.label for item in classifier.predict([text for text, _ in REVIEWS])] == [r[1] for r in REVIEWS]
    answers = RunFolder(tmp_path / "student").read_arrays("teacher.npz")["answers"]
    assert answers.shape == (len(REVIEWS) + 2, 2) and answers[-2].argmax() == 1 and answers[-1].argmax() == 0

    numbers = [(text, "1.5" if label == "good" else "-0.5") for text, label in REVIEWS]
    train_classifier(settings, numbers, numbers, out=tmp_path / "numbers")
    flipped = [(text, "0.5" if label == "good" else "4.5") for text, label in REVIEWS]  # of another scale
    student = replace(student, teacher=str(tmp_path / "numbers"), epochs=25)
    with pytest.raises(ValueError, match="labels that are names; here they are numbers. Received: 3.0"):
        train_classifier(replace(student, teacher_temperature=3.0), flipped, numbers, out=tmp_path / "softened")
    assert not (tmp_path / "softened").exists()
    regression, scores = train_classifier(student, flipped, numbers, out=tmp_path / "taught")
    assert scores["valid"]["pearson"] > 0.9
    assert abs(regression.classify("good film").label - 1.5) < 0.7


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (
            {"types": ("LOC", "PER", "ORG")},
            "needs the tags of its student, O, B-LOC, I-LOC, B-PER, .* Received: O, ",
        ),
        ({"scheme": "bioes"}, "needs the tags of its student, .*E-LOC"),
        ({"units": "words"}, "needs the units of its student, words. Received: characters or the words of a BERT"),
    ],
)
def test_a_teacher_with_other_tags_or_units_is_refused(student, tmp_path, changed, message):
    with pytest.raises(ValueError, match=message):
        train_tagger(replace(student, **changed), **PARTS, out=tmp_path / "run")
    assert not (tmp_path / "run").exists() or not any((tmp_path / "run").iterdir())


def test_a_file_is_no_teacher(tmp_path, capsys):
    (tmp_path / "words.onnx").touch()
    (tmp_path / "train.txt").write_text("今天 好\n" * 4, encoding="utf-8")
    arguments = ["--train", str(tmp_path / "train.txt"), "--out", str(tmp_path / "run")]
    assert commands.main(["train", *arguments, "--teacher", str(tmp_path / "words.onnx")]) == 2
    assert "words.onnx: --teacher needs the folder of a run. Received: a file" in capsys.readouterr().err


def test_a_teacher_of_another_task_or_one_that_is_not_complete_is_refused(teacher, student, tmp_path):
    words = [["今天", "好"]] * 4
    with pytest.raises(ValueError, match="run: a teacher needs the task of its student, cws. Received: ner"):
        train_tagger(Settings(teacher=str(teacher), epochs=1), words, words, out=tmp_path / "run")
    labels = [*REVIEWS, ("fair film", "fair")]
    train_classifier(Settings(task="classify", width=8, depth=1, epochs=1), REVIEWS, REVIEWS, out=tmp_path / "two")
    three = Settings(task="classify", teacher=str(tmp_path / "two"))
    with pytest.raises(ValueError, match="needs the labels of its student, bad, fair, good. Received: bad, good"):
        train_classifier(three, labels, labels, out=tmp_path / "run")
    with pytest.raises(ValueError, match="`unlabeled` needs single texts, .* Received: .'a', 'b'."):
        train_classifier(replace(three, labels=()), REVIEWS, REVIEWS, out=tmp_path / "run", unlabeled=[("a", "b")])
    with pytest.raises(ValueError, match="`unlabeled` needs a `teacher`"):
        train_tagger(TINY, **PARTS, out=tmp_path / "run", unlabeled=TEXTS)
    copy = shutil.copytree(teacher, tmp_path / "copy")
    (copy / "scores.json").unlink()
    with pytest.raises(FileNotFoundError, match="scores.json: no such file"):
        train_tagger(replace(student, teacher=str(copy)), **PARTS, out=tmp_path / "run")
