# SPDX-License-Identifier: Apache-2.0
"""Tensors print like NumPy's arrays: print_numpy_test.py LIBRARY."""

import random
import sys
import unittest

import numpy as np

import palimpsest_c as pal

LIB = pal.load(sys.argv.pop(1))


def expected(array):
    with np.printoptions(precision=6):
        text = np.array2string(array, separator=", ", prefix="tensor(")
    shape = f"shape={array.shape}, " if array.size > 1000 else ""
    return f"tensor({text}, {shape}dtype={array.dtype}, device=cpu)"


class Prints(unittest.TestCase):
    def check(self, array):
        self.assertEqual(pal.Tensor.from_array(LIB, array).text, expected(array))

    def test_integers_and_bools(self):
        for name in "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64".split():
            for shape in [(), (1,), (5,), (3, 4), (2, 3, 4), (2, 1, 2, 2), (40,), (200,)]:
                array = np.arange(np.prod(shape, dtype=int)).reshape(shape)
                self.check((array - array.size // 2).astype(name))

    def test_floating_numbers(self):
        generator = np.random.default_rng(1)
        for name in ["float32", "float64"]:
            for shape in [(), (1,), (7,), (3, 4), (2, 3, 2), (50,)]:
                for scale in [1, 1e-3, 1e3, 1e-6, 1e6, 1e12]:
                    values = np.asarray(generator.standard_normal(shape))
                    self.check((values * scale).astype(name))
                    self.check(np.round(values * 10).astype(name))
                    self.check((np.round(values * 4) / 4).astype(name))

    def test_wide_ranges(self):
        random.seed(2)
        for _ in range(200):
            values = [random.choice([0, 1, -1, 2.5, 1 / 3, 1e-4, 1e-5, 1e8, 99999999.0, 123456.789,
                                     1e16, 1e100, 1e300, -7e-10, 0.1, 1000, 1001.5])
                      for _ in range(random.randint(1, 6))]
            self.check(np.array(values))

    def test_what_is_no_number(self):
        inf, nan = np.inf, np.nan
        for values in [[nan], [inf], [-inf], [nan, 1.5], [inf, -1.0], [-inf, 1e10], [nan, -2.25],
                       [nan, inf, -inf, 1e-7], [-0.0, 0.0], [nan, nan]]:
            self.check(np.array(values))
            self.check(np.array(values, np.float32))

    def test_complex_numbers(self):
        generator = np.random.default_rng(3)
        for name in ["complex64", "complex128"]:
            for shape in [(), (1,), (4,), (2, 3)]:
                real, imaginary = generator.standard_normal((2, *shape))
                self.check(np.asarray(real + 1j * imaginary).astype(name))
                self.check(np.asarray(np.round(real * 10) + 1j * np.round(imaginary)).astype(name))
        for values in [[1 + 2j, 3.5 - 1.25j], [0j], [1e10 + 1j], [complex(np.nan, np.inf)],
                       [complex(1, -np.inf), 2]]:
            self.check(np.array(values))

    def test_long_arrays(self):
        for shape in [(1001,), (40, 30), (3, 500), (500, 3), (11, 10, 11), (2, 2, 300), (2000, 1)]:
            self.check(np.arange(np.prod(shape)).reshape(shape))
            self.check(np.linspace(0, 1, np.prod(shape)).reshape(shape))

    def test_no_elements(self):
        self.check(np.zeros((0,)))


if __name__ == "__main__":
    unittest.main()
