"""Settings and run folders: the configuration, the model files and the results of a training run. Needs no Keras."""

from kcrf.runs.errors import DivergedError
from kcrf.runs.folder import RunFolder
from kcrf.runs.model_config import ModelConfig
from kcrf.runs.records import RunRecord, read_run
from kcrf.runs.resolve import RunConfig, resolve
from kcrf.runs.settings import Settings
from kcrf.runs.training_config import AugmentationConfig, DataConfig, OptimizerConfig, TeacherConfig, TrainingConfig
from kcrf.runs.writer import RunWriter
from kcrf.tasks import DataFacts, SettingError

__all__ = ["DataFacts", "RunConfig", "RunFolder", "SettingError", "Settings", "resolve"]
