"""kcrf.training: Sentences with some unknown labels: the loss beside the enumeration of all paths, and the scores."""

import numpy as np
import pytest
from oracles import log_likelihood

from kcrf.augmentation import altered_copies
from kcrf.backend import ops
from kcrf.corpora import Sentence, read_entities, read_tagged
from kcrf.layers import ConditionalRandomField
from kcrf.metrics import entity_scores
from kcrf.readers import CharacterReader, Vocabulary, WordReader
from kcrf.runs import DataFacts, Settings, resolve
from kcrf.tags import bio, bioes, classes
from kcrf.tasks import task_of
from kcrf.training import train_tagger

BACKENDS = ["torch"]
ENTITIES = "李 B-PER\n雷 I-PER\n在 ?\n上 ?\n海 O\n"
CLASSES = "Kim N\nslept ?\nwell A\n. _\n"


@pytest.mark.parametrize(
    ("task", "text", "scheme", "expected"),
    [
        ("ner", ENTITIES, bio(["PER"]), [1, 2, -1, -1, 0]),
        ("ner", ENTITIES, bioes(["PER"]), [1, 3, -1, -1, 0]),
        ("pos", CLASSES, classes(["A", "N", "V"]), [1, -1, 0, -1]),
    ],
)
def test_the_loss_sums_over_the_paths_through_unknown_tags(tmp_path, task, text, scheme, expected):
    (tmp_path / "text").write_text(text, encoding="utf-8")
    sentences = task_of(task).read_file(tmp_path / "text", {"column": -1, "repair": False})
    user = Settings(task=task, **({"scheme": scheme.name} if task == "ner" else {}))
    data = resolve(user, DataFacts(types=scheme.types)).data
    reader = WordReader.of(sentences) if task == "pos" else CharacterReader(Vocabulary.of([sentences[0].text]), None)
    ((_, tags),) = task_of(task).windows(data, None, reader, sentences)
    assert tags == expected
    draw, size = np.random.default_rng(0), len(scheme)
    emissions, transitions = draw.normal(size=(len(tags), size)), draw.normal(size=(size, size))
    crf = ConditionalRandomField(1)
    scores = crf(ops.convert_to_tensor(emissions[None], "float32"))
    crf.set_weights([transitions])
    loss = ops.convert_to_numpy(crf.sparse_loss(ops.convert_to_tensor([tags]), scores))
    np.testing.assert_allclose(loss[0], -log_likelihood(emissions, tags, [True] * len(tags), transitions), rtol=1e-5)


def test_predictions_in_unknown_text_are_not_scored():
    gold = [Sentence("abcdefgh", [(0, 2, "PER"), (5, 6, "LOC")], unknown=[(2, 4), (7, 8)])]
    predicted = [(0, 2, "PER"), (2, 3, "PER"), (3, 5, "LOC"), (5, 7, "LOC"), (7, 8, "LOC")]
    scored = gold[0].scored(predicted)
    assert scored == [(0, 2, "PER"), (5, 7, "LOC")]
    scores = entity_scores([gold[0].spans], [scored])
    assert (scores["correct"], scores["found_entities"], scores["true_entities"]) == (1, 2, 2)


def test_sentences_with_unknown_labels_have_no_copies_and_lend_no_tokens():
    sentences = [
        Sentence("李雷在上海", [(0, 2, "PER")], unknown=[(3, 5)]),
        Sentence("韩梅在北京", [(0, 2, "PER"), (3, 5, "LOC")]),
        Sentence("王五去天津", [(0, 2, "PER"), (3, 5, "LOC")]),
    ]
    first, *others = altered_copies(sentences, "ner", copies=8, operations=["tokens", "mentions"])
    assert first == [] and all(others)
    assert not set("上海李雷") & set("".join(copy.text for copies in others for copy in copies))


@pytest.mark.slow
def test_a_run_with_unknown_labels_finds_what_the_others_do_not_mark(tmp_path):
    """The second name of each sentence is labeled in every third sentence alone."""
    names, towns = ["张三", "李四", "王五", "赵六"], ["北京", "上海", "南京", "天津"]
    parts = []
    for is_unknown in (True, False):
        train = []
        for number in range(96):
            name, town = names[number % 4], towns[number // 4 % 4]
            text, spans = f"{name}住在{town}。", [(0, 2, "PER"), (4, 6, "LOC")]
            partial = [] if number % 3 == 0 or not is_unknown else [(4, 6)]
            train.append(Sentence(text, spans[:1] if number % 3 else spans, unknown=partial))
        parts.append(train)
    test = [Sentence(f"{name}住在{town}。", [(0, 2, "PER"), (4, 6, "LOC")]) for name in names for town in towns]
    small = {"epochs": 6, "batch_size": 8, "width": 16, "depth": 1, "character_width": 8, "bigram_width": 8}
    settings = Settings(task="ner", learning_rate=0.02, lexicon=False, linear_weight=0.0, **small)
    found = [train_tagger(settings, train, test, out=tmp_path / str(i))[1]["valid"] for i, train in enumerate(parts)]
    assert found[0]["types"]["LOC"]["recall"] == 1 > found[1]["types"]["LOC"]["recall"]


def test_what_is_unknown_is_part_of_a_run_s_data(tmp_path):
    for text in (ENTITIES, ENTITIES.replace("海 O", "海 ?")):
        (tmp_path / "text").write_text(text, encoding="utf-8")
        sentences = read_entities(tmp_path / "text")
        content = task_of("ner").content(sentences)
        assert content == [(sentences[0].text, [(0, 2, "PER")], sentences[0].unknown)]
    assert task_of("ner").content([Sentence("a", [])]) == [("a", [])]
    (tmp_path / "text").write_text(CLASSES)
    assert read_tagged(tmp_path / "text")[0].unknown == [(4, 9), (15, 16)]
