"""Tests of kcrf.export: the page of a linear model gives what NumPy gives, in a browser."""

import json

import numpy as np
import pytest
from chromium import Page
from numpy.testing import assert_allclose

from kcrf.corpora import load_mini
from kcrf.export import export_model
from kcrf.taggers import EntityRecognizer, WordSegmenter
from kcrf.taggers.open_model import built_in_segmenter
from kcrf.training import Settings, train_tagger

BACKENDS = ["torch"]
pytestmark = pytest.mark.slow
SIGNS = "。，.,x7Ａé\u0301 \u3000🙂①ﬁ'’Python3.14"


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    page = Page(tmp_path_factory.mktemp("chromium"))
    yield page
    page.close()


def texts(count, longest=40):
    random, joined = np.random.default_rng(0), "".join("".join(words) for words in load_mini().train)
    for number in range(count):
        start = random.integers(len(joined) - 500)
        text = list(joined[start : start + (500 if number % 500 == 0 else random.integers(1, longest))])
        for place in random.integers(len(text), size=random.integers(3)):
            text[place] += SIGNS[random.integers(len(SIGNS))] * random.integers(1, 4)
        yield "".join(text)


def predicted(page, path, examples):
    """What the page predicts for some texts, and the characters in a second of processor time."""
    page.open(path.as_uri(), 1000)
    page.value("ready.then(() => 0)")
    page.value(f"globalThis.texts = {json.dumps(examples)}; 0")
    page.value("ready.then(model => { texts.slice(0, 300).forEach(text => model.predict(text)); })")
    before = page.seconds()
    page.value("ready.then(model => { globalThis.found = texts.map(text => model.predict(text)); })")
    seconds = page.seconds() - before
    return page.value("found"), sum(map(len, examples)) / max(seconds, 0.01)


def check(found, expected):
    for row, spans in zip(found, expected, strict=True):
        assert [(s["start"], s["end"], s["text"], s["label"]) for s in row] == [
            (s.start, s.end, s.text, s.label) for s in spans
        ]
        assert_allclose([s["probability"] for s in row], [s.probability for s in spans], atol=2e-6)


@pytest.mark.parametrize(("tags", "count"), [(False, 10_000), (True, 3_000)])
def test_words_are_those_of_numpy(tags, count, page, tmp_path):
    path, examples = tmp_path / "words.html", list(texts(count))
    export_model(built_in_segmenter(tags), path)
    assert path.stat().st_size < 5 * 2**20
    found, speed = predicted(page, path, examples)
    print(f"{speed:,.0f} characters in a second of processor time")
    check(found, WordSegmenter(built_in_segmenter(tags)).predict(examples))
    assert not page.errors


def test_entities_are_those_of_numpy(page, tmp_path):
    corpus = load_mini("ner")
    settings = Settings(task="ner", encoder="linear", epochs=2, units="characters")
    train_tagger(settings, corpus.train, corpus.valid, out=tmp_path / "run")
    examples = [sentence.text for sentence in corpus.test] + [f" {s.text}  好 " for s in corpus.test[:50]]
    export_model(tmp_path / "run", tmp_path / "ner.html")
    found, _ = predicted(page, tmp_path / "ner.html", examples)
    check(found, EntityRecognizer(tmp_path / "run").predict(examples))
    assert sum(map(len, found)) > 20


@pytest.mark.parametrize(
    ("settings", "received"),
    [
        ({"units": "words"}, "Received: a model of words or tokens"),
        ({"units": "characters", "min_probability": 0.3}, "Received: 0.3"),
    ],
)
def test_what_the_page_cannot_compute_is_refused(settings, received, tmp_path):
    sentences = [(["Kim", "lives", "in", "Leeds"], ["B-PER", "O", "O", "B-LOC"])] * 20
    train_tagger(Settings(task="ner", encoder="linear", **settings), sentences, sentences[:4], out=tmp_path / "run")
    with pytest.raises(ValueError, match=received):
        export_model(tmp_path / "run", tmp_path / "page.html")
    assert not (tmp_path / "page.html").exists()


def test_what_is_typed_is_shown(page, tmp_path):
    export_model(built_in_segmenter(), tmp_path / "words.html")
    page.open((tmp_path / "words.html").as_uri(), 400)
    page.wait("document.querySelector('h1').textContent")
    page.paste("今天天气真好<b>")
    page.wait("document.querySelectorAll('mark').length >= 4")
    assert "今天" in page.value("[...document.querySelectorAll('mark')].map(mark => mark.textContent)")
    assert page.value("document.querySelector('#out').textContent") == "今天天气真好<b>"
    assert page.value("document.documentElement.scrollWidth") <= 400
    assert not page.errors
