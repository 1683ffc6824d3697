"""Predicts masked characters with BERT.

    KERAS_BACKEND=jax python examples/basic_masked_language_model.py [checkpoint folder]

A real checkpoint predicts the correct characters. Without a folder, a tiny checkpoint is trained on four sentences.
"""

import sys

import numpy as np
from tiny_checkpoint import checkpoint

from kcrf.backend import keras
from kcrf.models import build_transformer_model, save_pretrained
from kcrf.optimizers import Adam
from kcrf.snippets import sequence_padding, to_array
from kcrf.tokenizers import Tokenizer

text = "春天到了，山上的花都开了"
others = ["夏天到了，河里的水很凉", "秋天到了，树上的叶子黄了", "冬天到了，外面下大雪了"]


def train_on_sentences(config_path, checkpoint_path, dict_path):
    """Trains on the sentences with a fifth of the tokens masked, and overwrites the weights of the checkpoint."""
    keras.utils.set_random_seed(0)
    tokenizer = Tokenizer(str(dict_path))
    token_ids = np.repeat(sequence_padding([tokenizer.encode(x)[0] for x in [text, *others]]), 200, axis=0)
    hidden = (np.random.random(token_ids.shape) < 0.2) & (token_ids > tokenizer._token_mask_id)
    inputs = np.where(hidden, tokenizer._token_mask_id, token_ids)
    model = build_transformer_model(config_path, checkpoint_path, with_mlm=True)
    model.compile(Adam(3e-3), "sparse_categorical_crossentropy", weighted_metrics=[])
    model.fit([inputs, np.zeros_like(inputs)], token_ids, sample_weight=hidden, batch_size=32, epochs=6, verbose=2)
    save_pretrained(model, config_path.parent)


config_path, checkpoint_path, dict_path = checkpoint([text, *others])
if len(sys.argv) < 2:
    train_on_sentences(config_path, checkpoint_path, dict_path)
tokenizer = Tokenizer(str(dict_path), do_lower_case=True)
model = build_transformer_model(config_path, checkpoint_path, with_mlm=True)

token_ids, segment_ids = tokenizer.encode(text)
token_ids[8] = token_ids[9] = tokenizer._token_mask_id
print("masked:  ", "".join(tokenizer.ids_to_tokens(token_ids[1:-1])))
token_ids, segment_ids = to_array([token_ids], [segment_ids])
probabilities = model.predict([token_ids, segment_ids], verbose=0)[0]
print("answered:", tokenizer.decode(probabilities[[8, 9]].argmax(axis=1)))
