"""A linear model as one page of HTML, in which a browser computes what NumPy computes."""

import base64
import gzip
import json
from pathlib import Path
from typing import Any

from kcrf.linear import LinearModel
from kcrf.readers.ngrams import places_of
from kcrf.runs.setup import Setup
from kcrf.tags import TagScheme
from kcrf.version import __version__

_PAGE = Path(__file__).with_name("page.html")


def html_page(model: LinearModel, setup: Setup) -> str:
    """The page. Raises ValueError for a model that the page cannot compute."""
    reader: Any = setup.reader  # of characters or words, with n-grams
    config, scheme = setup.config, model.scheme
    if {"ob", "oe"} & reader.ngrams.used:
        raise ValueError("a page needs a model of one segmentation standard. Received: a model with words of others")
    if config.model.min_probability is not None:
        least = config.model.min_probability
        raise ValueError(f"a page shows the best analysis; train without --min-probability. Received: {least}")
    scores, scale = model.integers()
    types = [label if scheme.is_of_tokens else label.partition("-")[2] for label in scheme.labels]  # "" for O
    kind = "classes" if scheme.is_of_tokens else "words" if scheme.is_of_words else "entities"
    content = {
        "version": __version__,
        "labels": scheme.labels,
        "types": scheme.types,
        "kind": kind,
        "splits": getattr(reader, "splits", None),  # of characters: None
        "roles": [_roles(scheme, label) for label in scheme.types] or [_roles(scheme)],
        "type_of": [scheme.types.index(name) if name else -1 for name in types],
        "starts": scheme.allowed_starts.tolist(),
        "ends": scheme.allowed_ends.tolist(),
        "best": _chain(model, model.constraints or bool(scheme.types)),
        "likely": _chain(model, model.constraints),
        "temperature": config.temperature,
        "templates": [places_of(template) for template in reader.ngrams.templates],
        "buckets": reader.ngrams.buckets,
        "words": list(reader.lexicon.kinds.items()) if getattr(reader, "lexicon", None) else [],
        "scale": float(scale),
        "scores": base64.b64encode(gzip.compress(scores.tobytes(), mtime=0)).decode(),
    }
    page = _PAGE.read_text("utf-8").replace("__TITLE__", kind.capitalize())
    return page.replace("__MODEL__", json.dumps(content).replace("<", "\\u003c"))


def _chain(model: LinearModel, constraints: bool) -> dict[str, Any]:
    return {"rules": constraints, "transitions": model.constrained_transitions(constraints).tolist()}


def _roles(scheme: TagScheme, *label: str) -> list[int]:
    """The tags of a span of one unit, of the first, inner and last unit of a longer one, and what continues both."""
    one, two, three, four = (scheme.encode([(0, length, *label)], length) for length in (1, 2, 3, 4))
    after_one = two[1] if two[:1] == one and not scheme.is_of_tokens else -1
    after_last = four[3] if four[:3] == three else -1
    return [one[0], three[0], three[1], three[2], after_one, after_last]
