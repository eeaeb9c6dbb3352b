# SPDX-License-Identifier: Apache-2.0
"""Forms for notebooks."""

import html.parser

import numpy as np
import pytest

import palimpsest as ps

VOID = {"br", "line", "rect", "path", "circle"}


class Checked(html.parser.HTMLParser):
    """Well-formed, without scripts."""

    def __init__(self, text):
        super().__init__()
        self.open, self.words, self.folded, self.unfolded = [], [], 0, 0
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag, attributes):
        assert tag not in ("script", "iframe", "img", "style", "link")
        assert not any(name.startswith("on") for name, _ in attributes)
        if tag == "details":
            if ("open", None) in attributes:
                self.unfolded += 1
            else:
                self.folded += 1
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        pass

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)


def checked(object):
    text = object._repr_html_()
    assert len(text.encode()) <= 50_000
    return Checked(text)


def test_operators_show_names_sizes_and_bytes():
    S = ps.Dense(np.ones((8, 4, 4), "complex64"), "CNxNy,NxNy->CNxNy")
    A = S | ps.Fft(2, batch="C")
    text = "".join(checked(A).words)
    for word in ("Chain", "Dense", "Fft", "C=8", "Nx=4", "complex64 (8, 4, 4)", "1.024 kB"):
        assert word in text, word


def test_text_is_escaped():
    A = ps.Diagonal(np.ones(3), "N").named("<script>alert(1)</script> & \"'")
    form = checked(A | ps.Identity("N"))
    assert "<script>alert(1)</script>" in "".join(form.words)


def test_deep_trees_are_folded():
    A = ps.Diagonal(np.ones(3), "N")
    for _ in range(6):
        A = ps.Add([ps.Chain(A, ps.Identity("N").named("I")), ps.Identity("N")])
    form = checked(A)
    assert form.unfolded == 3 and form.folded >= 3


@pytest.mark.parametrize("n", [1000, 3000])
def test_huge_operators_stay_small(n):
    parts = [ps.Diagonal(np.ones(2), "N").named(f"part {k} & more") for k in range(n)]
    form = checked(ps.Add(parts))
    assert "part 7 & more" in "".join(form.words) and "..." in form.words


def test_plans_show_a_picture_and_the_largest_buffers():
    A = ps.Dense(np.ones((8, 16, 16), "complex64"), "CNxNy,NxNy->CNxNy") | ps.Fft(2, batch="C")
    plan = A.plan(np.ones((16, 16), "complex64"))
    text = plan._repr_html_()
    assert "<svg" in text and "16.38 kB" in text and "container" in text
    checked(plan)
    solve = ps.plan(ps.cg, A.N, np.ones((16, 16), "complex64"))
    assert "SolvePlan" in solve._repr_html_() and "<svg" in solve._repr_html_()
    checked(solve)


def test_tensors_show_what_they_are():
    form = checked(ps.zeros((1000, 1000), "float32"))
    text = "".join(form.words)
    assert "float32 (1000, 1000) on cpu, 4 MB" in text
    checked(ps.zeros(()))
    checked(ps.zeros((0, 3), "bool"))
