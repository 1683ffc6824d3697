"""kcrf serve: trained models served over HTTP, with a web page to try them."""

import re
import sys
from argparse import Namespace
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path

from kcrf.commands.parsers import CommandParser
from kcrf.commands.quiet import quiet_import
from kcrf.extras import needs_extra

_NAME = re.compile(r"[\w.-]{1,64}")

EPILOG = """Needs pip install 'kcrf[serve]'. SIGTERM and Ctrl-C end it after it has answered the accepted requests.

examples:
  kcrf serve runs/words people=runs/3
  curl localhost:8000/segment --json '{"texts": ["今天天气真好"]}'"""
_RUNS = """A folder of `kcrf train` or a file of `kcrf export`. NAME=RUN names the model NAME instead of after its
folder or file. [the small Chinese word segmenters that come with kcrf, without and with parts of speech]"""
OPTIONS = """
--host HOST:127.0.0.1  The address to listen at. Use 0.0.0.0, all addresses of this machine, if other machines must
                       reach the server. The server has no passwords and no encryption. [%(default)s]
--port N:8000          The port; 0 takes any free one. [%(default)s]
--max-body N:1000000   Maximum number of bytes in a request; a longer one is answered 413. [%(default)s]
--max-texts N:256      Maximum number of texts in a request; one with more is answered 422. [%(default)s]
--max-length N:10000   Maximum number of characters in a text; a longer one is answered 422. [%(default)s]
--max-waiting N:2000   Maximum number of texts that wait for a model; a text counts once for each 128 characters. If
                       more would wait, requests are answered 503. [%(default)s]
--batch-size N:64      Maximum number of texts in a batch, which may come from several waiting requests. [%(default)s]
"""


def add_options(parser: CommandParser) -> None:
    parser.add_argument("runs", nargs="*", metavar="RUN", help=_RUNS)


def run(options: Namespace) -> None:
    from kcrf.taggers.open_model import built_in_segmenter

    for name in ("max_body", "max_texts", "max_length", "max_waiting", "batch_size"):
        if getattr(options, name) < 1:
            raise ValueError(f"--{name.replace('_', '-')} must be at least 1. Received: {getattr(options, name)}")
    if not 0 <= options.port < 65536:
        raise ValueError(f"--port must be from 0 to 65535. Received: {options.port}")
    small = {"words": str(built_in_segmenter()), "parts-of-speech": str(built_in_segmenter(with_labels=True))}
    runs = _named_runs(options.runs) or small
    _check(runs.values())
    with quiet_import(), needs_extra("serve", "The server"):
        from kcrf.serving import Limits, load_models
        from kcrf.serving.server import open_socket, run_server

        limits = Limits(
            options.max_body, options.max_texts, options.max_length, options.max_waiting, batch=options.batch_size
        )
        bound = open_socket(options.host, options.port)
        models = load_models(runs)
    for model in models.values():
        model.warm_up()
    paths = ", ".join(f"{name} ({model.path})" for name, model in models.items())
    ready = "kcrf serve: {} answers with {}. Ctrl-C ends it."
    run_server(models, bound, limits, lambda url: print(ready.format(url, paths), file=sys.stderr, flush=True))


def _named_runs(arguments: Iterable[str]) -> dict[str, str]:
    """The run folders by their names.

    >>> _named_runs(["runs/pku", "people=runs/3"])
    {'pku': 'runs/pku', 'people': 'runs/3'}
    """
    runs = {}
    for argument in arguments:
        name, is_named, folder = argument.partition("=")
        if not is_named:
            name, folder = Path(argument).resolve().name.removesuffix(".onnx"), argument
        if not _NAME.fullmatch(name):
            raise ValueError(f"A name needs 1 to 64 letters, digits, `_`, `.` or `-`, as NAME=RUN. Received: {name!r}")
        if name in runs:
            raise ValueError(f"Each model needs its own name, as in NAME=RUN. Received: {name!r} twice")
        runs[name] = folder
    return runs


def _check(folders: Iterable[str]) -> None:
    """Raises the errors that need no Keras, which takes seconds to import."""
    from kcrf.taggers.open_model import open_run

    with needs_extra("serve", "The server"):
        for name in ("fastapi", "prometheus_client", "uvicorn"):
            import_module(name)
    for folder in folders:
        open_run(folder).read_settings()
