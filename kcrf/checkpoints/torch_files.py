"""Reads files of `torch.save` with torch's weights-only loader."""

import zipfile
from dataclasses import dataclass

import numpy as np

from kcrf.checkpoints.raw_array import CHUNK, existing_file, read_weight_map


@dataclass
class _TorchArray:
    tensor: object
    nbytes: int
    shape: tuple

    def read(self):
        tensor = self.tensor.float() if self.tensor.dtype == _torch().bfloat16 else self.tensor
        return np.array(tensor.numpy())


def _torch():
    try:
        import torch
    except ImportError:
        raise ImportError("A .bin file needs torch to be read: pip install kcrf[torch]") from None
    return torch


def open_torch(path):
    """Opens a file of `torch.save`, or the files that a "pytorch_model.bin.index.json" lists.

    Returns:
        A dict from names to arrays that are read when they are accessed.

    Raises:
        ImportError: torch is not installed.
        ValueError: The file is corrupt, has no tensors or other objects than tensors, or has compressed records.
    """
    if path.suffix == ".json":
        files = [existing_file(path.parent / part) for part in sorted(set(read_weight_map(path).values()))]
        return {name: entry for file in files for name, entry in open_torch(file).items()}
    torch = _torch()
    try:
        stored = torch.load(path, map_location="cpu", weights_only=True, mmap=_is_intact_archive(path))
        tensors = _dense_tensors(stored)
    except Exception as error:  # torch raises anything from RuntimeError to KeyError on a broken file
        raise ValueError(
            f"{path}: not readable as weights, expected a file of torch.save, tensors only. "
            f"Received: {str(error).partition(chr(10))[0]}"
        ) from error
    if not tensors:
        raise ValueError(f"{path}: no tensors, expected a dict from names to tensors")
    return {name: _TorchArray(t, t.numel() * t.element_size(), tuple(t.shape)) for name, t in tensors.items()}


def _dense_tensors(stored):
    """The detached tensors, by name, of a state dict, or of a dict that contains a state dict."""
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


def _is_intact_archive(path):
    """Whether a file is a zip archive with correct checksums, which torch does not check.

    `torch.save` has written zip archives since 1.6, and never compresses. Compressed records are refused: their content
    can be 1,000 times larger than the file.
    """
    with open(path, "rb") as file:
        if file.read(2) != b"PK":
            return False
    with zipfile.ZipFile(path) as archive:
        for record in archive.infolist():
            if record.compress_type != zipfile.ZIP_STORED or record.compress_size != record.file_size:
                raise ValueError(f"the record {record.filename} is compressed, which torch.save never does")
        for record in archive.infolist():
            if record.CRC:  # 0: written after torch.serialization.set_crc32_options(False)
                _compare_checksum(archive, record)
    return True


def _compare_checksum(archive, record):
    """Reads a record in chunks; zipfile raises an error if the checksum is wrong."""
    with archive.open(record) as file:
        while file.read(CHUNK):
            pass
