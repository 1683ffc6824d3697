"""kcrf segment and kcrf tag: text in, a line for each line out."""

import sys

from kcrf.commands.parsers import add_command, add_input, check_top_k

__all__ = ["add_segment", "add_tag"]


def add_segment(commands):
    """Adds the parser of `kcrf segment`."""
    parser = add_command(
        commands,
        "segment",
        _segment,
        "Segment text: one line in, one line out, words separated by one blank.",
        "With --top-k a line gives up to K lines, each a probability, a tab and the words; an empty one ends them.\n\n"
        "example:\n  echo 今天天气真好 | kcrf segment --model runs/mine",
    )
    kinds = parser.add_mutually_exclusive_group()
    kinds.add_argument("--confidence", action="store_true", help="write word/probability, as in 天气/0.987")
    kinds.add_argument("--top-k", type=int, metavar="K", help="write the K most probable segmentations of each line")
    add_input(parser)


def _segment(options):
    from kcrf.taggers import WordSegmenter

    check_top_k(options)
    segmenter = WordSegmenter(options.model)

    def write(lines, on_batch):
        if options.top_k is not None:
            best = segmenter.top_k_batch(lines, options.top_k, options.batch_size, on_batch)
            return ["".join(f"{p:.4f}\t{' '.join(words)}\n" for p, words in ways) for ways in best]
        found = segmenter.segment_batch(lines, options.batch_size, on_batch, options.confidence)
        if options.confidence:
            found = [[f"{word}/{probability:.3f}" for word, probability in words] for words in found]
        return [" ".join(words) for words in found]

    _over_lines(options, write)


def add_tag(commands):
    """Adds the parser of `kcrf tag`."""
    parser = add_command(
        commands,
        "tag",
        _tag,
        "Find entities: one line of text in, one JSON object out, with the text and its entities.",
        "With --top-k the object has, too, `alternatives`: the k most probable analyses with their probability.\n\n"
        "example:\n  echo 李雷住在上海。 | kcrf tag --model runs/people",
    )
    parser.add_argument("--top-k", type=int, metavar="K", help="list the K most probable analyses of each line too")
    parser.add_argument(
        "--min-confidence",
        type=float,
        metavar="X",
        help="find all entities whose posterior is at least X; less finds more [as the run was trained]",
    )
    add_input(parser)


def _tag(options):
    from dataclasses import asdict

    from kcrf.corpora import entity_line
    from kcrf.taggers import EntityRecognizer

    check_top_k(options)
    recognizer = EntityRecognizer(options.model, options.min_confidence)

    def write(lines, on_batch):
        found = recognizer.recognize_batch(lines, options.batch_size, on_batch)
        if options.top_k is None:
            return [entity_line(text, list(map(asdict, entities))) for text, entities in zip(lines, found)]
        best = recognizer.top_k_batch(lines, options.top_k, options.batch_size)
        return [
            entity_line(
                text,
                list(map(asdict, entities)),
                alternatives=[{"probability": p, "entities": list(map(asdict, those))} for p, those in alternatives],
            )
            for text, entities, alternatives in zip(lines, found, best)
        ]

    _over_lines(options, write)


_LINES_AT_A_TIME = 1000


def _over_lines(options, process):
    """Writes what `process(lines, on_batch)` makes of the lines of the input, a list of as many lines."""
    from itertools import islice

    from kcrf.corpora.lines import decode_lines
    from kcrf.training.progress import bar

    if options.batch_size < 1:
        raise ValueError(f"--batch-size must be at least 1. Received: {options.batch_size}")
    if not options.file and sys.stdin is None:
        raise ValueError("needs FILE, or text on standard input. Received: neither")
    source = open(options.file, "rb") if options.file else sys.stdin.buffer
    with source, bar() as progress:
        task = progress.add_task("characters", total=None)
        lines = decode_lines(source, options.file or "<stdin>")
        while chunk := list(islice(lines, _LINES_AT_A_TIME)):
            made = process(chunk, lambda count: progress.advance(task, count))
            sys.stdout.buffer.write("".join(f"{line}\n" for line in made).encode("utf-8"))
            sys.stdout.buffer.flush()
