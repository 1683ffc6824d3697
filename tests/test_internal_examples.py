"""Tests of kcrf.corpora, kcrf.readers, kcrf.tags, kcrf.tokenizers, kcrf.augmentation, kcrf.chains: small functions."""

import numpy as np
import pytest

from kcrf.augmentation.pieces import apart, choose, group_words, pieces_of, text_of
from kcrf.augmentation.translation import back_translate
from kcrf.chains import Packing, best_paths, entropies_of, roles_of
from kcrf.chains.recursions import _blocks
from kcrf.checkpoints.names import layer_owner
from kcrf.checkpoints.tensor_bundle import VARINT, parse_message, read_varint
from kcrf.corpora import Example, Sentence, tagged_sentence
from kcrf.corpora.annotation_tools import PreAnnotation, doccano_line
from kcrf.corpora.classified import have_decimals, sorted_labels
from kcrf.corpora.columns import begin_columns
from kcrf.corpora.conll import _respelled, conll_lines, join_tokens, read_conll_tokens
from kcrf.corpora.json_objects import begins_json, json_objects
from kcrf.corpora.lines import encoding_hint
from kcrf.corpora.offsets import fitting_units, from_units, misplaced, to_utf16, trimmed_span
from kcrf.corpora.sentences import for_each_group, known_runs, outside_spans
from kcrf.corpora.splits import NearDuplicates, trigrams
from kcrf.corpora.tables import iterate_texts
from kcrf.corpora.tagged import joined_sentence, tagged_lines, tags_of_tokens
from kcrf.corpora.word_classes import class_sign, without_class, without_identifiers
from kcrf.files import shortened
from kcrf.linear.quasi_newton import minimize
from kcrf.metrics.bootstrap import bootstrap_difference, bootstrap_scores, f1_of_counts, span_counts
from kcrf.networks.network import most_likely_temperature
from kcrf.readers import CharacterReader, Vocabulary, WordReader, WordVocabulary
from kcrf.readers.code_points import character_type, code_points, types_of_characters
from kcrf.readers.ngrams import buckets_of, places_of
from kcrf.readers.padding import pad
from kcrf.readers.pieces import case_of
from kcrf.readers.units import tags_of_units, with_copies
from kcrf.readers.vocabulary import fold
from kcrf.readers.windows import cut_pair, windows, with_stops
from kcrf.readers.word_tokens import choose_units, shape_of, splits_of, token_spans
from kcrf.tags import bio, bmes
from kcrf.tags.scheme import violation_in_words, word_starts, word_tags
from kcrf.tasks.forms import items_of
from kcrf.tasks.tokens import sentence_of_tokens
from kcrf.tokenizers.characters import ALONE, WORD, character_classes, normalize_with_origins, words_of
from kcrf.tokenizers.vocabularies import continues_word, vocab_text

BACKENDS = ["torch"]
TAGGED = [[(1, "Kim", "B-PER"), (2, "Smith", "?"), (3, "Jones", "I-PER"), (4, "slept", "O")]]
PFR = [[f"19980101-01-001-{n:03}/m", "迈向/v", "充满/v"] for n in range(1, 11)]
DONT, GERMANY = pieces_of("don't miss")[0], "Germany's U.N. team didn't pay $1,000 (O'Brien)."
LEEDS = WordVocabulary.of(["Leeds", "leeds"], min_words=1, min_features=1)
GBK = "; it looks like GB18030: `iconv -f GB18030 -t UTF-8 text.txt > NEW_FILE` converts it"
MINIMUM = np.array([3.0, 0.5])
EXAMPLES = [
    (
        doccano_line(PreAnnotation("😀李雷", [(1, 3, "PER")], [], 0.5)),
        '{"text": "😀李雷", "label": [[2, 4, "PER"]], "uncertainty": 0.5}',
    ),
    ([have_decimals(x) for x in (["1", "2.5"], ["1", "0"], ["2.5", "good"])], [True, False, False]),
    ([sorted_labels(x) for x in ({"10", "9"}, {"b", "10", "9"})], [("9", "10"), ("10", "9", "b")]),
    ([begin_columns(x) for x in (["-DOCSTART- O"], ["Kim B-PER"], ["Kim B-PER", "Lee I-PER"])], [True, None, True]),
    ([_respelled(x) for x in ("b_LOC", "I:PER", "o", "PER")], ["B-LOC", "I-PER", "O", "PER"]),
    (shortened([3, 5, 8], most=2), "3, 5 and 1 more"),
    ([s.text for s in read_conll_tokens(["Kim NNP", "slept VBD", "", "Yes"])], ["Kim slept", "Yes"]),
    (conll_lines(Sentence("Kim slept", [(0, 3, "PER")], [(0, 3), (4, 9)])), ["Kim\tB-PER", "slept\tO", ""]),
    ([begins_json(["", '[{"text": "a"}]']), begins_json(["[ O", "] O"])], [True, False]),
    (json_objects("data.json", ['[{"a": 1},', ' {"a": 2}]']), [(1, {"a": 1}), (2, {"a": 2})]),
    (encoding_hint("text.txt", "我们".encode("gbk")), GBK),
    (
        misplaced([(1, "李雷在", [(0, 2, "PER", "李雷"), (1, 3, "PER", "李雷"), (2, 9, "X", None)])]),
        [(1, "李雷在", (1, 3, "PER", "李雷"))],
    ),
    (fitting_units([("😀李雷", [(2, 4, "PER", "李雷")])]), ["UTF-16 code units"]),
    ([to_utf16("😀李雷", 1), from_units("😀李雷", 2), from_units("😀李雷", 1)], [2, 1, None]),
    (trimmed_span("汪建航 来了", (0, 4, "PER")), (0, 3, "PER")),
    (
        for_each_group(
            ["pku", "gsd"] * 2, lambda standard, *columns: zip([standard] * 2, *columns), "天地天地", [4, 5, 6, 7]
        ),
        [("pku", "天", 4), ("gsd", "地", 5), ("pku", "天", 6), ("gsd", "地", 7)],
    ),
    (known_runs(TAGGED), [[(0, [(1, "Kim", "B-PER")]), (3, [(4, "slept", "O")])]]),
    (outside_spans([(2, 4), (6, 9)], [(0, 7), (8, 10)]), [(0, 2), (4, 6), (9, 10)]),
    (
        [
            text in NearDuplicates(["The weather will be fine on Monday."])
            for text in ("the weather will be fine on Tuesday.", "It will rain on Monday.")
        ],
        [True, False],
    ),
    (sorted(trigrams("A b Ab")), ["aba", "bab"]),
    (list(iterate_texts(["id,review", '1,"Good, cheap."'], "data.csv", "table", ["review"])), ["Good, cheap."]),
    (
        joined_sentence(["用", "Python"], ["P", "NOUN"], join_all=True),
        Sentence("用Python", [(0, 1, "P"), (1, 7, "NOUN")], [(0, 1), (1, 7)]),
    ),
    (tags_of_tokens(tagged_sentence(["Kim", "slept"], ["PROPN", None])), ["PROPN", "?"]),
    (tagged_lines(["Kim", "slept"], ["PROPN", "VERB"]), ["Kim\tPROPN", "slept\tVERB", ""]),
    ([class_sign(["今天_t", "天气_n", "好_a"]), class_sign(["snake_case", "is", "a", "name"])], [("_", 3), (None, 0)]),
    ([without_class(x) for x in ("充满/v", "[中国/ns", "人民/n]nt", "好")], ["充满", "中国", "人民", "好"]),
    (without_identifiers("pfr.txt", PFR)[0], ["迈向/v", "充满/v"]),
    (
        [character_type(c) for c in "国三7Ａの。∶％"],
        ["han", "numeral", "digit", "latin", "kana", "sign", "sign", "sign"],
    ),
    (types_of_characters(code_points("国。")).tolist(), [7, 3]),
    (places_of("c-1 t+2"), [("c", -1), ("t", 2)]),
    ([buckets_of(20_000), buckets_of(10_000_000)], [131072, 524288]),
    (pad([[1, 2], [3]], length=3, count=3).tolist(), [[1, 2, 0], [3, 0, 0], [0, 0, 0]]),
    ([case_of(word) for word in ("1998", "leeds", "Leeds", "NASA", "iPhone")], [0, 1, 2, 3, 4]),
    ([choose_units([Sentence(x, [])]) for x in ("Kim lives in Leeds.", "李雷住在上海。")], ["words", "characters"]),
    (splits_of([Sentence("UN-led forces", [(0, 2, "ORG")])]), "-"),
    (tags_of_units(bmes(), np.array([[0, 4], [4, 5], [5, 6]]), [(0, 2), (2, 5), (5, 6)]), [-1, 3, 0]),
    (with_copies(["a", "b"], [["A"], []]), ["a", "A", "b"]),
    ([fold(x) for x in "Ａ７国"], ["a", "0", "国"]),
    (with_stops("It is 1.5 km. Go."), "It is 1.5 km。 Go."),
    ([cut_pair("abcdef", "xy", 5), cut_pair("abcdef", "uvwxyz", 6)], [("abc", "xy"), ("abc", "uvw")]),
    (token_spans("UN-led", "-").tolist(), [[0, 2], [2, 3], [3, 6]]),
    (
        [shape_of(word) for word in ("Leeds", "NASA", "McCoy", "1,998", "U.S.", "北京")],
        ["Xxx", "XX", "XxXxx", "d,dd", "X.X.", "xx"],
    ),
    (
        [violation_in_words(*pair) for pair in ((None, "m"), ("b", "b"), ("b", None))],
        ["m at the start", "b after b", "b at the end"],
    ),
    ([word_starts([3, 0, 2, 1, 3]), word_tags(4)], [[0, 1, 2, 3], [1, 2, 2, 3]]),
    (words_of("今天 is fine!").tolist(), [[0, 1], [1, 2], [3, 5], [6, 10], [10, 11]]),
    ([character_classes().of("中"), character_classes(split_chinese=False).of("中")], [ALONE, WORD]),
    ([list(x) for x in normalize_with_origins("\u00c9T", True, True)], [["e", "\u0301", "t"], [0, 0, 1]]),
    (vocab_text({"a": 0, "b": 2}), "a\n\nb\n"),
    (continues_word({"go": 0, "##ing": 2}).tolist(), [False, False, True]),
    (pieces_of("A cat. "), ([("", "A"), (" ", "cat"), ("", ".")], " ")),
    (group_words(pieces_of("大学生活")[0], {"大学", "生活"}.__contains__, 2), [(0, 2), (2, 4)]),
    (choose(np.random.default_rng(0), 3, 0.0), [0]),
    (text_of(apart(DONT[::-1], DONT)), " missn't do"),
    (join_tokens(["Kim", "in", "上", "海"]), ("Kim in上海", [(0, 3), (4, 6), (6, 7), (7, 8)])),
    (windows("雨停了。天晴了。", limit=5, overlap=1), [(0, 4, 0, 4), (4, 8, 4, 8)]),
    (
        [GERMANY[start:end] for start, end in token_spans(GERMANY)],
        ["Germany", "'s", "U.N.", "team", "did", "n't", "pay", "$", "1,000", "(", "O'Brien", ")", "."],
    ),
    (WordReader(WordVocabulary.of(["in", "in"])).read(["In Leeds."])[0].units.tolist(), [[0, 2], [3, 8], [8, 9]]),
    ((LEEDS.words, LEEDS.encode(["Leeds", "York"])["tokens"].tolist()), (["leeds"], [2, 1])),
    (
        CharacterReader(Vocabulary.of(["天大"], min_bigrams=1)).read(["天大"])[0].windows[0].inputs,
        {"characters": [2, 3], "bigrams": [2, 3]},
    ),
    (span_counts([[(0, 1, ""), (1, 3, "")]], [[(0, 1, "", 0.9)]]).tolist(), [[1, 2, 1]]),
    (bootstrap_difference([[1, 1, 1]] * 9, [[0, 1, 1]] * 9), (1.0, 1.0, 1.0)),
    (bootstrap_scores([[1, 1, 1]] * 9, samples=3).tolist(), [1.0, 1.0, 1.0]),
    (float(f1_of_counts(np.array([1, 2, 2]))), 0.5),
    ([(sources.tolist(), targets.tolist()) for sources, targets in _blocks(np.eye(2) > 0)], [([[0], [1]], [[0], [1]])]),
    (best_paths(np.array([[1, 0], [0, 0.9]]), np.array([[0, -2.0], [0, 0]]), Packing([0], [2])).tolist(), [0, 0]),
    (entropies_of(np.array([[0.5, 0.5], [1.0, 0.0]])).round(4).tolist(), [0.6931, 0.0]),
    ([part.tolist() for part in roles_of(bio(["X"]))], [[True, True, False], [-1, 2, 2]]),  # O, B-X, I-X
    (most_likely_temperature(lambda temperature: -((1 / temperature - 0.5) ** 2)), 2.0),
    (
        minimize(lambda x: (((x - MINIMUM) ** 2).sum() / 2, x - MINIMUM), np.zeros(2), l1=1.0)[0].round(4).tolist(),
        [2.0, 0.0],
    ),
    ([read_varint(bytes([0xAC, 0x02]), 0), parse_message(bytes([0x08, 0x63]), {1: VARINT})], [(300, 2), {1: 99}]),
    (
        [layer_owner(x) for x in ("bert/encoder/layer_10/output/dense/kernel", "bert.pooler.dense.weight")],
        [10, "pooler"],
    ),
    (sentence_of_tokens("Kim slept").tokens, [(0, 3), (4, 9)]),
    (
        items_of("ner", "train", [("Kim slept", [(0, 3, "PER")]), {"tokens": ["Ada"], "ner_tags": ["B-PER"]}]),
        [Sentence("Kim slept", [(0, 3, "PER")]), Sentence("Ada", [(0, 3, "PER")], [(0, 3)])],
    ),
    (back_translate([Example("a fine film", "good")], "sed s/fine/good/"), [[Example("a good film", "good")]]),
]


@pytest.mark.parametrize(("found", "expected"), EXAMPLES)
def test_small_functions(found, expected):
    assert found == expected
