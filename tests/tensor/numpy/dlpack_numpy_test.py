# SPDX-License-Identifier: Apache-2.0
"""NumPy reads and writes tensors of the library through DLPack, and the other way round, without a
copy: dlpack_numpy_test.py LIBRARY."""

import ctypes as c
import gc
import sys
import unittest

import numpy as np

import palimpsest_c as pal
from palimpsest_c import Tensor

LIB = pal.load(sys.argv.pop(1))


class Received:
    """What holds an export of the library; NumPy looks through __array_interface__."""

    def __init__(self, tensor, access=pal.AUTOMATIC):
        pointer = LIB.palimpsest_to_dlpack(tensor.handle, access)
        if not pointer:
            raise RuntimeError(LIB.palimpsest_last_text().decode())
        self.managed = c.cast(pointer, c.POINTER(pal.DLManagedTensorVersioned)).contents
        if self.managed.version.major != 1:
            raise RuntimeError("version")
        view = self.managed.dl_tensor
        kind = {code: letter for letter, code in pal.CODES.items()}[view.dtype.code]
        item = view.dtype.bits // 8
        self.is_read_only = bool(self.managed.flags & pal.FLAG_READ_ONLY)
        self.__array_interface__ = {
            "version": 3,
            "shape": tuple(view.shape[i] for i in range(view.ndim)),
            "strides": tuple(view.strides[i] * item for i in range(view.ndim)),
            "typestr": ("|" if item == 1 else "<") + kind + str(item),
            "data": (view.data + view.byte_offset, self.is_read_only),
        }

    def __del__(self):
        if hasattr(self, "managed"):
            self.managed.deleter(c.addressof(self.managed))


def received(tensor, access=pal.AUTOMATIC):
    return np.asarray(Received(tensor, access))


class Unversioned:
    """Lets numpy.from_dlpack, which knows the form before 1.0, have a tensor."""

    def __init__(self, tensor):
        self.tensor = tensor

    def __dlpack_device__(self):
        return (pal.CPU, 0)

    def __dlpack__(self, stream=None):
        pointer = LIB.palimpsest_to_unversioned_dlpack(self.tensor.handle)
        new = c.pythonapi.PyCapsule_New
        new.restype, new.argtypes = c.py_object, [c.c_void_p, c.c_char_p, c.c_void_p]
        return new(pointer, b"dltensor", None)


def imported_capsule(array):
    """A tensor that shows the memory of an array, by the capsule that NumPy makes."""
    capsule = array.__dlpack__()
    get = c.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = c.c_void_p, [c.py_object, c.c_char_p]
    rename = c.pythonapi.PyCapsule_SetName
    rename.restype, rename.argtypes = c.c_int, [c.py_object, c.c_char_p]
    tensor = Tensor(LIB, LIB.palimpsest_from_unversioned_dlpack(get(capsule, b"dltensor")))
    rename(capsule, b"used_dltensor")
    return tensor


class Exported:
    """A versioned export of an array, made here."""

    def __init__(self, array, read_only):
        self.array, self.deleted = array, 0
        self.shape = (c.c_int64 * array.ndim)(*array.shape)
        self.strides = (c.c_int64 * array.ndim)(*(s // array.itemsize for s in array.strides))
        self.managed = pal.DLManagedTensorVersioned()
        self.managed.version = pal.DLPackVersion(1, 0)
        self.managed.deleter = pal.DELETER(self.delete)
        self.managed.flags = pal.FLAG_READ_ONLY if read_only else 0
        dtype = pal.DLDataType(pal.CODES[array.dtype.kind], 8 * array.itemsize, 1)
        self.managed.dl_tensor = pal.DLTensor(array.ctypes.data, pal.DLDevice(pal.CPU, 0),
                                              array.ndim, dtype, self.shape, self.strides, 0)

    def delete(self, _):
        self.deleted += 1

    def tensor(self):
        return Tensor(LIB, LIB.palimpsest_from_dlpack(c.addressof(self.managed)))


class NumpyReceives(unittest.TestCase):
    def setUp(self):
        self.live = LIB.palimpsest_live_bytes()
        self.copied = LIB.palimpsest_copied_bytes()

    def tearDown(self):
        gc.collect()
        self.assertEqual(LIB.palimpsest_live_bytes(), self.live)

    def assert_nothing_copied(self):
        self.assertEqual(LIB.palimpsest_copied_bytes(), self.copied)

    def test_owned_data_are_written_in_place(self):
        t = Tensor.arange(LIB, "float32", 3, 4)
        a = received(t)
        self.assertTrue(a.flags.writeable)
        self.assertEqual(a.ctypes.data, t.address)
        np.testing.assert_array_equal(a, np.arange(12, dtype=np.float32).reshape(3, 4))
        a[1] = 50
        self.assertEqual(t.values(3, 4)[1, 2], 50)
        t.fill(7)
        np.testing.assert_array_equal(a, np.full((3, 4), 7, np.float32))
        self.assertEqual(t.state, "pinned")
        self.assert_nothing_copied()
        del a
        self.assertEqual(t.state, "owned")

    def test_shared_data_arrive_read_only(self):
        t = Tensor.arange(LIB, "float64", 5)
        clone = t.lazy_clone()
        a = received(t)
        self.assertFalse(a.flags.writeable)
        self.assertEqual(a.ctypes.data, t.address)
        with self.assertRaises(ValueError):
            a[0] = 1
        self.assert_nothing_copied()
        t.fill(1)
        clone.fill(2)
        np.testing.assert_array_equal(a, np.arange(5.0))

    def test_a_writable_export_of_shared_data_is_a_copy(self):
        t = Tensor.arange(LIB, "float64", 5)
        clone = t.lazy_clone()
        a = received(clone, pal.WRITABLE)
        a[:] = -1
        np.testing.assert_array_equal(clone.values(5), np.full(5, -1.0))
        np.testing.assert_array_equal(t.values(5), np.arange(5.0))
        self.assertEqual(LIB.palimpsest_copied_bytes() - self.copied, 40)

    def test_every_dtype_and_stride(self):
        for name in ("bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64 "
                     "complex64 complex128").split():
            t = Tensor.arange(LIB, name, 6, 5)
            expected = np.arange(30).astype(name).reshape(6, 5)
            self.assertEqual(received(t).dtype, expected.dtype)
            np.testing.assert_array_equal(received(t), expected)
            view = t.slice(0, 1, 6, 2).slice(1, 4, 0, -1).transpose()
            np.testing.assert_array_equal(received(view), expected[1:6:2, 4:0:-1].T)
        spread = Tensor.arange(LIB, "int32", 4).expand(3, 4)
        self.assertFalse(received(spread).flags.writeable)
        self.assertEqual(received(spread).strides, (0, 4))
        self.assert_nothing_copied()

    def test_the_data_outlive_the_tensor(self):
        a = received(Tensor.arange(LIB, "int64", 100).slice(0, 90, 100))
        gc.collect()
        self.assertGreater(LIB.palimpsest_live_bytes(), self.live)
        np.testing.assert_array_equal(a, np.arange(90, 100))

    def test_numpy_from_dlpack(self):
        t = Tensor.arange(LIB, "float32", 4, 6)
        view = t.slice(1, 5, 0, -2)
        a = np.from_dlpack(Unversioned(view))
        self.assertEqual(a.ctypes.data, view.address)
        np.testing.assert_array_equal(a, np.arange(24, dtype=np.float32).reshape(4, 6)[:, 5:0:-2])
        t.fill(3)
        self.assertEqual(a[3, 1], 3)
        self.assert_nothing_copied()
        del a
        gc.collect()
        self.assertEqual(t.state, "owned")

    def test_an_impossible_export_says_why(self):
        spread = Tensor.arange(LIB, "int32", 4).expand(3, 4)
        with self.assertRaisesRegex(RuntimeError, "elements overlap one another"):
            received(spread, pal.WRITABLE)


class NumpyGives(unittest.TestCase):
    def test_arrays_of_numpy_are_written_in_place(self):
        a = np.arange(12, dtype=np.complex64).reshape(3, 4)
        references = sys.getrefcount(a)
        t = imported_capsule(a[:, ::2])
        self.assertEqual(t.state, "foreign writable")
        self.assertEqual(t.address, a.ctypes.data)
        a[0, 0] = 5
        t.slice(0, 1, 2).fill(9)
        np.testing.assert_array_equal(a[:2].real, [[5, 1, 2, 3], [9, 5, 9, 7]])
        clone = t.lazy_clone()
        self.assertEqual(clone.state, "owned")
        del t
        gc.collect()
        self.assertEqual(sys.getrefcount(a), references)

    def test_a_read_only_array_is_copied_by_the_first_write(self):
        a = np.arange(6.0)[::-1]
        a.flags.writeable = False
        exported = Exported(a, read_only=True)
        t = exported.tensor()
        self.assertEqual(t.state, "foreign read-only")
        self.assertEqual(t.address, a.ctypes.data)
        np.testing.assert_array_equal(t.values(6), a)
        t.slice(0, 0, 1).fill(42)
        np.testing.assert_array_equal(a, [5, 4, 3, 2, 1, 0])
        np.testing.assert_array_equal(t.values(6), [42, 4, 3, 2, 1, 0])
        self.assertEqual(exported.deleted, 1, "nobody looks at it any more")
        del t
        self.assertEqual(exported.deleted, 1)

    def test_what_is_refused_stays_with_its_owner(self):
        exported = Exported(np.zeros(3, np.float16), read_only=False)
        with self.assertRaisesRegex(RuntimeError, "element type: got code 2, 16 bits"):
            exported.tensor()
        self.assertEqual(exported.deleted, 0)

    def test_round_trip(self):
        a = np.arange(24, dtype=np.int16).reshape(2, 3, 4).transpose(2, 0, 1)
        t = imported_capsule(a)
        back = received(t)
        self.assertTrue(np.shares_memory(a, back))
        self.assertEqual(back.strides, a.strides)
        back[3] = -1
        self.assertTrue((a[3] == -1).all())


if __name__ == "__main__":
    unittest.main()
