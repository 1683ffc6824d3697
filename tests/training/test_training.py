"""kcrf.training: Training with a BERT: settings, learning rates, loaded weights, the run folder, and errors."""

import json
import re
import shutil

import numpy as np
import pytest
from configs import config_of, stored
from conftest import few
from decoders import keys, ways

from kcrf import commands
from kcrf.backend import backend_name, keras, ops
from kcrf.corpora import Sentence, load_mini
from kcrf.layers import suggest_lr_multiplier
from kcrf.models import build_transformer_model, save_pretrained
from kcrf.networks.tagging import build_network, crf_of
from kcrf.optimizers import variable_table
from kcrf.readers import encoder_reader
from kcrf.runs import RunFolder, RunWriter, Settings
from kcrf.runs.setup import save_setup
from kcrf.taggers import EntityRecognizer, WordSegmenter, load_tagger
from kcrf.tags import bio
from kcrf.tasks.task import tagged_windows
from kcrf.training import resume_tagger, train_tagger
from kcrf.training.batches import Batches
from kcrf.training.fit import compile_model

CORPUS, WORDS = load_mini("ner"), load_mini()
SHORT = [[s for s in part if 8 < len(s.text) <= 14] for part in (CORPUS.train, CORPUS.valid, CORPUS.test)]
PARTS = {"train": SHORT[0][:48], "valid": SHORT[1][:8], "test": SHORT[2][:4]}  # of one length: few graphs to compile
pytestmark = pytest.mark.once  # compiles for minutes elsewhere
QUICK = {"task": "ner", "epochs": 2, "batch_size": 16, "learning_rate": 1e-3, "dropout": 0.0, "seed": 2}


@pytest.fixture(scope="module")
def bert(tmp_path_factory):
    """The folder of a BERT of two small layers that knows the characters of the corpus."""
    folder = tmp_path_factory.mktemp("bert")
    characters = sorted({c for part in PARTS.values() for sentence in part for c in sentence.text.lower()} - {" "})
    vocab = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *characters, "##a"]
    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
    model = build_transformer_model(vocab_size=len(vocab), max_position=64, dropout_rate=0.1, **sizes)
    save_pretrained(model, folder, vocab=vocab)
    return folder


@pytest.fixture(scope="module")
def run(bert, tmp_path_factory):
    """A run on top of a copy of that BERT, which is no longer there."""
    folder = tmp_path_factory.mktemp("run")
    copy = shutil.copytree(bert, folder / "bert")
    train_tagger(Settings(**QUICK, bert=str(copy), skip_top_layers=1), **PARTS, out=folder / "run")
    shutil.rmtree(copy)
    return folder / "run"


def test_a_run_on_a_bert_stands_alone(run):
    recognizer = EntityRecognizer(run)
    found = recognizer.recognize_batch([sentence.text for sentence in PARTS["test"]])
    lines = [json.loads(line) for line in (run / "predictions.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [[[e.start, e.end, e.label] for e in row] for row in found] == [
        [span[:3] for span in line["found"]] for line in lines
    ]
    config = RunFolder(run).read_config().config
    readings = load_tagger(run).reader.read_training(PARTS["train"])
    rows = tagged_windows(PARTS["train"], readings, bio(config.data.types))
    assert config.model.crf_lr_multiplier == suggest_lr_multiplier(1e-3, 2 * len(Batches(rows, 16, seed=2)))
    assert {"vocab.txt", "bert_config.json"} <= {path.name for path in run.iterdir()}


@pytest.mark.parametrize(
    ("head", "encoder"),
    few(("crf", "none"), ("crf", "bilstm"), ("softmax", "none"), rest="slow"),
)
def test_a_bert_learns_the_training_text_under_every_head(bert, head, encoder, tmp_path):
    part = PARTS["train"][:12]
    changed = {"epochs": 20, "batch_size": 4, "learning_rate": 5e-3, "head_lr_multiplier": 5.0}
    settings = Settings(**{**QUICK, **changed}, bert=str(bert), head=head, encoder=encoder, width=32)
    _, scores = train_tagger(settings, part, part, out=tmp_path / "run")
    assert scores["valid"]["f"] > 0.8


@pytest.mark.slow
@pytest.mark.parametrize("word_case", [True, False])
def test_capitals_are_seen_where_the_tokenizer_lowers_the_text(word_case, bert, tmp_path):
    part = [Sentence("Anna went", [(0, 4, "NAME")]), Sentence("anna Went", [(5, 9, "NAME")])] * 8  # alike but for case
    settings = Settings(
        **{**QUICK, "epochs": 20, "learning_rate": 3e-3}, bert=str(bert), lower_case=True, word_case=word_case
    )
    _, scores = train_tagger(settings, part, part, out=tmp_path / "run")
    assert (scores["valid"]["f"] == 1) is word_case
    found = EntityRecognizer(tmp_path / "run").recognize("anna Went")
    assert not word_case or [entity.text for entity in found] == ["Went"]


def test_words_are_segmented_on_a_bert_and_none_is_lost(bert, tmp_path):
    settings = Settings(**{**QUICK, "task": "cws", "epochs": 1}, bert=str(bert))
    train_tagger(settings, WORDS.train[:32], WORDS.valid[:6], out=tmp_path / "run")
    segmenter = WordSegmenter(tmp_path / "run")
    for text in ("2008年abc\x00李雷\u0301", "\x00\x01", "李雷 在上海", "\ud800", "长" * 300):
        words = [(span.text, span.probability) for span in segmenter([text])[0]]
        assert "".join(word for word, _ in words) == "".join(text.split())
        assert all(0 <= probability <= 1 for _, probability in words)
        assert [word for word, _ in words] == segmenter.segment(text)
    assert "2008" in "|".join(segmenter.segment("在2008年")) and segmenter.k_best("李雷在", 2)[0][1] <= 1


def test_the_best_analysis_of_a_text_with_a_word_longer_than_a_window_is_what_is_found(run):
    """Between windows inside one word no unit begins: such a window decides nothing."""
    tagger = load_tagger(run)
    for text in ("李" * 20 + "a" * 200 + "雷住在上海。" * 8, "a" * 200 + "雷住在上海" * 30 + "a" * 300):
        (best, *_), *_ = ways(tagger, [text], 3)
        (found,) = keys(tagger, [text])
        assert best[0] == found


class Precisions(keras.callbacks.Callback):
    """Records the precision of the layers during training, and the losses."""

    def __init__(self):
        super().__init__()
        self.found, self.losses = set(), []

    def on_epoch_end(self, epoch, logs=None):
        self.found |= precisions(self.model)

    def report(self, row):
        self.losses.append(row["loss"])


def precisions(model):
    return {layer.compute_dtype for layer in model._flatten_layers() if layer.name not in ("CRF", "Emissions")}


NOT_ON_JAX = pytest.mark.skipif(backend_name() == "jax", reason="JAX has none on CPUs")
FLOAT16 = pytest.param("float16", marks=[pytest.mark.slow, NOT_ON_JAX])


@pytest.mark.slow
@pytest.mark.parametrize("head", ["crf", "softmax"])
@pytest.mark.parametrize("precision", ["bfloat16", FLOAT16])
def test_layers_compute_in_another_precision_while_they_are_trained(precision, head, bert, tmp_path):
    before, losses = keras.config.dtype_policy(), []
    for name in ("float32", precision):
        seen, out = Precisions(), tmp_path / name
        settings = Settings(**QUICK, bert=str(bert), head=head, precision=name)
        tagger, scores = train_tagger(settings, **PARTS, out=out, progress=seen)
        assert name in seen.found and ("float32" in seen.found) is (name == "float32")
        assert precisions(tagger.model) == {"float32"}
        assert load_tagger(out).scores(PARTS["valid"]) == scores["valid"]
        losses.append(seen.losses)
    assert losses[0] != losses[1] and losses[1][1] < losses[1][0]
    if precision == "bfloat16":  # in float16 steps are left out until the scale of the loss fits
        np.testing.assert_allclose(*losses, rtol=0.02)
    assert keras.config.dtype_policy() == before


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["float32", FLOAT16])
def test_an_interrupted_run_on_a_bert_goes_on_to_the_same_weights(precision, bert, tmp_path):
    settings = Settings(
        **{**QUICK, "dropout": 0.3, "epochs": 3}, bert=str(bert), prior_decay=0.1, mixout=0.3, precision=precision
    )
    train_tagger(settings, **PARTS, out=tmp_path / "whole")

    class Stops(keras.callbacks.Callback):
        def on_epoch_begin(self, epoch, logs=None):
            if epoch == 2:
                raise KeyboardInterrupt

        def report(self, row):
            pass

    with pytest.raises(KeyboardInterrupt):
        train_tagger(settings, **PARTS, out=tmp_path / "run", progress=Stops())
    resume_tagger(tmp_path / "run", **PARTS)
    one, other = (load_tagger(tmp_path / name).model.get_weights() for name in ("whole", "run"))
    for a, b in zip(one, other, strict=True):
        np.testing.assert_array_equal(a, b)


def compiled(settings, bert, tmp_path, steps=100):
    reader = encoder_reader(bert, settings.bert_layers)
    config = config_of(settings)
    with RunWriter.create(tmp_path / "made") as folder:
        save_setup(folder, stored(settings), reader)
        model = build_network(config.model, config.data.tag_scheme(), reader, settings.bert)
    compile_model(model, config, crf_of(model).sparse_loss, steps)
    return model


def test_every_variable_gets_the_rate_and_the_decay_it_should(bert, tmp_path):
    settings = Settings(
        task="ner",
        types=("X",),
        bert=str(bert),
        encoder="bilstm",
        crf_lr_multiplier=50.0,
        head_lr_multiplier=20.0,
        layerwise_decay=0.5,
        prior_decay=0.1,
        skip_top_layers=1,
        word_case=True,
    )
    model = compiled(settings, bert, tmp_path)
    rows = {row["path"]: row for row in variable_table(model)}
    expected = {"Embedding-": 0.125, "Transformer-0-": 0.25, "Transformer-1-": 0.5}
    expected |= {"BiLSTM-": 20, "Case": 20, "Emissions": 20, "CRF": 1}
    for path, row in rows.items():
        part = next(part for part in expected if path.startswith(part))
        assert row["multiplier"] == expected[part]
        assert row["decayed"] == (part != "CRF" and not re.search("Norm|bias", path))
        assert row["prior"] == (row["origin"] == "loaded")
        loaded = part in ("Embedding-", "Transformer-0-")
        assert row["origin"] == ("loaded" if loaded else "re-initialized" if part == "Transformer-1-" else "new")
    assert model.get_layer("CRF").lr_multiplier == 50
    rate = model.optimizer._learning_rate
    assert [round(float(rate(step)) / 5e-5, 6) for step in (0, 5, 10, 55, 100)] == [0, 0.5, 1, 0.5, 0]


def test_a_decay_of_0_trains_the_head_alone(bert, tmp_path):
    settings = Settings(task="ner", types=("X",), bert=str(bert), encoder="bilstm", layerwise_decay=0.0)
    model = compiled(settings, bert, tmp_path)
    rates = {row["path"]: row["multiplier"] for row in variable_table(model)}
    assert {path.split("-")[0].split("/")[0]: rate for path, rate in rates.items()} == {
        **dict.fromkeys(("Embedding", "Transformer")), "BiLSTM": 10, "Emissions": 10, "CRF": 1
    }  # fmt: skip
    train_tagger(Settings(**QUICK, bert=str(bert), layerwise_decay=0.0), **PARTS, out=tmp_path / "run")
    before, after = (build_transformer_model(bert), EntityRecognizer(tmp_path / "run").model)
    after = {variable.path: ops.convert_to_numpy(variable) for variable in after.weights}
    for variable in before.weights:
        np.testing.assert_array_equal(ops.convert_to_numpy(variable), after[variable.path])


def test_fewer_layers_are_the_lower_ones_and_hold_what_the_checkpoint_has(bert, tmp_path):
    model = compiled(Settings(task="ner", types=("X",), bert=str(bert), bert_layers=1), bert, tmp_path)
    paths = {variable.path: variable for variable in model.weights}
    assert any(path.startswith("Transformer-0-") for path in paths)
    assert not any(path.startswith("Transformer-1-") for path in paths)
    whole = build_transformer_model(bert, bert)
    name = "Transformer-0-FeedForward/output/kernel"
    theirs = next(variable for variable in whole.weights if variable.path == name)
    np.testing.assert_array_equal(ops.convert_to_numpy(paths[name]), ops.convert_to_numpy(theirs))


REFUSED = {
    "another size": ({"hidden_size": 24}, {}, "has shape"),
    "no size": ({"hidden_size": "16"}, {}, "needs positive ints for .* Received: hidden_size='16'"),
    "no heads": ({"num_attention_heads": 0}, {}, "needs positive ints for .* Received: num_attention_heads=0"),
    "no depth": ({"num_hidden_layers": "2"}, {}, "config.json: num_hidden_layers must be an int. Received: '2'"),
    "another family": ({"model_type": "t5"}, {}, "needs an encoder. Received: 't5', which has a decoder"),
    "a vocabulary too long": ({"vocab_size": 9}, {}, "vocab.txt: The vocabulary must be that of the BERT"),
    "too many layers": ({}, {"bert_layers": 3}, "has 2 layers. Received: bert_layers=3"),
    "too many to skip": ({}, {"skip_top_layers": 3}, "The encoder has 2 layers. Received: 3 top layers"),
    "deeper than its weights": ({"num_hidden_layers": 4}, {}, "is missing"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_bert_that_does_not_fit_is_refused_and_nothing_is_left(case, bert, tmp_path):
    config, options, told = REFUSED[case]
    copy = shutil.copytree(bert, tmp_path / "bert")
    written = json.loads((copy / "config.json").read_text())
    (copy / "config.json").write_text(json.dumps({**written, **config}))
    with pytest.raises(ValueError, match=told):
        train_tagger(Settings(**QUICK, bert=str(copy), **options), **PARTS, out=tmp_path / "run")
    assert [path.name for path in tmp_path.iterdir()] == ["bert"]


def test_a_folder_without_a_bert_or_its_vocabulary_is_named_and_a_bert_is_no_run_folder(bert, tmp_path):
    with pytest.raises(FileNotFoundError, match="no BERT there; its folder has one of config.json"):
        train_tagger(Settings(**QUICK, bert=str(tmp_path)), **PARTS, out=tmp_path / "run")
    copy = shutil.copytree(bert, tmp_path / "bert")
    with pytest.raises(FileExistsError, match="needs a run folder, an empty folder or none"):
        train_tagger(Settings(**QUICK, bert=str(copy)), **PARTS, out=copy)
    (copy / "vocab.txt").unlink()
    with pytest.raises(FileNotFoundError, match="vocab.txt: no such file; an encoder needs vocab.txt"):
        train_tagger(Settings(**QUICK, bert=str(copy)), **PARTS, out=tmp_path / "run")


@pytest.mark.parametrize(("vocab", "said", "lower"), [("a B", None, False), ("a b", None, True), ("a B", True, True)])
def test_whether_a_bert_lowers_text_is_read_from_its_folder(vocab, said, lower, tmp_path):
    (tmp_path / "bert_config.json").write_text(json.dumps({"vocab_size": 9, "num_hidden_layers": 1}))
    (tmp_path / "vocab.txt").write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", *vocab.split()]))
    if said is not None:
        (tmp_path / "tokenizer_config.json").write_text(json.dumps({"do_lower_case": said}))
    assert encoder_reader(tmp_path).lower_case is lower


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({"task": "parse"}, "`task` is one of"),
        ({"task": "cws", "scheme": "bio"}, "`scheme` is .bmes. for cws. Received"),
        ({"encoder": "none"}, "`encoder` is one of .* without a BERT. Received"),
        ({"bert": "x", "encoder": "cnn"}, "`encoder` is one of .* on a BERT. Received"),
        ({"mixout": 0.5}, "`mixout` needs `bert`. Received: mixout=0.5 and bert=None"),
        (
            {"lexicon": True, "bert": "x"},
            "`lexicon` needs bert=None. Received: lexicon=True and bert='x'",
        ),
        ({"constraints": True, "head": "softmax"}, "`constraints` needs head='crf'. Received: .* head='softmax'"),
        ({"min_probability": 0.3}, "`min_probability` needs task='ner'. Received: min_probability=0.3 and task='cws'"),
        ({"task": "ner", "min_probability": 1.0}, "`min_probability` must be above 0 and below 1. Received: 1.0"),
        ({"patience": 0}, "`patience` must be positive"),
        ({"layerwise_decay": 1.5, "bert": "x"}, "`layerwise_decay` must be from 0 to 1"),
        ({"layerwise_decay": 0.0, "mixout": 0.5, "bert": "x"}, "`mixout` has no effect with layerwise_decay=0"),
        ({"crf_lr_multiplier": "fast"}, '`crf_lr_multiplier` must be positive or "auto"'),
        ({"warmup": 1.0}, "`warmup` must be at least 0 and below 1"),
    ],
)
def test_settings_out_of_range_are_refused(values, told):
    with pytest.raises(ValueError, match=told):
        Settings(**values)


def test_the_command_line_trains_on_a_bert_by_its_flags(bert, tmp_path, capsys):
    sentences = ["".join(f"{c} {'B-X' if i == 0 else 'O'}\n" for i, c in enumerate(s.text)) for s in PARTS["train"]]
    (tmp_path / "train.conll").write_text("\n".join(sentences), encoding="utf-8")
    flags = "--epochs 1 --batch-tokens 512 --crf-lr-multiplier auto --no-bias-correction --layerwise-decay 0.9"
    flags += " --scheme bioes --constraints --no-lower-case --word-case --weight-decay 0 --patience 2 --warmup 0.2"
    arguments = ["train", "--task", "ner", "--train", str(tmp_path / "train.conll"), "--bert", str(bert)]
    assert commands.main([*arguments, "--out", str(tmp_path / "run"), *flags.split()]) == 0
    config = json.loads((tmp_path / "run" / "config.json").read_text())
    kept = config["settings"]
    expected = {"batch_tokens": 512, "bias_correction": False, "constraints": True, "lower_case": False}
    expected["word_case"] = True
    assert RunFolder(tmp_path / "run").read_config().config.flat().items() >= expected.items()
    del expected["constraints"]  # the default
    assert {name: kept[name] for name in expected} == expected
    assert config["data"]["sources"]["train"] == str(tmp_path / "train.conll")
    assert "macro" in capsys.readouterr().out


@pytest.mark.slow
def test_a_tagger_takes_the_recipes_and_the_bert_of_another_tagger(run, tmp_path):
    """With hardly a learning rate the BERT is that of the other run; a limit, steps and layers are those asked for."""
    changes = {"epochs": None, "learning_rate": 1e-12, "limit": 24, "steps": 3, "schedule": "constant"}
    settings = Settings(**{**QUICK, **changes}, bert=str(run), read_layers="all", layer_pooling="weighted")
    train_tagger(settings, **PARTS, out=tmp_path / "run")
    before, after = (
        {variable.path: ops.convert_to_numpy(variable) for variable in load_tagger(path).model.weights}
        for path in (run, tmp_path / "run")
    )
    shared = [path for path in after if path.startswith(("Embedding-", "Transformer-"))]
    assert len(shared) > 30 and "Layers/layer_weights" in after
    for path in shared:
        np.testing.assert_allclose(after[path], before[path], atol=1e-7)
    assert np.abs(after["Emissions/kernel"] - before["Emissions/kernel"]).max() > 0.01
    log = (tmp_path / "run" / "log.csv").read_text().splitlines()
    assert len(log) == 1 + 2  # 24 sentences of one length are two batches: three steps are two epochs
