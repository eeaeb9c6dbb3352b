#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# From a measured head to a raw scan, and from the scan back to an image, by the command alone:
# tools/quickstart_job.sh PALIMPSEST DIRECTORY
set -eu

palimpsest=$1
out=$2
head=${PALIMPSEST_HEAD:-/usr/share/mricron/templates/ch2.nii.gz}
mkdir -p "$out"

echo
echo "1. A scanner: 8 coils look at a slice of a measured head; a quarter of k-space is kept; noise"
"$palimpsest" simulate "$out/scan.h5" --image "$head" --axis z --slice 90 --coils 8 \
  --pattern poisson --acceleration 4 --noise 0.005 --seed 1 --reference "$out/reference.npy"

echo
echo "2. The usual way out: zeros where nothing was measured"
"$palimpsest" recon "$out/scan.h5" --method adjoint -o "$out/zero-filled.png" \
  --save "$out/zero-filled.npy" --report "$out/zero-filled.json"

echo
echo "3. CG-SENSE, with coil sensitivities estimated from the scan itself"
"$palimpsest" recon "$out/scan.h5" -o "$out/image.png" \
  --save "$out/image.npy" --report "$out/report.json"

echo
echo "4. Against the known image"
"$palimpsest" compare "$out/reference.npy" "$out/zero-filled.npy" "$out/image.npy" \
  --label zero-filled --label CG-SENSE --report "$out/zero-filled.json" \
  --report "$out/report.json" -o "$out/comparison.png"
