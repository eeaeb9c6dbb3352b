# SPDX-License-Identifier: Apache-2.0
"""Scopes that are exited without having been entered, and objects that look like lists."""

import pytest

import palimpsest as ps


@pytest.mark.parametrize("make", [lambda: ps.config.using(threads=1), lambda: ps.threads(1),
                                  lambda: ps.MemoryScope()])
def test_leaving_what_was_not_entered(make):
    with pytest.raises(ps.StateError, match="not entered"):
        make().__exit__(None, None, None)


def test_functions_are_no_lists():
    x = ps.dvector("x")
    f = ps.function([x], x)
    for wrong in (f, ps.float32, lambda: 0, f.__call__):
        with pytest.raises(TypeError, match="expected an array"):
            f(wrong)
