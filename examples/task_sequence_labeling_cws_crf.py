"""Chinese word segmentation with BERT and a CRF, written as a script for bert4keras.

    KERAS_BACKEND=jax python examples/task_sequence_labeling_cws_crf.py [checkpoint folder]

The corpus is the built-in one. Without a checkpoint folder, the script trains a tiny BERT with random weights, so F1 is
low.
"""

import numpy as np
from tiny_checkpoint import checkpoint

from kcrf.backend import K, keras
from kcrf.corpora import load_mini
from kcrf.layers import ConditionalRandomField
from kcrf.metrics import segmentation_scores
from kcrf.models import build_transformer_model
from kcrf.optimizers import Adam
from kcrf.snippets import DataGenerator, ViterbiDecoder, sequence_padding
from kcrf.tokenizers import Tokenizer

maxlen, batch_size, epochs, layers = 72, 16, 2, 2  # with BERT-base 12 layers
learning_rate, crf_lr_multiplier = 2e-3, 5  # with a real BERT 2e-5 and 500

corpus = load_mini()
config_path, checkpoint_path, dict_path = checkpoint(["".join(words) for words in corpus.train])
tokenizer = Tokenizer(str(dict_path), do_lower_case=True)


class Sentences(DataGenerator):
    """Batches of lists of words. Tags: 0 single-character word; 1 first, 2 middle, 3 last character of a word."""

    def __iter__(self, random=False):
        rows = []
        for is_end, words in self.sample(random):
            token_ids, tags = [tokenizer._token_start_id], [0]
            for word in words:
                ids = tokenizer.encode(word)[0][1:-1]
                if len(token_ids) + len(ids) >= maxlen:
                    break
                token_ids += ids
                tags += [0] if len(ids) == 1 else [1] + [2] * (len(ids) - 2) + [3]
            rows.append((token_ids + [tokenizer._token_end_id], tags + [0]))
            if len(rows) == self.batch_size or is_end:
                token_ids, tags = (sequence_padding(column, maxlen) for column in zip(*rows))  # one shape to compile
                yield [token_ids, np.zeros_like(token_ids)], tags
                rows = []


keras.utils.set_random_seed(0)
bert = build_transformer_model(config_path, checkpoint_path)
hidden = bert.get_layer(f"Transformer-{layers - 1}-FeedForward-Norm").output
CRF = ConditionalRandomField(lr_multiplier=crf_lr_multiplier)
model = keras.models.Model(bert.input, CRF(keras.layers.Dense(4)(hidden)))
model.compile(loss=CRF.sparse_loss, optimizer=Adam(learning_rate), metrics=[CRF.sparse_accuracy])


class Segmenter(ViterbiDecoder):
    """Segments texts into words."""

    def segment(self, texts):
        tokens = [tokenizer.tokenize(text, maxlen) for text in texts]
        token_ids = sequence_padding([tokenizer.tokens_to_ids(row) for row in tokens], maxlen)
        nodes = model.predict([token_ids, np.zeros_like(token_ids)], batch_size=batch_size, verbose=0)
        return [self.words(*row) for row in zip(texts, tokens, nodes)]

    def words(self, text, tokens, nodes):
        tags = self.decode(nodes)  # -1 at padding
        starts = [place[0] for place, tag in zip(tokenizer.rematch(text, tokens), tags) if place and tag < 2]
        cuts = [0, *starts[1:], len(text)]
        return [text[start:end] for start, end in zip(cuts, cuts[1:])]


segmenter = Segmenter(trans=K.eval(CRF.trans), starts=[0], ends=[0])


def f1(sentences):
    """The F1 of whole words."""
    segmenter.trans = K.eval(CRF.trans)
    found = segmenter.segment(["".join(words) for words in sentences])
    return segmentation_scores(sentences, found)["f"]


class Evaluator(keras.callbacks.Callback):
    """Scores the validation set and keeps the best weights."""

    def __init__(self):
        super().__init__()
        self.best = 0.0

    def on_epoch_end(self, epoch, logs=None):
        score = f1(corpus.valid)
        if score >= self.best:
            self.best = score
            model.save_weights("best_model.weights.h5")
        print(f"epoch {epoch + 1}: F1 {score:.4f}, best {self.best:.4f}")


batches = Sentences(corpus.train, batch_size)
model.fit(batches.forfit(), steps_per_epoch=len(batches), epochs=epochs, callbacks=[Evaluator()], verbose=2)
model.load_weights("best_model.weights.h5")
print(f"F1 on the test set: {f1(corpus.test):.4f}")
print(" ".join(segmenter.segment(["昨天晚上下了一场大雨。"])[0]))
