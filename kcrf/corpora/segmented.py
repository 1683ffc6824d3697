"""Reads segmented text: a sentence per line, with spaces between words, as in SIGHAN and PKU; or CoNLL-U."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from os import PathLike

from kcrf.corpora.columns import is_conllu, split_columns, tags_at_one_end
from kcrf.corpora.formats import Annotated, Item
from kcrf.corpora.lines import CJK, FilePath, read_corpus_lines, read_lines
from kcrf.corpora.recognize import read_items, tokens_of
from kcrf.corpora.word_classes import are_word_tags, class_sign, without_class, without_identifiers, without_markup
from kcrf.progress_bars import print_note

_MANY = 10  # lines in columns from which on the last one may be taken for labels
_LINES_OF_TAG, _MOST_LATIN = 5, 0.7  # a tag has this many lines or more, and so many of them have Latin letters


def read_segmented(path: str | PathLike[str], strip_tags: bool = False) -> list[list[str]]:
    """Reads segmented text: a sentence per line, with spaces between words.

    Also reads the words of CoNLL-U, of bracketed trees, of JSON lines as `kcrf segment --json` writes them, and of
    exports of doccano, Label Studio and Prodigy in which each word is a labeled span.

    Args:
        path: A UTF-8 file.
        strip_tags: Whether to remove word classes from the words: 充满/v, 第六_OD and 今天_t become 充满, 第六 and
            今天. Defaults to False: a file with word classes is an error.

    Returns:
        A list of words for each line, empty for a blank line, or for each sentence of CoNLL-U. Identifiers that
        begin all lines, as in the People's Daily corpus, are removed, and a note on standard error says so.

    Raises:
        FileNotFoundError: The file does not exist.
        ValueError: The file is not UTF-8, has no word, or is not segmented text, such as raw lines or CoNLL columns.
    """
    lines = without_markup(path, read_corpus_lines(path))
    if is_conllu(lines):
        rows = split_columns(path, lines).sentences
        words = [["".join(row.cells[1].split()) for row in sentence] for sentence in rows]
        return [list(filter(None, sentence)) for sentence in words if any(sentence)]
    if (items := read_items(path, lines, "cws")) is not None:
        return _words_of(path, items)
    split = without_identifiers(path, [line.split() for line in lines])
    sentences = [words for words in split if words]
    if not sentences:
        raise _refusal(path, "a file without words", "at least one line of words separated by spaces")
    if all(words[0][0] == words[-1][-1] == '"' and {*map(len, (words[0], words[-1]))} != {1} for words in sentences):
        raise _refusal(path, "lines within quotes, as tables have them")
    if all(_is_entity_line(words) for words in sentences):
        raise _refusal(path, "what looks like entities, which --task ner and `kcrf.corpora.read_entities` read")
    if len(sentences) > 1 and all(len(words) == 2 and {*words[1]} <= {*"BMESIO"} for words in sentences):
        raise _refusal(path, "what looks like characters and their tags")
    halves = [re.split("[\t,|]", line, maxsplit=1) for line in lines if line.strip()]
    if 2 * sum(len(x) == 2 and len({"".join(half.split()) for half in x}) == 1 for x in halves) > len(halves):
        raise _refusal(path, "what looks like texts beside their words")
    _check_not_labels(path, [line.split("\t") for line in lines if line.strip()], not all(split[:-1]))
    _check_not_columns(path, lines)
    if all(len(x) == 2 and len(x[0].split()) == len(x[1].split()) and x[1].isascii() for x in halves):
        raise _refusal(path, "what looks like words beside their classes")
    if strip_tags:
        return [[without_class(word) for word in words] for words in split]
    _check_no_classes(path, split, [word for words in sentences for word in words])
    check_segmented(path, split)
    return split


def read_predicted_words(path: str | PathLike[str], strip_tags: bool = False) -> list[list[str]]:
    """Reads the words that a segmenter found, as `read_segmented`. Text that is not segmented is only a note."""
    lines = read_lines(path)
    if (items := read_items(path, lines, "cws")) is not None:
        return _words_of(path, items)
    sentences = [line.split() for line in lines]
    all_words = [word for words in sentences for word in words]
    if strip_tags and class_sign(all_words)[0] is not None:
        return [[without_class(word) for word in words] for words in sentences]
    _check_no_classes(path, sentences, all_words)
    try:
        check_segmented(path, sentences)
    except ValueError as error:
        print_note(str(error))
    return sentences


def _refusal(where: object, received: str, needed: str = "one sentence of words per line") -> ValueError:
    return ValueError(f"{where}: needs {needed}. Received: {received}")


def _words_of(path: FilePath, items: Sequence[Item]) -> list[list[str]]:
    """The words of JSON objects, or of texts in which each word is a span."""
    sentences = [tokens_of(path, item) if isinstance(item, Annotated) else item for item in items]
    check_not_characters(path, [(each.number, each.tokens) for each in sentences])
    for number, words, _ in sentences:
        if not all(word and not re.search(r"\s", word) for word in words):
            raise _refusal(f"{path}:{number}", f"words that are empty or contain white space, {words}")
    return [sentence.tokens for sentence in sentences]


def _check_not_labels(path: object, rows: Sequence[Sequence[str]], has_empty_lines: bool) -> None:
    """Refuses texts with labels, and tokens with tags, in columns between tabs."""
    labels = {cells[-1] for cells in rows}
    if all(len(cells) in (2, 3) for cells in rows) and len(rows) >= _MANY and len(labels) <= len(rows) / 5:
        content, readers = "texts with a label each", "--task classify and `kcrf.corpora.read_classified`"
        if has_empty_lines:
            content, readers = "a token and its tag per line", "--task pos and `kcrf.corpora.read_tagged`"
        shown = ", ".join(sorted(labels)[:3])
        raise _refusal(path, f"what looks like {content} ({shown}), which {readers} read")


def _check_not_columns(path: object, lines: Sequence[str]) -> None:
    """Refuses tokens in columns: lines of one width with empty lines between, and a column of few Latin values."""
    rows = [line.split("\t") if "\t" in line else line.split() for line in lines if not line.startswith("#")]
    tokens = [cells for cells in rows if cells and cells[0].strip()]
    columns = list(zip(*tokens, strict=False))[1:]
    width = max(map(len, tokens), default=0)
    if len(tokens) < _MANY or len(tokens) in (len(rows), 0) or min(map(len, tokens)) < max(2, width):
        return
    tags = next((column for column in columns if _are_tags(column)), None)
    if tags is not None:
        shown = f"{width} columns, a token on each line ({', '.join(sorted(set(tags))[:3])})"
        raise _refusal(path, f"what looks like {shown}, which --task ner and --task pos read")


def _are_tags(column: Sequence[str]) -> bool:
    """Whether the values of a column are few and most have Latin letters, as tags do."""
    values = set(column)
    latin = sum(re.search("[A-Za-z]", value) is not None and value.isascii() for value in column)
    return 1 < len(values) <= len(column) / _LINES_OF_TAG and latin >= _MOST_LATIN * len(column)


def _is_entity_line(words: Sequence[str]) -> bool:
    """Whether a line is a token with its tag, or a JSON object, rather than words."""
    is_json = words[0].startswith('{"') and words[-1].endswith("}")
    return is_json or words[0] == "-DOCSTART-" or tags_at_one_end([words])


def _check_no_classes(path: object, lines: Sequence[Sequence[str]], words: Sequence[str]) -> None:
    sign, count = class_sign(words)
    if sign is None:
        return
    if are_word_tags([word.rpartition(sign)[2] for word in words]):
        raise _refusal(path, "what looks like characters and their tags")
    number, first = next((number, line) for number, line in enumerate(lines, 1) if line)
    needed = "words without their classes; `strip_tags=True` removes them, and --task cws-pos learns them"
    raise _refusal(f"{path}:{number}", f"{' '.join(first[:3])}, and so {count} of {len(words)} words", needed)


_MOST = 0.9  # fraction of the lines
_LONG_LINE = 4  # letters: a shorter line may be one word
_LONG_WORD = 6  # characters: in segmented text, few characters stand in words that are longer
_LONGEST_MEAN = 4.0  # characters of the words that a sign separates
_MANY_WORDS, _FEW_LONG = 100, 0.005  # in this many words, more than this fraction has two characters
_SIGN = r"[^\w\s]|_"
Line = tuple[int, Sequence[str]]  # its number and its words


def check_segmented(path: object, lines: Sequence[Sequence[str]]) -> None:
    """Refuses text whose words are not separated by spaces."""
    numbered = [(number, words) for number, words in enumerate(lines, 1) if words]
    check_not_characters(path, numbered)
    sign = _sign_at_words([words for _, words in numbered])
    unsegmented = [] if sign else _unsegmented(numbered)
    if not sign and not unsegmented:
        return
    number, words = unsegmented[0] if unsegmented else numbered[0]
    sign = sign or _sign_in_words([words for _, words in unsegmented])
    if sign:
        received = f"words separated by {sign!r}, as in {' '.join(words)[:20]!r}; replace it by a space"
        raise _refusal(f"{path}:{number}", received, "words separated by spaces")
    single = [words[0] for _, words in numbered if len(words) == 1]
    if len(single) >= _MOST * len(numbered) and sum(map(len, single)) <= _LONGEST_MEAN * len(single):
        raise _refusal(path, "one word on nearly every line", "a sentence of words per line")
    received = f"text that is not segmented in {len(unsegmented):,} of {len(numbered):,} lines, as "
    received += f"{max(words, key=len)[:20]!r}; `kcrf segment` segments it"
    raise _refusal(f"{path}:{number}", received, "words separated by spaces")


def check_not_characters(path: object, lines: Sequence[Line]) -> None:
    """Refuses Chinese text with a space between all characters, as tokenizers write it: each would be a word."""
    words = [word for _, words in lines for word in words if CJK.match(word)]
    if len(words) >= _MANY_WORDS and sum(len(word) > 1 for word in words) <= _FEW_LONG * len(words):
        number, longest = max(lines, key=lambda line: len(line[1]))
        received = f"characters separated by spaces, as in {' '.join(longest)[:20]!r}"
        raise _refusal(f"{path}:{number}", received, "words separated by spaces")


def _sign_at_words(lines: Iterable[Sequence[str]]) -> str | None:
    """The sign that is every second word of nearly all lines, or ends all words but the last; None without one."""
    signs, count = Counter(), 0
    for words in lines:
        separators = {word[-1] for word in words[:-1]} if len(words) < 3 or len(words[1]) > 1 else {*words[1::2]}
        count += len(words) > 1
        signs.update(separators if len(separators) == 1 and re.fullmatch(_SIGN, min(separators)) else ())
    sign, lines_with_it = signs.most_common(1)[0] if signs else (None, 0)
    return sign if lines_with_it >= _MOST * count and lines_with_it > 1 else None


def _unsegmented(lines: Sequence[Line]) -> list[Line]:
    """The lines without words, if they are nearly all lines of some length or hold most characters; else none."""
    count, shorts = len(lines), sum(len(words) == 1 for _, words in lines)
    lines = [(number, words) for number, words in lines if sum(map(str.isalpha, "".join(words))) >= _LONG_LINE]
    single = [(number, words) for number, words in lines if len(words) == 1]
    if lines and len(single) >= _MOST * len(lines) and 2 * shorts > count:
        return single
    words = [word for _, words in lines for word in words if not word.isascii()]
    long = [(number, words) for number, words in lines if max(map(len, words)) > _LONG_WORD]
    in_long_words = sum(len(word) for word in words if sum(map(str.isalpha, word)) > _LONG_WORD)
    return long if 2 * in_long_words > sum(map(len, words)) else []


def _sign_in_words(lines: Sequence[Sequence[str]]) -> str | None:
    """The sign that cuts nearly all lines into short words; None without one."""
    for sign, _ in Counter(sign for words in lines for sign in set(re.findall(_SIGN, words[0]))).most_common(3):
        cut = [[word for word in " ".join(words).split(sign) if word] for words in lines]
        parts = [word for words in cut for word in words]
        short = parts and sum(map(len, parts)) <= _LONGEST_MEAN * len(parts)
        if short and sum(len(words) > 1 for words in cut) >= _MOST * len(cut):
            return sign
    return None
