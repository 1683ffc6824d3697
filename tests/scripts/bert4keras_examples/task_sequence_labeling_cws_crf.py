# ruff: noqa
import re
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

maxlen, num_labels, batch_size, bert_layers = 16, 4, 12, 2
with open("words.txt", encoding="utf-8") as file:
    train_data = [re.split(" +", line.strip()) for line in file]
tokenizer = Tokenizer("bert/vocab.txt", do_lower_case=True)


class data_generator(DataGenerator):
    def __iter__(self, random=False):
        batch_token_ids, batch_segment_ids, batch_labels = [], [], []
        for is_end, item in self.sample(random):
            token_ids, labels = [tokenizer._token_start_id], [0]
            for w in item:
                w_token_ids = tokenizer.encode(w)[0][1:-1]
                token_ids += w_token_ids
                labels += [0] if len(w_token_ids) == 1 else [1] + [2] * (len(w_token_ids) - 2) + [3]
            batch_token_ids.append(token_ids + [tokenizer._token_end_id])
            batch_segment_ids.append([0] * len(batch_token_ids[-1]))
            batch_labels.append(labels + [0])
            if len(batch_token_ids) == self.batch_size or is_end:
                inputs = [sequence_padding(batch_token_ids), sequence_padding(batch_segment_ids)]
                yield inputs, sequence_padding(batch_labels)
                batch_token_ids, batch_segment_ids, batch_labels = [], [], []


model = build_transformer_model("bert/config.json", "bert/model.safetensors")
output_layer = "Transformer-%s-FeedForward-Norm" % (bert_layers - 1)
output = model.get_layer(output_layer).output
output = Dense(num_labels)(output)
CRF = ConditionalRandomField(lr_multiplier=1)
output = CRF(output)
model = Model(model.input, output)
model.summary()
model.compile(loss=CRF.sparse_loss, optimizer=Adam(3e-3), metrics=[CRF.sparse_accuracy])


class WordSegmenter(ViterbiDecoder):
    def tokenize(self, text):
        tokens = tokenizer.tokenize(text)
        mapping = tokenizer.rematch(text, tokens)
        token_ids = tokenizer.tokens_to_ids(tokens)
        token_ids, segment_ids = to_array([token_ids], [[0] * len(token_ids)])
        labels = self.decode(model.predict([token_ids, segment_ids])[0])
        words = []
        for i, label in enumerate(labels[1:-1]):
            if label < 2 or len(words) == 0:
                words.append([i + 1])
            else:
                words[-1].append(i + 1)
        return [text[mapping[w[0]][0] : mapping[w[-1]][-1] + 1] for w in words]


segmenter = WordSegmenter(trans=K.eval(CRF.trans), starts=[0], ends=[0])


class Evaluator(keras.callbacks.Callback):
    def __init__(self):
        self.best_val_acc = 0

    def on_epoch_end(self, epoch, logs=None):
        segmenter.trans = K.eval(CRF.trans)
        acc = np.mean([segmenter.tokenize("".join(words)) == words for words in train_data[:6]])
        if acc >= self.best_val_acc:
            self.best_val_acc = acc
            model.save_weights("./best_model.weights")


if __name__ == "__main__":
    evaluator = Evaluator()
    train_generator = data_generator(train_data, batch_size)
    model.fit(train_generator.forfit(), steps_per_epoch=len(train_generator), epochs=10, callbacks=[evaluator])
    model.load_weights("./best_model.weights")
    segmenter.trans = K.eval(CRF.trans)
    print("score:", evaluator.best_val_acc)
