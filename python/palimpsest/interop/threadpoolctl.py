# SPDX-License-Identifier: Apache-2.0
"""Threads of the library, for the package threadpoolctl."""

import threadpoolctl

import palimpsest as ps


class Controller(threadpoolctl.LibController):
    """The library as one of those whose threads are limited: config.threads."""

    user_api = "palimpsest"
    internal_api = "palimpsest"
    filename_prefixes = ("libpalimpsest.so",)

    def get_num_threads(self) -> int:
        return ps.thread_count()

    def set_num_threads(self, num_threads: int) -> None:
        ps.config.threads = num_threads

    def get_version(self) -> str:
        return ps.__version__


_registered = False


def register() -> None:
    """Makes the controller known, once."""
    global _registered
    if not _registered:
        threadpoolctl.register(Controller)
        _registered = True
