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
