"""Files of `torch.save`, read by torch's weights-only loader."""

import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from kcrf.checkpoints.raw_array import existing_file, read_weight_map

__all__ = ["open_torch"]


@dataclass
class _TorchArray:
    path: Path
    tensor: object
    checksum: int  # CRC-32 of the bytes of its storage; 0 where the file has none
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
    """Describes the arrays of a file of `torch.save`, or of those that a "pytorch_model.bin.index.json" lists.

    Returns:
        A dict from names to arrays that are read when asked for.

    Raises:
        ImportError: torch is not installed.
        ValueError: The file is corrupt, holds no tensors or more than tensors, or has compressed records.
    """
    if path.suffix == ".json":
        files = [existing_file(path.parent / part) for part in sorted(set(read_weight_map(path).values()))]
        return {name: entry for file in files for name, entry in open_torch(file).items()}
    torch = _torch()
    try:
        checksums = _record_checksums(path)
        stored = torch.load(path, map_location="cpu", weights_only=True, mmap=checksums is not None)
        tensors = _dense_tensors(stored)
    except Exception as error:  # torch raises anything from RuntimeError to KeyError on a broken file
        raise ValueError(
            f"{path}: not readable as weights, expected a file of torch.save, tensors only. "
            f"Received: {str(error).partition(chr(10))[0]}"
        ) from error
    if not tensors:
        raise ValueError(f"{path}: no tensors, expected a dict from names to tensors")
    checksums = _checksums_by_address(tensors.values(), checksums or [])
    return {
        name: _TorchArray(path, t, checksums.get(t.data_ptr(), 0), t.numel() * t.element_size(), tuple(t.shape))
        for name, t in tensors.items()
    }


def _dense_tensors(stored):
    """The tensors of what was saved, by name, detached: of a state dict, or of a dict that has one."""
    torch = _torch()
    stored = stored.get("state_dict", stored) if isinstance(stored, dict) else {}
    items = stored.items() if isinstance(stored, dict) else ()
    tensors = {str(name): tensor.detach() for name, tensor in items if isinstance(tensor, torch.Tensor)}
    for name, tensor in tensors.items():
        if tensor.layout != torch.strided or tensor.is_quantized or tensor.device.type != "cpu":
            raise ValueError(f"{name!r} is {tensor.layout} of {tensor.dtype}, expected dense arrays of numbers")
        if tensor.dtype != torch.bfloat16:
            tensor.new_empty(0).numpy()  # raises for types that NumPy lacks
    return tensors


def _record_checksums(path):
    """The (size, checksum) of each record that holds a tensor, in their order in the file. None for no zip archive.

    `torch.save` never compresses. A compressed record can be a thousand times larger than the file: it is refused.
    """
    with open(path, "rb") as file:
        if file.read(2) != b"PK":
            return None
    with zipfile.ZipFile(path) as archive:
        records = sorted(archive.infolist(), key=lambda record: record.header_offset)
        for record in records:
            if record.compress_type != zipfile.ZIP_STORED or record.compress_size != record.file_size:
                raise ValueError(f"the record {record.filename} is compressed, which torch.save never does")
        for record in records:
            if record.filename.endswith("data.pkl") and record.CRC:
                archive.read(record)  # compares the checksum
        return [(record.file_size, record.CRC) for record in records if "/data/" in record.filename]


def _checksums_by_address(tensors, checksums):
    """The checksum of each storage, by its address: a mapped file keeps its records in their order.

    Empty where the sizes of storages and records differ, as when tensors share a storage.
    """
    storages = {t.untyped_storage().data_ptr(): t.untyped_storage().nbytes() for t in tensors}
    addresses = sorted(storages)
    if [storages[address] for address in addresses] != [size for size, _ in checksums]:
        return {}
    return {address: checksum for address, (_, checksum) in zip(addresses, checksums)}
