"""Tests of kcrf.pretraining.train, kcrf.pretraining.folder: encoders with Unigram and byte-level BPE."""

import json
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from tiny_encoders import numbers
from tokenizers_of_tests import TEXTS, bpe, folder_of, unigram

from kcrf.backend import keras
from kcrf.models import build_transformer_model
from kcrf.pretraining import PretrainingSettings, pretrain, resume_pretraining
from kcrf.pretraining.windows import Windows, write_tokens
from kcrf.readers.pieces import encoder_reader

torch = pytest.importorskip("torch", reason="needs torch, which is not here")
transformers = pytest.importorskip("transformers", reason="needs transformers, which is not here")
SETTINGS = PretrainingSettings(length=16, steps=6, every=3, batch_size=4, mask="words", learning_rate=1e-3)
KINDS = {"xlm-roberta": ("XLMRoberta", unigram), "roberta": ("Roberta", bpe)}


def folder_for(name, folder):
    """A random small encoder with a tokenizer of its kind, whose padding token is not 0."""
    kind, make = KINDS[name]
    made = make()
    sizes = {"hidden_size": 12, "num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 10}
    config = getattr(transformers, f"{kind}Config")(
        vocab_size=made.get_vocab_size(), max_position_embeddings=20, type_vocab_size=1, pad_token_id=1, **sizes
    )
    torch.manual_seed(0)
    getattr(transformers, f"{kind}ForMaskedLM")(config).save_pretrained(folder)
    return folder_of(made, folder)


@pytest.fixture
def text(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text("\n".join(TEXTS * 40), encoding="utf-8")
    return path


@pytest.mark.parametrize("name", KINDS)
def test_tokens_and_words_are_those_of_the_tokenizer(name, tmp_path):
    folder = folder_for(name, tmp_path)
    theirs = transformers.PreTrainedTokenizerFast(tokenizer_file=str(folder / "tokenizer.json"))
    reader = encoder_reader(folder)
    count = write_tokens(tmp_path / "tokens.bin", TEXTS, reader)
    expected = [number for text in TEXTS for number in theirs(text)["input_ids"][1:]]  # without <s>
    windows = Windows(tmp_path / "tokens.bin", count + 1, reader.ids["start"], reader.ids["pad"])
    ids, starts = windows[0]
    assert ids.tolist() == [theirs.convert_tokens_to_ids("<s>"), *expected] and count == len(expected)
    words = sum(len(reader.tokenizer.units_of(text)) for text in TEXTS)
    assert starts.sum() <= 1 + words + len(TEXTS)  # a piece may belong to two words
    space = "▁" if name == "xlm-roberta" else "Ġ"
    with_space = [token.startswith(space) and token != space for token in theirs.convert_ids_to_tokens(ids.tolist())]
    assert starts[with_space].all()


@pytest.mark.parametrize("name", KINDS)
def test_an_encoder_is_trained_further_resumed_and_read_by_hugging_face(name, text, tmp_path):
    folder, whole, stopped = folder_for(name, tmp_path / "bert"), tmp_path / "whole", tmp_path / "stopped"
    settings = replace(SETTINGS, bert=str(folder))
    pretrain(settings, [text], whole)

    class Stop(keras.callbacks.Callback):
        def report(self, record):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        pretrain(settings, [text], stopped, progress=Stop())
    resume_pretraining(stopped)
    assert (stopped / "model.safetensors").read_bytes() == (whole / "model.safetensors").read_bytes()
    before, after = encoder_reader(folder), encoder_reader(whole)
    assert after.ids == before.ids and after.read(TEXTS)[0].windows[0].inputs.keys() == {"Input-Token", "tagged"}
    texts = [*TEXTS, " 今天 New\u3000York🙂"]
    assert [x.ids for x in after.whole_pieces(texts)] == [x.ids for x in before.whole_pieces(texts)]

    theirs = transformers.AutoModelForMaskedLM.from_pretrained(whole).eval()
    tokens = np.array([[0, 30, 31, 32, 2], [0, 40, 2, 1, 1]])
    real = tokens != 1
    with torch.no_grad():
        expected = theirs(torch.tensor(tokens), torch.tensor(real)).logits.numpy()
    found = numbers(build_transformer_model(whole, with_mlm="linear")([tokens]))[-1]
    assert_allclose(found[real], expected[real], atol=2e-5)
    assert json.loads((whole / "tokenizer_config.json").read_text())["pad_token"] == "<pad>"
    assert transformers.AutoTokenizer.from_pretrained(whole)(TEXTS[0])["input_ids"] == (
        [0, *after.whole_pieces(TEXTS[:1])[0].ids, 2]
    )
