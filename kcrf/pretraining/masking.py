"""Masking: chooses the tokens to predict in a window, and replaces them. Needs no Keras."""

import numpy as np

from kcrf.runs.pretraining import MASKS

SHARE_MASKED, SHARE_RANDOM = 0.8, 0.1  # the other tokens are shown unchanged
SPAN_END, LONGEST_SPAN = 0.2, 10  # lengths in words: a geometric distribution up to 10, 3.8 on average
_LENGTHS_UP_TO = np.cumsum((1 - SPAN_END) ** np.arange(LONGEST_SPAN))
_LENGTHS_UP_TO /= _LENGTHS_UP_TO[-1]
_MOST_DRAWS = 10  # of spans, for each position to draw; after them, no span fits


def choose_positions(
    candidates: np.ndarray, starts: np.ndarray, count: int, kind: str, random: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Draws the positions of a window to predict.

    - "tokens": single tokens (BERT, https://arxiv.org/abs/1810.04805).
    - "words": all tokens of a word (whole-word masking, as in BERT's later checkpoints and
      https://arxiv.org/abs/1906.08101).
    - "spans": runs of whole words whose number is geometrically distributed, 10 at most (SpanBERT,
      https://arxiv.org/abs/1907.10529).

    A word that would exceed `count` is omitted, and a span ends before it: fewer positions may be drawn, at least 1.

    >>> import numpy as np
    >>> everywhere = np.ones(6, bool)
    >>> starts = np.array([True, False, True, False, True, False])
    >>> positions, _ = choose_positions(everywhere, starts, 4, "words", np.random.default_rng(0))
    >>> starts[positions].tolist()
    [True, False, True, False]
    """
    if kind not in MASKS:
        raise ValueError(f"`kind` is one of {MASKS}. Received: {kind!r}")
    begins = np.flatnonzero(starts if kind != "tokens" else np.ones_like(starts))
    words = np.split(np.arange(len(starts)), begins[begins > 0])
    words = [word for word in words if candidates[word].all()]
    draw = _draw_spans if kind == "spans" else _draw_words
    groups = draw(words, count, random)
    if words and not groups:  # all drawn words are longer than `count`
        groups = [words[random.integers(len(words))][:count]]
    if kind != "spans":
        groups = [np.array([position]) for group in groups for position in group]
    positions = np.concatenate([np.zeros(0, int), *groups])
    numbers = np.repeat(np.arange(len(groups)), list(map(len, groups)))
    order = np.argsort(positions)
    return positions[order], numbers[order]


def _draw_words(words: list[np.ndarray], count: int, random: np.random.Generator) -> list[np.ndarray]:
    chosen, budget = [], count
    for number in random.permutation(len(words)):
        if len(words[number]) <= budget:
            chosen.append(words[number])
            budget -= len(words[number])
        if not budget:
            break
    return chosen


def _draw_spans(words: list[np.ndarray], count: int, random: np.random.Generator) -> list[np.ndarray]:
    chosen, budget, is_free = [], count, np.ones(len(words), bool)
    for _ in range(_MOST_DRAWS * count if words else 0):
        length = 1 + int(np.searchsorted(_LENGTHS_UP_TO, random.random(), side="right"))
        first = int(random.integers(len(words)))
        span = words[first : first + length]
        is_run = all(before[-1] + 1 == after[0] for before, after in zip(span, span[1:]))
        if not is_run or not is_free[first : first + length].all():
            continue
        is_free[first : first + length] = False
        fitting = int(np.searchsorted(np.cumsum(list(map(len, span))), budget, side="right"))
        if fitting:
            chosen.append(np.concatenate(span[:fitting]))
            budget -= len(chosen[-1])
        if not budget:
            break
    return chosen


def hide(
    token_ids: np.ndarray,
    positions: np.ndarray,
    groups: np.ndarray,
    mask_id: int,
    ordinary: np.ndarray,
    random: np.random.Generator,
) -> np.ndarray:
    """Replaces the tokens to predict in a window.

    80 % of the positions to predict get the mask token, 10 % a random token, and 10 % are unchanged (BERT). All
    positions of a span are treated alike (SpanBERT).
    """
    shown = np.array(token_ids)
    luck = random.random(int(groups.max(initial=-1)) + 1)[groups]  # one draw for each span
    shown[positions[luck < SHARE_MASKED]] = mask_id
    replaced = positions[(luck >= SHARE_MASKED) & (luck < SHARE_MASKED + SHARE_RANDOM)]
    shown[replaced] = random.choice(ordinary, len(replaced))
    return shown
