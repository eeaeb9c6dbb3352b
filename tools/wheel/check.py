# SPDX-License-Identifier: Apache-2.0
"""What an installed wheel must hold to: sizes, time of the import, the libraries that it loads."""

import pathlib
import re
import statistics
import subprocess
import sys
import time

MOST_WHEEL_BYTES, MOST_UNPACKED_BYTES, MOST_OBJECTS, MOST_IMPORT_S = 24e6, 75e6, 20, 0.15
# What the platform tag presumes.
PRESUMED = re.compile(r"/(ld-linux-x86-64|libc|libm|libdl|librt|libpthread|libutil|libstdc\+\+|libgcc_s|libz|"
                      r"libexpat|libcrypto|libssl|libffi)[-.]")


def seconds_of(code):
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True)
    return time.perf_counter() - start


def main():
    import palimpsest as ps

    ps.Fft(1)(ps.ones(8, "complex64"))
    package = pathlib.Path(ps.__file__).parent
    site = package.parent
    wheel = pathlib.Path(sys.argv[1]).stat().st_size
    folders = [package, site / "palimpsest_linops.libs"]
    unpacked = sum(path.stat().st_size for folder in folders for path in folder.rglob("*")
                   if path.is_file() and path.suffix != ".pyc")
    mapped = {line.split()[-1] for line in open("/proc/self/maps") if "/" in line}
    objects = sorted(name for name in mapped if ".so" in name)
    ours = [name for name in objects if name.startswith(tuple(map(str, folders)))]
    strangers = [name for name in objects if name not in ours and not PRESUMED.search(name)
                 and not name.startswith((str(site), sys.base_prefix + "/lib/python", "/usr/lib/python"))]
    bare = statistics.median(seconds_of("pass") for _ in range(10))
    imported = statistics.median(seconds_of("import palimpsest") for _ in range(10)) - bare
    print(f"wheel {wheel / 1e6:.1f} MB, unpacked {unpacked / 1e6:.1f} MB, {len(ours)} objects of it mapped, "
          f"import {imported:.3f} s above a bare interpreter")
    wrong = []
    if wheel > MOST_WHEEL_BYTES or unpacked > MOST_UNPACKED_BYTES:
        wrong.append(f"expected at most {MOST_WHEEL_BYTES / 1e6:.0f} and {MOST_UNPACKED_BYTES / 1e6:.0f} MB")
    if strangers or len(ours) > MOST_OBJECTS:
        wrong.append(f"libraries of this machine are mapped: {strangers}")
    if imported > MOST_IMPORT_S:
        wrong.append(f"expected an import within {MOST_IMPORT_S} s")
    sys.exit("check.py: " + "; ".join(wrong) if wrong else 0)


if __name__ == "__main__":
    main()
