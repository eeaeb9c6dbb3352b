# SPDX-License-Identifier: Apache-2.0
"""Ops of users: steps of a graph whose work is done in Python."""

import ast
import os
import threading
import weakref
from typing import Any

from palimpsest import _core

# The latest class, or op of a function, of each op name.
_named: weakref.WeakValueDictionary[str, Any] = weakref.WeakValueDictionary()
# Number of earlier definitions of the name. The module of the bindings, of which a process has one, keeps
# it for a package that is imported again.
_generations: dict[str, int] = vars(_core).setdefault("_generations", {})


# Locks of ops that are not thread_safe. A child of fork() lacks the threads that may hold them.
_locks: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()
os.register_at_fork(after_in_child=_locks.clear)


def _register(name: Any, named: Any) -> Any:
    """The number of earlier definitions of this name."""
    generation = _generations.get(name, -1) + 1
    _generations[name] = generation
    _named[name] = named
    if generation == 0:
        _core._register_op(name)
    return generation


def _restored(name: Any, parameters: Any) -> Any:
    """The op of a name with the values of __props__ as a text, as files hold it."""
    named = _named.get(name)
    if named is None or "<locals>" in name:
        raise _core.errors.FormatError(
            f"[load] got the op {name}, expected one that its module has by its name. "
            "Try to define it at the top of a module."
        )
    if isinstance(named, Op):
        return named
    try:
        call: Any = ast.parse(f"op({parameters})", mode="eval").body
        values = {item.arg: ast.literal_eval(item.value) for item in call.keywords}
    except (ValueError, SyntaxError):
        raise _core.errors.FormatError(
            f"[load] got the op {name} with {parameters}, expected numbers, texts and tuples as "
            "the values of __props__."
        ) from None
    values.pop("_generation", None)
    try:
        return named(**values)
    except TypeError as error:
        raise _core.errors.FormatError(
            f"[load] {name} cannot be made of its __props__: {error}. Try an __init__ that takes them."
        ) from None


def _modules_in(data: Any) -> Any:
    """The modules of the ops that a saved function names."""
    return sorted({named.__module__ for name, named in list(_named.items()) if name.encode() in data})


def Apply(op: Any, inputs: Any, outputs: Any) -> Any:
    """One application of an op: to these inputs, with results of these types.

    Parameters
    ----------
    outputs : list of TensorType or Variable
        Of a Variable the type counts.

    Examples
    --------
    >>> import palimpsest as ps
    >>> class Copy(ps.Op):
    ...     def make_node(self, x):
    ...         return ps.Apply(self, [x], [x.type])
    >>> len(Copy().make_node(ps.dvector("x")).inputs)
    1
    """
    return _core._make_apply(op, inputs, outputs)


class Op:
    """A step of a graph, as a class of Python: derive from it and define make_node, infer_shapes and perform.

    ``perform(node, inputs, outputs)`` gets arrays of NumPy over the memory of the plan. Inputs are read-only
    unless the op destroys them; outputs are written with ``outputs[0][...] = ...``. No array may be kept.
    ``node`` is None there.

    An op may also have ``pullback(node, cotangents)``, ``pushforward(node, tangents)``, and
    ``inplace_on_inputs(node, allowed)``, which gives the same op with a destroy_map, or None. With
    ``scratch_bytes(node, shapes)`` perform gets a fourth argument, an array of that many uint8 from the memory
    of the plan, with any values.

    Examples
    --------
    >>> import numpy as np, palimpsest as ps
    >>> class Cube(ps.Op):
    ...     def make_node(self, x):
    ...         return ps.Apply(self, [x], [x.type])
    ...     def infer_shapes(self, node, shapes):
    ...         return [shapes[0]]
    ...     def perform(self, node, inputs, outputs):
    ...         outputs[0][...] = inputs[0] ** 3
    ...     def pullback(self, node, cotangents):
    ...         return [cotangents[0] * 3 * node.inputs[0] ** 2]
    >>> x = ps.dvector("x")
    >>> ps.function([x], Cube()(x))([1.0, 2.0])
    array([1., 8.])
    """

    #: Names of attributes by which two ops of one class are equal.
    __props__: tuple[str, ...] = ()
    #: Maps the position of an output to the positions of inputs that it may be a view of.
    view_map: dict[int, list[int]] = {}
    #: Maps the position of an output to the positions of inputs in whose memory it is written.
    destroy_map: dict[int, list[int]] = {}
    #: Maps the position of an input to the linearity of the op in it: "complex", "real" or "conjugate".
    linear_in: dict[int, str] = {}
    #: False: perform of one op runs in one thread at a time.
    thread_safe = True
    #: False: perform never raises, so that the op may work on shared variables in place.
    can_fail = True
    #: Rounding errors that results may differ by, per square root of the number of terms.
    tolerance = 16.0

    _name = ""
    _generation = 0

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls._name = f"{cls.__module__}.{cls.__qualname__}"
        cls._generation = _register(cls._name, cls)

    def make_node(self, *inputs: Any) -> Any:
        raise NotImplementedError(f"{type(self).__qualname__}.make_node")

    def infer_shapes(self, node: Any, shapes: Any) -> Any:
        raise NotImplementedError(f"{type(self).__qualname__}.infer_shapes")

    def perform(self, node: Any, inputs: Any, outputs: Any) -> Any:
        raise NotImplementedError(f"{type(self).__qualname__}.perform")

    def _perform_alone(self, *arguments: Any) -> None:
        with _locks.setdefault(self, threading.RLock()):
            self.perform(*arguments)

    def __call__(self, *inputs: Any) -> Any:
        outputs = self.make_node(*(_core.as_variable(x) for x in inputs)).outputs
        return outputs[0] if len(outputs) == 1 else outputs

    def __eq__(self, other: Any) -> Any:
        return type(self) is type(other) and self._values() == other._values()

    def __hash__(self) -> Any:
        return hash((type(self), self._values()))

    def _values(self) -> Any:
        return tuple(getattr(self, name) for name in self.__props__)


class _FunctionOp(Op):
    """An op made of one function. Files and pickles store the name of the function."""

    def __init__(self, function: Any, out: Any) -> None:
        self.function = function
        self.out = out
        self.__module__ = function.__module__
        self._name = f"{function.__module__}.{function.__qualname__}"
        self._generation = _register(self._name, self)

    def __reduce__(self) -> Any:
        return self.function.__qualname__

    def __eq__(self, other: Any) -> Any:
        return self is other

    def __hash__(self) -> Any:
        return id(self)

    def make_node(self, *inputs: Any) -> Any:
        types = self.out(*(x.type for x in inputs))
        return Apply(self, inputs, types if isinstance(types, (list, tuple)) else [types])

    def infer_shapes(self, node: Any, shapes: Any) -> Any:
        types = self.out(*(_core.TensorType(x.dtype, s) for x, s in zip(node.inputs, shapes)))
        return [t.shape for t in (types if isinstance(types, (list, tuple)) else [types])]

    def perform(self, node: Any, inputs: Any, outputs: Any) -> None:
        self.function(*inputs, *outputs)


def as_op(out: Any = lambda x: x) -> Any:
    """Makes an op of a function ``f(x, .., out)`` that writes its last arguments.

    Parameters
    ----------
    out : function
        Maps the types of the inputs to that of the output, or to a list of types.

    Examples
    --------
    >>> import numpy as np, palimpsest as ps
    >>> @ps.as_op(out=lambda x: x)
    ... def reversed_(x, out):
    ...     out[...] = x[::-1]
    >>> x = ps.dvector("x")
    >>> ps.function([x], reversed_(x))([1.0, 2.0])
    array([2., 1.])
    """

    def decorate(function: Any) -> Any:
        return _FunctionOp(function, out)

    return decorate
