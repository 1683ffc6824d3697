"""kcrf.commands.main: kcrf augment: its output can be read again, and contains as many copies as it prints."""

import pytest

from kcrf.augmentation import altered_copies
from kcrf.commands import main
from kcrf.corpora import Sentence, read_classified, read_entities, read_segmented

BACKENDS = ["torch"]
CONLL = "Kim NNP B-PER\nleft VBD O\nNew NNP B-LOC\nYork NNP I-LOC\n. . O\n\nAnn NNP B-PER\nslept VBD O\n"
FILES = {
    "words.txt": "今天 天气 好\n\n明天 也 好\n",
    "people.conll": CONLL,
    "people.jsonl": '{"text": "李雷在上海", "entities": [{"start": 3, "end": 5, "label": "LOC"}]}\n',
    "films.csv": 'text,label\n"fine, really",good\ndull,bad\n',
    "synonyms.txt": "fine good\n",
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("name", "task", "read"),
    [
        ("words.txt", "cws", read_segmented),
        ("people.conll", "ner", read_entities),
        ("people.jsonl", "ner", read_entities),
        ("films.csv", "classify", read_classified),
    ],
)
def test_the_items_and_behind_each_its_copies_are_written(folder, capsys, name, task, read):
    assert main(["augment", "--task", task, name, "--copies", "3", "--seed", "5", "--out", "more"]) == 0
    items = [item for item in read(folder / name) if not isinstance(item, list) or item]
    copies = altered_copies(items, task, 3, seed=5)
    wanted = [row for item, more in zip(items, copies) for row in (item, *more)]
    assert read(folder / "more") == wanted and len(wanted) > len(items)
    added = len(wanted) - len(items)
    assert capsys.readouterr().out == f"more: {len(items)} as they were, {added} altered copies\n"
    if name == "people.conll":
        assert all(isinstance(item, Sentence) and item.tokens for item in wanted)


def test_synonyms_and_translations_stand_behind_each_other(folder):
    arguments = ["--synonyms", "synonyms.txt", "--by", "synonyms", "--translate", "sed s/u/U/"]
    assert main(["augment", "--task", "classify", "films.csv", *arguments, "--out", "more"]) == 0
    texts = [example.text for example in read_classified(folder / "more")]
    assert texts == ["fine, really", "good, really", "dull", "dUll"]
    assert (
        main(["augment", "--task", "classify", "films.csv", "--translate", "cat", "--out", "more", "--overwrite"]) == 0
    )
    assert [example.text for example in read_classified(folder / "more")] == ["fine, really", "dull"]


def test_a_file_is_whole_or_as_it_was(folder, capsys):
    (folder / "more").write_text("before")
    work = ["--translate", "head -n 1", "--out", "more", "--overwrite"]
    assert main(["augment", "--task", "classify", "films.csv", *work]) == 2
    assert "must write one line for each line" in capsys.readouterr().err
    assert (folder / "more").read_text() == "before"


def test_a_place_that_cannot_be_written_is_refused_before_the_work(folder, capsys):
    for out, message in {"none/more": "none/more: needs a folder that exists", ".": "needs a file to write"}.items():
        work = ["--translate", "touch began; cat", "--out", out]
        assert main(["augment", "--task", "classify", "films.csv", *work]) == 2
        assert message in capsys.readouterr().err
    assert not (folder / "began").exists()


@pytest.mark.parametrize(("option", "value"), [("--share", "1.0"), ("--copies", "0"), ("--seed", "-1")])
def test_a_number_out_of_range_is_named_as_the_option_is(folder, capsys, option, value):
    assert main(["augment", "--task", "classify", "films.csv", option, value, "--out", "more"]) == 2
    assert capsys.readouterr().err.startswith(f"kcrf augment: {option} must be ")


def test_the_file_that_is_read_is_not_replaced(folder, capsys):
    (folder / "link.csv").symlink_to(folder / "films.csv")
    for out in ("films.csv", "./films.csv", "link.csv"):
        assert main(["augment", "--task", "classify", "films.csv", "--out", out]) == 2
        assert f"--out needs another file than the input. Received: {out}" in capsys.readouterr().err
        assert (folder / "films.csv").read_text() == FILES["films.csv"]


@pytest.mark.parametrize("given", [["--copies", "3"], ["--share", "0.5"], ["--synonyms", "none"]])
def test_options_for_copies_that_a_translation_replaces_are_refused(folder, capsys, given):
    arguments = ["augment", "--task", "classify", "films.csv", "--translate", "cat", *given, "--out", "more"]
    assert main(arguments) == 2
    assert f"{given[0]} together with --translate needs --by" in capsys.readouterr().err
    assert not (folder / "more").exists()


def test_options_for_the_data_of_another_task_are_refused(folder, capsys):
    for given, needed in ((["--fields", "1,0"], "classify"), (["--column", "1"], "ner"), (["--repair"], "ner")):
        assert main(["augment", "--task", "cws", "words.txt", *given, "--out", "more"]) == 2
        assert f"{given[0]} needs --task {needed}. Received: --task cws" in capsys.readouterr().err
