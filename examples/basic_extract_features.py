"""Extracts the hidden states of a text from BERT, before and after saving and loading the model.

    KERAS_BACKEND=jax python examples/basic_extract_features.py [checkpoint folder]

Without a folder, the script writes a tiny checkpoint with random weights, whose hidden states have no meaning.
"""

import numpy as np
from tiny_checkpoint import checkpoint

from kcrf.backend import keras
from kcrf.models import build_transformer_model
from kcrf.snippets import to_array
from kcrf.tokenizers import Tokenizer

text = "今天天气很好"
config_path, checkpoint_path, dict_path = checkpoint([text])
tokenizer = Tokenizer(str(dict_path), do_lower_case=True)
model = build_transformer_model(config_path, checkpoint_path)

token_ids, segment_ids = tokenizer.encode(text)
token_ids, segment_ids = to_array([token_ids], [segment_ids])
vectors = model.predict([token_ids, segment_ids], verbose=0)
print(f"one vector per token, [CLS] and [SEP] included: {vectors.shape}")
print(vectors[0, :, :4].round(4))

model.save("test.keras")
loaded = keras.models.load_model("test.keras")
again = loaded.predict([token_ids, segment_ids], verbose=0)
print(f"after saving and loading the largest difference is {np.abs(again - vectors).max():.1e}")
