#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Checks a wheel in a fresh environment, independent of the build: tools/wheel/check.sh WHEEL
# [PYTHON] PALIMPSEST_NUMPY: a requirement such as numpy==1.24.*; a compatible SciPy is then
# installed.
set -eu
wheel=$(realpath "$1")
python=${2:-/usr/bin/python3}
root=$(cd "$(dirname "$0")/../.." && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
env -i HOME="$folder" PATH=/usr/bin:/bin "$python" -m venv "$folder/venv"
run="env -i HOME=$folder PATH=$folder/venv/bin:/usr/bin:/bin"
versions=$(sed -n 's/^\(hypothesis\|pytest\|scipy\)==/&/p' "$root/python/requirements-test.txt")
if [ -n "${PALIMPSEST_NUMPY:-}" ]; then
  versions="$(echo "$versions" | sed 's/^scipy==.*/scipy/') $PALIMPSEST_NUMPY"
fi
# The package index and the proxies of this machine, if set.
env HOME="$HOME" "$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check "$wheel" $versions
cd "$folder"
$run python "$root/tools/wheel/check.py" "$wheel"
$run palimpsest --version
$run palimpsest doctor >doctor.log || { cat doctor.log; exit 1; }
cp -r "$root/python/tests" "$root/README.md" "$root/docs" "$root/pyproject.toml" "$folder/"
mkdir -p python && mv tests python/tests
$run python -m pytest -q -p no:cacheprovider -m 'not slow' python/tests
