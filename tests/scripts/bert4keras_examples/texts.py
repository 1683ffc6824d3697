"""What several scripts share: classified texts, their batches, and a callback that keeps the best weights."""

import json

from kcrf.bert4keras.backend import keras
from kcrf.bert4keras.snippets import DataGenerator, open, sequence_padding
from kcrf.bert4keras.tokenizers import Tokenizer

num_classes, maxlen, batch_size = 3, 16, 12
config_path, checkpoint_path, dict_path = "bert/config.json", "bert/model.safetensors", "bert/vocab.txt"
tokenizer = Tokenizer(dict_path, do_lower_case=True)


def load_data(filename):
    with open(filename, encoding="utf-8") as file:
        return [(row["sentence"], int(row["label"])) for row in map(json.loads, file)]


class data_generator(DataGenerator):
    def __iter__(self, random=False):
        batch_token_ids, batch_segment_ids, batch_labels = [], [], []
        for is_end, (text, label) in self.sample(random):
            token_ids, segment_ids = tokenizer.encode(text, maxlen=maxlen)
            batch_token_ids.append(token_ids)
            batch_segment_ids.append(segment_ids)
            batch_labels.append([label])
            if len(batch_token_ids) == self.batch_size or is_end:
                token_ids, segment_ids = sequence_padding(batch_token_ids), sequence_padding(batch_segment_ids)
                yield [token_ids, segment_ids], sequence_padding(batch_labels)
                batch_token_ids, batch_segment_ids, batch_labels = [], [], []


train_data, valid_data = load_data("classes.train.json"), load_data("classes.valid.json")
train_generator = data_generator(train_data, batch_size)
valid_generator = data_generator(valid_data, batch_size)


def evaluate(data, model):
    total, right = 0.0, 0.0
    for x_true, y_true in data:
        y_pred = model.predict(x_true).argmax(axis=1)
        y_true = y_true[:, 0]
        total += len(y_true)
        right += (y_true == y_pred).sum()
    return right / total


class Evaluator(keras.callbacks.Callback):
    def __init__(self, savename="best_model.weights"):
        self.best_val_acc = 0.0
        self.savename = savename

    def on_epoch_end(self, epoch, logs=None):
        val_acc = evaluate(valid_generator, self.model)
        if val_acc > self.best_val_acc:
            self.best_val_acc = val_acc
            self.model.save_weights(self.savename)
        print(f"val_acc: {val_acc:.5f}, best_val_acc: {self.best_val_acc:.5f}")


def predict_to_file(in_file, out_file, model):
    with open(in_file) as rows, open(out_file, "w") as file:
        for row in map(json.loads, rows):
            token_ids, segment_ids = tokenizer.encode(row["sentence"], maxlen=maxlen)
            label = model.predict([[token_ids], [segment_ids]])[0].argmax()
            file.write(json.dumps({"id": str(row["id"]), "label": str(label)}) + "\n")
