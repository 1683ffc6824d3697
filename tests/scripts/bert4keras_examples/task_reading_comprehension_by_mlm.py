# ruff: noqa
import json
import re
import numpy as np
from kcrf.bert4keras.backend import keras, K
from kcrf.bert4keras.models import build_transformer_model
from kcrf.bert4keras.tokenizers import Tokenizer, load_vocab
from kcrf.bert4keras.optimizers import Adam
from kcrf.bert4keras.snippets import sequence_padding, DataGenerator
from kcrf.bert4keras.snippets import open
from keras.layers import Lambda
from keras.models import Model

max_p_len, max_q_len, max_a_len, batch_size = 12, 8, 2, 8
train_data = json.load(open("questions.json"))

token_dict, keep_tokens = load_vocab(
    dict_path="bert/vocab.txt", simplified=True, startswith=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
)
tokenizer = Tokenizer(token_dict, do_lower_case=True)


def encoded(question, passage):
    q_token_ids, _ = tokenizer.encode(question, maxlen=max_q_len + 1)
    p_token_ids, _ = tokenizer.encode(re.sub("[、；，]", ",", passage), maxlen=max_p_len + 1)
    answer = [tokenizer._token_start_id] + [tokenizer._token_mask_id] * max_a_len + [tokenizer._token_end_id]
    return answer + q_token_ids[1:] + p_token_ids[1:]


class data_generator(DataGenerator):
    def __iter__(self, random=False):
        batch_token_ids, batch_segment_ids, batch_a_token_ids = [], [], []
        for is_end, row in self.sample(random):
            passage = np.random.choice(row["passages"])
            a_token_ids, _ = tokenizer.encode(passage["answer"], maxlen=max_a_len + 1)
            batch_token_ids.append(encoded(row["question"], passage["passage"]))
            batch_segment_ids.append([0] * len(batch_token_ids[-1]))
            batch_a_token_ids.append(a_token_ids[1:])
            if len(batch_token_ids) == self.batch_size or is_end:
                inputs = [sequence_padding(batch_token_ids), sequence_padding(batch_segment_ids)]
                yield inputs, sequence_padding(batch_a_token_ids, max_a_len)
                batch_token_ids, batch_segment_ids, batch_a_token_ids = [], [], []


model = build_transformer_model("bert/config.json", "bert/model.safetensors", with_mlm=True, keep_tokens=keep_tokens)
output = Lambda(lambda x: x[:, 1 : max_a_len + 1])(model.output)
model = Model(model.input, output)


def masked_cross_entropy(y_true, y_pred):
    y_true = K.reshape(y_true, [K.shape(y_true)[0], -1])
    y_mask = K.cast(K.not_equal(y_true, 0), K.floatx())
    cross_entropy = K.sparse_categorical_crossentropy(y_true, y_pred)
    return K.sum(cross_entropy * y_mask) / K.sum(y_mask)


model.compile(loss=masked_cross_entropy, optimizer=Adam(3e-3))


class Evaluator(keras.callbacks.Callback):
    def __init__(self):
        self.lowest = 1e10

    def on_epoch_end(self, epoch, logs=None):
        if logs["loss"] <= self.lowest:
            self.lowest = logs["loss"]
            model.save_weights("./best_model.weights")


if __name__ == "__main__":
    train_generator = data_generator(train_data, batch_size)
    evaluator = Evaluator()
    model.fit(
        train_generator.forfit(), steps_per_epoch=len(train_generator), epochs=40, callbacks=[evaluator], verbose=2
    )
    model.load_weights("./best_model.weights")
    right = 0
    for row in train_data:
        token_ids = encoded(row["question"], row["passages"][0]["passage"])
        token_ids, segment_ids = sequence_padding([token_ids]), sequence_padding([[0] * len(token_ids)])
        answer = model.predict([token_ids, segment_ids])[0].argmax(axis=1)
        right += tokenizer.decode(answer[:1]) == row["passages"][0]["answer"][:1]
    print("score:", right / len(train_data))
