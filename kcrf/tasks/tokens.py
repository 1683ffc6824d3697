"""Token tagging: a class for each token, such as its part of speech. Needs NumPy only."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kcrf.corpora import Sentence, read_lines, read_tagged, tagged_sentence
from kcrf.corpora.tagged import tagged_lines, tags_of_tokens
from kcrf.metrics import token_scores
from kcrf.progress_bars import print_note
from kcrf.tags.scheme import ENTITY_TAG
from kcrf.tasks.errors import check_same_texts
from kcrf.tasks.forms import items_of
from kcrf.tasks.task import DataFacts, FileOptions, Items, Task, Words, types_of


class TokenTagging(Task):
    """A class for each token of a sentence. Texts must be split into tokens, in training and in use."""

    name = "pos"
    needs_tokens = True
    settings: frozenset[str] = frozenset()
    defaults: Mapping[str, Any] = {"scheme": "classes", "constraints": False}
    choices: Mapping[str, tuple[Any, ...]] = {"scheme": ("classes",), "constraints": (False,), "units": ("words",)}
    file_options = frozenset({"column", "words"})

    def read_file(self, path: str, options: FileOptions) -> Items:
        return read_tagged(path, options["column"])

    def check(self, name: str, items: Any) -> Items:
        items = items_of(self.name, name, items)
        numbered = [(f"`{name}`, sentence {number}", item) for number, item in enumerate(items, 1) if item]
        sentences = [self.as_sentence(source, item) for source, item in numbered]
        for (source, _), sentence in zip(numbered, sentences, strict=True):
            tokens = set(map(tuple, sentence.tokens))
            if not tokens or not {(start, end) for start, end, _ in sentence.spans} <= tokens:
                received = f"{len(tokens)} tokens and {len(sentence.spans)} tags for {sentence.text[:40]!r}"
                raise ValueError(f"{source}: needs tokens, each with its tag. Received: {received}")
        if not any(sentence.spans for sentence in sentences):
            raise ValueError(f"`{name}` needs at least one token whose tag is known. Received: {len(items)} sentences")
        return sentences

    def as_sentence(self, source: str, item: Any) -> Sentence:
        return item if isinstance(item, Sentence) else tagged_sentence(*zip(*checked_pairs(source, item, "token, tag")))

    def unlabeled_items(self, texts: Sequence[Any], pairs: bool) -> Items:
        return [text if isinstance(text, Sentence) else sentence_of_tokens(text) for text in texts]

    def facts(self, user: Any, parts: Mapping[str, Items]) -> DataFacts:
        return DataFacts(types=classes_of(user, parts, "tags"), units="words", metric="accuracy")

    def file_lines(self, items: Items) -> list[str]:
        return [line for sentence in items for line in tagged_lines(words_of(sentence), tags_of_tokens(sentence))]

    def read_scored(self, path: str, options: FileOptions, is_gold: bool) -> Items:
        return read_scored_tags(path, options, is_gold)

    def scores(self, gold: Items, predicted: Items, words: Words = None, labels: Sequence[str] = ()) -> dict[str, Any]:
        texts = ([" ".join(words_of(sentence)) for sentence in part] for part in (gold, predicted))
        check_same_texts("sentence", *texts)
        gold_tags, predicted_tags = (list(map(tags_of_tokens, part)) for part in (gold, predicted))
        return token_scores(list(map(words_of, gold)), gold_tags, predicted_tags, words)

    def describe(self, config: Any) -> tuple[str, str]:
        return f", {len(config.data.types)} tags", config.model.head


def classes_of(user: Any, parts: Mapping[str, Items], noun: str) -> tuple[str, ...]:
    """The classes, as `types_of` finds types. Prints a note if they look like the tags of entities."""
    types = types_of(user, parts, noun, "wrong")
    if all(map(ENTITY_TAG.fullmatch, types)) and types != ("O",):
        shown = ", ".join(types[:3])
        print_note(f"train: the {noun} look like entities ({shown}): --task ner learns and scores whole entities")
    return types


def read_scored_tags(path: str, options: FileOptions, is_gold: bool) -> list[Sentence]:
    """The sentences of a file of gold tags, or of predictions, which may have one tag for each token."""
    first = next((line for line in read_lines(path) if line.strip() and not line.startswith("#")), "")
    has_one_tag = not is_gold and len(first.split("\t")) == 2  # as `kcrf tag` writes it
    return read_tagged(path, -1 if has_one_tag else options["column"])


def words_of(sentence: Sentence) -> list[str]:
    """The tokens of a `Sentence`, strings."""
    return sentence.texts_of(sentence.tokens)


def sentence_of_tokens(line: str) -> Sentence:
    """The `Sentence` of a line of tokens with white space between them."""
    return Sentence(line, [], [match.span() for match in re.finditer(r"\S+", line)])


def checked_pairs(source: str, item: Any, words: str) -> list[Any]:
    """The pairs of strings of a sentence. Raises ValueError, which names the source and what the pairs should be."""
    pairs = list(item) if isinstance(item, Iterable) else [item]
    wrong = [pair for pair in pairs if not _is_pair(pair)]
    if wrong:
        raise ValueError(
            f"{source}: needs pairs ({words}) of strings that are not empty; None is a tag that is not known. "
            f"Received: {str(wrong[:3])[:80]}"
        )
    return pairs


def _is_pair(pair: Any) -> bool:
    """Whether this is a token and its tag, or None."""
    if not isinstance(pair, (tuple, list)) or len(pair) != 2:
        return False
    return all(isinstance(part, str) and part for part in ([pair[0]] if pair[1] is None else pair))
