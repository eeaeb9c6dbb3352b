# SPDX-License-Identifier: Apache-2.0
"""Ops of users: steps of a graph whose work is done in Python."""

from palimpsest import _core


def Apply(op, inputs, outputs):
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
    #: Position of an output to those of the inputs that it may be a view of.
    view_map: dict[int, list[int]] = {}
    #: Position of an output to those of the inputs that it overwrites and lies in.
    destroy_map: dict[int, list[int]] = {}
    #: False: perform never raises, so that the op may work on shared variables in place.
    can_fail = True
    #: Rounding errors that results may differ by, per square root of the number of terms.
    tolerance = 16.0

    def make_node(self, *inputs):
        raise NotImplementedError(f"{type(self).__qualname__}.make_node")

    def infer_shapes(self, node, shapes):
        raise NotImplementedError(f"{type(self).__qualname__}.infer_shapes")

    def perform(self, node, inputs, outputs):
        raise NotImplementedError(f"{type(self).__qualname__}.perform")

    def __call__(self, *inputs):
        outputs = self.make_node(*(_core.as_variable(x) for x in inputs)).outputs
        return outputs[0] if len(outputs) == 1 else outputs

    def __eq__(self, other):
        return type(self) is type(other) and self._values() == other._values()

    def __hash__(self):
        return hash((type(self), self._values()))

    def _values(self):
        return tuple(getattr(self, name) for name in self.__props__)


class _FunctionOp(Op):
    __props__ = ("function", "out")

    def __init__(self, function, out):
        self.function = function
        self.out = out

    def make_node(self, *inputs):
        types = self.out(*(x.type for x in inputs))
        return Apply(self, inputs, types if isinstance(types, (list, tuple)) else [types])

    def infer_shapes(self, node, shapes):
        types = self.out(*(_core.TensorType(x.dtype, s) for x, s in zip(node.inputs, shapes)))
        return [t.shape for t in (types if isinstance(types, (list, tuple)) else [types])]

    def perform(self, node, inputs, outputs):
        self.function(*inputs, *outputs)


def as_op(out=lambda x: x):
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

    def decorate(function):
        return _FunctionOp(function, out)

    return decorate
