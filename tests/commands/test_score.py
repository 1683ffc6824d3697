"""kcrf.commands.main: kcrf score: all tasks, and gold and predictions that were exchanged."""

import json

import pytest

from kcrf.commands import main
from kcrf.tasks import TASKS

BACKENDS = ["torch"]
ENTITY = {"start": 0, "end": 2, "label": "PER"}
FILES = {
    "ner": (
        {"text": "李雷在上海", "entities": [ENTITY]},
        {"text": "李雷在上海", "entities": [{**ENTITY, "text": "李雷", "probability": 0.9}]},
    ),
    "classify": (
        {"text": "good", "label": "x"},
        {"text": "good", "label": "y", "probabilities": {"x": 0.4, "y": 0.6}},
    ),
}


FORMS = {
    "lines": lambda rows: "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows),
    "an array": json.dumps,
    "an array on several lines": lambda rows: json.dumps(rows, indent=1),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("task", FILES)
def test_gold_and_predictions_that_were_exchanged_are_noticed(task, form, tmp_path, capsys):
    gold, pred = tmp_path / "gold.jsonl", tmp_path / "pred.jsonl"
    for path, row in zip((gold, pred), FILES[task], strict=True):
        path.write_text(FORMS[form]([row]), encoding="utf-8")
    score = ["score", "--task", task, "--json"]
    assert main([*score, "--gold", str(gold), "--pred", str(pred)]) == 0
    assert main([*score, "--gold", str(pred), "--pred", str(pred)]) == 0  # two models are compared
    assert main([*score, "--gold", str(pred), "--pred", str(gold)]) == 2
    message = "--gold needs the correct words, entities or labels. Received: predictions of `kcrf`; exchange --gold"
    assert f"{pred}: {message} and --pred" in capsys.readouterr().err


@pytest.mark.parametrize("form", FORMS)
def test_the_order_of_labels_and_the_names_of_members_are_those_of_the_classifier(form, tmp_path, capsys):
    gold = '{"review": "a", "label": "true"}\n{"review": "b", "label": "fake"}\n'
    rows = [{"text": text, "label": "true", "probabilities": {"true": 0.9, "fake": 0.1}} for text in "ab"]
    gold, pred = _files(tmp_path, gold=gold, pred=FORMS[form](rows))
    assert _score(gold, pred, "--task", "classify", "--fields", "review,label", "--json") == 0
    assert json.loads(capsys.readouterr().out)["f"] == 0.0  # of the last label, "fake", which is predicted nowhere


def test_every_task_can_be_scored(capsys):
    with pytest.raises(SystemExit):
        main(["score", "--help"])
    assert f"--task {{{','.join(TASKS)}}}" in capsys.readouterr().out


def test_output_names_both_files(tmp_path, capsys):
    gold, pred = _files(tmp_path, gold="今天 天气 好\n", pred="今 天 天气 好\n")
    assert _score(gold, pred) == 0
    title = "".join(capsys.readouterr().out.split()).partition("┏")[0]
    assert title == f"gold:{gold}predictions:{pred}"


@pytest.mark.parametrize(
    "text, message",
    [
        ("今天天气好\n明天不下雨\n", "needs words separated by spaces. Received: text that is not segmented in 2 of 2"),
        ("今天/天气/好\n明天/不/下雨\n", "needs words separated by spaces. Received: words separated by '/'"),
        ("今天_t 天气_n 好_a\n明天_t 不_d 下雨_v\n", "needs words without their classes; --strip-tags removes them"),
    ],
)
def test_predictions_that_are_not_segmented_text_are_noticed(text, message, tmp_path, capsys):
    gold, pred = _files(tmp_path, gold="今天 天气 好\n明天 不 下雨\n", pred=text)
    _score(gold, pred)
    assert f"{pred}:1: {message}" in capsys.readouterr().err


@pytest.mark.parametrize(
    "options, pred",
    [
        ((), '{"text": "今天天气好", "words": ["今", "天", "天气", "好"]}\n'),
        (["--strip-tags"], "今_t 天_t 天气_n 好_a\n"),
        (["--strip-tags"], "今 天 天气 好\n"),
    ],
)
def test_forms_in_which_segmenters_write_words(options, pred, tmp_path, capsys):
    gold, pred = _files(tmp_path, gold="今天 天气 好\n", pred=pred)
    assert _score(gold, pred, "--json", *options) == 0
    output = capsys.readouterr()
    assert (json.loads(output.out)["recall"], json.loads(output.out)["precision"], output.err) == (2 / 3, 2 / 4, "")


@pytest.mark.parametrize(
    "task, words",
    [
        ("cws", "今天 天气 好\n"),
        ("cws", "今天/t 天气/n 好/a\n"),
        ("cws", '{"text": "今天天气好", "words": ["今天", "天气", "好"]}\n'),
        ("pos", "今天\tt\n天气\tn\n好\ta\n"),
        ("pos", "\n今天\tt\n天气\tn\n好\ta\n"),
        ("pos", "今天 t\n天气 n\n\n好 a\n"),
        ("pos", "今天 x t\n天气 x n\n\n好 x v\n"),  # gold lacks v
        ("pos", "今天 好\n\n好 天气\n"),
        ("pos", "1\t今天\t_\tt\t_\t_\t_\t_\t_\t_\n2\t天气\t_\tn\t_\t_\t_\t_\t_\t_\n"),
        ("pos", "今天/t 天气/n 好/a\n"),
        ("pos", '{"tokens": ["今天", "天气", "好"], "tags": ["t", "n", "a"]}\n'),
    ],
)
def test_the_training_words_are_those_of_the_training_data_in_any_form(task, words, tmp_path, capsys):
    gold = "今天 天气 t\n" if task == "cws" else "今天\t_\tt\n天气\t_\tn\nt\t_\ta\n"  # t is a tag in the training data
    gold, pred, words = _files(tmp_path, gold=gold, pred=gold, words=words)
    assert _score(gold, pred, "--json", "--task", task, "--words", str(words), *["--column=2"] * (task == "pos")) == 0
    output = capsys.readouterr()
    assert json.loads(output.out)["oov_rate"] == pytest.approx(1 / 3) and output.err == ""


def test_training_words_of_another_text_are_noticed(tmp_path, capsys):
    gold, pred, words = _files(tmp_path, gold="今天\tt\n", pred="今天\tt\n", words="")
    assert _score(gold, pred, "--json", "--task", "pos", "--words", str(words)) == 0
    assert json.loads(capsys.readouterr().out)["oov_rate"] == 1
    gold, pred, words = _files(tmp_path, gold="今天 冷\n", pred="今天 冷\n", words="Kim slept\n")
    assert _score(gold, pred, "--json", "--words", str(words)) == 0
    assert f"--words {words} has none of the correct words" in capsys.readouterr().err


def _files(folder, **texts):
    paths = [folder / f"{name}.txt" for name in texts]
    for path, text in zip(paths, texts.values(), strict=True):
        path.write_text(text, encoding="utf-8")
    return paths


def _score(gold, pred, *options):
    return main(["score", "--gold", str(gold), "--pred", str(pred), *options])


def test_columns_of_conlleval_hold_gold_and_prediction(tmp_path, capsys):
    """The example of conlleval's documentation: token, part of speech, gold, prediction, with a broken sequence."""
    rows = ["Boeing NNP B-ORG B-ORG", "'s POS O O", "747 CD B-MISC I-MISC", "", "Kim NNP B-PER O", "slept VBD O O", ""]
    (tmp_path / "out.txt").write_text("\n".join(rows))
    assert main(["score", "--pred", str(tmp_path / "out.txt"), "--json"]) == 0
    scores = json.loads(capsys.readouterr().out)
    assert (scores["true_entities"], scores["found_entities"], scores["correct"]) == (3, 2, 2)
    (tmp_path / "out.txt").write_text("\n".join(row.rpartition(" ")[0] for row in rows))
    assert main(["score", "--pred", str(tmp_path / "out.txt"), "--task", "ner"]) == 2
    assert "needs --gold GOLD" in capsys.readouterr().err
