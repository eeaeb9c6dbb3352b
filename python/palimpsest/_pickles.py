# SPDX-License-Identifier: Apache-2.0
"""What pickles name to make objects again: functions of Python, which a pickle can refer to."""

import importlib

from palimpsest import _core


def storage_of_bytes(data):
    return _core._storage_of_bytes(data)


def tensor_of_storage(storage, dtype, shape, strides, offset):
    return _core._tensor_of_storage(storage, dtype, shape, strides, offset)


def linop_of_bytes(data, modules=()):
    for name in modules:  # they register the types that the operator is made of
        importlib.import_module(name)
    return _core.from_bytes(data)


def function_of_bytes(data, modules, *state):
    for name in modules:
        importlib.import_module(name)
    return _core._function_of_bytes(data, *state)


def shared_of_value(*state):
    return _core._shared_again(*state)
