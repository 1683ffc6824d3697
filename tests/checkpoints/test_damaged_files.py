"""Tests of kcrf.checkpoints.

Damaged and crafted checkpoints: refused by name, or read right; never another error, a crash, or all memory.
"""

import json
import shutil
import sys
import tempfile
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pytest
from bundle_writer import ARRAYS, block, bundle_parts, field, same, varint, write_bundle, write_index
from conftest import few

from kcrf.checkpoints import open_checkpoint, write_safetensors

BACKENDS = ["torch"]


def damaged(data, seed):
    """The same bytes cut short, or with one to three bits flipped."""
    rng = np.random.default_rng(seed)
    if seed % 3 == 0:
        return data[: rng.integers(0, len(data))]
    data = bytearray(data)
    for place in rng.integers(0, len(data), 1 + seed % 3):
        data[place] ^= 1 << int(rng.integers(0, 8))
    return bytes(data)


def read_all(path):
    """All arrays, or the ValueError that refuses the file."""
    try:
        checkpoint = open_checkpoint(path)
        return {name: checkpoint[name] for name in checkpoint}
    except (ValueError, FileNotFoundError) as error:
        assert str(Path(path).parent) in str(error), error
        return error


@pytest.mark.parametrize("suffix", [".index", ".data-00000-of-00001"])
def test_no_damage_to_a_bundle_ever_gives_other_numbers(suffix, monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorflow", None)
    with tempfile.TemporaryDirectory() as name:
        prefix = Path(name) / "x"
        write_bundle(prefix, ARRAYS)
        data = Path(f"{prefix}{suffix}").read_bytes()
        refused = 0
        for seed in range(600):
            Path(f"{prefix}{suffix}").write_bytes(damaged(data, seed))
            got = read_all(prefix)
            refused += isinstance(got, Exception)
            if isinstance(got, dict):  # unused bytes of the footer, or two flips that met
                same(Shaped(got), ARRAYS)
        assert refused > 500


class Shaped(dict):
    def shape(self, name):
        return self[name].shape


def test_damage_to_safetensors_is_refused_or_changes_numbers_alone_never_the_rest():
    """The format has no checksum: flipped data is data. Cut files and headers that do not add up are refused."""
    with tempfile.TemporaryDirectory() as name:
        file = Path(name) / "x.safetensors"
        write_safetensors(file, ARRAYS)
        data = file.read_bytes()
        for seed in range(600):
            file.write_bytes(damaged(data, seed))
            got = read_all(file)
            assert isinstance(got, Exception) or seed % 3
            if isinstance(got, dict):
                assert sum(array.nbytes for array in got.values()) == sum(array.nbytes for array in ARRAYS.values())


def test_damage_to_a_torch_file_never_gives_other_numbers():
    torch = pytest.importorskip("torch")
    with tempfile.TemporaryDirectory() as name:
        file = Path(name) / "x.bin"
        arrays = {"a": np.arange(40, dtype="float32"), "b": np.ones((3, 5)), "c": np.arange(7)}
        torch.save({key: torch.from_numpy(array) for key, array in arrays.items()}, file)
        data, refused = file.read_bytes(), 0
        for seed in range(300):
            file.write_bytes(damaged(data, seed))
            got = read_all(file)
            refused += isinstance(got, Exception)
            if isinstance(got, dict):
                same(Shaped(got), arrays)
        assert refused > 150


def test_a_checkpoint_cut_after_it_was_opened_is_an_error_and_no_crash(tmp_path):
    write_bundle(tmp_path / "x", ARRAYS)
    checkpoint = open_checkpoint(tmp_path / "x")
    (tmp_path / "x.data-00000-of-00001").write_bytes(b"12345")
    with pytest.raises(ValueError, match="x.data-00000-of-00001: truncated, expected at least"):
        checkpoint["bert/encoder/layer_0/output/dense/kernel"]
    shutil.copy(tmp_path / "x.index", tmp_path / "y.index")
    (tmp_path / "y.data-00000-of-00001").write_bytes(b"12345")
    with pytest.raises(ValueError, match="y.data-00000-of-00001: truncated, expected at least .* Received: 5 bytes"):
        open_checkpoint(tmp_path / "y")


# ---- Crafted files: every checksum is right, what they say is not


CUT_OFF = bytes.fromhex("08631205")  # data type 99, and a shape of 5 bytes that are not there


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        (CUT_OFF, "a field of 5 bytes that ends after its message"),
        (field(1, 99), "data type 99"),
        (field(1, 1) + field(2, field(2, field(1, 2**63))), "a shape of 1 dimensions"),
        (field(1, 1) + field(2, field(2, field(1, 2**40)) * 2), "a shape of 2 dimensions"),
        (field(1, 1) + field(2, field(2, b"") * 255), "a shape of 255 dimensions"),
        (field(1, 1) + field(2, field(2, field(2, b"\xff"))), "invalid start byte"),
        (field(1, 1) + field(2, field(3, 1)), "a shape of 0 dimensions"),
        (field(1, 1) + field(3, b"ab"), "field 3 occurs twice, or with wire type 2"),
        (field(1, 1) + field(5, b"ab"), "field 5 occurs twice, or with wire type 2"),
        (field(1, 1) + field(1, 1), "field 1 occurs twice"),
        (field(1, 1) + varint(6 << 3 | 5) + b"ab", "a field of 4 bytes that ends after its message"),
        (field(1, 1) + varint(9 << 3 | 3), "unknown wire type 3"),
        (field(1, 1) + field(0, 1), "no field can have the number 0"),
        (field(1, 1) + b"\x20" + b"\xff" * 10 + b"\1", "a number of more than 64 bits"),
    ],
)
def test_malformed_entries_are_refused(tmp_path, monkeypatch, entry, message):
    pairs, data = bundle_parts(ARRAYS)
    write_index(tmp_path / "x", [*pairs, (b"x", entry)])
    (tmp_path / "x.data-00000-of-00001").write_bytes(data)
    monkeypatch.setitem(sys.modules, "tensorflow", None)
    with pytest.raises(ValueError, match=f"x.index: corrupt, .*{message}"):
        open_checkpoint(tmp_path / "x")


@pytest.mark.parametrize("header", [field(1, b"ab"), field(1, 1) + field(2, b"a"), field(1, 0), b"\x08", b""])
def test_malformed_headers_of_a_bundle_are_refused(tmp_path, header):
    pairs, _ = bundle_parts(ARRAYS)
    write_index(tmp_path / "x", [(b"", header), *pairs[1:]])
    with pytest.raises(ValueError, match=r"x.index: (corrupt|no header), expected"):
        open_checkpoint(tmp_path / "x")


def test_a_data_file_that_is_not_among_those_counted_is_refused(tmp_path):
    write_index(tmp_path / "x", [(b"", field(1, 2)), (b"x", field(1, 1) + field(3, 2) + field(5, 4))])
    with pytest.raises(ValueError, match="x.index: 'x' is in data file 2, expected one of 2"):
        open_checkpoint(tmp_path / "x")


ENTRY = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}


@pytest.mark.parametrize(
    "change",
    [
        {"dtype": ["F32"]},
        {"data_offsets": [0, float("inf")]},
        {"data_offsets": [0, 8.0]},
        {"data_offsets": [0, 8, 8]},
        {"data_offsets": 8},
        {"shape": [float("inf")]},
        {"shape": [True, 2]},
        {"shape": "2"},
        {"shape": [0, 2**62], "data_offsets": [0, 0]},
        {"shape": [1] * 99 + [2]},
    ],
)
def test_malformed_headers_of_safetensors_are_refused(tmp_path, change):
    text = json.dumps({"x": {**ENTRY, **change}}).encode()
    (tmp_path / "x.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + bytes(8))
    with pytest.raises(ValueError, match="x.safetensors: (truncated or corrupt|'x' is too large)"):
        open_checkpoint(tmp_path / "x.safetensors")


@pytest.mark.parametrize("name", ["model.safetensors.index.json", "pytorch_model.bin.index.json"])
@pytest.mark.parametrize("parts", [[1], "x", None, {"x": {}}, {"x": ["a"]}, {"x": 3}, {"x": "../a"}, {"x": ""}])
def test_malformed_weight_maps_are_refused(tmp_path, name, parts):
    (tmp_path / name).write_text(json.dumps({"weight_map": parts}))
    with pytest.raises(ValueError, match=f"{name}: .*'weight_map'"):
        open_checkpoint(tmp_path / name)


@pytest.mark.parametrize("part", ["a\0b", "a" * 300, "\ud800", "absent"])
def test_names_that_no_file_has_are_missing_files(tmp_path, part):
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"x": part}}))
    with pytest.raises(FileNotFoundError, match="no such file, expected a part of the checkpoint"):
        open_checkpoint(tmp_path)


def rewritten(path, new, compression, records=()):
    """Copies a zip archive of `torch.save` with other contents of its `data.pkl`, and of further records."""
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(new, "w", compression) as archive:
        for record in old.infolist():
            contents = dict(records).get(record.filename.rpartition("/")[2], old.read(record))
            archive.writestr(record.filename, contents)


def test_an_index_cannot_fill_memory_with_keys_that_share_prefixes(tmp_path):
    """3,000 keys of 1 to 3,000 bytes: 4.5 MB in a file of 18 kB, and 1,000 times as much in one of 1 MB."""
    pairs = [(b"a" * size, b"") for size in range(1, 3000)]
    write_index(tmp_path / "x", pairs, blocks=1, change=lambda _: block(pairs, len(pairs)))
    with pytest.raises(ValueError, match="x.index: corrupt, expected keys of at most 16 times the size of the file"):
        open_checkpoint(tmp_path / "x")


def test_an_index_cannot_take_hours_by_naming_one_block_again_and_again(tmp_path):
    pairs, _ = bundle_parts(ARRAYS)
    write_index(tmp_path / "x", pairs, blocks=1, repeats=2)
    with pytest.raises(ValueError, match="x.index: corrupt, expected a block after byte .* Received: one at byte 0"):
        open_checkpoint(tmp_path / "x")


def test_a_torch_file_cannot_fill_memory_by_repeating_a_number(tmp_path):
    torch = pytest.importorskip("torch")
    torch.save({"a": torch.ones(1).expand(1 << 20, 1 << 10)}, tmp_path / "x.bin")
    assert (tmp_path / "x.bin").stat().st_size < 1 << 12
    with pytest.raises(ValueError, match="x.bin: not readable as weights.* 'a' repeats its numbers"):
        open_checkpoint(tmp_path / "x.bin")


@pytest.mark.slow
def test_a_torch_file_cannot_fill_memory(tmp_path):
    """256 MiB of zeros are 256 KiB compressed; `torch.save` never compresses."""
    torch = pytest.importorskip("torch")
    torch.save({"a": torch.ones(2)}, tmp_path / "x.bin")
    rewritten(tmp_path / "x.bin", tmp_path / "bomb.bin", zipfile.ZIP_DEFLATED, {"data.pkl": bytes(1 << 28)}.items())
    assert (tmp_path / "bomb.bin").stat().st_size < 1 << 19
    tracemalloc.start()
    try:
        with pytest.raises(
            ValueError, match="bomb.bin: not readable as weights.* is compressed, which torch.save never"
        ):
            open_checkpoint(tmp_path / "bomb.bin")
        assert tracemalloc.get_traced_memory()[1] < 1 << 22
    finally:
        tracemalloc.stop()


def test_torch_files_with_something_else_than_dense_tensors_are_refused(tmp_path):
    torch = pytest.importorskip("torch")
    file = tmp_path / "x.bin"
    torch.save({"a": torch.eye(2).to_sparse()}, file)
    with pytest.raises(
        ValueError, match="x.bin: not readable .*'a' is torch.sparse_coo of torch.float32, expected dense"
    ):
        open_checkpoint(file)
    torch.save({"a": torch.ones(2).to(torch.float8_e5m2)}, file)
    with pytest.raises(ValueError, match="x.bin: not readable .*Float8_e5m2"):
        open_checkpoint(file)
    torch.save({"state_dict": [torch.ones(2)]}, file)
    with pytest.raises(ValueError, match="x.bin: no tensors"):
        open_checkpoint(file)


# ---- Fuzzing: thousands of changes, with checksums that fit. 500 of each format here, 10,000 in the long suite


ODD_BYTES = [b"", b"\0", b"\1", b"\5", b"\x7f", b"\x80", b"\xff", b"\x12", b"\x3a", b"\x3a\0", b"\xff" * 9 + b"\1"]
ODD_VALUES = [None, True, -1, 1.5, float("inf"), 2**31, 2**62, 2**63, 10**30, "", "F32", [], [1] * 100, {}, [[]], "\0"]
MANY = few(500, 10_000, rest="slow")


def changed(data, rng):
    """The same bytes with a few bits flipped, or a piece cut out, repeated or put in."""
    data = bytearray(data)
    for _ in range(rng.integers(1, 4)):
        start = int(rng.integers(0, len(data) + 1))
        end = min(len(data), start + int(rng.integers(0, 9)))
        way = rng.integers(0, 4)
        if way == 0 and start < len(data):
            data[start] ^= 1 << int(rng.integers(0, 8))
        elif way == 1:
            del data[start:end]
        elif way == 2:
            data[start:start] = data[start:end]
        else:
            data[start : end if rng.integers(0, 2) else start] = ODD_BYTES[rng.integers(0, len(ODD_BYTES))]
    return bytes(data)


@pytest.mark.parametrize("count", MANY)
def test_no_crafted_bundle_does_more_than_being_refused(count, tmp_path):
    pairs, data = bundle_parts(ARRAYS)
    rng, prefix, refused = np.random.default_rng(0), tmp_path / "x", 0
    (tmp_path / "x.data-00000-of-00001").write_bytes(data)
    for number in range(count):
        present = list(pairs)
        if number % 4:
            at = int(rng.integers(0, len(pairs)))
            present[at] = (present[at][0], changed(present[at][1], rng))
            write_index(prefix, present)
        else:
            write_index(prefix, present, change=lambda contents: changed(contents, rng))
        got = read_all(prefix)
        refused += isinstance(got, Exception)
        assert isinstance(got, Exception) or sum(array.nbytes for array in got.values()) <= len(data) * len(pairs)
    assert count / 2 < refused < count


@pytest.mark.parametrize("count", MANY)
def test_no_crafted_safetensors_does_more_than_being_refused(count, tmp_path):
    rng = np.random.default_rng(0)
    header = {
        name: {"dtype": "F32", "shape": [2, 3], "data_offsets": [24 * i, 24 * i + 24]} for i, name in enumerate("ab")
    }
    file = tmp_path / "x.safetensors"
    for number in range(count):
        text = json.dumps(header)
        if number % 2:
            text = json.dumps(with_odd_value(json.loads(text), rng))
        text = text.encode() if number % 2 else changed(text.encode(), rng)
        file.write_bytes(len(text).to_bytes(8, "little") + text + bytes(48))
        got = read_all(file)
        assert isinstance(got, Exception) or sum(array.nbytes for array in got.values()) == 48


def with_odd_value(header, rng):
    """A header in which one thing, at any depth, is replaced."""
    entry = header["ab"[rng.integers(0, 2)]]
    value = ODD_VALUES[rng.integers(0, len(ODD_VALUES))]
    key = ["dtype", "shape", "data_offsets"][rng.integers(0, 3)]
    if rng.integers(0, 2) and key != "dtype":
        entry[key][rng.integers(0, 2)] = value
    else:
        entry[key] = value
    return header


@pytest.mark.parametrize("count", MANY)
def test_no_crafted_torch_file_does_more_than_being_refused(count, tmp_path):
    torch = pytest.importorskip("torch")
    rng, original, file = np.random.default_rng(0), tmp_path / "original.bin", tmp_path / "x.bin"
    torch.save({"a": torch.arange(40.0), "b": torch.ones(3, 5).bfloat16(), "c": torch.arange(7)}, original)
    with zipfile.ZipFile(original) as archive:
        pickled = archive.read(next(name for name in archive.namelist() if name.endswith("data.pkl")))
    refused = 0
    for number in range(count):
        if number % 4:
            compression = zipfile.ZIP_DEFLATED if number % 16 == 1 else zipfile.ZIP_STORED
            rewritten(original, file, compression, {"data.pkl": changed(pickled, rng)}.items())
        else:
            file.write_bytes(changed(original.read_bytes(), rng))
        got = read_all(file)
        refused += isinstance(got, Exception)
        assert isinstance(got, Exception) or sum(array.nbytes for array in got.values()) <= 1 << 16
    assert refused > count / 2
