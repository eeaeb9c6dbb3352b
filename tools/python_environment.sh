#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes the Python environment build/venv, with the packages of python/requirements-test.txt. Does nothing,
# quickly, when it has been made from this file. Exit status 3: there is no package index.
set -eu
cd "$(dirname "$0")/.."
wanted=python/requirements-test.txt
venv=build/venv
if cmp -s "$wanted" "$venv/made-from.txt"; then exit 0; fi
mkdir -p build
log=build/python-environment.log
# Debian's Python, for which its packages of headers are, whatever else is on the path.
python=/usr/bin/python3
[ -x "$python" ] || python=python3
if ! "$python" -m venv --clear "$venv" >"$log" 2>&1; then
  cat "$log" >&2
  exit 1
fi
if ! "$venv/bin/python" -m pip install --quiet --disable-pip-version-check -r "$wanted" >>"$log" 2>&1; then
  echo "python_environment.sh: pip could not install $wanted; see $log." >&2
  exit 3
fi
cp "$wanted" "$venv/made-from.txt"
