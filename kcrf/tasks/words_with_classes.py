"""Word segmentation with a class for each word, such as its part of speech, in one model. Needs NumPy only."""

from collections.abc import Mapping, Sequence
from typing import Any

from kcrf.corpora import Sentence, read_tagged
from kcrf.corpora.tagged import joined_sentence, tagged_lines, tags_of_tokens, words_and_tags
from kcrf.corpora.word_classes import are_word_tags
from kcrf.metrics import tagged_word_scores
from kcrf.tags.scheme import ENTITY_TAG
from kcrf.tasks.errors import check_same_texts
from kcrf.tasks.task import DataFacts, FileOptions, Items, Task, Words
from kcrf.tasks.tokens import checked_pairs, classes_of, read_scored_tags, words_of


class WordsWithClasses(Task):
    """The words of texts without spaces between words, as in Chinese, and a class for each word."""

    name = "cws-pos"
    command = "segment"
    has_word_classes = True
    settings = frozenset({"metric"})
    defaults: Mapping[str, Any] = {"scheme": "bmes"}
    choices: Mapping[str, tuple[Any, ...]] = {"scheme": ("bmes",), "units": ("characters",), "metric": ("joint_f", "f")}
    file_options = frozenset({"column", "words"})

    def read_file(self, path: str, options: FileOptions) -> Items:
        sentences = [each for each in map(_without_spaces, read_tagged(path, options["column"])) if each.text]
        tags = sorted({tag for sentence in sentences for _, _, tag in sentence.spans})
        if are_word_tags(tags) or tags and all(map(ENTITY_TAG.fullmatch, tags)):
            raise ValueError(f"{path}: needs words with their classes. Received: tags of characters, {tags!r:.60}")
        return sentences

    def check(self, name: str, items: Any) -> Items:
        sentences = super().check(name, items)
        if not any(sentence.spans for sentence in sentences):
            received = f"{len(sentences)} sentences"
            raise ValueError(f"`{name}` needs at least one word whose class is known. Received: {received}")
        return sentences

    def as_sentence(self, source: str, item: Any) -> Sentence:
        if not isinstance(item, Sentence):
            return _without_spaces(_sentence(checked_pairs(source, item, "word, class")))
        tokens = item.tokens or sorted([span[:2] for span in item.spans] + item.unknown)
        ends = [0, *(end for _, end in tokens)]
        gaps = [item.text[a:b] for a, b in zip(ends, [*(start for start, _ in tokens), len(item.text)], strict=True)]
        words = set(map(tuple, tokens))
        spans = list(map(tuple, item.spans))
        is_labeled = all(len(span) == 3 for span in spans)
        if any(gap.strip() for gap in gaps) or not is_labeled or not {span[:2] for span in spans} <= words:
            raise ValueError(f"{source}: needs words that cover the text, each with its class. Received: {item}"[:240])
        return _without_spaces(Sentence(item.text, item.spans, tokens, item.unknown))

    def facts(self, user: Any, parts: Mapping[str, Items]) -> DataFacts:
        return DataFacts(types=classes_of(user, parts, "classes"), metric="joint_f")

    def file_lines(self, items: Items) -> list[str]:
        return [line for sentence in items for line in tagged_lines(words_of(sentence), tags_of_tokens(sentence))]

    def read_scored(self, path: str, options: FileOptions, is_gold: bool) -> Items:
        return list(map(_without_spaces, read_scored_tags(path, options, is_gold)))

    def predicted_items(self, predictions: list[dict[str, Any]], member: str) -> Items:
        spans = [sorted(tuple(span[:3]) for span in item[member]) for item in predictions]
        return [_sentence(_pairs_of_text(item["text"], row)) for item, row in zip(predictions, spans, strict=True)]

    def scores(self, gold: Items, predicted: Items, words: Words = None, labels: Sequence[str] = ()) -> dict[str, Any]:
        check_same_texts("sentence", *([sentence.text for sentence in part] for part in (gold, predicted)))
        return tagged_word_scores(list(map(words_and_tags, gold)), list(map(words_and_tags, predicted)), words)

    def describe(self, config: Any) -> tuple[str, str]:
        tags, head = super().describe(config)
        return f", {len(config.data.types)} classes{tags}", head


def _sentence(pairs: Sequence[Any]) -> Sentence:
    """The `Sentence` of words with their classes."""
    words, classes = zip(*pairs, strict=True) if pairs else ((), ())
    return joined_sentence(words, classes, join_all=True)


def _pairs_of_text(text: str, spans: list[Any]) -> list[tuple[str, str]]:
    """The words of a text with their classes. Text without a span is a word of the class "?"."""
    pairs, end = [], 0
    for start, stop, label in [*spans, (len(text), len(text), "")]:
        pairs += [(text[end:start], "?")] if end < start else []
        pairs += [(text[start:stop], label)] if start < stop else []
        end = stop
    return pairs


def _without_spaces(sentence: Sentence) -> Sentence:
    """The sentence without white space between and inside its words."""
    pairs = [("".join(word.split()), tag) for word, tag in words_and_tags(sentence)]
    return _sentence([(word, tag) for word, tag in pairs if word])
