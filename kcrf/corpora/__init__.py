"""Reads corpora, splits them, downloads public corpora, and contains two small ones. Needs no Keras."""

from kcrf.corpora.classified import Example, read_classified
from kcrf.corpora.conll import read_conll
from kcrf.corpora.dictionary import label_with_names, read_names
from kcrf.corpora.downloads import Corpus, download, load_mini
from kcrf.corpora.entities import read_entities, sentence_line
from kcrf.corpora.lines import read_lines
from kcrf.corpora.segmented import read_segmented
from kcrf.corpora.sentences import Sentence, entity_types
from kcrf.corpora.splits import sample, split
from kcrf.corpora.tagged import read_tagged, tagged_sentence

__all__ = [
    "load_mini",
    "read_segmented",
    "read_conll",
    "Corpus",
    "Example",
    "Sentence",
    "download",
    "entity_types",
    "label_with_names",
    "read_classified",
    "read_entities",
    "read_lines",
    "read_names",
    "read_tagged",
    "sample",
    "split",
    "tagged_sentence",
]
