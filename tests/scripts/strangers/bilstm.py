# ruff: noqa
# Entities with a BiLSTM, functional, a data generator of bert4keras, shuffled; keeps the best weights.
# Not part of kcrf's code: tests/scripts/test_porting.py runs it with `bert4keras` turned into `kcrf.bert4keras` in the import lines.
import numpy as np
from bert4keras.backend import keras, K
from bert4keras.optimizers import Adam, extend_with_piecewise_linear_lr, extend_with_gradient_accumulation
from bert4keras.snippets import sequence_padding, DataGenerator, open
from bert4keras.snippets import ViterbiDecoder, to_array
from bert4keras.layers import ConditionalRandomField, Input, Dense, Bidirectional, LSTM, Embedding
from keras.models import Model

np.random.seed(0)
batch_size = 16
vocab = {'pad': 0}


def random_sentence():
    text, spans = '', []
    for _ in range(np.random.randint(1, 4)):
        text += np.random.choice(['看到', '来了', '和', '说'])
        name = np.random.choice(list('张王李')) + np.random.choice(list('明红军'))
        spans.append((len(text), len(text) + 1))
        text += name
    return text, spans


with open('train.txt', 'w', encoding='utf-8') as f:
    for _ in range(300):
        text, spans = random_sentence()
        f.write('%s\t%s\n' % (text, ' '.join('%s,%s' % s for s in spans)))

data = []
with open('train.txt', encoding='utf-8') as f:
    for l in f:
        text, spans = l.strip().split('\t')
        data.append((text, [tuple(map(int, s.split(','))) for s in spans.split(' ')]))
        for c in text:
            vocab.setdefault(c, len(vocab))
train_data, valid_data = data[:260], data[260:]


class data_generator(DataGenerator):
    def __iter__(self, random=False):
        batch_ids, batch_labels = [], []
        for is_end, (text, spans) in self.sample(random):
            labels = np.zeros(len(text))
            for start, end in spans:
                labels[start] = 1
                labels[start + 1:end + 1] = 2
            batch_ids.append([vocab[c] for c in text])
            batch_labels.append(labels)
            if len(batch_ids) == self.batch_size or is_end:
                batch_ids = sequence_padding(batch_ids)
                batch_labels = sequence_padding(batch_labels)
                yield batch_ids, batch_labels
                batch_ids, batch_labels = [], []


inputs = Input(shape=(None,))
x = Embedding(len(vocab), 16)(inputs)
x = Bidirectional(LSTM(12, return_sequences=True))(x)
x = Dense(3)(x)
CRF = ConditionalRandomField(lr_multiplier=10)
model = Model(inputs, CRF(x))

AdamLR = extend_with_piecewise_linear_lr(Adam, name='AdamLR')
AdamLRG = extend_with_gradient_accumulation(AdamLR, name='AdamLRG')
model.compile(
    loss=CRF.sparse_loss,
    optimizer=AdamLRG(learning_rate=2e-2, lr_schedule={10: 1, 200: 0.1}, grad_accum_steps=2),
    metrics=[CRF.sparse_accuracy]
)


class NamedEntityRecognizer(ViterbiDecoder):
    def recognize(self, text):
        ids = to_array([[vocab[c] for c in text]])
        labels = self.decode(model.predict(ids, verbose=0)[0])
        return [(i, i + 1) for i, label in enumerate(labels) if label == 1]


NER = NamedEntityRecognizer(trans=K.eval(CRF.trans), starts=[0, 1])


class Evaluator(keras.callbacks.Callback):
    def __init__(self):
        self.best_val_f1 = 0

    def on_epoch_end(self, epoch, logs=None):
        NER.trans = K.eval(CRF.trans)
        X, Y, Z = 1e-10, 1e-10, 1e-10
        for text, spans in valid_data:
            R, T = set(NER.recognize(text)), set(spans)
            X, Y, Z = X + len(R & T), Y + len(R), Z + len(T)
        f1 = 2 * X / (Y + Z)
        if f1 >= self.best_val_f1:
            self.best_val_f1 = f1
            model.save_weights('best_model.weights')


evaluator = Evaluator()
train_generator = data_generator(train_data, batch_size)
model.fit(
    train_generator.forfit(), steps_per_epoch=len(train_generator), epochs=4, callbacks=[evaluator], verbose=2
)
model.load_weights('best_model.weights')
print('score: %.4f' % evaluator.best_val_f1)
