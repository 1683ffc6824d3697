"""kcrf.tasks: The files of each task: written and read again, and scored."""

import pytest

from kcrf.augmentation.copies import OPERATIONS
from kcrf.corpora import Example, Sentence
from kcrf.runs import Settings
from kcrf.serving import models
from kcrf.tasks import TASKS, MismatchError

BACKENDS = ["torch"]
READING = {"column": -1, "repair": False, "strip_tags": False, "fields": None}
TOKENS = [(0, 3), (4, 9)]
ITEMS = {
    "cws": [["北京", "大学"], ["好"]],
    "ner": [Sentence("Kim slept", [(0, 3, "PER")], TOKENS)],
    "pos": [Sentence("Kim slept", [(0, 3, "PROPN"), (4, 9, "VERB")], TOKENS)],
    "cws-pos": [
        Sentence("用Python！", [(0, 1, "P"), (7, 8, "W")], [(0, 1), (1, 7), (7, 8)], [(1, 7)]),
        Sentence("好", [(0, 1, "A")], [(0, 1)]),
    ],
    "classify": [Example("a fine film", "good"), Example("a dull film", "bad")],
}
# As in "predictions.jsonl": one of two words, entities, tokens or texts is right.
PREDICTIONS = {
    "cws": [{"text": "北京大学", "gold": [[0, 2], [2, 4]], "found": [[0, 2, 0.9], [2, 3, 0.8], [3, 4, 0.8]]}],
    "ner": [{"text": "Kim Ada", "gold": [[0, 3, "PER"], [4, 7, "PER"]], "found": [[4, 7, "PER", 1], [0, 3, "X", 1]]}],
    "pos": [{"text": "a b", "gold": [[0, 1, "X"], [2, 3, "Y"]], "found": [[0, 1, "X", 0.9], [2, 3, "X", 0.9]]}],
    "cws-pos": [
        {"text": "北京大学", "gold": [[0, 2, "P"], [2, 4, "N"]], "found": [[0, 2, "N", 0.9], [2, 4, "N", 0.9]]},
        {"text": "北京人", "gold": [[0, 2, "P"]], "found": [[0, 1, "P", 0.9], [1, 2, "P", 0.9]]},
    ],
    "classify": [
        {"text": "a", "text_b": None, "gold": "x", "found": "x"},
        {"text": "b", "text_b": None, "gold": "y", "found": "x"},
    ],
}
SCORES = {
    "cws": {"recall": 1 / 2, "precision": 1 / 3},
    "ner": {"recall": 1 / 2, "precision": 1 / 2},
    "pos": {"accuracy": 1 / 2},
    "cws-pos": {"recall": 2 / 3, "precision": 2 / 4, "joint_recall": 1 / 3, "joint_precision": 1 / 4},
    "classify": {"accuracy": 1 / 2},
}


@pytest.mark.parametrize("task", TASKS.values(), ids=TASKS)
def test_items_are_read_from_the_lines_that_were_written(task, tmp_path):
    path = tmp_path / "items"
    path.write_text("\n".join(task.file_lines(ITEMS[task.name])) + "\n", encoding="utf-8")
    for items in (task.read_file(path, READING), task.read_scored(path, READING, is_gold=True)):
        assert task.content(task.check("train", items)) == task.content(task.check("train", ITEMS[task.name]))


@pytest.mark.parametrize("task", TASKS.values(), ids=TASKS)
def test_scores_of_the_predictions_of_a_run(task):
    gold, predicted = (task.predicted_items(PREDICTIONS[task.name], member) for member in ("gold", "found"))
    scores = task.scores(gold, predicted)
    assert {name: scores[name] for name in SCORES[task.name]} == pytest.approx(SCORES[task.name])


def test_tables_by_task_have_a_row_for_each_task():
    assert {*models._PATHS} == {*TASKS}
    assert {*OPERATIONS} == {"cws", "ner", "classify"}  # the other tasks cannot be augmented


@pytest.mark.parametrize("task", TASKS.values(), ids=TASKS)
def test_predictions_of_other_texts_are_refused(task):
    rows = PREDICTIONS[task.name]
    gold = task.predicted_items(rows, "gold")
    other = task.predicted_items([{**row, "text": row["text"].upper().replace("北", "南")} for row in rows], "found")
    for predicted in (other, gold[:-1]):
        with pytest.raises(MismatchError, match=r"[Rr]eceived"):
            task.scores(gold, predicted)


@pytest.mark.parametrize(
    ("task", "item", "message"),
    [
        ("cws", "今天 好", "`train`, sentence 2: needs a list of words without white space. Received: '今天 好'"),
        ("cws", ["New York", "is"], "needs a list of words without white space"),
        ("cws", ["好", ""], "needs a list of words without white space"),
        ("ner", ["Kim", "slept"], r"sentence 2: needs a `Sentence` or .text, spans.. Received: \"\['Kim', 'slept'\]\""),
        (
            "pos",
            "Kim slept",
            r"`train`, sentence 2: needs pairs \(token, tag\) of strings .* Received: \['K', 'i', 'm'\]",
        ),
        ("cws-pos", ["好"], r"`train`, sentence 2: needs pairs \(word, class\) of .* Received: \['好'\]"),
        ("pos", [("Kim", 1)], r"`train`, sentence 2: needs pairs \(token, tag\) of strings .* \[\('Kim', 1\)\]"),
        ("pos", [("Kim", float("nan"))], r"`train`, sentence 2: needs pairs"),
        ("pos", [(3, "N")], r"`train`, sentence 2: needs pairs"),
        ("cws-pos", [("好", "")], r"`train`, sentence 2: needs pairs"),
        ("cws-pos", Sentence("我喜欢", [(0, 1), (1, 3)]), "`train`, sentence 2: needs words that cover the text, each"),
    ],
)
def test_items_of_another_form_are_named(task, item, message):
    with pytest.raises(ValueError, match=message):
        TASKS[task].check("train", [ITEMS[task][0], item])


def test_sentences_of_white_space_have_no_words_with_classes(tmp_path):
    (tmp_path / "text").write_text("猫\tn\n\n　\tw\n\n", encoding="utf-8")
    task = TASKS["cws-pos"]
    assert [sentence.text for sentence in task.read_file(tmp_path / "text", READING)] == ["猫"]
    empty = {"text": "", "gold": [], "found": []}
    assert [sentence.text for sentence in task.predicted_items([empty], "gold")] == [""]


def test_types_that_the_training_set_has_cannot_be_left_out():
    parts = {name: ITEMS["ner"] for name in ("train", "valid")}
    with pytest.raises(ValueError, match=r"`types` must have all types of the training set, also PER. Received: .*LOC"):
        TASKS["ner"].facts(Settings(task="ner", types=("LOC",)), parts)
