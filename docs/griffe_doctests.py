"""Shows the `>>>` examples of docstrings as code blocks, wherever in the docstring they stand."""

import re
from textwrap import dedent

import griffe

# a line with `>>>`, and all up to the next empty line
EXAMPLE = re.compile(r"^ *>>> .*(?:\n(?! *$).+)*", re.MULTILINE)
FLAG = re.compile(r" *# doctest: \+SKIP$", re.MULTILINE)


def as_code_block(match):
    """The fenced block for a match of `EXAMPLE`."""
    return f"```pycon\n{dedent(FLAG.sub('', match[0]))}\n```"


class Doctests(griffe.Extension):
    """Rewrites each docstring before it is parsed."""

    def on_instance(self, *, obj, **kwargs):
        if obj.docstring:
            obj.docstring.value = EXAMPLE.sub(as_code_block, obj.docstring.value)
