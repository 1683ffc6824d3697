"""Readers of corpora, splits, public corpora to download, and the small built-in ones. Needs no Keras."""

from kcrf.corpora.classified import Example, classified_line, read_classified
from kcrf.corpora.conll import conll_lines, join_tokens, read_conll, read_conll_tokens
from kcrf.corpora.downloads import download
from kcrf.corpora.json_lines import entity_line, read_entities, sentence_line
from kcrf.corpora.lines import read_lines
from kcrf.corpora.mini import Corpus, load_mini
from kcrf.corpora.segmented import read_segmented
from kcrf.corpora.sentences import Sentence, entity_types
from kcrf.corpora.splits import sample, split
from kcrf.corpora.tagged import read_tagged, tagged_sentence
from kcrf.corpora.texts import iterate_texts
from kcrf.corpora.word_list import read_word_list

__all__ = [
    "Corpus",
    "Example",
    "Sentence",
    "classified_line",
    "conll_lines",
    "download",
    "entity_line",
    "entity_types",
    "iterate_texts",
    "join_tokens",
    "load_mini",
    "read_classified",
    "read_conll",
    "read_conll_tokens",
    "read_entities",
    "read_lines",
    "read_segmented",
    "read_tagged",
    "read_word_list",
    "sample",
    "split",
    "tagged_sentence",
]
