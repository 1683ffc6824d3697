"""Tests of kcrf.taggers.notebook, and of what taggers say about themselves.

Marked text, safe against HTML, for results and for spans of a user.
"""

import json
import pickle
import pydoc
from html.parser import HTMLParser

import pytest

import kcrf
from kcrf import taggers
from kcrf.corpora import load_mini
from kcrf.runs import Settings
from kcrf.taggers import Classification, EntityRecognizer, Span, WordSegmenter, render
from kcrf.training import train_tagger

BACKENDS = ["torch"]
TEXT = "李雷 <b>住</b>在上海 & 苏州。"


class Marks(HTMLParser):
    """The visible text of HTML, and that of its marks."""

    def __init__(self, html):
        super().__init__()
        self.text, self.marks, self.tags, self._inside = "", [], set(), []
        self.feed(html)

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)
        self._inside.append(tag)
        if tag == "mark":
            self.marks.append("")

    def handle_endtag(self, tag):
        assert self._inside.pop() == tag

    def handle_data(self, data):
        if "small" in self._inside or "style" in self._inside:
            return
        self.text += data
        if "mark" in self._inside:
            self.marks[-1] += data


def test_the_words_of_results_are_marked_and_their_text_is_no_html():
    words = WordSegmenter()([TEXT])[0]
    shown = Marks(words._repr_html_())
    assert shown.text == TEXT and shown.marks == [span.text for span in words]
    assert "b" not in shown.tags and kcrf.render(words) == words._repr_html_()
    assert words == list(words) and words.source == TEXT
    assert pickle.loads(pickle.dumps(words)).source == TEXT


def test_several_texts_are_shown_and_many_are_counted():
    results = WordSegmenter()(["今天", "天气"] * 60)
    assert Marks(results._repr_html_()).text == "今天天气" * 50
    assert "… and 20 more" in results._repr_html_()
    assert render(results[:2]) == render(list(results[:2]))


SPANS = [
    [(0, 2, "PER"), (12, 14, "LOC")],
    [Span(12, 14, "上海", "LOC", 0.4), Span(0, 2, "李雷", "PER")],
    [{"start": 0, "end": 2, "label": "PER"}, {"start": 12, "end": 14, "label": None}],
    [(0, 2), (12, 14)],
]


@pytest.mark.parametrize("spans", SPANS)
def test_spans_of_a_user_are_marked(spans):
    shown = Marks(render(TEXT, spans))
    assert (shown.text, shown.marks) == (TEXT, ["李雷", "上海"])


def test_labels_and_low_probabilities_are_written_and_escaped():
    html = render("ab", [Span(0, 1, "a", "<i>", 0.5), Span(1, 2, "b", "X", 0.95)])
    assert "<small>&lt;i&gt; 50%</small>" in html and "<small>X</small>" in html and 'title="0.9500"' in html


def test_tokens_are_marked_in_a_list_of_tokens():
    shown = Marks(render(["Kim", "lives", "in", "New", "Leeds", "."], [(0, 1, "PER"), (3, 5, "LOC")]))
    assert (shown.text, shown.marks) == ("Kim lives in New Leeds .", ["Kim", "New Leeds"])


def test_lone_surrogates_can_be_saved():
    json.dumps(render("a\ud800b", [(0, 2)])).encode("utf-8")


def test_a_classification_has_a_bar_for_each_label():
    html = Classification("<a>", 0.75, {"b": 0.25, "<a>": 0.75})._repr_html_()
    assert html.index("&lt;a&gt;<small>75.0%") < html.index("b<small>25.0%")
    assert Marks(render([Classification(2.5)])).text == "2.5"


@pytest.mark.parametrize("given", ["text", {"text": 1}, 3, [3], None])
def test_what_is_no_result_is_refused(given):
    with pytest.raises(TypeError, match="needs the result of a tagger"):
        render(given)


@pytest.mark.parametrize("spans", [[(0, 3), (2, 4)], [(0, 99)], [(2, 2)], [(0,)], [3], [(0, 2, "A", "B")], ["ab"]])
def test_spans_that_cannot_be_shown_are_refused(spans):
    with pytest.raises(ValueError, match="`spans`"):
        render(TEXT, spans)


def test_a_tagger_says_what_it_is(tmp_path):
    people = load_mini("ner")
    settings = Settings(task="ner", encoder="linear")
    trained, scores = train_tagger(settings, people.train[:80], people.valid[:20], out=tmp_path / "people")
    loaded = EntityRecognizer(tmp_path / "people")
    facts = f"task ner, labels LOC, ORG, PER, encoder linear, F1 on the validation set {scores['valid']['f']:.4f}"
    assert repr(loaded) == repr(trained) == f"<EntityRecognizer: run {tmp_path / 'people'}, {facts}>"
    assert "<svg" not in loaded._repr_html_()  # L-BFGS has one epoch
    with open(tmp_path / "people" / "log.csv", "a") as log:
        log.write("2,0.03,0.6,1.9\n")
    assert loaded._repr_html_().count("<svg") == 2 and "score on the validation set" in loaded._repr_html_()
    sentence = people.test[0].text
    assert Marks(loaded.recognize(sentence)._repr_html_()).text == sentence
    assert repr(WordSegmenter()).startswith("<WordSegmenter: run ") and "task cws, encoder linear" in repr(
        WordSegmenter()
    )


@pytest.mark.parametrize("name", ["EntityRecognizer", "TextClassifier", "TokenTagger", "WordSegmenter"])
def test_help_shows_no_addresses(name):
    shown = pydoc.plain(pydoc.render_doc(getattr(taggers, name)))
    assert " at 0x" not in shown and "= ignore" in shown
