# ruff: noqa
from kcrf.bert4keras.models import build_transformer_model
from kcrf.bert4keras.tokenizers import Tokenizer
from kcrf.bert4keras.snippets import to_array

tokenizer = Tokenizer("bert/vocab.txt", do_lower_case=True)
model = build_transformer_model(config_path="bert/config.json", checkpoint_path="bert/model.safetensors", with_mlm=True)
token_ids, segment_ids = tokenizer.encode("春天的山。")
token_ids[3] = token_ids[4] = tokenizer._token_mask_id
token_ids, segment_ids = to_array([token_ids], [segment_ids])
probas = model.predict([token_ids, segment_ids])[0]
print(tokenizer.decode(probas[3:5].argmax(axis=1)))
print("score:", float(abs(probas.sum(axis=1) - 1).max() < 1e-4))
