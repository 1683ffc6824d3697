"""Back-translation of texts with a label, through a command of the user's."""

import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import replace

from kcrf.corpora import Example
from kcrf.corpora.lines import decode_lines

__all__ = ["back_translate"]


def back_translate(examples: Sequence[Example], command: str) -> list[list[Example]]:
    """Copies of texts with a label in the words of a translator (Sennrich et al. 2016).

    A translation into another language and back says the same in other words. Source of the method:
    https://arxiv.org/abs/1511.06709.

    Args:
        examples: List of `kcrf.corpora.Example`.
        command: A command line for the shell. It reads texts from its standard input, one per line, and writes as many
            lines to its standard output: the n-th is the n-th text, translated there and back. A line end inside of a
            text is replaced by a blank.

    Returns:
        For each example a list with its copy, or an empty list where the translation is blank or is the same text.

    Raises:
        ValueError: The command fails, or writes another number of lines.

    >>> from kcrf.corpora import Example
    >>> back_translate([Example("a fine film", "good")], "sed s/fine/good/")
    [[Example(text='a good film', label='good', text_b=None, source='')]]
    """
    texts = [text for example in examples for text in example.texts if text is not None]
    translated = iter(_translate([" ".join(text.splitlines()) for text in texts], command))
    copies = []
    for example in examples:
        new = {name: next(translated).strip() for name in ("text", "text_b") if getattr(example, name) is not None}
        copy = replace(example, **new) if all(new.values()) else example
        copies.append([copy] if copy != example else [])
    return copies


def _translate(lines, command):
    """The lines that a command makes out of lines."""
    text = "".join(f"{line}\n" for line in lines).encode("utf-8")
    bash = shutil.which("bash")  # fails where any command of a pipe does, not the last alone
    arguments = {"args": [bash, "-o", "pipefail", "-c", command]} if bash else {"args": command, "shell": True}
    done = subprocess.run(**arguments, input=text, stdout=subprocess.PIPE, check=False)
    if done.returncode:
        raise ValueError(f"The translator must succeed. Received: exit status {done.returncode} of {command!r}")
    written = done.stdout.split(b"\n")
    if not written[-1]:
        written.pop()
    if len(written) != len(lines):
        raise ValueError(
            f"The translator must write one line for each line that it reads. Received: {len(written)} lines for "
            f"{len(lines)} of {command!r}"
        )
    return list(decode_lines(written, f"the output of {command!r}"))
