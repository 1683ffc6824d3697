"""kcrf.training.rates and kcrf.backend: The learning rate of a run by step, and its precision on a device."""

import math
from types import SimpleNamespace

import numpy as np
import pytest

from kcrf.backend import backend_name, best_precision
from kcrf.training.rates import learning_rate

pytestmark = pytest.mark.once
FALLS = {
    "linear": lambda share: 1 - share,
    "cosine": lambda share: (1 + math.cos(math.pi * share)) / 2,
    "exponential": lambda share: 0.01**share,
    "constant": lambda share: 1,
}


@pytest.mark.parametrize("schedule", FALLS)
@pytest.mark.parametrize(("steps", "warmup"), [(100, 0.1), (40, 0.5), (1000, 0.002)])
def test_a_rate_rises_to_its_peak_and_falls_as_its_schedule_says(schedule, steps, warmup):
    rate = learning_rate(0.5, schedule, warmup, steps)
    risen = round(steps * warmup)
    rising = [0.5 * step / risen for step in range(risen)]
    falling = [0.5 * FALLS[schedule]((step - risen) / (steps - risen)) for step in range(risen, steps + 1)]
    found = [float(rate(step)) for step in range(steps + 1)]
    np.testing.assert_allclose(found, rising + falling, atol=2e-6)


@pytest.mark.parametrize("schedule", FALLS)
@pytest.mark.parametrize("steps", [1, 2])
def test_the_shortest_runs_have_a_rate(schedule, steps):
    rate = learning_rate(0.5, schedule, 0.0, steps)
    assert all(0 <= float(rate(step)) <= 0.5 for step in range(steps + 1)) and float(rate(steps - 1)) >= 0


@pytest.mark.parametrize(("has_gpu", "has_bfloat16"), [(False, False), (True, False), (True, True)])
def test_the_precision_is_bfloat16_on_a_gpu_that_has_it(has_gpu, has_bfloat16, monkeypatch):
    """The answers of the libraries stand for those of cards: a Turing card, and one of Ampere or later."""
    capability = 8 if has_bfloat16 else 7
    if backend_name() == "torch":
        import torch

        monkeypatch.setattr(torch.cuda, "is_available", lambda: has_gpu)
        monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation: has_bfloat16)
    elif backend_name() == "jax":
        import jax

        device = SimpleNamespace(platform="gpu" if has_gpu else "cpu", compute_capability=f"{capability}.5")
        monkeypatch.setattr(jax, "devices", lambda: [device])
    else:
        import tensorflow as tf

        monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind: ["card"] * has_gpu)
        details = {"compute_capability": (capability, 5)}
        monkeypatch.setattr(tf.config.experimental, "get_device_details", lambda device: details)
    assert best_precision() == ("bfloat16" if has_bfloat16 else "float32")


def test_a_card_without_a_known_capability_computes_in_float32(monkeypatch):
    """On AMD's cards, the capability is the name of the architecture."""
    if backend_name() != "jax":
        pytest.skip("JAX has names of architectures as capabilities")
    import jax

    monkeypatch.setattr(jax, "devices", lambda: [SimpleNamespace(platform="gpu", compute_capability="gfx90a")])
    assert best_precision() == "float32"
