"""Type hints: users' calls under mypy, and a hint on every argument and result of what they may call."""

import importlib
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

BACKENDS = ["jax"]
ROOT = Path(__file__).parents[1]
HINTED = [
    *("augmentation", "checkpoints", "corpora", "crf", "export"),
    *("layers", "metrics", "models", "monitor", "optimizers", "pretraining", "reports", "runs", "serving"),
    *("taggers", "tags", "tokenizers", "training"),
]
KERAS_CALLS = {  # methods that Keras calls, and gives no hints itself
    *("build", "call", "compute_loss", "compute_mask", "compute_output_shape", "compute_output_spec"),
    *("get_config", "from_config", "update_step", "on_train_begin", "on_epoch_end", "variable_serialization_spec"),
}


def callables(room):
    """The functions, methods and properties of the public names of a folder that users call."""
    module = importlib.import_module(f"kcrf.{room}")
    for name in module.__all__:
        thing = getattr(module, name)
        if name in ("Tagger", "load_tagger"):
            continue  # what training and the public classes use inside
        if not getattr(thing, "__module__", "").startswith(f"kcrf.{room}"):
            continue  # of Keras, or of another folder's
        if inspect.isfunction(thing):
            yield name, thing
        elif inspect.isclass(thing):
            for member, value in vars(thing).items():
                function = inspect.unwrap(getattr(value, "fget", getattr(value, "__func__", value)))
                is_public = not member.startswith("_") or member == "__init__"
                if (
                    is_public
                    and member not in KERAS_CALLS
                    and getattr(function, "__module__", None) == thing.__module__
                ):
                    yield f"{name}.{member}", function


@pytest.mark.parametrize("room", HINTED)
def test_every_argument_and_result_has_a_hint(room):
    bare, count = [], 0
    for name, function in callables(room):
        if not inspect.isfunction(function):
            continue
        signature = inspect.signature(function)
        arguments = [p for p in signature.parameters.values() if p.name not in ("self", "cls")]
        hints = [parameter.annotation for parameter in arguments] + [signature.return_annotation]
        bare += [name] if inspect.Signature.empty in hints else []
        count += 1
    assert bare == [] and count > 0


@pytest.mark.slow
def test_mypy_finds_wrong_calls_and_no_right_ones(tmp_path):
    options = ["--strict", "--no-error-summary", "--cache-dir", tmp_path, "--config-file", ROOT / "pyproject.toml"]
    command = [sys.executable, "-m", "mypy", *options, "tests/typed_calls.py"]
    done = subprocess.run(list(map(str, command)), cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
