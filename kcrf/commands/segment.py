"""kcrf segment: text in, its words out, a line for each line."""

import argparse

from kcrf.commands.model_input import add_input_options, add_standard_option, checked_input, checked_texts
from kcrf.commands.parsers import add_command
from kcrf.commands.quiet import quick_import
from kcrf.commands.streams import write_results
from kcrf.files import json_line


def add_segment(commands):
    """Adds `kcrf segment`."""
    summary = "Segment text into words: one line out for each line, words separated by one space."
    add_command(commands, "segment", summary, _add_options, _segment)


def _add_options(parser):
    parser.epilog = (
        "With --top-k each line gives up to K lines, each a probability, a tab and the words, and an empty line after\n"
        "them. With --tags a class follows each word, as in 天气/NOUN; with --confidence also, 天气/NOUN/0.987.\n\n"
        "examples:\n  echo 今天天气真好 | kcrf segment --model runs/mine\n"
        "  echo 今天天气真好 | kcrf segment --model runs/joint --tags\n"
        "  kcrf segment --model runs/mine large.txt --out words.txt --workers 4"
    )
    _add_output_options(parser)
    _add_word_options(parser)
    add_standard_option(parser)
    add_input_options(parser, default="the small models for Chinese that come with kcrf")


def _add_output_options(parser):
    """Adds the options on what is written for a line."""
    output = parser.add_mutually_exclusive_group()
    output.add_argument("--confidence", action="store_true", help="Write word/probability, as in 天气/0.987. [no]")
    output.add_argument(
        "--top-k", type=int, metavar="K", help="Write the K most probable segmentations of each line. [only the best]"
    )
    parser.add_argument(
        "--tags",
        action="store_true",
        help="Write word/class, as in 天气/NOUN. Needs a run of --task cws-pos, or no --model. [no]",
    )
    parser.add_argument(
        "--json",
        action="store_true",
        help="Write a JSON object for each line, with its text and its words; with --tags also with their `tags`, with "
        "--confidence with their probabilities, with --top-k with `alternatives`. [no]",
    )


def _add_word_options(parser):
    """Adds the options on the words that the user knows."""
    parser.add_argument(
        "--words",
        metavar="FILE",
        help="A user dictionary: one word per line, with or without a count and a word class after it. The words are "
        "added to the lexicon features of the model, which decides. [none]",
    )
    parser.add_argument(
        "--force-words",
        action="store_true",
        help="Always segment the words in --words as words, whatever the model predicts; with --tags, also with their "
        "classes, if the model has them. [no]",
    )
    parser.add_argument(
        "--keep-latin",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="Never cut runs of Latin letters and digits, such as Python3. [yes]",
    )


def _segment(options):
    from kcrf.tasks import TASKS

    if options.model is None:
        from kcrf.taggers.built_in_model import built_in_segmenter

        options.model = str(built_in_segmenter(options.tags))
    if options.force_words and options.words is None:
        raise ValueError("--force-words needs --words FILE. Received: no --words")
    with checked_input(options) as lines:
        if options.tags and not TASKS[options.model_task].has_word_classes:
            raise ValueError(f"--tags needs a run of --task cws-pos. Received: {options.model}, which has no classes")
        from kcrf.corpora.dictionary import read_user_dictionary

        options.words = read_user_dictionary(options.words) if options.words else {}
        write_results(
            lines, checked_texts(lines), _segmenting, options, in_blocks=options.top_k is not None and not options.json
        )


def _segmenting(options):
    """The function that segments texts, for `write_results`."""
    with quick_import():
        from kcrf.taggers import WordSegmenter

        segmenter = WordSegmenter(
            options.model, options.words, options.force_words, options.keep_latin, options.standard
        )

    def process(texts, on_batch):
        if options.top_k is not None:
            best = segmenter.k_best_batch(texts, options.top_k, options.batch_size, on_batch, tags=options.tags)
            return [_best_words(*item, options) for item in zip(texts, best, strict=True)]
        if not (options.confidence or options.json):
            return segmenter.segment_lines(texts, options.batch_size, on_batch, options.tags)
        segment = segmenter.segment_batch_with_confidence if options.confidence else segmenter.segment_batch
        words = segment(texts, options.batch_size, on_batch, tags=options.tags)
        return [_words(*item, options) for item in zip(texts, words, strict=True)]

    return process


def _words(text, words, options):
    """A line for the words of a text, with `--confidence` or `--json` or both.

    The words are strings, or tuples of a word, its class with `--tags`, and its probability with `--confidence`.
    """
    if not options.json:
        return " ".join("/".join([*parts, f"{probability:.3f}"]) for *parts, probability in words)
    members = _members_of_words([word[:-1] if options.confidence else word for word in words], options.tags)
    if options.confidence:
        members["confidences"] = [round(word[-1], 6) for word in words]
    return json_line({"text": text, **members})


def _members_of_words(words, has_tags):
    """The members `words` and, with classes, `tags` of a JSON object, from strings or from tuples."""
    words = [(word,) if isinstance(word, str) else word for word in words]
    return {"words": [word[0] for word in words], **({"tags": [word[1] for word in words]} if has_tags else {})}


def _best_words(text, best, options):
    """A block of lines, or a line of JSON, for the most probable `(words, probability)` of a text."""
    if not options.json:
        return "".join(f"{p:.4f}\t{' '.join(map(_word_line, words))}\n" for words, p in best)
    alternatives = [{"probability": round(p, 6), **_members_of_words(words, options.tags)} for words, p in best]
    return json_line({"text": text, **_members_of_words(best[0][0], options.tags), "alternatives": alternatives})


def _word_line(word):
    return word if isinstance(word, str) else "/".join(word)
