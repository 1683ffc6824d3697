"""Trains a named-entity recognizer on 60 sentences, without and with augmented examples (Dai and Adel, 2020).

    KERAS_BACKEND=torch python examples/task_sequence_labeling_ner_augmentation.py

The augmented examples have other people, places and organizations in the same sentences. Without code:
`kcrf train --task ner --train FILE --augment 4 --augment-by mentions`.
"""

from dataclasses import replace

from kcrf.augmentation import altered_copies
from kcrf.corpora import load_mini
from kcrf.training import Settings, train_tagger

corpus = load_mini("ner")
train = corpus.train[:60]

for sentence, copies in zip(train[:3], altered_copies(train, "ner", copies=2, operations=["mentions"])):
    for text in (sentence, *copies):
        print(text.text, [(text.text[start:end], label) for start, end, label in text.spans])
    print()

settings = Settings(task="ner", width=64, depth=2, batch_size=16, steps=150, learning_rate=3e-3)
augmented = replace(settings, augment=4, augment_by="mentions")
for name, chosen in (("as they are", settings), ("with copies", augmented)):
    _, scores = train_tagger(chosen, train, corpus.valid, corpus.test, out=f"runs/{name}", overwrite=True)
    print(f"{name}: F1 on the test set: {scores['test']['f']:.4f}")
