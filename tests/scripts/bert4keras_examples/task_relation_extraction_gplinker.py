# ruff: noqa
import json
import numpy as np
from kcrf.bert4keras.backend import keras, K
from kcrf.bert4keras.backend import sparse_multilabel_categorical_crossentropy
from kcrf.bert4keras.tokenizers import Tokenizer
from kcrf.bert4keras.layers import EfficientGlobalPointer as GlobalPointer
from kcrf.bert4keras.models import build_transformer_model
from kcrf.bert4keras.optimizers import Adam, extend_with_exponential_moving_average
from kcrf.bert4keras.snippets import sequence_padding, DataGenerator
from kcrf.bert4keras.snippets import open, to_array

maxlen, batch_size = 16, 12
with open("relations.json", encoding="utf-8") as file:
    train_data = [json.loads(row) for row in file]
predicate2id = {"是": 0, "在": 1}
id2predicate = dict(enumerate(predicate2id))
tokenizer = Tokenizer("bert/vocab.txt", do_lower_case=True)


def search(pattern, sequence):
    for i in range(len(sequence)):
        if sequence[i : i + len(pattern)] == pattern:
            return i
    return -1


class data_generator(DataGenerator):
    def __iter__(self, random=False):
        rows = []
        for is_end, d in self.sample(random):
            token_ids, segment_ids = tokenizer.encode(d["text"], maxlen=maxlen)
            s, p, o = d["triple"]
            s, p, o = tokenizer.encode(s)[0][1:-1], predicate2id[p], tokenizer.encode(o)[0][1:-1]
            sh, oh = search(s, token_ids), search(o, token_ids)
            entity_labels = [{(sh, sh + len(s) - 1)}, {(oh, oh + len(o) - 1)}]
            head_labels, tail_labels = ([set() for _ in predicate2id] for _ in range(2))
            head_labels[p].add((sh, oh))
            tail_labels[p].add((sh + len(s) - 1, oh + len(o) - 1))
            for label in entity_labels + head_labels + tail_labels:
                if not label:
                    label.add((0, 0))
            labels = [sequence_padding([list(x) for x in some]) for some in (entity_labels, head_labels, tail_labels)]
            rows.append((token_ids, segment_ids, *labels))
            if len(rows) == self.batch_size or is_end:
                tokens, segments, *labels = zip(*rows)
                inputs = [sequence_padding(tokens), sequence_padding(segments)]
                yield inputs, [sequence_padding(some, seq_dims=2) for some in labels]
                rows = []


def globalpointer_crossentropy(y_true, y_pred):
    shape = K.shape(y_pred)
    y_true = y_true[..., 0] * K.cast(shape[2], K.floatx()) + y_true[..., 1]
    y_pred = K.reshape(y_pred, (shape[0], -1, K.prod(shape[2:])))
    loss = sparse_multilabel_categorical_crossentropy(y_true, y_pred, True)
    return K.mean(K.sum(loss, axis=1))


base = build_transformer_model("bert/config.json", "bert/model.safetensors", return_keras_model=False)
entity_output = GlobalPointer(heads=2, head_size=16)(base.model.output)
options = {"heads": len(predicate2id), "head_size": 16, "RoPE": False, "tril_mask": False}
head_output = GlobalPointer(**options)(base.model.output)
tail_output = GlobalPointer(**options)(base.model.output)

AdamEMA = extend_with_exponential_moving_average(Adam, name="AdamEMA")
optimizer = AdamEMA(learning_rate=3e-3, ema_momentum=0.9)
model = keras.models.Model(base.model.inputs, [entity_output, head_output, tail_output])
model.compile(loss=globalpointer_crossentropy, optimizer=optimizer)
model.summary()


def extract_spoes(text, threshold=0):
    tokens = tokenizer.tokenize(text, maxlen=maxlen)
    mapping = tokenizer.rematch(text, tokens)
    token_ids, segment_ids = to_array(*([x] for x in tokenizer.encode(text, maxlen=maxlen)))
    outputs = [o[0] for o in model.predict([token_ids, segment_ids])]
    outputs[0][:, [0, -1]] -= np.inf
    outputs[0][:, :, [0, -1]] -= np.inf
    subjects, objects = set(), set()
    for kind, h, t in zip(*np.where(outputs[0] > threshold)):
        (subjects if kind == 0 else objects).add((h, t))
    spoes = set()
    for sh, st in subjects:
        for oh, ot in objects:
            p1s = np.where(outputs[1][:, sh, oh] > threshold)[0]
            p2s = np.where(outputs[2][:, st, ot] > threshold)[0]
            for p in set(p1s) & set(p2s):
                subject = text[mapping[sh][0] : mapping[st][-1] + 1]
                spoes.add((subject, id2predicate[p], text[mapping[oh][0] : mapping[ot][-1] + 1]))
    return list(spoes)


class Evaluator(keras.callbacks.Callback):
    def __init__(self):
        self.best = 0.0

    def on_epoch_end(self, epoch, logs=None):
        if epoch < 29:
            return
        optimizer.apply_ema_weights()
        self.best = np.mean([extract_spoes(d["text"]) == [tuple(d["triple"])] for d in train_data[:12]])
        model.save_weights("best_model.weights")
        optimizer.reset_old_weights()


if __name__ == "__main__":
    train_generator = data_generator(train_data, batch_size)
    evaluator = Evaluator()
    model.fit(
        train_generator.forfit(), steps_per_epoch=len(train_generator), epochs=30, callbacks=[evaluator], verbose=2
    )
    model.load_weights("best_model.weights")
    print("score:", evaluator.best)
