"""Reads and writes the file `config.json` of a run, in the current and in older formats. Needs no Keras."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from os import PathLike
from typing import Any

from kcrf.runs.options import check_value, plain
from kcrf.runs.resolve import RunConfig
from kcrf.runs.settings import PARTS, RENAMED, Settings
from kcrf.runs.training_config import TeacherConfig
from kcrf.tasks import DataFacts
from kcrf.version import __version__

FORMAT = 3  # 2: one flat dict with the values that ran, "settings"; in `data` the names of those that the run chose
_RENAMED_FILES = {"unlabelled": "unlabeled"}  # their names in `data` of older runs
_PART_NAMES = ("data", "model", "optimizer", "training", "augmentation", "teacher")


@dataclass(frozen=True)
class StoredRun:
    """The content of `config.json`.

    Attributes:
        user: The `Settings` of the user.
        config: The `RunConfig`.
        data: Plain values: the origin and the fingerprints of the data. None in runs of old versions.
        backend: The name of the Keras backend that trained the run. None in runs of old versions.
    """

    user: Settings
    config: RunConfig
    data: Mapping[str, Any] | None
    backend: str | None

    def to_json(self) -> dict[str, Any]:
        """A dict of plain values for `read_stored_run`."""
        about = {"format": FORMAT, "kcrf": __version__, "backend": self.backend}
        said = {name: plain(value) for name, value in self.user.said().items()}
        return {**about, "settings": said, "run": asdict(self.config), "data": self.data}

    def published(self) -> "StoredRun":
        """The run without facts about its machine: the teacher, and the origin of the data."""
        without: dict[str, Any] = {setting.name: setting.default for setting in fields(TeacherConfig)}
        config = replace(self.config, teacher=TeacherConfig())
        return StoredRun(replace(self.user, **without), config, None, self.backend)

    def chosen(self) -> list[str]:
        """The names of the settings that the data decided."""
        ran = self.config.flat()
        return [name for name, value in self.user.values().items() if plain(ran[name]) != value]


def read_stored_run(path: str | PathLike[str], content: Mapping[str, Any]) -> StoredRun:
    """Parses the content of a `config.json`. Errors name its path.

    Raises:
        ValueError: The file is damaged, of a newer version, or the configuration of a BERT.
    """
    _check_format(path, content)
    try:
        user, config = (_read if content.get("format", 0) >= 3 else _read_flat)(content)
        _check_values(config, user.kind)
    except (KeyError, TypeError, ValueError) as error:  # a value of another type, or out of its range
        raise ValueError(f"{path}: needs the settings of a run. Received: {_in_words(error)}") from None
    return StoredRun(user, config, _with_new_names(content.get("data")), content.get("backend"))


def _with_new_names(data: Any) -> Any:
    """The sources and fingerprints of a run under their current names."""
    if not isinstance(data, Mapping):
        return data
    return {_RENAMED_FILES.get(name, name): _with_new_names(value) for name, value in data.items()}


def read_for_reports(path: str | PathLike[str], content: Mapping[str, Any]) -> dict[str, Any]:
    """The content of a file for reports: `settings`, the values that ran; `chosen`, the names of the settings that
    the data decided; `train`, the file of the training set; `sha256`, the hashes of the sets. Settings of old formats
    are not converted.

    Raises:
        ValueError: As for `read_stored_run`.
    """
    _check_format(path, content)
    data = content.get("data") or {}
    settings, chosen = content["settings"], data.get("chosen") or ()
    if content.get("format", 0) >= 3:
        stored = read_stored_run(path, content)
        settings, chosen = stored.config.flat(), stored.chosen()
    train, sha256 = (data.get("sources") or {}).get("train"), data.get("sha256") or {}
    return {"settings": settings, "chosen": tuple(chosen), "train": train, "sha256": sha256}


def _check_values(config: RunConfig, kind: Any) -> None:
    for part in (config.data, config.model, config.optimizer, config.training, config.augmentation, config.teacher):
        for setting in fields(part):
            check_value(setting, getattr(part, setting.name), kind)


def _check_format(path: str | PathLike[str], content: Mapping[str, Any]) -> None:
    format = content.get("format", 0)
    if not isinstance(format, int):
        raise ValueError(f"{path}: needs a number as its format. Received: {format!r}")
    if format > FORMAT:
        raise ValueError(
            f"{path}: needs run format {FORMAT} or older, which kcrf {__version__} reads. "
            f"Received: format {format}, written by kcrf {content.get('kcrf')}; please upgrade"
        )
    if "model_type" in content:
        raise ValueError(
            f"{path}: needs the settings of a run of `kcrf train`. Received: the configuration of a "
            f"{content['model_type']!r} without a task, which is for --bert"
        )
    if not isinstance(content.get("settings"), dict):
        raise ValueError(f"{path}: needs the settings of a run. Received: {sorted(content)}")


def _in_words(error: Exception) -> object:
    return f"no {error}" if isinstance(error, KeyError) else error


def _read(content: Mapping[str, Any]) -> tuple[Settings, RunConfig]:
    run = content["run"]
    parts = (_part(part, run[name]) for part, name in zip(PARTS, _PART_NAMES, strict=True))
    facts = _part(DataFacts, run["facts"])
    return Settings.of(_plain(content["settings"])), RunConfig(*parts, facts, run["temperature"])  # type: ignore[call-arg]


def _part(part: type[Any], values: Mapping[str, Any]) -> Any:
    unknown = sorted(set(values) - {setting.name for setting in fields(part)})
    if unknown:
        raise ValueError(f"{part.__name__} has no {', '.join(unknown)}")
    return part(**_plain(values))


def _plain(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: plain(value) for name, value in values.items()}


def _read_flat(content: Mapping[str, Any]) -> tuple[Settings, RunConfig]:
    """The settings and the configuration of formats before 3. Settings of later versions have their defaults."""
    ran = {RENAMED.get(name, name): value for name, value in _plain(content["settings"]).items()}
    settings = {setting.name for part in PARTS for setting in fields(part)}
    facts = {"pairs", "mean", "deviation", "temperature"}
    unknown = sorted(set(ran) - settings - facts)
    if unknown:
        raise ValueError(f"Settings have no {', '.join(unknown)}")
    user = _user_of_flat({name: value for name, value in ran.items() if name in settings}, content.get("data") or {})
    return user, RunConfig.of_flat({**user.values(), **ran})


def _user_of_flat(ran: Any, data: Any) -> Settings:
    """The settings of the user for a run of an old format: those that the run did not choose itself."""
    chosen = set(data.get("chosen") or ())
    replaced = {"steps": "epochs", "batch_tokens": "batch_size"}
    chosen |= {other for name, other in replaced.items() if ran.get(name) is not None}
    chosen |= {"crf_lr_multiplier"} if ran.get("head") == "softmax" else set()
    kind = {name: ran[name] for name in ("task", "bert") if name in ran}
    if ran.get("head") not in (None, Settings(**kind).values()["head"]):
        kind["head"] = ran["head"]
    defaults = Settings(**kind).values()
    return Settings(**kind, **{n: x for n, x in ran.items() if n not in {*kind, *chosen} and x != defaults[n]})
