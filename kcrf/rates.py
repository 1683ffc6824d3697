"""Suggests the learning-rate multiplier of a CRF."""

LONG_RUN_RATE = 1e-2  # 1e-5 x 1000 and 1e-3 x 10 in published settings
LARGEST_RATE = 1e-1
TYPICAL_TRANSITION_SCORE = 2.5  # nats, after training


def suggest_lr_multiplier(learning_rate: float, steps: int) -> float:
    """Suggests the learning-rate multiplier of a CRF.

    The rate of the CRF should be 1e-2, as in two published settings (1e-5 x 1000, 1e-3 x 10; Su Jianlin,
    kexue.fm/archives/7196). Adam moves a weight by about its rate in each step, so in fewer than 250 steps a score
    could not reach 2.5, a typical value of a trained transition: for short runs the rate is 2.5 / steps, at most 0.1.

        k = max(1, min(max(1e-2, 2.5 / steps), 1e-1) / learning_rate), to two digits

    Args:
        learning_rate: The learning rate of the other weights, or the highest one of a schedule.
        steps: The number of updates of the whole run.

    Returns:
        A float of at least 1.

    Raises:
        ValueError: One of the two is not positive, or the learning rate is a schedule.

    >>> suggest_lr_multiplier(1e-5, 100_000), suggest_lr_multiplier(3e-4, 250), suggest_lr_multiplier(3e-4, 100)
    (1000.0, 33.0, 83.0)
    """
    if callable(learning_rate):
        raise ValueError(f"`learning_rate` must be a number, of a schedule the highest. Received: {learning_rate!r}")
    if not (learning_rate > 0 and steps > 0):
        raise ValueError(
            "`suggest_lr_multiplier` needs a positive learning rate and number of steps. "
            f"Received: learning_rate={learning_rate}, steps={steps}"
        )
    rate = min(max(LONG_RUN_RATE, TYPICAL_TRANSITION_SCORE / steps), LARGEST_RATE)
    return float(f"{max(1.0, rate / learning_rate):.2g}")
