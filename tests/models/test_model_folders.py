"""Tests of kcrf.models.

Encoders from a folder that Hugging Face's library wrote, and checkpoints with arrays that must not be ignored.
"""

import json
import re

import numpy as np
import pytest

from kcrf.backend import keras
from kcrf.checkpoints import open_checkpoint, write_safetensors
from kcrf.models import build_transformer_model, save_pretrained

pytestmark = pytest.mark.once  # layers and loading run on every backend in the other files

SIZES = {
    "vocab_size": 23,
    "hidden_size": 12,
    "num_hidden_layers": 2,
    "num_attention_heads": 3,
    "intermediate_size": 20,
    "max_position_embeddings": 9,
}
TOKENS = np.array([[5, 3, 22, 7, 1, 8], [9, 2, 4, 0, 0, 0]])
SEGMENTS = np.array([[0, 0, 1, 1, 1, 0], [0, 1, 1, 0, 0, 0]])


def saved(folder, name="Bert", **config):
    """A small model of Hugging Face with large random weights, saved into a folder, and its last hidden state."""
    transformers = pytest.importorskip("transformers", reason="needs Hugging Face's transformers, which is not here")
    torch = pytest.importorskip("torch", reason="needs torch, which is not here")
    model = getattr(transformers, f"{name}Model")(getattr(transformers, f"{name}Config")(**SIZES, **config)).eval()
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=generator) * 0.3)
        state = model(
            input_ids=torch.tensor(TOKENS),
            token_type_ids=torch.tensor(SEGMENTS),
            attention_mask=torch.tensor(TOKENS > 0),
        ).last_hidden_state
    model.save_pretrained(folder)
    return state.numpy()


def state_of(model):
    return keras.ops.convert_to_numpy(model([TOKENS, SEGMENTS]))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("arguments", ["configuration", "checkpoint", "both"])
def test_a_folder_of_hugging_face_loads_its_weights(arguments, tmp_path, capsys):
    expected = saved(tmp_path)
    paths = {"configuration": (tmp_path,), "checkpoint": (None, str(tmp_path)), "both": (str(tmp_path), tmp_path)}
    model = build_transformer_model(*paths[arguments])
    np.testing.assert_allclose(state_of(model), expected, rtol=1e-5, atol=1e-5)
    assert "random" not in capsys.readouterr().out
    with_skipped = build_transformer_model(*paths[arguments], skip_top_layers=1)
    assert all(path.startswith("Transformer-1-") for path in with_skipped.kcrf_load_report.reinitialized)


def test_a_configuration_without_weights_says_that_they_are_random(tmp_path, capsys):
    path = tmp_path / "config.json"
    path.write_text(json.dumps({**SIZES, "model_type": "bert"}))
    for source in (path, tmp_path):
        build_transformer_model(source)
        assert capsys.readouterr().out == f"{source}: a configuration without weights, so all weights are random\n"
    build_transformer_model(**SIZES)
    assert capsys.readouterr().out == ""


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("model", ["bert", "ernie"])
def test_ernie_has_the_hidden_states_of_hugging_face_and_goes_back_there(model, tmp_path):
    expected = saved(tmp_path / "theirs", "Ernie", use_task_id=True, task_type_vocab_size=4)
    built = build_transformer_model(tmp_path / "theirs", model=model)
    np.testing.assert_allclose(state_of(built), expected, rtol=1e-5, atol=1e-5)
    built.save(tmp_path / "m.keras")
    np.testing.assert_allclose(state_of(keras.saving.load_model(tmp_path / "m.keras")), expected, rtol=1e-5, atol=1e-5)
    save_pretrained(built, tmp_path / "ours")
    import torch
    import transformers

    again, told = transformers.AutoModel.from_pretrained(tmp_path / "ours", output_loading_info=True)
    assert type(again).__name__ == "ErnieModel" and not told["unexpected_keys"]
    assert all("pooler" in key for key in told["missing_keys"])
    theirs = transformers.AutoModel.from_pretrained(tmp_path / "theirs")
    table = "embeddings.task_type_embeddings.weight"
    assert torch.equal(again.state_dict()[table], theirs.state_dict()[table])


@pytest.mark.filterwarnings("ignore")
def test_ernie_1_is_bert_under_another_name(tmp_path):
    expected = saved(tmp_path, "Ernie")
    np.testing.assert_allclose(state_of(build_transformer_model(tmp_path)), expected, rtol=1e-5, atol=1e-5)


@pytest.fixture
def folder(tmp_path):
    build = build_transformer_model(**SIZES)
    save_pretrained(build, tmp_path)
    return tmp_path


def with_array(folder, name, shape=(3, 12)):
    stored = open_checkpoint(folder)
    arrays = {known: stored[known] for known in stored}
    write_safetensors(folder / "model.safetensors", {**arrays, name: np.ones(shape, "float32")})


@pytest.mark.parametrize(
    "name",
    [
        "bert.embeddings.task_type_embeddings.weight",
        "embeddings.pinyin_embeddings.weight",
        "bert.encoder.layer.1.attention.self.distance_embedding.weight",
        "encoder.relative_attention_bias.weight",
        "bert.encoder.layer.0.adapter.down.weight",
        "base_model.model.bert.encoder.layer.0.attention.self.query.lora_A.default.weight",
    ],
)
def test_an_unused_array_that_changes_hidden_states_is_an_error(folder, name, capsys):
    with_array(folder, name)
    with pytest.raises(ValueError, match=r": .* changes hidden states, and .* has no place for it"):
        build_transformer_model(folder)
    report = build_transformer_model(folder, ignore_invalid_weights=True).kcrf_load_report
    assert len(report.needed) == 1 and report.needed[0] in capsys.readouterr().out


@pytest.mark.parametrize("name", ["classifier.weight", "cls.seq_relationship.weight", "bert.pooler.dense.weight"])
def test_heads_and_poolers_need_no_place(folder, name):
    with_array(folder, name)
    assert not build_transformer_model(folder).kcrf_load_report.needed


def test_layers_above_those_that_are_asked_for_are_left_out(folder):
    report = build_transformer_model(folder, num_hidden_layers=1).kcrf_load_report
    assert not report.needed and len(report.unused) == 16


@pytest.mark.parametrize(
    "entries, model, text",
    [
        ({"model_type": "deberta-v2"}, "bert", "others are not supported; .* Received: 'deberta-v2'"),
        ({"model_type": "xlm-roberta-xl"}, "roberta", "others are not supported; .* Received: 'xlm-roberta-xl'"),
        ({"pad_token_id": "1"}, "bert", "pad_token_id must be an int. Received: '1'"),
        ({"model_type": "bert", "is_decoder": True}, "bert", "is_decoder must be False. Received: True"),
    ],
)
def test_models_that_are_not_supported_are_named_at_once(entries, model, text, tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps({**SIZES, **entries}))
    with pytest.raises(ValueError, match=f"{re.escape(str(path))}: .*{text}"):
        build_transformer_model(path, model=model)
    with pytest.raises(ValueError, match="kcrf has only encoders of the BERT family; .* Received: model='gpt2'"):
        build_transformer_model(path, model="gpt2")
