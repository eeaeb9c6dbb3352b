# SPDX-License-Identifier: Apache-2.0
"""Functions that restore pickled objects. Pickles refer to them by name."""

import importlib
from typing import Any

from palimpsest import _core


def storage_of_bytes(data: Any) -> Any:
    return _core._storage_of_bytes(data)


def tensor_of_storage(storage: Any, dtype: Any, shape: Any, strides: Any, offset: Any) -> Any:
    return _core._tensor_of_storage(storage, dtype, shape, strides, offset)


def linop_of_bytes(data: Any, modules: Any = ()) -> Any:
    for name in modules:  # importing them registers the types of the operator
        importlib.import_module(name)
    return _core.from_bytes(data)


def function_of_bytes(data: Any, modules: Any, *state: Any) -> Any:
    for name in modules:
        importlib.import_module(name)
    return _core._function_of_bytes(data, *state)


def shared_of_value(*state: Any) -> Any:
    return _core._shared_again(*state)


def prox_of_bytes(data: Any) -> Any:
    return _core._prox_of_bytes(data)


def parameter_of_value(value: Any, trainable: Any) -> Any:
    return _core.Parameter(value, trainable=trainable)


def result_of_state(*state: Any) -> Any:
    return _core._result_again(*state)
