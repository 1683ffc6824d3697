"""kcrf download"""

from kcrf.commands.parsers import add_command

__all__ = ["add_download"]


def add_download(commands):
    """Adds the parser of `kcrf download`."""
    from kcrf.corpora.downloads import CORPORA

    parser = add_command(
        commands,
        "download",
        _download,
        "Fetch a public corpus and check that it is whole.",
        "corpora:\n"
        + "".join(f"  {name}: {corpus.summary}\n" for name, corpus in CORPORA.items())
        + "\nexample:\n  kcrf download weibo data/weibo",
    )
    parser.add_argument("name", choices=sorted(CORPORA), help="which one")
    parser.add_argument("directory", metavar="DIR", help="the folder to put it into")


def _download(options):
    from kcrf.corpora import download

    for path in download(options.name, options.directory):
        print(path)
