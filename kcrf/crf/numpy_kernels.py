"""The operators of `torch_kernels` on a CPU by `kcrf.chains`, since a call of NumPy costs less than one of torch."""

from typing import Any

import numpy as np
import torch

from kcrf.backend import Tensor
from kcrf.chains import FORBIDDEN, Counts, Packing, best_paths, counts_of_tags, expected_counts


def chain_counts(
    emissions: Tensor, mask: Tensor, transitions: Tensor, start: Any, end: Any, labels: Tensor | None
) -> tuple[Tensor, Tensor, Tensor]:
    """As the kernel in Triton: log Z, or the log likelihood of labels, and its gradient for each sentence."""
    real, scores, moves, packing = _packed(emissions, mask, transitions, start, end)
    found = expected_counts(scores, moves, packing, by_sequence=True)
    if labels is not None:
        found = _beside_labels(found, labels.detach().double().numpy()[real], scores, moves, packing)
    size, occupied = len(moves), packing.lengths > 0
    counts, steps = np.zeros(emissions.shape, "float32"), np.zeros((len(real), size + 2, size), "float32")
    counts[real], steps[:, :size] = found.marginals, found.steps
    steps[occupied, size] = found.marginals[packing.first[occupied]]
    steps[occupied, size + 1] = found.marginals[packing.last[occupied]]
    value, counts, steps = map(torch.from_numpy, (found.log_z.astype("float32"), counts, steps))
    return value, counts, steps


def _beside_labels(
    expected: Counts, labels: np.ndarray, scores: np.ndarray, moves: np.ndarray, packing: Packing
) -> Counts:
    """The observed minus the expected counts: NaN for a label that is no tag, 0 without a label that is known."""
    is_wrong = (labels >= len(moves)) | (labels != np.floor(labels))  # (positions,)
    tags = np.where(is_wrong, -1, labels).astype("int64")
    observed = counts_of_tags(tags, scores, moves, packing, by_sequence=True)
    sentence = np.repeat(np.arange(len(packing.lengths)), packing.lengths)  # (positions,)
    wrong, known = (np.bincount(sentence, x, len(packing.lengths)) > 0 for x in (is_wrong, tags >= 0))
    counted = known & ~wrong  # (sequences,)
    value = np.where(counted, observed.log_z - expected.log_z, np.where(wrong, np.nan, 0.0))
    marginals = np.where(counted[sentence, None], observed.marginals - expected.marginals, 0.0)
    return Counts(value, marginals, np.where(counted[:, None, None], observed.steps - expected.steps, 0.0))


def viterbi(emissions: Tensor, mask: Tensor, transitions: Tensor, start: Any, end: Any) -> Tensor:
    """The tags of the best path, `(batch, time)` int32, -1 where masked and where a score is NaN or infinite."""
    real, scores, moves, packing = _packed(emissions, mask, transitions, start, end)
    tags = np.full(real.shape, -1, "int32")
    tags[real] = best_paths(scores, moves, packing)
    are_numbers = np.full(real.shape, True)
    are_numbers[real] = (scores < np.inf).all(axis=1)
    tags[~are_numbers.all(axis=1) | ~(moves < np.inf).all()] = -1
    return torch.from_numpy(tags)


def _packed(
    emissions: Tensor, mask: Tensor, transitions: Tensor, start: Any, end: Any
) -> tuple[np.ndarray, np.ndarray, np.ndarray, Packing]:
    """The mask, the scores of the real positions with those of starts and ends, the transitions, and the packing."""
    real = mask.numpy()
    packing = Packing.of_lengths(real.sum(axis=1))
    scores = _scores(emissions[mask])  # (positions, tags), a copy
    occupied = packing.lengths > 0
    for row, places in ((start, packing.first), (end, packing.last)):
        if row is not None:
            scores[places[occupied]] += _scores(row)
    return real, scores, _scores(transitions), packing


def _scores(tensor: Tensor) -> np.ndarray:
    return np.maximum(tensor.detach().double().numpy(), FORBIDDEN)
