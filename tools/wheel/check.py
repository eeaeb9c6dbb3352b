# SPDX-License-Identifier: Apache-2.0
"""What an installed wheel must hold to: sizes, modules and libraries that its import loads.

Times of the import are printed, no limits: on a busy machine they say nothing. They follow from the two counts."""

import pathlib
import re
import resource
import statistics
import subprocess
import sys
import time

MOST_WHEEL_BYTES, MOST_UNPACKED_BYTES, MOST_OBJECTS, MOST_MODULES = 24e6, 75e6, 20, 75
# Libraries that the platform tag presupposes.
PRESUMED = re.compile(r"/(ld-linux-x86-64|libc|libm|libdl|librt|libpthread|libutil|libstdc\+\+|libgcc_s|libz|"
                      r"libexpat|libcrypto|libssl|libffi)[-.]")


def times_of(code):
    """Seconds on the clock, and of the processor."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True)
    clock = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return clock, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def medians(code):
    return [statistics.median(times) for times in zip(*(times_of(code) for _ in range(10)))]


def modules_of(code):
    program = f"import sys; before = set(sys.modules); {code}; print(len(set(sys.modules) - before))"
    return int(subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout)


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
                 and not name.startswith((str(site), sys.base_prefix + "/lib/python",
                                            sys.base_prefix + "/lib/libpython", "/usr/lib/python"))]
    clock, processor = (imported - bare for imported, bare in zip(medians("import palimpsest"), medians("pass")))
    modules = modules_of("import palimpsest")
    print(f"wheel {wheel / 1e6:.1f} MB, unpacked {unpacked / 1e6:.1f} MB, {len(ours)} objects of it mapped, "
          f"{modules} modules imported; import {clock:.3f} s above a bare interpreter (target 0.15), "
          f"{processor:.3f} s of the processor")
    wrong = []
    if wheel > MOST_WHEEL_BYTES or unpacked > MOST_UNPACKED_BYTES:
        wrong.append(f"expected at most {MOST_WHEEL_BYTES / 1e6:.0f} and {MOST_UNPACKED_BYTES / 1e6:.0f} MB")
    if strangers or len(ours) > MOST_OBJECTS:
        wrong.append(f"libraries of this machine are mapped: {strangers}")
    if modules > MOST_MODULES:
        wrong.append(f"expected an import of at most {MOST_MODULES} modules")
    sys.exit("check.py: " + "; ".join(wrong) if wrong else 0)


if __name__ == "__main__":
    main()
