"""Words and their parts of speech in one model, from pairs of word and class to a trained segmenter.

    KERAS_BACKEND=torch python examples/task_words_with_classes.py

The sentences are generated. 计划, 研究 and 工作 are verbs or nouns, depending on their neighbors.
"""

import os
import random
import tempfile

os.environ.setdefault("KERAS_BACKEND", "tensorflow")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

from kcrf.taggers import WordSegmenter
from kcrf.training import Settings, train_tagger

WORDS = {
    "r": ["我", "他们", "我们"],
    "n": ["大学生", "公园", "图书馆", "计划", "研究", "工作"],
    "v": ["喜欢", "参观", "计划", "研究", "工作"],
    "a": ["新", "重要"],
    "u": ["的"],
    "w": ["。", "！"],
}
PATTERNS = ["r v n w", "n v n w", "r u n v n w", "a u n v n w", "r v a u n w"]


def corpus(count, seed):
    """Sentences as lists of (word, class)."""
    draw = random.Random(seed)
    rows = [draw.choice(PATTERNS).split() for _ in range(count)]
    return [[(draw.choice(WORDS[tag]), tag) for tag in tags] for tags in rows]


train, valid, test = (corpus(count, seed) for seed, count in enumerate((200, 30, 60)))
settings = Settings(task="cws-pos", encoder="linear", epochs=5)  # or the default encoder, or bert="FOLDER"
with tempfile.TemporaryDirectory() as folder:
    _, scores = train_tagger(settings, train, valid, test, out=folder)
    segmenter = WordSegmenter(folder)
    for text in ("他们计划研究。", "重要的计划参观大学生！"):
        print(" ".join(f"{span.text}/{span.label}" for span in segmenter([text])[0]))
print(f"F1 of words: {scores['test']['f']:.3f}")
print(f"F1 of words with classes: {scores['test']['joint_f']:.3f}")
