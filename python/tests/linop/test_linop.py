# SPDX-License-Identifier: Apache-2.0
"""One operator object: algebra, identity, parameters, copies, cuts, files."""

import copy
import gc
import multiprocessing
import pickle
import sys
import threading

import numpy as np
import pytest

import palimpsest as ps
import palimpsest.ops as pt

W = np.arange(12.0).reshape(3, 4)
X = np.arange(4.0)


def dense():
    return ps.Dense(W, "MN,N->M")


def test_application_to_any_array(window):
    A = dense()
    assert isinstance(A(X), np.ndarray) and np.array_equal(A(X), W @ X)
    assert isinstance(A(ps.asarray(X)), ps.Tensor)
    assert np.array_equal(A([0.0, 1.0, 2.0, 3.0]), W @ X)
    assert np.array_equal(A @ X[::-1], W @ X[::-1])
    x = ps.dvector("x")
    fixed = ps.tensor(float, (4,), "x")
    assert isinstance(A(fixed), ps.Variable)
    assert np.array_equal(ps.function([fixed], A(fixed) * 2)(X), 2 * W @ X)
    with ps.CopyStats() as copies:
        A(X), A.H(np.ones(3)), A.N(X)
    assert copies.copies + copies.import_copies == 0
    for layout in window.layouts:
        out = window(3, float, layout)
        A.apply(X, out)
        assert np.array_equal(out, W @ X)
    part = ps.Truncate("A", 6, 4, "A") @ ps.Roll("A", "A", [1])
    out = window(4)
    part.apply(np.arange(6.0), out)
    assert out.tolist() == [5, 0, 1, 2]
    with pytest.raises(ps.ShapeError, match="expected 4, got 5"):
        A(np.ones(5))
    with pytest.raises(ps.DTypeError, match="floating"):
        A(np.ones(4, int))
    with pytest.raises(TypeError, match="got NoneType, expected an array"):
        A(None)
    del x


def test_lists_become_data_of_the_operator():
    A, half = dense(), dense().to("float32")
    assert np.array_equal(A([0, 1, 2, 3]), W @ X) and np.array_equal(A @ [False, True, True, True], W @ (X > 0))
    for numbers in ([0, 1, 2, 3], [0.0, 1.0, 2.0, 3.0]):
        for B in (half, half | ps.Identity("M"), half.N):
            assert B(numbers).dtype == "float32" and np.array_equal(B(numbers), B(X.astype("float32")))
    assert half([0, 1j, 2, 3]).dtype == "complex64" and ps.Fft(1)([1, 2]).dtype == "complex128"
    assert ps.Identity("N").to("float32")([0.5]).dtype == "float64"
    out = np.zeros(3)
    A.apply([0, 1, 2, 3], out)
    assert np.array_equal(out, W @ X)
    for numbers, error in (([0.1, 0, 0, 0], ps.DTypeError), ([1e300, 0, 0, 0], OverflowError)):
        with pytest.raises(error, match="expected float32"):
            half(numbers)
    D = ps.Diagonal([1, 2, 3], "N")
    assert D.weight.dtype == "float64" and ps.Dense([[1, 2]], "MN,N->M")([1, 1]).tolist() == [3]
    assert ps.Parameter([1, 2]).dtype == "int64"
    D = D.to("float32")
    D.weight = [2, 4, 6]
    D.weight.set_value([2, 4, 8])
    assert D.weight.dtype == "float32" and D([1, 1, 1]).tolist() == [2, 4, 8]
    mask = [[True, False], [False, True]]
    assert ps.ArrayToBlocks((2, 2), (2, 2), mask=mask)(np.ones((2, 2))).size == 2


def test_algebra():
    A, B = dense(), ps.Diagonal(X, "N")
    for made, expected in [
        (A @ B, W @ np.diag(X)), (A * B, W @ np.diag(X)), (B | A, W @ np.diag(X)),
        (A.compose(B), W @ np.diag(X)), (A + A, 2 * W), (A - A, 0 * W), (-A, -W),
        (2 * A, 2 * W), (A * 2.0, 2 * W), (A / 2, W / 2), (1j * A, 1j * W),
        (np.float64(3) * A, 3 * W), (A * np.array(2.0), 2 * W), (B**2, np.diag(X**2)),
        (A.N, W.T @ W), (A.normal(ps.Diagonal(np.ones(3), "M")), W.T @ W), (A.H, W.T),
        (A.adjoint(), W.T),
    ]:
        np.testing.assert_allclose(made.matrix(), expected)
    np.testing.assert_allclose((1j * A).H.matrix(), -1j * W.T)
    for wrong, hint in ((lambda: A * X, "A @ x"), (lambda: X * A, "A.H @ x"),
                        (lambda: X @ A, "A.H @ x"), (lambda: A @ "x", "expected"),
                        (lambda: A * "x", "expected"), (lambda: A @ 42, "expected"),
                        (lambda: A + 1, "operator"), (lambda: A | X, "operator")):
        with pytest.raises(TypeError, match=hint):
            wrong()


def test_one_object():
    A, B = dense(), ps.Diagonal(X, "N")
    assert A.H is A.H and A.H.H is A and A.N is A.N
    chain = ps.Chain(B, A)
    assert chain[0] is B and chain[-1] is A and len(chain) == 2 and chain.linops[1] is A
    assert len(chain[0:1]) == 1
    assert A.copy() is not A and A.H.weight is A.weight
    assert copy.copy(A).weight is A.weight and copy.deepcopy(A).weight is not A.weight
    with pytest.raises(IndexError):
        chain[2]
    before = sys.getrefcount(A)
    A.H, A.N, A.weight
    gc.collect()
    assert sys.getrefcount(A) == before


def test_shapes_and_names():
    A = dense()
    assert A.ishape == ("N",) and A.oshape == "M" and A.ishape[0] == "N" and "N" in A.ishape
    assert A.size("N") == 4 and A.sizes == {"M": 3, "N": 4} and A.size("Q") is None
    assert A.matrix_size() == (3, 4) and A.output_shape((4,)) == (3,)
    assert repr(A.shape) == "(N) -> (M)" and len(A.dims) == 2
    H = A.H
    A.oshape = "Q"
    assert A.oshape == "Q" and H.ishape == "M" and A.H.ishape == ("Q",)
    assert A.renamed({"N": "Kx"}).ishape == "Kx" and A.ishape == "N"
    A.name = "sense"
    assert A.name == "sense" and A.named("b").name == "b"
    assert ps.Identity("N").with_sizes({"N": 3}).size("N") == 3
    assert ps.Dim("NxNy") == ("Nx", "Ny") and ps.ND("N") + 1 == "N1" and hash(ps.ND("N")) == hash("N")
    assert ps.Identity(["Nx", "Ny"]).ishape == ps.Dim("NxNy")
    with pytest.raises(ValueError, match="has no B"):
        A.ishape.index("B")
    with pytest.raises(ps.errors.ValueError):
        ps.Dim("(")


def test_parameters():
    A = dense()
    w = A.weight
    assert w.shape == (3, 4) and w.dtype == "float64" and np.array_equal(w, W)
    assert isinstance(w, ps.Variable) and np.sum(w) == W.sum()
    w.data.fill_(0)
    w.touch()
    assert not A(X).any() and not A.H(np.ones(3)).any() and W.any()
    w.set_value(W)
    assert np.array_equal(A(X), W @ X) and w.version >= 2
    w.modify(lambda t: t.fill_(1))
    assert A(X).tolist() == [6, 6, 6]
    H = A.H
    A.weight = np.zeros((3, 4))
    assert not A(X).any() and H(np.ones(3)).any()
    s = ps.shared(np.ones(4))
    D = ps.Diagonal(s, "N")
    s.set_value(2 * np.ones(4))
    assert D(X).tolist() == (2 * X).tolist()
    assert A.params["weight"] is A.weight
    with pytest.raises(AttributeError, match="did you mean weight"):
        A.wieght
    with pytest.raises(AttributeError, match="did you mean weight"):
        A.wieght = 1
    with pytest.raises(AttributeError):
        A.anything = 3
    with pytest.raises(AttributeError):
        A.dims = "N"
    with pytest.raises(ps.ShapeError):
        w.set_value(np.ones(3))
    half = ps.Parameter(np.array(0.5))
    np.testing.assert_allclose((half * dense()).matrix(), W / 2)
    assert ps.Parameter(W, trainable=True).trainable
    borrowed = np.ones(4)
    B = ps.Diagonal(ps.Parameter(borrowed, borrow=True), "N")
    borrowed[:] = 3
    B.weight.touch()
    assert B(np.ones(4)).tolist() == [3] * 4


def test_graphs_with_operators_and_gradients():
    A = dense()
    x = ps.tensor(float, (4,), "x")
    g = ps.function([x], ps.grad(pt.sum(A(x) ** 2) / 2, x))
    np.testing.assert_allclose(g(X), W.T @ W @ X)
    gw = ps.function([x], ps.grad(pt.sum(A(x)), A.weight))
    np.testing.assert_allclose(gw(X), np.tile(X, (3, 1)))


def test_copies_keep_sharing():
    A = dense()
    B, H = copy.deepcopy([A, A.H])
    B.weight.data.fill_(0)
    B.weight.touch()
    assert np.array_equal(A(X), W @ X)
    assert not B(X).any()


def test_pickles_and_files(tmp_path):
    A = ps.Chain(ps.Diagonal(X, "N"), dense())
    for protocol in range(2, 6):
        B = pickle.loads(pickle.dumps(A, protocol))
        assert np.array_equal(B(X), A(X)) and repr(B) == repr(A)
    ps.save(A, str(tmp_path / "A.pal"))
    assert np.array_equal(ps.load(str(tmp_path / "A.pal"))(X), A(X))
    assert pickle.loads(pickle.dumps(A.ishape)) == A.ishape
    with pytest.raises(OSError):
        ps.load(str(tmp_path / "nothing.pal"))
    with pytest.raises(ps.FormatError):
        ps.from_bytes(b"nonsense")


def apply_in_child(A, x):
    return A(x)


def test_operators_go_to_other_processes():
    A = dense()
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert np.array_equal(pool.apply(apply_in_child, (A, X)), W @ X)


def test_cutting():
    A = dense()
    part = A.split({"M": slice(0, 2)})
    np.testing.assert_allclose(part.matrix(), W[:2])
    np.testing.assert_allclose(A.split(A, {"M": slice(0, 2)}).matrix(), W[:2])
    tiles, inputs, outputs = ps.split_linop(A, {"M": 2, "N": 2})
    assert tiles.shape == (2, 2) and outputs[0, 0]["M"] == slice(0, 2)
    np.testing.assert_allclose(tiles[1, 0].matrix(), W[2:, :2])
    for spec in ({"M": 1}, ps.BatchSpec({"M": 1}), [{"M": 2}, {"N": 1}]):
        np.testing.assert_allclose(ps.create_batched_linop(A, spec).matrix(), W)
    with pytest.raises(ps.errors.ValueError):
        A.split({"M": slice(0, 9)})


def test_budgets():
    A = ps.Fft(2, batch="C")
    x = np.ones((8, 64, 64), "complex64")
    whole = A.plan(x).peak_bytes
    with ps.MemoryScope() as m:
        A(x)
    assert m.peak_bytes == whole
    big = ps.SumReduce("CKxKy", "KxKy", sizes={"C": 8}) @ ps.Fft(2, batch="C")
    smallest = ps.smallest_budget(big, x)
    fits = ps.split_to_budget(big, x, smallest)
    assert fits.peak_bytes <= smallest < big.plan(x).peak_bytes and fits.tiles > 1
    np.testing.assert_allclose(fits.op(x), big(x), rtol=1e-4, atol=1e-3)
    with pytest.raises(MemoryError):
        ps.split_to_budget(big, x, "1k")
    assert ps.operator_bytes(dense()) == 96


def test_budgets_of_operators_without_names():
    with ps.config.using(budget=10**9):
        assert ps.Sampling([[0, 1, 2]], 5)(np.ones((4, 5))).shape == (4, 3)
    A = ps.Dense(np.arange(24.0).reshape(4, 6))
    x = np.arange(6.0)
    expected = A.matrix() @ x
    for budget in (ps.smallest_budget(A, x), 10**6):
        with ps.config.using(budget=budget):
            np.testing.assert_allclose(A(x), expected)
    cut = ps.create_batched_linop(A, {"(1)": 1, "(2)": 1})
    np.testing.assert_allclose(cut(x), expected)
    with pytest.raises(ps.ShapeError, match="Conflicting"):
        ps.Chain(A, A)


def test_numbers_out_of_range():
    large, small = ps.Scalar(1e25), ps.Scalar(1e-25)
    y = ps.Chain(large, large, small, small)(np.ones(2, "f"))
    assert y.dtype == "float32" and np.allclose(y, 1)
    assert np.allclose((ps.Diagonal([4.0, 9.0], "N") ** -1)(np.ones(2)), [1 / 4, 1 / 9])
    assert ps.Convolution(np.ones(3), boundary="circular")(np.zeros(0)).shape == (0,)
    for levels in (-1, -4):
        with pytest.raises(ValueError, match="levels"):
            ps.Wavelet("A", "A", levels=levels)
        with pytest.raises(ValueError, match="levels"):
            ps.L1Wavelet(1.0, "A", levels=levels)


def test_devices_and_precisions():
    A = dense()
    assert A.to("float32").weight.dtype == "float32"
    assert A.to("float32")(X.astype("float32")).dtype == "float32"
    moved = A.to("cpu:1")
    assert moved.weight.device == "cpu:1" and np.array_equal(A(X), W @ X)
    assert ps.memory_report(moved) == {"cpu:1": 96}


def test_threads_give_the_bits_of_one():
    A = ps.Chain(ps.Fft(2), ps.Diagonal(np.arange(64.0 * 64).reshape(64, 64), "KxKy"))
    arrays = [np.random.default_rng(i).normal(size=(64, 64)) for i in range(4)]
    expected = [A(a) for a in arrays]
    wrong = []

    def work(i):
        for _ in range(20):
            if not np.array_equal(A.copy()(arrays[i]), expected[i]):
                wrong.append(i)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert not wrong


def test_nothing_piles_up():
    A = dense()

    def rounds(n):
        for _ in range(n):
            A(X), A.H, A.N, A.weight, 2 * A, A.copy(), A.renamed({"N": "Q"})
            try:
                A(np.ones(5))
            except ps.ShapeError:
                pass

    rounds(10)
    gc.collect()
    with ps.MemoryScope() as m:
        rounds(1000)
        gc.collect()
        assert m.peak_bytes < 1000


def test_sizes_of_a_matrix_are_those_of_its_dimensions():
    A = ps.Identity("N")
    assert A.matrix(N=2).tolist() == [[1, 0], [0, 1]]
    with pytest.raises(NameError, match=r"\[matrix\] got a size of 'Q', expected sizes of \(N\)"):
        A.matrix(N=2, Q=3)
