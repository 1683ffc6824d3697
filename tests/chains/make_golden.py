"""Writes `golden.json`: small chains, and the results that every kernel must compute for them.

`python tests/chains/make_golden.py` enumerates all paths in float64 with `tests/oracles.py`. Masked tags are -1.
"""

import json
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
import oracles

PATH = Path(__file__).with_name("golden.json")
FORBIDDEN = -1e9
K = 3


def case(name, masks, tags, scale=1.0, boundary=False, change=None):
    """A batch of sentences with random scores; `change(scores)` edits them in place."""
    random = np.random.default_rng(len(name))
    mask = np.array(masks, bool)
    scores = {
        "emissions": random.normal(size=(*mask.shape, tags)) * scale,
        "transitions": random.normal(size=(tags, tags)) * scale,
        "start": random.normal(size=tags) * scale if boundary else None,
        "end": random.normal(size=tags) * scale if boundary else None,
    }
    if change:
        change(scores)
    scores = {key: None if x is None else np.round(x, 4) for key, x in scores.items()}
    sentences = [oracles.sentence(e, m, *list(scores.values())[1:]) for e, m in zip(scores["emissions"], mask)]
    results = {
        "log_z": [s["log_z"] for s in sentences],
        "entropy": [s["entropy"] for s in sentences],
        "marginals": np.round([s["marginals"] for s in sentences], 9),
        "steps": np.round([s["steps"] for s in sentences], 9),
    }
    best = [[(p, v) for p, v in s["paths"][:K] if v > FORBIDDEN / 2] for s in sentences]
    results["paths"] = [[placed(path, row) for path, _ in of] for of, row in zip(best, mask)]
    results["scores"] = [[value for _, value in of] for of in best]
    return {"name": name, "mask": mask, **scores, **results}


def placed(path, mask):
    tags = np.full(len(mask), -1)
    tags[mask] = path
    return tags


def forbid_steps(scores):
    scores["transitions"][[0, 1, 2], [1, 2, 2]] = FORBIDDEN


def forbid_starts(scores):
    scores["start"][1:], scores["end"][:2] = FORBIDDEN, FORBIDDEN


def one_path(scores):
    scores["transitions"][...] = FORBIDDEN
    scores["transitions"][[0, 1, 2], [1, 2, 0]] = [0.5, -1.0, 2.0]
    scores["start"][1:] = FORBIDDEN


def forbid_tags(scores):
    scores["emissions"][0, 1, :2], scores["emissions"][1, 0, 2] = FORBIDDEN, FORBIDDEN


RIGHT = [[1, 1, 1, 1, 1], [1, 1, 1, 0, 0], [1, 0, 0, 0, 0]]
CASES = [
    case("plain", RIGHT, 3),
    case("start and end", RIGHT, 3, boundary=True),
    case("padding on the left", [[0, 0, 1, 1], [1, 1, 1, 1]], 4, boundary=True),
    case("holes in the mask", [[1, 0, 1, 1, 0, 1], [0, 1, 0, 0, 1, 0]], 3, boundary=True),
    case("nothing is real", [[0, 0, 0], [1, 1, 1]], 2),
    case("one tag", [[1, 1, 1], [1, 0, 0]], 1, boundary=True),
    case("nine tags", [[1, 1, 1], [1, 1, 0]], 9, 2.0),
    case("forbidden transitions", RIGHT, 3, change=forbid_steps),
    case("forbidden starts and ends", [[1, 1, 1, 1, 1], [0, 1, 1, 0, 0]], 4, boundary=True, change=forbid_starts),
    case("forbidden tags", [[1, 1, 1, 1], [1, 1, 0, 0]], 3, boundary=True, change=forbid_tags),
    case("one path survives", RIGHT, 3, boundary=True, change=one_path),
    case("scores of a hundred", RIGHT, 3, 100.0, boundary=True),
    case("scores of ten thousand", RIGHT, 3, 1e4, boundary=True),
]


def plain(value):
    return value.tolist() if isinstance(value, np.ndarray) else value


if __name__ == "__main__":
    rows = [json.dumps({key: plain(value) for key, value in each.items()}, default=plain) for each in CASES]
    PATH.write_text("[\n" + ",\n".join(rows) + "\n]\n", encoding="utf-8")
