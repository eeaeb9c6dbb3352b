# SPDX-License-Identifier: Apache-2.0
"""Runs commands and measures time and memory of each."""

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass


@dataclass
class Run:
    seconds: float  # by the clock that was asked for
    peak_bytes: int  # largest resident set
    output: str


def launch():
    """Runs the command of the arguments and prints what it took: `measure.py RESULT COMMAND..`.

    A process starts with the largest resident set of its parent before exec(). This one has only
    the interpreter, 10 MB, less than any process that is measured here.
    """
    import time

    start = time.perf_counter()
    pid = os.fork()
    if pid == 0:
        os.execvp(sys.argv[2], sys.argv[2:])
    _, status, usage = os.wait4(pid, 0)
    clock = time.perf_counter() - start
    with open(sys.argv[1], "w") as file:
        times = {"user": usage.ru_utime, "processor": usage.ru_utime + usage.ru_stime, "wall": clock}
        json.dump([times, usage.ru_maxrss * 1024], file)
    sys.exit(os.waitstatus_to_exitcode(status))


class Runner:
    """Runs both programs in one folder with the same number of threads."""

    def __init__(self, folder, command, bart, threads, clock):
        self.folder, self.threads, self.clock = folder, threads, clock
        self.programs = {"ours": os.path.abspath(command) if "/" in command else command,
                         "bart": bart}
        threads = str(threads)
        self.environment = dict(os.environ, OMP_NUM_THREADS=threads, OPENBLAS_NUM_THREADS=threads,
                                BART_TOOLBOX_PATH="")
        self.empty = {"ours": self.run("ours", ["--version"]).peak_bytes,
                      "bart": self.run("bart", ["version"]).peak_bytes}

    def run(self, side, words):
        if side == "ours" and words[0] in ("recon", "maps"):
            words = [*words, "--threads", str(self.threads)]
        with tempfile.NamedTemporaryFile("r") as result:
            done = subprocess.run([sys.executable, "-S", "-E", __file__, result.name,
                                   self.programs[side], *words], cwd=self.folder,
                                  env=self.environment, capture_output=True, text=True)
            if done.returncode != 0:
                raise RuntimeError(f"{self.programs[side]} {' '.join(words)}: exit code "
                                   f"{done.returncode}\n{done.stdout}{done.stderr}")
            times, peak = json.load(result)
        return Run(times[self.clock], peak, done.stdout)

    def above_empty(self, side, run):
        return max(run.peak_bytes - self.empty[side], 1)

    def report(self, words):
        """What our command tells about a run, and the run."""
        run = self.run("ours", [*words, "--json"])
        return json.loads(run.output), run

    def smallest_budget(self, words):
        """The bytes that the command asks for where --memory 1k is too little."""
        try:
            self.run("ours", [*words, "--memory", "1k"])
        except RuntimeError as error:
            text = str(error)
            mark = "Try --memory "
            if mark in text:
                return int("".join(c for c in text.split(mark)[1].split()[0] if c.isdigit()))
            raise
        return 1000


if __name__ == "__main__":
    launch()
