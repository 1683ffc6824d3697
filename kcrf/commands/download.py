"""kcrf download"""

from argparse import Namespace
from typing import Any

from kcrf.commands.parsers import add_command


def add_download(commands: Any) -> None:
    """Adds `kcrf download`."""
    add_command(commands, "download", "Download a public corpus and verify its checksums.", _add_options, _download)


def _add_options(parser: Any) -> None:
    from kcrf.corpora.downloads import CORPORA

    parser.epilog = (
        "corpora:\n"
        + "".join(f"  {name}: {corpus.summary}\n" for name, corpus in CORPORA.items())
        + "\nexample:\n  kcrf download weibo data/weibo"
    )
    parser.add_argument("name", choices=sorted(CORPORA), help="The corpus.")
    parser.add_argument("directory", metavar="DIR", help="The folder for its files, made if it does not exist.")


def _download(options: Namespace) -> None:
    from kcrf.corpora import download

    for path in download(options.name, options.directory):
        print(path)
