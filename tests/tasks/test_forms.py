"""kcrf.tasks.forms: every form of labeled data in memory gives the same sentences, and a tenth is held out."""

import re
from collections import Counter
from types import SimpleNamespace

import numpy as np
import pytest

from kcrf.corpora import Sentence
from kcrf.runs import Settings
from kcrf.tasks import task_of
from kcrf.tasks.forms import items_of
from kcrf.training import train_tagger
from kcrf.training.data import read_data

BACKENDS = ["torch"]
WORDS, TAGS, NAMES = ["Kim", "Lee", "saw", "Rome"], ["B-PER", "I-PER", "O", "B-LOC"], ["O", "B-PER", "I-PER", "B-LOC"]
SPANS = [(0, 7, "PER"), (12, 16, "LOC")]
NUMBERS = [NAMES.index(tag) for tag in TAGS]


class Dataset(list):
    """As Hugging Face's datasets: rows, and the features of their columns."""

    def __init__(self, rows, names):
        super().__init__(rows)
        self.features = {"tokens": SimpleNamespace(), "ner_tags": SimpleNamespace(feature=SimpleNamespace(names=names))}


def frames():
    pandas = pytest.importorskip("pandas")
    rows = pandas.DataFrame({"tokens": [WORDS], "ner_tags": [TAGS]})
    of_tokens = pandas.DataFrame({"Sentence #": ["1", None, None, None], "Word": WORDS, "POS": "x", "Tag": TAGS})
    return [rows, of_tokens]


@pytest.mark.parametrize(
    "part",
    [
        [("Kim Lee saw Rome", SPANS)],
        [("Kim Lee saw Rome", [{"start": 0, "end": 7, "label": "PER"}, {"start": 12, "end": 16, "label": "LOC"}])],
        [(WORDS, TAGS)],
        [[WORDS, TAGS]],
        [list(zip(WORDS, TAGS))],
        [(np.array(WORDS), np.array(TAGS))],
        [("Kim Lee saw Rome", {"entities": SPANS})],
        [("Kim Lee saw Rome", [(np.int64(start), np.int64(end), label) for start, end, label in SPANS])],
        [(WORDS, TAGS), ([], [])],
        [{"tokens": WORDS, "ner_tags": TAGS}],
        [{"text": "Kim Lee saw Rome", "entities": SPANS}],
        Dataset([{"tokens": WORDS, "ner_tags": NUMBERS}], NAMES),
    ],
)
def test_entities_in_every_form(part):
    (sentence,) = items_of("ner", "train", part)
    assert (sentence.text, sentence.spans) == ("Kim Lee saw Rome", SPANS)


def test_tables_of_sentences_and_of_tokens():
    for frame, classes in zip(frames(), (TAGS, "xxxx")):
        (sentence,) = items_of("ner", "train", frame)
        assert (sentence.text, sentence.spans) == ("Kim Lee saw Rome", SPANS)
        assert items_of("pos", "train", frame) == [list(zip(WORDS, classes, strict=True))]


@pytest.mark.parametrize(
    ("task", "part", "items"),
    [
        ("pos", [(WORDS, TAGS)], [list(zip(WORDS, TAGS, strict=True))]),
        ("pos", [[("a", "X"), ("b", "Y")]], [[("a", "X"), ("b", "Y")]]),
        ("cws", [["今天", "好"], {"words": ["天", "气"]}], [["今天", "好"], ["天", "气"]]),
        ("cws", [("今天好", "BES"), (["好"], ["S"])], [["今天", "好"], ["好"]]),
        ("cws", [{"tokens": ["今", "天", "好"], "labels": ["B", "E", "S"]}], [["今天", "好"]]),
        ("cws", (["今天", "好"], ["天", "气"]), [["今天", "好"], ["天", "气"]]),
        ("classify", [{"text": "a", "label": "x"}, ("b", "y")], [("a", "x"), ("b", "y")]),
        ("classify", [{"text": "a", "text_b": "c", "label": "x"}], [("a", "c", "x")]),
    ],
)
def test_other_tasks(task, part, items):
    assert items_of(task, "train", part) == items


@pytest.mark.parametrize(
    ("part", "message"),
    [
        ([{"tokens": WORDS, "ner_tags": NUMBERS}], "`train`, item 1: needs the names of tags, as in names = dataset"),
        ([(WORDS, TAGS[:2])], "`train`, item 1: needs a tag for each token. Received: 4 tokens and 2 tags"),
        (
            [("Kim saw", [("PER", 0, 3)])],
            r"`train`, item 1: needs spans \(start, end, label\). Received: \[.'PER', 0, 3",
        ),
        ([{"txt": "a"}], "`train`, item 1: needs tokens and ner_tags, or text and entities. Received: a dict of txt"),
    ],
)
def test_what_lacks_tags_is_refused_with_its_place(part, message):
    with pytest.raises(ValueError, match=message):
        items_of("ner", "train", part)


@pytest.mark.parametrize(
    ("task", "part", "item", "advice"),
    [
        ("classify", (["a", "b"], ["x", "y"]), ("a", "x"), "list(zip(*train))"),
        ("classify", (["a", "b", "c"], ["x", "y", "x"]), ("a", "x"), "list(zip(*train))"),
        ("classify", (np.array(["a", "b"]), np.array([1, 0])), ("a", 1), "list(zip(*train))"),
        ("pos", ([["a"]], [["X"]]), [("a", "X")], "list(zip(*train))"),
        ("pos", (WORDS, TAGS), list(zip(WORDS, TAGS)), "[train]"),
        ("ner", (["Kim saw"], [[(0, 3, "PER")]]), Sentence("Kim saw", [(0, 3, "PER")]), "list(zip(*train))"),
        ("cws", (["今天", "好"], ["BE", "S"]), ["今天"], "list(zip(*train))"),
        ("cws", (["今", "天"], ["B", "E"]), ["今天"], "[train]"),
        ("cws", [["今天", "好"], ["BE", "S"]], ["今天"], "list(zip(*train))"),
    ],
)
def test_texts_in_one_list_and_labels_in_another_are_refused(task, part, item, advice):
    """Two texts with two labels would be two pairs of texts, or of words; the advice gives the items."""
    with pytest.raises(
        ValueError, match=rf"must be a list of .*, as {re.escape(advice)} is. Received: a {type(part).__name__}"
    ):
        items_of(task, "train", part)
    assert items_of(task, "train", eval(advice, {"train": part}))[0] == item


@pytest.mark.parametrize("task", ["ner", "pos", "cws-pos"])
@pytest.mark.parametrize("outer", [list, tuple])
@pytest.mark.parametrize("inner", [list, tuple])
def test_sentences_of_two_tokens_are_read_as_all_others(task, outer, inner):
    """Two tokens with two tags, as nested lists or tuples, look like two pairs of a token and its tag."""
    pairs = [[*zip(WORDS, TAGS)], [*zip(WORDS[:2], TAGS[:2])], [*zip(WORDS[:1], TAGS[:1])]]
    columns = [list(zip(*sentence, strict=True)) for sentence in pairs]
    wanted = task_of(task).check("train", pairs)
    assert [len(sentence.spans) for sentence in wanted] == ([2, 1, 1] if task == "ner" else [4, 2, 1])
    for part in (pairs, columns):
        made = [outer(map(inner, sentence)) for sentence in part]
        if (outer, inner) == (tuple, list) and part is pairs or (outer, inner) == (list, tuple) and part is columns:
            continue  # what their types say, a list of tuples is of pairs
        assert task_of(task).check("train", made) == wanted


@pytest.mark.parametrize("kind", [list, tuple])
def test_two_tokens_or_two_pairs_alone_are_refused(kind):
    part = [kind([kind(["Kim", "saw"]), kind(["NNP", "VBD"])])] * 2
    for task in ("pos", "cws-pos"):
        with pytest.raises(ValueError, match=r"`train` must have \(.token, ....*Received: .{2}'Kim', 'saw'"):
            task_of(task).check("train", part)


@pytest.mark.parametrize("part", [None, 3, True])
def test_what_is_no_list_is_refused(part):
    with pytest.raises(ValueError, match=f"`train` must be a list for task='ner'. Received: {part}"):
        items_of("ner", "train", part)


NUMBERED = {"tokens": WORDS, "ner_tags": NUMBERS, "pos_tags": [0, 0, 1, 0]}


def datasets_of(rows, **names):
    part = Dataset(rows, NAMES)
    part.features = {key: SimpleNamespace(feature=SimpleNamespace(names=each)) for key, each in names.items()}
    return part


def test_words_get_their_classes_and_not_their_entities():
    """conll2003 has both, and so has Kaggle's table."""
    part = datasets_of([NUMBERED], ner_tags=NAMES, pos_tags=["NNP", "VBD"])
    pairs = list(zip(WORDS, ["NNP", "NNP", "VBD", "NNP"]))
    assert items_of("pos", "train", part) == [pairs]
    assert items_of("ner", "train", part)[0].spans == SPANS
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"Sentence #": 1, "Word": WORDS, "POS": [pos for _, pos in pairs], "Tag": TAGS})
    assert items_of("pos", "train", frame) == [pairs]
    assert items_of("ner", "train", frame)[0].spans == SPANS


def test_numbers_of_classes_in_every_form():
    label = SimpleNamespace(names=["neg", "pos"])
    for number in (1, np.int64(1), np.array(1)):
        part = datasets_of([{"text": "a", "label": number}])
        part.features = {"label": label}
        assert items_of("classify", "train", part) == [("a", "pos")]
    part = datasets_of([{"text": "a", "label": -1}, {"text": "b", "label": 1}])  # a test set of GLUE
    part.features = {"label": label}
    with pytest.raises(ValueError, match="`train`, text 1: `label` must be text"):
        task_of("classify").check("train", part)
    part = datasets_of([{"tokens": WORDS, "ner_tags": np.array([1, 2, 0, -100])}], ner_tags=NAMES)
    (sentence,) = items_of("ner", "train", part)
    assert (sentence.spans, sentence.unknown) == (SPANS[:1], [(12, 16)])


@pytest.mark.parametrize(
    ("row", "item"),
    [
        ({"review": "a", "sentiment": "x"}, ("a", "x")),
        ({"sentence1": "a", "sentence2": "b", "label": 1, "idx": 0}, ("a", "b", 1)),
        ({"premise": "a", "hypothesis": "b", "label": "x"}, ("a", "b", "x")),
        ({"text": "a", "text_b": None, "label": "x"}, ("a", "x")),
    ],
)
def test_columns_of_texts_have_the_names_that_files_may_have(row, item):
    assert items_of("classify", "train", [row]) == [item]


@pytest.mark.parametrize("label", ["", None, 5, "a\nb"])
def test_types_of_entities_are_text(label):
    with pytest.raises(ValueError, match="item 1: needs spans .*a label must be text that can be printed"):
        items_of("ner", "train", [("Kim saw", [(0, 3, label)])])


@pytest.mark.parametrize("pair", [("今天好", "BE"), (["今天", "好"], ["BE", "S"])])
def test_each_character_needs_a_tag(pair):
    with pytest.raises(ValueError, match="`train`, item 2: needs a tag BMES for each character. Received: "):
        items_of("cws", "train", [("今天好", "BES"), pair])


def test_characters_are_no_words_in_memory(tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"sentence_id": [0, 0, 0], "word": list("今天好"), "tag": list("BES")})
    assert items_of("cws", "train", frame) == [["今天", "好"]]
    with pytest.raises(ValueError, match="`train`:1: needs words separated by spaces. Received: characters"):
        task_of("cws").check("train", [list("今天天气真好")] * 20)
    assert len(task_of("cws").check("train", {"characters": [list("今天天气真好")] * 20})) == 20
    both = {"characters": [list("今天天气真好")] * 30, "words": [["今天", "天气", "真", "好"]] * 20}
    for limit, expected in ((None, (27, 18)), (10, (6, 4))):  # a tenth of each standard is held out
        parts = read_data(Settings(limit=limit), both).parts
        counts = [Counter(sentence.standard for sentence in part) for part in parts.values()]
        assert [counts[0][name] for name in both] == list(expected)
        assert [counts[1][name] for name in both] == [3, 2]
    with pytest.raises(ValueError, match="`train`, sentence 1: needs a list of words without white space"):
        task_of("cws").check("train", [["今天", None], ["好"]])


def test_tags_in_one_string_are_refused():
    with pytest.raises(ValueError, match="`train`, sentence 1: needs a `Sentence` or .text, spans.. Received: "):
        task_of("ner").check("train", [(WORDS, "B-PER I-PER O B-LOC")])


def test_a_path_and_swapped_arguments_are_refused(tmp_path):
    with pytest.raises(TypeError, match="for a file, call kcrf.corpora.read_entities. Received: 'train.conll'"):
        train_tagger(Settings(task="ner"), "train.conll", out=tmp_path / "run")
    with pytest.raises(TypeError, match="`settings` must be a `Settings`, before the data. Received: list"):
        train_tagger([], Settings(task="ner"), out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_without_a_validation_set_a_tenth_is_held_out_by_the_seed():
    sentences = [Sentence(f"Kim {number}", [(0, 3, "PER")]) for number in range(20)]
    data = [read_data(Settings(task="ner", seed=seed), sentences) for seed in (0, 0, 1)]
    assert list(data[0].parts) == ["train", "valid"] and len(data[0].parts["valid"]) == 2
    assert data[0].parts == data[1].parts != data[2].parts
    whole = sorted(s.text for part in data[0].parts.values() for s in part)
    assert whole == sorted(s.text for s in sentences)
    with pytest.raises(ValueError, match="`incomplete` needs `valid`"):
        read_data(Settings(task="ner", incomplete=True), sentences)


@pytest.mark.parametrize("token", ["-DOCSTART-", "#", "a\tb", "a\nb", " ", "1", "word", "2-3"])
def test_tokens_in_memory_are_not_read_as_lines_of_a_file(token):
    """In a file, such a line would be a comment, a number, the names of columns, or two columns."""
    first, second = items_of("ner", "train", [([token, "Kim"], ["O", "B-PER"]), ([token], ["O"])])
    assert first.text.startswith(token) and len(first.tokens) == 2 and first.spans[0][2] == "PER"
    assert (second.text, second.spans) == (token, [])


@pytest.mark.parametrize(
    ("part", "message"),
    [
        ([(["Kim", float("nan")], ["B-PER", "O"])], "item 1: needs strings that are not empty. Received: nan"),
        ([(WORDS, TAGS), (["Kim"], [float("nan")])], "item 2: needs strings that are not empty. Received: nan"),
        ([(["Kim", ""], ["B-PER", "O"])], "item 1: needs strings that are not empty. Received: ''"),
        ([("Kim", [{"text": "Kim", "label": "PER"}])], r"item 1: needs spans \(start, end, label\)"),
        ([("Kim", [(0.0, 3.0, "PER")])], r"item 1: needs spans \(start, end, label\)"),
    ],
)
def test_missing_cells_and_offsets_are_no_words(part, message):
    with pytest.raises(ValueError, match=message):
        items_of("ner", "train", part)


def test_empty_cells_of_any_kind_continue_a_sentence():
    pandas = pytest.importorskip("pandas")
    for cells in ([7, None, 8, None], pandas.array([7, None, 8, None], "Int64"), pandas.array(["a", None, "b", None])):
        sentences = items_of("ner", "train", pandas.DataFrame({"sentence_id": cells, "word": WORDS, "tag": TAGS}))
        assert [sentence.text for sentence in sentences] == ["Kim Lee", "saw Rome"]


def test_rows_of_a_sentence_that_are_apart_are_refused():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"sentence_id": [0, 1, 0, 1], "words": WORDS, "labels": TAGS})
    for task in ("ner", "pos"):
        with pytest.raises(ValueError, match="the rows of each sentence must follow each other. Received: sentence_id"):
            items_of(task, "train", frame)


def test_tables_with_a_sentence_in_each_row_are_split_at_spaces():
    pandas = pytest.importorskip("pandas")
    tokens, tags = ["Kim saw New York", "Ada"], ["B-PER O B-LOC I-LOC", "B-PER"]
    frame = pandas.DataFrame({"sentence_id": [7, 8], "tokens": tokens, "tags": tags})
    (first, second) = items_of("ner", "train", frame)
    assert first.spans == [(0, 3, "PER"), (8, 16, "LOC")] and second.spans == [(0, 3, "PER")]
    split = [list(zip(words.split(), kinds.split(), strict=True)) for words, kinds in zip(tokens, tags, strict=True)]
    assert items_of("pos", "train", frame) == items_of("cws-pos", "train", frame[["tokens", "tags"]]) == split
    one_each = frame.assign(tokens=["New York", "Ada"], tags=["B-PLACE", "B-PER"])  # a row for each token
    assert items_of("ner", "train", one_each)[0].spans == [(0, 8, "PLACE")]
    frame = frame.map(lambda cell: str(cell.split()) if isinstance(cell, str) else cell)
    with pytest.raises(ValueError, match="needs lists of tokens and tags. Received: the string .*use ast.literal_eval"):
        items_of("pos", "train", frame)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"token": [float("nan"), "saw"], "tag": ["B-PER", "O"]}, "item 1: needs strings that are not empty.*: nan"),
        ({"token": ["Kim", "saw"], "kind": ["B-PER", "O"]}, "a column ner_tags or .*: sentence_id, token, kind$"),
        ({"tokens": [["Kim"], ["Ada"]], "tags": [[np.int64(1)], [np.int64(0)]]}, "the names of tags.* such as 1$"),
        ({"tokens": [["Kim", "saw"], ["Ada"]], "tags": [["O", -100], ["O"]]}, "the names of tags.* such as -100$"),
    ],
)
def test_tables_that_lack_something_say_what(columns, message):
    pandas = pytest.importorskip("pandas")
    with pytest.raises(ValueError, match=message):
        items_of("ner", "train", pandas.DataFrame({"sentence_id": [0, 0], **columns}))


def test_words_with_classes_have_no_white_space_inside():
    """A segmenter splits texts at white space, so words with some would be found in validation alone."""
    items = [[("New York", "N"), ("\u3000", "X"), ("好", "A")]]
    (sentence,) = task_of("cws-pos").check("train", items)
    assert (sentence.text, sentence.spans) == ("NewYork好", [(0, 7, "N"), (7, 8, "A")])


def facts_of(spans, text, units=None):
    sentences = [Sentence(text, spans), Sentence(f"{text} and {text}", spans)]
    return task_of("ner").facts(Settings(task="ner", units=units), {"train": sentences, "valid": sentences})


def test_ends_within_words_are_refused():
    with pytest.raises(
        ValueError, match="the end of an entity is the position after .* 'Ki' in 'Kim saw Lee', .* 4 of 4"
    ):
        facts_of([(0, 2, "PER"), (8, 10, "PER")], "Kim saw Lee")
    for text in ("é Kim saw Lee", "Ж Kim saw Lee"):  # offsets in bytes
        with pytest.raises(ValueError, match="needs entities of whole words"):
            facts_of([(3, 6, "PER"), (11, 13, "PER")], text)
    facts_of([(0, 3, "PER"), (8, 11, "PER")], "Kim saw Lee")
    facts_of([(0, 2, "PER")], "李雷在")
    facts_of([(0, 2, "LOC")], "서울은 크다")  # a particle follows
    facts_of([(0, 1, "NUMBER"), (1, 3, "UNIT")], "5km away")
    assert facts_of([(0, 2, "PER")], "Kim saw Lee", "characters").units == "characters"


@pytest.mark.parametrize(
    ("end", "after", "is_noted"), [(2, ("来了", "说"), True), (3, ("来了", "说"), False), (3, ("来", "来了"), False)]
)
def test_the_same_letter_after_each_entity_is_noted(end, after, is_noted, capsys):
    names = ["".join(chr(first + number) for first in (0x4E00, 0x5000, 0x6000)) for number in range(12)]
    sentences = [Sentence(name + verb, [(0, end, "PER")]) for name in names for verb in after]
    task_of("ner").facts(Settings(task="ner"), {"train": sentences, "valid": sentences})
    note = "train: the same letter follows 12 of 12 repeated entities, as '怀' follows '一倀'"
    assert (capsys.readouterr().err.count(note.replace("怀", names[0][2]).replace("一倀", names[0][:2]))) == is_noted


@pytest.mark.parametrize(("labels", "alike"), [("LOC loc PER Per ORG", "LOC, PER, Per, loc"), ("LOC LOCATION", None)])
def test_types_that_differ_in_case_alone_are_noted(labels, alike, capsys):
    sentences = [Sentence("李雷", [(0, 2, label)]) for label in labels.split()]
    facts = task_of("ner").facts(Settings(task="ner"), {"train": sentences, "valid": sentences})
    assert set(facts.types) == {*labels.split()}
    note = f"train: types that differ in upper and lower case alone are different types: {alike}\n"
    assert capsys.readouterr().err == (note if alike else "")


@pytest.mark.parametrize(("known", "is_noted"), [(3, True), (2, False)])
def test_a_test_set_of_training_texts_is_told(known, is_noted, tmp_path, capsys):
    train = [["今天", "天气", str(number)] for number in range(8)]
    test = train[:known] + [["我们", str(number)] for number in range(2)]
    settings = Settings(encoder="linear", epochs=1, augment=0)
    train_tagger(settings, train, test=test, out=tmp_path / "run", progress=False)
    note = "test: 3 of 5 texts are in the training data, too; scores will be too high"
    error = capsys.readouterr().err
    assert (note in error) is is_noted and "valid:" not in error
