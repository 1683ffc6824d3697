"""Trains a named-entity recognizer without and with pretrained word vectors.

    KERAS_BACKEND=torch python examples/task_sequence_labeling_ner_vectors.py [words.txt]

words.txt is segmented text, with one sentence per line and words separated by spaces, such as the output of
`kcrf segment`. By default, the text is the built-in corpus, which is too small for good vectors. Needs gensim:
pip install '.[vectors]'. Without code: `kcrf train --task ner --train FILE --vectors words.bin`.
"""

import sys
from pathlib import Path

from gensim.models import Word2Vec

from kcrf.corpora import load_mini, read_segmented
from kcrf.training import Settings, train_tagger

texts = read_segmented(sys.argv[1]) if len(sys.argv) > 1 else load_mini("cws").train
word2vec = Word2Vec(texts, vector_size=50, min_count=2, sg=1, epochs=5, seed=0, workers=1)
Path("runs").mkdir(exist_ok=True)
word2vec.wv.save_word2vec_format("runs/words.bin", binary=True)
for word in ("北京", "中国", "说"):
    if word in word2vec.wv:
        print(word, "is near to", *(near for near, _ in word2vec.wv.most_similar(word, topn=5)))

corpus = load_mini("ner")
settings = {"task": "ner", "width": 64, "depth": 2, "batch_size": 16, "steps": 75, "learning_rate": 5e-3}
for name, vectors in (("without", None), ("with vectors", "runs/words.bin")):
    chosen = Settings(vectors=vectors, **settings)
    _, scores = train_tagger(chosen, corpus.train[:200], corpus.valid, corpus.test, out=f"runs/{name}", overwrite=True)
    print(f"{name}: F1 on the test set: {scores['test']['f']:.4f}")
