"""kcrf.corpora: Public corpora with Chinese entities, in the JSON of CLUENER and of the releases of CMeEE."""

import json

import pytest

from kcrf.corpora import Sentence, read_classified, read_entities, read_segmented

BACKENDS = ["torch"]
TEXT = "李雷在李雷的上海"
GOLD = Sentence(TEXT, [(0, 2, "name"), (3, 5, "name"), (6, 8, "address")])
EMPTY = Sentence("没有", [])


def cluener(end=0):
    """The objects of two texts. `end` is added to the ends, which are included."""
    label = {"address": {"上海": [[6, 7 + end]]}, "name": {"李雷": [[0, 1 + end], [3, 4 + end]]}}
    return [{"text": EMPTY.text, "label": {}}, {"text": TEXT, "label": label}]


def cmeee(end=0):
    """The same in the form of CMeEE; the first text has no entity, from which the form could be known."""
    places = [(6, 7, "address"), (0, 1, "name"), (3, 4, "name")]
    entities = [
        {"start_idx": start, "end_idx": last + end, "type": label, "entity": TEXT[start : last + 1]}
        for start, last, label in places
    ]
    return [{"text": EMPTY.text, "entities": []}, {"text": TEXT, "entities": entities}]


def write(folder, items, as_array=False):
    path = folder / "corpus.json"
    text = json.dumps(items, ensure_ascii=False, indent=1) if as_array else "\n".join(map(json.dumps, items))
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("as_array", [False, True])
@pytest.mark.parametrize("end", [0, 1])
@pytest.mark.parametrize("items", [cluener, cmeee])
def test_the_end_is_included_or_not_as_the_texts_of_the_entities_say(items, end, as_array, tmp_path, capsys):
    assert read_entities(write(tmp_path, items(end), as_array)) == [EMPTY, GOLD]
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("items", [cluener, cmeee])
def test_an_entity_that_fits_neither_way_is_named_with_its_line(items, tmp_path):
    for end in (-1, 2):
        with pytest.raises(ValueError, match="corpus.json:2: start and end of an entity must .*the first of 3 such"):
            read_entities(write(tmp_path, items(end)))


def test_the_ends_of_a_file_are_read_in_one_way(tmp_path):
    mixed = [*cmeee(1), *cmeee(0), *cmeee(1)]
    with pytest.raises(
        ValueError, match="corpus.json:4: start and end .* Received: '李' at 0, 1 for '李雷', the first of 3"
    ):
        read_entities(write(tmp_path, mixed))


def test_offsets_in_another_unit_are_named(tmp_path):
    entity = {"start_idx": 2, "end_idx": 3, "type": "PER", "entity": "李雷"}
    with pytest.raises(ValueError, match="corpus.json:1: .* fit as UTF-16 code units"):
        read_entities(write(tmp_path, [{"text": "😀李雷", "entities": [entity]}]))


@pytest.mark.parametrize(
    ("item", "message"),
    [
        ({"text": TEXT, "label": {"name": {"李雷": [[0]]}}}, "needs an object as CLUENER has it"),
        ({"text": TEXT, "label": {"name": [[0, 1]]}}, "needs an object as CLUENER has it"),
        ({"text": TEXT, "label": {"": {"李雷": [[0, 1]]}}}, "needs .* a label must be text"),
        ({"text": TEXT, "label": {"name": {"李雷": [["0", "1"]]}}}, "needs .* start and end must be ints"),
        ({"label": {}}, "needs an object as CLUENER has it.* 'text'"),
    ],
)
def test_an_object_of_another_form_is_named_with_its_line(item, message, tmp_path):
    with pytest.raises(ValueError, match=f"corpus.json:3: {message}"):
        read_entities(write(tmp_path, [*cluener(), item]))


@pytest.mark.parametrize("member", ["start_idx", "end_idx", "type", "entity"])
def test_an_entity_of_cmeee_has_all_four_members(member, tmp_path):
    items = cmeee()
    items[1]["entities"][2].pop(member)
    with pytest.raises(ValueError, match=f"corpus.json:2: needs an object as CMeEE has it.*'{member}'"):
        read_entities(write(tmp_path, items))


def nested():
    items = cmeee()
    items[1]["entities"].append({"start_idx": 3, "end_idx": 7, "type": "place", "entity": TEXT[3:]})
    return items


def test_nested_entities_are_refused_or_the_longer_ones_kept_with_a_note(tmp_path, capsys):
    path = write(tmp_path, nested())
    with pytest.raises(
        ValueError, match="corpus.json:2: entities must not overlap; `repair=True`.* first of 2 overlaps"
    ):
        read_entities(path)
    assert read_entities(path, repair=True)[1].spans == [(0, 2, "name"), (3, 8, "place")]
    assert "2 of 4 entities overlap a longer entity" in capsys.readouterr().err


@pytest.mark.parametrize(("pairs", "is_read"), [(666, False), (667, True)])
def test_less_than_one_overlap_in_a_thousand_entities_is_read_with_a_note(pairs, is_read, tmp_path, capsys):
    """The training set of CLUENER has two in 23,971. Here are two in 3 * pairs + 1."""
    items = cluener() * (pairs - 1) + [{"text": TEXT, "label": {**cluener()[1]["label"], "book": {"雷在李": [[1, 3]]}}}]
    path = write(tmp_path, items)
    if not is_read:
        with pytest.raises(ValueError, match="corpus.json:1331: .* the first of 2 overlaps"):
            read_entities(path)
        return
    sentences = read_entities(path)
    assert sentences[-1].spans == [(1, 4, "book"), (6, 8, "address")]
    assert sentences[1:-1:2] == [GOLD] * (pairs - 1)
    assert (
        "2 of 2,002 entities overlap a longer entity, or an earlier one of the same length, and are omitted; the "
        "first one is in line 1333" in capsys.readouterr().err
    )


@pytest.mark.parametrize("items", [cluener()[1:], cmeee()[1:]])
def test_readers_of_other_tasks_name_the_task_of_entities(items, tmp_path):
    path = write(tmp_path, items)
    for read in (read_segmented, read_classified):
        with pytest.raises(ValueError, match="corpus.json: needs .* Received: .*entities.*, which --task ner"):
            read(path)
