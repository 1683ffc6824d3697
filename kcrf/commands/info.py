"""kcrf info: what a trained model is."""

from argparse import Namespace

from kcrf.commands.parsers import command_to_use, print_scores

EPILOG = "example:\n  kcrf info runs/people"
OPTIONS = "RUN_DIR  A folder that `kcrf train` wrote, or an exported model."


def run(options: Namespace) -> None:
    from kcrf.runs import RunFolder
    from kcrf.runs.formats import read_scores
    from kcrf.runs.names import SCORES
    from kcrf.runs.resolve import describe_run
    from kcrf.taggers.open_model import open_run

    opened = open_run(options.run_dir)
    stored = opened.read_config()
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
        "use": command_to_use(options.run_dir, config),
    }
    for name, value in rows.items():
        if value:
            print(f"{name}: {value}")
    if isinstance(opened, RunFolder) and opened.file(SCORES).is_file():
        print_scores(options.run_dir, read_scores(opened.file(SCORES)))
