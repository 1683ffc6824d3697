"""Settings and run folders: the configuration, the model files and the results of a training run. Needs no Keras."""

from kcrf.runs.errors import DivergedError as DivergedError
from kcrf.runs.folder import RunFolder
from kcrf.runs.model_config import ModelConfig as ModelConfig
from kcrf.runs.records import RunRecord as RunRecord
from kcrf.runs.records import read_run as read_run
from kcrf.runs.resolve import RunConfig, resolve
from kcrf.runs.settings import Settings
from kcrf.runs.training_config import DataConfig as DataConfig
from kcrf.runs.training_config import OptimizerConfig as OptimizerConfig
from kcrf.runs.training_config import TrainingConfig as TrainingConfig
from kcrf.runs.writer import RunWriter as RunWriter
from kcrf.tasks import DataFacts, SettingError

__all__ = ["DataFacts", "RunConfig", "RunFolder", "SettingError", "Settings", "resolve"]
