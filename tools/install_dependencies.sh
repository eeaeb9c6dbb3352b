#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs the Debian packages that are missing:
#   tools/install_dependencies.sh [build|python|test|lint|bench|docs|wheel]...
# Each of the first four sets contains the ones before it. Does nothing if all are installed, or if
# PALIMPSEST_SKIP_INSTALL is set.
set -eu
[ -z "${PALIMPSEST_SKIP_INSTALL:-}" ] || exit 0

build='g++ cmake ninja-build pkg-config libfmt-dev libopenblas-serial-dev libtbb-dev
  libhwy-dev libcli11-dev nlohmann-json3-dev libhdf5-dev libpng-dev zlib1g-dev libpugixml-dev
  librandom123-dev libxxhash-dev mricron-data'
python="$build python3 python3-dev python3-venv"
test="$python ccache libgtest-dev libgmock-dev spin python3-numpy python3-scipy ismrmrd-tools
  libismrmrd-dev libopenmpi-dev openmpi-bin clang-format git valgrind pocl-opencl-icd oclgrind ocl-icd-libopencl1
  opencl-headers"
lint="$test clang-tidy"
bench="$build libbenchmark-dev libfftw3-dev python3-numpy bart"
docs="$python doxygen"
wheel="$test binutils-aarch64-linux-gnu dpkg-dev qemu-user-static"

wanted=
[ $# -gt 0 ] || set -- build
for set in "$@"; do
  case $set in
    build) wanted="$wanted $build" ;;
    python) wanted="$wanted $python" ;;
    test) wanted="$wanted $test" ;;
    lint) wanted="$wanted $lint" ;;
    bench) wanted="$wanted $bench" ;;
    docs) wanted="$wanted $docs" ;;
    wheel) wanted="$wanted $wheel" ;;
    *)
      echo "install_dependencies.sh: unknown set '$set'. Try build, python, test, lint, bench, docs or wheel." >&2
      exit 2
      ;;
  esac
done

if ! command -v dpkg-query >/dev/null; then
  echo "install_dependencies.sh: this is not a Debian system (no dpkg-query)." >&2
  echo "Install these, under the names your system gives them, then run again with" >&2
  echo "PALIMPSEST_SKIP_INSTALL=1:" $wanted >&2
  exit 1
fi

missing=
for package in $wanted; do
  state=$(dpkg-query --show --showformat='${db:Status-Status}' "$package" 2>/dev/null || true)
  case " $missing " in
    *" $package "*) ;;
    *) [ "$state" = installed ] || missing="$missing $package" ;;
  esac
done
[ -z "$missing" ] && exit 0

if [ "$(id -u)" -ne 0 ]; then
  echo "install_dependencies.sh: packages are missing and only root can install them. Try:" >&2
  echo "  sudo apt-get install --no-install-recommends$missing" >&2
  exit 1
fi
echo "Installing:$missing"
export DEBIAN_FRONTEND=noninteractive
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if ! { apt-get update && apt-get install -y --no-install-recommends $missing; } >"$log" 2>&1; then
  tail -n 20 "$log" >&2
  echo "install_dependencies.sh: apt-get failed; its last lines are above." >&2
  exit 1
fi
