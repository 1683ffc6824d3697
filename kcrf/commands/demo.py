"""kcrf demo"""

from argparse import Namespace

from kcrf.commands.quiet import quiet_import

EPILOG = """\
The three word segmenters differ only in the head. x1 and x100 are the learning-rate multipliers of the CRF.
Training takes a few minutes. The last lines show held-out sentences with the wrong words marked.

example:
  kcrf demo --text 今天天气真好"""
OPTIONS = """
--out OUT:runs/demo  Folder for the three runs and a heat map. [%(default)s]
--text TEXT*         A text to segment at the end; may be repeated. [none]
"""


def run(options: Namespace) -> None:
    with quiet_import():
        from kcrf.commands.heads import compare_heads

    compare_heads(options.out, options.text or ())
