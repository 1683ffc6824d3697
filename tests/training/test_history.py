"""kcrf.training.history: which epoch is kept and when training stops, beside the definitions."""

from hypothesis import given
from hypothesis import strategies as st

from kcrf.training.history import TrainingHistory

BACKENDS = ["torch"]
scores = st.lists(st.sampled_from([0.0, 0.2, 0.5, 0.5, 0.9]), max_size=8)


def test_a_correlation_below_0_is_worse_than_none():
    history = TrainingHistory(9, score="valid_matthews")
    values = (-0.2, 0.0, -0.1, 0.0, 0.3, 0.2)
    kept = [history.add({"epoch": n, "valid_matthews": value}) for n, value in enumerate(values, 1)]
    assert kept == [True, True, False, True, True, False]


@given(scores, st.integers(1, 8), st.none() | st.integers(1, 3))
def test_the_first_best_epoch_is_kept_and_patience_counts_since_a_score_of_0(values, epochs, patience):
    history = TrainingHistory(epochs, patience)
    for number, value in enumerate(values):
        best_before = max(values[:number], default=0.0)
        is_kept = history.add({"epoch": number + 1, "valid_f": value, "seconds": 2.0 * number})
        assert is_kept == (value > best_before or best_before == 0.0)
        since_0 = values[: number + 1][::-1]
        since_0 = since_0[: since_0.index(0.0) if 0.0 in since_0 else None][::-1]
        waited = len(since_0) - 1 - since_0.index(max(since_0)) if since_0 else 0
        first_best = values.index(max(values[: number + 1]))
        in_all = number - first_best if values[first_best] > 0 else 0
        waits_too_long = patience is not None and (waited >= patience or in_all >= 2 * patience)
        assert history.is_done() == (number + 1 >= epochs or waits_too_long)
    resumed = TrainingHistory(epochs, patience)
    resumed.set_state(history.get_state())
    assert resumed.rows == history.rows and resumed.is_done() == history.is_done()
    assert resumed.seconds() == (2.0 * (len(values) - 1) if values else 0.0)


def test_what_an_untrained_model_finds_by_chance_does_not_end_training():
    history = TrainingHistory(9, patience=2)
    for number, value in enumerate((0.05, 0.0, 0.0, 0.02), 1):
        history.add({"epoch": number, "valid_f": value})
        assert not history.is_done()
    assert history.add({"epoch": 5, "valid_f": 0.1}) and not history.is_done()


def test_a_model_that_collapses_ends_training():
    history = TrainingHistory(99, patience=3)
    for number, value in enumerate((0.8, *[0.0] * 6), 1):
        assert not history.is_done()
        history.add({"epoch": number, "valid_f": value})
    assert history.is_done()


def test_training_that_was_over_for_another_version_is_over():
    history = TrainingHistory(9, patience=2)
    history.set_state({"rows": [{"epoch": 1, "valid_f": 0.5}], "transitions": []}, is_over=True)
    assert history.is_done()


def test_a_last_epoch_ends_training_though_it_is_the_best():
    history = TrainingHistory(9, patience=2)
    for number, value in enumerate((0.5, 0.2), 1):
        history.add({"epoch": number, "valid_f": value})
    worse, better = {"epoch": 3, "valid_f": 0.4}, {"epoch": 3, "valid_f": 0.6}
    assert history.ends_with(worse) and not history.ends_with(better) and not history.is_done()
    assert history.add(better, is_last=True) and history.is_done()
    resumed = TrainingHistory(9, patience=2)
    resumed.set_state(history.get_state())
    assert resumed.is_done()


@given(scores)
def test_of_losses_the_first_of_the_least_is_kept(values):
    history = TrainingHistory(9, score="valid_loss", least=True)
    for number, value in enumerate(values):
        is_kept = history.add({"epoch": number + 1, "valid_loss": value})
        assert is_kept == (value < min(values[:number], default=1.0))
