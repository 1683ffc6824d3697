"""kcrf.models: Names, inputs, outputs and arguments of encoders."""

import json
import re

import numpy as np
import pytest
from tiny_encoders import SEGMENTS, SIZES, TOKENS, assert_close, bert, checkpoint, numbers

from kcrf.backend import keras
from kcrf.models import build_transformer_model, reinitialize, save_pretrained
from kcrf.optimizers import AdamWeightDecay, variable_table


@pytest.mark.once
def test_layers_have_the_names_of_bert4keras():
    model = build_transformer_model(with_nsp=True, with_mlm=True, dropout_rate=0.1, **SIZES)
    block = ["MultiHeadSelfAttention", "MultiHeadSelfAttention-Dropout", "MultiHeadSelfAttention-Add"]
    block += [
        "MultiHeadSelfAttention-Norm",
        "FeedForward",
        "FeedForward-Dropout",
        "FeedForward-Add",
        "FeedForward-Norm",
    ]
    expected = ["Input-Token", "Input-Segment", "Embedding-Token", "Embedding-Segment", "Embedding-Token-Segment"]
    expected += ["Embedding-Position", "Embedding-Norm", "Embedding-Dropout"]
    expected += [f"Transformer-{index}-{name}" for index in range(3) for name in block]
    expected += ["Pooler", "Pooler-Dense", "NSP-Proba", "MLM-Dense", "MLM-Norm", "MLM-Bias", "MLM-Activation"]
    assert sorted(layer.name for layer in model.layers) == sorted(expected)


@pytest.mark.once
def test_a_layer_found_by_name_gives_its_hidden_state(bert):
    model = build_transformer_model(None, bert[0], **SIZES)
    cut = keras.Model(model.inputs, model.get_layer("Transformer-1-FeedForward-Norm").output)
    whole = build_transformer_model(None, bert[0], output_layers=[1], **SIZES)
    assert_close(numbers(cut([TOKENS, SEGMENTS]))[0], numbers(whole([TOKENS, SEGMENTS]))[0])


@pytest.mark.once
def test_a_prefix_goes_before_every_name_and_two_encoders_live_in_one_model(bert):
    one = build_transformer_model(None, bert[0], prefix="A-", **SIZES)
    other = build_transformer_model(None, bert[0], prefix="B-", **SIZES)
    assert all(layer.name.startswith("A-") for layer in one.layers)
    both = keras.Model([*one.inputs, *other.inputs], [one.output, other.output])
    before = numbers(both([TOKENS, SEGMENTS] * 2))
    reinitialize(both, top_layers=1, prefix="B-")
    after = numbers(both([TOKENS, SEGMENTS] * 2))
    np.testing.assert_array_equal(after[0], before[0])
    assert np.abs(after[1] - before[1]).max() > 0.1


@pytest.mark.once
def test_of_two_encoders_with_the_same_names_none_is_taken_for_the_other(bert, tmp_path):
    query = build_transformer_model(None, bert[0], name="query", **SIZES)
    document = build_transformer_model(name="document", **SIZES)
    inputs = [keras.Input((None,), dtype="int32") for _ in range(2)]
    both = keras.Model(inputs, [query(inputs), document(inputs)])
    with pytest.raises(ValueError, match=r"Needs one encoder .*`model.get_layer\(name\)`.* Received: 2 with prefix=''"):
        save_pretrained(both, tmp_path / "bert")
    with pytest.raises(ValueError, match="Needs one encoder"):
        reinitialize(both, top_layers=1)
    with pytest.raises(ValueError, match="build each with a prefix. Received: 2 variables with the path Embedding-Tok"):
        AdamWeightDecay(prior_weight_decay_rate=0.1, prior_variables=both)
    save_pretrained(both.get_layer("query"), tmp_path / "bert")
    again = build_transformer_model(tmp_path / "bert", name="document")
    loaded = keras.Model(inputs, [query(inputs), again(inputs)])
    table = variable_table(loaded, AdamWeightDecay(prior_weight_decay_rate=0.1, prior_variables=loaded))
    assert {row["origin"] for row in table} == {"loaded"} and all(row["prior"] for row in table)


@pytest.mark.once
def test_layers_given_are_shared():
    first = build_transformer_model(return_keras_model=False, **SIZES)
    second = build_transformer_model(return_keras_model=False, layers=first.layers, with_mlm=True, **SIZES)
    assert second.model.get_layer("Transformer-0-FeedForward") is first.layers["Transformer-0-FeedForward"]


@pytest.mark.once
def test_padding_changes_nothing_for_the_rest_and_its_mask_reaches_the_output(bert):
    model = build_transformer_model(None, bert[0], **SIZES)
    alone = numbers(model([TOKENS[1:2, :3], SEGMENTS[1:2, :3]]))[0]
    padded = model([TOKENS, SEGMENTS])
    assert_close(numbers(padded)[0][1:2, :3], alone)
    tagged = keras.layers.Dense(4)(model.output)
    assert tagged._keras_mask is not None
    np.testing.assert_array_equal(numbers(padded._keras_mask)[0], (TOKENS > 0))


@pytest.mark.once
def test_a_sequence_length_is_fixed_when_asked_for():
    assert build_transformer_model(sequence_length=6, **SIZES).input_shape == [(None, 6), (None, 6)]


@pytest.mark.once
def test_without_segments_there_is_one_input():
    model = build_transformer_model(segment_vocab_size=0, **SIZES)
    assert [tensor.name for tensor in model.inputs] == ["Input-Token"]


@pytest.mark.once
def test_output_layers_come_before_heads_and_pool_together(bert):
    model = build_transformer_model(None, bert[0], output_layers=[-1, 0, "embeddings"], with_pool=True, **SIZES)
    last, first, embedded, pooled = numbers(model([TOKENS, SEGMENTS]))
    assert pooled.shape == (3, 12)
    cut = build_transformer_model(None, bert[0], **{**SIZES, "num_hidden_layers": 1})
    assert_close(first, numbers(cut([TOKENS, SEGMENTS]))[0])
    assert np.abs(last - first).max() > 0.1 and np.abs(first - embedded).max() > 0.1


@pytest.mark.once
def test_google_and_hugging_face_configurations_are_read(tmp_path):
    google = {**SIZES, "max_position_embeddings": 9, "type_vocab_size": 4, "hidden_dropout_prob": 0.25}
    del google["max_position"]
    (tmp_path / "bert_config.json").write_text(json.dumps({**google, "directionality": "bidi", "pooler_fc_size": 768}))
    built = build_transformer_model(tmp_path, return_keras_model=False, attention_dropout_rate=0.5)
    assert built.config["segment_vocab_size"] == 4 and built.config["max_position"] == 9
    assert built.config["dropout_rate"] == 0.25 and built.config["attention_dropout_rate"] == 0.5
    assert built.config["hidden_act"] == "gelu" and built.config["layer_norm_eps"] == 1e-12
    norm = built.model.get_layer("Transformer-0-FeedForward-Norm")
    assert norm.epsilon == 1e-12
    (tmp_path / "config.json").write_text(json.dumps({**google, "model_type": "bert", "layer_norm_eps": 1e-6}))
    assert build_transformer_model(tmp_path, return_keras_model=False).config["layer_norm_eps"] == 1e-6


@pytest.mark.once
@pytest.mark.parametrize(
    "options, text",
    [
        ({"drpout_rate": 0.1}, r"has for model='bert' \['with_pool'.*Received: drpout_rate"),
        (
            {"model": "gpt2"},
            r"one of \['albert', 'bert', 'distilbert'.*Received: model='gpt2'",
        ),
        ({"application": "unilm"}, "`application` must be 'encoder'.*Received: application='unilm'"),
        ({"model": "electra", "with_pool": True}, "Received: with_pool"),
        ({"with_discriminator": True}, "Received: with_discriminator"),
        ({"hidden_act": "gelu_10"}, r"`hidden_act` must be one of .*Received: 'gelu_10'"),
        ({"num_attention_heads": 5}, "multiple of `num_attention_heads`. Received: 12 and 5"),
        ({"vocab_size": None}, "A transformer needs vocab_size. Received: neither in None nor as arguments"),
        ({"output_layers": [0, 3]}, "the indices of 3 layers. Received: 3 among them"),
        ({"skip_top_layers": 1}, "need a checkpoint. Received: checkpoint_path=None"),
        ({"mixout": 1.0}, "0 <= mixout < 1. Received: mixout=1.0"),
    ],
)
def test_what_cannot_be_built_is_refused_by_name(options, text):
    with pytest.raises(ValueError, match=text):
        build_transformer_model(**{**SIZES, **options})


@pytest.mark.once
@pytest.mark.parametrize(
    "entries, text",
    [
        (
            {"position_embedding_type": "relative_key"},
            "position_embedding_type must be 'absolute'. Received: 'relative_key'",
        ),
    ],
)
def test_a_configuration_of_something_else_is_refused(entries, text, tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps({**SIZES, **entries}))
    with pytest.raises(ValueError, match=re.escape(f"{path}: {text}")):
        build_transformer_model(path)


@pytest.mark.once
def test_a_configuration_that_is_no_json_is_named(tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(SIZES)[:-1])
    with pytest.raises(ValueError, match=re.escape(f"{path}: needs a JSON object. Received: Expecting")):
        build_transformer_model(path)


@pytest.mark.once
def test_positions_beyond_the_table_are_refused_unless_hierarchical():
    model = build_transformer_model(**{**SIZES, "max_position": 4})
    with pytest.raises(ValueError, match="has 4 positions; hierarchical_position=True makes more of them"):
        model([TOKENS, SEGMENTS])


@pytest.mark.once
@pytest.mark.parametrize("layers", [-1, 0, "embeddings"])
def test_hidden_states_are_asked_for_by_a_list(layers):
    with pytest.raises(ValueError, match=f"`output_layers` must be a list, .* Received: output_layers={layers!r}"):
        build_transformer_model(output_layers=layers, **SIZES)
