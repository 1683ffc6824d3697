"""Tests of kcrf.export: the page of a linear model gives what NumPy gives, in a browser."""

import json
import unicodedata
from zlib import crc32

import numpy as np
import pytest
from chromium import Page
from numpy.testing import assert_allclose

from kcrf.corpora import Sentence, load_mini
from kcrf.export import export_model
from kcrf.readers.word_tokens import token_spans
from kcrf.runs.names import LINEAR
from kcrf.taggers import EntityRecognizer, TokenTagger, WordSegmenter
from kcrf.taggers.open_model import built_in_segmenter
from kcrf.tasks.tokens import sentence_of_tokens
from kcrf.training import Settings, train_tagger

BACKENDS = ["torch"]
pytestmark = pytest.mark.slow
SIGNS = "。，.,x7Ａé\u0301 \u3000🙂①ﬁ'’Python3.14🏽\u200d\ufe0f🇨🇳"

ODD = (  # words and their parts: of English, in odd spellings, next to other scripts
    "Kim|O'Brien|O’Brien's|don't|DON’T|can|n't|N'T|isn't.|Dr.|dr.|MRS.|ſt.|No.|no. 5|J. Smith|J.\tSmith|j. Smith|"
    "ſ. x|U.S.-led|U.S.|e.g.|İ.ı.\u212a.|Smith's|WE'LL|we've|'s|’D|1,000.50|3/4-inch|12:30|٣.٤|１,２３４|1.|2nd|x²|½|"
    "Ⅷ|ⅷ|AT&T|R&D-heavy|well-known|mother–in–law|a-|-b|--|---|...|..|?!|http://a.b/c^d]e-f|HTTPſ://x.y/|"
    "www.Leeds.uk).|WWW.|kim@lee.co.uk|a+b-c.d@e-f.gh|@kim_lee|#Größe|#東京|café|cafe\u0301|İstanbul|ısparta|"
    "DIYARBAKIR|Straße|STRASSE|ẞ|ﬁre|ǅungla|Ǆ|ΣΊΣΥΦΟΣ|ὈΔΥΣΣΕΎΣ|Київ|Դ|გამარჯობა|हिन्दी|ไทย|한국어|東京tower|"
    "iPhone15北京|ｆｕｌｌ|ＷＩＤＴＨ|ｘ１|🙂|👩‍👩‍👧|🇬🇧|e🙂s|𝒳𝓎|𐐀𐐨|\ud83d|a\udc42b|\u200d|\ufe0f|ͅ|_x_|C++|[a]|(b)|"
    "“q”|$5|€1,5|50%|Xx|xX|XXXXx|aaaaa|12345|a1B2|A|a|I|“|,|:|;|!|的|。"
).split("|")
BLANKS = (" ", " ", " ", " ", " ", "", "  ", "\t", "\u00a0", "\u3000", "\n", "\x1c", "\u2003", "\x85")
OLD = [c for c in map(chr, range(0x20000)) if unicodedata.ucd_3_2_0.category(c) not in ("Cn", "Cs")]
OLD.remove("ʕ")  # no small letter in newer versions of Unicode, which the browser may have


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


def odd_texts(count):
    random, plain = np.random.default_rng(0), [word for word in ODD if word.isalnum()]  # no window ends at these
    for number in range(count):
        is_long = number % 200 == 0
        words = random.choice(plain if number % 400 == 0 else ODD, 400 if is_long else random.integers(1, 16)).tolist()
        if number % 4 == 0:
            words += [random.choice(ODD) + c + "aA1'"[random.integers(4)] for c in random.choice(OLD, 3)]
        yield "".join(word + BLANKS[random.integers(len(BLANKS))] for word in words)


def hash_of(text):
    return crc32(text.encode("utf-8", "surrogatepass"))


def tag_of(word, tags):
    """A tag that the end of a word gives, mostly."""
    key = word.casefold()[-2:] if hash_of(word) % 9 else word
    return tags[hash_of(key) % len(tags)]


def odd_entities(count):
    """Texts with entities of one or two tokens, of which a few end at signs inside tokens."""
    for text in odd_texts(count):
        tokens, spans = token_spans(text).tolist(), []
        for (start, end), (_, later) in zip(tokens, tokens[1:], strict=False):
            label = tag_of(text[start:end], ["", "", "", "PER", "LOC"])
            if label and (not spans or spans[-1][1] <= start):
                is_long = label == "PER" and hash_of(text[start:end]) % 2
                spans.append((start, later if is_long else end, label))
        yield Sentence(text, spans)
    yield from [Sentence("see http://a.b/c^d]e-f U.S.-led", [(17, 18, "LOC"), (23, 27, "LOC")])] * 5


def with_all_scores(run):
    """Adds to the scores of a run, so that each feature has some: a page with wrong features gives other results."""
    arrays, random = dict(np.load(run / LINEAR)), np.random.default_rng(0)
    arrays["scores"][1:] = arrays["scores"][1:] // 2 + random.integers(-5, 6, arrays["scores"][1:].shape)
    np.savez(run / LINEAR, **arrays)


def predicted(page, path, examples):
    """What the page predicts for some texts, and the characters in a second of processor time."""
    page.open(path.as_uri(), 1000)
    page.value("ready.then(() => 0)")
    page.value(f"globalThis.texts = {json.dumps(examples)}; 0")
    page.value("ready.then(model => { texts.slice(0, 300).forEach(text => model.predict(text)); })")
    before = page.seconds()
    page.value("ready.then(model => { globalThis.found = texts.map(text => model.predict(text)); })")
    seconds = page.seconds() - before
    found = json.loads(page.value("JSON.stringify(found)"))  # half of a pair of units is escaped
    return found, sum(map(len, examples)) / max(seconds, 0.01)


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


@pytest.mark.parametrize(("scheme", "splits"), [("bio", "-]^"), ("bioes", "")])
def test_entities_of_words_are_those_of_numpy(scheme, splits, page, tmp_path):
    train = [sentence for sentence in odd_entities(300)][: None if splits else -5]
    settings = Settings(task="ner", encoder="linear", units="words", scheme=scheme, epochs=3)
    recognizer, _ = train_tagger(settings, train, train[-60:], out=tmp_path / "run")
    with_all_scores(tmp_path / "run")
    assert set(recognizer.reader.splits) >= set(splits)
    examples = list(odd_texts(10_000 if splits else 2_000))
    export_model(tmp_path / "run", tmp_path / "ner.html")
    found, speed = predicted(page, tmp_path / "ner.html", examples)
    print(f"{speed:,.0f} characters in a second of processor time")
    check(found, EntityRecognizer(tmp_path / "run").predict(examples))
    assert {span["label"] for row in found for span in row} == {"PER", "LOC"}
    page.value("document.querySelector('textarea').select()")
    page.type("🙂 Kim don't 5-6")
    assert page.value("document.title + document.querySelector('#out').textContent").startswith("Entities🙂 Kim")
    assert not page.errors


def test_classes_are_those_of_numpy(page, tmp_path):
    texts = [text for text in odd_texts(300) if text.split()]
    train = [(text.split(), [tag_of(word, "NVADPX") for word in text.split()]) for text in texts]
    train_tagger(Settings(task="pos", encoder="linear", epochs=3), train, train[-60:], out=tmp_path / "run")
    with_all_scores(tmp_path / "run")
    examples = ["", " \t", *odd_texts(4_000)]
    export_model(tmp_path / "run", tmp_path / "pos.html")
    found, speed = predicted(page, tmp_path / "pos.html", examples)
    print(f"{speed:,.0f} characters in a second of processor time")
    check(found, TokenTagger(tmp_path / "run").predict(map(sentence_of_tokens, examples)))
    assert {span["label"] for row in found for span in row} == set("NVADPX")
    assert page.value("document.title") == "Classes"
    page.language("zh-CN")
    page.open("about:blank", 400)
    page.open((tmp_path / "pos.html").as_uri() + "#Kim%20slept", 400)
    page.wait("document.title == '类别' && document.querySelectorAll('mark').length == 2")
    page.language("en")
    assert not page.errors


@pytest.mark.parametrize("units", ["characters", "words"])
def test_what_the_page_cannot_compute_is_refused(units, tmp_path):
    sentences = [(["Kim", "lives", "in", "Leeds"], ["B-PER", "O", "O", "B-LOC"])] * 20
    settings = Settings(task="ner", encoder="linear", units=units, min_probability=0.3)
    train_tagger(settings, sentences, sentences[:4], out=tmp_path / "run")
    with pytest.raises(ValueError, match="Received: 0.3"):
        export_model(tmp_path / "run", tmp_path / "page.html")
    assert not (tmp_path / "page.html").exists()


def test_a_model_of_several_standards_is_refused(tmp_path):
    words = [["今天", "天气", "真", "好"], ["明天", "天气", "不", "好"]] * 10
    train = {"whole": words, "halves": [list("".join(sentence)) for sentence in words]}
    settings = Settings(task="cws", encoder="linear", solver="adagrad", epochs=1)
    train_tagger(settings, train, {name: part[:4] for name, part in train.items()}, out=tmp_path / "run")
    with pytest.raises(ValueError, match="a page needs a model of one segmentation standard"):
        export_model(tmp_path / "run", tmp_path / "page.html", standard="halves")


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
