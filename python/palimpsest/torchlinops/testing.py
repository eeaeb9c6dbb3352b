# SPDX-License-Identifier: Apache-2.0
"""Tests of operators, by the name of the module in torch-named-linops."""

from typing import Any

import numpy as np


class BaseNamedLinopTests:
    """Tests that any operator passes; `linop_input_output` is a fixture: operator, input, output."""

    equality_check = "approx"
    isclose_kwargs: dict[str, Any] = {}

    def _check(self, a: Any, b: Any) -> None:
        if self.equality_check == "exact":
            assert np.array_equal(a, b)
        else:
            np.testing.assert_allclose(a, b, **{"rtol": 1e-4, "atol": 1e-6, **self.isclose_kwargs})

    def test_input_mutation(self, linop_input_output: Any) -> None:
        A, x, y = linop_input_output
        before = np.array(x), np.array(y)
        A(x), A.H(y), A.N(x)
        assert np.array_equal(before[0], x) and np.array_equal(before[1], y)

    def test_adjoint(self, linop_input_output: Any) -> None:
        A, x, y = linop_input_output
        self._check(np.vdot(y, A(x)), np.vdot(A.H(y), x))
        assert A.H.shape == A.shape.H

    def test_normal(self, linop_input_output: Any) -> None:
        A, x, _ = linop_input_output
        self._check(A.H(A(x)), A.N(x))

    def test_adjoint_level2(self, linop_input_output: Any) -> None:
        A, x, y = linop_input_output
        self.test_adjoint((A.H, y, x))
        self.test_normal((A.H, y, y))

    def test_normal_level2(self, linop_input_output: Any) -> None:
        A, x, _ = linop_input_output
        self.test_adjoint((A.N, x, x))
        self.test_normal((A.N, x, x))

    def test_size(self, linop_input_output: Any) -> None:
        A, _, _ = linop_input_output
        assert all(A.size(dim) is None or isinstance(A.size(dim), int) for dim in A.dims)
