#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Fails when a tracked C++ source is not formatted as .clang-format says, and shows where.
# tools/check_format.sh --fix formats them instead.
set -eu
cd "$(dirname "$0")/.."

sources() {
  git ls-files -- '*.cpp' '*.hpp' | while read -r file; do
    if [ -e "$file" ]; then printf '%s\0' "$file"; fi
  done
}

if [ "${1:-}" = --fix ]; then
  sources | xargs -0 -r clang-format -i
elif ! sources | xargs -0 -r clang-format --dry-run -Werror; then
  echo "check_format.sh: the files above are not formatted. Try tools/check_format.sh --fix." >&2
  exit 1
fi
