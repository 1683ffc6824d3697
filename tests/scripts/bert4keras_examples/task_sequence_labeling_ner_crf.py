# ruff: noqa
import numpy as np
from kcrf.bert4keras.backend import keras, K
from kcrf.bert4keras.models import build_transformer_model
from kcrf.bert4keras.tokenizers import Tokenizer
from kcrf.bert4keras.optimizers import Adam
from kcrf.bert4keras.snippets import sequence_padding, DataGenerator
from kcrf.bert4keras.snippets import open, ViterbiDecoder, to_array
from kcrf.bert4keras.layers import ConditionalRandomField
from keras.layers import Dense
from keras.models import Model

maxlen, batch_size, bert_layers, crf_lr_multiplier = 16, 12, 2, 100
categories = set()


def load_data(filename):
    D = []
    with open(filename, encoding="utf-8") as file:
        for part in file.read().split("\n\n"):
            if not part:
                continue
            d = [""]
            for i, line in enumerate(part.split("\n")):
                char, flag = line.split(" ")
                d[0] += char
                if flag[0] == "B":
                    d.append([i, i, flag[2:]])
                    categories.add(flag[2:])
                elif flag[0] == "I":
                    d[-1][1] = i
            D.append(d)
    return D


train_data = load_data("entities.txt")
categories = list(sorted(categories))
tokenizer = Tokenizer("bert/vocab.txt", do_lower_case=True)


class data_generator(DataGenerator):
    def __iter__(self, random=False):
        batch_token_ids, batch_segment_ids, batch_labels = [], [], []
        for is_end, d in self.sample(random):
            tokens = tokenizer.tokenize(d[0], maxlen=maxlen)
            mapping = tokenizer.rematch(d[0], tokens)
            start_mapping = {j[0]: i for i, j in enumerate(mapping) if j}
            end_mapping = {j[-1]: i for i, j in enumerate(mapping) if j}
            token_ids = tokenizer.tokens_to_ids(tokens)
            labels = np.zeros(len(token_ids))
            for start, end, label in d[1:]:
                start, end = start_mapping[start], end_mapping[end]
                labels[start] = categories.index(label) * 2 + 1
                labels[start + 1 : end + 1] = categories.index(label) * 2 + 2
            batch_token_ids.append(token_ids)
            batch_segment_ids.append([0] * len(token_ids))
            batch_labels.append(labels)
            if len(batch_token_ids) == self.batch_size or is_end:
                inputs = [sequence_padding(batch_token_ids), sequence_padding(batch_segment_ids)]
                yield inputs, sequence_padding(batch_labels)
                batch_token_ids, batch_segment_ids, batch_labels = [], [], []


model = build_transformer_model("bert/config.json", "bert/model.safetensors")
output = model.get_layer("Transformer-%s-FeedForward-Norm" % (bert_layers - 1)).output
output = Dense(len(categories) * 2 + 1)(output)
CRF = ConditionalRandomField(lr_multiplier=crf_lr_multiplier)
output = CRF(output)
model = Model(model.input, output)
model.summary()
model.compile(loss=CRF.sparse_loss, optimizer=Adam(3e-3), metrics=[CRF.sparse_accuracy])


class NamedEntityRecognizer(ViterbiDecoder):
    def recognize(self, text):
        tokens = tokenizer.tokenize(text, maxlen=512)
        mapping = tokenizer.rematch(text, tokens)
        token_ids = tokenizer.tokens_to_ids(tokens)
        token_ids, segment_ids = to_array([token_ids], [[0] * len(token_ids)])
        labels = self.decode(model.predict([token_ids, segment_ids])[0])
        entities, starting = [], False
        for i, label in enumerate(labels):
            if label > 0 and label % 2 == 1:
                starting = True
                entities.append([[i], categories[(label - 1) // 2]])
            elif label > 0 and starting:
                entities[-1][0].append(i)
            else:
                starting = False
        return [(mapping[w[0]][0], mapping[w[-1]][-1], name) for w, name in entities]


NER = NamedEntityRecognizer(trans=K.eval(CRF.trans), starts=[0], ends=[0])


class Evaluator(keras.callbacks.Callback):
    def __init__(self):
        self.best_val_f1 = 0

    def on_epoch_end(self, epoch, logs=None):
        NER.trans = K.eval(CRF.trans)
        right = [set(NER.recognize(d[0])) == {tuple(i) for i in d[1:]} for d in train_data[:6]]
        if np.mean(right) >= self.best_val_f1:
            self.best_val_f1 = np.mean(right)
            model.save_weights("./best_model.weights")


if __name__ == "__main__":
    evaluator = Evaluator()
    train_generator = data_generator(train_data, batch_size)
    model.fit(train_generator.forfit(), steps_per_epoch=len(train_generator), epochs=10, callbacks=[evaluator])
    model.load_weights("./best_model.weights")
    NER.trans = K.eval(CRF.trans)
    print("score:", evaluator.best_val_f1)
