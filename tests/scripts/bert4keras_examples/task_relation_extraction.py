# ruff: noqa
import json
import numpy as np
from kcrf.bert4keras.backend import keras, K, batch_gather
from kcrf.bert4keras.layers import Loss
from kcrf.bert4keras.layers import LayerNormalization
from kcrf.bert4keras.tokenizers import Tokenizer
from kcrf.bert4keras.models import build_transformer_model
from kcrf.bert4keras.optimizers import Adam, extend_with_exponential_moving_average
from kcrf.bert4keras.snippets import sequence_padding, DataGenerator
from kcrf.bert4keras.snippets import open, to_array
from keras.layers import Input, Dense, Lambda, Reshape
from keras.models import Model

maxlen, batch_size = 16, 12
with open("relations.json", encoding="utf-8") as file:
    train_data = [json.loads(row) for row in file]
predicate2id = {"是": 0, "在": 1}
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
            subject_labels = np.zeros((len(token_ids), 2))
            object_labels = np.zeros((len(token_ids), len(predicate2id), 2))
            s, p, o = d["triple"]
            s, o = tokenizer.encode(s)[0][1:-1], tokenizer.encode(o)[0][1:-1]
            start, first = search(s, token_ids), search(o, token_ids)
            subject_ids = (start, start + len(s) - 1)
            subject_labels[subject_ids, [0, 1]] = 1
            object_labels[first, predicate2id[p], 0] = 1
            object_labels[first + len(o) - 1, predicate2id[p], 1] = 1
            rows.append((token_ids, segment_ids, subject_labels, subject_ids, object_labels))
            if len(rows) == self.batch_size or is_end:
                tokens, segments, subjects, ids, objects = zip(*rows)
                yield (
                    [
                        *(sequence_padding(part) for part in (tokens, segments, subjects)),
                        np.array(ids),
                        sequence_padding(objects),
                    ],
                    None,
                )
                rows = []


def extract_subject(inputs):
    output, subject_ids = inputs
    start = batch_gather(output, subject_ids[:, :1])
    end = batch_gather(output, subject_ids[:, 1:])
    subject = K.concatenate([start, end], 2)
    return subject[:, 0]


subject_labels = Input(shape=(None, 2), name="Subject-Labels")
subject_ids = Input(shape=(2,), name="Subject-Ids")
object_labels = Input(shape=(None, len(predicate2id), 2), name="Object-Labels")

bert = build_transformer_model("bert/config.json", "bert/model.safetensors", return_keras_model=False)
output = Dense(units=2, activation="sigmoid", kernel_initializer=bert.initializer)(bert.model.output)
subject_preds = Lambda(lambda x: x**2)(output)
subject_model = Model(bert.model.inputs, subject_preds)

output = bert.model.layers[-2].get_output_at(-1)
subject = Lambda(extract_subject)([output, subject_ids])
output = LayerNormalization(conditional=True)([output, subject])
output = Dense(units=len(predicate2id) * 2, activation="sigmoid", kernel_initializer=bert.initializer)(output)
output = Lambda(lambda x: x**4)(output)
object_preds = Reshape((-1, len(predicate2id), 2))(output)
object_model = Model(bert.model.inputs + [subject_ids], object_preds)


class TotalLoss(Loss):
    def compute_loss(self, inputs, mask=None):
        subject_labels, object_labels = inputs[:2]
        subject_preds, object_preds, _ = inputs[2:]
        mask = 1.0 if mask[4] is None else K.cast(mask[4], K.floatx())
        subject_loss = K.mean(K.binary_crossentropy(subject_labels, subject_preds), 2)
        subject_loss = K.sum(subject_loss * mask) / K.sum(mask)
        object_loss = K.sum(K.mean(K.binary_crossentropy(object_labels, object_preds), 3), 2)
        object_loss = K.sum(object_loss * mask) / K.sum(mask)
        return subject_loss + object_loss


subject_preds, object_preds = TotalLoss([2, 3])(
    [subject_labels, object_labels, subject_preds, object_preds, bert.model.output]
)
train_model = Model(bert.model.inputs + [subject_labels, subject_ids, object_labels], [subject_preds, object_preds])
AdamEMA = extend_with_exponential_moving_average(Adam, name="AdamEMA")
optimizer = AdamEMA(learning_rate=3e-3, ema_momentum=0.9)
train_model.compile(optimizer=optimizer)


def found_in(text):
    token_ids, segment_ids = to_array(*([x] for x in tokenizer.encode(text, maxlen=maxlen)))
    mapping = tokenizer.rematch(text, tokenizer.tokenize(text, maxlen=maxlen))
    subject = subject_model.predict([token_ids, segment_ids])[0, 1:-1].argmax(axis=0) + 1
    scores = object_model.predict([token_ids, segment_ids, np.array([subject])])[0, 1:-1]
    start, p = np.unravel_index(scores[..., 0].argmax(), scores.shape[:2])
    end = scores[:, p, 1].argmax()
    span = lambda a, b: text[mapping[a][0] : mapping[b][-1] + 1]
    return [span(*subject), list(predicate2id)[p], span(start + 1, end + 1)]


class Evaluator(keras.callbacks.Callback):
    def __init__(self):
        self.best = 0.0

    def on_epoch_end(self, epoch, logs=None):
        if epoch < 19:
            return
        optimizer.apply_ema_weights()
        self.best = np.mean([found_in(d["text"]) == d["triple"] for d in train_data[:12]])
        train_model.save_weights("best_model.weights")
        optimizer.reset_old_weights()


if __name__ == "__main__":
    train_generator = data_generator(train_data, batch_size)
    evaluator = Evaluator()
    train_model.fit(
        train_generator.forfit(), steps_per_epoch=len(train_generator), epochs=20, callbacks=[evaluator], verbose=2
    )
    train_model.load_weights("best_model.weights")
    print("score:", evaluator.best)
