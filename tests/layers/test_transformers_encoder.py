"""kcrf.layers.transformers_encoder: encoders of transformers as a layer, in Keras programs and in runs."""

import json
import re
import shutil

import numpy as np
import pytest
from tokenizers_of_tests import bpe, folder_of, unigram

from kcrf.backend import keras, ops
from kcrf.corpora import Sentence
from kcrf.layers import ConditionalRandomField, TransformersEncoder
from kcrf.optimizers import AdamWeightDecay, layerwise_decay, variable_table
from kcrf.runs import Settings
from kcrf.taggers import EntityRecognizer, TextClassifier
from kcrf.tokenizers import SubwordTokenizer
from kcrf.training import resume_tagger, train_classifier, train_tagger

BACKENDS = ["torch"]
torch = pytest.importorskip("torch", reason="needs torch, which is not here")
transformers = pytest.importorskip("transformers", reason="needs Hugging Face's transformers, which is not here")
pytestmark = pytest.mark.filterwarnings("ignore")

SIZES = {
    "hidden_size": 16,
    "num_hidden_layers": 3,
    "num_attention_heads": 2,
    "intermediate_size": 8,
    "max_position_embeddings": 66,
    "pad_token_id": 1,
}
KINDS = {
    "deberta-v2": {"relative_attention": True, "position_buckets": 4, "pos_att_type": "p2c|c2p", "type_vocab_size": 0}
    | {"norm_rel_ebd": "layer_norm", "share_att_key": True, "position_biased_input": False},
    "modernbert": {"global_attn_every_n_layers": 2, "local_attention": 4},
    "xlm-roberta": {"type_vocab_size": 1},  # which has layers in kcrf, too
    "squeezebert": {  # which calls its pooler in any case
        "embedding_size": 16,
        **{f"{part}_groups": 1 for part in ("q", "k", "v", "post_attention", "intermediate", "output")},
    },
    "xlm": {},  # as FlauBERT, with a list for each part of the layers
    "megatron-bert": {},  # with a normalization above all layers
}


def encoder_of(kind, folder, tokenizer=None):
    """The folder of a small random model, perhaps with a tokenizer, and the model."""
    size = 50
    folder.mkdir(exist_ok=True)
    if tokenizer:
        size = SubwordTokenizer.of_folder(folder_of(tokenizer(), folder)).vocab_size
    torch.manual_seed(0)
    config = transformers.AutoConfig.for_model(kind, vocab_size=size, **SIZES, **KINDS[kind])
    model = transformers.AutoModel.from_config(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn(parameter.shape) * 0.1)
    model.save_pretrained(folder)
    return folder, model


def tokens():
    """Rows without padding, with padding on the right, on the left and in the middle, and of padding alone."""
    ids = np.random.default_rng(0).integers(2, 50, (5, 12)).astype("int32")
    ids[1, 5:] = ids[2, :3] = ids[3, 4:6] = ids[4] = 1
    return ids


@pytest.mark.parametrize("kind", KINDS)
def test_hidden_states_are_those_of_transformers(kind, tmp_path):
    folder, theirs = encoder_of(kind, tmp_path)
    ids = tokens()
    real = ids != 1
    with torch.no_grad():
        expected = theirs(torch.tensor(ids), attention_mask=torch.tensor(real), output_hidden_states=True)
    encoder = TransformersEncoder(folder, output_layers=[0, -1])
    lower, top = map(ops.convert_to_numpy, encoder(ids))
    np.testing.assert_allclose(top[real], expected.last_hidden_state.numpy()[real], rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(lower[real], expected.hidden_states[1].numpy()[real], rtol=1e-5, atol=1e-5)
    assert np.isfinite(top).all()
    shorter = TransformersEncoder(folder, layers=2)(ids)  # a normalization above all layers comes after the last one
    if kind not in ("modernbert", "megatron-bert"):
        np.testing.assert_allclose(
            ops.convert_to_numpy(shorter)[real], expected.hidden_states[2].numpy()[real], rtol=1e-5, atol=1e-5
        )


def test_positions_begin_after_the_padding_of_the_configuration_whatever_is_masked(tmp_path):
    folder, theirs = encoder_of("xlm-roberta", tmp_path)
    ids = np.where(tokens()[:2] == 1, 3, tokens()[:2] + (tokens()[:2] == 3))  # 3 alone is padding
    with torch.no_grad():
        expected = theirs(torch.tensor(ids), attention_mask=torch.tensor(ids != 3)).last_hidden_state.numpy()
    found = ops.convert_to_numpy(TransformersEncoder(folder, pad_token_id=3)(ids))
    np.testing.assert_allclose(found[ids != 3], expected[ids != 3], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_a_keras_model_trains_each_layer_at_its_rate_and_is_loaded_again(kind, tmp_path):
    folder, _ = encoder_of(kind, tmp_path)
    inputs, crf = keras.Input((None,), dtype="int32"), ConditionalRandomField(name="CRF")
    hidden = TransformersEncoder(folder, skip_top_layers=1, name="Encoder")(inputs)
    model = keras.Model(inputs, crf(keras.layers.Dense(3, name="Emissions")(hidden)))
    rates = {**layerwise_decay(model, 0.5), "^(CRF|Emissions)": 2}
    model.compile(AdamWeightDecay(0.01, lr_multipliers=rates, prior_variables=model), loss=crf.sparse_loss)
    rows = variable_table(model)
    for row in rows:
        number = re.search(r"Encoder/Transformer-(\d)-", row["path"])
        depth = int(number[1]) - 3 if number else None
        factor = 0.5**-depth if number else 1 / 16 if "/Embedding-" in row["path"] else 1
        named = r"^(CRF|Emissions)|/Transformer-\d-|/Embedding-.*emb|/Output-.*Norm/"
        assert re.search(named, row["path"]) or kind == "deberta-v2"
        assert row["multiplier"] == (2 if not row["path"].startswith("Encoder/") else factor), row["path"]
        assert row["origin"] == ("re-initialized" if depth == -1 else "loaded" if "Encoder/" in row["path"] else "new")
        is_plain = len(row["shape"]) >= 2  # kernels alone are decayed, whatever the names of normalizations
        assert row["decayed"] is is_plain, row["path"]
    assert {row["path"].split("/")[1][:9] for row in rows if "Encoder/" in row["path"]} >= {"Embedding", "Transform"}
    ids = tokens()[:4]
    history = model.fit(ids, ids % 3, epochs=12, verbose=0).history["loss"]
    assert history[-1] < 0.7 * history[0]
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(*(crf.decode(m.predict(ids, verbose=0)) for m in (model, loaded)))


def test_skipped_layers_are_fresh_and_frozen_ones_stay(tmp_path):
    folder, theirs = encoder_of("deberta-v2", tmp_path)
    encoder = TransformersEncoder(folder, skip_top_layers=2)
    theirs = dict(theirs.named_parameters())
    for name, parameter in encoder.module.named_parameters():
        is_fresh = ".layer.1." in name or ".layer.2." in name
        assert torch.equal(parameter, theirs[name]) is not is_fresh, name
    model = keras.Sequential([keras.Input((None,), dtype="int32"), encoder, keras.layers.Dense(2)])
    for variable in encoder.variables:
        variable.trainable = "Transformer-2-" in variable.path
    before = [ops.convert_to_numpy(v).copy() for v in encoder.variables]
    model.compile("sgd", loss="mse")
    model.fit(tokens(), np.ones((5, 12, 2)), verbose=0)
    for variable, old in zip(encoder.variables, before, strict=True):
        assert np.array_equal(ops.convert_to_numpy(variable), old) is ("Transformer-2-" not in variable.path)


SENTENCES = [
    Sentence("New York is big", [(0, 8, "LOC")]),
    Sentence("the man saw a friend in New York", [(24, 32, "LOC")]),
    Sentence("今天 New York 真好", [(3, 11, "LOC")]),
    Sentence("he is here 😀 Ｈｉ", []),
] * 4
QUICK = {"batch_size": 8, "seed": 1, "task": "ner", "learning_rate": 1e-2}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run with a ModernBERT, whose folder is gone, and its settings."""
    folder = tmp_path_factory.mktemp("encoder")
    settings = Settings(bert=str(encoder_of("modernbert", folder / "encoder", bpe)[0]), epochs=12, **QUICK)
    train_tagger(settings, SENTENCES, SENTENCES, out=folder / "run")
    shutil.copytree(folder / "encoder", folder / "copy")
    shutil.rmtree(folder / "encoder")
    return folder / "run"


def found(tagger, texts):
    return [[(span.start, span.end, span.label) for span in row] for row in tagger.recognize_batch(texts)]


def test_a_run_needs_no_other_folder_and_finds_spans_of_the_text(run, tmp_path):
    texts = ["New York is big 😀", "今天   New York 真好", "😀😀 Ｈｉ New York"]
    tagger = EntityRecognizer(run)
    assert found(tagger, texts)[:2] == [[(0, 8, "LOC")], [(5, 13, "LOC")]]
    assert found(tagger, texts) == [found(tagger, [text])[0] for text in texts]  # padding changes nothing
    again = Settings(bert=str(run), epochs=1, skip_top_layers=1, **QUICK)  # a run is the encoder of another run
    train_tagger(again, SENTENCES, SENTENCES, out=tmp_path / "again")


class Stops(keras.callbacks.Callback):
    """Ends training in the middle of the second epoch."""

    def on_train_batch_end(self, batch, logs=None):
        self.left = getattr(self, "left", 3) - 1
        if self.left == 0:
            raise KeyboardInterrupt("stop")

    def report(self, row):
        """Does nothing."""


def test_a_stopped_run_goes_on_to_the_same_weights(tmp_path):
    folder, _ = encoder_of("deberta-v2", tmp_path / "encoder", unigram)
    settings = Settings(bert=str(folder), epochs=2, layerwise_decay=0.9, prior_decay=0.1, **QUICK)
    train_tagger(settings, SENTENCES, SENTENCES, out=tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        train_tagger(settings, SENTENCES, SENTENCES, out=tmp_path / "run", progress=Stops())
    resume_tagger(tmp_path / "run", SENTENCES, SENTENCES)
    whole, resumed = (EntityRecognizer(tmp_path / name).model.get_weights() for name in ("whole", "run"))
    for one, other in zip(whole, resumed, strict=True):
        np.testing.assert_array_equal(one, other)


def test_bfloat16_trains_and_classifiers_read_all_layers(tmp_path):
    folder, _ = encoder_of("deberta-v2", tmp_path / "encoder", unigram)
    rows = [("New York is big", "a"), ("the man saw", "b")] * 8
    options = {"task": "classify", "bert": str(folder), "epochs": 1, "batch_size": 8}
    settings = Settings(**options, precision="bfloat16", read_layers="all", layer_pooling="weighted", bert_layers=2)
    train_classifier(settings, rows, rows, out=tmp_path / "run")
    classifier = TextClassifier(tmp_path / "run")
    assert classifier.classify("the man saw").label in ("a", "b")
    assert not any("Transformer-2-" in variable.path for variable in classifier.model.variables)
    for name, value in (("mixout", 0.5), ("pool", "pooler")):
        with pytest.raises(ValueError, match=f"`{name}` needs another value for 'deberta-v2'"):
            train_classifier(Settings(**options, **{name: value}), rows, rows, out=tmp_path / "no")
    assert not (tmp_path / "no").exists()


def test_other_models_and_damaged_folders_are_refused(tmp_path):
    folder, model = encoder_of("deberta-v2", tmp_path / "encoder", unigram)
    with pytest.raises(ValueError, match="The encoder has 3 layers. Received: 4 top layers"):
        TransformersEncoder(folder, skip_top_layers=4)
    state = {name: value for name, value in model.state_dict().items() if "layer.1.output.dense" not in name}
    model.save_pretrained(folder, state_dict=state)
    with pytest.raises(ValueError, match="needs all weights of its deberta-v2. Received: none for .*layer.1.output"):
        train_tagger(Settings(bert=str(folder), **QUICK), SENTENCES, SENTENCES, out=tmp_path / "run")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"model_type": "unheard-of"}))
    with pytest.raises(ValueError, match="model_type must be one of .* Received: 'unheard-of'"):
        train_tagger(Settings(bert=str(folder), **QUICK), SENTENCES, SENTENCES, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_models_that_need_more_than_tokens_are_refused_and_those_that_read_padding_are_named(tmp_path, capsys):
    folder = folder_of(unigram(), tmp_path)
    sizes = {**SIZES, "vocab_size": SubwordTokenizer.of_folder(folder).vocab_size}
    for kind, line in (("xmod", "than token ids and a mask. Received: Input language"), ("t5", "has a decoder, too")):
        with pytest.raises(ValueError, match=line):
            TransformersEncoder({**sizes, "model_type": kind})
        transformers.AutoModel.from_config(transformers.AutoConfig.for_model(kind, **sizes)).save_pretrained(folder)
        with pytest.raises(ValueError, match=line):
            train_tagger(Settings(bert=str(folder), **QUICK), SENTENCES, SENTENCES, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()
    for kind, reads_padding in (("fnet", True), ("mpnet", False)):
        transformers.AutoModel.from_config(transformers.AutoConfig.for_model(kind, **sizes)).save_pretrained(folder)
        TransformersEncoder(folder)
        assert ("reads padding, too: a text" in capsys.readouterr().out) is reads_padding


@pytest.mark.slow
def test_an_exported_file_finds_what_the_run_finds_or_export_is_refused(run, tmp_path):
    pytest.importorskip("onnxscript", reason="needs onnxscript, which is not here")
    from kcrf.export import export_model

    export_model(run, tmp_path / "model.onnx")
    texts = ["New York is big 😀", "今天   New York 真好" * 5, "a"]
    assert found(EntityRecognizer(run), texts) == found(EntityRecognizer(tmp_path / "model.onnx"), texts)
    with pytest.raises(ValueError, match="is exported as ONNX. Received: format='saved_model'"):
        export_model(run, tmp_path / "saved", format="saved_model")
