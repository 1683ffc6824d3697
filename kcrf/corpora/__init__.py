"""Readers of corpora, splits, public corpora to download, and the small built-in ones. Needs no Keras."""

from kcrf.corpora.downloads import download
from kcrf.corpora.json_lines import entity_line, read_entities
from kcrf.corpora.mini import Corpus, load_mini
from kcrf.corpora.read import Sentence, entity_types, read_conll, read_lines, read_segmented, split

__all__ = [
    "Corpus",
    "Sentence",
    "download",
    "entity_line",
    "entity_types",
    "load_mini",
    "read_conll",
    "read_entities",
    "read_lines",
    "read_segmented",
    "split",
]
