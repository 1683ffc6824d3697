"""The compiled code of `kcrf.linear` and `kcrf.taggers.line_segmenter` gives what NumPy gives."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from kcrf.chains import recursions
from kcrf.corpora import load_mini
from kcrf.linear import AdaGradTrainer, LinearModel, linear_batches, loss_and_gradient
from kcrf.taggers import WordSegmenter, line_segmenter
from kcrf.tags import bmes

BACKENDS = ["torch"]
compiled = pytest.importorskip("kcrf.chains.compiled")
MINI = ["".join(words) for words in load_mini().train]
SIGNS = "。，.,x7Ａé\u0301 \u3000🙂'’"


@pytest.fixture
def with_numpy(monkeypatch):
    """Switches compiled code on and off: a function of a bool."""
    monkeypatch.setenv("KCRF_COMPILED", "0")

    def switch(is_compiled):
        monkeypatch.setattr(recursions, "_KERNELS", [compiled] if is_compiled else [])
        monkeypatch.setattr(line_segmenter, "_WORTH_COMPILING", 0)

    return switch


def texts(count):
    """Pieces of sentences, some of them long, with signs, Latin letters, spaces and emoji in between."""
    random, joined = np.random.default_rng(0), "".join(MINI)
    for _ in range(count):
        start, length = (
            random.integers(len(joined) - 400),
            random.choice([1, 7, 30, 127, 129, 400], p=[0.1, 0.4, 0.42, 0.03, 0.03, 0.02]),
        )
        text = list(joined[start : start + length])
        for place in random.integers(len(text), size=random.integers(4)):
            text[place] += SIGNS[random.integers(len(SIGNS))] * random.integers(1, 4)
        yield "".join(text)


@pytest.mark.parametrize("keep_latin", [True, False])
@pytest.mark.parametrize("count", [500, pytest.param(10_000, marks=pytest.mark.slow)])
def test_lines_are_those_of_numpy(count, keep_latin, with_numpy):
    found = []
    for is_compiled in (False, True):
        with_numpy(is_compiled)
        found.append(WordSegmenter(keep_latin=keep_latin).segment_lines(list(texts(count))))
    assert found[0] == found[1]
    assert sum(line.count(" ") for line in found[0]) > 5 * count


def windows(count=40, tags=4):
    random = np.random.default_rng(1)
    lengths = random.integers(1, 30, count)
    return [(random.integers(0, 64, (length, 5)), random.integers(-1, tags, length).tolist()) for length in lengths]


def test_training_is_that_of_numpy(with_numpy):
    results = []
    for is_compiled in (False, True):
        with_numpy(is_compiled)
        model = LinearModel.new(bmes(), 64, constraints=False)
        trainer = AdaGradTrainer(model)
        losses = [trainer.train_batch(batch) for _ in range(3) for batch in linear_batches(windows(), 16)]
        results.append(
            [losses, model.scores, model.transitions, *loss_and_gradient(model, linear_batches(windows(), 40)[0])]
        )
    for ours, others in zip(*results, strict=True):
        assert_allclose(ours, others, rtol=1e-5, atol=1e-5)
