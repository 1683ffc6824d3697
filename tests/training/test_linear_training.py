"""kcrf.training.linear: kcrf train --encoder linear: the usual run folder, bit-exact resuming, and distillation."""

import json
from types import SimpleNamespace

import numpy as np
import pytest

from kcrf.commands.main import main
from kcrf.corpora import load_mini
from kcrf.linear import AdaGradTrainer, LBFGSTrainer, LinearModel, PooledTrainer, linear_batches
from kcrf.readers.ngrams import CHARACTER_TEMPLATES, LEXICON_TEMPLATES, CharacterNGrams
from kcrf.runs import DataFacts, DivergedError, RunFolder, Settings, resolve
from kcrf.runs.names import LINEAR, SCORES, STATE, WEIGHTS
from kcrf.taggers import EntityRecognizer, WordSegmenter
from kcrf.tags import bmes
from kcrf.tasks.segmentation import Segmentation
from kcrf.training import linear as training
from kcrf.training import resume_tagger, train_tagger

BACKENDS = ["torch"]


CORPUS = load_mini()
TEXTS = ["".join(words) for words in CORPUS.test]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    path = tmp_path_factory.mktemp("runs") / "words"
    _, scores = train_tagger(Settings(encoder="linear"), CORPUS.train[:300], CORPUS.valid, CORPUS.test, out=path)
    return path, scores


def test_it_is_a_run_as_any_other(run):
    path, scores = run
    assert scores["test"]["f"] > 0.8
    assert json.loads((path / SCORES).read_text()) == json.loads(json.dumps(scores))
    assert (path / LINEAR).is_file() and not (path / WEIGHTS).exists() and not (path / STATE).exists()
    rows = (path / "log.csv").read_text().splitlines()
    assert len(rows) == 2  # of one epoch, until it converged
    found = WordSegmenter(path).segment_batch(TEXTS)
    gold = sum(map(len, CORPUS.test))
    spans = [set(_ends(words)) & set(_ends(row)) for words, row in zip(CORPUS.test, found, strict=True)]
    assert sum(map(len, spans)) > 0.8 * gold


def _ends(words):
    ends = np.cumsum([0, *map(len, words)]).tolist()
    return zip(ends, ends[1:])


def test_training_in_steps_stops_early(tmp_path):
    settings = Settings(encoder="linear", solver="adagrad")
    _, scores = train_tagger(settings, CORPUS.train[:200], CORPUS.valid[:40], CORPUS.test, out=tmp_path / "run")
    assert scores["test"]["f"] > 0.75
    rows = (tmp_path / "run" / "log.csv").read_text().splitlines()
    assert 5 < len(rows) < 21


@pytest.mark.parametrize("l1", [0.01, 50.0])  # with the second all scores are 0
def test_the_state_of_adagrad_has_the_features_that_occurred_and_goes_on_from_them(l1):
    scheme, random = bmes(), np.random.default_rng(0)
    windows = [(random.choice([1, 5, 9, 30], (4, 3)), random.integers(0, 2, 4)) for _ in range(4)]
    batches = linear_batches(windows, 2)
    trainers = [AdaGradTrainer(LinearModel.new(scheme, 64, False), l1=l1) for _ in range(2)]
    trainers[0].train_batch(batches[0])
    state = {name: array.copy() for name, array in trainers[0].state.items()}
    assert state["rows"].tolist() == batches[0].buckets.tolist()
    assert state["scores"].shape == state["squares"].shape == (len(batches[0].buckets), 4)
    trainers[1].load_state(state)
    for trainer in trainers:
        trainer.train_batch(batches[1])
    np.testing.assert_array_equal(*(trainer.model.scores for trainer in trainers))
    np.testing.assert_array_equal(*(trainer.model.transitions for trainer in trainers))


@pytest.mark.parametrize("make", [AdaGradTrainer, LBFGSTrainer])
def test_progress_shows_the_loss_of_a_sentence_as_the_log_does(make):
    random, losses = np.random.default_rng(0), []
    windows = [(random.choice([1, 5, 9, 30], (4, 3)), np.array([0, 1, 3, 0])) for _ in range(8)]
    (batch,) = linear_batches(windows, 8)
    total = make(LinearModel.new(bmes(), 64, False)).train_batch(batch, lambda _, logs: losses.append(logs["loss"]))
    np.testing.assert_allclose(losses[-1], total / 8, rtol=1e-5)


@pytest.mark.slow
def test_penalties_make_scores_0_and_small(tmp_path):
    sizes = {}
    for name, settings in {"l1": {"l1": 1.0, "l2": 0.0}, "little": {"l1": 0.0, "l2": 0.001}, "l2": {"l2": 1.0}}.items():
        train_tagger(Settings(encoder="linear", **settings), CORPUS.train[:50], CORPUS.valid[:10], out=tmp_path / name)
        arrays = RunFolder(tmp_path / name).read_arrays(LINEAR)
        sizes[name] = np.count_nonzero(arrays["scores"]), float(np.abs(arrays["scores"]).max() * arrays["scale"])
    assert sizes["l1"][0] < sizes["little"][0] / 10
    assert sizes["l2"][1] < sizes["little"][1] / 2


@pytest.mark.slow
@pytest.mark.parametrize("solver", ["lbfgs", "adagrad"])
def test_a_run_that_is_resumed_ends_with_the_same_scores(tmp_path, monkeypatch, solver):
    settings = Settings(encoder="linear", epochs=3, solver=solver)
    parts = (CORPUS.train[:60], CORPUS.valid[:20])
    train_tagger(settings, *parts, out=tmp_path / "whole")
    save, calls = training._save, []

    def interrupted(*arguments):
        save(*arguments)
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(training, "_save", interrupted)
    with pytest.raises(KeyboardInterrupt):
        train_tagger(settings, *parts, out=tmp_path / "halves")
    resume_tagger(tmp_path / "halves", *parts)
    assert len(calls) == 3
    whole, halves = (RunFolder(tmp_path / name).read_arrays(LINEAR) for name in ("whole", "halves"))
    for name, array in whole.items():
        np.testing.assert_array_equal(array, halves[name])


@pytest.mark.slow
def test_entities_are_learned_from_the_command_line(tmp_path):
    from kcrf import corpora

    folder = corpora.__file__.rpartition("/")[0] + "/data"
    files = ["--train", f"{folder}/mini_ner_train.txt", "--valid", f"{folder}/mini_ner_valid.txt"]
    assert main(["train", *files, "--task", "ner", "--encoder", "linear", "--out", str(tmp_path / "run")]) == 0
    assert RunFolder(tmp_path / "run").read_config().config.model.encoder == "linear"
    sentences = load_mini("ner").test
    found = EntityRecognizer(tmp_path / "run").recognize_batch([sentence.text for sentence in sentences])
    right = sum((e.start, e.end, e.label) in sentence.spans for row, sentence in zip(found, sentences) for e in row)
    assert right > 0.6 * sum(len(sentence.spans) for sentence in sentences)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"width": 64}, "has no effect"),
        ({"batch_tokens": 64}, "has no effect with encoder='linear'"),
        ({"crf_lr_multiplier": 2.0}, "has no effect with encoder='linear'"),
        ({"teacher": "run", "teacher_temperature": 2.0}, "needs teacher_temperature=1"),
        ({"ngrams": False}, "needs ngrams=True"),
        ({"head": "softmax"}, "needs head='crf'"),
        ({"task": "classify"}, "cannot be used with task='classify'"),
        ({"solver": "lbfgs", "learning_rate": 0.1}, "has no effect with solver='lbfgs'"),
        ({"l2": 0.1, "batch_size": 8}, "needs l2=None"),
        ({"solver": "adagrad", "l2": 0.1}, "has no effect with solver='adagrad'"),
    ],
)
def test_settings_that_contradict_are_refused(options, reason):
    with pytest.raises(ValueError, match=reason):
        Settings(encoder="linear", **options)


def test_a_penalty_of_scores_is_refused_without_a_linear_model():
    with pytest.raises(ValueError, match="needs encoder='linear'"):
        Settings(l1=0.1)


@pytest.mark.parametrize("loss", [np.nan, np.inf])
def test_a_loss_that_is_not_finite_ends_the_run(loss, tmp_path, monkeypatch):
    monkeypatch.setattr(AdaGradTrainer, "train_batch", lambda self, batch, on_step=None: loss)
    settings = Settings(encoder="linear", solver="adagrad")
    with pytest.raises(DivergedError, match=f"needs a finite loss. Received: {loss} in epoch 1; use a lower learning"):
        train_tagger(settings, CORPUS.train[:20], CORPUS.valid[:10], out=tmp_path / "run")
    assert not (tmp_path / "run" / LINEAR).exists()


@pytest.mark.slow
def test_a_student_learns_from_the_tags_that_its_teacher_expects(tmp_path):
    """Without labels of its own, it approaches its teacher on text that only the teacher labels."""
    teacher = tmp_path / "teacher"
    small = {"epochs": 6, "width": 32, "depth": 1}
    train_tagger(Settings(**small), CORPUS.train, CORPUS.valid, out=teacher)
    few = CORPUS.train[:20]
    settings = {"encoder": "linear", "epochs": 8}
    alone, _ = train_tagger(Settings(**settings), few, CORPUS.valid, out=tmp_path / "alone")
    taught, _ = train_tagger(
        Settings(**settings, teacher=str(teacher), teacher_weight=1.0),
        few,
        CORPUS.valid,
        out=tmp_path / "taught",
        unlabeled=["".join(words) for words in CORPUS.train[20:]],
    )
    expected = WordSegmenter(teacher).segment_batch(TEXTS)
    agreement = []
    for name in ("alone", "taught"):
        found = WordSegmenter(tmp_path / name).segment_batch(TEXTS)
        agreement.append(sum(len(set(_ends(a)) & set(_ends(b))) for a, b in zip(expected, found, strict=True)))
    assert agreement[1] > 1.1 * agreement[0]


def trained_scores(out, **settings):
    train_tagger(Settings(encoder="linear", **settings), CORPUS.train[:60], CORPUS.valid[:10], out=out)
    arrays = RunFolder(out).read_arrays(LINEAR)
    return arrays["scores"] * arrays["scale"]


@pytest.mark.parametrize("weight", [0.25, 1.0])
def test_a_model_of_a_lexicon_is_averaged_with_one_without(weight, tmp_path, monkeypatch):
    monkeypatch.setattr(Segmentation, "without_lexicon", 0.0)
    own, without = trained_scores(tmp_path / "own"), trained_scores(tmp_path / "without", lexicon=False)
    monkeypatch.setattr(Segmentation, "without_lexicon", weight)
    average = trained_scores(tmp_path / "average")
    largest = max(np.abs(scores).max() for scores in (own, without, average))
    np.testing.assert_allclose(average, (1 - weight) * own + weight * without, atol=largest / 127)
    assert np.abs(own - without).max() > largest / 2


def test_the_state_of_a_version_without_the_average_is_refused(tmp_path, monkeypatch):
    parts = (CORPUS.train[:30], CORPUS.valid[:10])
    save = training._save

    def interrupted(folder, history, trainers, best):
        save(folder, history, {None: trainers[None]._trainer}, best)
        raise KeyboardInterrupt

    monkeypatch.setattr(training, "_save", interrupted)
    with pytest.raises(KeyboardInterrupt):
        train_tagger(Settings(encoder="linear", solver="adagrad"), *parts, out=tmp_path / "run")
    with pytest.raises(ValueError, match="needs a run that this version of kcrf began.*Received: a state of 5 arrays"):
        resume_tagger(tmp_path / "run", *parts)


@pytest.mark.parametrize(
    ("task", "templates", "kind"),
    [
        ("cws", CHARACTER_TEMPLATES + LEXICON_TEMPLATES, PooledTrainer),
        ("cws", CHARACTER_TEMPLATES, LBFGSTrainer),
        ("ner", CHARACTER_TEMPLATES + LEXICON_TEMPLATES, LBFGSTrainer),
    ],
)
def test_models_of_words_with_a_lexicon_are_averages(task, templates, kind):
    config = resolve(Settings(encoder="linear", task=task), DataFacts(types=("LOC",), items=10, windows=10))
    plan = SimpleNamespace(config=config, stages=[])
    assert isinstance(training._trainer(plan, CharacterNGrams(64, templates)), kind)
