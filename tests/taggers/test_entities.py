"""Tests of kcrf.taggers.

Entities from CoNLL files to spans with confidences: recognizer, command line, readers, unusual data.
"""

import json
import shutil
from itertools import product

import numpy as np
import pytest
from conftest import few
from decoders import keys, tuples, ways
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from kcrf import commands
from kcrf.backend import backend_name, ops
from kcrf.corpora import Sentence, load_mini, read_entities
from kcrf.corpora.entities import entity_line
from kcrf.linear import LinearModel
from kcrf.metrics import entity_scores
from kcrf.networks.linear_networks import LinearTaggingNetwork
from kcrf.readers import CharacterNGrams, CharacterReader, PieceReader, Vocabulary, spans_of_units, tags_of_units
from kcrf.runs import Settings
from kcrf.taggers import EntityRecognizer, Span, WordSegmenter, load_tagger
from kcrf.taggers.constraints import SpanConstraints
from kcrf.taggers.decoder import Decoder, ignore
from kcrf.taggers.spans import part_of
from kcrf.tags import bio, bioes, bmes
from kcrf.tasks.task import tagged_windows
from kcrf.training import train_tagger
from kcrf.training.batches import Batches

TINY = {
    "task": "ner",
    "width": 16,
    "depth": 1,
    "batch_size": 8,
    "epochs": 3,
    "learning_rate": 0.02,
    "linear_weight": 0.0,
}
CORPUS = load_mini("ner")


def some(sentences, count):
    """The first ones; but on torch of one length bucket, since the other backends compile each for seconds."""
    return [s for s in sentences if backend_name() == "torch" or 8 < len(s.text) <= 16][:count]


TEST = some(CORPUS.test, 12)
DATA = {"train": some(CORPUS.train, 120), "valid": some(CORPUS.valid, 12)}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("entities") / "run"
    train_tagger(Settings(**TINY), **DATA, test=TEST, out=folder)
    return folder


@pytest.fixture(scope="module")
def recognizer(run):
    return EntityRecognizer(run)


@pytest.fixture(scope="module")
def recognizer_without_ngrams(tmp_path_factory):
    """N-gram features see two characters of the text beyond the edge of a window; this model does not."""
    folder = tmp_path_factory.mktemp("entities") / "run"
    train_tagger(Settings(**TINY, ngrams=False), **DATA, out=folder)
    return EntityRecognizer(folder)


@pytest.mark.once
def test_the_scores_of_the_run_are_those_of_what_it_finds(run, recognizer):
    found = recognizer.recognize_batch([sentence.text for sentence in TEST])
    spans = [[(e.start, e.end, e.label) for e in entities] for entities in found]
    scores = entity_scores([sentence.spans for sentence in TEST], spans)
    assert json.loads((run / "scores.json").read_text())["test"] == json.loads(json.dumps(scores))
    assert scores["f"] > 0.1
    lines = [json.loads(line) for line in (run / "predictions.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [line["text"] for line in lines] == [sentence.text for sentence in TEST]
    assert [[tuple(span) for span in line["gold"]] for line in lines] == [s.spans for s in TEST]
    assert [[tuple(span[:3]) for span in line["found"]] for line in lines] == spans


@pytest.mark.once
def test_transitions_are_told_for_every_epoch(run):
    told = json.loads((run / "transitions.json").read_text())
    assert told["labels"] == list(bio(["LOC", "ORG", "PER"]).labels)
    assert [epoch for epoch, _ in told["epochs"]] == [1, 2, 3]
    assert np.shape(told["epochs"][0][1]) == (7, 7)
    assert "viterbi_differs" in (run / "log.csv").read_text()


def path_probabilities(tagger, text):
    """The probability of every tag sequence, by enumeration in float64; constraints forbid what is illegal."""
    emissions = tagger.decoder.emissions([text]).astype(float)
    trans = np.zeros((7, 7)) if tagger.crf is None else ops.convert_to_numpy(tagger.crf.trans).astype(float)
    paths = list(product(range(7), repeat=len(text)))
    scores = np.array(
        [
            sum(emissions[i, tag] for i, tag in enumerate(path)) + sum(trans[a, b] for a, b in zip(path, path[1:]))
            for path in paths
        ]
    )
    scores = np.exp((scores - scores.max()) / tagger.network.temperature)
    if tagger.crf is not None and tagger.crf.constraints:
        scheme = tagger.scheme
        scores *= [tuple(scheme.encode(scheme.decode(path), len(path))) == path for path in paths]
    return dict(zip(paths, scores / scores.sum(), strict=True))


def posterior(probabilities, scheme, start, end, label):
    """The probability of an entity, summed over the sequences that have it."""
    tags, inside = tuple(scheme.encode([(0, end - start, label)], end - start)), scheme.labels.index(f"I-{label}")
    return sum(p for path, p in probabilities.items() if path[start:end] == tags and path[end : end + 1] != (inside,))


@pytest.mark.slow
@pytest.mark.parametrize("limit", [0.02, 0.1, 0.3, 0.6])
def test_all_entities_above_a_confidence_are_found_the_surest_where_they_overlap(limit, run):
    tagger = load_tagger(run)
    tagger.decoder.min_probability = limit
    texts = [sentence.text[:5] for sentence in CORPUS.test[:6]]
    for text, found in zip(texts, tuples(tagger, texts), strict=True):
        probabilities, scheme, expected = path_probabilities(tagger, text), tagger.scheme, {}
        spans = [(a, b, label) for a in range(5) for b in range(a + 1, 6) for label in scheme.types]
        by_posterior = {span: posterior(probabilities, scheme, *span) for span in spans}
        for span in sorted(by_posterior, key=by_posterior.get, reverse=True):
            if by_posterior[span] >= limit and all(span[1] <= other[0] or span[0] >= other[1] for other in expected):
                expected[span] = by_posterior[span]
        assert [span[:3] for span in found] == sorted(expected)
        assert_allclose([span[3] for span in found], [expected[span[:3]] for span in found], atol=1e-5)


@pytest.mark.once
@pytest.mark.parametrize("scheme", [bio(["A", "B"]), bioes(["A", "B"])])
def test_a_known_entity_that_a_window_cuts_is_returned_whole_whatever_the_least_confidence(scheme):
    random, reader = np.random.default_rng(0), CharacterReader(Vocabulary.of(["甲乙"]), ngrams=CharacterNGrams(64))
    model = LinearModel(scheme, random.normal(size=(64, len(scheme))).astype("float32"), np.zeros((len(scheme),) * 2))
    tagger = Decoder(LinearTaggingNetwork(model), reader, min_probability=0.05)
    for length, span in ((140, (100, 135, "B")), (300, (100, 200, "B")), (300, (0, 300, "A"))):
        text = "".join(random.choice(list("甲乙"), length))
        (found,) = tuples(tagger, [text], constraints=[SpanConstraints([span], [])])
        assert [row for row in found if row[0] < span[1] and row[1] > span[0]] == [(*span, pytest.approx(1.0))]


@pytest.mark.once
@pytest.mark.parametrize("scheme", [bio(["A"]), bioes(["A"])])
@pytest.mark.parametrize("text", ["甲 乙 甲", " 乙甲 ", "  甲  "])
def test_white_space_at_the_edges_of_an_entity_is_not_part_of_it(scheme, text):
    random, reader = np.random.default_rng(len(text)), CharacterReader(None, None, CharacterNGrams(64))
    model = LinearModel(scheme, *(random.normal(size=(n, len(scheme))).astype("float32") for n in (64, len(scheme))))
    tagger = Decoder(LinearTaggingNetwork(model), reader)
    emissions, expected = tagger.emissions([text]), {}
    for path in product(range(len(scheme)), repeat=len(text)):
        spans = scheme.decode(list(path))
        if scheme.encode(spans, len(text)) == list(path):
            inside = [[i for i in range(start, end) if text[i] != " "] for start, end, _ in spans]
            key = tuple((min(i), max(i) + 1, label) for i, (*_, label) in zip(inside, spans, strict=True) if i)
            score = emissions[range(len(text)), path].sum() + model.transitions[path[:-1], path[1:]].sum()
            expected.setdefault(key, []).append(score)
    found = {tuple(spans): p for spans, p in ways(tagger, [text], 10_000)[0]}
    assert found.keys() == expected.keys()
    sums = np.array([np.exp(expected[key]).sum() for key in found])
    assert_allclose(list(found.values()) / np.max(list(found.values())), sums / sums.max(), rtol=1e-4)
    best = list(max(expected, key=lambda key: max(expected[key])))
    assert keys(tagger, [text]) == [best]
    (found,) = tuples(tagger, [text])
    assert [span[:3] for span in found] == best
    total = sum(np.exp(scores).sum() for scores in expected.values())

    def posterior(span):
        return sum(np.exp(scores).sum() for key, scores in expected.items() if span[:3] in key) / total

    assert_allclose([span[3] for span in found], [posterior(span) for span in found], rtol=1e-4)
    for limit in (0.1, 0.3, 0.6):
        (found,) = tuples(Decoder(tagger.network, reader, min_probability=limit), [text])
        assert_allclose([span[3] for span in found], [posterior(span) for span in found], rtol=1e-4)
        sure = {span for key in expected for span in key if posterior(span) >= max(limit, 0.501)}
        assert sure <= {span[:3] for span in found}
    given = SpanConstraints([(0, len(text), "A")], [])
    assert keys(tagger, [text], constraints=[given]) == [[(0, len(text), "A")]]


@pytest.mark.slow
def test_a_run_keeps_its_confidence_and_a_user_may_ask_for_another(run, tmp_path, capsys):
    settings = Settings(**{**TINY, "epochs": 2}, scheme="bioes", min_probability=0.05)
    tagger, scores = train_tagger(settings, **DATA, test=TEST, out=tmp_path / "run")
    texts = [sentence.text for sentence in TEST]
    found = EntityRecognizer(tmp_path / "run").recognize_batch(texts)
    assert scores["test"]["found_entities"] == sum(map(len, found)) == sum(map(len, keys(tagger, texts)))
    assert all(e.probability >= 0.05 for row in found for e in row)
    assert any(e.probability < 0.5 for row in found for e in row)
    more = EntityRecognizer(run, min_probability=0.01).recognize_batch(texts)
    assert sum(map(len, more)) > sum(map(len, EntityRecognizer(run, min_probability=0.9).recognize_batch(texts)))
    (tmp_path / "text.txt").write_text("\n".join(texts), encoding="utf-8")
    assert commands.main(["tag", "--model", str(run), "--min-probability", "0.01", str(tmp_path / "text.txt")]) == 0
    lines = [json.loads(line)["entities"] for line in capsys.readouterr().out.splitlines()]
    assert [[e["text"] for e in line] for line in lines] == [[e.text for e in row] for row in more]
    assert commands.main(["tag", "--model", str(run), "--min-probability", "1.5"]) == 2
    assert "--min-probability must be above 0 and below 1. Received: 1.5" in capsys.readouterr().err


@pytest.mark.once
@pytest.mark.parametrize("head", few("crf", "softmax", rest="slow"))
def test_confidences_and_alternatives_are_those_of_all_paths(head, run, tmp_path):
    if head == "softmax":
        run = tmp_path / "run"
        train_tagger(Settings(**{**TINY, "epochs": 1}, head="softmax"), **DATA, out=run)
    tagger, text = load_tagger(run), CORPUS.test[0].text[:5]
    tagger.network.temperature = 1.7 if head == "crf" else 1.0
    probabilities = path_probabilities(tagger, text)
    legal = [path for path in sorted(probabilities, key=probabilities.get) if not tagger.scheme.violations(path)]
    best = legal[-1]
    (found,) = tuples(tagger, [text])
    assert [span[:3] for span in found] == tagger.scheme.decode(best)
    for start, end, label, confidence in found:
        assert_allclose(confidence, posterior(probabilities, tagger.scheme, start, end, label), atol=1e-5)
    by_spans = {}
    for path in legal[-6:]:
        spans = tuple(tagger.scheme.decode(path))
        by_spans[spans] = by_spans.get(spans, 0) + probabilities[path]
    (best,) = ways(tagger, [text], 6)
    assert_allclose([p for _, p in best], sorted(by_spans.values(), reverse=True), atol=1e-5)
    assert {tuple(spans) for spans, _ in best} == set(by_spans)


@pytest.mark.once
def test_no_entity_comes_from_an_illegal_path_without_constraints(tmp_path):
    settings = Settings(**{**TINY, "epochs": 1}, constraints=False)
    tagger, _ = train_tagger(settings, CORPUS.train[:24], CORPUS.valid[:4], out=tmp_path / "run")
    text = CORPUS.test[0].text[:5]
    scheme, scores = tagger.scheme, ops.convert_to_numpy(tagger.crf.trans)
    scores = np.where(tagger.scheme.allowed_transitions, scores, 10.0)  # a CRF that prefers what is illegal
    scores[1, 2] = scores[2, 2] = 8.0  # and then a long entity
    tagger.crf.set_weights([scores / tagger.crf.multiplier])
    probabilities = path_probabilities(tagger, text)
    assert scheme.violations(max(probabilities, key=probabilities.get))
    legal = sorted((path for path in probabilities if not scheme.violations(path)), key=probabilities.get)
    (found,) = tuples(tagger, [text])
    assert [span[:3] for span in found] == scheme.decode(legal[-1]) != []
    for *span, confidence in found:
        assert_allclose(confidence, posterior(probabilities, scheme, *span), atol=1e-5)
    assert {tuple(spans) for spans, _ in ways(tagger, [text], 4)[0]} <= {
        tuple(map(tuple, scheme.decode(p))) for p in legal
    }


@pytest.mark.once
def test_where_windows_meet_a_piece_of_an_entity_is_left_out(run):
    tagger = load_tagger(run)
    tags = [tagger.scheme.labels.index(x) for x in ("I-PER", "O", "B-PER", "I-PER", "I-LOC", "O", "B-LOC")]
    assert tagger.decoder._spans_of_tags(tags) == [(2, 4, "PER"), (6, 7, "LOC")]


@pytest.mark.once
def test_a_long_document_is_its_sentences_and_loses_no_entity(recognizer_without_ngrams):
    recognizer = recognizer_without_ngrams
    sentences = [sentence.text for sentence in CORPUS.valid[:40] if sentence.text.endswith("。")]
    document, expected, start = "".join(sentences), [], 0
    (whole,) = recognizer.recognize_batch([document])
    for window in recognizer.reader.read([document])[0].windows:
        stretch = document[window.keep[0] : window.keep[1]]
        for entity in recognizer.recognize(stretch):
            expected.append((entity.start + start, entity.end + start, entity.label, entity.text))
        start += len(stretch)
    assert start == len(document) > 4 * 128
    assert [(e.start, e.end, e.label, e.text) for e in whole] == expected and expected
    assert all(document[e.start : e.end] == e.text and 0 <= e.probability <= 1 for e in whole)


@pytest.mark.once
def test_alternatives_of_a_long_document_multiply_those_of_its_windows(recognizer_without_ngrams):
    recognizer = recognizer_without_ngrams
    sentences = [sentence.text for sentence in CORPUS.valid[:30] if sentence.text.endswith("。")]
    document = "".join(sentences)
    windows = recognizer.reader.read([document])[0].windows
    parts = [recognizer.k_best(document[w.keep[0] : w.keep[1]], 1)[0][1] for w in windows]
    best = recognizer.k_best(document, 4)
    assert recognizer.k_best_batch(iter([document]), 4) == [best]
    assert len(best) == 4 and [p for _, p in best] == sorted((p for _, p in best), reverse=True)
    assert_allclose(np.log(best[0][1]), np.sum(np.log(parts)), atol=0.01)


@pytest.mark.once
def test_an_entity_inside_a_token_has_the_place_of_the_token():
    part = part_of(["a", "b c"])  # "a b c", of which a model of characters may tag each
    found = part.as_counted([Span(i, i + 1, part.text[i], "PER", 0.5) for i in (0, 2, 4)])
    assert [(entity.start, entity.end, entity.text) for entity in found] == [(0, 1, "a"), (1, 2, "b"), (1, 2, "c")]


@pytest.mark.once
def test_an_entity_that_only_its_sequences_with_and_without_white_space_together_make_likely_is_found():
    scheme, reader, unlikely_alone = bio(["A"]), CharacterReader(None, None, CharacterNGrams(64)), 0
    for seed in range(100):
        random = np.random.default_rng(seed)
        model = LinearModel(scheme, *(random.normal(size=(n, 3)).astype("float32") for n in (64, 3)))
        tagger = Decoder(LinearTaggingNetwork(model), reader, min_probability=0.6)
        emissions = tagger.emissions([" 甲"])
        scores = {(a, b): emissions[0, a] + model.transitions[a, b] + emissions[1, b] for a in (0, 1) for b in range(3)}
        del scores[0, 2]  # I after O
        total = sum(map(np.exp, scores.values()))
        alone, together = (sum(np.exp(scores[way]) for way in some) / total for some in ([(0, 1), (1, 1)], [(1, 2)]))
        if alone + together >= 0.6:
            assert tuples(tagger, [" 甲"]) == [[(1, 2, "A", pytest.approx(alone + together))]]
            unlikely_alone += max(alone, together) < 0.6
    assert unlikely_alone > 5


@pytest.mark.once
def test_a_given_entity_of_white_space_is_refused(recognizer):
    with pytest.raises(ValueError, match=r"must not be white space alone. Received: \(2, 3, 'PER'\) in '李雷 在'"):
        recognizer.recognize("李雷 在", spans=[(2, 3, "PER")])


@pytest.mark.once
@pytest.mark.parametrize(
    "texts",
    [
        ["Kim slept", "Ann left"],
        ["李雷昨天去了上海。王芳", "今天"],
        ("甲\u3000乙",),
        ["Kim left.", "Yes"],
        ["好。", "甲"],
    ],
)
def test_several_texts_are_not_the_tokens_of_one(recognizer, texts):
    with pytest.raises(ValueError, match="must be tokens of one text; `predict` takes several. Received: "):
        recognizer.recognize(texts)


@pytest.mark.once
def test_tokens_may_have_spaces_and_punctuation():
    tokens = ["Mr.", "甲", "。", "……", "1,000", "U.N.", "Việt Nam"]
    assert part_of(tokens).source == tokens


@pytest.mark.once
def test_more_results_than_there_are_and_a_number_that_is_none(recognizer):
    few = recognizer.k_best("甲", 5)
    assert recognizer.k_best("甲", 10**9)[: len(few)] == few
    with pytest.raises(ValueError, match="`k` must be a positive integer. Received: True"):
        recognizer.k_best("甲", True)


@pytest.mark.once
def test_one_text_where_several_are_expected_is_refused(recognizer):
    for method in (recognizer.recognize_batch, recognizer.k_best_batch):
        with pytest.raises(TypeError, match="must be a list of strings; for one text call `.*`. Received: '李雷'"):
            method("李雷")


TEXTS = ["", " ", "好", "a\x00b\x1b\x7f\u0301é", "\ud800李雷", "\ufeff李雷在上海。", "李" * 1000, "一\u2028\r\n三\r"]


@pytest.mark.once
def test_unusual_texts_and_empty_documents_between_others(recognizer):
    batch = recognizer.recognize_batch(TEXTS, batch_size=2)
    assert batch[0] == []
    for text, entities in zip(TEXTS, batch, strict=True):
        assert all(isinstance(e, Span) and text[e.start : e.end] == e.text for e in entities)
        alone = recognizer.recognize(text)
        assert [(e.start, e.end, e.label) for e in alone] == [(e.start, e.end, e.label) for e in entities]


@pytest.mark.once
def test_the_command_line_tags_scores_and_trains_on_what_it_wrote(run, tmp_path, capfdbinary):
    sentences = TEST
    text = tmp_path / "text.txt"
    text.write_bytes("\r\n".join(["", *(sentence.text for sentence in sentences)]).encode())
    assert commands.main(["tag", "--model", str(run), "--k-best", "2", str(text)]) == 0
    out = capfdbinary.readouterr().out
    lines = [json.loads(line) for line in out.decode().splitlines()]
    assert [line["text"] for line in lines] == ["", *(sentence.text for sentence in sentences)]
    assert lines[0]["entities"] == [] and lines[0]["alternatives"] == [{"probability": 1.0, "entities": []}]
    assert all(1 <= len(line["alternatives"]) <= 2 for line in lines[1:])  # two sequences may say the same
    assert set(next(line["entities"][0] for line in lines if line["entities"])) == {
        "start",
        "end",
        "label",
        "text",
        "probability",
    }
    gold, pred = tmp_path / "gold.jsonl", tmp_path / "pred.jsonl"
    pred.write_bytes(out.split(b"\n", 1)[1])
    entities = [[{"start": a, "end": b, "label": label} for a, b, label in s.spans] for s in sentences]
    gold.write_text("".join(entity_line(s.text, es) + "\n" for s, es in zip(sentences, entities)), encoding="utf-8")
    assert commands.main(["score", "--task", "ner", "--gold", str(gold), "--pred", str(pred), "--json"]) == 0
    scores = json.loads(capfdbinary.readouterr().out)
    assert scores == json.loads((run / "scores.json").read_text())["test"]
    assert commands.main(["score", "--task", "ner", "--gold", str(gold), "--pred", str(pred)]) == 0
    assert "macro" in capfdbinary.readouterr().out.decode()
    pred.write_bytes(out)
    assert commands.main(["score", "--task", "ner", "--gold", str(gold), "--pred", str(pred)]) == 2
    assert b"must have the same sentences. Received: sentence 1 ''" in capfdbinary.readouterr().err
    confidences = [entity["probability"] for line in lines for entity in line["entities"]]
    assert all(0 < confidence <= 1 and confidence == round(confidence, 6) for confidence in confidences)


BAD_LINES = {
    '{"text": "ab", "entities": [{"start": 0, "end": 3, "label": "X"}]}': "within its 2 characters",
    '{"text": "abc", "entities": [%s, %s]}' % (('{"start": 0, "end": 2, "label": "X"}',) * 2): "must not overlap",
    '{"text": "ab"}': "KeyError 'entities'",
    '{"text": 7, "entities": []}': "text must be a string",
    '{"text": ["a", "b"], "entities": []}': "text must be a string",
    '{"text": "ab", "entities": [{"start": false, "end": 1, "label": "X"}]}': "must be ints",
    '{"text": "ab", "entities": [{"start": 0, "end": 1, "label": null}]}': "a label must be text",
    '{"text": "ab", "entities": [{"start": 0, "end": 1, "label": ["X"]}]}': "a label must be text",
    '{"text": "ab", "entities": [{"start": 0, "end": 1, "label": ""}]}': "and not empty",
    '{"text": "ab", "entities": [{"start": 0, "end": 1, "label": "\\ud800"}]}': "that can be printed",
    '{"text": "ab", "entities": [{"start": "0", "end": 1, "label": "X"}]}': "must be ints",
    "{broken": "Expecting property name",
}


@pytest.mark.once
@pytest.mark.parametrize("line", BAD_LINES)
def test_json_lines_that_cannot_be_gold_are_told_by_line(line, tmp_path):
    path = tmp_path / "gold.jsonl"
    path.write_text('{"text": "ab", "entities": []}\n\n' + line + "\n")
    with pytest.raises(ValueError, match=f"gold.jsonl:3: .*{BAD_LINES[line]}"):
        read_entities(path)


@pytest.mark.once
def test_illegal_gold_is_refused_before_training_by_file_and_line(tmp_path, capsys):
    path = tmp_path / "gold.conll"
    path.write_text("李 B-PER\n雷 I-PER\n\n在 O\n上 I-LOC\n", encoding="utf-8")
    arguments = ["train", "--task", "ner", "--train", str(path), "--out", str(tmp_path / "run")]
    assert commands.main(arguments) == 2
    assert f"{path}:5: " in capsys.readouterr().err and not (tmp_path / "run").exists()
    path.write_text("李 PER\n", encoding="utf-8")
    assert commands.main(arguments) == 2
    assert f"{path}:1: needs O or a tag like B-PER" in capsys.readouterr().err


@pytest.mark.once
def test_labels_that_training_never_saw_are_missed_and_told(tmp_path, capsys):
    unseen = Sentence("周日", [(0, 2, "DATE")])
    quick = Settings(**{**TINY, "epochs": 1})
    _, scores = train_tagger(quick, **DATA, test=[unseen, Sentence("", []), *CORPUS.test[:3]], out=tmp_path / "run")
    assert scores["test"]["types"]["DATE"]["recall"] == 0 and scores["test"]["types"]["DATE"]["true_entities"] == 1
    assert "test: entities of types that the training set lacks count as missed: DATE (1)" in capsys.readouterr().err


@pytest.mark.slow
def test_a_type_that_the_held_out_part_lacks_and_one_training_sentence(tmp_path):
    one = next(sentence for sentence in CORPUS.train if len({label for *_, label in sentence.spans}) > 1)
    valid = [Sentence(one.text[:2], [])]
    tagger, scores = train_tagger(Settings(**{**TINY, "epochs": 1}), [one], valid, out=tmp_path / "run")
    assert scores["valid"]["true_entities"] == 0 and scores["valid"]["f"] == 0
    assert EntityRecognizer(tmp_path / "run").recognize_batch(["", one.text])[0] == []


@pytest.mark.once
def test_a_single_sentence_needs_a_part_to_choose_the_epoch_by(tmp_path, capsys):
    path = tmp_path / "one.conll"
    path.write_text("李 B-PER\n雷 I-PER\n来 O\n", encoding="utf-8")
    assert commands.main(["train", "--task", "ner", "--train", str(path), "--out", str(tmp_path / "run")]) == 2
    assert f"{path}: one sentence, so none can be held out. Received: no --valid FILE" in capsys.readouterr().err


@pytest.mark.once
def test_parts_that_cannot_be_trained_on_are_refused(tmp_path):
    plain = [Sentence("没有实体", [])]
    with pytest.raises(ValueError, match="`train` needs at least one entity"):
        train_tagger(Settings(**TINY), plain, plain, out=tmp_path / "run")
    with pytest.raises(ValueError, match="`valid` needs at least one sentence with words. Received: 1 empty"):
        train_tagger(Settings(**TINY), DATA["train"], [Sentence("", [])], out=tmp_path / "run")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.once
def test_a_run_of_the_other_task_is_refused_and_a_damaged_one_named(run, tmp_path):
    with pytest.raises(ValueError, match="needs a run of --task cws or cws-pos. Received: one of --task ner"):
        WordSegmenter(run)
    copy = shutil.copytree(run, tmp_path / "run")
    config = json.loads((copy / "config.json").read_text())
    config["settings"]["magic"] = 1
    (copy / "config.json").write_text(json.dumps(config))
    with pytest.raises(ValueError, match="config.json: .*Settings has no 'magic'"):
        EntityRecognizer(copy)
    (copy / "config.json").write_text("[]")
    with pytest.raises(ValueError, match="config.json: needs a JSON object. Received: \\[\\]"):
        EntityRecognizer(copy)


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["bio", "bioes"])
def test_constraints_leave_no_illegal_tags_in_text_cut_anywhere(scheme, tmp_path):
    long = Sentence("李雷" * 200, [(i, i + 40, "PER") for i in range(0, 400, 50)])  # nowhere to cut
    settings = Settings(**{**TINY, "epochs": 2}, scheme=scheme, constraints=True)
    tagger, _ = train_tagger(settings, [long, *DATA["train"]], DATA["valid"], out=tmp_path / "run")
    assert 0 < float((tmp_path / "run" / "log.csv").read_text().splitlines()[-1].split(",")[1]) < 1e4
    decoder = tagger.decoder
    for windows, _, paths in decoder._decode(decoder._read([part_of(long.text)]), 8, ignore):
        for (_, window), path in zip(windows, paths):
            assert tagger.scheme.violations(path[window.positions].tolist()) == []


# ---- readers: units, spans, windows

pieces = PieceReader(
    {"vocab_size": 40, "max_position_embeddings": 32},
    {t: i for i, t in enumerate("[PAD] [UNK] [CLS] [SEP] 北 京 大 学 20 ##08 a ##b c . 年 li ##fe".split())},
    True,
)
characters = CharacterReader(Vocabulary.of(["北京大学2008年"], min_bigrams=1))
some_text = st.text(st.sampled_from("北京大学2008年ab c.\x00life\u0301。，"), max_size=90)


@pytest.mark.once
def test_pieces_make_units_and_their_first_ones_carry_the_tags():
    (reading,) = pieces.read(["北京 2008年 abb"])
    assert reading.units.tolist() == [[0, 1], [1, 2], [3, 7], [7, 8], [9, 12]]
    inputs = reading.windows[0].inputs
    assert inputs["tagged"] == [0, 1, 1, 1, 0, 1, 1, 0, 0, 0]  # [CLS] 北 京 20 ##08 年 a ##b ##b [SEP]
    assert inputs["Input-Token"] == [2, 4, 5, 8, 9, 14, 10, 11, 11, 3] and not any(inputs["Input-Segment"])


@pytest.mark.once
@pytest.mark.parametrize("reader", [pieces, characters], ids=["pieces", "characters"])
@given(some_text)
@example("北京" * 100)  # no place to cut: windows overlap
def test_units_are_apart_and_windows_keep_each_of_them_once(reader, text):
    (reading,) = reader.read([text])
    starts, ends = reading.units[:, 0], reading.units[:, 1]
    assert (starts < ends).all() and (ends[:-1] <= starts[1:]).all() and (ends <= len(text)).all()
    kept = [unit for window in reading.windows for unit in range(*window.keep)]
    assert kept == list(range(len(reading.units)))
    for window in reading.windows:
        lengths = {len(row) for row in window.inputs.values()}
        assert len(lengths) == 1 and lengths.pop() <= (32 if reader is pieces else 128)
        assert window.first <= window.keep[0] and window.keep[1] <= window.first + len(window.positions)
        numbers = np.full(window.length, -1)
        numbers[window.positions] = window.first + np.arange(len(window.positions))
        assert window.kept(numbers).tolist() == list(range(*window.keep))


@pytest.mark.once
@pytest.mark.parametrize("reader", [pieces, characters], ids=["pieces", "characters"])
@given(some_text, st.data())
def test_words_come_back_from_their_tags_unless_cut_inside_a_unit(reader, text, data):
    text = "".join(text.split())
    (reading,) = reader.read([text])
    inner = set(reading.units[1:, 0].tolist())
    cuts = sorted(data.draw(st.sets(st.sampled_from(sorted(inner))))) if inner else []
    words = list(zip([0, *cuts], [*cuts, len(text)], strict=True)) if text else []
    tags = tags_of_units(bmes(), reading.units, words)
    assert -1 not in tags
    assert spans_of_units(bmes(), reading.units, bmes().decode(tags), len(text)) == words


@pytest.mark.once
def test_a_boundary_inside_a_unit_makes_its_tag_unknown():
    (reading,) = pieces.read(["北2008年"])
    scheme = bioes(["T"])
    for span, expected in (((3, 6, "T"), ["O", "?", "E-T"]), ((0, 3, "T"), ["B-T", "?", "O"])):
        tags = tags_of_units(scheme, reading.units, [span])
        assert ["?" if tag < 0 else scheme.labels[tag] for tag in tags] == expected
    assert tags_of_units(scheme, reading.units, [(2, 3, "T"), (3, 4, "T")]) == [0, -1, 0]


@pytest.mark.once
def test_batches_follow_from_seed_and_epoch_and_hold_every_row():
    rows = tagged_windows(CORPUS.train[:90], characters.read_training(CORPUS.train[:90]), bio(["LOC", "ORG", "PER"]))
    batches, same = (Batches(rows, 8, seed=5) for _ in range(2))
    same.draw(3), same.draw(1)  # noqa: B018
    batches.draw(1)
    orders = []
    for drawn in (batches, same):
        orders.append([tags.tolist() for _, tags in (drawn[i] for i in range(len(drawn)))])
    assert orders[0] == orders[1]
    batches.draw(2)
    assert [tags.tolist() for _, tags in (batches[i] for i in range(len(batches)))] != orders[0]
    seen, lengths = set(), []
    for inputs, tags in (batches[i] for i in range(len(batches))):
        assert inputs["characters"].shape == inputs["bigrams"].shape == tags.shape and len(tags) == 8
        assert ((tags == -1) == (inputs["characters"] == 0)).all()
        seen |= {tuple(row[row > 0].tolist()) for row in inputs["characters"]}
        lengths.append(tags.shape[1])
    assert seen == {tuple(inputs["characters"]) for inputs, _ in rows} and lengths[0] != lengths[1]


@pytest.mark.once
def test_batches_by_tokens_have_about_as_many_positions_each():
    rows = tagged_windows(CORPUS.train[:90], characters.read_training(CORPUS.train[:90]), bio(["LOC", "ORG", "PER"]))
    batches = Batches(rows, 8, seed=0, batch_tokens=256)
    shapes = {batches[i][1].shape for i in range(len(batches))}
    assert {rows * length for rows, length in shapes} == {256} and len(shapes) > 1


@pytest.mark.once
@pytest.mark.parametrize("limit", [None, 0.05])
def test_known_entities_leave_the_probabilities_of_the_sequences_that_have_them(limit, run):
    recognizer, text, known = EntityRecognizer(run, limit), CORPUS.test[0].text[:5], (1, 3, "PER")
    tagger = recognizer
    left = {p: w for p, w in path_probabilities(tagger, text).items() if known in tagger.scheme.decode(p)}
    left = {path: weight / sum(left.values()) for path, weight in left.items()}
    found = recognizer.recognize(text, spans=[known])
    assert known in [(e.start, e.end, e.label) for e in found]
    if limit is None:
        assert [(e.start, e.end, e.label) for e in found] == tagger.scheme.decode(max(left, key=left.get))
    for e in found:
        assert_allclose(e.probability, posterior(left, tagger.scheme, e.start, e.end, e.label), atol=1e-5)
    with pytest.raises(ValueError, match="with a label of"):
        recognizer.recognize(text, spans=[(1, 3, "CAR")])
