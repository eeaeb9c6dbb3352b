# SPDX-License-Identifier: Apache-2.0
"""The decorator of operators that are written in Python."""

from __future__ import annotations

import inspect
from typing import Any, overload

from palimpsest import _core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Callable, Protocol, TypeVar

    from palimpsest.typing import DimsLike

    class LinopFactory(Protocol):
        """Makes operators of a decorated function or class."""

        def __call__(self, ishape: DimsLike, oshape: DimsLike | None = None, /, *, name: str | None = None,
                     sizes: Mapping[str, int] | None = None, **values: Any) -> _core.NamedLinop: ...

    Derived = TypeVar("Derived", bound=type[_core.NamedLinop])

_FUNCTIONS = ("fn", "adj_fn", "normal_fn", "adj_normal_fn", "split", "adj_split", "size", "check")
_EXCHANGED = {"fn": "adj_fn", "normal_fn": "adj_normal_fn", "split": "adj_split"}
_EXCHANGED.update({back: there for there, back in _EXCHANGED.items()})
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


def _define(registered: Any, definition: Any, functions: Any, constants: Any, cls: Any = None) -> Any:
    """The number of a new type of operators."""
    origin = (definition.__module__, definition.__qualname__)
    if _defined.setdefault(registered, origin) != origin:
        raise ValueError(f"[linop] '{registered}' is already registered by {_defined[registered][0]}.")
    return _core._define_linop(
        registered, origin[0], "<locals>" not in origin[1], functions,
        constants.get("version", 1), constants.get("real_linear", False), cls)


# -- classes derived from NamedLinop --------------------------------------------------------------


class _Direction:
    """fn, adj_fn, normal_fn or adj_normal_fn of a class; of an operator, the function in effect."""

    def __init__(self, role: Any) -> None:
        self.role = role

    def __get__(self, A: Any, cls: Any = None) -> Any:
        if A is None:
            return cls._functions.get(self.role)
        functions = _core._linop_functions(A)
        if self.role not in functions:
            raise AttributeError(self.role)  # NamedLinop.__getattr__ says more
        return functions[self.role]

    def __set__(self, A: Any, function: Any) -> None:
        cls = type(A)
        functions = {**_core._linop_functions(A), self.role: function}
        key = tuple(sorted(functions.items(), key=lambda item: item[0]))
        index = cls._types.get(key)
        if index is None:
            if not callable(function):
                raise TypeError(f"[{cls.__name__}] {self.role}: got {type(function).__name__}, expected a function.")
            # Files find the functions of the class alone: operators of this type cannot be saved.
            index = cls._types[key] = _core._define_linop(
                f"{cls.__module__}:{cls.__qualname__} with other functions", cls.__module__, False, functions,
                1, False, cls)
        _core._set_linop_functions(A, index)


def _functions_of(cls: Any) -> Any:
    """The functions of a class and of the classes that it is derived from; they leave its namespace."""
    functions = dict(getattr(cls, "_functions", {}))
    for other, instead in (("normal", "normal_fn"), ("split_forward", "split")):
        if other in vars(cls):
            raise TypeError(f"[{cls.__qualname__}] got '{other}', which is derived here. Try {instead}.")
    for role in (*_FUNCTIONS, "adjoint"):
        value = vars(cls).get(role)
        if value is None or isinstance(value, _Direction):
            continue
        functions[role] = value.__func__ if isinstance(value, staticmethod) else value
        if role != "adjoint":
            _check_function(role, functions[role])
        delattr(cls, role)
    return functions


def _define_class(cls: Any, registered: Any) -> None:
    functions = cls._functions
    constants = {name: vars(cls)[name] for name in _CONSTANTS if name in vars(cls)}
    cls._index = _define(registered, cls, functions, constants, cls)
    cls._types = {tuple(sorted(functions.items(), key=lambda item: item[0])): cls._index}
    if "adj_fn" in functions:  # an adjoint that a class makes by itself
        back = {_EXCHANGED.get(role, role): function for role, function in functions.items()}
        cls._types[tuple(sorted(back.items(), key=lambda item: item[0]))] = _define(
            registered + ".H", cls, back, constants, cls)


def _init_subclass(cls: Any, /, **options: Any) -> None:
    super(_core.NamedLinop, cls).__init_subclass__(**options)
    cls._functions = _functions_of(cls)
    if "fn" not in cls._functions:  # a base of classes
        return
    for role in ("fn", "adj_fn", "normal_fn", "adj_normal_fn"):
        setattr(cls, role, _Direction(role))
    _define_class(cls, f"{cls.__module__}:{cls.__qualname__}")


def _init(self: Any, ishape: Any = "...", oshape: Any = None, /, *, name: Any = None, sizes: Any = None,
          **values: Any) -> None:
    """Begin an operator of a class that is derived from NamedLinop and has fn.

    Parameters
    ----------
    ishape, oshape : str or dims
        Dimensions of x and of y; the same where oshape is None. A NamedShape is both.
    name : str, optional
        Default: that of the class.
    sizes : dict of str to int, optional
        Sizes of dimensions.
    values
        Arrays, shared variables and Parameters become parameters, all other values attributes, as do
        those that are assigned to attributes of the operator afterwards.
    """
    cls = type(self)
    if not hasattr(cls, "_index"):
        raise TypeError(f"[{cls.__name__}] has no fn, expected a function fn(A, x).")
    if isinstance(ishape, _core.NamedShape) and oshape is None:
        ishape, oshape = ishape.ishape, ishape.oshape
    _core._begin_linop(self, cls._index, ishape, oshape, name or cls.__name__, sizes, values)


members_of_operators = {"__init__": _init, "__init_subclass__": classmethod(_init_subclass)}


@overload
def linop(definition: Derived, /, *, name: str | None = None) -> Derived: ...
@overload
def linop(definition: Callable[..., Any], /, *, name: str | None = None) -> LinopFactory: ...
@overload
def linop(definition: None = None, /, *, name: str | None = None) -> Callable[[Any], Any]: ...
def linop(definition: Any = None, /, *, name: Any = None) -> Any:
    """Register a class of functions, or one function, as a type of operators.

    Parameters
    ----------
    definition : class or function
        `fn(A, x)` builds the graph of the application; `adj_fn`, `normal_fn`, `adj_normal_fn`,
        `split(A, tile)`, `adj_split`, `size(A, d)`, `check(A)`, `version` and `real_linear` are
        optional. A function is the class with that `fn`. A class derived from NamedLinop stays a
        class: type checkers know its operators, and it may have other members.
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
    if inspect.isclass(definition) and issubclass(definition, _core.NamedLinop):
        if name is not None:
            _define_class(definition, name)
        return definition
    functions, constants = _contents(definition)
    for key, function in functions.items():
        _check_function(key, function)
    registered = name or f"{definition.__module__}:{definition.__qualname__}"
    index = _define(registered, definition, functions, constants)
    short = name or definition.__name__

    def factory(ishape: Any, oshape: Any = None, /, *, name: Any = None, sizes: Any = None,
                **values: Any) -> Any:
        return _core._make_linop(index, ishape, oshape, name or short, sizes, values)

    factory.__name__ = definition.__name__
    factory.__qualname__ = definition.__qualname__
    factory.__module__ = definition.__module__
    factory.__doc__ = definition.__doc__
    return factory
