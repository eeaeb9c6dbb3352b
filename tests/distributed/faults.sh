#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# faults.sh PROGRAM MPIRUN...: makes each rank of a solve fail at different times, and checks that
# all ranks end. PALIMPSEST_LONG=1: at every message and every iteration, else at some. Prints the
# number of runs.
set -u
program=$1
shift
ranks=3
runs=0
log=$(mktemp)
trap 'rm -f "$log"' EXIT

# Checks that the run ends by itself with the message $4 in the output of the ranks.
run_fault() {
  # The other ranks continue.
  timeout 60 "$@" --enable-recovery -n $ranks "$program" $mode $rank $at >"$log" 2>&1
  code=$?
  runs=$((runs + 1))
  if [ $code -eq 124 ]; then
    echo "hangs: $mode $rank $at" && cat "$log" && exit 1
  fi
  if ! grep -q "$expected" "$log"; then
    echo "$mode $rank $at: no '$expected' in:" && cat "$log" && exit 1
  fi
}

# Without a fault every rank ends with an image, and prints the number of its messages.
for problem in data planes coils; do
  "$@" -n $ranks "$program" none 0 0 $problem >"$log" 2>&1
  if [ "$(grep -c '^done: ' "$log")" -ne $ranks ]; then
    echo "no fault, $problem:" && cat "$log" && exit 1
  fi
done
last=$(sed -n 's/^done: \([0-9]*\) messages.*/\1/p' "$log" | head -n 1)

if [ "${PALIMPSEST_LONG:-0}" = 0 ]; then
  messages="1 7 $last"
  iterations='1 4'
else
  messages=$(seq 1 "$last")
  # After the last iteration, the sixth, no rank waits for another.
  iterations='1 2 3 4 5'
fi
for rank in 0 1 2; do
  mode=kill
  expected='error: '
  for at in $messages; do run_fault "$@"; done
  mode=throw
  expected="rank $rank failed: .*the user's own error"
  for at in $iterations; do run_fault "$@"; done
  mode=differ
  expected='ranks 0 and [12] differ'
  at=0
  run_fault "$@"
done
echo "$runs runs, none hangs"
