# ruff: noqa
from kcrf.bert4keras.backend import keras, set_gelu, K
from kcrf.bert4keras.tokenizers import Tokenizer
from kcrf.bert4keras.models import build_transformer_model
from kcrf.bert4keras.optimizers import Adam
from kcrf.bert4keras.snippets import sequence_padding, DataGenerator
from kcrf.bert4keras.snippets import open
from keras.layers import Dropout, Dense

set_gelu("tanh")
maxlen, batch_size = 16, 12
tokenizer = Tokenizer("bert/vocab.txt", do_lower_case=True)


def load_data(filename):
    with open(filename, encoding="utf-8") as file:
        rows = [line.strip().split("\t") for line in file]
    return [(text1, text2, int(label)) for text1, text2, label in rows]


class data_generator(DataGenerator):
    def __iter__(self, random=False):
        batch_token_ids, batch_segment_ids, batch_labels = [], [], []
        for is_end, (text1, text2, label) in self.sample(random):
            token_ids, segment_ids = tokenizer.encode(text1, text2, maxlen=maxlen)
            batch_token_ids.append(token_ids)
            batch_segment_ids.append(segment_ids)
            batch_labels.append([label])
            if len(batch_token_ids) == self.batch_size or is_end:
                inputs = [sequence_padding(batch_token_ids), sequence_padding(batch_segment_ids)]
                yield inputs, sequence_padding(batch_labels)
                batch_token_ids, batch_segment_ids, batch_labels = [], [], []


bert = build_transformer_model(
    config_path="bert/config.json",
    checkpoint_path="bert/model.safetensors",
    with_pool=True,
    return_keras_model=False,
)
output = Dropout(rate=0.1)(bert.model.output)
output = Dense(units=2, activation="softmax", kernel_initializer=bert.initializer)(output)
model = keras.models.Model(bert.model.input, output)
model.summary()
model.compile(loss="sparse_categorical_crossentropy", optimizer=Adam(2e-3), metrics=["accuracy"])

train_generator = data_generator(load_data("pairs.data"), batch_size)
valid_generator = data_generator(load_data("pairs.data"), batch_size)


def evaluate(data):
    total, right = 0.0, 0.0
    for x_true, y_true in data:
        y_pred = model.predict(x_true).argmax(axis=1)
        y_true = y_true[:, 0]
        total += len(y_true)
        right += (y_true == y_pred).sum()
    return right / total


class Evaluator(keras.callbacks.Callback):
    def __init__(self):
        self.best_val_acc = 0.0

    def on_epoch_end(self, epoch, logs=None):
        val_acc = evaluate(valid_generator)
        if val_acc > self.best_val_acc:
            self.best_val_acc = val_acc
            model.save_weights("best_model.weights")


if __name__ == "__main__":
    evaluator = Evaluator()
    model.fit(train_generator.forfit(), steps_per_epoch=len(train_generator), epochs=10, callbacks=[evaluator])
    model.load_weights("best_model.weights")
    print("score:", evaluate(valid_generator))
