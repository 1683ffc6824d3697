"""The class that uses the models of a task."""

from typing import Any

from kcrf.taggers.entity_recognizer import EntityRecognizer
from kcrf.taggers.open_model import RunPath, open_run
from kcrf.taggers.tagger import Tagger
from kcrf.taggers.text_classifier import TextClassifier
from kcrf.taggers.token_tagger import TokenTagger
from kcrf.taggers.word_segmenter import WordSegmenter

_CLASSES: tuple[type[Any], ...] = (WordSegmenter, EntityRecognizer, TokenTagger, TextClassifier)
TAGGERS: dict[str, type[Any]] = {task: tagger for tagger in _CLASSES for task in tagger.tasks}


def load_tagger(run_dir: RunPath, standard: str | None = None) -> Tagger[Any]:
    """Loads any trained model: with a `WordSegmenter`, `EntityRecognizer`, `TokenTagger` or `TextClassifier`.

    Args:
        run_dir: A folder that `kcrf train` wrote, or a file that `kcrf export` wrote.
        standard: The segmentation standard, for a run of several. Defaults to None: the run has one.

    Raises:
        FileNotFoundError: `run_dir` is not a run folder, or a file is missing.
        ValueError: `run_dir` was written by a newer version, a file in it is damaged, or it has no such standard.

    >>> load_tagger("runs/people")(["李雷住在上海。"])               # doctest: +SKIP
    [[Span(start=0, end=2, text='李雷', label='PER', probability=0.98), ...]]
    """
    run = open_run(run_dir)
    tagger = TAGGERS[run.read_config().config.data.task]
    options = {} if standard is None else {"standard": standard}
    return tagger(run, **options)
