"""The stages by their settings. A new source of labels has a file here, settings in `kcrf.runs.stages`, and a row."""

from kcrf.runs import DataConfig
from kcrf.runs.stages import AugmentationConfig, ExtensionConfig, IncompleteConfig, TeacherConfig
from kcrf.training.stage import StageTable
from kcrf.training.stages.augmentation import Augmentation
from kcrf.training.stages.extension import Extension
from kcrf.training.stages.incomplete import Incomplete
from kcrf.training.stages.standards import Standards
from kcrf.training.stages.teacher import Teacher

STAGES: StageTable = {
    IncompleteConfig: Incomplete,
    AugmentationConfig: Augmentation,
    ExtensionConfig: Extension,
    TeacherConfig: Teacher,
    DataConfig: Standards,  # if there are several
}
