"""kcrf.runs.exported: Exported files that are damaged, and the threads that run them."""

import json
import os
import shutil
from pathlib import Path

import pytest

onnxruntime = pytest.importorskip("onnxruntime")
onnx = pytest.importorskip("onnx")

from kcrf.runs import exported  # noqa: E402
from kcrf.taggers import WordSegmenter  # noqa: E402

ONNX = Path(__file__).parents[2] / "examples" / "segmenter.onnx"

BACKENDS = ["torch"]


def altered(path, **texts):
    """Writes the exported file that comes with kcrf with other metadata at a path."""
    proto = onnx.load(ONNX)
    metadata = {item.key: item.value for item in proto.metadata_props}
    del proto.metadata_props[:]
    onnx.helper.set_model_props(proto, {**metadata, **{name.replace("_", "."): text for name, text in texts.items()}})
    onnx.save(proto, path)
    return path


@pytest.mark.parametrize(
    ("texts", "reason"),
    [
        ({"config_json": "[]"}, "config.json: needs a JSON object. Received: "),
        (
            {"config_json": '{"format": "x"}'},
            "config.json: needs a number as its format. Received: 'x'",
        ),
        ({"config_json": json.dumps({"format": 99, "kcrf": "9.0"})}, "written by kcrf 9.0; please upgrade"),
        ({"vocabulary_json": "3"}, "vocabulary.json: needs a JSON object. Received: 3"),
        ({"transitions": "[[1, 2], [3]]"}, r"transitions: needs a matrix of 4 x 4. Received: \[\[1, 2\], \[3\]\]"),
        ({"transitions": "[[1, 2], [3, 4]]"}, "transitions: needs a matrix of 4 x 4"),
    ],
)
def test_damaged_metadata_are_named(texts, reason, tmp_path):
    with pytest.raises(ValueError, match=f"altered.onnx: .*{reason}"):
        WordSegmenter(altered(tmp_path / "altered.onnx", **texts))


def test_metadata_that_are_no_text_are_named(tmp_path):
    content = ONNX.read_bytes()
    at = content.index(b'"characters"')
    (tmp_path / "bytes.onnx").write_bytes(content[:at] + b"\xff" + content[at + 1 :])
    with pytest.raises(ValueError, match="bytes.onnx: has damaged metadata"):
        WordSegmenter(tmp_path / "bytes.onnx")


def test_the_reason_why_a_file_is_refused_is_not_cut_off(tmp_path):
    proto = onnx.load(ONNX)
    proto.ir_version = 99
    onnx.save(proto, tmp_path / "future.onnx")
    with pytest.raises(ValueError, match="future.onnx: .*Unsupported model IR version: 99"):
        WordSegmenter(tmp_path / "future.onnx")


def test_a_folder_may_have_the_ending_of_a_file_and_a_file_capitals(tmp_path):
    (tmp_path / "run.onnx").mkdir()
    (tmp_path / "run.onnx" / "config.json").write_text("{}")
    assert not exported.is_exported(tmp_path / "run.onnx")
    shutil.copy(ONNX, tmp_path / "MODEL.ONNX")
    assert WordSegmenter(tmp_path / "MODEL.ONNX").segment("今天天气真好") == ["今天", "天气", "真好"]


@pytest.mark.parametrize(("given", "capped"), [("1", 1), ("100000", None), ("²", None), ("-1", None), ("2,1", None)])
def test_there_are_not_more_threads_than_processors(given, capped, monkeypatch):
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    monkeypatch.setenv("OMP_NUM_THREADS", given)
    assert exported._threads() == (capped or available)
