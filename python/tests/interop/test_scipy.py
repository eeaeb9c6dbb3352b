# SPDX-License-Identifier: Apache-2.0
"""Solvers of SciPy on our operators, and our solvers compared with those of SciPy."""

import numpy as np
import pytest

import palimpsest as ps

scipy_linalg = pytest.importorskip("scipy.sparse.linalg")
scipy_sparse = pytest.importorskip("scipy.sparse")

RNG = np.random.default_rng(9)
W = RNG.normal(size=(40, 25))
A = ps.Dense(W, "MN,N->M")
B = RNG.normal(size=40)


def test_the_operator_of_scipy_is_the_matrix():
    S = A.as_scipy()
    assert S.shape == (40, 25) and S.dtype == "float64"
    np.testing.assert_allclose(S @ np.eye(25), W)
    np.testing.assert_allclose(S.H @ np.eye(40), W.T)
    with ps.CopyStats() as copies:
        S.matvec(np.ones(25))
    assert copies.copies + copies.import_copies == 0
    F = ps.Fft(2, batch=()).as_scipy(sizes={"Nx": 4, "Ny": 4})
    assert F.shape == (16, 16) and F.dtype == "complex128"
    with pytest.raises(ValueError, match="Nx, Ny"):
        ps.Fft(2, batch=()).as_scipy()


def test_solvers_of_scipy():
    expected = np.linalg.lstsq(W, B, rcond=None)[0]
    np.testing.assert_allclose(scipy_linalg.lsqr(A.as_scipy(), B, 0, 1e-14, 1e-14, iter_lim=999)[0],
                               expected, rtol=1e-7)
    np.testing.assert_allclose(scipy_linalg.lsmr(A.as_scipy(), B, 0, 1e-14, 1e-14, maxiter=999)[0],
                               expected, rtol=1e-7)
    N = A.N.as_scipy()
    np.testing.assert_allclose(scipy_linalg.cg(N, W.T @ B, rtol=1e-12)[0], expected, rtol=1e-7)
    np.testing.assert_allclose(
        np.sort(scipy_linalg.svds(A.as_scipy(), 3, return_singular_vectors=False)),
        np.sort(np.linalg.svd(W)[1])[-3:])
    np.testing.assert_allclose(np.sort(scipy_linalg.eigsh(N, 3, return_eigenvectors=False)),
                               np.sort(np.linalg.eigvalsh(W.T @ W))[-3:])


def test_the_same_iterations_as_scipy():
    iterates = []
    scipy_linalg.cg(A.N.as_scipy(), W.T @ B, rtol=1e-8, maxiter=500,
                    callback=lambda x: iterates.append(x.copy()))
    ours = ps.conjugate_gradients(A.N, W.T @ B, tolerance=1e-8, max_iterations=500)
    assert abs(ours.iterations - len(iterates)) <= 1
    np.testing.assert_allclose(ours.x, iterates[-1], rtol=1e-5)


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "lil", "dok", "bsr", "dia"])
def test_sparse_matrices_of_any_form(form):
    S = scipy_sparse.random(12, 9, 0.3, random_state=1).asformat(form)
    np.testing.assert_allclose(ps.Sparse(S).matrix(), S.toarray())
    assert ps.dot_test(ps.Sparse(S))
    with pytest.raises(TypeError, match="Sparse"):
        ps.asarray(S)


# -- promotion, sizes, pickles --------------------------------------------------------------------

DTYPES = ["float32", "float64", "complex64", "complex128"]


@pytest.mark.parametrize("of_vector", [*DTYPES, "int64"])
@pytest.mark.parametrize("of_operator", DTYPES)
def test_vectors_promote_as_in_scipy(of_operator, of_vector):
    matrix = (W[:3, :4] * (1 + 1j)).real.astype(of_operator) + (0 if "float" in of_operator else 1j)
    matrix = matrix.astype(of_operator)
    ours, theirs = ps.Dense(matrix).as_scipy(), scipy_linalg.aslinearoperator(matrix)
    assert ours.dtype == theirs.dtype == of_operator
    x, y = np.arange(4).astype(of_vector), np.arange(3).astype(of_vector)
    for call in (lambda L: L.matvec(x), lambda L: L.rmatvec(y), lambda L: L @ x, lambda L: L.H @ y, lambda L: L.T @ y,
                 lambda L: L.matmat(np.eye(4).astype(of_vector)), lambda L: (2 * L).matvec(x)):
        got, expected = call(ours), call(theirs)
        assert got.dtype == expected.dtype and got.shape == expected.shape
        np.testing.assert_allclose(got, expected, rtol=1e-5)


@pytest.mark.parametrize("dtype", DTYPES)
def test_solvers_of_scipy_in_each_dtype(dtype):
    matrix = (np.diag([4.0, 3, 2]) + np.tri(3) + np.tri(3).T).astype(dtype)
    b = np.ones(3)
    S = ps.Dense(matrix).as_scipy()
    for solve in (scipy_linalg.cg, scipy_linalg.minres, scipy_linalg.gmres, scipy_linalg.bicgstab):
        if solve is scipy_linalg.minres and "complex" in dtype:
            continue
        x, info = solve(S, b, rtol=1e-5)
        assert info == 0
        np.testing.assert_allclose(x, np.linalg.solve(matrix, b), rtol=1e-4)
    np.testing.assert_allclose(scipy_linalg.lsqr(S, b)[0], np.linalg.solve(matrix, b), rtol=1e-4)


def test_the_dtype_is_that_of_the_results():
    filtered = ps.Fft(1, batch=(), norm="ortho") @ ps.Diagonal(np.ones(4), "Nx")
    assert filtered.as_scipy().dtype == "complex128" and ps.Identity("N").as_scipy({"N": 3}).dtype == "float64"
    assert ps.Nufft(np.zeros((3, 1), "float32"), (8,), "K", batch=()).as_scipy().dtype == "complex64"
    S = filtered.as_scipy(dtype="complex64")
    assert S.dtype == "complex64" and S.matvec(np.ones(4, "complex64")).dtype == "complex64"


def test_an_ellipsis_is_empty():
    matrix = scipy_sparse.random(12, 9, 0.3, random_state=1)
    S = ps.Sparse(matrix).as_scipy()
    np.testing.assert_allclose(S @ np.eye(9), matrix.toarray())
    F = ps.Fft(2).as_scipy({"Nx": 3, "Ny": 4})
    assert F.shape == (12, 12)
    assert ps.Sparse(matrix).as_scipy({"...": (2, 3)}).shape == (72, 54)
    assert ps.Sparse(matrix).as_scipy({"...": 2}).shape == (24, 18)
    with pytest.raises(ValueError, match=r"size of Nx, Ny of the input is unknown. Try sizes={'Nx': 64, 'Ny': 64}\."):
        ps.Fft(2).as_scipy()
    assert ps.Fft(2).as_scipy(sizes={"Nx": 64, "Ny": 64}).shape == (4096, 4096)  # the advice works
    assert ps.Diagonal(np.ones(3)).as_scipy({"...": 3}).shape == (3, 3)


@pytest.mark.parametrize("name", ["Dense", "Fft", "Sparse"])
def test_columns_are_one_application(name, monkeypatch):
    made = ps.Dense(W) if name == "Dense" else ps.Fft(2) if name == "Fft" else ps.Sparse(
        scipy_sparse.random(12, 9, 0.3, random_state=1))
    S = made.as_scipy({"Nx": 3, "Ny": 4} if name == "Fft" else None)
    matrix = np.stack([S.matvec(e) for e in np.eye(S.shape[1])], axis=1)
    if name != "Dense":  # which has no dimensions '...'
        monkeypatch.setattr(type(S), "_matvec", None)
        monkeypatch.setattr(type(S), "_rmatvec", None)
    for n in (2, 5):
        X, Y = RNG.normal(size=(S.shape[1], n)).astype("float32"), RNG.normal(size=(S.shape[0], n))
        np.testing.assert_allclose(S @ X, matrix @ X, rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(S.H @ Y, matrix.conj().T @ Y, rtol=1e-12, atol=1e-12)
        assert (S @ X).dtype == (matrix @ X).dtype and (S @ X).shape == (S.shape[0], n)


def test_operators_of_scipy_are_pickled():
    import copy
    import pickle

    for S in (A.as_scipy(), A.as_scipy().H, ps.Fft(2).as_scipy({"Nx": 2, "Ny": 2})):
        for again in (pickle.loads(pickle.dumps(S)), copy.deepcopy(S)):
            assert again.dtype == S.dtype
            np.testing.assert_array_equal(again @ np.ones(S.shape[1]), S @ np.ones(S.shape[1]))


def test_it_leads_back_to_the_operator():
    assert A.as_scipy().linop is A and A.as_scipy().H.linop is A.H
