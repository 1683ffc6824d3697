"""The WordPiece tokenizer of BERT with bert4keras' names and results. Needs no Keras."""

from kcrf.tokenizers.subwords import Encoding, SubwordTokenizer
from kcrf.tokenizers.tokenizer import Tokenizer
from kcrf.tokenizers.vocabularies import load_vocab, save_vocab

__all__ = ["Tokenizer", "SubwordTokenizer", "Encoding", "load_vocab", "save_vocab"]
