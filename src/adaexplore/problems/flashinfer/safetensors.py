"""The place of a tensor in a safetensors file.

The format is a length of eight bytes, a JSON header of that length, and the bytes of the tensors.
The few lines here spare a dependency, and the GPU side reads the bytes with torch alone.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from adaexplore.core.errors import BadProblemError

_DTYPES = {
    **{"F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16"},
    **{"I64": "int64", "I32": "int32", "I16": "int16", "I8": "int8", "U8": "uint8"},
    **{"BOOL": "bool", "F8_E4M3": "float8_e4m3fn", "F8_E5M2": "float8_e5m2"},
}
_POINTER = b"version https://git-lfs"


class DataMissingError(BadProblemError):
    """Data of a workload that is not on this machine; it can be fetched, or stood in for.

    The message names the file by its path in the dataset: as a label it is part of the problem,
    which must not depend on the place of the dataset.
    """


@dataclass(frozen=True, slots=True)
class StoredTensor:
    """A tensor in a file: its bytes from `start` to `end`."""

    file: Path
    start: int
    end: int
    dtype: str
    shape: tuple[int, ...]


def find_tensor(root: Path, path: str, key: str) -> StoredTensor:
    """Return where a tensor is; `path` begins at `root`.

    Raises `DataMissingError` where the file is missing or a pointer of Git LFS, and
    `BadProblemError` for one without the tensor.
    """
    file = _found(root, path)
    with file.open("rb") as opened:
        head = opened.read(len(_POINTER))
        if head == _POINTER:
            raise DataMissingError(
                f"{path}: is a pointer of Git LFS, not the data; fetch it with git lfs pull"
            )
        opened.seek(0)
        length = int.from_bytes(opened.read(8), "little")
        try:
            header: dict[str, Any] = json.loads(opened.read(length))
            entry = header[key]
            start, end = entry["data_offsets"]
            place = (8 + length + start, 8 + length + end)
            return StoredTensor(file, *place, _DTYPES[entry["dtype"]], tuple(entry["shape"]))
        except (ValueError, KeyError, TypeError, OverflowError, MemoryError) as error:
            raise BadProblemError(
                f"{file}: is no safetensors file with a tensor {key}: {error}"
            ) from None


def _found(root: Path, path: str) -> Path:
    """Return the file; leading folders that the path has beyond the root are left out."""
    parts = Path(path).parts
    for start in range(len(parts)):
        file = root.joinpath(*parts[start:])
        if file.is_file():
            return file.resolve()
    raise DataMissingError(f"{path}: no such file; fetch the dataset's data")
