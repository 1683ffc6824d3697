"""kcrf download"""

from argparse import Namespace

from kcrf.commands.parsers import CommandParser


def add_options(parser: CommandParser) -> None:
    from kcrf.corpora.downloads import CORPORA

    corpora = "".join(f"  {name}: {corpus.summary}\n" for name, corpus in CORPORA.items())
    parser.epilog = f"corpora:\n{corpora}\nexample:\n  kcrf download weibo data/weibo"
    parser.add_argument("name", choices=sorted(CORPORA), help="The corpus.")
    parser.add_argument("directory", metavar="DIR", help="The folder for its files, made if it does not exist.")


def run(options: Namespace) -> None:
    from kcrf.corpora import download

    for path in download(options.name, options.directory):
        print(path)
