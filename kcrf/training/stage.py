"""`Stage`: the base of the sources of labels or texts of a run. A new source is a class in a file of its own."""

from collections.abc import Callable, Mapping
from typing import Any

from kcrf.linear import LinearModel
from kcrf.readers import Reader
from kcrf.runs import DataConfig, RunConfig, RunWriter, Settings
from kcrf.runs.stages import StageConfig
from kcrf.training.data import RunData


class Stage:
    """A source of labels or texts. The methods are called in this order. By default they change nothing."""

    def __init__(self, settings: Any, config: RunConfig) -> None:
        self.settings, self.config = settings, config

    @classmethod
    def begun(cls, user: Settings) -> Settings:
        """The settings of a new run, completed from another model before the data are read."""
        return user

    @classmethod
    def completed(cls, user: Settings, data: RunData) -> Settings:
        """The settings of a new run, with those that the stage decides, before the facts of the data are known."""
        return user

    def check(self) -> None:
        """Raises ValueError if the stage does not fit a new run."""

    def prepare(self, data: RunData, folder: RunWriter | None) -> RunData:
        """The data with the labels or texts of the stage."""
        return data

    def reader(self, make: Callable[[], Reader], data: RunData) -> Reader:
        """The reader of a new run. Without the stage, it is the one that `make` returns."""
        return make()

    def for_training(self, reader: Reader) -> Any:
        """The reader of the training set."""
        return reader

    def initial_weights(self, model: Any) -> None:
        """Changes the initial weights of a Keras model."""

    def initial_linear_model(self, model: LinearModel) -> None:
        """Changes the initial scores of a linear model."""

    def targets(self, windows: list[Any], reader: Reader, data: RunData, folder: RunWriter) -> list[Any]:
        """The windows of a run with other targets."""
        return windows


StageTable = Mapping[type[StageConfig | DataConfig], type[Stage]]
