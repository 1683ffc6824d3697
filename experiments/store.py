"""The results of a claim: one JSON file, written completely or not at all, by any number of processes."""

import hashlib
import json
import platform
import sys
import time
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from kcrf.files import read_json, write_lines
from kcrf.runs.lock import locked

MEASURED = Path(__file__).parent / "measured"
ROOT = Path(__file__).parents[1]


class Results:
    """The results of one claim, a dict from the keys of runs to records.

    Args:
        path: The JSON file.
    """

    def __init__(self, path):
        self._path = Path(path)

    @classmethod
    def of(cls, claim, folder=MEASURED):
        """The results of a claim in a folder. Defaults to the folder of the published results."""
        return cls(folder / f"{claim.runs_of or claim.name}.json")

    def read(self):
        """All records by key."""
        return read_json(self._path) if self._path.exists() else {}

    def measures(self):
        """The measures of all runs by key."""
        return {key: record["measures"] for key, record in self.read().items()}

    def add(self, run, record):
        """Adds the record of a run."""
        with _lock_when_free(self._path.parent / f".{self._path.stem}"):
            records = {**self.read(), run.key: {"settings": dict(run.settings), **record}}
            write_lines(self._path, ["{", *_lines(records), "}"])

    def of_other_claim(self, run):
        """The record of a run of another claim in the same folder with the same settings and seed, or None."""
        settings = json.loads(json.dumps(dict(run.settings)))
        for path in sorted(self._path.parent.glob("*.json")):
            for key, record in read_json(path).items():
                if record["settings"] == settings and key.endswith(f", seed {run.seed}"):
                    return {name: value for name, value in record.items() if name != "settings"}
        return None

    def has(self, run):
        """Whether a run is stored.

        Raises:
            ValueError: It is stored with other settings than the claim has now.
        """
        record = self.read().get(run.key)
        if record is not None and record["settings"] != json.loads(json.dumps(dict(run.settings))):
            raise ValueError(
                f"{self._path}: {run.key!r} must have the settings of the claim, {dict(run.settings)}: delete the "
                f"record to measure it again. Received: {record['settings']}"
            )
        return record is not None


def _lines(records):
    """A line for each record, so that a new run is a new line of a diff."""
    ends = [","] * (len(records) - 1) + [""]
    return [f"{json.dumps(key)}: {json.dumps(record)}{end}" for (key, record), end in zip(records.items(), ends)]


@contextmanager
def _lock_when_free(folder, seconds=0.05):
    while True:
        try:
            with locked(folder):
                yield
                return
        except BlockingIOError:
            time.sleep(seconds)


def about_now():
    """A hash of the package's sources, the machine and the date, for the record of a run."""
    return {
        "sources": sources_hash(ROOT / "kcrf"),
        "machine": ", ".join(filter(None, (_processor(), _accelerator()))),
        "date": datetime.now(UTC).date().isoformat(),
    }


def sources_hash(folder):
    """Hashes the names and contents of all Python files of a folder: ten digits that need no git to check."""
    digest = hashlib.sha256()
    for path in sorted(Path(folder).rglob("*.py")):
        digest.update(f"{path.relative_to(folder).as_posix()}\0".encode() + path.read_bytes() + b"\0")
    return digest.hexdigest()[:10]


def _accelerator():
    """The name of the GPU that PyTorch or JAX uses, or None."""
    torch, jax = sys.modules.get("torch"), sys.modules.get("jax")
    if torch is not None and torch.cuda.is_available():
        return torch.cuda.get_device_name()
    return jax.devices()[0].device_kind if jax is not None and jax.default_backend() == "gpu" else None


def _processor():
    """The model of the processor."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.exists() else []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor())
