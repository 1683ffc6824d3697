# ruff: noqa
import numpy as np
from kcrf.bert4keras.models import build_transformer_model
from kcrf.bert4keras.tokenizers import Tokenizer
from kcrf.bert4keras.snippets import to_array

tokenizer = Tokenizer("bert/vocab.txt", do_lower_case=True)
model = build_transformer_model(config_path="bert/config.json", checkpoint_path="bert/model.safetensors", with_mlm=True)

steps, sentences = 6, []
token_ids, segment_ids = tokenizer.encode("春天的山。")
length = len(token_ids) - 2
for _ in range(steps):
    i = np.random.choice(length) + 1
    token_ids[i] = tokenizer._token_mask_id
    probas = model.predict(to_array([token_ids], [segment_ids]))[0, i]
    token_ids[i] = np.random.choice(tokenizer._vocab_size, p=probas)
    sentences.append(tokenizer.decode(token_ids))
print(np.random.choice(sentences[3:]))
print("score:", len(sentences) / steps)
