# SPDX-License-Identifier: Apache-2.0
"""Puts the licences of all that a repaired wheel contains into it, and their names into its metadata.

    licences.py WHEEL FOLDER_OF_LIBRARIES DIRECTORY

FOLDER_OF_LIBRARIES is that of tools/wheel/libraries.sh.
"""

import base64
import hashlib
import importlib.metadata
import pathlib
import subprocess
import sys
import zipfile

import ziglang

# Debian packages of headers, of OpenBLAS and of libstdc++, parts of which are linked statically.
COMPILER = subprocess.run(["g++", "-dumpversion"], check=True, capture_output=True, text=True).stdout.strip()
PACKAGES = {
    f"gcc-{COMPILER}-base": "GPL-3.0-or-later WITH GCC-exception-3.1",
    "libopenblas-serial-dev": "BSD-3-Clause",
    "nlohmann-json3-dev": "MIT",
    "libcli11-dev": "BSD-3-Clause",
    "librandom123-dev": "BSD-3-Clause",
}


def licence_files(libraries):
    """Names of the libraries in the wheel, each with its licence as SPDX writes it and the file with its text."""
    found = {}
    for line in pathlib.Path("tools/wheel_sources.txt").read_text().splitlines():
        if not line.startswith("#"):
            name, _, _, licence, _ = line.split()
            texts = sorted(path for pattern in ("LICENSE*", "COPYING*") for path in
                           (libraries / "source" / name).glob(pattern))
            found[name] = licence, texts[0]
    for package, licence in PACKAGES.items():
        found[package] = licence, pathlib.Path(f"/usr/share/doc/{package}/copyright")
    # Its functions for what processors lack.
    found["zig"] = "MIT", pathlib.Path(ziglang.__path__[0], "LICENSE")
    binding = next(file for file in importlib.metadata.files("nanobind") if file.name == "LICENSE")
    found["nanobind"] = "BSD-3-Clause", pathlib.Path(binding.locate())
    return found


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
    wheel, libraries, out = (pathlib.Path(argument) for argument in sys.argv[1:])
    with zipfile.ZipFile(wheel) as archive:
        entries = {info.filename: (info, archive.read(info)) for info in archive.infolist()
                   if not info.is_dir()}
    info_folder = next(name.split("/")[0] for name in entries if name.endswith(".dist-info/METADATA"))
    copied = [name for name in entries if ".libs/" in name]
    if copied:
        sys.exit(f"licences.py: expected a wheel without copied libraries, got {copied}")
    found = licence_files(libraries)
    expression = " AND ".join(sorted({"Apache-2.0", *(licence for licence, _ in found.values())}))
    files = {f"{info_folder}/licenses/{name}/{text.name}": text.read_bytes() for name, (_, text) in found.items()}
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
    print(f"{target}: {target.stat().st_size / 1e6:.1f} MB, unpacked {unpacked / 1e6:.1f} MB")
    print(f"licences: {expression}")


if __name__ == "__main__":
    main()
