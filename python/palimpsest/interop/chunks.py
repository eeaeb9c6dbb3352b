# SPDX-License-Identifier: Apache-2.0
"""Arrays that are stored in chunks, such as those of Zarr and Dask, as tensors over a file."""

import itertools
import os
import tempfile
from typing import Any, Iterator

import numpy as np

from palimpsest import _core

_AT_ONCE = 1 << 26  # bytes of an array without chunks that are read at once, and of the file that are mapped meanwhile


def _edges(source: Any) -> list[list[int]]:
    """Where the parts begin along each axis, and the end."""
    shape = tuple(int(n) for n in source.shape)
    chunks = getattr(source, "shards", None) or getattr(source, "chunks", None)
    if chunks is None:
        row = max(1, int(np.prod(shape[1:], dtype="int64")) * np.dtype(source.dtype).itemsize)
        chunks = (max(1, _AT_ONCE // row), *shape[1:])
    edges = []
    for n, along in zip(shape, chunks):
        starts = np.cumsum([0, *along]).tolist() if isinstance(along, tuple) else list(range(0, n, max(int(along), 1)))
        edges.append([*starts, n] if not starts or starts[-1] != n else starts)
    return edges


def _parts(source: Any) -> Iterator[tuple[slice, ...]]:
    return itertools.product(*([slice(a, b) for a, b in zip(e[:-1], e[1:])] for e in _edges(source)))


def map_chunks(source: Any, path: Any = None, dtype: Any = None) -> Any:
    """The tensor of an array in chunks; see palimpsest.map_chunks."""
    for name in ("shape", "dtype", "__getitem__"):
        if not hasattr(source, name):
            raise _core.errors.TypeError(
                f"[map_chunks] source: got {type(source).__name__}, expected an array with shape, dtype and slices.")
    shape = tuple(int(n) for n in source.shape)
    dtype = np.dtype(dtype or source.dtype).newbyteorder("=")
    if path is None:
        handle, part = tempfile.mkstemp(prefix="palimpsest-", suffix=".npy")
        os.close(handle)
    else:
        part = os.fspath(path) + ".part"
    try:
        out, written = np.lib.format.open_memmap(part, mode="w+", dtype=dtype, shape=shape), 0
        for place in _parts(source):
            block = np.asarray(source[place])
            out[place] = block
            written += block.nbytes
            if written >= _AT_ONCE:  # lets go of the pages that were written
                del out
                out, written = np.lib.format.open_memmap(part, mode="r+"), 0
        del out
        if path is None:
            return _core.map_npy(part)
        os.replace(part, path)
        return _core.map_npy(path)
    finally:
        if os.path.exists(part):
            os.unlink(part)  # the mapping keeps the bytes
