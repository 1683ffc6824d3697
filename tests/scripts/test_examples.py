"""The scripts in examples/ run as a user would run them."""

from pathlib import Path

import pytest
from forks import SCRIPT, run_python

from kcrf.backend import backend_name

BACKENDS = ["torch", "tensorflow", "jax"]

EXAMPLES = Path(__file__).parents[2] / "examples"
ARGUMENTS = {
    "basic_pretraining": ["run", "20"],
    "basic_segment": ["run", "1"],  # one epoch
    "basic_onnx_segment": [EXAMPLES / "segmenter.onnx", "今天天气真好"],
}
EXPECTED = {
    "basic_pretraining": "F1 on the test set: 0.",
    "basic_onnx_segment": "今天/0.",
    "basic_segment": "F1 on the test set: 0.",
    "basic_optimizer": "CRF",
    "task_sequence_labeling_ner_vectors": "with vectors: F1 on the test set: 0.",
    "basic_extract_features": "the largest difference is 0.0e+00",
    "basic_masked_language_model": "answered: 的花",
}
AT_LEAST = {  # what stands before the last number of the output, and how large that is
    "task_sequence_labeling_cws_crf": ("F1 on the test set: ", 0.7),
    "task_sequence_labeling_ner_crf": ("best F1: ", 0.9),
    "task_sentiment_albert": ("final accuracy: ", 0.9),
    "task_sentence_similarity_lcqmc": ("final accuracy: ", 0.9),
    "task_text_classification_few_samples": ("accuracy on new texts: ", 0.9),
    "task_sentiment_pet": ("classifier after PET: accuracy on new texts: ", 0.85),
    "task_segment_and_tag": ("F1 of entities: ", 0.6),
    "task_sequence_labeling_ner_augmentation": ("with copies: F1 on the test set: ", 0.4),
    "task_sequence_labeling_cws_distillation": ("with a teacher: F1 on the test set: ", 0.6),
    "task_bilstm_crf_two_learning_rates": ("F1: ", 0.8),
    "task_token_tagging": ("accuracy on the test set: ", 0.95),
    "task_words_with_classes": ("F1 of words with classes: ", 0.9),
    "task_segmentation_standards": ("mean F1 on the test set: ", 0.8),
    "task_partial_labels": ("missing labels as unknown: F1 on the test set: ", 0.75),
    "task_active_learning": ("suggested: 80 sentences: F1 on the test set: ", 0.5),
    "task_growing_labels": ("PER ", 0.6),
    "task_labeling_until": ("F1 on the test set: ", 0.7),
    "basic_linear_crf": ("F1 on the test set: ", 0.7),
}


SCRIPTS = sorted(path.stem for path in EXAMPLES.glob("*.py"))
# `make test` runs them on torch, the fastest to start, but for those that take longest. `make test-all` runs all of
# them on all backends.
LONGEST = {
    "basic_crf",
    "basic_extract_features",
    "basic_linear_crf",
    "basic_masked_language_model",
    "basic_optimizer",
    "basic_pretraining",
    "basic_segment",
    "task_active_learning",
    "task_bilstm_crf_two_learning_rates",
    "task_growing_labels",
    "task_labeling_until",
    "task_partial_labels",
    "task_segment_and_tag",
    "task_segmentation_standards",
    "task_sentence_similarity_lcqmc",
    "task_sentiment_albert",
    "task_sentiment_pet",
    "task_sequence_labeling_cws_crf",
    "task_sequence_labeling_cws_distillation",
    "task_sequence_labeling_ner_augmentation",
    "task_sequence_labeling_ner_crf",
    "task_sequence_labeling_ner_vectors",
    "task_text_classification_few_samples",
    "task_token_tagging",
    "task_words_with_classes",
    "tiny_checkpoint",
}
OWN_TESTS = {
    "segment_corpus_ray": "needs Ray, which test_segment_corpus_ray.py uses where it is installed",
    "train_distributed": "is started once for each process, by test_train_distributed.py",
}
HERE = set(SCRIPTS) - LONGEST - OWN_TESTS.keys() if backend_name() == "torch" else set()


@pytest.mark.once
@pytest.mark.parametrize("name", [name for name in AT_LEAST if "crf" in name])
def test_an_example_of_sequence_labelling_is_short(name):
    assert len((EXAMPLES / f"{name}.py").read_text(encoding="utf-8").splitlines()) < 120


@pytest.mark.once
def test_the_examples_take_a_checkpoint_folder_of_any_format(tmp_path, monkeypatch):
    torch = pytest.importorskip("torch")

    from kcrf.checkpoints import open_checkpoint

    monkeypatch.syspath_prepend(EXAMPLES)
    from tiny_checkpoint import checkpoint, tiny_checkpoint

    config, weights, vocab = tiny_checkpoint(["abc"], folder=tmp_path)
    arrays = dict(open_checkpoint(weights))
    torch.save({name: torch.from_numpy(array) for name, array in arrays.items()}, tmp_path / "pytorch_model.bin")
    weights.unlink()
    monkeypatch.setattr("sys.argv", ["script.py", str(tmp_path)])
    assert checkpoint([])[::2] == (config, vocab)
    assert sorted(open_checkpoint(checkpoint([])[1])) == sorted(arrays)


def marks(name):
    """Those of a script: what `make test` leaves out, and why a script does not run here."""
    left_out = [] if name in HERE else [pytest.mark.slow]
    return [*left_out, *([pytest.mark.skip(reason=OWN_TESTS[name])] if name in OWN_TESTS else [])]


@pytest.mark.parametrize("name", [pytest.param(name, marks=marks(name)) for name in SCRIPTS])
def test_an_example_runs_and_says_what_it_promises(name, tmp_path):
    command = [EXAMPLES / f"{name}.py", *ARGUMENTS.get(name, [])]
    run = run_python(SCRIPT, *command, cwd=tmp_path, COLUMNS="120", TMPDIR=str(tmp_path))
    assert run.returncode == 0, run.stderr
    assert EXPECTED.get(name, "").lower() in run.stdout.lower()
    before, least = AT_LEAST.get(name, ("", None))
    assert least is None or float(run.stdout.rpartition(before)[2].split()[0]) >= least, run.stdout
