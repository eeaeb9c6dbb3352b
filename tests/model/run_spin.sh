#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Searches all states of a Promela model:
#   run_spin.sh holds|covers|breaks MODEL WORK_DIR [-DNAME=VALUE]...
# `holds`: no error. `covers`: in addition every step of the model is taken, so nothing is vacuously
# true. `breaks`: the search must end with a violated assertion. Prints the numbers of states and
# transitions and leaves them in WORK_DIR/summary.
set -eu
expected=$1
model=$(realpath "$2")
mkdir -p "$3"
cd "$3"
shift 3

spin -a "$@" "$model"
"${CC:-cc}" -O1 -DSAFETY -DCOLLAPSE -DMEMLIM=2048 -o pan pan.c
./pan -m1000000 >report
{
  echo "spin $*: expected that it $expected"
  grep -E 'states, stored|transitions|errors:|assertion violated|elapsed' report
} | tee summary

fail() {
  echo "run_spin.sh: $1" >&2
  cat report >&2
  exit 1
}
if grep -q 'max search depth too small\|reached -DMEMLIM' report; then
  fail 'not all states were searched'
fi
case $expected in
  holds | covers) grep -q 'errors: 0' report || fail 'the model is broken' ;;
  breaks) grep -q 'assertion violated' report || fail 'the negative control passed' ;;
  *) fail "unknown expectation '$expected'" ;;
esac
if [ "$expected" = covers ] && grep -q '^[[:space:]]*([1-9][0-9]* of' report; then
  fail 'some steps are never taken'
fi
