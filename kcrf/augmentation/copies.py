"""Augmented examples of a training set, reproducible by their seed."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from numbers import Integral
from typing import Any

import numpy as np
from numpy.random import Generator

from kcrf.augmentation.entities import EntityPools, alter_sentence
from kcrf.augmentation.pieces import Piece, apart, choose, group_words, pick, pieces_of, spacing, text_of, with_texts
from kcrf.augmentation.synonyms import Synonyms, read_synonym_vectors, read_synonyms
from kcrf.corpora import Example, Sentence
from kcrf.progress_bars import bar
from kcrf.tasks import SettingError
from kcrf.tasks.task import as_sentence


def alter_example(example: Example, name: str, share: float, synonyms: Synonyms, random: Generator) -> Example:
    """A copy of an `Example` with an altered text. In a pair, one of the two texts is altered."""
    field = "text" if example.text_b is None or random.random() < 0.5 else "text_b"
    pieces, tail = pieces_of(getattr(example, field))
    groups = group_words(pieces, synonyms.__contains__, synonyms.longest)
    words = [Piece(pieces[start].gap, text_of(pieces[start:stop])[len(pieces[start].gap) :]) for start, stop in groups]
    altered = apart(_OPERATIONS[name](words, share, synonyms, random), words)
    return replace(example, **{field: text_of(altered, tail)})


def _count(words: list[Piece], share: float) -> int:
    return max(1, int(share * len(words)))


def _replace(words: list[Piece], share: float, synonyms: Synonyms, random: Generator) -> list[Piece]:
    """Replaces all occurrences of random words by one of their synonyms, the same synonym for all occurrences."""
    texts = [word.text for word in words]
    replaceable = [text for text in dict.fromkeys(texts) if synonyms.of(text)]
    chosen = random.permutation(len(replaceable))[: _count(words, share)].tolist()
    new = {replaceable[i]: pick(random, synonyms.of(replaceable[i])) for i in chosen}
    return with_texts(words, [new.get(text, text) for text in texts])


def _insert(words: list[Piece], share: float, synonyms: Synonyms, random: Generator) -> list[Piece]:
    """Inserts synonyms of random words at random positions."""
    candidates = [word.text for word in words if synonyms.of(word.text)]
    for _ in range(_count(words, share) if candidates else 0):
        new = pick(random, synonyms.of(pick(random, candidates)))
        words = _with_inserted(words, int(random.integers(len(words) + 1)), new)
    return words


def _with_inserted(words: list[Piece], at: int, new: str) -> list[Piece]:
    """Inserts a new word before the word number `at`, with spaces around it if the language uses spaces."""
    before, after = words[:at], words[at:]
    inserted = Piece(spacing(before[-1].text, new) if before else words[0].gap, new)
    if not before:
        after = [Piece(spacing(new, after[0].text), after[0].text), *after[1:]]
    return [*before, inserted, *after]


def _swap(words: list[Piece], share: float, synonyms: Synonyms, random: Generator) -> list[Piece]:
    """Exchanges random pairs of words."""
    texts = [word.text for word in words]
    for _ in range(_count(words, share) if len(words) > 1 else 0):
        i, j = random.permutation(len(texts))[:2].tolist()
        texts[i], texts[j] = texts[j], texts[i]
    return with_texts(words, texts)


def _delete(words: list[Piece], share: float, synonyms: Synonyms, random: Generator) -> list[Piece]:
    """Deletes random words, but keeps at least one word."""
    if len(words) < 2:
        return words
    gone = set(choose(random, len(words), share))
    remaining = [word for i, word in enumerate(words) if i not in gone] or [pick(random, words)]
    return [Piece(words[0].gap, remaining[0].text), *remaining[1:]]


_OPERATIONS = {"synonyms": _replace, "insertion": _insert, "swap": _swap, "deletion": _delete}

OPERATIONS = {  # by task; the other tasks cannot be augmented
    "classify": tuple(_OPERATIONS),
    "ner": ("synonyms", "mentions", "tokens", "shuffle"),
    "cws": ("synonyms", "join", "cut"),
}
_SHARES = {"classify": 0.1, "ner": 0.3, "cws": 0.3}
_WITH_SYNONYMS = ("synonyms", "insertion")


def altered_copies(
    items: Sequence[Any],
    task: str,
    copies: int = 1,
    operations: Sequence[str] | None = None,
    share: float | None = None,
    synonyms: Synonyms | None = None,
    seed: int = 0,
) -> list[list[Any]]:
    """Creates augmented examples with correct labels from sentences or texts.

    One random operation makes each example; one that changes nothing is followed by the next. The example depends only
    on the seed, the number of the item and the number of the copy.

    - Labeled texts (EDA; Wei and Zou 2019, https://arxiv.org/abs/1901.11196): `synonyms` replaces words, `insertion`
      inserts synonyms, `swap` exchanges words, `deletion` removes words.
    - Entities (Dai and Adel 2020, https://arxiv.org/abs/2010.11683): `mentions` replaces entities by entities of the
      same type, `tokens` replaces tokens by tokens with the same tag, `synonyms` replaces words outside of entities,
      `shuffle` shuffles the tokens of an entity or of the text between two entities.
    - Words: `join` appends the next sentence, `cut` splits the sentence at a word, `synonyms` replaces words.

    Args:
        items: The training set: for "classify" `kcrf.corpora.Example`s, for "ner" `Sentence`s, for "cws" lists of
            words, or `Sentence`s whose spans are words.
        task: "classify", "ner" or "cws".
        copies: The maximum number of augmented examples per item. Defaults to 1.
        operations: Names from the list above. Defaults to None: all; without `synonyms`, all that do not need them.
        share: The fraction of the words, tokens or entities that change, at least one per item. Defaults to None: 0.1
            for "classify", 0.3 for the other tasks.
        synonyms: `Synonyms`. Defaults to None: no operation may need them.
        seed: The random seed, an int >= 0. Defaults to 0.

    Returns:
        A list for each item: fewer than `copies` examples if the operations yield no more, none with unknown labels.

    Raises:
        ValueError: An item, an operation or a number is not one that the task takes.

    >>> sentences = [Sentence("李雷住在上海", [(0, 2, "PER"), (4, 6, "LOC")]), Sentence("北京很大", [(0, 2, "LOC")])]
    >>> [copy.text for (copy,) in altered_copies(sentences, "ner", operations=["mentions"])]
    ['李雷住在北京', '上海很大']
    """
    names = _checked(task, copies, operations, share, synonyms, seed)
    items = [_checked_item(task, item) for item in items]
    alter = _alterations(task, items, _SHARES[task] if share is None else share, synonyms or Synonyms())
    with bar() as shown:
        numbered = shown.track(enumerate(items), total=len(items), description="copies")
        return [_copies_of(number, item, copies, names, seed, partial(alter, number)) for number, item in numbered]


def _copies_of(number: int, item: Any, count: int, names: list[str], seed: int, alter: Callable[..., Any]) -> list[Any]:
    copies = []
    is_known = item and not (isinstance(item, Sentence) and item.unknown)
    for copy in range(count if is_known else 0):
        random = np.random.default_rng([seed, number, copy])
        for name in random.permutation(names).tolist():
            altered = alter(name, random)
            if altered != item and altered not in copies:
                copies.append(altered)
                break
    return copies


def _alterations(task: str, items: list[Any], share: float, synonyms: Synonyms) -> Callable[..., Any]:
    """The function that alters the items of a task: from the number of an item, an operation and a generator."""
    if task == "classify":
        return lambda number, name, random: alter_example(items[number], name, share, synonyms, random)
    if task == "ner":
        pools = EntityPools([sentence for sentence in items if not sentence.unknown])
        return lambda number, name, random: alter_sentence(items[number], name, share, synonyms, random, pools)
    following = [*items[1:], []]
    return lambda number, name, random: alter_words(items[number], name, share, synonyms, random, following[number])


def alter_words(
    words: list[str], name: str, share: float, synonyms: Synonyms, random: np.random.Generator, after: list[str]
) -> list[str]:
    """Alters a sentence, which is a list of words."""
    if name == "join":
        return [*words, *after]
    if name == "cut":
        at = int(random.integers(1, len(words))) if len(words) > 1 else 0
        return words[:at] if at and random.random() < 0.5 else words[at:]
    alternatives = [[other for other in synonyms.of(word) if len(other.split()) == 1] for word in words]  # no two words
    replaceable = [i for i, words_like in enumerate(alternatives) if words_like]
    new = {replaceable[n]: pick(random, alternatives[replaceable[n]]) for n in choose(random, len(replaceable), share)}
    return [new.get(i, word) for i, word in enumerate(words)]


def _checked_item(task: str, item: Any) -> Any:
    """An item as its task alters it. Words with unknown labels are neither altered nor joined to others."""
    if task == "cws":
        sentence = as_sentence(item, "`items`")
        return [] if sentence.unknown else sentence.texts_of(sentence.spans)
    cls = Sentence if task == "ner" else Example
    if not isinstance(item, cls):
        raise ValueError(f"`items` must be of type `{cls.__name__}`. Received: {str(item)[:80]!r}")
    return item


def copies_wanted(task: str, augmentation: Any, seed: int) -> dict[str, Any]:
    """The arguments of `altered_copies` other than the items that a run asks for, checked, a dict."""
    synonyms = None
    if augmentation.synonyms is not None:
        synonyms = read_synonyms(augmentation.synonyms)
    elif augmentation.synonym_vectors is not None:
        synonyms = read_synonym_vectors(augmentation.synonym_vectors)
    arguments = {
        "task": task,
        "copies": augmentation.augment,
        "operations": augmentation.augment_by and [name.strip() for name in augmentation.augment_by.split(",")],
        "share": augmentation.augment_share,
        "synonyms": synonyms,
        "seed": seed,
    }
    _checked(**arguments)
    return arguments


def _checked(
    task: str, copies: int, operations: Sequence[str] | None, share: float | None, synonyms: Synonyms | None, seed: int
) -> list[str]:
    """The names of the operations, a list, once all arguments are checked."""
    if task not in OPERATIONS:
        raise ValueError(f"`task` is one of {', '.join(OPERATIONS)}. Received: task={task!r}")
    if not isinstance(copies, Integral) or copies < 1 or seed < 0 or not (share is None or 0 < share < 1):
        raise ValueError(
            "`altered_copies` needs an int copies >= 1, seed >= 0 and 0 < share < 1. "
            f"Received: copies={copies}, seed={seed}, share={share}"
        )
    if operations is None:
        return [name for name in OPERATIONS[task] if synonyms is not None or name not in _WITH_SYNONYMS]
    if isinstance(operations, str):
        raise ValueError(f"`operations` must be a list of names. Received: {operations!r}")
    unknown = [name for name in operations if name not in OPERATIONS[task]]
    if unknown or not operations:
        received = ", ".join(unknown) or "none"
        raise ValueError(f"The operations of task={task!r} are {', '.join(OPERATIONS[task])}. Received: {received}")
    needy = [name for name in operations if name in _WITH_SYNONYMS]
    if needy and synonyms is None:
        raise SettingError("synonyms", f"or {{synonym_vectors}} are needed by the operation {needy[0]}", None)
    return list(dict.fromkeys(operations))
