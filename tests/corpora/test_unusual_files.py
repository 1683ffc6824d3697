"""kcrf.corpora: Files with unexpected content: text without spaces, other offsets, other columns, other encodings."""

import gzip
import json
import zipfile

import pytest

from kcrf.corpora import load_mini, read_conll, read_entities, read_lines, read_segmented, read_tagged
from kcrf.corpora.conll import read_conll_tokens
from kcrf.corpora.segmented import read_predicted_words

BACKENDS = ["torch"]
WORDS = [["今天", "天气", "真好", "。"], ["我们", "去", "图书馆", "看书"], ["李雷", "在", "Apple", "工作"]]
CLASSES = [["t", "n", "a", "w"], ["r", "v", "n", "v"], ["np", "p", "nz", "vn"]]


def write(tmp_path, data):
    path = tmp_path / "text.txt"
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return path


def joined(sign, end="\n"):
    return "".join(sign.join(words) + end for words in WORDS)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (joined(""), "text.txt:1: .* not segmented in 3 of 3 lines, as '今天天气真好。'"),
        ("今天天气真好。 我们去图书馆看书。\n李雷在 Apple 公司工作三年多了\n" * 3, "not segmented in 6 of 6 lines"),
        ("สวัสดีครับผมชื่อสมชาย\n", "not segmented in 1 of 1 lines"),
        (joined("/"), "text.txt:1: .* Received: words separated by '/', as in '今天/天气/真好/。'"),
        (joined("/ "), "Received: words separated by '/', as in '今天/ 天气/"),
        (joined(" / "), "Received: words separated by '/', as in '今天 / 天气"),
        (joined("|"), "Received: words separated by '|'"),
        (joined("_"), "Received: words separated by '_'"),
        (joined(","), "Received: words separated by ','"),
    ],
)
def test_text_without_spaces_between_the_words_is_refused(tmp_path, text, message):
    with pytest.raises(ValueError, match=message.replace("|", r"\|")):
        read_segmented(write(tmp_path, text))


def test_characters_with_spaces_between_them_are_no_words(tmp_path):
    text = "".join(" ".join("".join(words)) + "\n" for words in WORDS) * 8
    with pytest.raises(ValueError, match="text.txt:3: .* Received: characters separated by spaces, as in '李 雷 在 A"):
        read_segmented(write(tmp_path, text))
    with_words = text + "今天 天气 真好"
    assert read_segmented(write(tmp_path, with_words)) == [line.split() for line in with_words.splitlines()]


PFR = [[f"19980101-01-001-{number:03}/m", "[中国/ns", "政府/n]nt", "顺利/ad", "恢复/v"] for number in range(1, 13)]


def test_identifiers_of_the_peoples_daily_are_no_words(tmp_path, capsys):
    path = write(tmp_path, "\n\n".join("  ".join(words) for words in PFR) + "\n")
    assert [words for words in read_segmented(path, strip_tags=True) if words] == [
        ["中国", "政府", "顺利", "恢复"]
    ] * 12
    tagged = read_tagged(path)
    assert len(tagged) == 12 and {sentence.text for sentence in tagged} == {"中国政府顺利恢复"}
    assert tagged[0].spans == [(0, 2, "ns"), (2, 4, "n"), (4, 6, "ad"), (6, 8, "v")]
    note = f"{path}: removed the identifiers that begin all lines, such as 19980101-01-001-001/m\n"
    assert capsys.readouterr().err == 2 * note


@pytest.mark.parametrize("words", [PFR[:9], [*PFR, PFR[0]], [*PFR, ["没有/v", "编号/n"]]])
def test_numbers_at_the_begin_of_some_lines_are_words(tmp_path, words):
    path = write(tmp_path, "".join(" ".join(line) + "\n" for line in words))
    assert [line[0] for line in read_segmented(path, strip_tags=True)] == [line[0].split("/")[0] for line in words]


@pytest.mark.parametrize(
    "rows",
    [
        ["1\tKim\tB-PER\tO", "2\tslept\tO\tO"],
        ["Kim location-GPE", "slept O"],
        ["doc/a 0 0 Kim NNP (NP*) -", "doc/a 0 1 slept VBD * -", "doc/a 0 2 . VBD *) -"],
    ],
)
def test_tokens_in_columns_are_no_sentences_of_words(tmp_path, rows):
    text = "".join("# about\n" + "".join(f"{row}\n" for row in rows) + "\n" for _ in range(6))
    message = f"what looks like {len(rows[0].split())} columns, a token on each line"
    with pytest.raises(ValueError, match=message):
        read_segmented(write(tmp_path, text))


def test_lines_of_as_many_words_are_segmented_text(tmp_path):
    poem = "床前 明月 光 ，\n疑是 地上 霜 。\n\n举头 望 明月 ，\n低头 思 故乡 。\n\n" * 4
    assert read_segmented(write(tmp_path, poem)) == [line.split() for line in poem.splitlines()]


def test_another_column_with_more_entities_of_the_same_types_is_named(tmp_path, capsys):
    germeval = "1\tKim\tB-PER\tO\n2\tLee\tI-PER\tO\n\n1\tUlm\tB-LOC\tB-LOC\n\n"
    path = write(tmp_path, germeval)
    assert [sentence.spans for sentence in read_conll(path)] == [[], [(0, 3, "LOC")]]
    note = (
        "read column 3, in which 1 tokens are in entities; of the same types, 3 are in column 2, which --column 2 reads"
    )
    assert capsys.readouterr().err == f"{path}: {note}\n"
    assert [len(sentence.spans) for sentence in read_conll(path, column=2)] == [1, 1]
    read_conll(write(tmp_path, "EU NNP B-NP B-ORG\nrejects VBZ B-VP O\nGerman JJ B-NP B-MISC\n"))  # chunks
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("text", ["你好\n再见\n", "3772.36\n１２３４５\n", "一 , 二\n三 。 四 。\n"])
def test_short_lines_numbers_and_punctuation_are_segmented_text(tmp_path, text):
    assert read_segmented(write(tmp_path, text)) == [line.split() for line in text.splitlines()]


def test_any_ten_sentences_of_the_built_in_corpus_are_segmented_text(tmp_path):
    sentences = load_mini().train
    for first in range(0, len(sentences), 10):
        part = sentences[first : first + 10]
        text = "".join(" ".join(words) + "\n" for words in part)
        assert read_segmented(write(tmp_path, text)) == part
        with pytest.raises(ValueError, match="not segmented"):
            read_segmented(write(tmp_path, text.replace(" ", "")))


@pytest.mark.parametrize("form", ["{}/{}", "{}_{}", "{}#{}", "{}|{}", "{}({})", "{}／{}", "{}\\{}"])
def test_word_classes_after_any_sign_are_noticed_and_removed(tmp_path, form):
    lines = [" ".join(map(form.format, *pair)) for pair in zip(WORDS, CLASSES, strict=True)]
    path = write(tmp_path, "\n".join(lines))
    with pytest.raises(ValueError, match="text.txt:1: needs words without their classes; .* so 12 of 12 words"):
        read_segmented(path)
    assert read_segmented(path, strip_tags=True) == WORDS


def test_the_confidences_of_kcrf_segment_are_no_words(tmp_path):
    with pytest.raises(ValueError, match="needs words without their classes"):
        read_segmented(write(tmp_path, "今天/0.987 天气/0.63\n真好/1.000\n"))


# -- offsets


def entities(*rows):
    """JSON lines: each row is a text and `(start, end, label[, text])`."""
    names = ("start", "end", "label", "text")
    objects = [{"text": text, "entities": [dict(zip(names, span)) for span in spans]} for text, *spans in rows]
    return "".join(json.dumps(row) + "\n" for row in objects)


def offsets(text, part, encoding, size):
    start = text.index(part)
    return (len(text[:n].encode(encoding)) // size for n in (start, start + len(part)))


@pytest.mark.parametrize(
    ("unit", "count"),
    [
        ("UTF-16 code units", lambda text, part: offsets(text, part, "utf-16-le", 2)),
        ("bytes of UTF-8", lambda text, part: offsets(text, part, "utf-8", 1)),
        (
            "characters with the end included",
            lambda text, part: (text.index(part), text.index(part) + len(part) - 1),
        ),
    ],
)
def test_offsets_that_do_not_fit_the_text_of_an_entity_name_the_unit_that_does(tmp_path, unit, count):
    rows = [("李雷在上海", "李雷"), ("😀李雷在上海。", "李雷"), ("😀😀é 韩梅梅在北京", "韩梅梅")]
    rows = [(text, (*count(text, part), "PER", part)) for text, part in rows]
    with pytest.raises(ValueError, match=rf"text.txt:\d: start and end .* entities; they fit as {unit}$"):
        read_entities(write(tmp_path, entities(*rows)))


def test_offsets_that_fit_in_no_unit_are_refused_and_those_that_fit_are_read(tmp_path):
    row = ("😀李雷在上海", (1, 3, "PER", "李雷"), (4, 6, "LOC"))
    (sentence,) = read_entities(write(tmp_path, entities(row)))
    assert sentence.spans == [(1, 3, "PER"), (4, 6, "LOC")]
    wrong = ("上海很大", (1, 3, "LOC", "上海"))
    with pytest.raises(
        ValueError, match="text.txt:2: .* Received: '海很' at 1, 3 for '上海', the first of 1 such entities$"
    ):
        read_entities(write(tmp_path, entities(row, wrong)), repair=True)
    with pytest.raises(ValueError, match="text.txt:1: .* within its 3 .*; they are within it in bytes of UTF-8$"):
        read_entities(write(tmp_path, entities(("在上海", (3, 9, "LOC")))))


def test_spaces_at_the_edges_of_entities_are_removed_and_counted(tmp_path, capsys):
    row = ("Kim lives in New York .", (0, 4, "PER", "Kim "), (12, 22, "LOC"))
    (sentence,) = read_entities(
        write(
            tmp_path,
            entities(
                row,
            ),
        )
    )
    assert sentence.spans == [(0, 3, "PER"), (13, 21, "LOC")]
    assert "text.txt: removed white space at the edges of 2 entities" in capsys.readouterr().err
    with pytest.raises(
        ValueError, match=r"text.txt:1: an entity must not be white space alone. Received: \(3, 4, 'X'\)"
    ):
        read_entities(write(tmp_path, entities(("Kim lives", (3, 4, "X")))))


# -- columns


def rows(tokens, tags, begin="{token}"):
    pairs = enumerate(zip(tokens.split(), tags.split(), strict=True), 1)
    return "".join(f"{begin.format(token=token, n=n)}\t{tag}\n" for n, (token, tag) in pairs) + "\n"


def test_a_first_column_of_numbers_is_no_token(tmp_path):
    """As in GermEval: a comment with tabs, the number, the token, two columns of tags."""
    text = "#\thttp://example.org/a\t[2009-10-17]\n" + rows("Kim lives in Leeds", "B-PER O O B-LOC", "{n}\t{token}\tO")
    text += "#\thttp://example.org/b\t[2009-10-17]\n" + rows("15 people", "O O", "{n}\t{token}\tO")
    sentences = read_conll(write(tmp_path, text))
    assert [sentence.text for sentence in sentences] == ["Kim lives in Leeds", "15 people"]
    assert sentences[0].spans == [(0, 3, "PER"), (13, 18, "LOC")]
    assert [s.text for s in read_conll_tokens(text.splitlines())] == ["Kim lives in Leeds", "15 people"]
    assert [s.text for s in read_conll_tokens(["1 Kim", "2 slept", "", "1 Yes"])] == ["Kim slept", "Yes"]
    with pytest.raises(ValueError, match="must be one of 4 columns, not the second. Received: 1"):
        read_conll(write(tmp_path, text), column=1)


def test_columns_between_commas_are_named(tmp_path):
    text = "Sentence #,Word,Tag\nSentence: 1,Kim,B-PER\n,lives,O\n"
    with pytest.raises(ValueError, match=r":1: .*; tabs or spaces must separate the columns, not commas$"):
        read_conll(write(tmp_path, text))


def test_numbers_that_are_tokens_stay_tokens(tmp_path):
    assert [s.text for s in read_conll(write(tmp_path, "1 O\n2 O\n\n3 B-X\n"))] == ["12", "3"]
    assert [s.text for s in read_conll(write(tmp_path, "1 CD O\n2 CD O\nof IN O\n"))] == ["1 2 of"]
    assert [s.text for s in read_conll_tokens(["1", "2"])] == ["12"]


def test_comments_are_no_tokens_to_be_tagged():
    lines = ["# text = Kim slept", "Kim", "slept", "", "# id", "#", "#"]
    assert [s.text for s in read_conll_tokens(lines)] == ["Kim slept", "# #"]


CHARACTERS = rows("李 雷 在 C T 检 查 室 。", "B-PER I-PER O O O O O O O") * 4


@pytest.mark.parametrize("odd", ["\ufeff", "……\tO\n", "MRI\tO\n"])
def test_one_odd_token_in_a_file_of_characters_changes_no_other_sentence(tmp_path, odd):
    (first, *others) = read_conll(write(tmp_path, odd + CHARACTERS + odd + CHARACTERS))
    assert {sentence.text for sentence in others} <= {"李雷在CT检查室。", odd.split("\t")[0] + "李雷在CT检查室。"}
    assert len(others) == 7 and first.text.endswith("李雷在CT检查室。")


def test_one_token_without_a_position_keeps_the_positions_of_the_others_away(tmp_path):
    text = rows("科0 技1 大0 学1 在0 北0 京1 。0", "O O O O O O O O") * 20
    sentences = read_conll(write(tmp_path, text + "……\tO\n" + text))
    assert {sentence.text for sentence in sentences} == {"科技大学在北京。", "……科技大学在北京。"}


def test_characters_of_which_latin_words_are_whole_keep_their_spaces(tmp_path):
    (sentence,) = read_conll(write(tmp_path, rows("我 在 用 Google Chrome 看 书 和 新 闻 。", " ".join(["O"] * 11))))
    assert sentence.text == "我在用Google Chrome看书和新闻。"


def test_a_few_odd_tags_among_thousands_are_read_as_conlleval_does(tmp_path, capsys):
    many = rows("a b c d", "B-X I-X O O") * 300
    text = rows("a b", "O I-X") + many + rows("a b", "B-X E-X")
    path = write(tmp_path, text + rows("a b c", "B-Y I-X O") + rows("a", "O") * 2000)
    sentences = read_conll(path)
    assert sentences == read_conll(path, repair=True)
    assert sentences[0].spans == [(1, 2, "X")] and sentences[301].spans == [(0, 2, "X")]
    assert sentences[302].spans == [(0, 1, "Y"), (1, 2, "X")]
    line = "text.txt: 3 of 3,207 tags break their scheme and are read as conlleval does, in line 2, 1505, 1508\n"
    assert capsys.readouterr().err.endswith(line)
    with pytest.raises(
        ValueError, match="text.txt:2: tags must follow .* Received: I-X after O, the first of 1 such tag"
    ):
        read_conll(write(tmp_path, rows("a b", "O I-X") + rows("a b", "B-X O") * 499))  # one in a thousand


# -- encodings


@pytest.mark.parametrize(
    ("encoding", "text", "named"),
    [
        ("gbk", "我们 在 北京 。\n", "GB18030"),
        ("gb18030", "李\tB-PER\n雷\tI-PER\n", "GB18030"),
        ("big5", "我們 在 臺北 。\n", "Big5"),
        ("shift_jis", "私 は 東京 に います\n", "Shift_JIS"),
        ("cp1252", "Müller lives in “Köln”\n", "WINDOWS-1252"),
        ("utf-16", "我们 在 北京\n", "UTF-16"),
        ("utf-16-le", "Kim lives\n", "UTF-16LE"),
        ("utf-16-be", "Kim lives\n", "UTF-16BE"),
        ("utf-16-le", "C\tO\n检查\tO\n", "UTF-16LE"),
        ("utf-16-be", "C\tO\n检查\tO\n", "UTF-16BE"),
    ],
)
def test_another_encoding_is_named_with_the_command_that_converts_it(tmp_path, encoding, text, named):
    path = write(tmp_path, text.encode(encoding))
    for read in (read_lines, read_segmented, read_entities):
        with pytest.raises(
            ValueError, match=f"text.txt.*: needs UTF-8 text. .*`iconv -f {named} -t UTF-8 .*text.txt > NEW"
        ):
            read(path)


def test_bytes_that_no_encoding_fits_are_named_without_a_guess(tmp_path):
    for data in (b"\xff\x00\xfe\n", "今天天气".encode()[:-1]):
        with pytest.raises(ValueError, match=r"text.txt:1: needs UTF-8 text. Received: byte [^;]*$"):
            read_lines(write(tmp_path, data))


def test_packed_files_and_urls_are_named(tmp_path):
    path = write(tmp_path, gzip.compress("我们 在\n".encode()))
    with pytest.raises(
        ValueError, match="text.txt: needs UTF-8 text. Received: a gzip file; `gunzip -k .*text.txt` unpacks"
    ):
        read_lines(path)
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("a.txt", "我们")
    with pytest.raises(ValueError, match="Received: a zip file; `unzip .*text.txt` unpacks"):
        read_lines(path)
    for url in ("https://example.org/a.txt", "/home/me/https:/example.org/a.txt"):
        with pytest.raises(
            FileNotFoundError, match=r"^https:/+example.org/a.txt: needs a file .* Received: a URL; download"
        ):
            read_lines(url)


@pytest.mark.parametrize("text", ["李 雷 来\tB-PER I-PER O\n", "李雷来\tB-PER I-PER O\n", "Kim slept\tPROPN VERB\n"])
def test_the_tags_of_a_sentence_are_no_tag_of_a_token(tmp_path, text):
    (tmp_path / "text").write_text(text * 4, encoding="utf-8")
    readers = [read_tagged, read_conll] if "PER" in text else [read_tagged]
    for read in readers:
        with pytest.raises(ValueError, match=r"text:1: needs one token and its tag on a line. Received: [23] tags, '"):
            read(tmp_path / "text")
    (tmp_path / "text").write_text("Guernica\tB-Work of Art\n", encoding="utf-8")  # a type with spaces
    assert read_conll(tmp_path / "text")[0].spans == [(0, 8, "Work of Art")]


@pytest.mark.parametrize(
    "read, text",
    [
        (read_segmented, "今天 天气 好\n" * 3),
        (read_predicted_words, "今天 天气 好\n" * 3),
        (read_tagged, "Kim\tN\n\nAda\tN\n\n"),
        (read_tagged, "今天/t 好/a\n" * 3),
        (read_tagged, "1\tKim\t_\tN\t_\t_\t_\t_\t_\t_\n\n"),
    ],
)
def test_json_lines_after_lines_of_another_format_are_named(tmp_path, read, text):
    """As if suggestions were appended to a training set that is no JSON."""
    row = '{"text":"他们买狗。","words":["他们","买","狗","。"],"uncertainty":0.004569}'
    (tmp_path / "text").write_text(f"{text}{row}\n", encoding="utf-8")
    number = text.count("\n") + 1
    with pytest.raises(
        ValueError, match=f"text:{number}: needs one format in the whole file. Received: JSON after oth"
    ):
        read(tmp_path / "text")


def test_json_arrays_are_named(tmp_path):
    (tmp_path / "text").write_text('["李雷在上海", {"entities": [[0, 2, "PER"]]}]\n', encoding="utf-8")
    with pytest.raises(ValueError, match="text: needs columns, or JSON objects. Received: JSON arrays"):
        read_conll(tmp_path / "text")
    with pytest.raises(ValueError, match="text: needs tokens .* Received: texts with entities, which --task ner"):
        read_tagged(tmp_path / "text")
    assert read_entities(tmp_path / "text")[0].spans == [(0, 2, "PER")]  # an example of spaCy
