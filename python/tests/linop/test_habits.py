# SPDX-License-Identifier: Apache-2.0
"""Operators where a user of NumPy and Python puts arrays and objects."""

import numpy as np
import pytest

import palimpsest as ps

M = np.arange(12.0).reshape(3, 4)
A = ps.Dense(M, "MN,N->M")
X = np.arange(4.0)

CALLS = {
    "asarray": lambda B: np.asarray(B),
    "array": lambda B: np.array(B),
    "array_of_dtype": lambda B: np.array(B, dtype="float32"),
    "array_of_list": lambda B: np.array([B, B]),
    "norm": lambda B: np.linalg.norm(B),
    "svd": lambda B: np.linalg.svd(B),
    "solve": lambda B: np.linalg.solve(B, X),
    "eigvals": lambda B: np.linalg.eigvals(B),
    "dot": lambda B: np.dot(B, X),
    "dot_from_left": lambda B: np.dot(X, B),
    "tensordot": lambda B: np.tensordot(B, X, 1),
    "einsum": lambda B: np.einsum("ij,j", B, X),
    "kron": lambda B: np.kron(B, X),
    "mean": lambda B: np.mean(B),
    "trace": lambda B: np.trace(B),
    "reshape": lambda B: np.reshape(B, -1),
    "frombuffer": lambda B: np.frombuffer(B),
    "exp": lambda B: np.exp(B),
    "matmul": lambda B: np.matmul(B, X),
    "left_factor": lambda B: X @ B,
    "float": lambda B: float(B),
    "asarray_of_ours": lambda B: ps.asarray(B),
    "argument": lambda B: A(B) if B is A else A(A.H @ A),
    "constant": lambda B: ps.constant(B),
    "parameter": lambda B: ps.Diagonal(B, "N"),
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("B", [A, A.H @ A, ps.Identity("N"), A + A, ps.Chain(ps.Identity("N"), ps.Identity("N"))],
                         ids=["leaf", "chain", "identity", "sum", "chain_of_two"])
def test_functions_of_numpy_refuse_operators(call, B):
    with pytest.raises(TypeError):
        CALLS[call](B)


def test_the_refusal_says_what_to_use():
    with pytest.raises(ps.Error, match=r"\[Dense\].*A\.matrix\(\) or to_dense\(A\).*A @ x"):
        np.asarray(A)
    with pytest.raises(TypeError, match=r"Try A @ x, or A\.matrix\(\)"):
        ps.asarray(A)
    np.testing.assert_array_equal(np.float64(2) * A @ X, 2 * M @ X)  # a scalar of NumPy is one


def test_sums_of_lists():
    np.testing.assert_allclose(sum([A, A, A])(X), 3 * M @ X)
    assert (0 + A) is A and (0.0 + A) is A
    for wrong in (1, "a", None, X):
        with pytest.raises(TypeError):
            wrong + A


@pytest.mark.parametrize("B, dtype", [
    (A, "float64"), (A.H, "float64"), (A.N, "float64"), (2 * A, "float64"), (2j * A, "complex128"),
    (ps.Dense(M.astype("float32"), "MN,N->M"), "float32"), (ps.Dense(M * 1j, "MN,N->M"), "complex128"),
    (ps.Dense(M.astype("complex64"), "MN,N->M"), "complex64"),
    (ps.Identity("N").with_sizes({"N": 3}), "float64"),
    (ps.Fft(1, batch=()).with_sizes({"Nx": 4}), "complex128"),
    (ps.Radon(np.arange(3.0), (4, 4), n_detectors=5), "float64"),
])
def test_the_matrix_of_a_real_operator_is_real(B, dtype):
    matrix = B.matrix()
    assert matrix.dtype == dtype and ps.to_dense(B).dtype == dtype
    np.testing.assert_allclose(matrix, ps.to_dense(B, dtype=np.result_type(dtype, "complex64").name), atol=1e-6)


def test_operators_over_the_reals_keep_their_matrices():
    for make in (ps.RealPart, ps.ImagPart):
        B = make("N").with_sizes({"N": 3})
        assert B.matrix().shape == (3, 3)


def test_parameters_are_completed():
    assert {"weight", "ishape", "H", "matrix"} <= set(dir(A))
    assert dir(A) == sorted(dir(A))


def test_a_parameter_is_changed_by_its_data():
    B = ps.Diagonal(np.ones(3), "N")
    with pytest.raises(TypeError, match=r"Try to write to p\.data\[i\], or p\.set_value\(v\)"):
        B.weight[0] = 7
    B.weight.data[0] = 7
    assert B(np.ones(3)).tolist() == [7, 1, 1]


def test_reductions_of_a_parameter_are_numbers():
    w = ps.Diagonal(np.arange(6.0).reshape(2, 3), "MN").weight
    found = [w.sum(), w.prod(), w.mean(), w.max(), w.min(), w.any(), w.all()]
    assert found == [15, 0, 2.5, 5, 0, True, False] and str(w.sum()) == "15.0"
    assert w.sum(axis=0).tolist() == [3, 5, 7] and w.max(1).tolist() == [2, 5] and w.sum(keepdims=True).shape == (1, 1)
    assert np.sum(w) == 15 and np.max(w) == 5
    assert isinstance(ps.ops.sum(w), ps.Variable)  # in graphs

    @ps.linop(name="normalized in test_habits")
    class Normalized:
        def fn(A, x):
            assert isinstance(A.w.sum(), ps.Variable)
            return x * A.w / A.w.sum()

    B = Normalized("N", w=np.array([1.0, 3.0]))
    assert B(np.ones(2)).tolist() == [0.25, 0.75]
    B.w.data[1] = 1
    assert B(np.ones(2)).tolist() == [0.5, 0.5]


def test_square_systems():
    S = np.array([[4.0, 1, 0], [1, 3, 1], [0, 1, 2]])
    b = np.ones(3)
    B = ps.Dense(S, "MN,N->M")
    for ask in (lambda: ps.conjugate_gradients(B, b), lambda: ps.minres(B, b)):
        with pytest.raises(ps.ShapeError, match=r'where it is square, ShapeSpec\("M", "N"\) \* A, or a Dense without'):
            ask()
    with pytest.raises(ps.Error, match=r'dim .N. is repeated.*ShapeSpec\("M", "N"\) \* Dense\(w, "MN,N->M"\)'):
        ps.Dense(S, "NN,N->N")
    for square in (ps.Dense(S), ps.ShapeSpec("M", "N") * B, B | ps.ShapeSpec("M", "N")):
        np.testing.assert_allclose(ps.conjugate_gradients(square, b, tolerance=1e-12).x, np.linalg.solve(S, b))


def test_mixed_precision_is_named():
    with pytest.raises(TypeError, match=r"Try A\.to\('float32'\) or x\.astype\('float64'\)"):
        A(X.astype("float32"))
    np.testing.assert_allclose(A.to("float32")(X.astype("float32")), M @ X)


class Test_functions_of_numpy:
    def test_an_operator_of_two_functions(self):
        B = ps.from_functions(np.cumsum, lambda y: np.cumsum(y[::-1])[::-1], "N", "M", {"N": 4, "M": 4})
        assert B(X).tolist() == [0, 1, 3, 6] and B.matrix().tolist() == np.tri(4).tolist()
        assert B(X * 1j).tolist() == [0, 1j, 3j, 6j] and ps.dot_test(B)
        np.testing.assert_allclose((B.N + ps.Identity("N"))(X), np.tri(4).T @ np.tri(4) @ X + X)
        assert ps.lsqr(B, X, max_iterations=50).x == pytest.approx(np.linalg.solve(np.tri(4), X))

    def test_arrays_of_several_axes(self):
        B = ps.from_functions(lambda x: x.sum(0), lambda y: np.broadcast_to(y, (2, 4)), "C N", "N", {"C": 2, "N": 4},
                              dtype="float32")
        assert B(np.ones((2, 4), "float32")).dtype == "float32" and B(np.ones((2, 4))).tolist() == [2] * 4

    def test_errors(self):
        sizes = {"N": 4, "M": 4}
        with pytest.raises(ValueError, match="adjoint"):
            ps.from_functions(np.cumsum, np.cumsum, "N", "M", sizes)
        ps.from_functions(np.cumsum, np.cumsum, "N", "M", sizes, check=False)
        with pytest.raises(TypeError, match=r"\[from_functions\] adj_fn: got NoneType, expected a function"):
            ps.from_functions(np.cumsum, None, "N", "M", sizes)
        with pytest.raises(ValueError, match="sizes of the output: got none for M"):
            ps.from_functions(np.cumsum, np.cumsum, "N", "M", {"N": 4})
        with pytest.raises(ValueError, match=r"got a result of shape \(3,\)"):
            ps.from_functions(np.diff, np.diff, "N", "M", sizes, check=False)(X)

    def test_the_error_of_a_traced_function_names_it(self):
        with pytest.raises(TypeError, match=r"\[numpy.cumsum\] got a Variable.*from_functions\(\)"):
            ps.SimpleLinop(np.cumsum, np.cumsum, ishape="N")(X)
