"""Tests of kcrf.taggers.

The temperature of a tagger: fitted to a known one, saved in the run, and its effect on probabilities.
"""

from itertools import product

import numpy as np
import pytest
from decoders import tuples
from numpy.testing import assert_allclose

from kcrf.backend import ops
from kcrf.corpora import load_mini
from kcrf.layers import ConditionalRandomField
from kcrf.networks.keras_networks import best_temperature
from kcrf.runs import Settings
from kcrf.taggers import load_tagger
from kcrf.tags import bmes
from kcrf.training import train_tagger

BACKENDS = ["torch"]
PATHS = np.array(list(product(range(4), repeat=3)))  # of 3 positions


def drawn(sentences, constraints):
    """Emissions, transitions, and tags drawn from the CRF of these scores, by the probabilities of all paths."""
    random = np.random.default_rng(4)
    emissions, transitions = random.normal(size=(sentences, 3, 4)) * 1.5, random.normal(size=(4, 4))
    scores = emissions[:, np.arange(3), PATHS].sum(axis=-1)  # (sentences, paths)
    scores = scores + transitions[PATHS[:, :-1], PATHS[:, 1:]].sum(axis=-1)
    if constraints:
        scores = np.where([not constraints.violations(path) for path in PATHS], scores, -np.inf)
    probabilities = np.exp(scores - scores.max(axis=1, keepdims=True))
    sums = np.cumsum(probabilities / probabilities.sum(axis=1, keepdims=True), axis=1)
    chosen = [np.searchsorted(row, random.random()) for row in sums]
    return emissions, transitions, PATHS[np.minimum(chosen, len(PATHS) - 1)]


@pytest.mark.parametrize("constraints", [None, bmes()], ids=["free", "constrained"])
@pytest.mark.parametrize("temperature", [0.8, 1.0, 2.0])
def test_scores_that_are_too_large_by_a_factor_have_this_factor_as_temperature(constraints, temperature):
    emissions, transitions, tags = drawn(1500, constraints)
    layer = ConditionalRandomField(constraints=constraints)
    layer.build((None, None, 4))
    layer.set_weights([transitions * temperature])
    y_pred = layer((emissions * temperature).astype("float32"))
    assert_allclose(best_temperature(layer, ops.convert_to_numpy(y_pred), tags), temperature, rtol=0.08)
    assert best_temperature(layer, ops.convert_to_numpy(y_pred)[:300], tags[:300]) == 1.0  # too few to tell


def test_scores_at_a_temperature_are_those_of_a_layer_with_smaller_scores():
    emissions, transitions, _ = drawn(5, None)
    layers = [ConditionalRandomField(use_boundary=True, constraints=bmes()) for _ in range(2)]
    mask = np.array([[1, 1, 1], [1, 1, 0], [0, 1, 1], [1, 0, 1], [1, 1, 1]], bool)
    for layer, factor in zip(layers, (1.0, 2.5), strict=True):
        layer.build((None, None, 4))
        layer.set_weights([transitions / factor, emissions[0, 0] / factor, emissions[0, 1] / factor])
    outputs = [layers[0]((emissions / k).astype("float32"), mask=mask) for k in (1.0, 2.5)]
    spans = [[(0, 2)], [(0, 1)], [(1, 3)], [(0, 3)], [(1, 2)]]
    found = layers[0].span_confidence(outputs[0], spans, temperature=2.5)
    assert_allclose(np.concatenate(found), np.concatenate(layers[1].span_confidence(outputs[1], spans)), rtol=1e-5)
    marginals = (layers[0].marginals(outputs[0], 2.5), layers[1].marginals(outputs[1]))
    assert_allclose(*map(ops.convert_to_numpy, marginals), rtol=1e-5, atol=1e-7)


@pytest.mark.slow
def test_a_run_keeps_the_temperature_of_its_held_out_part(tmp_path):
    corpus = load_mini()
    settings = Settings(width=16, depth=1, batch_size=8, epochs=2, learning_rate=0.02)
    tagger, _ = train_tagger(settings, corpus.train[:60], corpus.valid[:60], out=tmp_path / "run")
    assert sum(len("".join(words)) for words in corpus.valid[:60]) > 1000
    assert 0.5 <= tagger.network.temperature <= 4.0 and tagger.network.temperature != 1.0
    loaded = load_tagger(tmp_path / "run")
    assert loaded.network.temperature == tagger.network.temperature
    texts = ["".join(words) for words in corpus.test[:3]]
    found = tuples(loaded, texts)
    assert found == tuples(tagger, texts)
    loaded.network.temperature = 1.0
    without = tuples(loaded, texts)
    assert [[span[:2] for span in row] for row in found] == [[span[:2] for span in row] for row in without]
    assert found != without
