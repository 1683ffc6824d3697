"""Tests of kcrf.commands.main, kcrf.commands.suggest.

kcrf suggest: what it writes is what `kcrf train` reads, by itself and as annotation tools export it.
"""

import io
import json
import sys
from argparse import Namespace

import pytest

from kcrf.commands.main import main
from kcrf.corpora import Example, load_mini, read_classified, read_entities, read_segmented, read_tagged, sentence_line
from kcrf.metrics.learning_curves import LearningCurve
from kcrf.taggers import Classification, EntityRecognizer, TokenTagger, WordSegmenter
from kcrf.training import Settings, learning_curve

BACKENDS = ["torch"]
POOL = {
    "ner": ["李雷在上海。", "韩梅梅去了😀北京！", "没有人。", "李 雷"],
    "cws": ["今天天气真好", "😀北京大学 生前来应聘", "他们去了"],
    "pos": ["Kim slept .", "Ada saw 😀 Kim", "No"],
}
TRAIN = {
    "ner": ['{"text": "李雷住在上海", "entities": [{"start": 0, "end": 2, "label": "PER"}]}'] * 6,
    "cws": ["今天 天气 好", "他们 来 了"] * 4,
    "pos": ["Kim\tN", "slept\tV", "", "Ada\tN", "saw\tV", "Kim\tN", ""] * 4,
}
READERS = {"ner": read_entities, "cws": read_segmented, "pos": read_tagged}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Run folders by task."""
    folder = tmp_path_factory.mktemp("runs")
    for task, lines in TRAIN.items():
        (folder / f"{task}.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
        arguments = ["train", "--task", task, "--encoder", "linear", "--epochs", "1"]
        assert main([*arguments, "--train", str(folder / f"{task}.txt"), "--out", str(folder / task)]) == 0
    return folder


@pytest.fixture
def suggest(runs, tmp_path):
    """A function that runs the command on the pool of a task, and returns the file that it wrote."""

    def run(task, *arguments, name="next.json"):
        pool, out = tmp_path / "pool.txt", tmp_path / name
        pool.write_text("\n".join(POOL[task]) + "\n\n", encoding="utf-8")
        assert main(["suggest", "--model", str(runs / task), str(pool), "--out", str(out), *arguments]) == 0
        return out

    return run


def predicted(task, runs):
    """The items that the reader of the task makes of the pool with the model's predictions, by text."""
    pool = POOL[task]
    if task == "ner":
        found = EntityRecognizer(runs / task).recognize_batch(pool)
        return {text: [(e.start, e.end, e.label) for e in row] for text, row in zip(pool, found)}
    if task == "cws":
        return dict(zip(("".join(text.split()) for text in pool), WordSegmenter(runs / task).segment_batch(pool)))
    return dict(zip(pool, TokenTagger(runs / task).tag_batch([text.split() for text in pool])))


def by_text(task, items):
    if task == "ner":
        return {sentence.text: sentence.spans for sentence in items}
    if task == "cws":
        return {"".join(words): words for words in items}
    return {sentence.text: [label for *_, label in sentence.spans] for sentence in items}


def annotated(path):
    """The export of Label Studio of an annotator who accepts all predictions."""
    tasks = json.loads(path.read_text(encoding="utf-8"))
    for number, task in enumerate(tasks):
        task.update(id=number, annotations=[{"was_cancelled": False, "result": task["predictions"][0]["result"]}])
    path.write_text(json.dumps(tasks), encoding="utf-8")


@pytest.mark.parametrize("kind", ["json", "doccano", "label-studio"])
@pytest.mark.parametrize("task", ["ner", "cws", "pos"])
def test_predictions_come_back(task, kind, runs, suggest):
    path = suggest(task, "--format", kind)
    if kind == "label-studio":
        annotated(path)
    assert by_text(task, READERS[task](path)) == predicted(task, runs)


def test_label_studio_shows_the_most_uncertain_first(suggest):
    tasks = json.loads(suggest("ner", "--format", "label-studio").read_text(encoding="utf-8"))
    scores = [task["predictions"][0]["score"] for task in tasks]
    assert scores == sorted(scores) and 0 < scores[0] and scores[-1] <= 1
    assert {result["from_name"] for task in tasks for result in task["predictions"][0]["result"]} == {"label"}


def test_the_order_is_that_of_python_and_labeled_texts_are_omitted(runs, suggest, tmp_path, capsys):
    lines = [json.loads(line) for line in suggest("ner").read_text(encoding="utf-8").splitlines()]
    found = EntityRecognizer(runs / "ner").suggest(POOL["ner"])
    assert [line["text"] for line in lines] == [item.text for item in found]
    assert [line["uncertainty"] for line in lines] == [round(item.score, 6) for item in found]
    assert "4 texts instead of 100: the other 1 are empty, or nearly the same as these" in capsys.readouterr().err
    train = tmp_path / "labeled.conll"
    train.write_text("李\tB-PER\n雷\tI-PER\n在\tO\n上\tO\n海\tO\n", encoding="utf-8")
    path = suggest("ner", "--train", str(train), "--count", "1", "--strategy", "sequence-entropy", name="more.json")
    (line,) = path.read_text(encoding="utf-8").splitlines()
    found = EntityRecognizer(runs / "ner").suggest(POOL["ner"], 1, "sequence-entropy", ["李雷在上海"])
    assert json.loads(line)["text"] == found[0].text


def test_a_pipe_is_read_twice(runs, monkeypatch, capsysbinary):
    class Pipe(io.BytesIO):
        def seekable(self):
            return False

        def fileno(self):
            raise OSError

    class Input:
        buffer = Pipe("\ufeff他们去了\r\n今天天气真好\n".encode())

        def isatty(self):
            return False

    monkeypatch.setattr(sys, "stdin", Input())
    assert main(["suggest", "--model", str(runs / "cws")]) == 0
    lines = capsysbinary.readouterr().out.decode("utf-8").splitlines()
    assert sorted(json.loads(line)["text"] for line in lines) == ["今天天气真好", "他们去了"]


MISTAKES = [
    ("missing.txt", "missing.txt: no such file"),
    ("pool.txt --count 0", "--count must be at least 1. Received: 0"),
    ("empty.txt", "empty.txt: needs at least one text. Received: none"),
    ("blank.txt", "blank.txt: needs a text to label. Received: 2 lines, all of them empty"),
    ("same.txt --train train.txt", "all of them empty or nearly one of those in train.txt"),
    ("pool.txt --train missing.txt", "missing.txt: no such file"),
    ("pool.txt --format label-studio --out a.jsonl", "needs --out with a name that ends in .json. Received: a.jsonl"),
    ("pool.txt --out pool.txt", "--out needs another file than the input"),
    ("pool.txt --out train.txt", "train.txt: the file exists; --overwrite replaces it"),
    ("pool.txt --batch-size 0", "--batch-size must be at least 1. Received: 0"),
    ("objects.txt", "objects.txt:1: needs a text. Received: a JSON object"),
]


@pytest.mark.parametrize(("arguments", "message"), MISTAKES)
def test_mistakes_are_refused_before_anything_is_written(arguments, message, runs, tmp_path, monkeypatch, capsys):
    files = {"pool": "今天", "empty": "", "blank": "\n \n", "same": "今天天气好\n", "train": "今天 天气 好\n"}
    files["objects"] = '{"text": "今天"}\n'
    for name, text in files.items():
        (tmp_path / f"{name}.txt").write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.iterdir())
    assert main(["suggest", "--model", str(runs / "cws"), *arguments.split()]) == 2
    output = capsys.readouterr()
    assert output.err.startswith("kcrf suggest: ") and message in output.err and output.out == ""
    assert sorted(tmp_path.iterdir()) == before


def test_labels_of_texts_and_pairs():
    from kcrf.commands.suggest import _line
    from kcrf.taggers.suggestions import Suggestion

    def _label(output_format, suggestion):
        return _line(Namespace(format=output_format, model_task="classify"), suggestion)

    single = Suggestion(0, "好", 0.5, Classification("pos", 0.6, {"pos": 0.6, "neg": 0.4}))
    assert json.loads(_label("json", single)) == {"text": "好", "label": "pos", "uncertainty": 0.5}
    assert json.loads(_label("doccano", single)) == {"text": "好", "label": ["pos"], "uncertainty": 0.5}
    pair = Suggestion(0, ("a", "b"), 0.5, Classification("same", 0.6))
    (prediction,) = json.loads(_label("label-studio", pair))["predictions"]
    assert prediction["result"][0]["value"] == {"choices": ["same"]} and prediction["result"][0]["type"] == "choices"
    assert json.loads(_label("label-studio", pair))["data"] == {"text": "a", "text_b": "b"}
    with pytest.raises(ValueError, match="--format doccano needs a run of single texts"):
        _label("doccano", pair)


def test_labels_of_suggestions_are_read_by_train(tmp_path):
    from kcrf.commands.suggest import _line
    from kcrf.taggers.suggestions import Suggestion

    def _label(output_format, suggestion):
        return _line(Namespace(format=output_format, model_task="classify"), suggestion)

    rows = [
        Suggestion(n, text, 0.5, Classification(label)) for n, (text, label) in enumerate([("好", "a"), ("坏", "b")])
    ]
    path = tmp_path / "labels.jsonl"
    for kind in ("json", "doccano"):
        path.write_text("".join(f"{_label(kind, row)}\n" for row in rows), encoding="utf-8")
        assert read_classified(path) == [Example("好", "a"), Example("坏", "b")]
    path.write_text("[" + ",".join(_label("label-studio", row) for row in rows) + "]", encoding="utf-8")
    annotated(path)
    assert read_classified(path) == [Example("好", "a"), Example("坏", "b")]


@pytest.mark.parametrize("command", ["suggest", "tag"])
@pytest.mark.parametrize(
    ("text", "received"),
    [
        (
            "阿塔卡马沙漠的天文台停电了。\n",
            "text that is not segmented, '阿塔卡马沙漠的天文台停电了。'; `kcrf segment`",
        ),
        ("Kim\tN\nslept\tV\n", "what looks like a token and its tag; --input conll reads columns"),
        ('{"tokens": ["Kim"]}\n', "a JSON object"),
    ],
)
def test_a_model_of_tokens_is_given_no_other_text(runs, tmp_path, capsys, command, text, received):
    (tmp_path / "text.txt").write_text(text, encoding="utf-8")
    assert main([command, "--model", str(runs / "pos"), str(tmp_path / "text.txt")]) == 2
    assert f"Received: {received}" in capsys.readouterr().err


def test_one_long_token_is_a_sentence(runs, tmp_path, capsys):
    (tmp_path / "text.txt").write_text("Donaudampfschifffahrt\n中华人民共和国\n", encoding="utf-8")
    assert main(["tag", "--model", str(runs / "pos"), str(tmp_path / "text.txt")]) == 0
    assert main(["suggest", "--model", str(runs / "pos"), str(tmp_path / "text.txt")]) == 0
    assert "2 texts instead of 100: the input has no more" in capsys.readouterr().err


def test_tags_of_entities_are_noted_where_classes_are_learned(tmp_path, capsys):
    (tmp_path / "train.conll").write_text("李\tB-PER\n雷\tI-PER\n来\tO\n\n" * 8, encoding="utf-8")
    told = "train: the tags look like entities (B-PER, I-PER, O): --task ner", "Received: tags of characters, ['B-PER'"
    for status, task in ((0, "pos"), (2, "cws-pos")):
        arguments = ["train", "--task", task, "--encoder", "linear", "--epochs", "1", "--out", str(tmp_path / task)]
        assert main([*arguments, "--train", str(tmp_path / "train.conll")]) == status
        assert told[status > 0] in capsys.readouterr().err


def test_as_many_texts_as_a_score_needs(runs, tmp_path, capsys):
    corpus = load_mini("ner")
    train, pool = tmp_path / "train.jsonl", tmp_path / "pool.txt"
    train.write_text("\n".join(map(sentence_line, corpus.train[:60])) + "\n", encoding="utf-8")
    pool.write_text("\n".join(sentence.text for sentence in corpus.train[60:]) + "\n", encoding="utf-8")
    curve = learning_curve(Settings(task="ner", encoder="linear", augment=0), read_entities(train))
    goal = curve.score(curve.count + 7).value
    arguments = ["suggest", "--model", str(runs / "ner"), str(pool)]
    assert main([*arguments, "--train", str(train), "--until", f"{goal:.6f}"]) == 0
    shown = capsys.readouterr()
    assert 6 <= len(shown.out.splitlines()) <= 8 and f"with {curve.count} sentences" in shown.err
    assert main([*arguments, "--until", "0.9"]) == 2
    assert "--until needs --train FILE" in capsys.readouterr().err


def test_texts_with_a_label_have_the_curve_of_a_network(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.tsv").write_text("好\tgood\n坏\tbad\n" * 10, encoding="utf-8")
    (tmp_path / "pool.txt").write_text("很好\n真坏\n不好\n还行吧\n", encoding="utf-8")
    assert main(["train", "--task", "classify", "--epochs", "1", "--train", "train.tsv", "--out", "run", "-q"]) == 0
    used = []

    def curve_of(settings, items):
        used.append((settings.task, settings.encoder, len(items)))
        return LearningCurve("accuracy", 20, [10, 20], [[0.5, 0.6]] * 3)

    monkeypatch.setattr("kcrf.training.learning_curve", curve_of)
    arguments = ["suggest", "--model", "run", "pool.txt", "--train", "train.tsv", "--out", "next.jsonl"]
    assert main([*arguments, "--until", "0.61"]) == 0
    assert used == [("classify", None, 20)]
