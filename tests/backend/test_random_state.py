"""kcrf.backend.host: the state of the random generators, with which a resumed run draws what it would have drawn."""

from kcrf.backend import random_state, set_random_state

BACKENDS = ["torch"]


def test_the_generator_of_cuda_is_restored_too(monkeypatch):
    import torch

    alone, restored = random_state(), []
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_rng_state", lambda: torch.arange(16, dtype=torch.uint8))
    monkeypatch.setattr(torch.cuda, "set_rng_state", restored.append)
    state = random_state()
    drawn = torch.rand(3)
    set_random_state(state)
    assert torch.equal(torch.rand(3), drawn)
    assert [x.tolist() for x in restored] == [list(range(16))]
    set_random_state(alone)  # of a run without a GPU
    assert torch.equal(torch.rand(3), drawn) and len(restored) == 1
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    set_random_state(state)
    assert torch.equal(torch.rand(3), drawn) and len(restored) == 1
