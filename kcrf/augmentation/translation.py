"""Back-translation of labeled texts with an external command."""

import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import replace

from kcrf.corpora import Example
from kcrf.corpora.lines import decode_lines


def back_translate(examples: Sequence[Example], command: str) -> list[list[Example]]:
    """Paraphrases labeled texts by back-translation (Sennrich et al. 2016, https://arxiv.org/abs/1511.06709)."""
    lines = [_line(example, text) for example in examples for text in example.texts if text is not None]
    translated = iter(_translate(lines, command))
    copies = []
    for example in examples:
        new = {name: next(translated).strip() for name in ("text", "text_b") if getattr(example, name) is not None}
        copy = replace(example, **new) if all(new.values()) else example
        copies.append([copy] if copy != example else [])
    return copies


def _line(example: Example, text: str) -> bytes:
    """A text of an example as a line of bytes."""
    try:
        return " ".join(text.splitlines()).encode("utf-8")
    except UnicodeEncodeError as error:
        where = f"{example.source}: " if example.source else ""
        half = error.object[error.start]
        raise ValueError(f"{where}needs text in UTF-8. Received: half of a surrogate pair, {half!r}") from None


def _translate(lines: list[bytes], command: str) -> list[str]:
    """The lines that a command writes for the lines that it reads, which are bytes."""
    text = b"".join(line + b"\n" for line in lines)
    bash = shutil.which("bash")  # reports the failure of any command of a pipe, not only of the last one
    arguments = {"args": [bash, "-o", "pipefail", "-c", command]} if bash else {"args": command, "shell": True}
    done = subprocess.run(**arguments, input=text, stdout=subprocess.PIPE, check=False)
    if done.returncode:
        raise ValueError(f"The command must exit with status 0. Received: status {done.returncode} of {command!r}")
    written = done.stdout.split(b"\n")
    if not written[-1]:
        written.pop()
    if len(written) != len(lines):
        received = f"{len(written)} lines for {len(lines)} lines of input of {command!r}"
        raise ValueError(f"The command must write one line for each line that it reads. Received: {received}")
    return list(decode_lines(written, f"the output of {command!r}"))
