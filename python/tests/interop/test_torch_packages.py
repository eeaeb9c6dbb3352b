# SPDX-License-Identifier: Apache-2.0
"""Conversions of operators from and to the packages on torch: deepinv and MRpro."""

import numpy as np
import pytest

import palimpsest as ps

RNG = np.random.default_rng(5)
W = RNG.normal(size=(6, 4)).astype("float32")
MAPS = (RNG.normal(size=(3, 8, 8)) + 1j * RNG.normal(size=(3, 8, 8))).astype("complex64")
SENSE = ps.Dense(MAPS, "C Y X, Y X -> C Y X") | ps.Fft(2, batch="C", grid=("Y X", "V U"), centered=True)
BLUR = ps.Convolution(np.ones((3, 3), "float32") / 9)  # with the dimensions '...' first


def tensor(torch, *shape, complex=False):
    x = torch.tensor(RNG.normal(size=shape), dtype=torch.float32)
    return x + 1j * tensor(torch, *shape) if complex else x


@pytest.mark.deepinv
@pytest.mark.filterwarnings("ignore")  # warnings of the packages that deepinv uses
class TestDeepinv:
    @pytest.fixture(autouse=True)
    def package(self):
        self.torch, self.deepinv = pytest.importorskip("torch"), pytest.importorskip("deepinv")

    def test_batches(self):
        physics = BLUR.as_deepinv()
        x = tensor(self.torch, 2, 1, 8, 8)
        assert isinstance(physics, self.deepinv.physics.LinearPhysics) and physics.module.linop is BLUR
        self.torch.testing.assert_close(physics(x), BLUR(x))
        self.torch.testing.assert_close(physics.A_adjoint(x), BLUR.H(x))
        self.torch.testing.assert_close(physics.A_adjoint_A(x), BLUR.H(BLUR(x)))
        assert physics.adjointness_test(x) < 1e-5
        one_by_one = ps.Dense(W).as_deepinv()  # no dimension for a batch
        y = one_by_one(tensor(self.torch, 5, 4))
        assert y.shape == (5, 6) and one_by_one.adjointness_test(tensor(self.torch, 5, 4)) < 1e-5

    def test_pairs_stand_for_complex_numbers(self):
        physics, plain = SENSE.as_deepinv(pairs=True), SENSE.as_deepinv()
        x = tensor(self.torch, 2, 2, 8, 8)
        z = self.torch.complex(x[:, 0], x[:, 1])
        y = physics.A(x)
        assert y.shape == (2, 2, 3, 8, 8)
        self.torch.testing.assert_close(self.torch.complex(y[:, 0], y[:, 1]), plain.A(z))
        self.torch.testing.assert_close(plain.A(z)[1], SENSE(z[1]))
        assert abs(physics.adjointness_test(x)) < 1e-3
        self.torch.testing.assert_close(physics.A_adjoint_A(x), physics.A_adjoint(y), rtol=1e-4, atol=1e-4)

    def test_its_solvers_and_gradients(self):
        physics = ps.Dense(W).as_deepinv(solver="CG", max_iter=50, tol=1e-6)
        x = tensor(self.torch, 2, 4)
        self.torch.testing.assert_close(physics.A_dagger(physics.A(x)), x, rtol=1e-3, atol=1e-3)
        gamma, z = 2.0, tensor(self.torch, 2, 4)
        expected = np.linalg.solve(gamma * W.T @ W + np.eye(4), (gamma * (W.T @ W @ x.numpy().T) + z.numpy().T)).T
        np.testing.assert_allclose(physics.prox_l2(z, physics.A(x), gamma), expected, rtol=1e-3, atol=1e-3)
        x.requires_grad_()
        physics.A(x).square().sum().backward()
        self.torch.testing.assert_close(x.grad, 2 * physics.A_adjoint_A(x.detach()))

    def test_noise_and_parameters(self):
        w = self.torch.nn.Parameter(self.torch.ones(4))
        physics = ps.Diagonal(w, "... N").as_deepinv(noise_model=self.deepinv.physics.GaussianNoise(0.1))
        assert [p is w for p in physics.parameters() if p.requires_grad] == [True]
        x = self.torch.ones(3, 4)
        assert not self.torch.equal(physics(x), physics.A(x))
        physics.A(x).sum().backward()
        assert w.grad.tolist() == [3.0] * 4


@pytest.mark.mrpro
@pytest.mark.filterwarnings("ignore")
class TestMrpro:
    @pytest.fixture(autouse=True)
    def package(self):
        self.torch, self.operators = pytest.importorskip("torch"), pytest.importorskip("mrpro.operators")

    def test_operators_go_out(self):
        op = SENSE.as_mrpro()
        assert isinstance(op, self.operators.LinearOperator) and op.module.linop is SENSE
        x, y = tensor(self.torch, 8, 8, complex=True), tensor(self.torch, 3, 8, 8, complex=True)
        self.torch.testing.assert_close(op(x)[0], SENSE(x))
        self.torch.testing.assert_close(op.H(y)[0], SENSE.H(y))
        self.torch.testing.assert_close(op.gram(x)[0], op.H(*op(x))[0])
        self.torch.testing.assert_close((op.H @ op)(x)[0], op.gram(x)[0])
        self.torch.testing.assert_close((2 * op)(x)[0], 2 * SENSE(x))
        several = tensor(self.torch, 2, 5, 8, 8, complex=True)
        assert op(several)[0].shape == (2, 5, 3, 8, 8)
        self.torch.testing.assert_close(op(several)[0][1, 2], SENSE(several[1, 2]))

    def test_its_solver(self):
        op = ps.Dense(W).as_mrpro()
        x = tensor(self.torch, 4)
        found, = pytest.importorskip("mrpro.algorithms.optimizers").cg(op.gram, op.H(*op(x)), tolerance=1e-6)
        self.torch.testing.assert_close(found, x, rtol=1e-3, atol=1e-3)

    def test_operators_come_in(self):
        F = self.operators.FastFourierOp(dim=(-2, -1))
        A = ps.from_mrpro(F, "Y X", "V U", {"Y": 8, "X": 8, "V": 8, "U": 8})
        x = MAPS[0]
        np.testing.assert_allclose(A(x), ps.Fft(2, batch=(), centered=True)(x), rtol=1e-4, atol=1e-5)
        assert ps.dot_test(A, dtype="complex64")
        back = ps.from_mrpro(SENSE.as_mrpro(), "Y X", "C V U", {"Y": 8, "X": 8, "C": 3, "V": 8, "U": 8})
        np.testing.assert_allclose(back(x), SENSE(x), rtol=1e-5, atol=1e-5)
        with pytest.raises(TypeError, match="expected a mrpro.operators.LinearOperator"):
            ps.from_mrpro(W, "N", "M", {"N": 4, "M": 6})
