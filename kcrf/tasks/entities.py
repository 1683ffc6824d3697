"""Named-entity recognition. Needs NumPy only."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from kcrf.corpora import Sentence, read_entities, sentence_line
from kcrf.corpora.conll import conll_lines
from kcrf.corpora.offsets import trimmed_span
from kcrf.metrics import entity_scores
from kcrf.progress_bars import print_note
from kcrf.readers.word_tokens import choose_units, entities_that_cut_tokens, splits_of
from kcrf.tasks.errors import check_same_texts
from kcrf.tasks.task import DataFacts, FileOptions, Items, Task, Words, types_of


class Entities(Task):
    """Named entities: spans with a type."""

    name = "ner"
    is_extensible = True
    settings = frozenset({"augment", "scheme", "min_probability", "incomplete"})
    linear_weight = "auto"
    augment_by = "mentions"
    defaults: Mapping[str, Any] = {"scheme": "bio"}
    adagrad: Mapping[str, float] = {"learning_rate": 0.3, "l1": 0.001, "damping": 1.0}
    choices: Mapping[str, tuple[Any, ...]] = {"scheme": ("bio", "bioes"), "units": ("words", "characters")}
    file_options = frozenset({"column", "repair"})

    def read_file(self, path: str, options: FileOptions) -> Items:
        return [sentence for sentence in read_entities(path, options["column"], options["repair"]) if sentence.text]

    def as_sentence(self, source: str, item: Any) -> Sentence:
        sentence = super().as_sentence(source, item)
        return replace(sentence, spans=[trimmed_span(sentence.text, span) for span in sentence.spans])

    def file_lines(self, items: Items) -> list[str]:
        if all(sentence.tokens for sentence in items):
            return [line for sentence in items for line in conll_lines(sentence)]
        return list(map(sentence_line, items))

    def unlabeled_items(self, texts: Sequence[Any], pairs: bool) -> Items:
        return [Sentence(text, []) for text in texts]

    def facts(self, user: Any, parts: Mapping[str, Items]) -> DataFacts:
        types = types_of(user, parts, "entities of types", "missed")
        if not types:
            raise ValueError("`train` needs at least one entity. Received: sentences without any")
        counts = Counter(map(str.casefold, types))
        if same := [name for name in types if counts[name.casefold()] > 1]:
            print_note(f"train: types that differ in upper and lower case alone are different types: {', '.join(same)}")
        if not any(sentence.spans for sentence in parts["valid"]):
            print_note("valid: no entity, so no epoch is better than another: the last one is kept")
        if user.units is None:
            check_ends(parts["train"])
        units = user.units or choose_units(parts["train"]) if user.bert is None else None
        if units == "words" and user.extend is None:
            note_cut_entities(parts, splits_of(parts["train"]), "taken as unknown", "--units characters")
        return DataFacts(types=types, units=units)

    def read_scored(self, path: str, options: FileOptions, is_gold: bool) -> Items:
        return read_entities(path, options["column"], options["repair"])

    def scores(self, gold: Items, predicted: Items, words: Words = None, labels: Sequence[str] = ()) -> dict[str, Any]:
        check_same_texts("sentence", *([sentence.text for sentence in part] for part in (gold, predicted)))
        scored = [sentence.scored(other.spans) for sentence, other in zip(gold, predicted, strict=True)]
        return entity_scores([sentence.spans for sentence in gold], scored)


_IN_WORD = re.compile("[A-Za-zÀ-ɏͰ-ԯ]{2}")  # of scripts in which few entities have letters before or after them
_ENOUGH_CUT, _ENOUGH_RECUR, _MANY_LETTERS = 5, 10, 20  # entities that recur; different letters that follow them


def check_ends(sentences: Sequence[Sentence]) -> None:
    """Refuses entities most of which begin or end within words: as where the last character is taken for the end, or
    bytes are counted. A note says if the same letter follows most entities that recur, as 海 follows 上."""
    places = [(sentence.text, start, end) for sentence in sentences for start, end, _ in sentence.spans]
    rule = "the end of an entity is the position after its last character"
    for least, group in ((2, places), (_ENOUGH_CUT, [place for place in places if not place[0][: place[2]].isascii()])):
        cut = [p for p in group if _IN_WORD.match(p[0], p[2] - 1) or p[1] and _IN_WORD.match(p[0], p[1] - 1)]
        if len(cut) > max(least - 1, len(group) / 2):
            (text, start, end), among = cut[0], " after characters that are not ASCII" * (group is not places)
            received = f"{text[start:end]!r} in {text[:60]!r}, and so {len(cut)} of {len(group)} entities{among}"
            raise ValueError(f"`train` needs entities of whole words: {rule}. Received: {received}")
    follows: dict[str, list[str]] = {}
    for text, start, end in places:
        follows.setdefault(text[start:end], []).append(text[end : end + 1])
    recurring = {entity: {*letters} for entity, letters in follows.items() if len(letters) > 1}
    same = {entity: min(each) for entity, each in recurring.items() if len(each) == 1 and min(each).isalnum()}
    is_varied = len({*same.values()}) >= min(_MANY_LETTERS, len(same) / 4)
    if is_varied and len(same) > len(recurring) / 2 and len(recurring) >= _ENOUGH_RECUR:
        shown = "as {1!r} follows {0!r}".format(*min(same.items()))
        print_note(f"train: the same letter follows {len(same)} of {len(recurring)} repeated entities, {shown}: {rule}")


def note_cut_entities(parts: Mapping[str, Sequence[Sentence]], splits: str, in_training: str, remedy: str) -> None:
    """Prints a note for each part in which entities begin or end inside a word."""
    for name, sentences in parts.items():
        cut = entities_that_cut_tokens(sentences, splits)
        if cut:
            effect = f"the tags there are {in_training}"
            effect = effect if name == "train" else "they cannot be found, and count as missed"
            count = sum(len(sentence.spans) for sentence in sentences)
            print_note(
                f"{name}: {len(cut)} of {count} entities begin or end inside a word, such as {cut[0]!r}: {effect}; "
                f"{remedy} can find them"
            )
