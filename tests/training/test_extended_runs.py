"""Tests of kcrf.training.linear, kcrf.training.stages.old_labels.

kcrf train --extend: new types from sentences that mark them alone, without forgetting those of the old model.
"""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from oracles import grown_counts

from kcrf.backend import ops
from kcrf.commands.main import main
from kcrf.corpora import Sentence, load_mini
from kcrf.corpora.entities import sentence_line
from kcrf.distillation import SoftTags
from kcrf.layers import ConditionalRandomField
from kcrf.linear import LinearModel
from kcrf.metrics import entity_scores
from kcrf.models import build_transformer_model, save_pretrained
from kcrf.networks.linear_networks import LinearTaggingNetwork
from kcrf.readers.vocabulary import fold
from kcrf.runs import RunFolder, SettingError, Settings
from kcrf.runs.extension import extended_settings
from kcrf.runs.names import LINEAR, TEACHER
from kcrf.taggers import EntityRecognizer, load_tagger
from kcrf.taggers.constraints import allowed_tags
from kcrf.tags import bio, bioes
from kcrf.training import linear as linear_training
from kcrf.training import resume_tagger, train_tagger
from kcrf.training.stages.old_labels import constraints_of_old, spans_in_units, with_new_types

BACKENDS = ["torch"]
CORPUS = load_mini("ner")
OLD, NEW = ("LOC", "PER"), ("ORG",)
TINY = {"width": 16, "depth": 1, "character_width": 8, "bigram_width": 8, "batch_size": 16}


def with_types(sentences, types):
    return [replace(s, spans=[span for span in s.spans if span[2] in types]) for s in sentences]


HALF = len(CORPUS.train) // 2
OLD_PARTS = with_types(CORPUS.train[:HALF], OLD), with_types(CORPUS.valid, OLD)
NEW_PARTS = with_types(CORPUS.train[HALF:], NEW), with_types(CORPUS.valid, NEW)
FEW = [part[:40] for part in NEW_PARTS]  # where no score is looked at


def f_of(run, types):
    predicted = load_tagger(run).decoder.spans_of(CORPUS.test)
    pairs = zip(CORPUS.test, predicted, strict=True)
    rows = [[[span for span in row if span[2] in types] for row in (s.spans, p)] for s, p in pairs]
    return entity_scores(*zip(*rows, strict=True))["f"] or 0.0


@pytest.fixture(scope="module")
def linear(tmp_path_factory):
    path = tmp_path_factory.mktemp("runs") / "old"
    train_tagger(Settings(task="ner", encoder="linear", solver="adagrad"), *OLD_PARTS, out=path)
    return str(path)


@pytest.fixture(scope="module")
def neural(tmp_path_factory):
    path = tmp_path_factory.mktemp("runs") / "old"
    train_tagger(Settings(task="ner", epochs=2, learning_rate=0.01, linear_weight=0.0, **TINY), *OLD_PARTS, out=path)
    return str(path)


@pytest.mark.parametrize("scheme", [bio, bioes])
@pytest.mark.parametrize("window", [(0, 5), (1, 3), (2, 3), (0, 1)])
def test_soft_labels_are_the_paths_of_the_old_model_with_marked_entities_written_into_them(scheme, window):
    old, new = scheme(["LOC", "PER"]), scheme(["LOC", "PER", "ORG"])
    random = np.random.default_rng(0)
    first, count = window
    rows = random.normal(size=(5, len(old)))[first : first + count]
    transitions = np.where(old.allowed_transitions, random.normal(size=(len(old), len(old))), -np.inf)
    spans = [(1, 3, "ORG"), (4, 5, "PER")]  # persons are marked wherever they occur, locations are not
    allowed = allowed_tags(old, constraints_of_old(spans, old, {"ORG", "PER"}), first, count)
    expected_allowed = np.array([[label == "O" or label.endswith("LOC") for label in old.labels]] * 5)
    expected_allowed[1:3] = np.eye(len(old))[0]
    expected_allowed[4] = np.eye(len(old))[old.encode([(0, 1, "PER")], 1)[0]]
    if first + count > 4:
        expected_allowed[3] &= old.allowed_ends  # a marked entity follows
    assert_array_equal(allowed, expected_allowed[first : first + count])
    written = [None] * 5
    if first <= 2:
        stop = min(3, first + count)
        start = max(1, first)
        if start < stop:
            written[start:stop] = new.encode([(0, stop - start, "ORG")], stop - start)
    legal = allowed.copy()
    legal[0] &= old.allowed_starts
    legal[-1] &= old.allowed_ends
    written = written[first : first + count]
    tags, steps = grown_counts(rows, transitions, legal, [None] * count, len(old))
    for ours, theirs in zip(
        with_new_types((tags, steps), spans, first, old, new),
        grown_counts(rows, transitions, legal, written, len(new)),
        strict=True,
    ):
        assert_allclose(ours, theirs, atol=1e-12)


def test_an_entity_is_cut_to_the_units_that_it_covers():
    units = np.array([[0, 3], [3, 5], [6, 9]])
    assert spans_in_units(bio(["ORG"]), units, [(0, 5, "ORG"), (7, 9, "ORG")]) == [(0, 2, "ORG")]


@pytest.mark.parametrize("constraints", [True, False])
def test_a_linear_model_expects_what_the_same_crf_of_keras_expects(constraints):
    scheme, random = bio(["A", "B"]), np.random.default_rng(1)
    model = LinearModel(scheme, random.normal(size=(9, 5)).astype("float32"), random.normal(size=(5, 5)), constraints)
    model.scores[0] = 0
    features = random.integers(1, 9, size=(3, 6, 4))
    features[0, 4:], features[2, 1:] = 0, 0
    given = scheme if constraints else None
    teacher = LinearTaggingNetwork(model, 3.0).as_teacher(given, 2.0)
    allowed = np.zeros((3, 6, 5), "float32")
    allowed[1, 2, [1, 3]] = -np.inf
    _, scores = teacher.decode({"ngrams": features}, allowed, 3)
    tags, steps = teacher.expected_counts(scores, given, 2.0)
    layer = ConditionalRandomField(constraints=given)
    layer.build((None, None, 5))
    layer.set_weights([model.transitions])
    emissions = np.where(features[:, :, :1] > 0, model.emissions(features.reshape(-1, 4)).reshape(3, 6, 5), -np.inf)
    expected = layer.expected_counts(ops.convert_to_tensor((emissions + allowed).astype("float32")), given, 2.0)
    assert_allclose(tags, ops.convert_to_numpy(expected[0]), atol=1e-5)
    assert_allclose(steps, ops.convert_to_numpy(expected[1]), atol=1e-4)


def test_it_learns_the_new_type_and_keeps_the_old_ones(linear, tmp_path, capsys):
    train_tagger(Settings(extend=linear), *NEW_PARTS, out=tmp_path / "new")
    assert "valid: LOC, PER are not marked, so the predictions of" in capsys.readouterr().err
    train_tagger(Settings(extend=linear, marked="LOC,ORG,PER"), *NEW_PARTS, out=tmp_path / "forgetful")
    assert f_of(linear, NEW) == 0
    assert f_of(tmp_path / "new", NEW) > 0.6
    assert f_of(tmp_path / "new", OLD) > f_of(linear, OLD) - 0.02
    assert f_of(tmp_path / "forgetful", OLD) < 0.2
    assert load_tagger(tmp_path / "new").scheme.types == ("LOC", "PER", "ORG")
    assert RunFolder(tmp_path / "new").read_settings().extend == linear


@pytest.mark.slow
def test_a_network_learns_the_new_type_and_keeps_the_old_ones(neural, tmp_path):
    settings = Settings(extend=neural, epochs=3, learning_rate=0.01)
    train_tagger(settings, *NEW_PARTS, out=tmp_path / "new")
    config = RunFolder(tmp_path / "new").read_config().config
    assert (config.model.width, config.model.character_width, config.data.task) == (16, 8, "ner")
    assert f_of(tmp_path / "new", NEW) > 0.3
    assert f_of(tmp_path / "new", OLD) > f_of(neural, OLD) - 0.1  # of 89 entities; forgotten types would be below 0.2


@pytest.mark.slow
def test_training_begins_with_the_weights_of_the_run(neural, tmp_path):
    settings = Settings(extend=neural, epochs=1, learning_rate=1e-12, crf_lr_multiplier=7.0)
    tagger, _ = train_tagger(settings, *FEW, out=tmp_path / "new")
    old, text = load_tagger(neural), [sentence.text for sentence in [*CORPUS.test[:5], *FEW[0]]]
    assert_allclose(tagger.decoder.emissions(text)[:, :5], old.decoder.emissions(text), atol=1e-4)
    transitions = [ops.convert_to_numpy(each.crf.trans)[:5, :5] for each in (tagger, old)]
    assert_allclose(*transitions, atol=1e-4)
    known, grown = (each.reader.vocabulary.characters for each in (old, tagger))
    assert grown[: len(known)] == known
    assert {*grown[len(known) :]} == {fold(c) for c in "".join(text[5:])} - {*known} != set()


def test_what_is_new_in_the_vocabulary_begins_with_the_vectors_of_the_unknown(tmp_path):
    texts = ("Kim met Ada", "Acme met Kim")
    old, new = ([Sentence(text, [(0, text.find(" "), label)])] * 20 for text, label in zip(texts, ("PER", "ORG")))
    settings = Settings(task="ner", epochs=1, units="words", linear_weight=0.0, **TINY)
    before, _ = train_tagger(settings, old, old[:2], out=tmp_path / "old")
    extending = Settings(extend=str(tmp_path / "old"), epochs=1, learning_rate=1e-12)
    after, _ = train_tagger(extending, new, new[:2], out=tmp_path / "new")
    names = {"tokens": ("words", "acme"), "spelling": ("characters", "c"), "features": ("features", "-me")}
    for name, (kind, entry) in names.items():
        vocabularies = [getattr(tagger.reader.vocabulary, kind) for tagger in (before, after)]
        assert entry not in vocabularies[0] and entry in vocabularies[1], name
    assert_allclose(after.decoder.emissions(texts)[:, :3], before.decoder.emissions(texts), atol=1e-5)


@pytest.mark.slow
def test_it_is_resumed_to_the_same_weights(neural, tmp_path):
    class Interrupts:
        def __init__(self):
            from kcrf.backend import keras

            class Callback(keras.callbacks.Callback):
                def report(self, row):
                    raise KeyboardInterrupt

            self.callback = Callback()

    settings = Settings(extend=neural, epochs=2, learning_rate=0.01)
    parts = NEW_PARTS[0][:40], NEW_PARTS[1][:20]
    whole, _ = train_tagger(settings, *parts, out=tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        train_tagger(settings, *parts, out=tmp_path / "run", progress=Interrupts().callback)
    again, _ = resume_tagger(tmp_path / "run", *parts)
    for one, other in zip(whole.model.get_weights(), again.model.get_weights(), strict=True):
        assert_array_equal(one, other)


@pytest.mark.slow
def test_a_linear_run_is_resumed_to_the_same_weights(linear, tmp_path, monkeypatch):
    settings = Settings(extend=linear, epochs=3)
    train_tagger(settings, *FEW, out=tmp_path / "whole")
    save = linear_training._save

    def interrupted(*arguments):
        save(*arguments)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(linear_training, "_save", interrupted)
        train_tagger(settings, *FEW, out=tmp_path / "run")
    weights = Path(linear) / LINEAR
    kept = weights.read_bytes()
    (weights.parent / "notes.txt").write_text("of the user", encoding="utf-8")
    shutil.copy(tmp_path / "whole" / LINEAR, weights)
    try:
        with pytest.raises(ValueError, match="needs the scores and transitions of 5 tags. Received: .*7, 7"):
            resume_tagger(tmp_path / "run", *FEW)
    finally:
        weights.write_bytes(kept)
    resume_tagger(tmp_path / "run", *FEW)
    whole, run = (RunFolder(tmp_path / name).read_arrays(LINEAR) for name in ("whole", "run"))
    for name, array in whole.items():
        assert_array_equal(array, run[name])


def test_entities_that_the_words_of_the_old_model_cut_are_counted(tmp_path, capsys):
    old = [Sentence("Kim met Ada", [(0, 3, "PER"), (8, 11, "PER")])] * 8
    new = [Sentence("Acme-led talks", [(0, 4, "ORG")]), Sentence("Acme fell", [(0, 4, "ORG")])] * 4
    train_tagger(Settings(task="ner", encoder="linear", epochs=1, units="words"), old, old[:2], out=tmp_path / "old")
    capsys.readouterr()
    train_tagger(Settings(extend=str(tmp_path / "old"), epochs=1), new, new[:2], new, out=tmp_path / "new")
    notes = capsys.readouterr().err
    cut = "4 of 8 entities begin or end inside a word, such as 'Acme'"
    assert (
        f"train: {cut}: the tags there are taken as O or an old type; a new model of characters can find them" in notes
    )
    assert f"test: {cut}: they cannot be found, and count as missed" in notes


def test_scores_that_new_sentences_do_not_need_stay_as_they_were(linear, tmp_path):
    train_tagger(Settings(extend=linear, epochs=2), *FEW, out=tmp_path / "new")
    old, new = (load_tagger(run).network.model.scores for run in (linear, tmp_path / "new"))
    step = np.abs(new).max() / 127  # scores are kept as integers of 8 bits
    assert np.mean(np.abs(new[:, :5] - old) <= step) > 0.9


@pytest.mark.slow
def test_types_of_the_old_model_that_are_marked_too_are_taken_as_complete_unless_said(linear, tmp_path, capsys):
    both = with_types(CORPUS.train[HALF:], ("ORG", "PER")), CORPUS.valid
    settings = Settings(extend=linear, epochs=1)
    train_tagger(settings, *both, out=tmp_path / "both")
    assert "train: PER of" in capsys.readouterr().err
    arrays = {}
    for name, marked in (("complete", None), ("some", "ORG")):
        train_tagger(replace(settings, marked=marked), *both, out=tmp_path / name)
        arrays[name] = RunFolder(tmp_path / name).read_arrays(TEACHER)["tags"]  # (units, tags)
    persons = [bio(("LOC", "PER", "ORG")).labels.index(label) for label in ("B-PER", "I-PER")]
    units = np.concatenate([np.isin(range(len(s.text)), _places(s, "PER")) for s in both[0]])
    assert arrays["complete"][~units][:, persons].max() == 0
    assert arrays["some"][~units][:, persons].max() > 0.1
    for tags in arrays.values():
        assert_allclose(tags[units][:, persons].sum(axis=1), 1, atol=1e-6)
        assert_allclose(tags.sum(axis=1), 1, atol=1e-5)


def _places(sentence, label):
    return [i for start, end, of in sentence.spans if of == label for i in range(start, end)]


@pytest.mark.slow
def test_a_run_of_a_bert_is_extended_without_the_bert(tmp_path):
    vocab = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *sorted({c for s in CORPUS.train[:80] for c in s.text})]
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    bert = build_transformer_model(vocab_size=len(vocab), max_position=64, **sizes)
    save_pretrained(bert, tmp_path / "bert", vocab=vocab)
    settings = Settings(task="ner", bert=str(tmp_path / "bert"), epochs=1, batch_size=16)
    parts = [part[:32] for part in OLD_PARTS], [part[:32] for part in NEW_PARTS]
    train_tagger(settings, *parts[0], out=tmp_path / "old")
    shutil.rmtree(tmp_path / "bert")
    extended = Settings(extend=str(tmp_path / "old"), epochs=1, learning_rate=1e-12)
    tagger, _ = train_tagger(extended, *parts[1], out=tmp_path / "new")
    text = [sentence.text for sentence in CORPUS.test[:5]]
    assert_allclose(
        tagger.decoder.emissions(text)[:, :5], load_tagger(tmp_path / "old").decoder.emissions(text), atol=1e-4
    )


@pytest.mark.slow
def test_unknown_tags_of_new_sentences_are_those_of_the_old_model(linear, tmp_path, capsys):
    unknown = [replace(s, unknown=[] if s.spans or not s.text else [(0, len(s.text))]) for s in FEW[0]]
    for name, train in (("marked", FEW[0]), ("unknown", unknown)):
        train_tagger(Settings(extend=linear, epochs=1), train, FEW[1], out=tmp_path / name)
    assert "characters have unknown tags, taken as O or one of: LOC, PER" in capsys.readouterr().err
    one, other = (RunFolder(tmp_path / name).read_arrays(TEACHER) for name in ("marked", "unknown"))
    assert_array_equal(one["tags"], other["tags"])


def test_a_model_is_trained_further_on_sentences_that_mark_its_types(linear, tmp_path, capsys):
    more = [s for s in with_types(CORPUS.test, OLD) if s.spans]
    tagger, _ = train_tagger(Settings(extend=linear, epochs=3), more, OLD_PARTS[1][:40], out=tmp_path / "more")
    assert "train: no new type, so" in capsys.readouterr().err
    assert tagger.scheme.types == OLD
    tags = RunFolder(tmp_path / "more").read_arrays(TEACHER)["tags"]
    assert_allclose(tags.max(axis=1), 1, atol=1e-6)  # all types are marked, so the old model adds nothing
    assert load_tagger(tmp_path / "more").scores(more)["f"] > load_tagger(linear).scores(more)["f"]


@pytest.mark.parametrize(
    ("options", "train", "reason"),
    [
        ({"marked": "PER"}, NEW_PARTS[0], "`marked` must be names of LOC, PER, ORG, with the new types, ORG. Received"),
        ({"marked": "ORG,per"}, NEW_PARTS[0], "`marked` must be names of"),
        ({"types": ("ORG", "PER")}, NEW_PARTS[0], "`types` must begin with those of .*, LOC, PER. Received: ORG, PER"),
        ({"encoder": "cnn"}, NEW_PARTS[0], None),
    ],
)
def test_what_does_not_fit_is_refused(linear, tmp_path, options, train, reason):
    if reason is None:
        reason = "`encoder` must be 'linear', as in the model of `extend`. Received: encoder='cnn' and extend="
        options = {**options, "encoder": "cnn"}
    with pytest.raises(ValueError, match=reason):
        train_tagger(Settings(extend=linear, **options), train, NEW_PARTS[1], out=tmp_path / "new")
    assert not (tmp_path / "new").exists()


@pytest.mark.once
def test_options_of_the_kind_of_the_old_model_need_no_other_option(linear, tmp_path):
    for name, kind in (("alone", {}), ("with", {"encoder": "linear"})):
        settings = Settings(extend=linear, **kind, solver="adagrad", l1=0.02, epochs=1)
        train_tagger(settings, *FEW, out=tmp_path / name)
    alone, spelled_out = (RunFolder(tmp_path / name).read_arrays(LINEAR) for name in ("alone", "with"))
    assert RunFolder(tmp_path / "alone").read_config().config.optimizer.l1 == 0.02
    for name, array in alone.items():
        assert_array_equal(array, spelled_out[name])
    with pytest.raises(ValueError, match="`warmup` has no effect with encoder='linear'"):
        train_tagger(Settings(extend=linear, warmup=0.2), *FEW, out=tmp_path / "new")
    with pytest.raises(ValueError, match="`layerwise_decay` needs `bert`"):
        train_tagger(Settings(extend=linear, layerwise_decay=0.9), *FEW, out=tmp_path / "new")


def test_other_runs_are_refused(linear, tmp_path):
    words = load_mini()
    train_tagger(Settings(encoder="linear", epochs=1), words.train[:50], words.valid[:10], out=tmp_path / "words")
    with pytest.raises(ValueError, match="needs entity types: --task ner. Received: --task cws"):
        extended_settings({"extend": str(tmp_path / "words")})
    unfinished = shutil.copytree(linear, tmp_path / "unfinished")
    (unfinished / "scores.json").unlink()
    with pytest.raises(FileNotFoundError, match="scores.json"):
        extended_settings({"extend": str(unfinished)})
    with pytest.raises(ValueError, match="from the folder of its run. Received: a file"):
        extended_settings({"extend": f"{linear}/config.json"})
    with pytest.raises(SettingError, match="`extend` takes the place of `teacher`"):
        Settings(task="ner", extend=linear, teacher=linear)
    with pytest.raises(SettingError, match="`marked` needs `extend`"):
        Settings(task="ner", marked="ORG")


@pytest.mark.slow
def test_the_command_line(linear, tmp_path, capsys):
    files = {}
    for name, sentences in zip(("train", "valid"), FEW, strict=True):
        files[name] = tmp_path / f"{name}.jsonl"
        files[name].write_text("".join(f"{sentence_line(s)}\n" for s in sentences), encoding="utf-8")
    data = ["--train", str(files["train"]), "--valid", str(files["valid"])]
    command = ["train", "--extend", linear, *data, "--out", str(tmp_path / "new")]
    assert main([*command, "--task", "cws"]) != 0
    assert "--task must be 'ner', as in the model of --extend. Received: --task cws" in capsys.readouterr().err
    assert main([*command, "--encoder", "cnn"]) != 0
    assert "--encoder must be 'linear', as in the model of --extend" in capsys.readouterr().err
    assert main([*command, "--bert", str(tmp_path)]) != 0
    assert (
        "--bert contradicts --extend, whose model is used as it is and was trained without this option. Received: "
        f"--bert {tmp_path} and --extend {linear}" in capsys.readouterr().err
    )
    assert main(command) == 0
    assert main(["export", str(tmp_path / "new"), "--out", str(tmp_path / "new.npz")]) == 0
    text = CORPUS.test[0].text
    assert EntityRecognizer(tmp_path / "new.npz").recognize(text) == EntityRecognizer(tmp_path / "new").recognize(text)
    config = json.loads((tmp_path / "new" / "config.json").read_text(encoding="utf-8"))
    assert config["run"]["data"]["types"] == ["LOC", "PER", "ORG"]


@pytest.mark.slow
def test_a_linear_model_can_be_a_teacher(linear, tmp_path):
    settings = Settings(task="ner", encoder="linear", teacher=linear, teacher_weight=1.0)
    other = {"LOC": "PER", "PER": "LOC"}
    wrong = [replace(s, spans=[(a, b, other[label]) for a, b, label in s.spans]) for s in OLD_PARTS[0]]
    train_tagger(settings, wrong, OLD_PARTS[1], out=tmp_path / "student")  # the labels are not looked at
    assert f_of(tmp_path / "student", OLD) > 0.5  # near 0 with the labels


@pytest.mark.slow
def test_targets_have_room_for_all_tags(linear, tmp_path):
    train_tagger(Settings(extend=linear, epochs=1), *NEW_PARTS, out=tmp_path / "new")
    arrays = RunFolder(tmp_path / "new").read_arrays(TEACHER)
    soft = SoftTags([0] * len(arrays["tags"][:3]), arrays["tags"][:3], arrays["steps"][0])
    assert soft.padded(4).shape == (4 + 7, 1 + 7)


@pytest.mark.slow
def test_new_sentences_are_read_with_the_whole_lexicon_as_use_does(linear, tmp_path, monkeypatch):
    windows, fit = [], linear_training.linear_batches
    monkeypatch.setattr(linear_training, "linear_batches", lambda rows, size: windows.extend(rows) or fit(rows, size))
    train = [*OLD_PARTS[0][:20], *NEW_PARTS[0]]  # with sentences whose words are in the lexicon
    train_tagger(Settings(extend=linear, epochs=1), train, NEW_PARTS[1], out=tmp_path / "new")
    readings = load_tagger(linear).reader.read([sentence.text for sentence in train])
    expected = [window.inputs["ngrams"] for reading in readings for window in reading.windows]
    for (rows, _), same in zip(windows, expected, strict=True):
        assert_array_equal(rows, same)
