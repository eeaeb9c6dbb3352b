#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# random_faults.sh PROGRAM RUNS SEED MPIRUN...: launches short solves on 2 to 4 ranks in which one
# rank fails at random, and checks that all ranks end by themselves with a message. Prints the
# number of runs and the outcomes per fault.
set -u
# 1,000 runs with PALIMPSEST_LONG.
program=$1 runs=${PALIMPSEST_LONG:+1000} seed=$3
runs=${runs:-$2}
shift 3
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
faults='kill kill kill exit late throw op op differ place fewer disk none'
problems='coils planes data'

# One line for each run: fault, problem, number of ranks, failing rank, at.
awk -v seed="$seed" -v runs="$runs" -v faults="$faults" -v problems="$problems" 'BEGIN {
  srand(seed)
  n = split(faults, fault); m = split(problems, problem)
  for (i = 1; i <= runs; ++i) {
    f = fault[1 + int(n * rand())]; ranks = 2 + int(3 * rand()); rank = int(ranks * rand())
    at = 1 + int((f == "op" ? 12 : f == "throw" || f == "fewer" ? 6 : 60) * rand())
    print f, problem[1 + int(m * rand())], ranks, f == "disk" ? 0 : rank, at
  }
}' >"$folder/plan"

while read -r fault problem ranks rank at <&3; do
  start=$(date +%s)
  timeout -k 5 60 "$@" --enable-recovery -n "$ranks" "$program" "$fault" "$rank" "$at" "$problem" \
    >"$folder/log" 2>&1 </dev/null
  # For a killed rank mpirun has an exit code like that of timeout.
  if [ $(($(date +%s) - start)) -ge 60 ]; then outcome=hangs; else outcome=ends; fi
  said=$(grep -c '^error: \|^done: ' "$folder/log")
  failed=$(grep -c '^error: ' "$folder/log")
  # A rank that is killed, or that ends its program, prints nothing.
  wanted=$ranks
  case $fault in kill | exit) wanted=$((ranks - 1)) ;; esac
  if [ $outcome = hangs ] || [ "$said" -lt $wanted ] || { [ $fault = none ] && [ "$failed" -gt 0 ]; }; then
    echo "$fault $rank $at $problem on $ranks ranks: $outcome, $said of $wanted ranks say how:"
    cat "$folder/log"
    exit 1
  fi
  if [ "$failed" -gt 0 ]; then came=failed; else came=done; fi
  echo "$fault $came" >>"$folder/outcomes"
done 3<"$folder/plan"

sort "$folder/outcomes" | uniq -c | awk '{ printf "%s %s: %d\n", $2, $3, $1 }'
echo "$runs runs, seed $seed, none hangs"
