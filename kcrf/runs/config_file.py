"""Reads and writes the file `config.json` of a run. Needs no Keras."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from os import PathLike
from typing import Any

from kcrf.files import finite_number
from kcrf.runs.options import Kind, check_value, plain
from kcrf.runs.resolve import RunConfig
from kcrf.runs.settings import FIELDS, PARTS, Settings
from kcrf.runs.stages import STAGES
from kcrf.tasks import DataFacts
from kcrf.version import __version__

FORMAT = 1
_PART_NAMES = ("data", "model", "optimizer", "training")


@dataclass(frozen=True)
class StoredRun:
    """The content of `config.json`."""

    user: Settings
    config: RunConfig
    data: Mapping[str, Any] | None  # origin and fingerprints of the data; None in published models
    backend: str | None  # that trained the run

    def to_json(self) -> dict[str, Any]:
        """A dict of plain values for `read_stored_run`."""
        about = {"format": FORMAT, "kcrf": __version__, "backend": self.backend}
        run = {**asdict(self.config), "stages": [asdict(stage) for stage in self.config.stages]}  # type: ignore[call-overload]
        return {**about, "settings": self.user.said(), "run": run, "data": self.data}

    def published(self) -> "StoredRun":
        """The run without facts about its machine: its stages, such as the teacher, and the origin of the data."""
        return StoredRun(replace(self.user, stages=()), replace(self.config, stages=()), None, self.backend)

    def chosen(self) -> list[str]:
        """The names of the settings that the data decided."""
        ran, config = self.config.flat(), self.config
        parts = (config.data, config.model, config.optimizer, config.training, *config.stages)
        names = [setting.name for part in parts for setting in fields(part)]  # type: ignore[arg-type]
        values = self.user.values()
        return [name for name in names if plain(ran[name]) != values[name]]


def read_stored_run(path: str | PathLike[str], content: Mapping[str, Any]) -> StoredRun:
    """Parses the content of a `config.json`. Errors name its path."""
    if "model_type" in content:
        raise ValueError(
            f"{path}: needs the settings of a run of `kcrf train`. Received: the configuration of a "
            f"{content['model_type']!r} without a task, which is for --bert"
        )
    format = content.get("format", FORMAT)
    if not isinstance(format, int):
        raise ValueError(f"{path}: needs a number as its format. Received: {format!r}")
    if format != FORMAT:
        raise ValueError(
            f"{path}: needs run format {FORMAT}, which kcrf {__version__} reads. "
            f"Received: format {format}, written by kcrf {content.get('kcrf')}{'; please upgrade' * (format > FORMAT)}"
        )
    try:
        user = Settings(**content["settings"])
        return StoredRun(user, _config(content["run"], user.kind), content.get("data"), content.get("backend"))
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        words = f"no {error}" if isinstance(error, KeyError) else error
        raise ValueError(f"{path}: needs the settings of a run. Received: {words}") from None


def _config(run: Mapping[str, Any], kind: Kind) -> RunConfig:
    """The configuration in the member "run" of a file. A stage is known by its first setting."""
    classes = {fields(stage)[0].name: stage for stage in STAGES}
    stages = tuple(_part(classes[next(iter(values))], values) for values in run["stages"])
    parts = {name: _part(part, run[name]) for part, name in zip(PARTS, _PART_NAMES, strict=True)}
    for part in (*parts.values(), *stages):
        for setting in fields(part):
            check_value(FIELDS[setting.name], getattr(part, setting.name), kind)
    temperature = run["temperature"]
    for value in temperature.values() if isinstance(temperature, dict) else [temperature]:
        finite_number("run", "temperature", value, above=0)
    return RunConfig(**parts, stages=stages, facts=_part(DataFacts, run["facts"]), temperature=temperature)


def _part(part: type[Any], values: Mapping[str, Any]) -> Any:
    """A dataclass with plain values by name. Refuses unknown names."""
    unknown = sorted(set(values) - {setting.name for setting in fields(part)})
    if unknown:
        raise ValueError(f"{part.__name__} has no {', '.join(unknown)}")
    return part(**{name: plain(value) for name, value in values.items()})
