"""The golden vectors of `chains/golden.json`: small chains with the results that every kernel must compute."""

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np

_ARRAYS = ("emissions", "transitions", "start", "end", "log_z", "entropy", "marginals", "steps")


def _case(content):
    arrays = {name: None if content[name] is None else np.array(content[name]) for name in _ARRAYS}
    return SimpleNamespace(**{**content, **arrays, "mask": np.array(content["mask"], bool)})


CASES = [_case(row) for row in json.loads((Path(__file__).parent / "chains" / "golden.json").read_text("utf-8"))]
NAMES = [case.name for case in CASES]
