# ruff: noqa
from kcrf.bert4keras.backend import keras
from kcrf.bert4keras.models import build_transformer_model
from kcrf.bert4keras.tokenizers import Tokenizer
from kcrf.bert4keras.snippets import to_array
import numpy as np

tokenizer = Tokenizer("bert/vocab.txt", do_lower_case=True)
model = build_transformer_model("bert/config.json", "bert/model.safetensors")

token_ids, segment_ids = tokenizer.encode("春天的山")
token_ids, segment_ids = to_array([token_ids], [segment_ids])
features = model.predict([token_ids, segment_ids])

model.save("test.model")
del model
model = keras.models.load_model("test.model")
print("score:", float(np.allclose(model.predict([token_ids, segment_ids]), features, atol=1e-5)))
