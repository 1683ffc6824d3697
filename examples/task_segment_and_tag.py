"""Trains one encoder with two CRF heads, for words and entities, on texts that are labeled for only one task.

    KERAS_BACKEND=torch python examples/task_segment_and_tag.py [alternate|joint]

Unknown tags (-1) are marginalized out, so a sentence with only unknown tags adds nothing to the loss. Each batch
therefore has targets for both heads. With `alternate` (the default), a batch contains texts of one task; with `joint`,
it contains the same number of texts of both tasks.
"""

import sys

import numpy as np

from kcrf.backend import keras, ops
from kcrf.corpora import entity_types, load_mini
from kcrf.layers import ConditionalRandomField
from kcrf.metrics import entity_scores, segmentation_scores
from kcrf.networks.embeddings import embed, encode
from kcrf.optimizers import Adam, WarmupLinearDecay
from kcrf.readers import Vocabulary
from kcrf.readers.padding import bucket, pad
from kcrf.tags import bio, bmes


class Texts:
    """Texts with the tags of one task, and unknown tags (-1) for the other task.

    Args:
        texts: List of strings.
        spans: For each text, the list of its words `(start, end)` or entities `(start, end, label)`.
        task: "words" or "entities".
        scheme: The `TagScheme` of the task.
    """

    def __init__(self, texts, spans, task, scheme):
        self.texts, self.spans, self.task, self.scheme = texts, spans, task, scheme

    def rows(self, vocabulary, tasks):
        """For each text, a dict of its inputs and a dict of its tags by task."""
        rows = []
        for text, spans in zip(self.texts, self.spans, strict=True):
            inputs = dict(zip(("characters", "bigrams"), vocabulary.encode(text), strict=True))
            unknown = dict.fromkeys(tasks, [-1] * len(text))
            rows.append((inputs, {**unknown, self.task: self.scheme.encode(spans, len(text))}))
        return rows


def arrays(rows, length):
    """Inputs and targets of the rows: two dicts of arrays `(rows, length)`."""
    inputs, tags = zip(*rows, strict=True)
    return (
        {name: pad([row[name] for row in inputs], length) for name in inputs[0]},
        {name: pad([row[name] for row in tags], length, -1) for name in tags[0]},
    )


def longest(rows):
    """The length to which all rows are padded. One length means that the model is compiled once."""
    return bucket(max(len(inputs["characters"]) for inputs, _ in rows))


class Batches(keras.utils.PyDataset):
    """Batches from one or several lists of rows. A batch has rows of one list, or with `joint` equally many of each.

    In both cases, an epoch shows each row of the longest list once, and draws the same number of rows from the others.
    """

    def __init__(self, lists, size, joint=False, seed=0):
        super().__init__()
        self._lists, self._size, self._joint = lists, size, joint
        self._length = max(map(longest, lists))
        self._random = np.random.default_rng(seed)
        self.on_epoch_end()

    def __len__(self):
        return len(self._batches)

    def __getitem__(self, index):
        return arrays(self._batches[index], self._length)

    def on_epoch_end(self):
        steps = -(-max(map(len, self._lists)) // self._size)
        parts = []  # of each list, the rows of each step
        for rows in self._lists:
            order = np.resize(self._random.permutation(len(rows)), (steps, self._size))
            parts.append([[rows[i] for i in chosen] for chosen in order])
        if self._joint:
            self._batches = [[row for part in step for row in part] for step in zip(*parts, strict=True)]
        else:
            self._batches = [part for step in zip(*parts, strict=True) for part in step]


def build(vocabulary, schemes, width=128, depth=3, dropout=0.4):
    """A model with the inputs of `arrays` and one output for each scheme, and its CRFs, a dict by task."""
    characters, bigrams = (keras.Input((None,), dtype="int32", name=name) for name in ("characters", "bigrams"))
    mask = ops.not_equal(characters, 0)
    vectors = embed(characters, bigrams, vocabulary.sizes, widths=(64, 64), bigram_dropout=0.3)
    hidden = encode("cnn", keras.layers.Dropout(dropout)(vectors), mask, width, depth, dropout)
    crfs = {task: ConditionalRandomField(10, constraints=scheme) for task, scheme in schemes.items()}
    outputs = {task: crfs[task](keras.layers.Dense(len(scheme))(hidden), mask=mask) for task, scheme in schemes.items()}
    return keras.Model({"characters": characters, "bigrams": bigrams}, outputs), crfs


def fit(train, epochs, batch_size=16, joint=False, seed=0, learning_rate=2e-3, verbose=2):
    """Trains one encoder on the `Texts` of one or several tasks; returns the model, its CRFs and its vocabulary."""
    keras.utils.set_random_seed(seed)
    vocabulary = Vocabulary.of([text for texts in train for text in texts.texts])
    schemes = {texts.task: texts.scheme for texts in train}
    batches = Batches([texts.rows(vocabulary, schemes) for texts in train], batch_size, joint, seed)
    model, crfs = build(vocabulary, schemes)
    steps = epochs * len(batches)
    model.compile(
        Adam(WarmupLinearDecay(learning_rate, steps // 10, steps), global_clipnorm=5.0),
        loss={task: crf.sparse_loss for task, crf in crfs.items()},
    )
    model.fit(batches, epochs=epochs, verbose=verbose)
    return model, crfs, vocabulary


def score(model, crf, vocabulary, texts, batch_size=64):
    """F1 of one head on `Texts`."""
    rows, found = texts.rows(vocabulary, [texts.task]), []
    for first in range(0, len(rows), batch_size):
        inputs, _ = arrays(rows[first : first + batch_size], longest(rows))
        tags = ops.convert_to_numpy(crf.decode(model(inputs)[texts.task]))
        found += [texts.scheme.decode(row[row >= 0].tolist()) for row in tags]
    if texts.task == "entities":
        return entity_scores(texts.spans, found)["f"]
    words = [[[text[a:b] for a, b in row] for text, row in zip(texts.texts, rows)] for rows in (texts.spans, found)]
    return segmentation_scores(*words)["f"]


def of_words(sentences):
    """`Texts` of lists of words."""
    ends = [np.cumsum([0, *map(len, words)]).tolist() for words in sentences]
    spans = [list(zip(row, row[1:])) for row in ends]
    return Texts(["".join(words) for words in sentences], spans, "words", bmes())


def of_entities(sentences, types):
    """`Texts` of `kcrf.corpora.Sentence`s."""
    return Texts([s.text for s in sentences], [s.spans for s in sentences], "entities", bio(types))


if __name__ == "__main__":
    words, entities = load_mini("cws"), load_mini("ner")
    types = entity_types(entities.train)
    train = [of_words(words.train[:200]), of_entities(entities.train[:200], types)]
    test = [of_words(words.test), of_entities(entities.test, types)]
    model, crfs, vocabulary = fit(train, epochs=5, joint="joint" in sys.argv[1:])
    for texts in test:
        print(f"F1 of {texts.task}: {score(model, crfs[texts.task], vocabulary, texts):.4f}")
