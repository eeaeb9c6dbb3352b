# SPDX-License-Identifier: Apache-2.0
"""Operators written in Python: laws, files, exceptions, what is refused."""

import pickle
import sys
import textwrap

import numpy as np
import pytest

import palimpsest as ps
import palimpsest.ops as pt

W = np.arange(1.0, 7.0)


@ps.linop
class Edge:
    """y = w (x - roll(x, 1))."""

    def fn(A, x):
        return A.w * (x - pt.roll(x, 1, axis=-1))

    def size(A, d):
        return A.w.shape[0] if d == "N" else None


@ps.linop
def tripled(A, x):
    return A.k * x


@ps.linop
class Failing:
    def fn(A, x):
        raise KeyError("lost")


@ps.linop
class Checked:
    def fn(A, x):
        return x * A.k

    def adj_fn(A, x):
        return x * A.k

    def normal_fn(A, x):
        return x * (A.k * A.k)

    def split(A, tile):
        return Checked(A.ishape, k=A.k)

    def check(A):
        if A.k < 0:
            raise ValueError("k is negative")


def edge_matrix(w):
    return np.diag(w) @ (np.eye(6) - np.roll(np.eye(6), 1, 0))


def test_adjoint_and_laws_are_derived():
    A = Edge("N", w=W)
    np.testing.assert_allclose(A.matrix(), edge_matrix(W))
    np.testing.assert_allclose(A.H.matrix(), edge_matrix(W).T)
    np.testing.assert_allclose(A.N.matrix(), edge_matrix(W).T @ edge_matrix(W))
    assert A.size("N") == 6 and A.name == "Edge" and A.H.H is A and A.H.w is A.w
    report = ps.check_contract(A, sizes={"N": 6})
    assert report.ok, report
    w = ps.shared(W)
    B = Edge("N", w=w)
    w.set_value(2 * W)
    np.testing.assert_allclose(B.matrix(), edge_matrix(2 * W))
    np.testing.assert_allclose((ps.Diagonal(W, "N") @ A).matrix(), np.diag(W) @ edge_matrix(W))


def test_functions_and_attributes():
    A = tripled("N", k=3.0, name="triple", sizes={"N": 2})
    assert A.k == 3.0 and A.name == "triple" and A.size("N") == 2
    np.testing.assert_allclose(A.matrix(), 3 * np.eye(2))
    values = {"a": 1, "b": True, "c": 2j, "d": "text", "e": ps.Dim("NxNy"), "f": [1, 2]}
    B = tripled("N", k=1.0, **values)
    assert B.a == 1 and B.b is True and B.c == 2j and B.d == "text"
    assert B.e == ("Nx", "Ny") and B.f == (1, 2)
    with pytest.raises(TypeError, match="expected an array"):
        tripled("N", k=object())
    C = Checked("N", k=2.0)
    np.testing.assert_allclose(C.N(np.ones(3)), [4, 4, 4])
    np.testing.assert_allclose(C.split({"N": slice(0, 1)})(np.ones(1)), [2])
    with pytest.raises(ValueError, match="k is negative"):
        Checked("N", k=-1.0)


def test_exceptions_pass_through():
    with pytest.raises(KeyError, match="lost") as caught:
        Failing("N")(np.ones(3))
    if sys.version_info >= (3, 11):
        assert caught.value.__notes__ == [f"while building {__name__}:Failing (N -> N), forward"]
    with pytest.raises(TypeError):
        tripled("N", k="a")(np.ones(3))


def test_what_is_no_definition():
    captured = 3.0
    with pytest.raises(ValueError, match="closure over captured"):
        ps.linop(lambda A, x: captured * x)
    with pytest.raises(ValueError, match="default"):
        ps.linop(lambda A, x, seen=[]: x)
    with pytest.raises(TypeError, match="'forward'"):
        ps.linop(type("Wrong", (), {"forward": lambda A, x: x}))
    with pytest.raises(TypeError, match="has no fn"):
        ps.linop(type("Empty", (), {}))
    with pytest.raises(TypeError, match="class or a function"):
        ps.linop(3)
    with pytest.raises(ValueError, match="already registered"):
        ps.linop(tripled_again, name=f"{__name__}:tripled")


def tripled_again(A, x):
    return x


def test_pickles_and_files(tmp_path, monkeypatch):
    (tmp_path / "my_edges.py").write_text(textwrap.dedent("""
        import palimpsest as ps

        @ps.linop
        class Twice:
            def fn(A, x):
                return A.w * x
    """))
    monkeypatch.syspath_prepend(str(tmp_path))
    import my_edges

    A = my_edges.Twice("N", w=W)
    assert b"my_edges" in pickle.dumps(A)
    for made in (pickle.loads(pickle.dumps(A)), ps.from_bytes(ps.to_bytes(A))):
        np.testing.assert_allclose(made(np.ones(6)), W)
    ps.save(A, str(tmp_path / "A.pal"))
    np.testing.assert_allclose(ps.load(str(tmp_path / "A.pal"))(np.ones(6)), W)

    @ps.linop
    def local(A, x):
        return x

    B = ps.Chain(A, local("N"))
    np.testing.assert_allclose(B(np.ones(6)), W)
    for write in (pickle.dumps, ps.to_bytes, lambda op: ps.save(op, str(tmp_path / "B.pal"))):
        with pytest.raises(ps.FormatError, match="closure"):
            write(B)


def test_a_new_definition_replaces_the_old():
    def define(text):
        names = {"__name__": "notebook", "pt": pt, "ps": ps}
        exec(textwrap.dedent(text), names)
        return names["cell"]

    old = define("@ps.linop\ndef cell(A, x):\n    return 2.0 * x")("N")
    new = define("@ps.linop\ndef cell(A, x):\n    return 5.0 * x")("N")
    assert old(np.ones(2)).tolist() == [2, 2] and new(np.ones(2)).tolist() == [5, 5]
    assert ps.from_bytes(ps.to_bytes(new))(np.ones(2)).tolist() == [5, 5]
    with pytest.raises(ps.FormatError, match="unknown type"):
        ps.to_bytes(old)


def test_simple_operators():
    scale = 3.0
    A = ps.SimpleLinop(lambda x: scale * x, ishape="N", name="scaled")
    assert A.name == "scaled"
    np.testing.assert_allclose(A(np.ones(2)), [3, 3])
    np.testing.assert_allclose(A.H(np.ones(2)), [3, 3])
    np.testing.assert_allclose(A.N(np.ones(2)), [9, 9])
    B = ps.SimpleLinop(lambda x: pt.cumsum(x, axis=0), ishape="N", oshape="M").with_sizes({"N": 3})
    np.testing.assert_allclose(B.H(np.ones(3)), [3, 2, 1])
    with pytest.raises(ps.FormatError, match="closure"):
        ps.to_bytes(A)
    with pytest.raises(ps.NotLinearError):
        ps.SimpleLinop(pt.exp, ishape="N").H(np.ones(2))
    with pytest.raises(TypeError, match="expected a function"):
        ps.SimpleLinop(3)

    def fail(x):
        raise ZeroDivisionError("here")

    with pytest.raises(ZeroDivisionError, match="here"):
        ps.SimpleLinop(fail, ishape="N")(np.ones(2))


def test_functions_of_operators_see_no_values():
    for read in ("np.asarray(A.w)", "A.w.value", "A.w.data", "np.sum(A.w)", "ps.constant(A.w)"):
        def fn(A, x, read=read):
            return A.w * x * float(np.sum(eval(read)))

        with pytest.raises(ps.StateError, match="request for its value"):
            ps.linop(fn, name=f"reads:{read}")("N", w=np.ones(3))(np.ones(3))
    assert ps.Diagonal(np.ones(3), "N").weight.value.tolist() == [1, 1, 1]


def test_simple_operators_take_their_arguments_by_position():
    S = ps.SimpleLinop(lambda x: 2 * x, None, None, "N", None, "twice")
    assert S.name == "twice" and S(np.ones(2)).tolist() == [2, 2]
    assert ps.SimpleLinop(lambda x: x, None, None, "N", name=None).name == ps.SimpleLinop(lambda x: x).name
