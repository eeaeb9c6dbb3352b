# SPDX-License-Identifier: Apache-2.0
"""Threads of the library are limited as those of others are."""

import pytest

import palimpsest as ps

threadpoolctl = pytest.importorskip("threadpoolctl")
pytestmark = pytest.mark.extras


def test_threads_are_limited_and_given_back():
    ps.register_threadpoolctl()
    ps.register_threadpoolctl()
    assert [found for found in threadpoolctl.threadpool_info() if found["user_api"] == "palimpsest"]
    before = ps.thread_count()
    with threadpoolctl.threadpool_limits(1, user_api="palimpsest"):
        assert ps.thread_count() == 1
    assert ps.thread_count() == before
