"""Chooses what carries the tags of entities: the words of a text, or its characters. Needs NumPy only."""

from collections import Counter

from kcrf.corpora import Sentence
from kcrf.readers.word_tokens import token_spans

__all__ = ["choose_units", "entities_that_cut_tokens", "splits_of"]

_WORDS_FROM = 2.0  # mean length, in characters, of the tokens that have letters
_MOST_CUT = 0.1  # share of the entities that may begin or end inside a word
_SAMPLE = 2000  # sentences
_SPLITS_FROM = 0.001  # share of the entities that a character must set free, to cut words everywhere


def choose_units(sentences):
    """Whether entities are made of words or of characters.

    Words, where tokens have two characters or more on average, those of the file as well as those of `token_spans`, and
    at most a tenth of the entities begin or end inside a token. So English goes by words; Chinese, Japanese and Thai,
    which have no blanks between words, go by characters.

    Args:
        sentences: List of `kcrf.corpora.Sentence`; 2,000 of them are looked at.

    Returns:
        "words" or "characters".

    >>> from kcrf.corpora import Sentence
    >>> choose_units([Sentence("Kim lives in Leeds.", [])]), choose_units([Sentence("李雷住在上海。", [])])
    ('words', 'characters')
    """
    sample = sentences[:: -(-len(sentences) // _SAMPLE)] if sentences else []
    untokenized = [Sentence(sentence.text, []) for sentence in sample]
    has_words = min(_mean_length(sample), _mean_length(untokenized)) >= _WORDS_FROM
    entities = sum(len(sentence.spans) for sentence in sample)
    return "words" if has_words and len(_cut(sample, splits_of(sample))) <= _MOST_CUT * entities else "characters"


def _mean_length(sentences):
    """The mean length of the tokens that have letters, 0 without any."""
    tokens = [sentence.text[start:end] for sentence in sentences for start, end in _tokens(sentence)]
    lengths = [len(token) for token in tokens if any(map(str.isalpha, token))]
    return sum(lengths) / len(lengths) if lengths else 0


def splits_of(sentences):
    """The punctuation at which words are cut, so that the entities of a text that comes without tokens are whole words.

    That is each character, neither a letter nor a digit, after or before which entities begin or end inside a token,
    as in "UN-led": if one in a thousand entities does so, the tokens of every text are cut there.

    Args:
        sentences: List of `kcrf.corpora.Sentence`.

    Returns:
        A string, sorted.

    >>> from kcrf.corpora import Sentence
    >>> splits_of([Sentence("UN-led forces", [(0, 2, "ORG")])])
    '-'
    """
    marks = Counter()
    for sentence, span in _cut(sentences):
        for inner, outer in ((span[0], span[0] - 1), (span[1] - 1, span[1])):
            near = [sentence.text[i] for i in (outer, inner) if 0 <= i < len(sentence.text)]
            marks.update([c for c in near if not c.isalnum() and not c.isspace()][:1])
    least = _SPLITS_FROM * sum(len(sentence.spans) for sentence in sentences)
    return "".join(sorted(mark for mark, count in marks.items() if count > least))


def entities_that_cut_tokens(sentences, splits=""):
    """The texts of the entities that begin or end inside a token, a list.

    Args:
        sentences: List of `kcrf.corpora.Sentence`.
        splits: As for `kcrf.readers.word_tokens.token_spans`. Defaults to none.
    """
    return [sentence.text[span[0] : span[1]] for sentence, span in _cut(sentences, splits)]


def _tokens(sentence, splits=""):
    return sentence.tokens or token_spans(sentence.text, splits).tolist()


def _cut(sentences, splits=""):
    """`(sentence, span)` of each entity that begins or ends inside a token."""
    cut_entities = []
    for sentence in sentences:
        if sentence.spans:
            tokens = _tokens(sentence, splits)
            starts, ends = {start for start, _ in tokens}, {end for _, end in tokens}
            cut_entities += [(sentence, s) for s in sentence.spans if s[0] not in starts or s[1] not in ends]
    return cut_entities
