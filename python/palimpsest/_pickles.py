# SPDX-License-Identifier: Apache-2.0
"""Functions that restore pickled objects. Pickles refer to them by name."""

import importlib
from typing import Any

from palimpsest import _core


def storage_of_bytes(data: Any) -> Any:
    return _core._storage_of_bytes(data)


def tensor_of_storage(storage: Any, dtype: Any, shape: Any, strides: Any, offset: Any) -> Any:
    return _core._tensor_of_storage(storage, dtype, shape, strides, offset)


def container_of_value(*state: Any) -> Any:
    return _core._container_of_value(*state)


def linop_of_bytes(data: Any, modules: Any = (), containers: Any = ()) -> Any:
    for name in modules:  # importing them registers the types of the operator
        importlib.import_module(name)
    return _core._linop_of_bytes(data, containers)


def function_of_bytes(data: Any, modules: Any, form: Any, keys: Any, names: Any, borrowed: Any, uses: Any,
                      returns: Any, containers: Any = ()) -> Any:
    for name in modules:
        importlib.import_module(name)
    return _core._function_of_bytes(data, form, keys, names, borrowed, uses, returns, containers)


def shared_of_container(container: Any, kind: Any) -> Any:
    return _core._shared_on(container, kind)


def shared_of_value(*state: Any) -> Any:
    return _core._shared_on(_core._container_of_value(*state[:-1]), state[-1])


def prox_of_bytes(data: Any) -> Any:
    return _core._prox_of_bytes(data)


def parameter_of_container(container: Any, trainable: Any, view: Any) -> Any:
    return _core._parameter_on(container, trainable, view)


def parameter_of_value(value: Any, trainable: Any) -> Any:
    return _core.Parameter(value, trainable=trainable)


def result_of_state(*state: Any) -> Any:
    return _core._result_again(*state)
