"""kcrf.models: Saved encoders come back, in Keras' format, Hugging Face's and Google's."""

import json

import numpy as np
import pytest
from conftest import few
from tiny_encoders import HEADS, SEGMENTS, SIZES, TOKENS, assert_close, bert, checkpoint, numbers, values

from kcrf.backend import keras
from kcrf.models import (
    build_transformer_model,
    reinitialize,
    save_pretrained,
    save_weights_as_checkpoint,
)
from kcrf.readers.pieces import encoder_reader


@pytest.mark.parametrize("model", few("bert", "albert", "electra", "nezha", rest="slow"))
def test_a_saved_keras_model_is_the_same_model_and_can_still_be_drawn_anew(model, checkpoint, tmp_path):
    path, _ = checkpoint(model)
    built = build_transformer_model(None, path, model, mixout=0.3, output_layers=[0, -1], **SIZES)
    whole = keras.Model(built.inputs, keras.layers.Dense(2)(built.output[-1]))
    for variable in whole.trainable_variables:  # away from the prior
        variable.assign(variable + 0.1)
    whole.save(tmp_path / "m.keras")
    again = keras.saving.load_model(tmp_path / "m.keras")
    assert_close(numbers(again([TOKENS, SEGMENTS]))[0], numbers(whole([TOKENS, SEGMENTS]))[0], 1e-6)
    after = values(again)
    for name, value in values(whole).items():
        if "seed_generator" not in name:
            np.testing.assert_array_equal(after[name], value)
    if model != "albert":
        assert len(reinitialize(again, top_layers=1)) == 16


@pytest.mark.parametrize("model", few("bert", "roberta", "albert", "electra", "nezha"))
def test_saved_pretrained_comes_back_with_every_weight(model, checkpoint, tmp_path):
    family = "bert" if model == "roberta" else model
    path, _ = checkpoint(family, **({} if model in ("bert", "roberta") else {"embedding_size": 12}))
    heads = {HEADS[family]: True, **({} if model == "electra" else {"with_nsp": True})}
    built = build_transformer_model(None, path, model, dropout_rate=0.1, **heads, **SIZES)
    save_pretrained(built, tmp_path / "out", vocab={"b": 1, "a": 0})
    assert (tmp_path / "out" / "vocab.txt").read_text() == "a\nb\n"
    save_pretrained(built, tmp_path / "out", vocab={"b": 2, "a": 0})  # no token has the id 1
    assert (tmp_path / "out" / "vocab.txt").read_text() == "a\n\nb\n"
    again = build_transformer_model(tmp_path / "out", tmp_path / "out", model, **heads)
    computed, expected = numbers(again([TOKENS, SEGMENTS])), numbers(built([TOKENS, SEGMENTS]))
    for one, other in zip(computed, expected, strict=True):
        assert_close(one, other, 1e-6)
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "config.json",
        "model.safetensors",
        "vocab.txt",
    ]


@pytest.mark.once
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("model", ["bert", "albert", "electra"])
def test_hugging_face_loads_what_is_saved(model, checkpoint, tmp_path):
    transformers = pytest.importorskip("transformers", reason="needs Hugging Face's transformers, which is not here")
    import torch

    path, _ = checkpoint(model, hidden_act="gelu_tanh")
    built = build_transformer_model(
        None, path, model, hidden_act="gelu_tanh", **{k: v for k, v in SIZES.items() if k != "hidden_act"}
    )
    save_pretrained(built, tmp_path)
    theirs, told = transformers.AutoModel.from_pretrained(tmp_path, output_loading_info=True)
    assert not told["unexpected_keys"] and all("pooler" in key for key in told["missing_keys"])
    with torch.no_grad():
        expected = theirs.eval()(
            input_ids=torch.tensor(TOKENS),
            token_type_ids=torch.tensor(SEGMENTS),
            attention_mask=torch.tensor(TOKENS > 0),
        ).last_hidden_state
    assert_close(numbers(built([TOKENS, SEGMENTS]))[0], expected.numpy())


@pytest.mark.once
def test_the_vocabulary_beside_the_configuration_is_saved_too(tmp_path, shared_data):
    folder = shared_data / "checkpoints" / "tiny_google_bert"
    model = build_transformer_model(folder / "bert_config.json", folder / "bert_model.ckpt")
    save_pretrained(model, tmp_path)
    assert (tmp_path / "vocab.txt").read_bytes() == (folder / "vocab.txt").read_bytes()


@pytest.mark.once
def test_the_tokenizer_is_saved_with_its_settings(bert, tmp_path):
    source, out = tmp_path / "source", tmp_path / "out"
    source.mkdir()
    config = {"model_type": "bert", "type_vocab_size": 2, "max_position_embeddings": 32, **SIZES}
    settings = {"tokenizer_class": "BertTokenizer", "do_lower_case": True, "strip_accents": False}
    for name, content in {"config.json": config, "tokenizer_config.json": settings}.items():
        (source / name).write_text(json.dumps(content))
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "kim", "café"]
    (source / "vocab.txt").write_text("\n".join(tokens), encoding="utf-8")
    save_pretrained(build_transformer_model(source / "config.json", bert[0]), out)
    for folder in (source, out):
        assert encoder_reader(folder).whole_pieces(["Kim Café"])[0].ids == [5, 6]


@pytest.mark.once
def test_weights_saved_as_a_google_checkpoint_come_back_to_the_bit(bert, tmp_path):
    tensorflow = pytest.importorskip("tensorflow", reason="writing this format needs TensorFlow, which is not here")
    built = build_transformer_model(None, bert[0], return_keras_model=False, with_nsp=True, with_mlm=True, **SIZES)
    built.save_weights_as_checkpoint(tmp_path / "bert_model.ckpt")
    stored = tensorflow.train.load_checkpoint(str(tmp_path / "bert_model.ckpt"))
    assert set(stored.get_variable_to_shape_map()) == set(bert[1])
    for name, array in bert[1].items():
        np.testing.assert_array_equal(stored.get_tensor(name), array)
    save_weights_as_checkpoint(built.model, tmp_path / "again.ckpt")
    again = build_transformer_model(None, tmp_path / "again.ckpt", with_nsp=True, with_mlm=True, **SIZES)
    assert not again.kcrf_load_report.unused


def test_the_dropout_that_mixout_replaces_is_saved(tmp_path):
    rates = {"hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.2}
    config = {"model_type": "bert", "type_vocab_size": 2, "max_position_embeddings": 16, **rates, **SIZES}
    save_pretrained(build_transformer_model(config, mixout=0.5), tmp_path / "bert")
    saved = json.loads((tmp_path / "bert" / "config.json").read_text())
    assert {name: saved[name] for name in rates} == rates
    model = build_transformer_model(config, mixout=0.5, dropout_rate=0.3)
    save_pretrained(model, tmp_path / "other")
    assert json.loads((tmp_path / "other" / "config.json").read_text())["hidden_dropout_prob"] == 0.3


@pytest.mark.slow
def test_a_loaded_model_trains(bert):
    sizes = {**SIZES, "num_hidden_layers": 1}
    model = build_transformer_model(None, bert[0], dropout_rate=0.1, attention_dropout_rate=0.1, mixout=0.1, **sizes)
    tagger = keras.Model(model.inputs, keras.layers.Dense(3, activation="softmax")(model.output))
    tagger.compile(keras.optimizers.Adam(2e-2), "sparse_categorical_crossentropy")
    losses = [tagger.train_on_batch([TOKENS, SEGMENTS], TOKENS % 3) for _ in range(12)]
    assert losses[-1] < 0.7 * losses[0]
