"""The protocol of a task. Needs no Keras."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Literal, Protocol

from kcrf.readers import Reader
from kcrf.tasks.facts import DataFacts


class Task(Protocol):
    """A task that a model can learn: its settings, its data, its labels and its scores.

    An item of its data is a `kcrf.corpora.Sentence` or a `kcrf.corpora.Example`. `data` is a `kcrf.runs.DataConfig`
    with the types or labels, `config` a `kcrf.runs.RunConfig`.

    Attributes:
        name: Its name, as for `kcrf train --task`.
        output: The output of its models: "tags" for the tokens of a text, or a "label" for the text.
        items: The name of its items in the plural.
        settings: The settings of this task that not all tasks have.
        defaults: Its own defaults of settings.
        adagrad: The learning rate, the L1 penalty and the damping of its linear models if AdaGrad trains them, with the
            keys "learning_rate", "l1" and "damping"; empty if it has no linear models.
        linear_weight: The default weight of a linear model in the average with a network, or "auto".
        without_lexicon: The weight of a model that is trained without the lexicon, in its linear models.
        augment_by: How copies of few sentences of characters are augmented by default; None: there are none.
        choices: Its own choices of settings, if they differ from those of other tasks.
        file_options: The command-line options for reading its files.
        command: The command that uses its models, such as "segment".
        needs_tokens: Whether its models need texts that are split into tokens.
        has_word_classes: Whether its models predict words and their classes.
        is_extensible: Whether types can be added to its finished models.
    """

    @property
    def name(self) -> str: ...

    @property
    def output(self) -> Literal["tags", "label"]: ...

    @property
    def items(self) -> str: ...

    @property
    def settings(self) -> frozenset[str]: ...

    @property
    def defaults(self) -> Mapping[str, Any]: ...

    @property
    def adagrad(self) -> Mapping[str, float]: ...

    @property
    def linear_weight(self) -> float | str: ...

    @property
    def without_lexicon(self) -> float: ...

    @property
    def augment_by(self) -> str | None: ...

    @property
    def choices(self) -> Mapping[str, tuple[Any, ...]]: ...

    @property
    def file_options(self) -> frozenset[str]: ...

    @property
    def command(self) -> str: ...

    @property
    def needs_tokens(self) -> bool: ...

    @property
    def has_word_classes(self) -> bool: ...

    @property
    def is_extensible(self) -> bool: ...

    def read_file(self, path: str, reading: Mapping[str, Any]) -> list[Any]:
        """The items of a file, without empty sentences. `reading` has a value for each of `file_options`."""

    def file_lines(self, items: list[Any]) -> list[str]:
        """The lines of a file with these items, which `read_file` reads."""

    def read_unlabeled_line(self, line: str) -> Any:
        """The text, or the pair of texts, in a line of a file of unlabeled text."""

    def check(self, name: str, items: Sequence[Any]) -> list[Any]:
        """Checks the items of a part, and converts them to `Sentence`s or `Example`s.

        Args:
            name: The name of the part, such as "train", for messages.
            items: Items of `read_file`, or what users pass to `train_tagger`.

        Raises:
            ValueError: An item is not valid, or there is no item with a text.
        """

    def copies(self, items: list[list[Any]]) -> list[list[Any]]:
        """Augmented copies as `Sentence`s or `Example`s."""

    def content(self, items: list[Any]) -> list[Any]:
        """The texts and labels, by whose hash a run checks that it resumes with the same data."""

    def labels_to_balance(self, items: list[Any]) -> list[str] | None:
        """The label of each item if a sample should keep the proportions of the labels, else None."""

    def hold_out(self, items: list[Any], seed: int) -> tuple[list[Any], list[Any]]:
        """Splits items into nine tenths for training and a tenth for validation."""

    def vocabulary_text(self, item: Any) -> str:
        """The text of an item, from whose characters the vocabulary is made."""

    def texts(self, items: list[Any]) -> tuple[list[str], list[Any] | None]:
        """The texts of items as a reader takes them, and their tokens or None."""

    def facts(self, user: Any, parts: Mapping[str, list[Any]]) -> DataFacts:
        """The facts that the data of a run decide.

        Args:
            user: The `kcrf.runs.Settings`.
            parts: The items of "train", "valid" and maybe "test".

        Raises:
            ValueError: The parts contradict each other or the settings.
        """

    def windows(
        self,
        data: Any,
        facts: DataFacts,
        reader: Reader,
        items: list[Any],
        copies: Any = None,
        whole_spans: bool = False,
    ) -> list[Any]:
        """The windows of the training set with their targets, those of each item followed by those of its copies.

        Args:
            data: The `DataConfig`.
            facts: The `DataFacts`.
            reader: The reader of the model.
            items: The items.
            copies: For each item a list of its augmented copies. Defaults to None: there are none.
            whole_spans: For tags: whether the tags of a span that a window cuts off are unknown. Defaults to False.
        """

    def unlabeled_items(self, texts: Sequence[Any], pairs: bool) -> list[Any]:
        """Converts unlabeled texts to items without labels.

        Args:
            texts: Strings, or pairs of strings.
            pairs: Whether the texts must be pairs.

        Raises:
            ValueError: A text is not a pair although it must be, or is one although it must not be.
        """

    def unlabeled_windows(self, data: Any, reader: Reader, items: list[Any]) -> list[Any]:
        """The windows of unlabeled items, with unknown targets."""

    def outputs(self, data: Any) -> tuple[str, ...]:
        """The labels of the outputs of a model, in their order; an empty tuple for regression."""

    def read_scored(self, path: str, reading: Mapping[str, Any], is_gold: bool) -> list[Any]:
        """The items of a file to score, empty ones included.

        Args:
            path: The file.
            reading: As for `read_file`.
            is_gold: Whether the file has the correct labels. Files with predictions may be those that commands write.
        """

    def predicted_items(self, predictions: list[dict[str, Any]], member: str) -> list[Any]:
        """The items of the "predictions.jsonl" of a run, as `scores` takes them.

        Args:
            predictions: The objects of the file.
            member: "gold" for the correct labels, "found" for the predicted ones.
        """

    def scores(
        self,
        gold: list[Any],
        predicted: list[Any],
        training_words: Collection[str] | None = None,
        labels: Sequence[str] = (),
    ) -> dict[str, Any]:
        """The scores of predictions, with the keys of a function of `kcrf.metrics`.

        Args:
            gold, predicted: Items of `read_scored` or `predicted_items`.
            training_words: The words of the training set, for scores of words that are in it and that are not. Defaults
                to None: no such scores.
            labels: The labels of the classifier, in their order. Defaults to those in the items.

        Raises:
            MismatchError: The texts of gold and prediction differ.
        """

    def describe(self, config: Any) -> tuple[str, str]:
        """Two parts of the line that `kcrf.runs.describe_run` returns: the labels that are learned, and the head."""
