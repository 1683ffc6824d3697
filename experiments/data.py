"""The corpora of the experiments: their files below one folder, their parts, and samples of them."""

import random
from functools import cache
from pathlib import Path

TAGGED = {  # the task and its parts: train, dev, test; None for dev: lines of the training text that are not drawn
    "ud_gsd": ("cws", ("cws/ud_gsd/train.conll", "cws/ud_gsd/dev.conll", "cws/ud_gsd/test.conll")),
    "pfr199801": ("cws", ("cws/pfr199801/train.utf8", None, "cws/sighan2005/pku_test_gold.utf8")),
    "people_daily": ("ner", tuple(f"ner/people_daily/example.{part}" for part in ("train", "dev", "test"))),
    "mini": ("cws", ()),  # the built-in corpus, which needs no files
    "weibo": ("ner", tuple(f"ner/weibo/weiboNER_2nd_conll.{part}" for part in ("train", "dev", "test"))),
    "wnut17": (
        "ner",
        (
            "ner/wnut17/train/wnut17train.conll",
            "ner/wnut17/dev/emerging.dev.conll",
            "ner/wnut17/test/emerging.test.annotated",
        ),
    ),
}
HELD_OUT = {"cws": (100, 300), "ner": (100, 500)}  # sentences of dev and test at most; those of words are long
CLASSIFIED = {  # files for training, joined; the file that is scored; where texts and label are; the metric
    "rte": (("train.tsv", "val.tsv"), "dev.tsv", (1, 2, 3), "accuracy"),
    "mrpc": (("msr_paraphrase_train.txt",), "msr_paraphrase_test.txt", (3, 4, 0), "f"),
    "cola": (("train.tsv", "val.tsv"), "dev.tsv", (3, 1), "matthews"),
    "stsb": (("sts-train.csv",), "sts-dev.csv", (5, 6, 4), "pearson"),
    "chnsenticorp": (("train.tsv",), "dev.tsv", (0, 1), "accuracy"),
}
FOLDERS = {"rte": "RTE", "mrpc": "MRPC", "cola": "CoLA", "stsb": "STS-B", "chnsenticorp": "ChnSentiCorp"}
BERTS = {"chinese": "zh_small_bert", "deep": "e5_small_wordpiece"}  # folders in `checkpoints`: 4 layers, 12 layers
HEADERS = {"index", "Quality"}  # the first cells of first lines with names


def task_of_corpus(corpus):
    """The task that a corpus is labeled for: "cws", "ner" or "classify"."""
    return TAGGED[corpus][0] if corpus in TAGGED else "classify"


@cache
def sample_of(data, corpus, size, seed, lengths=None):
    """Training, validation and test set of a corpus, with this many sentences or texts to train on.

    The seed draws them. With `lengths`, sentences of tagged corpora with fewer or more characters are omitted from all
    parts. The validation set of a classification corpus is drawn from its training text too, a fifth as large, because
    the labeled test sets of GLUE are its validation sets. Texts of the test set are omitted from both.
    """
    if corpus in TAGGED:
        parts = [part and _of_lengths(part, lengths) for part in parts_of(data, corpus)]
        return cut(parts, size, seed, *HELD_OUT[TAGGED[corpus][0]])
    train, test = classified_parts(corpus, data / "classification" / FOLDERS[corpus])
    tested = {example[:-1] for example in test}
    train = [example for example in train if example[:-1] not in tested]
    order = random.Random(seed).sample(train, len(train))
    held_out = len(order) // 6 if size is None else size // 5
    return order[held_out:][:size], order[:held_out], test


def _of_lengths(sentences, lengths):
    """The sentences that are neither shorter nor longer, or all."""
    least, most = lengths or (0, float("inf"))
    return [sentence for sentence in sentences if least <= len(sentence.text) <= most]


@cache
def parts_of(data, corpus):
    """The parts train, dev and test of a tagged corpus, as lists of `Sentence`s; dev is None where it is drawn."""
    from kcrf.corpora import load_mini, read_conll, read_segmented

    if corpus == "mini":
        mini = load_mini()
        return [[words_as_sentence(words) for words in part] for part in (mini.train, mini.valid, mini.test)]

    def read(path):
        if TAGGED[corpus][0] == "cws":
            return [words_as_sentence(words) for words in read_segmented(data / path) if words]
        return read_conll(data / path, repair=corpus == "weibo")

    return [path and read(path) for path in TAGGED[corpus][1]]


def words_as_sentence(words):
    from kcrf.tasks.task import as_sentence

    return as_sentence(words)


def cut(parts, size, seed, most_dev, most_test):
    """The parts with this many sentences to train on, and at most so many to score on."""
    train, dev, test = parts
    rng = random.Random(seed)
    order = rng.sample(range(len(train)), len(train))
    if dev is None:
        held_out, order = order[:most_dev], order[most_dev:]
        dev = [train[i] for i in sorted(held_out)]
    chosen = sorted(order[:size])
    dev, test = (
        part if len(part) <= most else random.Random(0).sample(part, most)
        for part, most in ((dev, most_dev if size != 500 else min(250, most_dev)), (test, most_test))
    )
    return [train[i] for i in chosen], dev, test


def classified_parts(corpus, folder):
    """The training texts of a classification corpus, and those that are scored."""
    files, scored, columns, _ = CLASSIFIED[corpus]
    train = [example for file in files for example in read_examples(Path(folder) / file, columns)]
    return train, read_examples(Path(folder) / scored, columns)


def read_examples(path, columns):
    """The examples of a file, `(text, [text_b,] label)`; of MRPC without the rows whose texts have no id."""
    from kcrf.corpora import read_lines

    rows = [line.split("\t") for line in read_lines(path)]
    rows = [row for row in rows if row[0] not in HEADERS and "-1" not in row[1:3]]
    return [tuple(row[column].strip() for column in columns) for row in rows]
