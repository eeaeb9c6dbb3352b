# SPDX-License-Identifier: Apache-2.0
"""A plugin of pytest: tests of torch-named-linops run against palimpsest.torchlinops.

`torchlinops` and all its modules, by the folder ORIGINAL_SOURCES of their sources, have the names of
palimpsest.torchlinops. What is missing there fails when it is used, so that a file with one such name runs. Outcomes
go to the file ORIGINAL_OUTCOMES.
"""

import importlib.abc
import importlib.machinery
import importlib.util
import json
import os
import pathlib
import sys
import types

import palimpsest.torchlinops as public

SOURCES = pathlib.Path(os.environ["ORIGINAL_SOURCES"])
OUTCOMES = open(os.environ["ORIGINAL_OUTCOMES"], "w")  # noqa: SIM115
OF_PYTEST = {"pytest_plugins", "pytestmark", "load_tests"} | {
    prefix + name for prefix in ("setup", "teardown") for name in ("_module", "_function")} | {
    "setUpModule", "tearDownModule"}


class Missing:
    def __init__(self, name):
        self.__name__ = name

    def refuse(self, *_, **__):
        raise NotImplementedError(f"palimpsest.torchlinops has no {self.__name__}")

    __call__ = __getitem__ = __instancecheck__ = refuse

    def __mro_entries__(self, bases):
        return ()

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        self.refuse()


class Alias(types.ModuleType):
    def __getattr__(self, name):
        if name.startswith("__") or name in OF_PYTEST:
            raise AttributeError(name)
        own = getattr(public, self.__name__.rsplit(".", 1)[-1], None)
        if own is not None and hasattr(own, name):
            return getattr(own, name)
        return getattr(public, name, None) or Missing(name)


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path, target=None):
        if name.split(".")[0] != "torchlinops":
            return None
        source = SOURCES.joinpath(*name.split("."))
        file = source.with_suffix(".py")
        if ".tests." in name and file.exists():  # helpers that tests share
            return importlib.util.spec_from_file_location(name, file)
        if source.is_dir() or file.exists():
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec):
        return Alias(spec.name)

    def exec_module(self, module):
        pass


sys.meta_path.insert(0, Finder())


def note(report, outcome):
    crash = getattr(getattr(report.longrepr, "reprcrash", None), "message", None) or str(report.longrepr)[-400:]
    print(json.dumps([report.nodeid, outcome, crash if outcome == "failed" else ""]), file=OUTCOMES, flush=True)


def pytest_runtest_logreport(report):
    if report.when == "call" or report.outcome != "passed":
        note(report, report.outcome)


def pytest_collectreport(report):
    if report.outcome == "failed":
        note(report, "failed")
