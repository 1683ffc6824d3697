"""Tests of kcrf.bert4keras.

kcrf.snippets, `K` and the backend's helpers against the real bert4keras and the real Keras 2, on random inputs.
"""

import numpy as np
import pytest
from bert4keras_host import bert4keras_python  # noqa: F401 (a fixture)
from conftest import TOLERANCE
from numpy.testing import assert_allclose, assert_array_equal

from kcrf import snippets
from kcrf.backend import K, batch_gather, keras, multilabel_categorical_crossentropy, ops, search_layer
from kcrf.snippets import DataGenerator, ViterbiDecoder, sequence_padding, text_segmentate

random = np.random.default_rng(0)
PADDINGS = [{}, {"length": 5}, {"length": 9, "value": -1}, {"mode": "pre"}, {"mode": "pre", "length": 2}]
PADDINGS += [{"length": [4]}]
ASKED = {
    "sequences": [random.integers(1, 9, size).tolist() for size in (3, 1, 7, 4)],
    "vectors": [random.normal(size=(size, 2)).tolist() for size in (3, 1, 7, 4)],
    "tables": [random.normal(size=size).tolist() for size in ((2, 3, 2), (4, 1, 2), (1, 5, 2))],
    "paddings": PADDINGS,
    "text": "今天天气很好。我们去公园，带上水果；傍晚回家！\n明天呢？再说，吧。" * 4,
    "cuts": [(10, "。，"), (6, "\n。；，"), (1000, "。"), (1, ""), (12, "，。\n")],
    "keywords": ["bias", "Norm$", "a.c"],
    "strings": ["Transformer-Norm", "Norms", "ABC abc", "Ça va, Ölaf Ⅷ", ""],
    "truncations": [(5, -1, 4, 6), (5, [-2, 0], 4, 6), (3, 1, 0, 8), (20, -1, 4, 6)],
    "trans": random.normal(size=(40, 4, 4)).astype("float32"),
    "nodes": random.normal(size=(40, 9, 4)).astype("float32"),
    "bounds": [
        [random.choice(4, 2, replace=False).tolist() if random.integers(2) else None for _ in ("starts", "ends")]
        for _ in range(40)
    ],
}
GENERATORS = """
class Batches(DataGenerator):
    def __iter__(self, random=False):
        rows = []
        for is_end, row in self.sample(random):
            rows.append(row)
            if len(rows) == self.batch_size or is_end:
                yield [rows, is_end]
                rows = []

class Stream:
    def __iter__(self):
        return iter(range(23))

def batches():
    np.random.seed(3)
    forfit = Batches(list(range(7)), 3).forfit()
    return {
        "random": list(Batches(list(range(23)), 5).__iter__(random=True)),
        "stream": list(Batches(Stream(), 5, buffer_size=7).__iter__(random=True)),
        "in order": list(Batches(list(range(23)), 5)),
        "forfit": [next(forfit) for _ in range(7)],
        "steps": [len(Batches(list(range(n)), 5)) for n in (1, 5, 6)],
    }
"""
THEIRS = (
    """
from bert4keras import snippets as s
from bert4keras.snippets import DataGenerator, ViterbiDecoder
tables = [np.array(x) for x in inputs["tables"]]
for n, arguments in enumerate(inputs["paddings"]):
    for name in ("sequences", "vectors"):
        outputs[name + str(n)] = s.sequence_padding([np.array(x) for x in inputs[name]], **arguments)
outputs["tables"] = s.sequence_padding(tables, seq_dims=2)
outputs["short_tables"] = s.sequence_padding(tables, length=[3, 2], seq_dims=2, value=-1)
cuts = [(n, seps, strips) for n, seps in inputs["cuts"] for strips in ("。", None)]
outputs["cuts"] = [s.text_segmentate(inputs["text"], *arguments) for arguments in cuts]
outputs["matching"] = [s.string_matching(x, inputs["keywords"]) for x in inputs["strings"]]
outputs["lower"] = [s.lowercase_and_normalize(x) for x in inputs["strings"]]
outputs["truncated"] = [
    s.truncate_sequences(m, i, list(range(a)), list(range(b))) for m, i, a, b in inputs["truncations"]
]
outputs["softmax"] = s.softmax(inputs["nodes"][0], axis=0)
outputs["paths"] = np.array([
    ViterbiDecoder(trans, *bounds).decode(nodes.copy())
    for trans, nodes, bounds in zip(inputs["trans"], inputs["nodes"], inputs["bounds"])
])
"""
    + GENERATORS
    + 'outputs["batches"] = batches()'
)


@pytest.fixture(scope="module")
def theirs(bert4keras_python):  # noqa: F811
    return bert4keras_python(THEIRS, **ASKED)


@pytest.mark.once
def test_padding_equals_bert4keras(theirs):
    both = [(name, n) for name in ("sequences", "vectors") for n in range(len(PADDINGS))]
    found = {f"{name}{n}": sequence_padding(ASKED[name], **PADDINGS[n]) for name, n in both}
    found["tables"] = sequence_padding(ASKED["tables"], seq_dims=2)
    found["short_tables"] = sequence_padding(ASKED["tables"], length=[3, 2], seq_dims=2, value=-1)
    for name, padded in found.items():
        assert_array_equal(padded, theirs[name])
        assert padded.dtype == theirs[name].dtype


@pytest.mark.once
def test_viterbi_equals_bert4keras_and_leaves_its_input_alone(theirs):
    nodes = ASKED["nodes"].copy()
    asked = zip(ASKED["trans"], nodes, ASKED["bounds"], strict=True)
    assert_array_equal([ViterbiDecoder(trans, *bounds).decode(x) for trans, x, bounds in asked], theirs["paths"])
    assert_array_equal(nodes, ASKED["nodes"])


@pytest.mark.once
def test_functions_on_text_and_lists_equal_bert4keras(theirs):
    cuts = [text_segmentate(ASKED["text"], n, seps, strips) for n, seps in ASKED["cuts"] for strips in ("。", None)]
    assert cuts == theirs["cuts"]
    assert [snippets.string_matching(x, ASKED["keywords"]) for x in ASKED["strings"]] == theirs["matching"]
    assert [snippets.lowercase_and_normalize(x) for x in ASKED["strings"]] == theirs["lower"]
    truncated = [
        snippets.truncate_sequences(m, i, list(range(a)), list(range(b))) for m, i, a, b in ASKED["truncations"]
    ]
    assert truncated == theirs["truncated"]
    assert_allclose(snippets.softmax(ASKED["nodes"][0], axis=0), theirs["softmax"], **TOLERANCE["float32"])


@pytest.mark.once
def test_batches_in_order_and_shuffled_equal_bert4keras(theirs):
    names = {"DataGenerator": DataGenerator, "np": np}
    exec(GENERATORS, names)
    assert names["batches"]() == theirs["batches"]


@pytest.mark.once
def test_padded_rows_are_not_in_the_chain():
    trans, nodes = random.normal(size=(2, 4, 4)), random.normal(size=(6, 4))
    decoder = ViterbiDecoder(trans[0], starts=[0, 1], ends=[2])
    padded = np.insert(nodes, [0, 3, 6], -np.inf, axis=0)
    path = decoder.decode(padded)
    assert_array_equal(path[[0, 4, 8]], -1)
    assert_array_equal(np.delete(path, [0, 4, 8]), decoder.decode(nodes))
    partly = nodes.copy()
    partly[2, 1] = -np.inf  # one tag out of reach is no padding
    assert_array_equal(decoder.decode(partly), decoder.decode(np.maximum(partly, -1e9)))
    assert_array_equal(decoder.decode(np.zeros((0, 4))), [])
    with pytest.raises(ValueError, match="allow none"):
        ViterbiDecoder(trans[0], starts=[0], ends=[1]).decode(nodes[:1])
    with pytest.raises(ValueError, match=r"\(time, 4\). Received: shape=\(4,\)"):
        decoder.decode(nodes[0])


@pytest.mark.once
def test_files_are_utf8_unless_told_otherwise(tmp_path):
    with snippets.open(tmp_path / "a.txt", "w", encoding="gb18030") as file:
        file.write("汉字\n")
    assert (tmp_path / "a.txt").read_bytes() == "汉字\n".encode("gb18030")
    with snippets.open(tmp_path / "a.txt", encoding="gb18030") as file:
        assert list(file) == ["汉字\n"]
    with snippets.open(tmp_path / "a.txt", "rb") as file:
        assert file.read() == "汉字\n".encode("gb18030")
    with snippets.open(tmp_path / "b.txt", "w") as file:
        file.write("汉字")
    assert (tmp_path / "b.txt").read_text(encoding="utf-8") == "汉字"
    with pytest.raises(ValueError, match="`indexable` is not here"):
        snippets.open(tmp_path / "b.txt", indexable=True)


class Rows(DataGenerator):
    """Batches of two inputs in a list, as scripts for bert4keras yield them; the length is that of the longest row."""

    def __iter__(self, random=False):
        rows = []
        for is_end, row in self.sample(random):
            rows.append(row)
            if len(rows) == self.batch_size or is_end:
                token_ids = sequence_padding(rows)
                yield [token_ids, np.zeros_like(token_ids)], token_ids % 2
                rows = []


def two_inputs():
    tokens, segments = keras.Input((None,), dtype="int32"), keras.Input((None,), dtype="int32")
    x = keras.layers.Embedding(9, 4)(tokens) + keras.layers.Embedding(2, 4)(segments)
    model = keras.Model([tokens, segments], keras.layers.Dense(2, activation="softmax")(x))
    model.compile("sgd", "sparse_categorical_crossentropy", jit_compile=K.backend() == "jax")
    return model


@pytest.mark.once
def test_fit_takes_lists_and_batches_of_any_length_also_when_the_first_two_are_equally_long():
    lengths = [5, 5, 5, 5, 8, 2, 3]
    batches = Rows([list(range(1, n + 1)) for n in lengths], batch_size=2)
    model = two_inputs()
    expected = np.mean([model.test_on_batch(*batch) for batch in batches])
    losses = model.evaluate(batches.forfit(random=False), steps=len(batches), verbose=0)
    assert_allclose(losses, expected, rtol=0.2)  # Keras weighs by rows
    history = model.fit(batches.forfit(), steps_per_epoch=len(batches), epochs=3, verbose=0)
    assert np.isfinite(history.history["loss"]).all() and len(history.history["loss"]) == 3


def test_predict_takes_fortest():
    batches = Rows([[1, 2, 3]] * 5, batch_size=2)
    model = two_inputs()
    found = model.predict(batches.fortest(), steps=len(batches), verbose=0)
    assert_allclose(found[4], model.predict(next(batches.fortest()), verbose=0)[0], **TOLERANCE["float32"])


@pytest.mark.once
def test_a_stream_without_length_says_so():
    with pytest.raises(TypeError, match="`steps_per_epoch`"):
        len(Rows(iter([])))
    assert list(Rows([])) == []


def test_to_dataset_gives_single_items_as_batches():
    pytest.importorskip("tensorflow")
    if K.backend() != "tensorflow":
        pytest.skip("needs TensorFlow as the backend")

    class Items(DataGenerator):
        def __iter__(self, random=False):
            for _, row in self.sample(random=False):
                yield row, len(row)

    items = Items([[1, 2], [3], [4, 5, 6]], batch_size=3)
    batch = next(iter(items.to_dataset(("int32", "int32"), ([None], []), padded_batch=True)))
    assert batch[0].numpy().tolist() == [[1, 2, 0], [3, 0, 0], [4, 5, 6]]
    batch = next(iter(items.to_dataset(("int32", "int32"), ([None], []), names=["x", "y"], padded_batch=True)))
    assert batch["y"].numpy().tolist() == [2, 1, 3]


def test_named_labels_of_one_output_are_taken_by_fit():
    """As bert4keras' example for several devices calls it."""
    pytest.importorskip("tensorflow")

    class Items(DataGenerator):
        def __iter__(self, random=False):
            for _, row in self.sample(random):
                yield [row, row], [[len(row)]]

    items = Items([[1, 2], [3], [4, 5, 6]], batch_size=3)
    data = items.to_dataset(
        types=[("float32", "float32"), ("float32",)],
        shapes=[([None], [None]), ([1],)],
        names=[("one", "two"), ("score",)],
        padded_batch=True,
    )
    one, two = keras.Input((None,), name="one"), keras.Input((None,), name="two")
    both = ops.stack([ops.sum(one, axis=-1), ops.sum(two, axis=-1)], axis=-1)
    model = keras.Model([one, two], keras.layers.Dense(1, name="score")(both))
    model.compile("sgd", "mse", metrics=["mae"])
    assert np.isfinite(model.fit(data, steps_per_epoch=2, verbose=0, shuffle=False).history["mae"]).all()


X = random.normal(size=(3, 4, 5)).astype("float32")
POSITIVE = np.abs(X) + 0.1
INTS = random.integers(0, 4, (3, 4)).astype("int32")
SHARES = (POSITIVE / POSITIVE.sum(-1, keepdims=True)).astype("float32")
CALLS = {  # name: arguments, among them the arrays above by their names
    **{name: ["X"] for name in "abs argmax argmin cos cumprod cumsum exp expand_dims flatten l2_normalize".split()},
    **{name: ["X"] for name in "logsumexp max mean min prod relu round sigmoid sign sin softmax softplus".split()},
    **{name: ["X"] for name in "softsign square std sum tanh transpose var zeros_like ones_like elu".split()},
    **{name: ["POSITIVE"] for name in ("log", "sqrt")},
    **{name: ["X", "POSITIVE"] for name in "equal greater greater_equal less less_equal not_equal".split()},
    **{name: ["X", "POSITIVE"] for name in ("maximum", "minimum")},
    "categorical_crossentropy": ["SHARES", "SHARES"],
    "binary_crossentropy": ["SHARES", "SHARES"],
    "sparse_categorical_crossentropy": ["INTS", "SHARES"],
    "clip": ["X", -0.5, 0.5],
    "pow": ["POSITIVE", 3.0],
    "permute_dimensions": ["X", [2, 0, 1]],
    "repeat_elements": ["X", 2, 1],
    "reverse": ["X", 1],
    "one_hot": ["INTS", 4],
    "arange": [3],
    "eye": [3],
    "tile": ["INTS", [1, 2]],
    "gather": ["POSITIVE", [2, 0]],
    "reshape": ["X", [4, 15]],
}
KERAS_2 = """
from bert4keras.backend import K, batch_gather, multilabel_categorical_crossentropy, tf
arrays = {name: tf.constant(inputs[name]) for name in ("X", "POSITIVE", "INTS", "SHARES")}
call = lambda name, arguments: getattr(K, name)(*[arrays[a] if isinstance(a, str) else a for a in arguments])
for name, arguments in inputs["calls"].items():
    outputs[name] = np.asarray(K.eval(call(name, arguments)))
X, INTS = arrays["X"], arrays["INTS"]
outputs["concatenate"] = K.eval(K.concatenate([X, X]))
outputs["stack"] = K.eval(K.stack([X, X]))
outputs["where"] = K.eval(K.where(INTS, 1.0, X[..., 0]))
outputs["any"] = K.eval(K.any(X > 0, axis=1))
outputs["all"] = K.eval(K.all(X > -1, axis=-1))
outputs["int_shape"] = list(K.int_shape(X))
outputs["gathered"] = K.eval(batch_gather(X, INTS))
labels = K.cast(arrays["POSITIVE"] > 0.9, "float32")
outputs["multilabel"] = K.eval(multilabel_categorical_crossentropy(labels, X))
outputs["soft"] = K.eval(multilabel_categorical_crossentropy(arrays["SHARES"], K.where(X > 1, -np.inf, X)))
"""


@pytest.mark.once
def test_functions_of_k_are_those_of_keras_2(bert4keras_python):  # noqa: F811
    arrays = {"X": X, "POSITIVE": POSITIVE, "INTS": INTS, "SHARES": SHARES}
    expected = bert4keras_python(KERAS_2, calls=CALLS, **arrays)
    tensors = {name: ops.convert_to_tensor(x) for name, x in arrays.items()}
    x, ints = tensors["X"], tensors["INTS"]
    found = {
        name: getattr(K, name)(*[tensors[a] if isinstance(a, str) else a for a in arguments])
        for name, arguments in CALLS.items()
    }
    found["concatenate"], found["stack"] = K.concatenate([x, x]), K.stack([x, x])
    found["where"] = K.where(ints, 1.0, x[..., 0])
    found["any"], found["all"] = K.any(x > 0, axis=1), K.all(x > -1, axis=-1)
    found["gathered"] = batch_gather(x, ints)
    found["multilabel"] = multilabel_categorical_crossentropy(tensors["POSITIVE"] > 0.9, x)
    found["soft"] = multilabel_categorical_crossentropy(tensors["SHARES"], ops.where(x > 1, -float("inf"), x))
    for name, value in found.items():
        assert_allclose(K.eval(value), expected[name], rtol=1e-5, atol=1e-5, err_msg=name)
        assert K.int_shape(value) == expected[name].shape, name
    assert list(K.int_shape(x)) == expected["int_shape"]


def test_k_reads_and_writes_variables():
    variable = K.variable([1.0, 2.0])
    K.set_value(variable, [3.0, 4.0])
    assert_array_equal(K.get_value(variable), [3.0, 4.0])
    K.batch_set_value([(variable, [5.0, 6.0])])
    K.update_add(variable, [1.0, 1.0])
    K.update_sub(variable, [0.0, 2.0])
    assert_array_equal(K.batch_get_value([variable])[0], [6.0, 5.0])
    K.update(variable, [0.0, 1.0])
    assert_array_equal(K.eval(variable), [0.0, 1.0])
    assert_array_equal(K.eval(K.constant(2, shape=(2, 2))), [[2, 2], [2, 2]])
    assert K.ndim(variable) == 1 and K.dtype(variable) == "float32"
    assert K.epsilon() == keras.config.epsilon() and K.floatx() == "float32"
    with pytest.raises(AttributeError, match="K has no 'gradients'"):
        K.gradients  # noqa: B018


def test_search_layer_finds_what_a_tensor_is_computed_from():
    inner = keras.Sequential([keras.Input((4,)), keras.layers.Dense(3, name="inside")])
    x = keras.Input((4,))
    y = keras.layers.Dense(2, name="top")(inner(keras.layers.Dense(4, name="bottom")(x)))
    keras.layers.Dense(1, name="after")(y)
    assert [search_layer(y, name) is not None for name in ("top", "bottom", "inside", "after")] == [True] * 3 + [False]
    assert search_layer(search_layer(y, "top"), "bottom").units == 4


@pytest.mark.parametrize("method", ["forfit", "fortest"])
def test_batches_without_end_of_no_data_are_refused(method):
    class Batches(DataGenerator):
        def __iter__(self, random=False):
            yield from ([np.array([item])] for _, item in self.sample(random))

    with pytest.raises(ValueError, match="need data for one batch at least"):
        next(iter(getattr(Batches([], 4), method)()))
    assert next(iter(getattr(Batches([7], 4), method)())) is not None
