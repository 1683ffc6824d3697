"""Augmented copies of the training set."""

from dataclasses import replace
from typing import Any

from kcrf.augmentation import altered_copies
from kcrf.augmentation.copies import copies_wanted
from kcrf.corpora.sentences import for_each_group
from kcrf.runs import RunWriter
from kcrf.training.data import RunData
from kcrf.training.stage import Stage


class Augmentation(Stage):
    """Adds augmented copies to the training set. The copies of a segmentation standard are made of its sentences."""

    def prepare(self, data: RunData, folder: RunWriter | None) -> RunData:
        """The data with copies."""
        task, items = data.task, data.parts["train"]
        wanted = copies_wanted(task.name, self.settings, self.config.training.seed)

        def copies(standard: str | None, chosen: list[Any]) -> list[list[Any]]:
            made = task.copies(altered_copies(chosen, **wanted))
            return made if standard is None else [[replace(copy, standard=standard) for copy in row] for row in made]

        standards = [item.standard if self.config.data.standards else None for item in items]
        return replace(data, copies=for_each_group(standards, copies, items))
