# SPDX-License-Identifier: Apache-2.0
"""The C interface of this folder, and DLPack as its specification has it, in ctypes."""

import ctypes as c

import numpy as np

AUTOMATIC, READ_ONLY, WRITABLE = 0, 1, 2  # DlpackAccess
FLAG_READ_ONLY = 1
CPU = 1
CODES = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}


class DLDevice(c.Structure):
    _fields_ = [("device_type", c.c_int32), ("device_id", c.c_int32)]


class DLDataType(c.Structure):
    _fields_ = [("code", c.c_uint8), ("bits", c.c_uint8), ("lanes", c.c_uint16)]


class DLTensor(c.Structure):
    _fields_ = [("data", c.c_void_p), ("device", DLDevice), ("ndim", c.c_int32),
                ("dtype", DLDataType), ("shape", c.POINTER(c.c_int64)),
                ("strides", c.POINTER(c.c_int64)), ("byte_offset", c.c_uint64)]


class DLPackVersion(c.Structure):
    _fields_ = [("major", c.c_uint32), ("minor", c.c_uint32)]


DELETER = c.CFUNCTYPE(None, c.c_void_p)


class DLManagedTensor(c.Structure):
    _fields_ = [("dl_tensor", DLTensor), ("manager_ctx", c.c_void_p), ("deleter", DELETER)]


class DLManagedTensorVersioned(c.Structure):
    _fields_ = [("version", DLPackVersion), ("manager_ctx", c.c_void_p), ("deleter", DELETER),
                ("flags", c.c_uint64), ("dl_tensor", DLTensor)]


def load(path):
    """The library, with the types of its functions."""
    lib = c.CDLL(path)
    shape = c.POINTER(c.c_int64)
    handle = c.c_void_p
    for name, result, arguments in [
            ("last_text", c.c_char_p, []),
            ("arange", handle, [c.c_char_p, c.c_int32, shape]),
            ("from_bytes", handle, [c.c_char_p, c.c_char_p, c.c_int32, shape]),
            ("slice", handle, [handle] + 4 * [c.c_int64]),
            ("transpose", handle, [handle]),
            ("expand", handle, [handle, c.c_int32, shape]),
            ("lazy_clone", handle, [handle]),
            ("free", None, [handle]),
            ("values", None, [handle, c.c_void_p]),
            ("fill", c.c_int, [handle, c.c_double]),
            ("address", c.c_uint64, [handle]),
            ("state", c.c_char_p, [handle]),
            ("text", c.c_char_p, [handle]),
            ("live_bytes", c.c_uint64, []),
            ("copied_bytes", c.c_uint64, []),
            ("to_dlpack", handle, [handle, c.c_int32]),
            ("to_unversioned_dlpack", handle, [handle]),
            ("from_dlpack", handle, [handle]),
            ("from_unversioned_dlpack", handle, [handle])]:
        function = getattr(lib, "palimpsest_" + name)
        function.restype, function.argtypes = result, arguments
    return lib


class Tensor:
    """A tensor of the library; its handle ends with this object."""

    def __init__(self, lib, handle):
        if not handle:
            raise RuntimeError(lib.palimpsest_last_text().decode())
        self.lib, self.handle = lib, handle

    def __del__(self):
        if hasattr(self, "handle"):
            self.lib.palimpsest_free(self.handle)

    @classmethod
    def arange(cls, lib, dtype, *shape):
        extents = (c.c_int64 * len(shape))(*shape)
        return cls(lib, lib.palimpsest_arange(dtype.encode(), len(shape), extents))

    @classmethod
    def from_array(cls, lib, array):
        shape = (c.c_int64 * array.ndim)(*array.shape)
        return cls(lib, lib.palimpsest_from_bytes(np.ascontiguousarray(array).tobytes(),
                                                  array.dtype.name.encode(), array.ndim, shape))

    def slice(self, axis, start, stop, step=1):
        return Tensor(self.lib, self.lib.palimpsest_slice(self.handle, axis, start, stop, step))

    def transpose(self):
        return Tensor(self.lib, self.lib.palimpsest_transpose(self.handle))

    def expand(self, *shape):
        extents = (c.c_int64 * len(shape))(*shape)
        return Tensor(self.lib, self.lib.palimpsest_expand(self.handle, len(shape), extents))

    def lazy_clone(self):
        return Tensor(self.lib, self.lib.palimpsest_lazy_clone(self.handle))

    def values(self, *shape):
        out = np.empty(shape, np.float64)
        self.lib.palimpsest_values(self.handle, out.ctypes.data)
        return out

    def fill(self, value):
        if not self.lib.palimpsest_fill(self.handle, value):
            raise RuntimeError(self.lib.palimpsest_last_text().decode())

    address = property(lambda self: self.lib.palimpsest_address(self.handle))
    state = property(lambda self: self.lib.palimpsest_state(self.handle).decode())
    text = property(lambda self: self.lib.palimpsest_text(self.handle).decode())
