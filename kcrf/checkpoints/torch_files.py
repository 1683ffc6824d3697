"""Files of `torch.save`, read by torch's weights-only loader."""

import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from kcrf.checkpoints.raw_array import existing, parsed_json

__all__ = ["open_torch"]


@dataclass
class _TorchArray:
    path: Path
    tensor: object
    checksum: int  # of the bytes of its storage; 0 = the file has none
    nbytes: int
    shape: tuple

    def read(self):
        if self.checksum:
            storage = self.tensor.untyped_storage()
            stored = self.tensor.new_empty(0).view(_torch().uint8).set_(storage).numpy()
            if zlib.crc32(stored) != self.checksum:
                raise ValueError(f"{self.path}: corrupt, the checksum of {storage.nbytes()} bytes of a tensor differs")
        tensor = self.tensor.float() if self.tensor.dtype == _torch().bfloat16 else self.tensor
        return np.array(tensor.numpy())


def _torch():
    try:
        import torch
    except ImportError:
        raise ImportError("A .bin file needs torch to be read: pip install kcrf[torch]") from None
    return torch


def open_torch(path):
    """The arrays of a file of `torch.save`, or of those that a "pytorch_model.bin.index.json" lists, by name."""
    if path.suffix == ".json":
        parts = parsed_json(path, path.read_bytes()).get("weight_map") or {}
        files = [existing(path.parent / str(part)) for part in sorted(set(parts.values()))]
        return {name: entry for file in files for name, entry in open_torch(file).items()}
    torch = _torch()
    try:
        checksums = _zip_checksums(path)
        stored = torch.load(path, map_location="cpu", weights_only=True, mmap=checksums is not None)
    except Exception as error:  # torch raises anything from RuntimeError to KeyError on a broken file
        raise ValueError(f"{path}: not readable as weights, expected a file of torch.save, tensors only") from error
    stored = stored.get("state_dict", stored) if isinstance(stored, dict) else {}
    tensors = {name: tensor.detach() for name, tensor in stored.items() if isinstance(tensor, torch.Tensor)}
    if not tensors:
        raise ValueError(f"{path}: no tensors, expected a dict from names to tensors")
    checksums = _by_storage(tensors.values(), checksums or [])
    return {
        name: _TorchArray(path, t, checksums.get(t.data_ptr(), 0), t.numel() * t.element_size(), tuple(t.shape))
        for name, t in tensors.items()
    }


def _zip_checksums(path):
    """(size, checksum) of the records that hold tensors, in their order in the file; None for an old file, no zip."""
    with open(path, "rb") as file:
        if file.read(2) != b"PK":
            return None
    with zipfile.ZipFile(path) as archive:
        records = sorted(archive.infolist(), key=lambda record: record.header_offset)
        for record in records:
            if record.filename.endswith("data.pkl") and record.CRC:
                archive.read(record)  # compares the checksum
        return [(record.file_size, record.CRC) for record in records if "/data/" in record.filename]


def _by_storage(tensors, checksums):
    """Checksums by address: a mapped file keeps its records in order. Empty where the two lists do not match."""
    storages = {t.untyped_storage().data_ptr(): t.untyped_storage().nbytes() for t in tensors}
    places = sorted(storages)
    if [storages[place] for place in places] != [size for size, _ in checksums]:
        return {}
    return {place: checksum for place, (_, checksum) in zip(places, checksums)}
