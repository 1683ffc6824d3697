"""kcrf.export: Exported files give the results of their runs, and those of the enumeration of all paths."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from configs import stored
from conftest import few
from numpy.testing import assert_allclose
from oracles import log_sum, paths

onnxruntime = pytest.importorskip("onnxruntime")
pytest.importorskip("tf2onnx")

from decoders import tuples  # noqa: E402

from kcrf.backend import ops  # noqa: E402
from kcrf.corpora import Sentence, load_mini, tagged_sentence  # noqa: E402
from kcrf.export import export_model  # noqa: E402
from kcrf.models import build_transformer_model, save_pretrained  # noqa: E402
from kcrf.networks.classification import build_classifier  # noqa: E402
from kcrf.networks.tagging import build_network, crf_of  # noqa: E402
from kcrf.readers import (  # noqa: E402
    CharacterReader,
    Lexicon,
    StandardsReader,
    Vocabulary,
    WordReader,
    WordVectors,
    encoder_reader,
)
from kcrf.runs import RunWriter, Settings  # noqa: E402
from kcrf.runs.setup import save_setup  # noqa: E402
from kcrf.taggers import (  # noqa: E402
    EntityRecognizer,
    TextClassifier,
    TokenTagger,
    WordSegmenter,
    load_tagger,  # noqa: E402
)

BACKENDS = ["tensorflow"]

TEXTS = ["".join(words) for words in load_mini().valid[:12]] + ["一", "他" * 300, "用Python3写3.14行"]
EXAMPLE = Path(__file__).parents[2] / "examples" / "basic_onnx_segment.py"
TYPES = ("LOC", "PER")
NOTHING_KNOWN = {"allowed": np.zeros((1, 1, 1), "float32"), "with_confidences": np.array(True)}
SMALL = {"width": 64, "depth": 2, "character_width": 16, "bigram_width": 16}


def write_run(folder, settings, reader, seed=0, standards=(), **facts):
    """A run folder with random weights: large enough that no two tags score alike, the transitions too."""
    run, random = stored(settings, "torch", standards=standards, **facts), np.random.default_rng(seed)
    if settings.task == "classify":
        model = build_classifier(run.config.model, settings.labels, reader)
    else:
        model = build_network(run.config.model, run.config.data.tag_scheme(), reader, standards=standards)
    for variable in model.trainable_variables:
        values = ops.convert_to_numpy(variable)
        variable.assign(values + random.normal(0, 0.4 if "Emissions" in variable.path else 0.1, values.shape))
    if settings.task != "classify" and not standards and (layer := crf_of(model)) is not None:
        layer.set_weights([random.normal(0, 1.5, weight.shape) for weight in layer.get_weights()])
    with RunWriter.create(folder) as written:
        save_setup(written, run, reader)
        written.save_weights(model)
        written.save_scores({})
    return run.config


def characters(lexicon=False):
    sentences = [Sentence(text, [(i, min(i + 2, len(text))) for i in range(0, len(text), 2)]) for text in TEXTS]
    return CharacterReader(Vocabulary.of(TEXTS), Lexicon.of(sentences) if lexicon else None)


def assert_same(ours, others):
    """Asserts that spans are the same, with nearly the same probabilities."""
    assert [replace(span, probability=0) for span in ours] == [replace(span, probability=0) for span in others]
    assert_allclose([span.probability for span in ours], [span.probability for span in others], rtol=1e-3, atol=1e-5)


@pytest.fixture(scope="module")
def words(tmp_path_factory):
    """A run that segments, and its exported file."""
    folder = tmp_path_factory.mktemp("words")
    settings = Settings(**SMALL, crf_lr_multiplier=10.0)
    write_run(folder / "run", settings, characters(lexicon=True), temperature=1.3)
    export_model(folder / "run", folder / "words.onnx")
    return folder / "run", folder / "words.onnx"


def test_words_are_those_of_the_run(words):
    run, exported = map(WordSegmenter, words)
    assert exported.segment_batch(TEXTS) == run.segment_batch(TEXTS)
    assert len({len(word) for row in run.segment_batch(TEXTS) for word in row}) > 2
    for ours, others in zip(exported(TEXTS), run(TEXTS)):
        assert_same(ours, others)
    for ours, others in zip(exported.k_best_batch(TEXTS[:6], 4), run.k_best_batch(TEXTS[:6], 4)):
        assert [found for found, _ in ours] == [found for found, _ in others]
        assert_allclose([p for _, p in ours], [p for _, p in others], rtol=1e-4, atol=1e-7)


def test_a_dictionary_and_known_words_work_as_on_the_run(words):
    for options in ({"words": {TEXTS[0][3:5]: 9}}, {"words": [TEXTS[0][2:9]], "force_words": True}):
        run, exported = (WordSegmenter(path, **options) for path in words)
        assert exported.segment_batch(TEXTS) == run.segment_batch(TEXTS)
    spans = [(1, 4), (6, 7)]
    assert exported.segment(TEXTS[0], spans=spans) == run.segment(TEXTS[0], spans=spans)
    assert TEXTS[0][1:4] in exported.segment(TEXTS[0], spans=spans)


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["bio", "bioes"])
@pytest.mark.parametrize("head", ["crf", "softmax"])
def test_entities_are_those_of_the_run(head, scheme, tmp_path):
    settings = Settings(task="ner", types=TYPES, head=head, scheme=scheme, encoder="transformer", **SMALL)
    settings = replace(settings, crf_lr_multiplier=1.0) if head == "crf" else settings
    write_run(tmp_path / "run", settings, characters())
    export_model(tmp_path / "run", tmp_path / "ner.onnx")
    for threshold in (None, 0.2):
        run, exported = (EntityRecognizer(tmp_path / name, threshold) for name in ("run", "ner.onnx"))
        found, ours = run.recognize_batch(TEXTS), exported.recognize_batch(TEXTS)
        assert sum(map(len, found)) > 10
        for row, others in zip(ours, found, strict=True):
            assert_same(row, others)
    best, others = run.k_best(TEXTS[0], 3), exported.k_best(TEXTS[0], 3)
    assert [found for found, _ in best] == [found for found, _ in others]


def write_bert(folder):
    """A tiny BERT with random weights."""
    vocab = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "kim", "lives", "in", "lee", "##ds", ".", "the", "team", "won", "3"]
    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
    save_pretrained(build_transformer_model(vocab_size=len(vocab), max_position=64, **sizes), folder, vocab=vocab)
    return folder


@pytest.mark.slow
def test_words_with_classes_are_those_of_the_run_and_of_a_bert(tmp_path):
    settings = Settings(task="cws-pos", types=("n", "r", "v"), crf_lr_multiplier=1.0, **SMALL)
    write_run(tmp_path / "words", settings, characters(lexicon=True), temperature=1.3)
    bert = write_bert(tmp_path / "tiny")
    settings = Settings(task="cws-pos", types=("n", "v"), bert=str(bert), crf_lr_multiplier=1.0)
    write_run(tmp_path / "bert", settings, encoder_reader(bert))
    for name, texts in (("words", TEXTS), ("bert", ["Kim lives in\u200bLeeds.", "他3 games", "\u200b"])):
        export_model(tmp_path / name, tmp_path / f"{name}.onnx")
        run, exported = (WordSegmenter(tmp_path / file) for file in (name, f"{name}.onnx"))
        assert run.segment_batch(texts) == exported.segment_batch(texts)
        assert ["".join(words) for words in run.segment_batch(texts)] == ["".join(text.split()) for text in texts]
        for with_labels in (True, False):
            taggers = (WordSegmenter(tmp_path / file, with_labels=with_labels) for file in (name, f"{name}.onnx"))
            for ours, others in zip(*(tagger(texts) for tagger in taggers), strict=True):
                assert_same(ours, others)
        best, other = (x.k_best(texts[0], 3) for x in (exported, run))
        assert [words for words, _ in best] == [words for words, _ in other]
    assert [(span.text, span.label) for span in run(texts)[-1]] == [("\u200b", "?")]


def test_estimates_of_a_bert_and_of_its_exported_file_are_those_of_all_paths(tmp_path):
    bert, text = write_bert(tmp_path / "tiny"), TEXTS[0][:5]
    settings = Settings(task="ner", types=TYPES, bert=str(bert), crf_lr_multiplier=1.0)
    write_run(tmp_path / "bert", settings, encoder_reader(bert), temperature=1.3)
    export_model(tmp_path / "bert", tmp_path / "bert.onnx")
    recognizer = EntityRecognizer(tmp_path / "bert")
    emissions, scheme = recognizer.decoder.emissions([text]).astype(float), recognizer.scheme
    (transitions,) = recognizer.crf.get_weights()
    every = paths(emissions / 1.3, transitions / 1.3, np.zeros(len(scheme)), np.zeros(len(scheme)))
    ways, scores = zip(*((path, value) for path, value in every if not scheme.violations(path)))
    weights = np.exp(np.array(scores) - log_sum(scores))
    found = [(span.key, span.probability) for span in recognizer.recognize(text)]
    right = sum(p * sum(key in scheme.decode(way) for key, _ in found) for way, p in zip(ways, weights))
    true = sum(p * len(scheme.decode(way)) for way, p in zip(ways, weights))
    for path in (tmp_path / "bert", tmp_path / "bert.onnx"):
        estimate = EntityRecognizer(path).estimate([text] * 2).all
        assert_allclose(
            [estimate.found, estimate.right, estimate.true], [2 * len(found), 2 * right, 2 * true], rtol=1e-3
        )


@pytest.mark.slow
def test_words_as_units_and_a_bilstm_and_pieces_of_a_bert(tmp_path):
    bert = write_bert(tmp_path / "tiny")
    texts = ["Kim lives in Leeds.", "the U.S. team won 3 games", "x"]
    sentences = [Sentence(text, []) for text in texts]
    settings = Settings(task="ner", types=TYPES, units="words", encoder="bilstm", crf_lr_multiplier=1.0, **SMALL)
    write_run(tmp_path / "words", settings, WordReader.of(sentences))
    settings = Settings(task="ner", types=TYPES, bert=str(bert), crf_lr_multiplier=1.0, word_case=True)
    write_run(tmp_path / "bert", settings, encoder_reader(bert, word_case=True))
    for name in ("words", "bert"):
        export_model(tmp_path / name, tmp_path / f"{name}.onnx")
        run, exported = (load_tagger(tmp_path / file) for file in (name, f"{name}.onnx"))
        for ours, others in zip(tuples(exported, texts), tuples(run, texts)):
            assert [span[:-1] for span in ours] == [span[:-1] for span in others]
            assert_allclose([p for *_, p in ours], [p for *_, p in others], rtol=1e-3, atol=1e-5)


@pytest.mark.slow
def test_classes_of_tokens_are_those_of_the_run(tmp_path):
    tokens = ["Kim", "lives", "in", "Leeds", ".", "Kim"]
    settings = Settings(task="pos", types=("A", "B", "C"), crf_lr_multiplier=1.0, **SMALL)
    write_run(tmp_path / "run", settings, WordReader.of([tagged_sentence(tokens, ["A"] * 6)]), units="words")
    export_model(tmp_path / "run", tmp_path / "pos.onnx")
    run, exported = (TokenTagger(tmp_path / name) for name in ("run", "pos.onnx"))
    ours, others = (model([tokens, tokens[2:4]]) for model in (exported, run))
    for row, expected in zip(ours, others, strict=True):
        assert_same(row, expected)
    session = onnxruntime.InferenceSession(tmp_path / "pos.onnx")  # as another program uses it
    (reading,) = exported.reader.read([" ".join(tokens)])
    inputs = {name: np.array([rows], "int32") for name, rows in reading.windows[0].inputs.items()}
    (confidences,) = session.run(["confidences"], {**inputs, **NOTHING_KNOWN})
    assert_allclose(confidences[0], [span.probability for span in others[0]], rtol=1e-3, atol=1e-5)


@pytest.mark.slow
def test_vectors_of_words_are_read_as_by_the_run(tmp_path):
    reader = characters()
    known = sorted({text[i : i + n] for text in TEXTS[:3] for n in (1, 2, 3) for i in range(len(text) - n + 1)})
    reader = reader.with_vectors(WordVectors(known, np.random.default_rng(1).normal(size=(len(known), 4))))
    settings = Settings(**SMALL, crf_lr_multiplier=1.0, vectors="vectors.txt", lexicon=False)
    write_run(tmp_path / "run", settings, reader)
    export_model(tmp_path / "run", tmp_path / "words.onnx")
    run, exported = (tuples(load_tagger(tmp_path / file), TEXTS) for file in ("run", "words.onnx"))
    for ours, others in zip(exported, run, strict=True):
        assert [span[:2] for span in ours] == [span[:2] for span in others]
        assert_allclose([p for *_, p in ours], [p for *_, p in others], rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize(("labels", "several"), [(("good", "bad", "so so"), 0), (("good", "bad", "so so"), 1), ((), 0)])
def test_labels_and_numbers_are_those_of_the_run(labels, several, tmp_path):
    settings = Settings(task="classify", labels=labels, **SMALL)
    write_run(tmp_path / "run", settings, characters(), mean=2.5, deviation=1.5, multilabel=bool(several))
    export_model(tmp_path / "run", tmp_path / "labels.onnx")
    found, ours = (TextClassifier(tmp_path / name).predict(TEXTS) for name in ("run", "labels.onnx"))
    if labels:
        assert [item.label for item in ours] == [item.label for item in found]
        rows = [[list(item.probabilities.values()) for item in items] for items in (ours, found)]
        session = onnxruntime.InferenceSession(tmp_path / "labels.onnx")
        inputs = {name: np.array([row]) for name, row in read(TEXTS[0]).items()}
        scores, probabilities = session.run(["scores", "probabilities"], inputs)
        assert_allclose(probabilities[0], rows[1][0], rtol=1e-3, atol=1e-5)
        of_each = 1 / (1 + np.exp(-scores)) if several else np.exp(scores) / np.exp(scores).sum()
        assert_allclose(probabilities, of_each, rtol=1e-5)
    else:
        rows = [[item.label for item in items] for items in (ours, found)]
    assert_allclose(*rows, rtol=1e-3, atol=1e-5)


def read(text, lexicon=False):
    """The inputs of a text, as int32."""
    (reading,) = characters(lexicon).read([text])
    return {name: np.array(row, "int32") for name, row in reading.windows[0].inputs.items()}


def test_the_graph_gives_what_the_enumeration_of_all_paths_gives(tmp_path):
    """For others than kcrf: the file alone, with padding and an empty sentence."""
    settings = Settings(task="ner", types=("X",), scheme="bio", crf_lr_multiplier=1.0, **SMALL)
    write_run(tmp_path / "run", settings, characters(), temperature=1.7)
    export_model(tmp_path / "run", tmp_path / "ner.onnx")
    tagger = load_tagger(tmp_path / "run")
    session = onnxruntime.InferenceSession(tmp_path / "ner.onnx")
    lengths = [6, 4] * 6
    rows = [read(text[:length]) for text, length in zip(TEXTS, lengths)]
    rows.append(dict.fromkeys(("characters", "bigrams"), np.zeros(0, "int32")))
    inputs = {name: np.stack([np.pad(row[name], (0, 6 - len(row[name]))) for row in rows]) for name in rows[0]}
    tags, confidences = session.run(["tags", "confidences"], {**inputs, **NOTHING_KNOWN})
    emissions = tagger.network.emissions(inputs)
    best, likely = map(chain_of, tagger.network.chains(emissions))
    ends = []
    for number, length in enumerate(lengths):
        rows = emissions[number, :length].astype("float64")
        expected = paths(rows, *best)[0][0]
        assert tags[number].tolist() == [*expected, *[-1] * (6 - length)]
        scored = paths(rows / 1.7, *likely)
        log_z = log_sum([value for _, value in scored])
        for start, end, label in tagger.scheme.decode(expected):
            pattern = tuple(tagger.scheme.encode([(0, end - start, label)], end - start))
            values = [value for path, value in scored if path[start:end] == pattern and path[end : end + 1] != (2,)]
            assert_allclose(confidences[number, start:end].prod(), np.exp(log_sum(values) - log_z), rtol=1e-4)
            ends.append(end == length)
    assert 2 < sum(ends) < len(ends) - 2
    assert (tags[-1] == -1).all() and (confidences[-1] == 1).all()


def chain_of(chain):
    """The transitions, starts and ends that the enumeration takes."""
    scores = [chain.transitions, chain.start, chain.end]
    return [np.zeros(3) if x is None else ops.convert_to_numpy(x).astype("float64") for x in scores]


def test_integers_of_8_bits_change_few_tags(words, tmp_path):
    run, path = words
    export_model(run, tmp_path / "int8.onnx", int8=True)
    assert (tmp_path / "int8.onnx").stat().st_size < 0.6 * path.stat().st_size
    whole, rounded = (marginals(file) for file in (path, tmp_path / "int8.onnx"))
    assert 0 < np.abs(whole - rounded).max() < 0.1
    assert np.mean(whole.argmax(-1) == rounded.argmax(-1)) > 0.95


def marginals(path):
    session = onnxruntime.InferenceSession(path)
    inputs = {name: row[None, :64] for name, row in read(TEXTS[-2], lexicon=True).items()}
    return session.run(["marginals"], {**inputs, **NOTHING_KNOWN})[0]


@pytest.mark.parametrize("scheme", few("bioes", "bio", rest="slow"))
def test_a_saved_model_gives_what_the_onnx_file_gives(scheme, tmp_path):
    import tensorflow as tf

    settings = Settings(task="ner", types=TYPES, scheme=scheme, crf_lr_multiplier=1.0, **SMALL)
    config = write_run(tmp_path / "run", settings, characters(), temperature=0.8)
    export_model(tmp_path / "run", tmp_path / "ner.onnx")
    export_model(tmp_path / "run", tmp_path / "saved", "saved_model")
    rows = [read(text[:20]) for text in TEXTS[:12]] + [read(text[:9]) for text in TEXTS[:12]]
    inputs = {name: np.stack([np.pad(row[name], (0, 20 - len(row[name]))) for row in rows]) for name in rows[0]}
    session = onnxruntime.InferenceSession(tmp_path / "ner.onnx")
    expected = session.run(["tags", "confidences"], {**inputs, **NOTHING_KNOWN})
    serve = tf.saved_model.load(tmp_path / "saved").signatures["serving_default"]
    found = serve(**{name: tf.constant(rows) for name, rows in inputs.items()})
    assert found["tags"].numpy().tolist() == expected[0].tolist()
    assert_allclose(found["confidences"], expected[1], rtol=1e-3, atol=1e-5)
    last = expected[0][range(24), (expected[0] >= 0).sum(axis=1) - 1]
    assert last.any()  # some sentences end in an entity
    labels = json.loads((tmp_path / "saved" / "assets.extra" / "labels").read_text())
    assert labels == list(config.data.tag_scheme().labels)
    with pytest.raises(FileExistsError, match="saved: needs a folder that does not exist"):
        export_model(tmp_path / "run", tmp_path / "saved", "saved_model")


@pytest.mark.slow
@pytest.mark.parametrize(("task", "several"), [("ner", False), ("classify", False), ("classify", True)])
def test_a_saved_model_with_a_bert_gives_what_the_onnx_file_gives(task, several, tmp_path):
    import tensorflow as tf

    bert = write_bert(tmp_path / "tiny")
    settings = {"ner": {"types": TYPES, "crf_lr_multiplier": 1.0}, "classify": {"labels": ("a", "b"), "pool": "first"}}
    chosen = Settings(task=task, bert=str(bert), **settings[task])
    write_run(tmp_path / "run", chosen, encoder_reader(bert), multilabel=several)
    export_model(tmp_path / "run", tmp_path / "file.onnx")
    export_model(tmp_path / "run", tmp_path / "saved", "saved_model")
    session = onnxruntime.InferenceSession(tmp_path / "file.onnx")
    tokens = np.array([[2, 4, 5, 6, 7, 8, 9, 3], [2, 10, 11, 12, 3, 0, 0, 0]], "int32")
    inputs = {"Input-Token": tokens, "Input-Segment": tokens * 0}
    if task == "ner":
        inputs["tagged"] = np.array([[0, 1, 1, 1, 1, 0, 1, 0], [0, 1, 1, 1, 0, 0, 0, 0]], "int32")
    names = ["tags", "confidences"] if task == "ner" else ["probabilities"]
    expected = session.run(names, {**inputs, **(NOTHING_KNOWN if task == "ner" else {})})
    serve = tf.saved_model.load(tmp_path / "saved").signatures["serving_default"]
    found = serve(**{name.replace("-", "_"): tf.constant(rows) for name, rows in inputs.items()})
    assert np.ptp(expected[-1][:, 1:], axis=0).max() > 0.001
    for name, values in zip(names, expected, strict=True):
        assert_allclose(found[name], values, rtol=1e-4, atol=1e-6)


def test_the_example_needs_neither_keras_nor_kcrf(words):
    code = "import sys; sys.modules['keras'] = sys.modules['kcrf'] = None; exec(open(sys.argv.pop(1)).read())"
    texts = [text for text in TEXTS if len(text) <= 128]
    command = [sys.executable, "-c", code, EXAMPLE, words[1], *texts]
    found = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout.splitlines()
    expected = [[(s.text, s.probability) for s in row] for row in WordSegmenter(words[0], keep_latin=False)(texts)]
    for line, row in zip(found, expected, strict=True):
        pairs = [item.rsplit("/", 1) for item in line.split()]
        assert [word for word, _ in pairs] == [word for word, _ in row]
        assert_allclose([float(p) for _, p in pairs], [p for _, p in row], atol=6e-4)


def test_an_exported_file_needs_no_keras(words):
    script = (
        "import sys; from kcrf.taggers import EntityRecognizer, TextClassifier, WordSegmenter\n"
        "print(*WordSegmenter(sys.argv[1]).segment(sys.argv[2]))\n"
        "assert not {'keras', 'tensorflow', 'torch', 'jax'} & set(sys.modules)"
    )
    found = subprocess.run(
        [sys.executable, "-c", script, words[1], TEXTS[0]], capture_output=True, text=True, check=True, timeout=60
    )
    assert found.stdout.split() == WordSegmenter(words[0]).segment(TEXTS[0])


def test_wrong_files_are_named(words, tmp_path):
    run, path = words
    with pytest.raises(FileNotFoundError, match="none.onnx: no such file"):
        WordSegmenter(tmp_path / "none.onnx")
    (tmp_path / "text.onnx").write_text("no model")
    with pytest.raises(ValueError, match="text.onnx: cannot be read as an ONNX file"):
        WordSegmenter(tmp_path / "text.onnx")
    content = path.read_bytes()
    for place in range(len(content) // 8, len(content), len(content) // 8):  # a bit that onnxruntime may not notice
        (tmp_path / "bit.onnx").write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
        with pytest.raises(ValueError, match="bit.onnx: "):
            WordSegmenter(tmp_path / "bit.onnx")
    with pytest.raises(ValueError, match="words.onnx: needs a run of --task ner. Received: one of --task cws"):
        EntityRecognizer(path)
    with pytest.raises(ValueError, match="`path` must end in .onnx; .*need a linear model. Received: .*words.bin"):
        export_model(run, tmp_path / "words.bin")
    with pytest.raises(ValueError, match="`format` must be one of .*litert.*TensorListReserve"):
        export_model(run, tmp_path / "words.tflite", "litert")
    import onnx

    proto = onnx.load(path)
    onnx.helper.set_model_props(proto, {"made by": "somebody else"})
    onnx.save(proto, tmp_path / "other.onnx")
    with pytest.raises(ValueError, match="other.onnx: needs a model that `kcrf export` wrote"):
        WordSegmenter(tmp_path / "other.onnx")


def test_the_metadata_say_what_others_need(words):
    metadata = onnxruntime.InferenceSession(words[1]).get_modelmeta().custom_metadata_map
    assert json.loads(metadata["labels"]) == ["s", "b", "m", "e"]
    assert json.loads(metadata["vocabulary.json"]) == json.loads((words[0] / "vocabulary.json").read_text())
    assert json.loads(metadata["config.json"])["settings"]["width"] == 64


@pytest.mark.slow
def test_the_model_of_one_standard_is_exported(tmp_path):
    """The file has the head and the lexicon of the standard, and is that of any other segmenter."""
    reader = StandardsReader({"a": characters(lexicon=True), "b": characters(lexicon=True).with_words({"今天": 99})})
    write_run(tmp_path / "run", Settings(**SMALL), reader, standards=("a", "b"))
    with pytest.raises(ValueError, match="`standard` must be one of a, b. Received: none"):
        export_model(tmp_path / "run", tmp_path / "none.onnx")
    found = {}
    for standard in "ab":
        path = tmp_path / f"{standard}.onnx"
        export_model(tmp_path / "run", path, standard=standard)
        found[standard] = WordSegmenter(path)(TEXTS)
        expected = WordSegmenter(tmp_path / "run", standard=standard)(TEXTS)
        for row, other in zip(found[standard], expected, strict=True):
            assert [span.key for span in row] == [span.key for span in other]
            assert_allclose([span.probability for span in row], [span.probability for span in other], atol=1e-4)
    assert found["a"] != found["b"]
