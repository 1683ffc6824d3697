"""The average of two linear models, one of all features and one of some of them. Needs NumPy only.

Strong features keep the scores of the others low: a sentence in training has both. Where the strong ones are missing,
such as those of a lexicon at a word that it does not contain, the others are then too weak (Sutton et al., 2006,
"Reducing Weight Undertraining in Structured Discriminative Learning"). A second model is trained without the strong
features. The average of both, a logarithmic opinion pool (Smith and Osborne, 2006, "Using Gazetteers in Discriminative
Information Extraction"), is again a linear model.
"""


class PooledTrainer:
    """Trains two linear models on the same batches, and averages them.

    Args:
        trainer: An `AdaGradTrainer` or `LBFGSTrainer`, of the model of all features.
        other: The same for the other model.
        columns: The columns of the features that the other model has, a list of ints.
        weight: The weight of the other model in the average, from 0 to 1.
    """

    def __init__(self, trainer, other, columns, weight):
        self._trainer, self._other, self._columns, self._weight = trainer, other, columns, weight

    @property
    def model(self):
        """The average of both models at present, a new `LinearModel`."""
        return self._trainer.model.averaged(self._other.model, self._weight)

    @property
    def state(self):
        """A dict of the arrays from which `load_state` resumes the training."""
        others = {f"other {name}": array for name, array in self._other.state.items()}
        return {**self._trainer.state, **others}

    def load_state(self, state):
        """Resumes from a `state`."""
        self._trainer.load_state(state)
        self._other.load_state({name: state[f"other {name}"] for name in self._other.state})

    def train_batch(self, batch, on_step=None):
        """Trains both models on a `LinearBatch`. Returns the loss of the model of all features, as its trainer does."""
        self._other.train_batch(batch.with_columns(self._columns))
        return self._trainer.train_batch(batch, on_step)
