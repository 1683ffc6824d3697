"""Independent answers in NumPy float64: they enumerate paths and import nothing of kcrf."""

import itertools

import numpy as np


def cut(emissions, mask):
    """The real rows of one sentence, (positions, tags)."""
    return np.asarray(emissions, "float64")[np.asarray(mask, bool)]


def score(rows, path, transitions, start, end):
    total = sum(rows[t, tag] for t, tag in enumerate(path))
    total += sum(transitions[a, b] for a, b in zip(path, path[1:], strict=False))
    return total + (start[path[0]] + end[path[-1]] if path else 0.0)


def paths(rows, transitions, start, end):
    """Every path of a sentence with its score, best first; ties in the order of the tags."""
    tags = range(rows.shape[1])
    scored = [(p, score(rows, p, transitions, start, end)) for p in itertools.product(tags, repeat=len(rows))]
    return sorted(scored, key=lambda item: -item[1])


def log_sum(values):
    top = max(values)
    return top + np.log(sum(np.exp(np.asarray(values) - top)))


def sentence(emissions, mask, transitions, start=None, end=None):
    """All there is to know of one sentence: a dict of log_z, marginals (time, tags), steps, entropy, paths."""
    rows, tags = cut(emissions, mask), np.shape(emissions)[-1]
    start = np.zeros(tags) if start is None else start
    end = np.zeros(tags) if end is None else end
    scored = paths(rows, transitions, start, end)
    log_z = log_sum([value for _, value in scored])
    marginals, steps, entropy = np.zeros(np.shape(emissions)), np.zeros((tags, tags)), 0.0
    for path, value in scored:
        probability = np.exp(value - log_z)
        entropy -= probability * (value - log_z)
        marginals[np.flatnonzero(mask), list(path)] += probability
        for a, b in zip(path, path[1:], strict=False):
            steps[a, b] += probability
    return {"log_z": log_z, "marginals": marginals, "steps": steps, "entropy": entropy, "paths": scored}


def log_likelihood(emissions, tags, mask, transitions, start=None, end=None):
    """Of one sentence, summed over the tags that are negative."""
    known = [t for t, real in zip(tags, mask, strict=True) if real]
    scored = sentence(emissions, mask, transitions, start, end)["paths"]
    fits = [value for path, value in scored if all(k in (-1, p) or k < 0 for k, p in zip(known, path, strict=True))]
    return log_sum(fits) - log_sum([value for _, value in scored])


def grown_counts(rows, transitions, allowed, written, tags):
    """What an old model expects of a sentence, with known tags of a larger model written into its paths.

    Args:
        rows: Emissions of the old model, (positions, old tags).
        transitions: Its transitions, -inf where a step is forbidden.
        allowed: (positions, old tags), which old tags may be.
        written: The new tag at each position, or None where the old tag stays.
        tags: The number of tags of the larger model.
    """
    still = np.zeros(rows.shape[1])
    scored = [
        (path, value)
        for path, value in paths(rows, transitions, still, still)
        if np.isfinite(value) and all(allowed[t, tag] for t, tag in enumerate(path))
    ]
    log_z = log_sum([value for _, value in scored])
    counts, steps = np.zeros((len(rows), tags)), np.zeros((tags, tags))
    for path, value in scored:
        grown = [old if new is None else new for old, new in zip(path, written, strict=True)]
        for t, tag in enumerate(grown):
            counts[t, tag] += np.exp(value - log_z)
        for a, b in zip(grown, grown[1:], strict=False):
            steps[a, b] += np.exp(value - log_z)
    return counts, steps
