# SPDX-License-Identifier: Apache-2.0
"""Every public name has a signature and a docstring with an example that runs."""

import doctest
import inspect
import io
import pickle
import pydoc
import re
import subprocess
import sys

import numpy as np
import pytest

import palimpsest as ps
import palimpsest.errors
import palimpsest.ops.inplace

# Values, modules, and classes that users do not construct.
OTHERS = {"config", "FAST_RUN", "FAST_COMPILE", "NO_REWRITE", "Storage"}


def public_names():
    for name in ps.__all__:
        value = getattr(ps, name)
        if not inspect.ismodule(value) and not isinstance(value, ps.DType) and name not in OTHERS:
            yield f"{name}", value
    for prefix, module in (("ops.", ps.ops), ("ops.inplace.", ps.ops.inplace)):
        for name, value in vars(module).items():
            if not name.startswith("_") and callable(value):
                yield prefix + name, value


NAMES = dict(public_names())
# Their examples need other packages and are on the page about these.
OF_PACKAGES = {"from_pylops", "from_mrpro", "from_sigpy"}
ERRORS = {name for name, value in vars(palimpsest.errors).items() if inspect.isclass(value)}
FUNCTIONS = sorted(name for name, value in NAMES.items() if not inspect.isclass(value))


def test_functions_have_signatures():
    without = []
    for name in FUNCTIONS:
        try:
            inspect.signature(NAMES[name])
        except ValueError as error:
            without.append(f"{name}: {error}")
    assert not without


def test_every_name_has_a_docstring():
    assert [name for name, value in NAMES.items() if not (inspect.getdoc(value) or "").strip()] == []


def test_docstrings_stand_alone():
    """The first line does not go on from the text of another name."""
    goes_on = re.compile(r"(As|By|For|From|In|Is|It|Like|Of|Parameters|Real\.|That|The same|Their|Those|To|With)\b")
    first = {name: (inspect.getdoc(value) or "").strip().split("\n")[0] for name, value in NAMES.items()}
    assert {name: line for name, line in first.items() if goes_on.match(line)} == {}


def test_every_name_but_errors_has_an_example():
    without = [name for name, value in NAMES.items()
               if ">>>" not in (inspect.getdoc(value) or "") and name not in ERRORS | OF_PACKAGES]
    assert without == []


@pytest.mark.skipif(np.__version__.startswith("1."), reason="the examples show what NumPy 2 prints")
@pytest.mark.parametrize("group", ["A", "a", "ops.a", "ops.m", "ops.inplace"])
def test_examples_run(group):
    groups = {"ops.inplace": lambda n: n.startswith("ops.inplace"),
              "ops.a": lambda n: n.startswith("ops.") and n[4] < "m" and not n.startswith("ops.inplace"),
              "ops.m": lambda n: n.startswith("ops.") and n[4] >= "m",
              "A": lambda n: "." not in n and n[0].isupper(), "a": lambda n: "." not in n and n[0].islower()}
    failures, seen = io.StringIO(), set()
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    for name in filter(groups[group], NAMES):
        text = inspect.getdoc(NAMES[name]) or ""
        if ">>>" in text and text not in seen:
            seen.add(text)
            test = doctest.DocTestParser().get_doctest(text, {"np": np, "ps": ps, "__name__": "__main__"}, name, None, 0)
            runner.run(test, out=failures.write)
    assert seen
    assert not failures.getvalue(), failures.getvalue()


def test_options_of_solvers_are_keywords():
    signature = inspect.signature(ps.conjugate_gradients)
    assert list(signature.parameters)[:4] == ["A", "b", "M", "tolerance"]
    assert signature.parameters["tolerance"].kind is inspect.Parameter.KEYWORD_ONLY
    assert signature.parameters["tolerance"].default == 1e-6
    assert signature.parameters["objective"].default == "automatic"
    for name in ("budget", "callback", "progress", "checkpoint_every_s", "x0"):
        assert name in signature.parameters
    assert "cancel" not in signature.parameters


def test_help_begins_with_the_signature():
    text = pydoc.render_doc(ps.fista, renderer=pydoc.plaintext)
    assert "fista(A, h, b, *, tolerance=1e-06" in text
    assert "Parameters" in text and "L : float | None, default None" in text


def test_the_package_alone_has_the_modules_that_users_see():
    program = """
import palimpsest as ps
assert ps.ops.__name__ == "palimpsest.ops" and ps.errors.__name__ == "palimpsest.errors"
assert ps.ops.inplace.__name__ == "palimpsest.ops.inplace" and ps.ops.as_tensor_variable
assert ps.ops.exp.__text_signature__ == "(x)" and ">>>" in ps.ops.exp.__doc__
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_functions_are_found_by_name_in_pickles():
    assert pickle.loads(pickle.dumps(ps.conjugate_gradients)) is ps.conjugate_gradients
    assert pickle.loads(pickle.dumps(ps.ops.exp)) is ps.ops.exp


def test_top_level_has_the_errors_that_hide_no_builtin():
    import builtins

    assert {name for name in ERRORS if not hasattr(builtins, name)} <= set(ps.__all__)
    assert not [name for name in ps.__all__ if hasattr(builtins, name)]
