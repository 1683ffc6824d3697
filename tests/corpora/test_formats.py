"""Tests of kcrf.corpora.conll, kcrf.corpora.tagged.

The formats of the files *_formats.py: a small file of each, as its tools or publishers write it.
"""

import json
from unittest.mock import Mock

import pytest

from kcrf.corpora import column_formats, read_classified, read_conll, read_entities, read_segmented, read_tagged
from kcrf.corpora.columns import begin_columns
from kcrf.corpora.conll import read_conll_tokens
from kcrf.corpora.tagged import tags_of_tokens

BACKENDS = ["torch"]


def lines(*objects):
    return "".join(json.dumps(item, ensure_ascii=False) + "\n" for item in objects)


KIM = {"tokens": ["Kim", "Lee", "saw", "Ada"]}
KAGGLE = "Sentence #,Word,POS,Tag\nSentence: 1,Kim,NNP,B-PER\n,Lee,NNP,I-PER\n,saw,VBD,O\n,Ada,NNP,B-PER\n"
WEBANNO = """#FORMAT=WebAnno TSV 3.3
#T_SP=de.tudarmstadt.ukp.dkpro.core.api.lexmorph.type.pos.POS|PosValue
#T_SP=webanno.custom.NamedEntity|identifier|value


#Text=Kim Lee saw Ada
1-1\t0-3\tKim\tNNP\t*[1]\tPER[1]\t
1-2\t4-7\tLee\tNNP\t*[1]\tPER[1]\t
1-3\t8-11\tsaw\tVBD\t_\t_\t
1-4\t12-15\tAda\tNNP\t*\tPER\t
"""
ONTONOTES = """#begin document (nw/x); part 000
nw/x 0 0 Kim NNP (TOP(S(NP* - - - s1 (PERSON* (ARG0* (0
nw/x 0 1 Lee NNP *) - - - s1 *) *) 0)
nw/x 0 2 saw VBD (VP* see 01 1 s1 * (V*) -
nw/x 0 3 Ada NNP (NP*)))) - - - s1 (PERSON) (ARG1*) (1)

#end document
"""
MISC = """# text = Kim Lee saw Ada
1\tKim\tKim\tPROPN\t_\t_\t0\troot\t_\tSpaceAfter=Yes|NER=B-PER
2-3\tLee saw\t_\t_\t_\t_\t_\t_\t_\t_
2\tLee\tLee\tPROPN\t_\t_\t1\tflat\t_\tNER=I-PER
3\tsaw\tsee\tVERB\t_\t_\t1\tx\t_\tNER=O
3.1\tx\tx\tX\t_\t_\t_\t_\t_\t_
4\tAda\tAda\tPROPN\t_\t_\t3\tobj\t_\tNER=B-PER

"""
PUBTATOR = """123|t|Kim Lee
123|a|saw Ada
123\t0\t7\tKim Lee\tPER\tD1
123\t12\t15\tAda\tPER\tD2
123\tCID\tD1\tD2

"""
STUDIO = (
    "annotation_id,annotator,created_at,id,label,lead_time,text,updated_at\n"
    '7,1,2024-01-01,3,"[{""start"":0,""end"":7,""text"":""Kim Lee"",""labels"":[""PER""]},'
    '{""start"":12,""end"":15,""text"":""Ada"",""labels"":[""PER""]}]",1.5,Kim Lee saw Ada,2024-01-01\n'
)
SPACY = [{"orth": "Kim", "ner": "B-PER", "tag": "NNP"}, {"orth": "Lee", "ner": "L-PER", "tag": "NNP"},
         {"orth": "saw", "ner": "O", "tag": "VBD"}, {"orth": "Ada", "ner": "U-PER", "tag": "NNP"}]  # fmt: skip
BIO = ["B-PER", "I-PER", "O", "B-PER"]
NUMBERS = [1, 2, 0, 1]
NAMES = ["O", "B-PER", "I-PER"]
ENGLISH = {  # each has the text Kim Lee saw Ada, with two people
    "Hugging Face, ner_tags": lines({"id": "0", **KIM, "pos_tags": [22, 22, 38, 22], "ner_tags": BIO}),
    "Hugging Face, labels": lines({**KIM, "labels": BIO}),
    "Hugging Face, words and ner": lines({"words": KIM["tokens"], "ner": BIO}),
    "Hugging Face, numbers and names": lines({"names": NAMES}, {**KIM, "ner_tags": NUMBERS}),
    "Hugging Face, id2label": lines({"id2label": dict(enumerate(NAMES))}, {**KIM, "ner_tags": NUMBERS}),
    "Hugging Face, array": json.dumps([{**KIM, "tags": BIO}], indent=2),
    "sentence and label": lines({"sentence": "Kim Lee saw Ada", "label": BIO}),
    "sentence as a list": lines({"sentence": KIM["tokens"], "label": BIO}),
    "spaCy 2": json.dumps([{"id": 0, "paragraphs": [{"raw": "x", "sentences": [{"tokens": SPACY}]}]}]),
    "Kaggle": KAGGLE,
    "Kaggle, without names": KAGGLE.split("\n", 1)[1],
    "doccano, old CSV": "188721, Kim, B-PER\n188721, Lee, I-PER\n188721, saw, O\n188721, Ada, B-PER\n",
    "tokens and tags between commas": "Kim,B-PER\nLee,I-PER\nsaw,O\nAda,B-PER\n",
    "Label Studio, CSV": STUDIO,
    "WebAnno": WEBANNO,
    "OntoNotes": ONTONOTES,
    "CoNLL-U, MISC": MISC,
    "PubTator": PUBTATOR,
    "XML": "<PER>Kim Lee</PER> saw <PER>Ada</PER>\n",
    "XML, ENAMEX": '<s><ENAMEX TYPE="PER">Kim Lee</ENAMEX> saw <ENAMEX TYPE="PER">Ada</ENAMEX></s>\n',
    "tokens/tags": "Kim/B-PER Lee/I-PER saw/O Ada/B-PER\n",
    "columns, other spelling of names": "token\tlabel\nKim\tB-PER\nLee\tI-PER\nsaw\tO\nAda\tB-PER\n",
}


def write(folder, text, name="data.txt"):
    (folder / name).write_text(text, encoding="utf-8")
    return folder / name


def found(path, **options):
    return [(s.text, [(s.text[a:b], label) for a, b, label in s.spans]) for s in read_entities(path, **options)]


ONE_DOCUMENT = ("doccano, old CSV", "Kaggle, without names", "spaCy 2", "Hugging Face, array", "PubTator")
ONE_DOCUMENT += ("WebAnno", "columns, other spelling of names")


@pytest.mark.parametrize("repeats", [1, 3])
@pytest.mark.parametrize("kind", ENGLISH)
def test_entities_are_read(kind, repeats, tmp_path):
    """Also several times over, where the format allows it: sentences stay apart."""
    text = ENGLISH[kind]
    if repeats > 1:
        begin, _, rest = text.partition("\n") if kind in ("Kaggle", "Label Studio, CSV") else ("", "", text)
        if kind in ONE_DOCUMENT:
            return
        text = f"{begin}\n{(rest + chr(10)) * repeats}" if begin else "\n".join([text] * repeats)
    label = "PERSON" if kind == "OntoNotes" else "PER"
    sentence = ("Kim Lee saw Ada", [("Kim Lee", label), ("Ada", label)])
    assert found(write(tmp_path, text)) == [sentence] * repeats


@pytest.mark.parametrize("text", [ONTONOTES, "Kim\tPER\nslept\tO\n"], ids=["OntoNotes", "Few-NERD"])
def test_columns_are_split_once_to_be_recognized_and_read(text, tmp_path, monkeypatch):
    split = Mock(side_effect=column_formats.split_columns)
    monkeypatch.setattr(column_formats, "split_columns", split)
    assert found(write(tmp_path, text)) and split.call_count == 1


CHINESE = {  # each has the text 李雷在上海, with a person and a place
    "CCKS": lines({"originalText": "李雷在上海", "entities": [
        {"label_type": "PER", "overlap": 0, "start_pos": 0, "end_pos": 2},
        {"label_type": "LOC", "overlap": 0, "start_pos": 3, "end_pos": 5}]}),
    "words with the types of entities": "李雷/PER 在/o 上海/LOC\n",
    "characters and labels": lines({"text": "李雷在上海", "labels": ["B-PER", "I-PER", "O", "B-LOC", "I-LOC"]}),
    "XML": "<PER>李雷</PER>在<LOC>上海</LOC>\n",
    "tokens/tags": "李/B-PER 雷/I-PER 在/O 上/B-LOC 海/I-LOC\n",
}  # fmt: skip


@pytest.mark.parametrize("kind", CHINESE)
def test_entities_of_chinese_texts_are_read(kind, tmp_path):
    sentence = ("李雷在上海", [("李雷", "PER"), ("上海", "LOC")])
    assert found(write(tmp_path, CHINESE[kind] * 2)) == [sentence] * 2


def test_the_names_of_tags_stand_in_the_description_of_the_data_set(tmp_path):
    features = {"ner_tags": {"feature": {"names": NAMES, "_type": "ClassLabel"}, "_type": "Sequence"}}
    path = write(tmp_path, lines({**KIM, "ner_tags": NUMBERS}))
    with pytest.raises(ValueError, match="data.txt:1: needs the names of the tags, .* Received: the tag 1"):
        read_entities(path)
    write(tmp_path, json.dumps({"default": {"features": features}}), "dataset_infos.json")
    assert found(path) == [("Kim Lee saw Ada", [("Kim Lee", "PER"), ("Ada", "PER")])]
    write(tmp_path, lines({**KIM, "ner_tags": [-100, 0, 0, 9]}))
    with pytest.raises(ValueError, match="data.txt:1: needs the names of the tags, .* Received: the tag 9"):
        read_entities(path)
    write(tmp_path, lines({**KIM, "ner_tags": [0, -100, 0, 1]}))
    assert read_entities(path)[0].unknown == [(4, 7)]


def pairs(sentences):
    return [" ".join(f"{s.text[a:b]}/{tag}" for (a, b), tag in zip(s.tokens, tags_of_tokens(s))) for s in sentences]


TREEBANKS = {
    "CTB": "<DOC>\n<DOCID> chtb_0001 </DOCID>\n<S ID=1>\nKim_NR saw_VV Ada_NR\n</S>\n</DOC>\n",
    "brackets": "<S ID=1>\n( (IP (NP-SBJ (NR Kim)) (VP (VV saw)\n  (NP-OBJ (-NONE- *) (NR Ada)))) )\n</S>\n",
    "WSJ": "\n======\n\n[ Kim/NR ]\nsaw/VV \n[ Ada/NR ]\n\n======\n",
    "Brown": "\n\n\tKim/NR saw/VV Ada/NR\n\n",
    "WSJ without lines": "\n\n[ Kim/NR ]\nsaw/VV \n[ Ada/NR ]\n",
    "Hugging Face": lines({"tokens": ["Kim", "saw", "Ada"], "ner_tags": [0, 0, 0], "pos_tags": ["NR", "VV", "NR"]}),
    "spaCy 2": json.dumps([{"paragraphs": [{"sentences": [{"tokens": [
        {"orth": "Kim", "tag": "NR"}, {"orth": "saw", "tag": "VV"}, {"orth": "Ada", "tag": "NR"}]}]}]}]),
}  # fmt: skip


@pytest.mark.parametrize("kind", TREEBANKS)
def test_tokens_of_treebanks_are_read(kind, tmp_path):
    path = write(tmp_path, TREEBANKS[kind])
    assert pairs(read_tagged(path)) == ["Kim/NR saw/VV Ada/NR"]
    if kind in ("CTB", "brackets", "WSJ", "Brown", "WSJ without lines"):
        assert [words for words in read_segmented(path, strip_tags=True) if words] == [["Kim", "saw", "Ada"]]


def test_binary_answers_to_one_text_are_joined(tmp_path, capsys):
    """Prodigy's `ner.teach`: one span a line, accepted or rejected. The rest of the text has no label."""
    answers = [((0, 2, "PER"), "accept"), ((3, 5, "LOC"), "accept"), ((2, 3, "LOC"), "reject")]
    items = [
        {
            "text": "李雷在上海。",
            "_input_hash": 1,
            "spans": [dict(zip(("start", "end", "label"), span))],
            "answer": answer,
        }
        for span, answer in answers
    ]
    (sentence,) = read_entities(write(tmp_path, lines(*items)))
    assert sentence.spans == [(0, 2, "PER"), (3, 5, "LOC")] and sentence.unknown == [(2, 3), (5, 6)]
    assert "joined binary answers to the same text" in capsys.readouterr().err


LABELS = {"pubtator": PUBTATOR, "webanno": WEBANNO, "kaggle": KAGGLE, "spacy": ENGLISH["spaCy 2"]}


@pytest.mark.parametrize("read", [read_segmented, read_classified])
@pytest.mark.parametrize("kind", LABELS)
def test_other_tasks_name_the_task(kind, read, tmp_path):
    with pytest.raises(ValueError, match="data.txt: needs .* Received: .*, which --task ner and `kcrf"):
        read(write(tmp_path, LABELS[kind]))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (lines({**KIM, "ner_tags": BIO[:3]}), "data.txt:1: needs a tag for each token"),
        (lines({**KIM, "ner_tags": ["NNP"] * 4}), "data.txt:1: needs O or a tag like B-PER.*; --task pos"),
        (lines({**KIM, "ner_tags": [[], {}, False, "O"]}), "data.txt:1: needs tags that are strings"),
        (lines({"tokens": [3], "ner_tags": ["O"]}), "data.txt:1: needs "),
        (lines({"tokens": "Kim", "ner_tags": ["O"]}), "data.txt:1: needs "),
        (lines({"text": "/data/upload/3/x.txt", "label": [{"start": 0, "labels": ["A"]}], "annotation_id": 1}),
         "data.txt:1: needs .*the text itself, not the address of a file"),
        (lines({"data": {"text": "x"}, "annotations": [{"result": [{"type": "paragraphlabels", "value": {}}]}]}),
         "data.txt:1: needs .*paragraphlabels are not read"),
        (PUBTATOR.replace("Kim Lee\tPER", "Ada\tPER"), "data.txt:1: start and end of an entity"),
        (PUBTATOR + "one\ttwo\n", "data.txt:7: needs a line of PubTator"),
        (lines({"foo": 1}), "data.txt: needs texts with entities, .* Received: JSON objects with foo; convert it"),
        (lines({}), "data.txt: needs texts with entities, .* Received: JSON objects with no members"),
        (STUDIO.replace('""end"":7', '""end"":x'), "data.txt:2: needs a row of Label Studio"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named_with_its_line(text, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        read_entities(write(tmp_path, text))


CONLLU = "\n".join(
    [
        "# text = the man saw a very old friend",
        "# id x",
        "1\tthe\tDET",
        "2-3\tmansaw\t_",
        "2\tman\tNOUN",
        "3\tsaw\tVERB",
    ]
    + [
        "4\ta\tDET",
        "5\tvery\tADV",
        "5.1\tx\tX",
        "6\told\tADJ",
        "7\tfriend\tNOUN",
        "",
        "# text = x y",
        "1\tYes\tINTJ",
        "",
    ]
)


def test_what_is_tagged_is_what_was_learned(tmp_path):
    """Comments with as many parts as there are columns, ranges and empty nodes are no tokens."""
    for text in (CONLLU, CONLLU.replace("\t", " "), "ID\tFORM\tUPOS\n" + CONLLU.replace("ID", "id")):
        learned = read_tagged(write(tmp_path, text))
        tagged = read_conll_tokens(text.splitlines())
        assert [s.text for s in learned] == [s.text for s in tagged] == ["the man saw a very old friend", "Yes"]
    wide = "\n".join(line + "\t_" * 7 if "\t" in line else line for line in CONLLU.splitlines())
    assert [s.text for s in read_conll_tokens(wide.splitlines())] == [
        s.text for s in read_tagged(write(tmp_path, wide))
    ]
    entities = "# a comment\nKim B-PER\nslept O\n\n# id 7\n# B-PER\n"
    assert [s.text for s in read_conll(write(tmp_path, entities))] == ["Kim slept", "#"]
    assert [s.text for s in read_conll_tokens(entities.splitlines())] == ["Kim slept", "#"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("-DOCSTART- -X- O O\n", True),
        ("EU NNP B-ORG\nrejects VBZ O\n", True),
        ("Kim\tB-PER\nslept\tO\n", True),
        ("# text = Kim slept\n" + MISC, True),
        ("vitamin O\nis fine.\n", False),
        ("Kim lives in Leeds.\n", False),
        ("# a heading\nand a text\n", False),
        ("Ich nehme die S-Bahn\nund das U-Boot\n", False),
        ("李雷在上海\n", False),
    ],
)
def test_columns_are_told_from_text_by_their_first_lines(text, expected):
    lines = text.splitlines()
    verdicts = [begin_columns(lines[:count]) for count in range(1, len(lines) + 1)]
    assert next((verdict for verdict in verdicts if verdict is not None), False) is expected
