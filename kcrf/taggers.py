"""Uses trained models: text in, words out."""

import re

from kcrf.training import load_tagger

__all__ = ["WordSegmenter"]


class WordSegmenter:
    """Cuts text into words with the model of a run folder.

    Nothing is lost: the words are the text without its white space, to the character, whatever the text.

    Args:
        run_dir: A folder that `kcrf train` wrote.

    Raises:
        FileNotFoundError: It is no run folder, or misses a file.
        ValueError: It was written by a newer version, or a file in it is damaged.

    Example:

        >>> segmenter = WordSegmenter("runs/pku")                   # doctest: +SKIP
        >>> segmenter.segment("北京大学生前来应聘")                  # doctest: +SKIP
        ['北京', '大学生', '前来', '应聘']
    """

    def __init__(self, run_dir):
        self._tagger = load_tagger(run_dir)

    def segment(self, text):
        """The words of a text, a list of strings. White space ends a word and is left out."""
        return self.segment_batch([text])[0]

    def segment_batch(self, texts, batch_size=64, on_batch=lambda characters: None):
        """The words of several texts, one list each.

        Args:
            texts: Iterable of strings of any length.
            batch_size: Windows of up to 128 characters at a time. Defaults to 64.
            on_batch: Called after each batch with the number of characters it settled.
        """
        pieces = [re.findall(r"\S+", text) for text in texts]
        words = iter(self._tagger.segment([piece for row in pieces for piece in row], batch_size, on_batch))
        return [[word for _ in row for word in next(words)] for row in pieces]
