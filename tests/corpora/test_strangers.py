"""Tests of kcrf.corpora: files as strangers have them, which once were read wrongly or refused unclearly."""

import json

import pytest

from kcrf.corpora import Example, read_classified, read_conll, read_entities, read_segmented, read_tagged
from kcrf.corpora.conll import read_conll_tokens
from kcrf.corpora.dictionary import read_user_dictionary
from kcrf.corpora.tables import iterate_texts
from kcrf.tasks import TASKS

BACKENDS = ["torch"]
KIM = "Kim slept"
KIM_IN_BIOC = {
    "passages": [
        {
            "offset": 10,
            "text": KIM,
            "annotations": [{"infons": {"type": "PER"}, "text": "Kim", "locations": [{"offset": 10, "length": 3}]}],
        }
    ]
}
TABLES = {
    "Excel in Europe": "\ufefftext;label\r\ngood, film;pos\r\nbad;neg\r\n",
    "Excel with empty columns": "\ufefftext\tlabel\t\t\r\ngood, film\tpos\t\t\r\n\t\t\t\r\nbad\tneg\t\t\r\n",
    "pandas with its index": ',text,label\n0,"good, film",pos\n1,bad,neg\n',
    "fastText": "__label__pos good, film\n__label__neg bad\n",
    "Kaggle's reviews": 'review,sentiment\n"good, film",pos\nbad,neg\n',
    "labels before texts": 'Category,Message\npos,"good, film"\nneg,bad\n',
}
ENTITIES = {  # each has the text Kim slept with one person
    "WikiANN": "en:Kim\tB-PER\nen:slept\tO\n",
    "Few-NERD": "Kim\tPER\nslept\tO\n",
    "GENIA": "###MEDLINE:95369245\n\nKim\tB-PER\nslept\tO\n",
    "GLiNER": json.dumps([{"tokenized_text": ["Kim", "slept"], "ner": [[0, 0, "PER"]]}]),
    "DyGIE": json.dumps({"doc_key": "x", "sentences": [["Kim", "slept"]], "ner": [[[0, 0, "PER"]]]}),
    "BioC": json.dumps({"source": "x", "documents": [{"id": "1", **KIM_IN_BIOC}]}),
    "documents of BioC": json.dumps(KIM_IN_BIOC),
    "tags before tokens": "B-PER Kim\nO slept\n",
    "signs between a token and its tag": "Kim###B-PER slept###O\n",
    "WikiNER": "Kim|NNP|B-PER slept|VBD|O\n",
    "Kaggle's features": ",lemma,prev-word,word,sentence_idx,tag\n0,kim,x,Kim,1.0,B-PER\n1,sleep,Kim,slept,1.0,O\n",
    "a token on a line": "Kim/B-PER\nslept/O\n",
    "pandas with its index": ",sentence_id,words,labels\n0,0,Kim,B-PER\n1,0,slept,O\n",
    "numbers of tokens": "1,Kim,B-PER\n2,slept,O\n",
    "a name of the sentence": "s1 Kim NNP B-PER\ns1 slept VBD O\n",
    "a name of the sentence, commas": "doc,Kim,B-PER\ndoc,slept,O\n",
    "HTML": "<!DOCTYPE html><html><body>\n<p><PER>Kim</PER> <b><i>slept</i></b></p>\n</body></html>\n",
    "spans of HTML": '<p><span class="PER">Kim</span> <span style="x">slept</span></p>\n',
    "XML with its head": "<?xml version='1.0'?>\n<PER>Kim</PER> slept\n",
    "BosonNLP": "{{PER:Kim}} slept\n",
    "the member type": '{"text": "Kim slept", "entities": [{"entity": "Kim", "type": "PER", "start": 0, "end": 3}]}\n',
    "Kaggle with semicolons": "Sentence #;Word;POS;Tag\nSentence: 1;Kim;NNP;B-PER\n;slept;VBD;O\n",
    "Kaggle with tabs": "Sentence #\tWord\tPOS\tTag\nSentence: 1\tKim\tNNP\tB-PER\n\tslept\tVBD\tO\n",
    "tokens with semicolons": "Kim;B-PER\nslept;O\n",
    "a list in an object": json.dumps(
        {"version": 1, "data": [{"tokens": ["Kim", "slept"], "ner_tags": ["B-PER", "O"]}]}
    ),
    "a page that annotates for spaCy": json.dumps(
        {"classes": ["PER"], "annotations": [None, [KIM, {"entities": [[0, 3, "PER"]]}]]}
    ),
}


def write(tmp_path, text, name="data.txt"):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8", newline="")
    return path


@pytest.mark.parametrize("text", TABLES.values(), ids=TABLES)
def test_tables_of_texts(text, tmp_path):
    assert read_classified(write(tmp_path, text)) == [Example("good, film", "pos"), Example("bad", "neg")]


@pytest.mark.parametrize("text", ENTITIES.values(), ids=ENTITIES)
def test_entities(text, tmp_path):
    (sentence,) = read_entities(write(tmp_path, text))
    assert (sentence.text, sentence.spans) == (KIM, [(0, 3, "PER")])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('text,label\na b,"x,y"\nc,x\nd,y\n', r":2: needs one label, or JSON .* Received: 'x,y', which joins several"),
        (
            "text,label\na b,x | y\nc,x\nd,y\n",
            r":2: needs one label, or JSON .* Received: 'x | y', which joins",
        ),
        ('{"text": "a", "labels": [0, 1, 0]}\n', r":1: .*labels of a text are read as strings, not as a vector"),
    ],
)
def test_labels_in_one_cell_and_vectors_are_refused(text, message, tmp_path):
    with pytest.raises(ValueError, match=message.replace(" | ", r" \| ")):
        read_classified(write(tmp_path, text))


def test_titles_are_entities_only_within_lines(tmp_path):
    texts = ["<title>A story</title>\n<p><PER>Kim</PER> slept</p>\n", "<TITLE>Dr</TITLE>\n<TITLE>Dr</TITLE> Kim\n"]
    read = [[(s.text, s.spans) for s in read_entities(write(tmp_path, text))] for text in texts]
    assert read[0] == [("A story", []), (KIM, [(0, 3, "PER")])]
    assert read[1] == [("Dr", [(0, 2, "TITLE")]), ("Dr Kim", [(0, 2, "TITLE")])]


def test_a_document_without_entities_is_refused(tmp_path):
    with pytest.raises(ValueError, match="needs"):
        read_entities(write(tmp_path, "<title>A story</title>\n<p>I <i>saw</i> <a href='x'>Rome</a></p>\n"))


@pytest.mark.parametrize("name", ["tokens", "words"])
def test_words_of_characters_with_tags(name, tmp_path):
    line = json.dumps({name: list("今天好"), "labels": ["B", "E", "S"]})
    assert read_segmented(write(tmp_path, f"{line}\n")) == [["今天", "好"]]
    for text in ("今天好 BES\n天气 BE\n", "今天好\tBES\n天气\tBE\n"):
        with pytest.raises(ValueError, match="what looks like characters and their tags"):
            read_segmented(write(tmp_path, text))


@pytest.mark.parametrize("tag", ["B-", "B_PER", "B", "B.PER"])
def test_tags_are_no_types(tag, tmp_path):
    with pytest.raises(ValueError, match=rf":1: needs O or a tag like B-PER, .* Received: '{tag}'"):
        read_entities(write(tmp_path, f"Kim {tag}\nslept O\n"))


def test_a_word_on_a_line_and_two_signs_before_its_class(tmp_path):
    for text in ("Kim/NNP\nslept/VBD\n\nNo/DT\n", "Kim//NNP slept//VBD\nNo//DT\n"):
        first, second = read_tagged(write(tmp_path, text))
        assert (first.text, second.text) == (KIM, "No") and first.spans == [(0, 3, "NNP"), (4, 9, "VBD")]
    (slash,) = read_tagged(write(tmp_path, "Kim/NNP //SYM\n"))
    assert slash.text == "Kim /"


@pytest.mark.parametrize("sign", ["\t", ",", "|"])
def test_texts_beside_their_words_are_refused(sign, tmp_path):
    for line in (f"今天天气{sign}今天 天气", f"今天 天气{sign}今天天气"):
        with pytest.raises(ValueError, match="what looks like texts beside their words"):
            read_segmented(write(tmp_path, f"{line}\n好{sign}好\n"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Kim B-PER slept O\nNo O way O\n", "needs one token and its tag on a line. Received: several, 'Kim B-PER"),
        (
            'text,label\nKim slept,"B-PER,O"\n',
            r":2: needs one token and its tag on a line. Received: 2 tags, 'B-PER,O'",
        ),
    ],
)
def test_tokens_and_tags_of_a_sentence_on_a_line_are_refused(text, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        read_entities(write(tmp_path, text))


def test_three_levels_of_entities_are_columns(tmp_path):
    (sentence,) = read_entities(write(tmp_path, "Kim B-PER O O\nslept O O B-ACT\n"))
    assert (sentence.text, sentence.spans) == (KIM, [(4, 9, "ACT")])


def test_words_beside_their_classes_are_refused(tmp_path):
    with pytest.raises(ValueError, match="what looks like words beside their classes"):
        read_segmented(write(tmp_path, "今天 天气\tt n\n真 好\td a\n"))


JOINED = {
    "columns with names of sentences": "s1 Kim NNP B-PER\ns1 slept VBD O\ns2 No DT O\ns2 way NN O\n",
    "a table with numbers of tokens": "1,Kim,B-PER\n2,slept,O\n1,No,O\n2,way,O\n",
}


@pytest.mark.parametrize("text", JOINED.values(), ids=JOINED)
def test_files_that_were_joined_have_the_sentences_of_both(text, tmp_path):
    for joined in (text, text + text, f"{text}\n{text}"):
        sentences = read_entities(write(tmp_path, joined))
        assert [s.text for s in sentences] == [KIM, "No way"] * (len(joined) // len(text))
        assert [s.spans for s in sentences[:2]] == [[(0, 3, "PER")], []]


def test_the_names_of_a_table_that_was_joined_are_no_example(tmp_path):
    table = "text,label\na,x\nb,y\n"
    examples = [Example("a", "x"), Example("b", "y")]
    assert read_classified(write(tmp_path, table + table)) == examples * 2
    assert read_classified(write(tmp_path, table + "text,label \nc,x\n")) == [*examples, Example("c", "x")]


def test_blanks_at_the_ends_of_lines_change_nothing_in_webanno(tmp_path):
    lines = ["#FORMAT=WebAnno TSV 3.2", "#T_SP=x.NamedEntity|identifier|value", "", "#Text=Kim slept"]
    lines += ["1-1\t0-3\tKim\t_\tPER", "1-2\t4-9\tslept\t_\t_"]
    for end in ("\n", " \n", "\r\n"):
        (sentence,) = read_entities(write(tmp_path, end.join([*lines, ""])))
        assert (sentence.text, sentence.spans) == (KIM, [(0, 3, "PER")])


def test_characters_in_json_are_no_words(tmp_path):
    line = json.dumps({"tokens": list("今天天气真好"), "labels": [1, 2, 1, 2, 0, 0]})
    with pytest.raises(ValueError, match="needs words separated by spaces. Received: characters"):
        read_segmented(write(tmp_path, f"{line}\n" * 20))


def test_a_row_with_the_tags_of_a_sentence_is_no_token(tmp_path):
    with pytest.raises(ValueError, match=r":2: needs one token and its tag on a line\. Received: 2 tags, 'B-PER O'"):
        read_entities(write(tmp_path, "text,tags\nKim slept,B-PER O\n"))


def test_tokens_with_a_colon_are_whole_unless_all_have_one_language(tmp_path):
    (sentence,) = read_entities(write(tmp_path, "en:Kim\tB-PER\nde:slept\tO\n"))
    assert sentence.text == "en:Kim de:slept"


def test_a_label_may_have_a_comma(tmp_path):
    examples = read_classified(write(tmp_path, 'text,label\na,"New York, NY"\nb,"Rome, Italy"\n'))
    assert [example.label for example in examples] == ["New York, NY", "Rome, Italy"]


@pytest.mark.parametrize("entry", ["天气真,北京,上海", "天气真|n", "天气真，20", "天气真、北京", "天气真;20;n"])
def test_a_user_dictionary_needs_spaces(entry, tmp_path):
    with pytest.raises(ValueError, match=":1: needs spaces between a word, its count and its class"):
        read_user_dictionary(write(tmp_path, f"{entry}\n"))


@pytest.mark.parametrize("odd", ["……", "今天", "10"])
def test_one_token_of_two_characters_changes_no_other_sentence(odd, tmp_path):
    lines = [*"CT检查", "", odd, *"天气好"]
    for sentences in (
        read_conll_tokens(lines),
        read_conll(write(tmp_path, "".join(f"{x} O\n" if x else "\n" for x in lines))),
    ):
        assert [sentence.text for sentence in sentences] == ["CT检查", f"{odd}天气好"]


def test_words_keep_their_spaces(tmp_path):
    lines = ["我", "用", "New", "York", "地图", "", "Kim", "slept"]
    assert [sentence.text for sentence in read_conll_tokens(lines)] == ["我用New York地图", "Kim slept"]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["text,label", "good,pos"], ":1: needs a text, .*columns, 'text,label'"),
        (["text;label", "good;pos"], ":1: needs a text, .*columns"),
        (["id,text", "1,good"], ":1: needs a text, .*columns, 'id,text'"),
        ([',"Review"', '0,"good, bad"'], ":1: needs a text, .*columns"),
        (["good\tpos", "bad\tneg"], r":1: needs a text, .*columns, 'good\\tpos'"),
        (["pos\tgood", "neg\tbad"], r":1: needs a text, .*columns, 'pos\\tgood'"),
        (["7\tpos\tgood"], r":1: needs a text, .*columns, '7"),
        (["pos,so good", 'neg,"bad, I say"', "neg,worse"], ":3: needs a text, .*columns"),
        (["so good,pos", '"bad, I say",neg', 'worse,"neg"', "x"], ":3: needs a text, .*columns"),
        (['{"id": 3, "text": "good"}'], ":1: needs a text, .*JSON"),
    ],
)
def test_labeled_data_are_not_classified_as_text(lines, message):
    with pytest.raises(ValueError, match=message):
        list(iterate_texts(lines, "x", labels=("neg", "pos")))


def test_the_names_of_the_columns_of_pairs_are_no_pair():
    with pytest.raises(ValueError, match=":1: needs a text, .*columns"):
        list(iterate_texts(["sentence1\tsentence2", "a\tb"], "x", pairs=True))


@pytest.mark.parametrize("line", ["good\t4.5", "4\tgood"])
def test_texts_with_their_numbers_are_not_texts_for_a_model_of_numbers(line):
    with pytest.raises(ValueError, match="needs a text, or `kind='table'`"):
        list(iterate_texts([line], "x"))
    assert list(iterate_texts([line], "x", labels=("neg", "pos"))) == [line]


def test_texts_may_end_in_a_word_that_is_a_label():
    lines = ["Comment, review", "good, bad or neutral, pos", "tabs\tare text", "yes, neg", "and more"]
    assert list(iterate_texts(lines, "x", labels=("neg", "pos"))) == lines


def test_the_names_of_columns_are_no_text_where_columns_have_numbers():
    lines = ["label,text", "pos,good", "neg,text"]
    assert list(iterate_texts(lines, "x", "table", ["1"])) == ["good", "text"]


def test_other_spellings_of_tags_name_the_mend(tmp_path):
    path = write(tmp_path, "Kim b-per\nslept o\n")
    with pytest.raises(ValueError, match=":1: .*'b-per'; `repair=True` reads other spellings"):
        read_entities(path)
    assert read_entities(path, repair=True)[0].spans == [(0, 3, "per")]


def test_an_empty_type_in_pubtator_names_its_line(tmp_path):
    with pytest.raises(ValueError, match=":2: a label must be text that can be printed, and not empty"):
        read_entities(write(tmp_path, "1|t|Kim slept\n1\t0\t3\tKim\t\tD1\n"))


def test_a_docbin_of_spacy_names_its_extra_or_is_read(tmp_path):
    path = tmp_path / "data.spacy"
    try:
        from spacy.tokens import DocBin, Span
        from spacy.vocab import Vocab
    except ImportError:
        path.write_bytes(b"x\x9c")
        with pytest.raises(ImportError, match=r"a DocBin needs the package spacy.*kcrf\[spacy\]"):
            read_entities(path)
        return
    from spacy.tokens import Doc

    doc = Doc(Vocab(), ["Kim", "slept"])
    doc.ents = [Span(doc, 0, 1, "PER")]
    DocBin(docs=[doc]).to_disk(path)
    (sentence,) = read_entities(path)
    assert (sentence.text, sentence.spans) == (KIM, [(0, 3, "PER")])


@pytest.mark.parametrize(
    "text", ["B-PER John\nO lives\nO in\nB-LOC Paris\n", "PROPN John\nVERB lives\nADP in\nNNP Paris\n"]
)
def test_columns_whose_tags_are_first_are_exchanged(text, tmp_path, capsys):
    (sentence,) = read_tagged(write(tmp_path, text))
    tags = [line.split()[0] for line in text.splitlines()]
    assert sentence.text == "John lives in Paris" and [label for *_, label in sentence.spans] == tags
    assert read_conll_tokens(text.splitlines())[0].text == "John lives in Paris"
    assert "the tags are in the first of two columns" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["A DET\nX NOUN\n", "x B-PER\nO O\n", "? PUNCT\n! PUNCT\n"])
def test_tokens_that_look_like_tags_stay_in_their_column(text, tmp_path, capsys):
    assert read_tagged(write(tmp_path, text))[0].text[0] == text[0]
    assert "first of two columns" not in capsys.readouterr().err


def test_tokens_of_a_document_are_numbered_from_its_begin_and_nested_entities_need_repair(tmp_path):
    item = {"sentences": [["Kim", "slept"], ["New", "York", "City"]], "ner": [[], [[2, 4, "LOC"], [3, 3, "PER"]]]}
    path = write(tmp_path, json.dumps(item))
    with pytest.raises(ValueError, match=r":1: entities must not overlap; `repair=True` keeps the longer of two"):
        read_entities(path)
    first, second = read_entities(path, repair=True)
    assert first.spans == [] and second.spans == [(0, 13, "LOC")] and second.tokens == [(0, 3), (4, 8), (9, 13)]


def test_sentences_of_the_penn_treebank_end_at_full_stops(tmp_path):
    text = "[ Kim/NNP ]\nslept/VBD ./. ''/''\n[ 1\\/2/CD cat/NN ]\n,/, ./.\n\n[ Ada/NNP ]\n"
    sentences = [sentence.text for sentence in read_tagged(write(tmp_path, text))]
    assert sentences == ["Kim slept . ''", "1/2 cat , .", "Ada"]


@pytest.mark.parametrize(
    ("text", "received"),
    [
        ("<?xml version='1.0'?>\n<sentences>\n<text>good food</text>\n</sentences>\n", "an XML document"),
        ('{"context": "Kim slept", "entity_label": "PER", "start_position": [0]}\n', "JSON objects with context, ent"),
        ('{"text": "Kim slept", "event_list": []}\n', "JSON objects with text, event_list"),
    ],
)
@pytest.mark.parametrize("read", [read_entities, read_tagged, read_segmented])
def test_formats_that_are_not_read_name_the_json_to_write(text, received, read, tmp_path):
    with pytest.raises(ValueError, match=rf"Received: {received}.*; convert it to lines such as {{"):
        read(write(tmp_path, text))


NAMED = {  # each has two sentences, with one and with two people
    "names": "s1\tKim\tB-PER\ns1\tslept\tO\ns2\tAda\tB-PER\ns2\tsaw\tO\ns2\tKim\tB-PER\n",
    "names and empty lines": "s1 Kim B-PER\ns1 slept O\n\ns2 Ada B-PER\ns2 saw O\ns2 Kim B-PER\n",
    "a head": "sid word tag\n0 Kim B-PER\n0 slept O\n1 Ada B-PER\n1 saw O\n1 Kim B-PER\n",
    "CSV": "id,word,tag\na0,Kim,B-PER\na0,slept,O\na1,Ada,B-PER\na1,saw,O\na1,Kim,B-PER\n",
    "a document and counts": "d 0 1 Kim B-PER\nd 0 2 slept O\n\nd 0 1 Ada B-PER\nd 0 2 saw O\nd 0 3 Kim B-PER\n",
}


@pytest.mark.parametrize("text", NAMED.values(), ids=NAMED)
def test_names_of_sentences_are_no_tokens(text, tmp_path):
    sentences = read_entities(write(tmp_path, text))
    assert [s.text for s in sentences] == ["Kim slept", "Ada saw Kim"]
    assert [s.spans for s in sentences] == [[(0, 3, "PER")], [(0, 3, "PER"), (8, 11, "PER")]]
    if "," not in text:
        assert [s.text for s in read_conll_tokens(text.splitlines())] == ["Kim slept", "Ada saw Kim"]


def test_tokens_that_recur_are_no_names(tmp_path):
    text = "no DT B-X\nno DT O\nno DT O\nyes UH O\nno DT O\n"
    assert read_entities(write(tmp_path, text))[0].text == "no no no yes no"


def test_lines_within_quotes_are_refused(tmp_path):
    """The quotes would be parts of the first and the last word of each line."""
    with pytest.raises(ValueError, match="needs one sentence of words per line. Received: lines within quotes"):
        read_segmented(write(tmp_path, '"今天 天气 好"\n\n"我 爱 你"\n'))
    assert read_segmented(write(tmp_path, '" 今天 好 "\n" 你 好 "\n')) == [
        ['"', "今天", "好", '"'],
        ['"', "你", "好", '"'],
    ]
    assert read_segmented(write(tmp_path, '"今天 好"\n你 好\n')) == [['"今天', '好"'], ["你", "好"]]


def test_columns_of_conllu_between_spaces_are_no_classes(tmp_path):
    """The last column has SpaceAfter=No."""
    rows = (
        "1 Kim Kim PROPN NNP _ 2 nsubj _ _",
        "2 slept sleep VERB VBD _ 0 root _ SpaceAfter=No",
        "3 . . PUNCT . _ 2 x _ _",
    )
    text = "\n".join(["# id", *rows, ""])
    with pytest.raises(ValueError, match="CoNLL-U needs tabs between its columns. Received: spaces"):
        read_tagged(write(tmp_path, text))
    (sentence,) = read_tagged(write(tmp_path, text), column=3)
    assert [label for *_, label in sentence.spans] == ["PROPN", "VERB", "PUNCT"]
    assert read_tagged(write(tmp_path, text.replace(" ", "\t").replace("#\t", "# ")))[0] == sentence


@pytest.mark.parametrize("kind", ["PER|LOC", "LOC/PER", "PER|B-ORG"])
def test_types_that_join_others_are_refused_in_spans_too(tmp_path, kind):
    spans = [[0, 3, kind], [4, 5, "PER"], [6, 7, "LOC"]]
    path = write(tmp_path, json.dumps({"text": "Kim a b", "label": spans}) + "\n")
    with pytest.raises(ValueError, match=":1: needs one type for an entity. Received: '.*', which joins several"):
        read_entities(path)


def test_spacy_2_has_entities_and_parts_of_speech(tmp_path):
    tokens = [{"orth": "Kim", "tag": "NNP", "ner": "U-PER"}, {"orth": "slept", "tag": "VBD", "ner": "-"}]
    path = write(tmp_path, json.dumps([{"id": 0, "paragraphs": [{"sentences": [{"tokens": tokens}]}]}]))
    assert [label for *_, label in read_tagged(path)[0].spans] == ["NNP", "VBD"]
    (sentence,) = read_entities(path)
    assert (sentence.spans, sentence.unknown) == ([(0, 3, "PER")], [(4, 9)])


@pytest.mark.parametrize(
    "lines", ["上/B 海/E 热/S\n", "上/B-NR 海/E-NR 热/S-VA\n", "上\tB-NR\n海\tE-NR\n热\tS-VA\n", "上\tB\n海\tI\n"]
)
def test_tags_of_characters_are_no_classes_of_words(tmp_path, lines):
    """Each character would be a word, and B, M, E and S their classes."""
    path = write(tmp_path, lines * 3)
    with pytest.raises(ValueError, match="Received: (tags of characters|words with the types of entities)"):
        TASKS["cws-pos"].read_file(str(path), {"column": -1})
    with pytest.raises(ValueError, match="Received: (what looks like (characters and their tags|entities)|words with)"):
        read_segmented(path)


def test_texts_that_are_addresses_are_refused(tmp_path):
    result = [{"result": [{"type": "choices", "value": {"choices": ["pos"]}}]}]
    path = write(tmp_path, json.dumps([{"id": 1, "data": {"text": "gs://texts/1.txt"}, "annotations": result}]))
    with pytest.raises(ValueError, match="needs the text itself, not the address of a file: gs://texts/1.txt"):
        read_classified(path)
