"""kcrf segment and kcrf tag: text in, a line out for each line."""

import argparse
import sys
from contextlib import contextmanager

from kcrf.commands.parsers import add_command
from kcrf.commands.quiet import quick_import
from kcrf.commands.streams import Lines, add_stream_options, is_same_file, write_results
from kcrf.files import json_line

__all__ = [
    "add_input_options",
    "add_model_options",
    "add_segment",
    "add_standard_option",
    "add_tag",
    "checked_input",
    "checked_texts",
]

_LONG_TEXT = 8  # letters of another script than ASCII: more than a token has


def add_segment(commands):
    """Adds `kcrf segment`."""
    summary = "Segment text into words: one line out for each line, words separated by one blank."
    add_command(commands, "segment", summary, _add_segment_options, _segment)


def _add_segment_options(parser):
    parser.epilog = (
        "With --top-k each line gives up to K lines, each a probability, a tab and the words, and an empty line after\n"
        "them. With --tags a class follows each word, as in 天气/NOUN; with --confidence also, 天气/NOUN/0.987.\n\n"
        "examples:\n  echo 今天天气真好 | kcrf segment --model runs/mine\n"
        "  echo 今天天气真好 | kcrf segment --model runs/joint --tags\n"
        "  kcrf segment --model runs/mine large.txt --out words.txt --workers 4"
    )
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
    parser.add_argument(
        "--words",
        metavar="FILE",
        help="Words of your own, one per line, with or without a count and a word class after it. The model sees them "
        "in its lexicon and decides. [none]",
    )
    parser.add_argument(
        "--force-words",
        action="store_true",
        help="Take the words in --words wherever they stand, whatever the model finds. [no]",
    )
    parser.add_argument(
        "--keep-latin",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="Never cut runs of Latin letters and digits, such as Python3. [yes]",
    )
    add_standard_option(parser)
    add_input_options(parser, default="the small models for Chinese that come with kcrf")


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
        from kcrf.corpora.word_list import read_word_list

        options.words = read_word_list(options.words) if options.words else {}
        write_results(
            lines, checked_texts(lines), _segmenting, options, in_blocks=options.top_k is not None and not options.json
        )


def _segmenting(options):
    """What segments texts, for `write_results`."""
    with quick_import():
        from kcrf.taggers import WordSegmenter

        segmenter = WordSegmenter(
            options.model, options.words, options.force_words, options.keep_latin, options.standard
        )

    def process(texts, on_batch):
        if options.top_k is not None:
            found = segmenter.k_best_batch(texts, options.top_k, options.batch_size, on_batch, tags=options.tags)
            return [_best_words(*item, options) for item in zip(texts, found, strict=True)]
        if not (options.confidence or options.json):
            return segmenter.segment_lines(texts, options.batch_size, on_batch, options.tags)
        segment = segmenter.segment_batch_with_confidence if options.confidence else segmenter.segment_batch
        found = segment(texts, options.batch_size, on_batch, tags=options.tags)
        return [_words(*item, options) for item in zip(texts, found, strict=True)]

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


def add_tag(commands):
    """Adds `kcrf tag`."""
    summary = "Recognize entities (ner), or predict a class for each token (pos): JSON lines or CoNLL columns out."
    add_command(commands, "tag", summary, _add_tag_options, _tag)


def _add_tag_options(parser):
    parser.epilog = (
        "The model decides what is predicted. For ner, a JSON object for each line has the text and its entities;\n"
        "with --top-k also `alternatives`: the K most probable analyses, each with its probability. For pos, a JSON\n"
        "object has the tokens of a sentence, their tags, and the probabilities of these.\n\n"
        "examples:\n  echo 李雷住在上海。 | kcrf tag --model runs/people\n"
        "  kcrf tag --model runs/english --input conll test.conll > found.jsonl\n"
        "  echo Kim slept . | kcrf tag --model runs/pos --output conll"
    )
    parser.add_argument(
        "--input",
        choices=["text", "tokens", "conll"],
        help="What the input is. text: one text per line, which a model of words cuts into tokens by itself. tokens: "
        "one sentence per line, tokens separated by spaces. conll: one token per line, in the first column, an empty "
        "line between sentences. [text for ner, tokens for pos]",
    )
    parser.add_argument(
        "--output",
        choices=["json", "conll"],
        default="json",
        help="What is written. json: an object per sentence. conll: a token, a tab and its tag per line, an empty line "
        "after each sentence; needs tokens as the input. [%(default)s]",
    )
    parser.add_argument(
        "--top-k", type=int, metavar="K", help="Also list the K most probable analyses of each line. [no]"
    )
    parser.add_argument(
        "--min-confidence",
        type=float,
        metavar="X",
        help="Take all entities whose posterior probability is at least X, between 0 and 1. A smaller X finds more. "
        "[as the run was trained]",
    )
    add_input_options(parser)


def _tag(options):
    from kcrf.tasks import TASKS

    if options.min_confidence is not None and not 0 < options.min_confidence < 1:
        raise ValueError(f"--min-confidence must be above 0 and below 1. Received: {options.min_confidence}")
    with checked_input(options) as lines:
        task = TASKS[options.model_task]
        _check_formats(options, task)
        make = _tagging if task.needs_tokens else _recognizing
        write_results(lines, _inputs(lines, options.input), make, options, in_blocks=options.output == "conll")


def _check_formats(options, task):
    """Sets the format of the input, and refuses options that the task of the model has no use for."""
    options.input = options.input or ("tokens" if task.needs_tokens else "text")
    for name in ("top_k", "min_confidence"):
        if task.needs_tokens and getattr(options, name) is not None:
            raise ValueError(
                f"--{name.replace('_', '-')} needs a run of --task ner. Received: one of --task {task.name}"
            )
    if options.input == "text" and (task.needs_tokens or options.output == "conll"):
        reason = f"a run of --task {task.name}" if task.needs_tokens else "--output conll"
        raise ValueError(f"{reason} needs --input tokens or conll. Received: --input text")
    if options.top_k is not None and options.output == "conll":
        raise ValueError("--top-k needs --output json. Received: --output conll")


def _tagging(options):
    """What predicts a class for each token, for `write_results`."""
    from kcrf.corpora.tagged import tagged_line, tagged_lines

    with quick_import():
        from kcrf.taggers import TokenTagger

        tagger = TokenTagger(options.model)

    def process(sentences, on_batch):
        tokens = [[s.text[start:end] for start, end in s.tokens] for s in sentences]
        if options.output == "conll":
            found = tagger.tag_batch(sentences, options.batch_size, on_batch)
            return ["".join(f"{line}\n" for line in tagged_lines(*pair)[:-1]) for pair in zip(tokens, found)]
        found = tagger.tag_batch_with_confidence(sentences, options.batch_size, on_batch)
        return [
            tagged_line(words, [tag for tag, _ in row], confidences=[round(p, 6) for _, p in row])
            for words, row in zip(tokens, found)
        ]

    return process


def _recognizing(options):
    """What finds entities, for `write_results`."""
    from kcrf.corpora.json_lines import entity_line

    with quick_import():
        from kcrf.taggers import EntityRecognizer

        recognizer = EntityRecognizer(options.model, options.min_confidence)

    def process(given, on_batch):
        if options.output == "conll":
            found = recognizer.recognize_batch(given, options.batch_size, on_batch)
            return [_columns(*pair) for pair in zip(given, found, strict=True)]
        texts = [item if isinstance(item, str) else item.text for item in given]
        found = recognizer.recognize_batch(given, options.batch_size, on_batch)
        found = [list(map(_members, row)) for row in found]
        if options.top_k is None:
            return list(map(entity_line, texts, found))
        best = recognizer.k_best_batch(given, options.top_k, options.batch_size)
        best = [
            [{"probability": round(p, 6), "entities": list(map(_members, row))} for row, p in rows] for rows in best
        ]
        return [entity_line(text, row, alternatives=rows) for text, row, rows in zip(texts, found, best)]

    return process


def _columns(sentence, entities):
    """The block of CoNLL lines for a `Sentence` with tokens."""
    from dataclasses import replace

    from kcrf.corpora.conll import conll_lines

    spans = [(entity.start, entity.end, entity.label) for entity in entities]
    return "".join(f"{line}\n" for line in conll_lines(replace(sentence, spans=spans))[:-1])


def _members(entity):
    """The members of the object that is written for an `Entity`."""
    from dataclasses import asdict

    confidence = entity.confidence
    return {**asdict(entity), "confidence": None if confidence is None else round(confidence, 6)}


def checked_texts(lines, of_tokens=False):
    """The lines, once the first of them is no JSON, no CoNLL column and no whole file with other line ends.

    With `of_tokens`, no line of text without spaces between its words either.
    """
    from kcrf.corpora.lines import BEGINS_OBJECT
    from kcrf.corpora.segmented import ENTITY_TAG

    for first in lines:
        if BEGINS_OBJECT.match(first) and first.rstrip().endswith("}"):
            raise ValueError(
                f"{lines.name}:1: needs a text. Received: a JSON object; `jq -r .text` takes out the texts"
            )
        if "\t" in first and ENTITY_TAG.fullmatch(first.split("\t")[-1]):
            raise ValueError(
                f"{lines.name}:1: needs a text. Received: a token and its tag; --input conll of `kcrf tag`"
            )
        if "\r" in first:
            raise ValueError(f"{lines.name}:1: needs lines that end in \\n or \\r\\n. Received: a \\r inside the line")
        if of_tokens:
            _check_tokens(lines.name, first)
        yield first
        break
    yield from lines


def _check_tokens(name, line):
    """Refuses a column of tokens, or a text that is not segmented, in place of tokens with spaces between them."""
    found = None
    if line.count("\t") == 1 and " " not in line.strip():
        found = "what looks like a token and its tag; --input conll reads columns"
    elif len(line.split()) == 1 and sum(x.isalpha() and not x.isascii() for x in line) >= _LONG_TEXT:
        found = f"text that is not segmented, {line.strip()[:20]!r}; `kcrf segment` segments it"
    if found:
        raise ValueError(f"{name}:1: needs tokens with spaces between them. Received: {found}")


def _inputs(lines, kind):
    """What to find entities in: strings, or `Sentence`s where the tokens are given."""
    from kcrf.corpora.conll import read_conll_tokens
    from kcrf.tasks.tokens import sentence_of_tokens

    if kind == "text":
        return checked_texts(lines)
    if kind == "conll":
        return iter(read_conll_tokens(lines))
    return map(sentence_of_tokens, checked_texts(lines, of_tokens=True))


def add_input_options(parser, items="Windows, of up to 128 positions each,", default=None):
    """Adds the options of a command that uses a model.

    Args:
        parser: The parser of the command.
        items: What a batch consists of.
        default: What is used without --model. Defaults to None: it must be given.
    """
    add_model_options(parser, items, default)
    add_stream_options(parser)


def add_standard_option(parser):
    """Adds the option for the segmentation standard of a model of several."""
    parser.add_argument(
        "--standard", metavar="NAME", help="The segmentation standard, for a model of several. [the only one]"
    )


def add_model_options(parser, items="Windows, of up to 128 positions each,", default=None):
    """Adds the options on the model, its input and its batches; the arguments are as for `add_input_options`."""
    what = "A folder that `kcrf train` wrote, or a file of `kcrf export`."
    parser.add_argument(
        "--model", required=default is None, metavar="RUN", help=what + (f" [{default}]" if default else "")
    )
    parser.add_argument("file", nargs="?", metavar="FILE", help="UTF-8 text. [standard input]")
    parser.add_argument(
        "--batch-size",
        type=int,
        default=64,
        metavar="N",
        help=f"{items} that are computed at once. Fewer need less memory. [%(default)s]",
    )


@contextmanager
def checked_input(options, tasks=None):
    """The lines of the input, once the options and the run folder are checked: loading the model takes much longer.

    `options.model_task` is then the name of the task of the model, one of `tasks`, or of those of the command.
    """
    from kcrf.corpora.lines import check_is_file
    from kcrf.taggers.open_model import check_standard, open_run
    from kcrf.tasks import TASKS

    for name in ("top_k", "batch_size"):
        value = getattr(options, name, None)
        if value is not None and value < 1:
            raise ValueError(f"--{name.replace('_', '-')} must be at least 1. Received: {value}")
    if not options.file and sys.stdin is None:
        raise ValueError("needs FILE, or text on standard input. Received: neither")
    data = open_run(options.model).read_config().config.data
    options.model_task = data.task
    tasks = tasks or [task.name for task in TASKS.values() if task.command == options.command]
    if options.model_task not in tasks:
        needed = " or ".join(tasks)
        raise ValueError(
            f"{options.model}: needs a run of --task {needed}. Received: a run of --task {options.model_task}"
        )
    check_standard(options.model, data.standards, getattr(options, "standard", None))
    if options.file:
        check_is_file(options.file)
    if not options.file and sys.stdin.isatty():
        print(f"kcrf {options.command}: reading from the terminal; Ctrl-D ends the text", file=sys.stderr)
    with open(options.file, "rb") if options.file else sys.stdin.buffer as source:
        if options.out is not None and is_same_file(source, options.out):
            raise ValueError(f"--out needs another file than the input. Received: {options.out}")
        yield Lines(source, options.file or "<stdin>")
