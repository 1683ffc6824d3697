# ruff: noqa
# Word segmentation with characters only, Sequential, the batches come from a plain function.
# Not part of kcrf's code: tests/scripts/test_porting.py runs it with `bert4keras` turned into `kcrf.bert4keras` in the import lines.
import numpy as np
from bert4keras.backend import keras, K
from bert4keras.snippets import sequence_padding, ViterbiDecoder
from bert4keras.layers import ConditionalRandomField
from keras.layers import Embedding, Bidirectional, GRU, Dense
from keras.models import Sequential

np.random.seed(42)
words = ['天气', '今天', '我们', '去', '公园', '很', '好', '图书馆', '在', '那里', '看书']
chars = sorted(set(''.join(words)))
char2id = {c: i + 1 for i, c in enumerate(chars)}


def make_data(n):
    return [list(np.random.choice(words, np.random.randint(2, 7))) for _ in range(n)]


train_data, valid_data = make_data(320), make_data(40)


def encode(sentence):
    ids, labels = [], []
    for w in sentence:
        ids += [char2id[c] for c in w]
        labels += [0] if len(w) == 1 else [1] + [2] * (len(w) - 2) + [3]
    return ids, labels


X = sequence_padding([encode(s)[0] for s in train_data])
Y = sequence_padding([encode(s)[1] for s in train_data])

CRF = ConditionalRandomField(lr_multiplier=10)
model = Sequential()
model.add(Embedding(len(chars) + 1, 16, mask_zero=True))
model.add(Bidirectional(GRU(16, return_sequences=True)))
model.add(Dense(4))
model.add(CRF)
model.compile(loss=CRF.sparse_loss, optimizer=keras.optimizers.Adam(1e-2), metrics=[CRF.sparse_accuracy])
model.fit(X, Y, batch_size=16, epochs=4, verbose=2)

decoder = ViterbiDecoder(trans=K.eval(CRF.trans), starts=[0, 1], ends=[0, 3])
right = total = 0
for s in valid_data:
    ids, labels = encode(s)
    nodes = model.predict(np.array([ids]), verbose=0)[0]
    right += (decoder.decode(nodes) == np.array(labels)).sum()
    total += len(labels)
print('score: %.4f' % (right / total))
