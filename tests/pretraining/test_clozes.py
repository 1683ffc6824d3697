"""kcrf.pretraining.Cloze: patterns by hand, probabilities beside the product of all tokens, what is refused."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from kcrf.pretraining import Cloze
from kcrf.tokenizers import Tokenizer

BACKENDS = ["torch"]
TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"很不满意差评书菜贵，。"]
TOKENIZER = Tokenizer({token: i for i, token in enumerate(TOKENS)}, do_lower_case=True)


def tokens(row):
    return "".join(TOKENS[i] if len(TOKENS[i]) == 1 else {"[MASK]": "_", "[PAD]": "."}.get(TOKENS[i], "|") for i in row)


def test_a_text_stands_in_its_pattern_and_the_gap_gets_the_word_of_the_label():
    cloze = Cloze(TOKENIZER, "{label}满意，{text}。", {"yes": "很", "no": "不"})
    filled = cloze.encode(["书很贵", "菜"])
    assert [tokens(row) for row in filled.token_ids] == ["|_满意，书很贵。|", "|_满意，菜。|.."]
    assert filled.gaps.tolist() == [[1], [1]] and not filled.segment_ids.any()
    answers = cloze.answers(filled, ["no", "yes"])
    assert [tokens(row) for row in answers] == ["|不满意，书很贵。|", "|很满意，菜。|.."]
    assert (answers != filled.token_ids).sum() == 2


def test_texts_are_cut_and_the_pattern_is_not():
    cloze = Cloze(TOKENIZER, "{text}，{label}。{text_b}", {"yes": "满意", "no": "差评"})
    filled = cloze.encode([("书" * 9, "菜贵"), ("书", "菜" * 9), ("书书", "菜")], maxlen=10)
    assert [tokens(row) for row in filled.token_ids] == ["|书书，__。菜贵|", "|书，__。菜菜菜|", "|书书，__。菜|."]
    assert filled.gaps.tolist() == [[4, 5], [3, 4], [4, 5]]
    with pytest.raises(ValueError, match="`maxlen` must leave room for a text in .* Received: maxlen=6"):
        cloze.encode([("书", "菜")], maxlen=6)


def test_the_probability_of_a_label_is_the_product_over_the_tokens_of_its_word_among_all_labels():
    cloze = Cloze(TOKENIZER, "{text}，{label}", {"a": "满意", "b": "差评", "c": "不满"})
    filled = cloze.encode(["书", "菜贵"])
    predicted = np.random.default_rng(0).dirichlet(np.ones(len(TOKENS)), filled.token_ids.shape)
    expected = []
    for row, at in zip(predicted, (3, 4)):
        products = [row[at, TOKENS.index(x)] * row[at + 1, TOKENS.index(y)] for x, y in ("满意", "差评", "不满")]
        expected.append([product / sum(products) for product in products])
    assert_allclose(cloze.probabilities(predicted, filled), expected, rtol=1e-12)
    predicted[0, 3:5, TOKENS.index("满")] = 0  # a word that is impossible
    found = cloze.probabilities(predicted.astype("float32"), filled)[0]
    assert found[0] == 0 and abs(found.sum() - 1) < 1e-12


def test_words_without_any_probability_are_equal_and_scores_are_refused():
    cloze = Cloze(TOKENIZER, "{text}{label}", {"a": "很", "b": "不"})
    filled = cloze.encode(["书"])
    predicted = np.zeros((1, 4, len(TOKENS)), "float16")
    predicted[..., 0] = 1  # the others are too small for half precision
    assert cloze.probabilities(predicted, filled).tolist() == [[0.5, 0.5]]
    for scores in (predicted - 0.5, 2 * predicted, np.full_like(predicted, np.nan)):
        with pytest.raises(ValueError, match="`predicted` must be probabilities.* Received: numbers from"):
            cloze.probabilities(scores, filled)


@pytest.mark.parametrize(
    ("pattern", "words", "message"),
    [
        ("{text}", {"a": "很"}, "`pattern` needs {label} and {text} once"),
        ("{label}{label}{text}", {"a": "很"}, "`pattern` needs {label} and {text} once"),
        ("{label}满{text_b}", {"a": "很"}, "`pattern` needs {label} and {text} once"),
        ("{label}{text}{foo}", {"a": "很"}, "for pairs {text_b}, no other. Received: "),
        ("{label}{text}", {"a": "很", "b": "差评"}, "`words` must be different ones of as many tokens. Received: "),
        ("{label}{text}", {"a": "很", "b": "很"}, "`words` must be different ones"),
        ("{label}{text}", {"a": "很", "b": "坏"}, "`words` and .MASK. must be in the vocabulary. Received: '坏'"),
    ],
)
def test_patterns_and_words_that_do_not_fit_are_refused(pattern, words, message):
    with pytest.raises(ValueError, match=message.replace("{", r"\{")):
        Cloze(TOKENIZER, pattern, words)


def test_texts_and_labels_that_do_not_fit_are_refused():
    words = {"yes": "很", "no": "不"}
    single, pairs = Cloze(TOKENIZER, "{text}{label}", words), Cloze(TOKENIZER, "{text}{label}{text_b}", words)
    for cloze, text, needed in (
        (pairs, "书菜", "pairs of strings"),  # not a pair of two characters
        (pairs, ("书",), "pairs of strings"),
        (single, ("书", "菜"), "strings"),
        (single, None, "strings"),
    ):
        with pytest.raises(TypeError, match=f"needs {needed}. Received: "):
            cloze.encode([text])
    with pytest.raises(TypeError, match="`texts` must be a list. Received: '书菜'"):
        single.encode("书菜")
    with pytest.raises(ValueError, match="`texts` needs at least one text. Received: none"):
        single.encode([])
    assert tokens(pairs.encode(np.array([["书", "菜"]])).token_ids[0]) == "|书_菜|"
    filled = single.encode(text for text in ("书", "菜"))
    for labels in (["no"], ["no", "maybe"], ["no"] * 3):
        with pytest.raises(ValueError, match="`labels` needs one of .*'no'.* for each of 2 texts. Received: "):
            single.answers(filled, labels)
