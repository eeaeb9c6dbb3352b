#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes the Python environment build/venv, with the packages of python/requirements-test.txt, and
# with the argument `extras` those of python/requirements-extras.txt too; with the argument `docs`
# or `wheel` makes build/venv-docs instead. Does nothing if the environment was made from these
# files. Exit status 3: no package index.
set -eu
cd "$(dirname "$0")/.."
set_of_packages=test
venv=build/venv
case ${1:-} in
  '' | extras) ;;
  *) set_of_packages=$1 venv=build/venv-$1 ;;
esac
wanted=python/requirements-$set_of_packages.txt
log=build/python-environment.log

# Installs the packages of a file and records them.
install() {
  if cmp -s "$1" "$venv/$2"; then return; fi
  if ! "$venv/bin/python" -m pip install --quiet --disable-pip-version-check -r "$1" >>"$log" 2>&1; then
    echo "python_environment.sh: pip could not install $1; see $log." >&2
    exit 3
  fi
  cp "$1" "$venv/$2"
}

extras() {
  if [ "${1:-}" = extras ]; then install python/requirements-extras.txt made-from-extras.txt; fi
}

if cmp -s "$wanted" "$venv/made-from.txt"; then
  extras "$@"
  exit 0
fi
mkdir -p build
# Debian's Python, which matches its header packages, whatever is first on the path.
python=/usr/bin/python3
[ -x "$python" ] || python=python3
if ! "$python" -m venv --clear "$venv" >"$log" 2>&1; then
  cat "$log" >&2
  exit 1
fi
install "$wanted" made-from.txt
extras "$@"
