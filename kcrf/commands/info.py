"""kcrf info: what a trained model is."""

from argparse import Namespace
from typing import Any

from kcrf.commands.parsers import add_command, print_scores


def add_info(commands: Any) -> None:
    """Adds `kcrf info`."""
    add_command(commands, "info", "Show the task, the labels, the settings and the scores of a run.", _options, _info)


def _options(parser: Any) -> None:
    parser.epilog = "example:\n  kcrf info runs/people"
    parser.add_argument("run_dir", metavar="RUN_DIR", help="A folder that `kcrf train` wrote, or an exported model.")


def _info(options: Namespace) -> None:
    from kcrf.runs import RunFolder
    from kcrf.runs.formats import read_scores
    from kcrf.runs.names import SCORES
    from kcrf.runs.resolve import describe_run
    from kcrf.taggers.open_model import open_run

    run = open_run(options.run_dir)
    stored = run.read_config()
    config = stored.config
    labels = config.data.types or config.data.labels
    encoder = config.model.bert or config.model.encoder
    sources = (stored.data or {}).get("sources") or {}
    rows = {
        "task": config.data.task,
        "encoder": encoder,
        "labels": ", ".join(labels),
        "standards": ", ".join(config.data.standards),
        "training data": sources.get("train"),
        "trained on": f"{describe_run(config, config.facts.items)}" if config.facts.items else None,
        "settings": ", ".join(f"{name}={value}" for name, value in stored.user.said().items()),
        "use": f"kcrf {config.task.command} --model {options.run_dir} FILE",
    }
    for name, value in rows.items():
        if value:
            print(f"{name}: {value}")
    if isinstance(run, RunFolder) and run.file(SCORES).is_file():
        print_scores(options.run_dir, read_scores(run.file(SCORES)))
