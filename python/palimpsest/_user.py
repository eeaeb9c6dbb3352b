# SPDX-License-Identifier: Apache-2.0
"""The decorator of operators that are written in Python."""

import inspect
from typing import Any

from palimpsest import _core

_FUNCTIONS = ("fn", "adj_fn", "normal_fn", "adj_normal_fn", "split", "adj_split", "size", "check")
_CONSTANTS = ("version", "real_linear")
_MUTABLE = (list, dict, set, bytearray)


def _check_function(name: Any, function: Any) -> None:
    """Raises an error for a closure: files store a function by its name alone."""
    if not inspect.isfunction(function):
        raise TypeError(f"[linop] {name}: got {type(function).__name__}, expected a function.")
    if function.__closure__:
        captured = ", ".join(function.__code__.co_freevars)
        raise ValueError(
            f"[linop] {name} is a closure over {captured}, expected a function of its arguments. "
            "Try a parameter or an attribute of the operator."
        )
    defaults = [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]
    if any(isinstance(value, _MUTABLE) for value in defaults):
        raise ValueError(f"[linop] {name} is a closure over a default that can change.")


def _contents(definition: Any) -> Any:
    """The functions and the constants of a class, or of a function alone."""
    if inspect.isfunction(definition):
        return {"fn": definition}, {}
    if not inspect.isclass(definition):
        raise TypeError(f"[linop] got {definition!r}, expected a class or a function.")
    functions, constants = {}, {}
    for name, value in vars(definition).items():
        if isinstance(value, staticmethod):
            value = value.__func__
        if name in _FUNCTIONS:
            functions[name] = value
        elif name in _CONSTANTS:
            constants[name] = value
        elif not (name.startswith("__") and name.endswith("__")):
            allowed = ", ".join((*_FUNCTIONS, *_CONSTANTS))
            raise TypeError(f"[linop] got '{name}', expected one of {allowed}.")
    if "fn" not in functions:
        raise TypeError(f"[linop] {definition.__qualname__} has no fn.")
    return functions, constants


_defined: dict[str, tuple[str, str]] = {}  # name of a type: (module, qualified name) that defined it


def linop(definition: Any = None, /, *, name: Any = None) -> Any:
    """Register a class of functions, or one function, as a type of operators.

    Parameters
    ----------
    definition : class or function
        `fn(A, x)` builds the graph of the application; `adj_fn`, `normal_fn`, `adj_normal_fn`,
        `split(A, tile)`, `adj_split`, `size(A, d)`, `check(A)`, `version` and `real_linear` are
        optional. A function is the class with that `fn`.
    name : str, optional
        Name in files. Default: "module:qualname".

    Returns
    -------
    callable
        The factory `(ishape, oshape=None, /, *, name=None, sizes=None, **values)`: arrays, shared
        variables and Parameters become parameters, all other values attributes.

    Raises
    ------
    ValueError
        "closure": a function that captures variables; "already registered": another definition
        has the name.

    Examples
    --------
    >>> import numpy as np, palimpsest as ps
    >>> @ps.linop(name="doubled difference")
    ... def Edge(A, x):
    ...     return A.w * (x - ps.ops.roll(x, 1, axis=-1))
    >>> Edge("N", w=2 * np.ones(3))([1.0, 2.0, 4.0])
    array([-6.,  2.,  4.])
    """
    if definition is None:
        return lambda late: linop(late, name=name)
    functions, constants = _contents(definition)
    for key, function in functions.items():
        _check_function(key, function)
    origin = (definition.__module__, definition.__qualname__)
    registered = name or ":".join(origin)
    if _defined.setdefault(registered, origin) != origin:
        raise ValueError(f"[linop] '{registered}' is already registered by {_defined[registered][0]}.")
    index = _core._define_linop(
        registered, origin[0], "<locals>" not in origin[1], functions,
        constants.get("version", 1), constants.get("real_linear", False),
    )
    short = name or definition.__name__

    def factory(ishape: Any, oshape: Any = None, /, *, name: Any = None, sizes: Any = None,
                **values: Any) -> Any:
        return _core._make_linop(index, ishape, oshape, name or short, sizes, values)

    factory.__name__ = definition.__name__
    factory.__qualname__ = definition.__qualname__
    factory.__module__ = definition.__module__
    factory.__doc__ = definition.__doc__
    return factory
