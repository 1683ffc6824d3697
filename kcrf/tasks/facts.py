"""`DataFacts`: the facts about its training data on which a run depends. Needs no Keras."""

from dataclasses import dataclass


@dataclass(frozen=True)
class DataFacts:
    """The facts about its training data on which a run depends.

    Attributes:
        types: The entity types in the order of their tags.
        labels: The labels of texts in their order; empty for regression.
        units: "words" or "characters" for entities from scratch, else None.
        pairs: Whether texts come in pairs.
        mean, deviation: Of labels that are numbers: their mean and their standard deviation.
        standards: The segmentation standards in their order, where there are several.
        metric: The score of a classifier by which the best epoch is chosen, unless the user has chosen it.
        items: How many sentences or texts the training set has, without copies.
        windows: How many windows of up to 128 positions the training data have. Most sentences are one window.
        steps: How many batches an epoch has.
    """

    types: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    units: str | None = None
    pairs: bool = False
    mean: float = 0.0
    deviation: float = 1.0
    standards: tuple[str, ...] = ()
    metric: str | None = None
    items: int = 0
    windows: int = 1
    steps: int = 1
