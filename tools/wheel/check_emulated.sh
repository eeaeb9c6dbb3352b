#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Checks a wheel of another processor under qemu: tools/wheel/check_emulated.sh PROCESSOR FOLDER WHEEL
# FOLDER: that of tools/wheel/libraries.sh. Imports the package in Debian's Python of that processor, runs the command,
# and tests that reach the kernels of each folder.
set -eu
processor=$1
folder=$(realpath "$2")
wheel=$(realpath "$3")
root=$(cd "$(dirname "$0")/../.." && pwd)
site=$folder/site
python=$root/build/venv-wheel/bin/python
rm -rf "$site"
versions=$(sed -n 's/^\(hypothesis\|pytest\|scipy\)==/&/p' "$root/python/requirements-test.txt")
"$python" -m pip install --quiet --disable-pip-version-check --python-version 311 --implementation cp --abi cp311 \
  --abi abi3 --abi none --only-binary=:all: --target "$site" --platform "manylinux_2_28_$processor" \
  --platform "manylinux_2_27_$processor" --platform "manylinux2014_$processor" "$wheel" $versions 2>"$folder/log/pip.log" ||
  { cat "$folder/log/pip.log" >&2; exit 1; }
mkdir "$site/python"
cp -r "$root/python/tests" "$site/python/"
cp "$root/pyproject.toml" "$site/"
cd "$site"
run="env PYTHONPATH=$site PYTHONDONTWRITEBYTECODE=1 $folder/bin/run $folder/system/usr/bin/python3.11"
$run -c 'import platform, palimpsest as ps; print(platform.machine(), ps.__version__)'
"$folder/bin/run" "$site/palimpsest/bin/palimpsest" doctor
# Not those that start Python themselves, without the emulator.
$run -m pytest -q -p no:cacheprovider -m 'not slow' -k 'not process' python/tests/functions/test_ops.py \
  python/tests/functions/test_function.py python/tests/linop/test_operators.py python/tests/linop/test_linop.py \
  python/tests/tensor python/tests/user/test_ops.py python/tests/solve/test_solvers.py python/tests/imaging/test_imaging.py
