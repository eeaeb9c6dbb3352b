# SPDX-License-Identifier: Apache-2.0
"""Puts the licences of all that a repaired wheel contains into it, and their names into its metadata.

    licences.py WHEEL COPYING_OF_HDF5 DIRECTORY
"""

import base64
import hashlib
import pathlib
import re
import subprocess
import sys
import zipfile

# Debian packages of the libraries that auditwheel copies, and of libraries linked or compiled into
# ours.
LICENCES = {
    "libtbb12": "Apache-2.0",
    "libtbbbind-2-5": "Apache-2.0",
    "libtbbmalloc2": "Apache-2.0",
    "libpng16-16": "libpng-2.0",
    "libfmt9": "MIT",
    "libhwy1": "Apache-2.0",
    "libpugixml1v5": "MIT",
    "libgomp1": "GPL-3.0-or-later WITH GCC-exception-3.1",
    "libgfortran5": "GPL-3.0-or-later WITH GCC-exception-3.1",
    "libquadmath0": "LGPL-2.1-or-later",
    "libopenblas0-serial": "BSD-3-Clause",
    "libhwloc15": "BSD-3-Clause",
    "libxxhash0": "BSD-2-Clause",
    # In the library itself: OpenBLAS is linked statically, the others are headers.
    "libopenblas-serial-dev": "BSD-3-Clause",
    "nlohmann-json3-dev": "MIT",
    "libcli11-dev": "BSD-3-Clause",
    "librandom123-dev": "BSD-3-Clause",
    "libxxhash-dev": "BSD-2-Clause",
}
COMPILED_IN = ["libopenblas-serial-dev", "nlohmann-json3-dev", "libcli11-dev", "librandom123-dev", "libxxhash-dev"]


def packages_of(names):
    """The Debian packages of libraries, by the names that auditwheel gave their copies."""
    found = set()
    for name in names:
        stem = re.sub(r"-[0-9a-f]{8}(?=\.so)", "", name)
        listing = subprocess.run(["dpkg-query", "--search", f"*/{stem}*"], capture_output=True, text=True)
        packages = {line.split(":")[0] for line in listing.stdout.splitlines()
                    if re.search(rf"/{re.escape(stem)}[\d.]*$", line)}
        known = sorted(packages & set(LICENCES)) or sys.exit(
            f"licences.py: of which package is {name}, and under which licence? Got {sorted(packages)}.")
        found.add(known[0])
    return sorted(found)


def with_licences(metadata, expression, files):
    lines = [line for line in metadata.split("\n\n", 1)[0].splitlines()
             if not line.startswith(("License-Expression", "License-File"))]
    lines.append(f"License-Expression: {expression}")
    lines += [f"License-File: {name}" for name in files]
    return "\n".join(lines) + "\n\n" + metadata.split("\n\n", 1)[1]


def record_line(name, data):
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    return f"{name},sha256={digest},{len(data)}"


def main():
    wheel, hdf5, out = (pathlib.Path(argument) for argument in sys.argv[1:])
    with zipfile.ZipFile(wheel) as archive:
        entries = {info.filename: (info, archive.read(info)) for info in archive.infolist()
                   if not info.is_dir()}
    info_folder = next(name.split("/")[0] for name in entries if name.endswith(".dist-info/METADATA"))
    copied = [name.split("/")[-1] for name in entries if ".libs/" in name and ".so" in name]
    packages = packages_of(copied) + COMPILED_IN
    added = {package: pathlib.Path(f"/usr/share/doc/{package}/copyright").read_bytes() for package in packages}
    added["hdf5"] = hdf5.read_bytes()
    expression = " AND ".join(sorted({"Apache-2.0", "BSD-3-Clause", *(LICENCES[p] for p in packages)}))
    files = {f"{info_folder}/licenses/{name}/copyright": data for name, data in added.items()}
    listed = [name.split("/licenses/")[1] for name in entries if "/licenses/" in name]
    listed += [name.split("/licenses/")[1] for name in files]
    metadata = f"{info_folder}/METADATA"
    text = with_licences(entries[metadata][1].decode(), expression, sorted(listed))
    record = f"{info_folder}/RECORD"
    target = out / wheel.name
    out.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as made:
        lines = []
        for name, (info, data) in entries.items():
            if name == record:
                continue
            data = text.encode() if name == metadata else data
            copy = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            copy.external_attr, copy.compress_type = info.external_attr, zipfile.ZIP_DEFLATED
            made.writestr(copy, data)
            lines.append(record_line(name, data))
        for name, data in files.items():
            copy = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            copy.external_attr, copy.compress_type = 0o100644 << 16, zipfile.ZIP_DEFLATED
            made.writestr(copy, data)
            lines.append(record_line(name, data))
        made.writestr(zipfile.ZipInfo(record, (1980, 1, 1, 0, 0, 0)), "\n".join([*lines, f"{record},,"]) + "\n",
                      zipfile.ZIP_DEFLATED)
    unpacked = sum(len(data) for _, data in entries.values())
    print(f"{target}: {target.stat().st_size / 1e6:.1f} MB, unpacked {unpacked / 1e6:.1f} MB, "
          f"{len(copied)} libraries copied")
    print(f"licences: {expression}")


if __name__ == "__main__":
    main()
