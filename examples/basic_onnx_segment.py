"""Segments text with a file written by `kcrf export`, using only onnxruntime and NumPy: no Keras, no kcrf.

    kcrf train --task cws --no-ngrams --train words.txt --out runs/words
    kcrf export runs/words --out words.onnx
    python examples/basic_onnx_segment.py words.onnx 今天天气真好

`examples/segmenter.onnx` is a model to try. A model must be trained from scratch and without n-gram features, and
the texts must contain no whitespace. Prints the words of each text and their probabilities.
"""

import json
import sys
import unicodedata
from bisect import bisect

import numpy as np
import onnxruntime

session = onnxruntime.InferenceSession(sys.argv[1])
metadata = session.get_modelmeta().custom_metadata_map
vocabulary, labels = json.loads(metadata["vocabulary.json"]), json.loads(metadata["labels"])
characters, pairs = ({x: i for i, x in enumerate(vocabulary[name], 2)} for name in ("characters", "bigrams"))
words, strings = vocabulary.get("words"), vocabulary.get("strings")  # how often a string was a word, and occurred


def fold(character):
    folded = unicodedata.normalize("NFKC", character).lower()
    folded = folded if len(folded) == 1 else character
    return "0" if folded.isdecimal() else folded


def known_words(text):
    """Lexicon features: for each character and word length, the class of the word that begins there or ends there."""
    rows = np.zeros((len(text), 8), "int32")
    for column, length in enumerate((2, 3, 4, 5)):
        for start in range(len(text) - length + 1):
            word = "".join(text[start : start + length])
            if word in words:
                kind = 4 * bisect((1, 2, 5), words[word]) + bisect((0, 0.1, 0.5, 0.9), words[word] / strings[word]) - 4
                rows[start, column], rows[start + length - 1, column + 4] = 12 * column + kind, 12 * (column + 4) + kind
    return rows


def segment(text):
    folded = [fold(character) for character in text]
    inputs = {"characters": [[characters.get(x, 1) for x in folded]]}
    inputs["bigrams"] = [[pairs.get(a + b, 1) for a, b in zip(folded, [*folded[1:], " "])]]
    inputs |= {"words": [known_words(folded)]} if words else {}
    inputs = {name: np.array(rows, "int32") for name, rows in inputs.items()}
    every_tag = {"allowed": np.zeros((1, 1, 1), "float32"), "with_confidences": np.array(True)}
    (tags,), (confidences,) = session.run(["tags", "confidences"], inputs | every_tag)
    starts = [i for i, tag in enumerate(tags) if i == 0 or labels[tag] in "sb"]
    return [(text[i:j], confidences[i:j].prod()) for i, j in zip(starts, [*starts[1:], len(text)])]


for text in sys.argv[2:]:
    print(*(f"{word}/{probability:.3f}" for word, probability in segment(text)))
