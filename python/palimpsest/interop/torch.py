# SPDX-License-Identifier: Apache-2.0
"""Gradients of torch through operators and functions, of any order.

A tensor of torch that requires a gradient, given as a parameter, is borrowed: the operator reads its
memory, and torch learns it. One application is one node of torch's graph; its backward is the
adjoint, or a compiled function for the gradients of parameters, and is such a node itself.
"""

import functools
import weakref
from typing import Any

import torch

from palimpsest import _core

# -- nodes: functions of variables --------------------------------------------------------------


class _Graph:
    """Outputs as a function of inputs and of the learned variables that they depend on."""

    def __init__(self, inputs: Any, outputs: Any, function: Any = None) -> None:
        self.inputs = list(inputs)
        self.outputs = list(outputs)
        weights = _core._torch_weights(self.outputs)
        self.weights = [variable for variable, _ in weights]
        self.tensors = [tensor for _, tensor in weights]
        self._function = function
        self._pullbacks: dict[Any, Any] = {}
        self._pushforwards: dict[Any, Any] = {}

    def __call__(self, *values: Any) -> Any:
        return _Node.apply(self, *values, *self.tensors)

    def run(self, values: Any) -> Any:
        """The values of the outputs, without a gradient."""
        if self._function is None:
            self._function = _core.function(
                self.inputs, self.outputs, on_unused_input="ignore", returns="torch")
        return self._function(*values)

    def pullback(self, wanted: Any, given: Any) -> Any:
        """The graph of the wanted gradients, given cotangents of some outputs."""
        key = (wanted, given)
        if key not in self._pullbacks:
            cotangents = [
                _core.tensor(y.dtype, y.type.shape) if is_given else None
                for y, is_given in zip(self.outputs, given)
            ]
            wrt = [v for v, is_wanted in zip(self.inputs + self.weights, wanted) if is_wanted]
            back = _core.pullback(self.outputs, wrt, cotangents)
            inputs = self.inputs + [c for c in cotangents if c is not None]
            self._pullbacks[key] = _Graph(inputs, back)
        return self._pullbacks[key]

    def pushforward(self, given: Any) -> Any:
        """The graph of the tangents of the outputs, given tangents of some inputs and weights."""
        if given not in self._pushforwards:
            wrt = [v for v, is_given in zip(self.inputs + self.weights, given) if is_given]
            tangents = [_core.tensor(v.dtype, v.type.shape) for v in wrt]
            out = _core.pushforward(self.outputs, wrt, tangents)
            self._pushforwards[given] = _Graph(self.inputs + tangents, out)
        return self._pushforwards[given]

    def tangents(self, values: Any, tangents: Any) -> Any:
        """The tangents of the outputs at these values of inputs and weights; None where none is given."""
        given = tuple(t is not None for t in tangents)
        ahead = self.pushforward(given)
        return ahead(*values[: len(self.inputs)], *(t for t in tangents if t is not None))


class _Node(torch.autograd.Function):
    @staticmethod
    def forward(graph: Any, *values: Any) -> Any:
        return tuple(graph.run(values[: len(graph.inputs)]))

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.graph, *values = inputs
        ctx.save_for_backward(*values)
        ctx.save_for_forward(*values)
        ctx.set_materialize_grads(False)
        ctx.mark_non_differentiable(
            *(r for r in output if not (r.is_floating_point() or r.is_complex())))

    @staticmethod
    def vmap(info: Any, in_dims: Any, graph: Any, *values: Any) -> Any:
        runs = [
            graph(*(v if axis is None else v.select(axis, k) for v, axis in zip(values, in_dims[1:])))
            for k in range(info.batch_size)
        ]
        return tuple(torch.stack(results) for results in zip(*runs)), (0,) * len(graph.outputs)

    @staticmethod
    def backward(ctx: Any, *cotangents: Any) -> Any:
        graph, values = ctx.graph, ctx.saved_tensors
        wanted = ctx.needs_input_grad[1:]
        given = tuple(c is not None for c in cotangents)
        if not any(given):
            return None, *(None for _ in wanted)
        back = graph.pullback(tuple(wanted), given)
        found = iter(back(*values[: len(graph.inputs)], *(c for c in cotangents if c is not None)))
        return None, *(next(found) if is_wanted else None for is_wanted in wanted)

    @staticmethod
    def jvp(ctx: Any, _: Any, *tangents: Any) -> Any:
        return tuple(ctx.graph.tangents(ctx.saved_tensors, tangents))


# -- operators ----------------------------------------------------------------------------------


class _Known:
    """Graphs for one operator, by the type of x. Holds no reference to the operator."""

    def __init__(self, A: Any) -> None:
        self.node = A._node_id
        self.graphs: dict[Any, Any] = {}
        self.adjoint = None  # graphs of the adjoint; they outlive the adjoint object


_operators: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()


def _known(A: Any) -> Any:
    known = _operators.get(A)
    if known is None or known.node != A._node_id:  # a setter may have changed A
        known = _operators[A] = _Known(A)
    return known


def _adjoint(A: Any) -> Any:
    """A.H, with its known graphs."""
    known, H = _known(A), A.H
    if known.adjoint is not None and known.adjoint.node == H._node_id:
        _operators[H] = known.adjoint
        return H
    of_adjoint = _known(H)
    if of_adjoint is not known and of_adjoint.adjoint is not known:  # a reference in one direction only makes no cycle
        known.adjoint = of_adjoint
    return H


def _graph_of(A: Any, x: Any, weights: Any) -> Any:
    graphs = _known(A).graphs
    key = (x.dtype, tuple(x.shape), tuple(id(w) for w in weights))
    if key not in graphs:
        v = _core.tensor(x.dtype, tuple(x.shape))
        graphs[key] = _Graph([v], [A(v)])
    return graphs[key]


class _Application(torch.autograd.Function):
    @staticmethod
    def forward(A: Any, graph: Any, x: Any, *weights: Any) -> Any:
        return A(x)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.linop, ctx.graph, *values = inputs
        ctx.save_for_backward(*values)
        ctx.save_for_forward(*values)
        ctx.set_materialize_grads(False)

    @staticmethod
    def vmap(info: Any, in_dims: Any, A: Any, graph: Any, x: Any, *weights: Any) -> Any:
        if any(axis is not None for axis in in_dims[3:]):
            raise NotImplementedError(
                f"[{A.name}] got a batch of parameters from torch.func.vmap, expected one value of each.")
        return by_batch(A, x.movedim(in_dims[2], 0), 1), 0

    @staticmethod
    def backward(ctx: Any, cotangent: Any) -> Any:
        A = ctx.linop
        x, *weights = ctx.saved_tensors
        if cotangent is None:
            return None, None, *(None for _ in ctx.saved_tensors)
        _, _, of_x, *of_weights = ctx.needs_input_grad
        if not any(of_weights):
            back = _adjoint(A)(cotangent) if of_x else None
            return None, None, _like(back, x), *(None for _ in weights)
        found = iter(ctx.graph.pullback((of_x, *of_weights), (True,))(x, cotangent))
        return None, None, *(next(found) if wanted else None for wanted in (of_x, *of_weights))

    @staticmethod
    def jvp(ctx: Any, _: Any, __: Any, tangent: Any, *of_weights: Any) -> Any:
        if all(t is None for t in of_weights):  # it is linear
            return ctx.linop(tangent)
        return ctx.graph.tangents(ctx.saved_tensors, (tangent, *of_weights))[0]


def _like(gradient: Any, x: Any) -> Any:
    """Returns the gradient in the dtype kind and precision of x: real for a real x."""
    if gradient is None:
        return None
    if gradient.is_complex() and not x.is_complex():
        gradient = gradient.real
    return gradient.to(x.dtype)


@torch.compiler.disable
def apply(A: Any, x: Any) -> Any:
    """A x as one node of torch's graph."""
    weights = _core._torch_weights_of(A)
    if not weights:
        return _Application.apply(A, None, x)
    graph = _graph_of(A, x, weights)  # the graph fixes the order of the weights
    return _Application.apply(A, graph, x, *graph.tensors)


def by_batch(A: Any, x: Any, most: int | None = None) -> Any:
    """A x for a tensor with more axes in front than A has.

    They are the dimensions '...' if A begins with them; else A is applied to one part after the other.

    Parameters
    ----------
    most : int, optional
        The number of those axes, where it is known.
    """
    dims = [str(d) for d in A.ishape]
    if dims[:1] == ["..."]:
        return A(x)
    batch = x.shape[:x.ndim - len(dims)] if most is None else x.shape[:most]
    if not batch:
        return A(x)
    y = torch.stack([A(part) for part in x.reshape(-1, *x.shape[len(batch):])])
    return y.reshape(*batch, *y.shape[1:])


# -- torch.compile --------------------------------------------------------------------------------

# A graph of torch holds numbers, not objects: those of operators whose modules are alive.
_numbered: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()


def _number_of(A: Any) -> int:
    _numbered[id(A)] = A
    return id(A)


def _direction(number: int, is_adjoint: bool) -> Any:
    A = _numbered[number]
    return _adjoint(A) if is_adjoint else A


@torch.library.custom_op("palimpsest::apply", mutates_args=())
def _compiled(x: torch.Tensor, number: int, is_adjoint: bool) -> torch.Tensor:
    y = _direction(number, is_adjoint)(x)
    return y.clone() if y.data_ptr() == x.data_ptr() else y


@_compiled.register_fake
def _(x: torch.Tensor, number: int, is_adjoint: bool) -> torch.Tensor:
    shape = tuple(int(extent) for extent in x.shape)
    y = _direction(number, is_adjoint)(_core.tensor(str(x.dtype).removeprefix("torch."), shape))
    return x.new_empty(y.type.shape, dtype=_torch_dtype(y.dtype))


def _remember(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.x, ctx.number, ctx.is_adjoint = inputs[0].new_empty(0), *inputs[1:]


def _pull_back(ctx: Any, cotangent: Any) -> Any:
    return _like(_compiled(cotangent, ctx.number, not ctx.is_adjoint), ctx.x), None, None


_compiled.register_autograd(_pull_back, setup_context=_remember)


@_compiled.register_vmap
def _(info: Any, in_dims: Any, x: Any, number: int, is_adjoint: bool) -> Any:
    parts = x.movedim(in_dims[0], 0)
    return torch.stack([_compiled(part, number, is_adjoint) for part in parts]), 0


# -- for users ----------------------------------------------------------------------------------


def wrap(f: Any) -> Any:
    """A compiled Function as a function of tensors of torch that has gradients of any order.

    Parameters
    ----------
    f : Function
        Without updates, givens, lent arguments and trust_input.

    Returns
    -------
    callable
        It takes the inputs of f in their order, and gives the results of f.

    Raises
    ------
    ValueError
        f does more than to compute its outputs.

    Examples
    --------
    >>> import torch, palimpsest as ps
    >>> x = ps.dvector("x")
    >>> f = ps.torch.wrap(ps.function([x], ps.ops.sum(x**2)))
    >>> t = torch.tensor([1.0, 2.0], dtype=torch.float64, requires_grad=True)
    >>> f(t).backward()
    >>> t.grad
    tensor([2., 4.], dtype=torch.float64)
    """
    definition = f._definition
    if definition is None:
        raise _core.errors.ValueError(
            "[wrap] got a function with updates, givens, lent arguments or trust_input, expected one "
            "that computes its outputs from its inputs alone."
        )
    inputs, outputs = definition
    graph = _Graph(inputs, outputs)
    dtypes = [_torch_dtype(v.dtype) for v in inputs]

    @functools.wraps(f, assigned=(), updated=())
    def wrapped(*arguments: Any) -> Any:
        if len(arguments) != len(inputs):
            raise TypeError(f"[{f.name or 'function'}] got {len(arguments)} arguments, "
                            f"expected {len(inputs)}.")
        values = [_as_input(a, dtype) for a, dtype in zip(arguments, dtypes)]
        return f._formed(list(graph(*values)))

    wrapped.__name__ = f.name or "function"
    return wrapped


def _torch_dtype(dtype: Any) -> Any:
    return getattr(torch, dtype.name)


def _as_input(value: Any, dtype: Any) -> Any:
    value = torch.as_tensor(value)
    if value.dtype != dtype and torch.promote_types(value.dtype, dtype) == dtype:
        value = value.to(dtype)
    return value


class Module(torch.nn.Module):
    """An operator as a module: its trainable parameters are those of the module.

    Parameters
    ----------
    A : NamedLinop
        `module.linop`. Parameters of its parts are those of the modules in `module.linops`. Without trainable
        parameters torch.compile keeps the module as one step of its graph; with some the graph breaks there.

    Examples
    --------
    >>> import numpy as np, torch, palimpsest as ps
    >>> A = ps.Diagonal(ps.Parameter(np.ones(3), trainable=True), "N")
    >>> module = ps.torch.Module(A)
    >>> module(torch.ones(3, dtype=torch.float64)).sum().backward()
    >>> module.weight.grad
    tensor([1., 1., 1.], dtype=torch.float64)
    """

    def __init__(self, A: Any) -> None:
        super().__init__()
        self.linop = A
        for name, parameter in A.params.items():
            if parameter is not None and parameter.trainable:
                backing = _core._torch_backing(parameter)
                if isinstance(backing, torch.nn.Parameter):
                    self.register_parameter(name, backing)
        if len(A.linops):
            self.linops = torch.nn.ModuleList(Module(child) for child in A.linops)
        self._number_it()

    def _number_it(self) -> None:
        self._number = _number_of(self.linop)
        self._is_fixed = next(self.parameters(), None) is None

    def __setstate__(self, state: Any) -> None:
        super().__setstate__(state)
        self._number_it()

    def forward(self, x: Any) -> Any:
        if self._is_fixed and torch.compiler.is_compiling():
            return _compiled(x, self._number, False)
        return self.linop(x)
