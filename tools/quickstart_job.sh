#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Reconstructs a scan of a measured head: tools/quickstart_job.sh PALIMPSEST OUTPUT_DIRECTORY
# The head is an axial slice of Debian's mricron-data; PALIMPSEST_HEAD names another NIfTI file.
set -eu
if [ $# -ne 2 ]; then
  echo "usage: quickstart_job.sh PALIMPSEST OUTPUT_DIRECTORY" >&2
  exit 2
fi
palimpsest=$1
out=$2
head=${PALIMPSEST_HEAD:-/usr/share/mricron/templates/ch2.nii.gz}
if [ ! -r "$head" ]; then
  echo "quickstart_job.sh: there is no file '$head'." >&2
  echo "Try apt-get install mricron-data, or PALIMPSEST_HEAD=FILE.nii.gz" >&2
  exit 1
fi
mkdir -p "$out"

echo "1. A raw scan of a head: 8 coils, a quarter of k-space, noise"
"$palimpsest" simulate "$out/head.h5" --image "$head" --axis z --slice 80 \
  --coils 8 --pattern poisson --acceleration 4 --noise 0.005 --seed 1 \
  --reference "$out/reference.npy"
echo "2. What was not measured set to zero"
"$palimpsest" recon "$out/head.h5" --method adjoint --save "$out/zero_filled.npy" \
  --report "$out/zero_filled.json"
echo "3. CG-SENSE"
"$palimpsest" recon "$out/head.h5" --method cg-sense -o "$out/cg_sense.png" \
  --save "$out/cg_sense.npy" --report "$out/cg_sense.json"
echo "4. The same data with sparse wavelets"
"$palimpsest" recon "$out/head.h5" --reg l1wav:0.002 --iterations 100 --tolerance 0 -o "$out/l1_wavelet.png" \
  --save "$out/l1_wavelet.npy" --report "$out/l1_wavelet.json"
echo "5. All against the known image"
"$palimpsest" compare "$out/reference.npy" "$out/zero_filled.npy" "$out/cg_sense.npy" \
  "$out/l1_wavelet.npy" --label zero-filled --label CG-SENSE --label l1-wavelet \
  --report "$out/zero_filled.json" --report "$out/cg_sense.json" \
  --report "$out/l1_wavelet.json" -o "$out/quickstart.png"
