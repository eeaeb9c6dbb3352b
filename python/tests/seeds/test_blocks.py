# SPDX-License-Identifier: Apache-2.0
"""The code blocks of the pages in blocks.md, run as they are but for the lines that import."""

import ast
import copy
import pathlib
import re
import textwrap

import numpy
import pytest

import palimpsest as ps
import palimpsest.torchlinops as tl

TEXT = (pathlib.Path(__file__).parent / "blocks.md").read_text()
BLOCKS = dict(re.findall(r"^## (\w+)\n\n```python\n(.*?)\n```$", TEXT, re.DOTALL | re.MULTILINE))

IMPORTS = {
    "import numpy, pytensor": "import numpy, palimpsest as pytensor",
    "import pytensor": "import palimpsest as pytensor",
    "import pytensor.tensor as pt": "import palimpsest.ops as pt",
    "from pytensor.compile.io import In, Out": "from palimpsest import In, Out",
    "from pytensor.tensor import dscalars, log": "from palimpsest.ops import dscalars, log",
    "from pytensor.tensor.inplace import add_inplace": "from palimpsest.ops.inplace import add_inplace",
    "from torchlinops.copying import memory_aware_deepcopy":
        "from palimpsest.torchlinops.copying import memory_aware_deepcopy",
}
WEIGHT = numpy.arange(12, dtype="float32").reshape(3, 4)


def block(name):
    lines = BLOCKS[name].split("\n")
    assert all(line in IMPORTS for line in lines if re.match(r"(from|import) ", line))
    return "\n".join(IMPORTS.get(line, line) for line in lines)


def run(name, **given):
    """The names after a block with these names given."""
    exec(block(name), given)
    return given


def test_every_block_is_run():
    own = pathlib.Path(__file__).read_text()
    assert len(BLOCKS) == 19 and all(ast.parse(code) for code in BLOCKS.values())
    assert all(f'"{name}"' in own for name in BLOCKS)


class Scaled(tl.NamedLinop):
    """As a user of torch-named-linops writes an operator."""

    def __init__(self, weight):
        super().__init__(tl.NS(tl.Dim("N"), tl.Dim("M")))
        self.weight = weight

    @staticmethod
    def fn(linop, x):
        return ps.ops.dot(linop.weight, x)

    @staticmethod
    def adj_fn(linop, y):
        return ps.ops.dot(ps.ops.conj(linop.weight.T), y)


def check_adjoint(A, adj):
    y = numpy.arange(3.0)
    assert adj.shape == A.shape.H and adj.weight is A.weight
    assert adj.fn is A.adj_fn and adj.adj_fn is A.fn
    numpy.testing.assert_allclose(adj(y), A.H(y))
    numpy.testing.assert_allclose(adj.H(numpy.ones(4)), A(numpy.ones(4)))
    assert ps.dot_test(adj, sizes={"M": 3, "N": 4})


def test_the_adjoint_of_a_shallow_copy():
    A = Scaled(WEIGHT.astype("float64"))
    check_adjoint(A, run("adjoint", copy=copy.copy)["adjoint"](A))


def test_the_adjoint_of_a_shallow_copy_as_a_method():
    body = textwrap.indent(block("adjoint"), "    ")
    given = {"copy": copy.copy, "Scaled": Scaled, "__name__": __name__}
    exec(f"class Own(Scaled):\n{body}", given)
    A = given["Own"](WEIGHT.astype("float64"))
    check_adjoint(A, A.adjoint())
    assert type(A.H) is given["Own"] and A.H.H is A
    numpy.testing.assert_allclose(A.N(numpy.ones(4)), WEIGHT.T @ WEIGHT @ numpy.ones(4))


def test_linops_is_a_property():
    body = textwrap.indent(block("setattr"), "    ")
    given = run("threadable")
    exec(f"class Sum(Threadable):\n    count = 0\n    def _setup_events(self):\n        type(self).count += 1\n{body}",
         given)
    made = given["Sum"]()
    made.linops = [1, 2]
    made.other = 3
    assert (made.linops, made.other, given["Sum"].count) == ([1, 2], 3, 1)
    A = tl.Dense(WEIGHT)
    add = tl.Add(A, A)
    type(add).linops.fset(add, [A.copy(), A.copy(), A.copy()])
    numpy.testing.assert_allclose(add(numpy.ones(4, "float32")), 3 * WEIGHT.sum(1))


def test_children_share_their_weights():
    add = run("children", Dense=tl.Dense, Add=tl.Add, weight=WEIGHT.copy())["add"]
    numpy.testing.assert_allclose(add(numpy.ones(4, "float32")), 2 * WEIGHT.sum(1))


def test_an_adjoint_shares_its_weight(capsys):
    after = run("shared_weights", Dense=tl.Dense, weight=WEIGHT.copy())
    assert capsys.readouterr().out == "0.0\n"
    assert after["adj"].weight is after["A"].weight


def test_a_deep_copy_preserves_views():
    buffer = ps.Parameter(numpy.arange(12.0))
    A = tl.Chain(*(tl.Diagonal(buffer.view(slice(k, k + 8)), ioshape=tl.Dim("N")) for k in (0, 4)))
    B = run("deepcopy", A=A)["A_copy"]
    first, second = (part.weight.data_ptr() for part in B.linops)
    assert second - first == 4 * 8 and first != A.linops[0].weight.data_ptr()


def test_the_adjoint_conjugates():
    run("conjugate")
    W = WEIGHT.astype("float64") * (1 + 2j)
    numpy.testing.assert_allclose(tl.Dense(W).H(numpy.ones(3) + 0j), W.conj().T @ numpy.ones(3))


@pytest.mark.torch
def test_weights_are_trained():
    torch = pytest.importorskip("torch")
    after = run("trainable", Dense=tl.Dense, nn=torch.nn, torch=torch, M=3, N=4)
    after["A"](torch.ones(4)).sum().backward()
    assert after["weight"].grad.tolist() == [[1.0] * 4] * 3


def test_a_shared_variable_borrows(capsys):
    run("shared_after_a_write", **run("shared"))
    assert capsys.readouterr().out.replace(" ", "") == "[1.1.]\n[1.1.]\n[2.2.]\n"


def test_values_of_shared_variables():
    def some_inplace_fn(array):
        array *= 3
        return array

    after = run("get_value", **run("shared"))
    after["v_true"] += 1
    assert after["v_false"].tolist() == [1, 1] and after["s"].get_value().tolist() == [2, 2]
    after = run("get_value_internal", **after)
    assert isinstance(after["v_internal"], ps.Tensor)
    after = run("set_value", some_inplace_fn=some_inplace_fn, **after)
    assert after["s"].get_value().tolist() == [6, 6]


def test_a_function_borrows():
    f = run("function")["f"]
    assert f(numpy.ones((2, 2), "float32")).tolist() == [[2, 2], [2, 2]]


class MyOp(ps.Op):
    def make_node(self, a, b):
        return ps.Apply(self, [a, b], [a.type, b.type])


@pytest.mark.parametrize("name, field", [("view_map", "view_map"), ("view_maps", "view_map"),
                                         ("destroy_map", "destroy_map"), ("destroy_maps", "destroy_map")])
def test_maps_of_an_op(name, field):
    myop = run(name, myop=MyOp())["myop"]
    assert getattr(myop, field) == ({0: [0, 1]} if name.endswith("s") else {0: [0]})


def test_work_in_place_reads_before_it_writes():
    after = run("inplace")
    names = ("r1", "r2", "r3", "r4")
    f = ps.function([ps.In(after["x"], mutable=True), after["y"]], [after[name] for name in names],
                    accept_inplace=True)
    found = [float(r) for r in f(numpy.array(2.0), 5.0)]
    numpy.testing.assert_allclose(found, [numpy.log(2), 7, numpy.log(2), numpy.log(7)])
