"""Chooses the units of a named-entity recognizer: words or characters. Needs NumPy only."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from kcrf.corpora import Sentence
from kcrf.readers.word_tokens import token_spans

_WORDS_FROM = 2.0  # minimum mean length, in characters, of tokens with letters
_MOST_CUT = 0.1  # maximum fraction of the entities that begin or end inside a word
_SAMPLE = 2000  # sentences
_SPLITS_FROM = 0.001  # fraction of the entities that need a split at a character, so that all texts are split there


def choose_units(sentences: Sequence[Sentence]) -> str:
    """Chooses whether the units of entities are words or characters.

    The units are words if tokens have at least two characters on average, both those of the file and those of
    `token_spans`, and if at most a tenth of the entities begin or end inside a token. So the units are words for
    English, and characters for Chinese, Japanese and Thai, which have no spaces between words.

    >>> from kcrf.corpora import Sentence
    >>> choose_units([Sentence("Kim lives in Leeds.", [])]), choose_units([Sentence("李雷住在上海。", [])])
    ('words', 'characters')
    """
    sample = sentences[:: -(-len(sentences) // _SAMPLE)] if sentences else []
    untokenized = [Sentence(sentence.text, []) for sentence in sample]
    has_words = min(_mean_length(sample), _mean_length(untokenized)) >= _WORDS_FROM
    entities = sum(len(sentence.spans) for sentence in sample)
    return "words" if has_words and len(_cut(sample, splits_of(sample))) <= _MOST_CUT * entities else "characters"


def _mean_length(sentences: Sequence[Sentence]) -> float:
    """The mean length of the tokens with letters, or 0 if there are none."""
    tokens = [sentence.text[start:end] for sentence in sentences for start, end in _tokens(sentence)]
    lengths = [len(token) for token in tokens if any(map(str.isalpha, token))]
    return sum(lengths) / len(lengths) if lengths else 0


def splits_of(sentences: Sequence[Sentence]) -> str:
    """Chooses the punctuation at which words are split, so that entities in texts without tokens are whole words.

    A character, neither a letter nor a digit, is chosen if at least one in a thousand entities begins or ends next to
    it inside a token, as in "UN-led".

    >>> from kcrf.corpora import Sentence
    >>> splits_of([Sentence("UN-led forces", [(0, 2, "ORG")])])
    '-'
    """
    marks = Counter[str]()
    for sentence, span in _cut(sentences):
        for inner, outer in ((span[0], span[0] - 1), (span[1] - 1, span[1])):
            near = [sentence.text[i] for i in (outer, inner) if 0 <= i < len(sentence.text)]
            marks.update([c for c in near if not c.isalnum() and not c.isspace()][:1])
    least = _SPLITS_FROM * sum(len(sentence.spans) for sentence in sentences)
    return "".join(sorted(mark for mark, count in marks.items() if count > least))


def entities_that_cut_tokens(sentences: Sequence[Sentence], splits: str = "") -> list[str]:
    """The texts of the entities that begin or end inside a token, a list."""
    return [sentence.text[span[0] : span[1]] for sentence, span in _cut(sentences, splits)]


def _tokens(sentence: Sentence, splits: str = "") -> Any:
    return sentence.tokens or token_spans(sentence.text, splits).tolist()


def _cut(sentences: Sequence[Sentence], splits: str = "") -> list[tuple[Sentence, Any]]:
    """`(sentence, span)` of each entity that begins or ends inside a token."""
    cut_entities = []
    for sentence in sentences:
        if sentence.spans:
            tokens = _tokens(sentence, splits)
            starts, ends = {start for start, _ in tokens}, {end for _, end in tokens}
            cut_entities += [(sentence, s) for s in sentence.spans if s[0] not in starts or s[1] not in ends]
    return cut_entities
