"""A BiLSTM and a CRF on top of BERT, with higher learning rates for the new layers.

    KERAS_BACKEND=jax python examples/task_bilstm_crf_two_learning_rates.py [checkpoint folder]

The script shows two ways. First, the optimizer's `lr_multipliers` select variables by their paths. Second,
`SetLearningRate(layer, k)` and the `lr_multiplier` of the CRF set the multiplier in the layer, for any optimizer. The
data is synthetic: the characters of a word come from one of two alphabets, and neighboring words use different ones.
"""

import numpy as np
from tiny_checkpoint import checkpoint

from kcrf.backend import keras
from kcrf.layers import ConditionalRandomField, SetLearningRate
from kcrf.metrics import segmentation_scores
from kcrf.models import build_transformer_model
from kcrf.optimizers import Adam, variable_table
from kcrf.snippets import sequence_padding
from kcrf.tags import bmes, tags_to_words
from kcrf.tokenizers import Tokenizer

maxlen, batch_size, epochs = 18, 16, 5
bert_rate, lstm_factor, crf_factor = 1e-4, 100, 100  # with a real BERT 2e-5, 50 and 500
rng, scheme = np.random.default_rng(0), bmes()


def sentence():
    """Four words of one to four characters, alternately from two alphabets."""
    kinds = [("天地人山", "一二三四")[(i + rng.integers(2)) % 2 if i == 0 else i % 2] for i in range(4)]
    return ["".join(rng.choice(list(kind), rng.integers(1, 5))) for kind in kinds]


train, test = [sentence() for _ in range(480)], [sentence() for _ in range(64)]
config_path, checkpoint_path, dict_path = checkpoint(["".join(words) for words in train])
tokenizer = Tokenizer(str(dict_path))


def arrays(sentences):
    """Token ids, segment ids and tags. [CLS] and [SEP] are tagged as words of one character."""
    token_ids, tags = [], []
    for words in sentences:
        ends = np.cumsum([len(word) for word in words]).tolist()
        token_ids.append(tokenizer.encode("".join(words))[0])
        tags.append([0, *scheme.encode(list(zip([0, *ends], ends)), ends[-1]), 0])
    token_ids = sequence_padding(token_ids, maxlen)
    return [token_ids, np.zeros_like(token_ids)], sequence_padding(tags, maxlen)


def build(in_layers):
    """The model and its CRF, with or without multipliers in the layers."""
    keras.utils.set_random_seed(0)
    bert = build_transformer_model(config_path, checkpoint_path)
    lstm = keras.layers.Bidirectional(keras.layers.LSTM(16, return_sequences=True), name="BiLSTM")
    dense = keras.layers.Dense(len(scheme), name="Scores")
    crf = ConditionalRandomField(lr_multiplier=crf_factor if in_layers else 1, constraints=scheme, name="CRF")
    if in_layers:
        lstm, dense = SetLearningRate(lstm, lstm_factor), SetLearningRate(dense, lstm_factor)
    return keras.Model(bert.input, crf(dense(lstm(bert.output)))), crf


inputs, tags = arrays(train)
test_inputs, _ = arrays(test)
factors = {"BiLSTM|Scores": lstm_factor, "CRF": crf_factor}
for in_layers in (False, True):
    model, crf = build(in_layers)
    optimizer = Adam(bert_rate, lr_multipliers=None if in_layers else factors, global_clipnorm=1.0)
    model.compile(optimizer, loss=crf.sparse_loss, metrics=[crf.sparse_accuracy])
    print("factors in the layers" if in_layers else f"factors in the optimizer\n{variable_table(model, optimizer)}")
    model.fit(inputs, tags, batch_size=batch_size, epochs=epochs, verbose=2)
    best = np.array(crf.decode(model.predict(test_inputs, batch_size=batch_size, verbose=0)))
    segmented = [tags_to_words("".join(words), path[1 : 1 + len("".join(words))]) for words, path in zip(test, best)]
    print(f"F1: {segmentation_scores(test, segmented)['f']:.4f}")
