# SPDX-License-Identifier: Apache-2.0
"""Arrays in chunks as tensors over files."""

import numpy as np
import pytest

import palimpsest as ps

DATA = np.random.default_rng(2).normal(size=(7, 10, 6))


class Chunked:
    """An array in chunks that notes what is read of it."""

    def __init__(self, data, chunks):
        self.data, self.chunks, self.shape, self.dtype, self.reads = data, chunks, data.shape, data.dtype, []

    def __getitem__(self, place):
        self.reads.append(place)
        return self.data[place].copy()


@pytest.mark.parametrize("chunks", [(2, 3, 6), ((3, 4), (1, 9), (6,)), None, (100, 100, 100)])
def test_each_chunk_is_read_once(chunks, tmp_path):
    source = Chunked(DATA, chunks)
    tensor = ps.map_chunks(source, tmp_path / "a.npy")
    np.testing.assert_array_equal(tensor, DATA)
    seen = np.zeros(DATA.shape, int)
    for place in source.reads:
        seen[place] += 1
    assert seen.min() == seen.max() == 1
    assert len(source.reads) == {(2, 3, 6): 16, ((3, 4), (1, 9), (6,)): 4}.get(chunks, 1)
    np.testing.assert_array_equal(np.load(tmp_path / "a.npy"), DATA)
    assert [f.name for f in tmp_path.iterdir()] == ["a.npy"]


@pytest.mark.parametrize("data", [np.zeros((0, 3)), np.float32(2) * np.ones(()), np.arange(3, dtype=">i4"),
                                  np.ones((2, 2), complex)])
def test_any_shape_and_dtype(data, tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    import tempfile

    monkeypatch.setattr(tempfile, "tempdir", None)
    tensor = ps.map_chunks(Chunked(data, None if data.ndim == 0 else (2,) * data.ndim))
    np.testing.assert_array_equal(tensor, data)
    assert tensor.dtype.name == data.dtype.newbyteorder("=").name and not list(tmp_path.iterdir())
    assert ps.map_chunks(data, dtype="float32").dtype == ps.float32 if data.dtype.kind != "c" else True


def test_a_failure_leaves_no_file(tmp_path):
    class Broken(Chunked):
        def __getitem__(self, place):
            if len(self.reads) == 3:
                raise OSError("the disk is gone")
            return super().__getitem__(place)

    (tmp_path / "a.npy").write_text("before")
    with pytest.raises(OSError, match="the disk is gone"):
        ps.map_chunks(Broken(DATA, (2, 3, 6)), tmp_path / "a.npy")
    assert (tmp_path / "a.npy").read_text() == "before" and len(list(tmp_path.iterdir())) == 1
    with pytest.raises(TypeError, match=r"\[map_chunks\] source: got list"):
        ps.map_chunks([1, 2])


def apply_within(weight, x, budget):
    A = ps.split_to_budget(ps.Dense(weight, "CNK,K->CN"), x, budget).op
    with ps.MemoryScope() as memory:
        y = np.asarray(A(x))
    return y, memory.peak_bytes


def test_a_budget_streams_it(tmp_path):
    data = np.random.default_rng(3).normal(size=(64, 64, 128))
    x = np.ones(128)
    y, peak = apply_within(ps.map_chunks(Chunked(data, (8, 64, 128)), tmp_path / "a.npy"), x, "600k")
    np.testing.assert_allclose(y, data @ x)
    assert peak <= 600_000 < data.nbytes / 6
    with pytest.raises(ps.BudgetError):
        apply_within(ps.asarray(data), x, "600k")


@pytest.mark.extras
def test_zarr(tmp_path):
    zarr = pytest.importorskip("zarr")
    stored = zarr.create_array(str(tmp_path / "a.zarr"), shape=DATA.shape, chunks=(2, 5, 6), dtype="float64")
    stored[:] = DATA
    np.testing.assert_array_equal(ps.map_chunks(stored), DATA)


@pytest.mark.extras
def test_dask():
    array = pytest.importorskip("dask.array")
    lazy = array.from_array(DATA, chunks=((3, 4), 5, 6)) * 2
    np.testing.assert_array_equal(ps.map_chunks(lazy), 2 * DATA)
