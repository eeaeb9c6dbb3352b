# SPDX-License-Identifier: Apache-2.0
"""Conversions of operators from and to SciPy, PyLops and SigPy."""

import numpy as np
import pytest

import palimpsest as ps

RNG = np.random.default_rng(5)
W = RNG.normal(size=(6, 4))
SIZES = {"N": 4, "M": 6}


def vector(n, dtype="float64"):
    x = RNG.normal(size=n) + (1j * RNG.normal(size=n) if dtype.startswith("complex") else 0)
    return x.astype(dtype)


class TestScipy:
    @pytest.fixture(autouse=True)
    def package(self):
        self.linalg = pytest.importorskip("scipy.sparse.linalg")

    def test_matrices_and_operators(self):
        for given in (W, self.linalg.aslinearoperator(W)):
            A = ps.from_scipy(given, "N", "M", SIZES)
            np.testing.assert_allclose(A.matrix(), W)
            assert A.sizes == SIZES and A.ishape == "N"
            np.testing.assert_allclose(A.H.matrix(), W.T)
            np.testing.assert_allclose(A.N.matrix(), W.T @ W)
        Z = W + 1j * W[::-1]
        B = ps.from_scipy(Z, "N", "M", SIZES)
        np.testing.assert_allclose(B.H.matrix(), Z.conj().T)
        assert B(vector(4)).dtype == "complex128"

    def test_there_and_back(self):
        A = ps.Dense(W, "MN,N->M") | ps.Dense(W.T, "PM,M->P")
        B = ps.from_scipy(A.as_scipy(), "N", "P", {"N": 4, "P": 4})
        np.testing.assert_allclose(B.matrix(), A.matrix(), rtol=1e-12)
        images = ps.Fft(2, batch=())
        C = ps.from_scipy(images.as_scipy({"Nx": 3, "Ny": 4}), "NxNy", "KxKy",
                          {"Nx": 3, "Ny": 4, "Kx": 3, "Ky": 4})
        x = vector(12, "complex128").reshape(3, 4)
        np.testing.assert_allclose(C(x), images(x))
        np.testing.assert_allclose(C.H(C(x)), x)

    def test_solvers_and_gradients_go_through(self):
        A = ps.from_scipy(W, "N", "M", SIZES)
        b = vector(6)
        expected = np.linalg.lstsq(W, b, rcond=None)[0]
        np.testing.assert_allclose(ps.cg_normal(A, b, tolerance=1e-12).x, expected)
        x = ps.tensor("float64", (4,), "x")
        f = ps.function([x], ps.grad(ps.ops.sum(A(x) ** 2), x))
        np.testing.assert_allclose(f(np.ones(4)), 2 * W.T @ W @ np.ones(4))
        z = ps.tensor("complex128", (4,), "z")
        g = ps.function([z], ps.grad(ps.ops.sum(ps.ops.abs(A(z)) ** 2), z))
        v = vector(4, "complex128")
        np.testing.assert_allclose(g(v), 2 * W.T @ W @ v)

    def test_a_wrong_adjoint_is_refused(self):
        wrong = self.linalg.LinearOperator(
            (6, 4), matvec=lambda x: W @ x, rmatvec=lambda y: 2 * W.T @ y, dtype="float64")
        with pytest.raises(ValueError, match="adjoint"):
            ps.from_scipy(wrong, "N", "M", SIZES)
        A = ps.from_scipy(wrong, "N", "M", SIZES, check=False)
        np.testing.assert_allclose(A(np.ones(4)), W @ np.ones(4))
        without = self.linalg.LinearOperator((6, 4), matvec=lambda x: W @ x, dtype="float64")
        with pytest.raises(NotImplementedError):
            ps.from_scipy(without, "N", "M", SIZES)

    def test_mistakes(self):
        with pytest.raises(ValueError, match="sizes of the output.*M"):
            ps.from_scipy(W, "N", "M", {"N": 4})
        with pytest.raises(ps.ShapeError, match="expected products 6 and 4"):
            ps.from_scipy(W, "N", "M", {"N": 6, "M": 4})
        with pytest.raises(ps.ShapeError, match="size of dim 'N'"):
            ps.from_scipy(W, "N", "M", SIZES)(np.ones(5))
        liar = self.linalg.LinearOperator((6, 4), matvec=lambda x: 1j * (W @ x),
                                          rmatvec=lambda y: W.T @ y, dtype="float64")
        with pytest.raises(TypeError, match="complex128, expected float64"):
            ps.from_scipy(liar, "N", "M", SIZES, check=False)(np.ones(4))

    def test_it_cannot_be_saved(self, tmp_path):
        with pytest.raises(ps.Error, match="save"):
            ps.save(ps.from_scipy(W, "N", "M", SIZES), str(tmp_path / "a.pal"))

    def test_exceptions_of_the_operator_arrive(self):
        def fail(x):
            raise ArithmeticError("mine")

        L = self.linalg.LinearOperator((6, 4), matvec=fail, rmatvec=fail, dtype="float64")
        with pytest.raises(ArithmeticError, match="mine"):
            ps.from_scipy(L, "N", "M", SIZES, check=False)(np.ones(4))


@pytest.mark.pylops
class TestPylops:
    @pytest.fixture(autouse=True)
    def package(self):
        self.pylops = pytest.importorskip("pylops")

    def test_operators_come_in(self):
        D = self.pylops.FirstDerivative((5, 7), axis=1)
        A = ps.from_pylops(D, "XY", "XY")
        assert ps.dot_test(A) and A.sizes == {"X": 5, "Y": 7}
        x = vector(35).reshape(5, 7)
        np.testing.assert_allclose(A(x), D @ x)
        np.testing.assert_allclose(A(x + 2j * x), D @ x + 2j * (D @ x))
        np.testing.assert_allclose(A.H(x), (D.H @ x.ravel()).reshape(5, 7))
        F = ps.from_pylops(self.pylops.signalprocessing.FFT(8, dtype="complex128"), "N", "K")
        assert ps.dot_test(F)
        both = A | ps.Diagonal(x, "XY")
        assert ps.dot_test(both)

    def test_operators_go_out(self):
        A = ps.Dense(W, "MN,N->M")
        L = A.as_pylops()
        assert L.dims == (4,) and L.dimsd == (6,) and L.dtype == "float64" and L.linop is A
        assert self.pylops.utils.dottest(L, 6, 4, rtol=1e-10)
        np.testing.assert_allclose(L.todense(), W)
        b = vector(6)
        x = self.pylops.optimization.basic.lsqr(L, b, niter=100, atol=1e-14, btol=1e-14)[0]
        np.testing.assert_allclose(x, np.linalg.lstsq(W, b, rcond=None)[0], rtol=1e-6)
        F = ps.Fft(2, batch=()).as_pylops({"Nx": 3, "Ny": 4})
        assert F.dims == (3, 4)
        assert self.pylops.utils.dottest(F, 12, 12, complexflag=3)
        image = vector(12, "complex128").reshape(3, 4)
        np.testing.assert_allclose(F @ image, np.fft.fft2(image, norm="ortho"))
        sum_of_both = L.H @ L + 2 * self.pylops.Identity(4)
        np.testing.assert_allclose(sum_of_both.todense(), W.T @ W + 2 * np.eye(4))

    def test_there_and_back(self):
        A = ps.Dense(W, "MN,N->M")
        np.testing.assert_allclose(ps.from_pylops(A.as_pylops(), "N", "M").matrix(), W)

    def test_mistakes(self):
        with pytest.raises(TypeError, match="expected a pylops.LinearOperator"):
            ps.from_pylops(W, "N", "M")
        with pytest.raises(ps.ShapeError, match="expected 1 names"):
            ps.from_pylops(self.pylops.Identity(4), "NM", "N")
        with pytest.raises(ValueError, match="size of Nx, Ny"):
            ps.Fft(2, batch=()).as_pylops()


@pytest.mark.sigpy
@pytest.mark.filterwarnings("ignore")  # warnings of the compiler that SigPy uses
class TestSigpy:
    @pytest.fixture(autouse=True)
    def package(self):
        self.linop = pytest.importorskip("sigpy").linop

    def test_operators_come_in(self):
        L = self.linop.FFT((4, 6))
        A = ps.from_sigpy(L, "XY", "KL")
        assert ps.dot_test(A) and A.oshape == "KL" and A.sizes["L"] == 6
        x = vector(24, "complex128").reshape(4, 6)
        np.testing.assert_allclose(A(x), L(x))
        np.testing.assert_allclose(A(x.real), L(x.real))  # a complex result of a real argument
        ours = ps.Fft(2, batch=(), centered=True)
        np.testing.assert_allclose(A(x), ours(x))  # SigPy centres
        S = ps.from_sigpy(self.linop.Sum((3, 4), axes=(0,)), "XY", "Y")
        assert ps.dot_test(S)

    def test_operators_go_out(self):
        A = ps.Dense(W, "MN,N->M")
        L = A.as_sigpy()
        assert list(L.ishape) == [4] and list(L.oshape) == [6] and L.linop is A
        x, y = vector(4), vector(6)
        np.testing.assert_allclose(np.vdot(L(x), y), np.vdot(x, L.H(y)))
        np.testing.assert_allclose((L.H * L)(x), W.T @ W @ x)
        np.testing.assert_allclose(L.N(x), A.N(x))
        assert L.H.H(x).tolist() == A(x).tolist()

    def test_there_and_back(self):
        A = ps.Dense(W, "MN,N->M")
        np.testing.assert_allclose(ps.from_sigpy(A.as_sigpy(), "N", "M").matrix(), W)

    def test_mistakes(self):
        with pytest.raises(TypeError, match="expected a sigpy.linop.Linop"):
            ps.from_sigpy(W, "N", "M")
        with pytest.raises(ps.ShapeError, match="expected 2 names"):
            ps.from_sigpy(self.linop.Identity((4, 4)), "N", "M")
