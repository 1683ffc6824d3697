"""kcrf.models: RoBERTa, XLM-R, CamemBERT and DistilBERT have the numbers of Hugging Face, whatever token is padding."""

import json

import numpy as np
import pytest
from conftest import few
from tiny_encoders import SIZES, assert_close, numbers

from kcrf.backend import keras, ops
from kcrf.models import build_transformer_model, reinitialize, save_pretrained
from kcrf.tokenizers import SubwordTokenizer

transformers = pytest.importorskip("transformers", reason="needs Hugging Face's transformers, which is not here")
torch = pytest.importorskip("torch", reason="needs torch, which is not here")
pytestmark = pytest.mark.filterwarnings("ignore")

BERT_SIZES = {
    "vocab_size": 29,
    "hidden_size": 12,
    "num_hidden_layers": 2,
    "num_attention_heads": 3,
    "intermediate_size": 10,
    "max_position_embeddings": 14,
}
ONE_SEGMENT = {**BERT_SIZES, "type_vocab_size": 1}
DISTIL = {"vocab_size": 29, "dim": 12, "n_layers": 2, "n_heads": 3, "hidden_dim": 10, "max_position_embeddings": 14}
CASES = {  # kind of configuration, class, settings
    "roberta": ("RobertaConfig", "RobertaForMaskedLM", {**ONE_SEGMENT, "pad_token_id": 1}),
    "distilbert": ("DistilBertConfig", "DistilBertForMaskedLM", {**DISTIL, "pad_token_id": 0}),
    "xlm-roberta": ("XLMRobertaConfig", "XLMRobertaModel", {**ONE_SEGMENT, "pad_token_id": 3, "layer_norm_eps": 1e-3}),
    "camembert": ("CamembertConfig", "CamembertForMaskedLM", {**ONE_SEGMENT, "hidden_act": "gelu_new"}),
    "two segments": ("RobertaConfig", "RobertaModel", {**BERT_SIZES, "type_vocab_size": 2, "pad_token_id": 0}),
    "activation": ("DistilBertConfig", "DistilBertModel", {**DISTIL, "pad_token_id": 5, "activation": "relu"}),
    "bert": ("BertConfig", "BertForMaskedLM", {**BERT_SIZES, "pad_token_id": 7, "hidden_act": "gelu_python"}),
}


def saved(name, folder):
    """A small model of theirs with large random weights, saved into a folder."""
    kind, cls, sizes = CASES[name]
    model = getattr(transformers, cls)(getattr(transformers, kind)(**sizes)).eval()
    generator = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=generator) * 0.3)
    model.save_pretrained(folder)
    return model


def padded_tokens(pad):
    """Rows without padding, with padding on the right, on the left, and in the middle."""
    tokens = np.random.default_rng(1).choice([i for i in range(29) if i != pad], (4, 7))
    tokens[1, 4:] = tokens[2, :3] = tokens[3, 2:4] = pad
    return tokens


@pytest.mark.parametrize("name", few(*CASES, everywhere=3))
def test_hidden_states_and_heads_are_those_of_hugging_face(name, tmp_path, capsys):
    theirs = saved(name, tmp_path)
    tokens, pad = padded_tokens(theirs.config.pad_token_id), theirs.config.pad_token_id
    with torch.no_grad():
        inputs = {"input_ids": torch.tensor(tokens), "attention_mask": torch.tensor(tokens != pad)}
        expected = theirs(**inputs, output_hidden_states=True)
    has_head = CASES[name][1].endswith("MaskedLM")
    heads = {"with_mlm": "linear"} if has_head else {}
    ours = build_transformer_model(tmp_path, output_layers=[0, 1], **heads)
    feeds = [tokens, np.zeros_like(tokens)][: len(ours.inputs)]
    assert len(feeds) == (2 if name in ("two segments", "bert") else 1)
    computed = numbers(ours(feeds if len(feeds) > 1 else feeds[0]))
    real = tokens != pad
    for one, other in zip(computed, expected.hidden_states[1:], strict=False):
        assert_close(one[real], other.numpy()[real])
    if has_head:
        assert_close(computed[-1][real], expected.logits.numpy()[real])
    assert "model_type" not in capsys.readouterr().out
    build_transformer_model(tmp_path, model="bert")
    line = f"model_type is {theirs.config.model_type!r}, so that is built. Received: model='bert'"
    assert (line in capsys.readouterr().out) is (name != "bert")


@pytest.mark.once
@pytest.mark.parametrize("name", ["xlm-roberta", "distilbert"])
def test_their_saved_folder_is_read_by_hugging_face(name, tmp_path):
    saved(name, tmp_path / "theirs")
    ours = build_transformer_model(tmp_path / "theirs", skip_top_layers=1)
    save_pretrained(ours, tmp_path / "ours")
    again = transformers.AutoModel.from_pretrained(tmp_path / "ours").eval()
    tokens = padded_tokens(again.config.pad_token_id)
    with torch.no_grad():
        mask = torch.tensor(tokens != again.config.pad_token_id)
        expected = again(input_ids=torch.tensor(tokens), attention_mask=mask).last_hidden_state.numpy()
    assert_close(numbers(ours(tokens))[0][mask.numpy()], expected[mask.numpy()])


@pytest.mark.once
def test_layers_have_berts_names_and_can_be_skipped_and_made_anew(tmp_path):
    saved("roberta", tmp_path)
    model = build_transformer_model(tmp_path, skip_top_layers=1, mixout=0.5)
    paths = model.kcrf_load_report.reinitialized
    assert paths and all(path.startswith("Transformer-1-") for path in paths)
    assert {path.split("/")[0] for path in reinitialize(model, top_layers=2)} >= {"Transformer-0-FeedForward-Norm"}


@pytest.mark.once
def test_the_padding_of_the_tokenizer_decides_and_a_line_says_so(tmp_path, capsys):
    """The configuration of multilingual-e5-small says 0, its tokenizer 1."""
    saved("bert", tmp_path)
    config = json.loads((tmp_path / "config.json").read_text()) | {"pad_token_id": 0}
    (tmp_path / "config.json").write_text(json.dumps(config))
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"pad_token": {"content": "<pad>"}}))
    added = [{"id": 1, "content": "<pad>"}]
    (tmp_path / "tokenizer.json").write_text(json.dumps({"added_tokens": added, "model": {"vocab": [["<s>", 0.0]]}}))
    model = build_transformer_model(tmp_path)
    assert "the padding token is '<pad>', 1, as its tokenizer says. Received: 0" in capsys.readouterr().out
    mask = model.get_layer("Embedding-Token").compute_mask(ops.convert_to_tensor([[0, 5, 1], [1, 1, 1]]))
    np.testing.assert_array_equal(ops.convert_to_numpy(mask), [[True, True, False], [True, False, False]])
    assert build_transformer_model(tmp_path, pad_token_id=0).get_layer("Embedding-Token").padding_id == 0


NAMED = {"pad_token": "<pad>", "cls_token": "<s>", "sep_token": "</s>"}
FILES = {  # of a folder beside tokenizer.json, which does not say that <pad> is padding
    "none": {},
    "settings without a token": {"tokenizer_config": {"model_max_length": 512}},
    "settings without a token and a map": {"tokenizer_config": {"pad_token": None}, "special_tokens_map": NAMED},
    "other names": {"special_tokens_map": {**NAMED, "pad_token": "<unk>"}},
}


@pytest.mark.once
@pytest.mark.parametrize("name", FILES)
def test_an_encoder_has_the_padding_of_its_tokenizer_whatever_file_is_absent(name, tmp_path):
    saved("bert", tmp_path)
    tokens = [[token, 0.0] for token in ("<s>", "<pad>", "</s>", "<unk>", "a")]
    made = {"model": {"type": "Unigram", "vocab": tokens, "unk_id": 3}, "added_tokens": []}
    (tmp_path / "tokenizer.json").write_text(json.dumps(made))
    for file, entries in FILES[name].items():
        (tmp_path / f"{file}.json").write_text(json.dumps(entries))
    config = json.loads((tmp_path / "config.json").read_text()) | {"pad_token_id": 0}
    (tmp_path / "config.json").write_text(json.dumps(config))
    expected = SubwordTokenizer.of_folder(tmp_path).ids["pad"]
    assert expected == (3 if name == "other names" else 1)
    assert build_transformer_model(tmp_path).get_layer("Embedding-Token").padding_id == expected


@pytest.mark.once
@pytest.mark.parametrize("padding", [0, 1, 3])
def test_positions_follow_the_padding_of_the_configuration_and_the_mask_that_of_the_tokenizer(padding, tmp_path):
    """As in `transformers`, which numbers positions by the configuration whatever the attention mask is."""
    theirs = saved("roberta", tmp_path / "theirs")
    theirs.config.pad_token_id = theirs.roberta.embeddings.padding_idx = padding
    theirs.config.save_pretrained(tmp_path / "theirs")
    (tmp_path / "theirs" / "tokenizer_config.json").write_text(json.dumps({"pad_token": "<pad>"}))
    (tmp_path / "theirs" / "vocab.json").write_text(json.dumps({"<pad>": 1}))
    tokens = padded_tokens(1)
    tokens[tokens == (padding if padding != 1 else -1)] = 5  # which `transformers` gives no position
    tokens[2:] = tokens[:2]  # without padding on the left
    with torch.no_grad():
        inputs = {"input_ids": torch.tensor(tokens), "attention_mask": torch.tensor(tokens != 1)}
        expected = theirs.roberta(**inputs).last_hidden_state.numpy()[tokens != 1]
    ours = build_transformer_model(tmp_path / "theirs")
    assert ours.get_layer("Embedding-Token").padding_id == 1
    assert_close(numbers(ours(tokens))[0][tokens != 1], expected)
    save_pretrained(ours, tmp_path / "ours")
    again = build_transformer_model(tmp_path / "ours")
    assert_close(numbers(again(tokens))[0][tokens != 1], expected)


@pytest.mark.once
def test_a_saved_model_keeps_its_padding(tmp_path):
    model = build_transformer_model(model="xlm-roberta", **SIZES | {"max_position": 12}, pad_token_id=2)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    tokens, segments = np.array([[4, 5, 6, 2, 2]]), np.zeros((1, 5), int)
    assert_close(*numbers([model([tokens, segments]), loaded([tokens, segments])]))
    short = model([tokens[:, :3], segments[:, :3]])
    assert_close(numbers(model([tokens, segments]))[0][:, :3], numbers(short)[0])


@pytest.mark.once
def test_a_roberta_without_a_file_is_bert_as_in_bert4keras():
    model = build_transformer_model(model="roberta", **SIZES)
    assert model.get_layer("Embedding-Token").padding_id == 0 and len(model.inputs) == 2
    longest = build_transformer_model(model="xlm-roberta", **SIZES, pad_token_id=1)
    with pytest.raises(ValueError, match="has 7 positions; .* Received: length=8"):
        longest(np.ones((1, 8), int) if len(longest.inputs) == 1 else [np.ones((1, 8), int)] * 2)


@pytest.mark.once
def test_a_distilbert_is_pretrained_without_segments(tmp_path):
    from kcrf.pretraining import PretrainingSettings, pretrain

    saved("distilbert", tmp_path / "theirs")
    (tmp_path / "theirs" / "vocab.txt").write_text(
        "\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefghij"])
    )
    (tmp_path / "text.txt").write_text("a b c d e f g h i j\n" * 40)
    settings = PretrainingSettings(bert=str(tmp_path / "theirs"), steps=2, every=1, batch_size=2, length=8, warmup=0)
    pretrain(settings, [tmp_path / "text.txt"], out=tmp_path / "ours")
    assert build_transformer_model(tmp_path / "ours").get_layer("Embedding-Token").padding_id == 0
