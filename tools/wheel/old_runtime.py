# SPDX-License-Identifier: Apache-2.0
"""Makes a library to link against that has only those symbols of a shared library which the tag of a wheel allows.

    old_runtime.py COMPILER PROCESSOR LIBRARY OUT

The policies of auditwheel tell the versions. Symbols that came later are then taken from a static library behind it, as
the compilers of the images for manylinux do with libstdc++.
"""

import json
import pathlib
import re
import subprocess
import sys

import auditwheel

TAG = "manylinux_2_28"
KINDS = {"FUNC": "function", "OBJECT": "object", "TLS": "tls_object", "IFUNC": "function", "NOTYPE": "notype"}


def allowed_versions(processor):
    path = pathlib.Path(auditwheel.__file__).parent / "policy/manylinux-policy.json"
    policy = next(policy for policy in json.loads(path.read_text()) if policy["name"] == TAG)
    return {f"{name}_{version}" for name, versions in policy["symbol_versions"][processor].items()
            for version in versions}


def symbols_of(library):
    """Names that a program gets linked, each with its version, kind and bytes."""
    listing = subprocess.run(["readelf", "--dyn-syms", "--wide", library], check=True, capture_output=True, text=True)
    line = re.compile(r"\s*\d+:\s+\w+\s+(\w+)\s+(\w+)\s+(?:GLOBAL|WEAK|UNIQUE)\s+DEFAULT\s+(?!UND)\w+\s+(\S+)@@(\S+)$")
    for match in filter(None, map(line.match, listing.stdout.splitlines())):
        size, kind, name, version = match.groups()
        yield name, version, KINDS[kind], int(size, 0)


def main():
    compiler, processor, library, out = sys.argv[1:]
    allowed = allowed_versions(processor)
    source, nodes = [], {}
    for name, version, kind, size in symbols_of(library):
        if version in allowed and name != version:
            section = {"tls_object": '.section .tbss,"awT",%nobits', "object": ".data"}.get(kind, ".text")
            source += [section, f".globl {name}", f".type {name}, %{kind}", f".size {name}, {size}", f"{name}:"]
            source += [] if kind == "function" else [f".zero {size}"]
            nodes.setdefault(version, []).append(name)
    files = pathlib.Path(out + ".s"), pathlib.Path(out + ".map")
    files[0].write_text("\n".join(source) + "\n")
    files[1].write_text("".join(f"{version} {{ global: {'; '.join(names)}; }};\n" for version, names in nodes.items()))
    subprocess.run([compiler, "-shared", "-nostdlib", files[0], f"-Wl,--version-script={files[1]}",
                    f"-Wl,-soname,{pathlib.Path(library).name}", "-o", out], check=True)


if __name__ == "__main__":
    main()
