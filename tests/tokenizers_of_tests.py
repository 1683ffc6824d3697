"""Small tokenizers that are trained for tests."""

import json

import pytest

from kcrf.corpora import load_mini

tokenizers = pytest.importorskip("tokenizers", reason="needs tokenizers, which is not here")
SPECIAL = {"bos_token": "<s>", "pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>", "mask_token": "<mask>"}
TEXTS = ["New York is big", "the man saw a friend", "今天天气真好", "He isn't here , is he ?", "Москва стоит на реке"]


def unigram(scheme="always"):
    made = tokenizers.Tokenizer(tokenizers.models.Unigram())
    made.normalizer = tokenizers.normalizers.Sequence(
        [tokenizers.normalizers.NFKC(), tokenizers.normalizers.Replace(tokenizers.Regex(" {2,}"), " ")]
    )
    made.pre_tokenizer = tokenizers.pre_tokenizers.Metaspace(prepend_scheme=scheme)
    trainer = tokenizers.trainers.UnigramTrainer(
        vocab_size=3000,
        special_tokens=["<s>", "<pad>", "</s>", "<unk>", "<mask>"],
        unk_token="<unk>",
        show_progress=False,
    )
    made.train_from_iterator(TEXTS * 20 + ["".join(words) for words in load_mini().train[:200]], trainer)
    return with_template(made, "<s> $A </s> </s> $B </s>")


def bpe(add_prefix_space=False):
    made = tokenizers.Tokenizer(tokenizers.models.BPE())
    made.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=add_prefix_space)
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=500,
        special_tokens=["<s>", "<pad>", "</s>", "<unk>", "<mask>"],
        initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    made.train_from_iterator(TEXTS * 20, trainer)
    made.decoder = tokenizers.decoders.ByteLevel()
    return with_template(made, "<s> $A </s> </s> $B </s>")


def with_template(made, pair):
    ends = [(name, made.token_to_id(name)) for name in ("<s>", "</s>")]
    made.post_processor = tokenizers.processors.TemplateProcessing("<s> $A </s>", pair, ends)
    return made


def folder_of(made, folder):
    made.save(str(folder / "tokenizer.json"))
    (folder / "special_tokens_map.json").write_text(json.dumps(SPECIAL))
    return folder
