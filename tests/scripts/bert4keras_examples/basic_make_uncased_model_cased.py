# ruff: noqa
from kcrf.bert4keras.models import build_transformer_model
from kcrf.bert4keras.tokenizers import Tokenizer, load_vocab
from kcrf.bert4keras.snippets import to_array
import numpy as np

token_dict = load_vocab("bert/vocab.txt")
new_token_dict = token_dict.copy()
compound_tokens = []
for token, number in sorted(token_dict.items(), key=lambda item: item[1]):
    for cased in {token.upper(), token.capitalize()} if token.isascii() and token.isalpha() else ():
        if cased not in new_token_dict:
            compound_tokens.append([number])
            new_token_dict[cased] = len(new_token_dict)

tokenizer = Tokenizer(new_token_dict, do_lower_case=False)
model = build_transformer_model("bert/config.json", "bert/model.safetensors", compound_tokens=compound_tokens)

print(tokenizer.tokenize("A b"))
cased, uncased = (model.predict(to_array(*([x] for x in tokenizer.encode(text)))) for text in ("A b", "a b"))
print("score:", float(np.allclose(cased, uncased, atol=1e-5) and len(compound_tokens) > 20))
