# SPDX-License-Identifier: Apache-2.0
"""Pages of the Python reference, from the docstrings of the package."""

import inspect
import re

import palimpsest
import palimpsest.errors
import palimpsest.ops

PAGES = [f"reference/{name}.md" for name in ("operators", "solvers", "imaging", "functions", "arrays", "ops", "errors")]
# A top-level name belongs to the page of the file that binds it, unless a class sets another one.
IMAGING = re.compile(r"calibration|noise|whiten|compress|oversampling|espirit|walsh|maps|brightness|rss|pattern|"
                     r"trajectory|stars|koosh|golden|ellipse|Ellipse|shepp|sense|reconstruct|Reconstruction|"
                     r"Calibration|Compressed|Espirit|Maps|Brightness|interleaved|samples|measured|image_dim|"
                     r"coordinates|density|adaptive|mask$|nifti|Nifti|cfl|npy|png|detect_format")
ARRAYS = {"Tensor", "Storage", "DType", "TensorType", "asarray", "from_dlpack", "empty", "zeros", "ones", "full",
          "arange", "linspace", "eye", "random_normal", "random_uniform", "equal", "allclose", "borrow",
          "MemoryScope", "MemoryLimit", "CopyStats", "bool_", "int8", "int16", "int32", "int64", "uint8", "uint16",
          "uint32", "uint64", "float32", "float64", "complex64", "complex128"}
INPUT = re.compile(r"^[bwilfdcz]?(scalar|vector|matri|tensor[345]|row|col)")


def page_of(name, value):
    said = inspect.signature(value) if callable(value) and not inspect.isclass(value) else None
    if name in ARRAYS:
        return "arrays"
    if IMAGING.search(name) and name != "SamplingFromMask":
        return "imaging"
    text = str(getattr(value, "__doc__", "") or "")
    if said and "max_iterations" in said.parameters or name.startswith("plan_") or \
            re.search(r"Prox|Solve|History|Objective|Quadratic|Term", name + text[-400:]):
        return "solvers"
    if name[0].isupper() and callable(value) and not inspect.isclass(value) or "A" in (said.parameters if said else ()):
        return "operators"
    return "functions"


def as_markdown(docstring):
    """numpydoc as Markdown: titles become bold, sections of definitions lists, examples code."""
    out, code, section = [], [], ""

    def flush():
        if code:
            out.extend(["", "```python", *code, "```", ""])
            code.clear()

    lines = docstring.split("\n")
    for i, line in enumerate(lines):
        following = lines[i + 1] if i + 1 < len(lines) else ""
        if following and set(following) == {"-"} and len(following) == len(line):
            flush()
            section = line
            out += ["", f"**{line}**", ""]
        elif line and set(line) == {"-"}:
            continue
        elif line.startswith((">>>", "... ")) or (code and line):
            code.append(line)
        elif section in ("Parameters", "Raises", "Returns") and line:
            if line.startswith("    "):
                out.append("  " + escaped(line))
            else:
                out += ["", f"- `{line}`  "] if section != "Raises" else ["", f"- {line}  "]
        else:
            flush()
            out.append(escaped(line))
    flush()
    return "\n".join(out)


def escaped(line):
    """Text is text: no emphasis, no markup, no links, but code where it stands between backticks."""
    parts = re.split(r"(`[^`]+`)", line)
    parts[::2] = (re.sub(r"([\\`*_{}\[\]>#|])", r"\\\1", text).replace("<", "&lt;") for text in parts[::2])
    return "".join(parts)


def entry(prefix, name, value, shown=None):
    title = f"{prefix}{name}"
    lines = [f"### {escaped(title)} {{ #{title} }}", ""]
    if inspect.isclass(value):
        lines += [as_markdown(inspect.getdoc(value) or ""), ""]
        for member, attribute in sorted(vars(value).items()):
            text = inspect.getdoc(attribute)
            if member.startswith("_") or not text:
                continue
            lines += [f"- `{member}`: {escaped(text.splitlines()[-1])}"]
        return lines + [""]
    if callable(value):
        try:
            lines += ["```python", f"{title}{inspect.signature(value)}", "```", ""]
        except (TypeError, ValueError):
            pass
        lines += [as_markdown(inspect.getdoc(value) or ""), ""]
    else:
        lines += [escaped(repr(value)), ""]
    return lines


def write(folder):
    folder.mkdir(parents=True)
    pages = {name.split("/")[1].removesuffix(".md"): [] for name in PAGES}
    index = ["# Reference", "", "Examples presume `import numpy as np` and `import palimpsest as ps`.", "",
             "The C++ library: <a href=\"../cpp/index.html\">reference of the headers</a>.", ""]
    inputs = []
    for name in palimpsest.__all__:
        value = getattr(palimpsest, name)
        if inspect.ismodule(value):
            continue
        if name in vars(palimpsest.errors):
            pages["errors"] += entry("palimpsest.errors.", name, value)
        elif INPUT.match(name) and not inspect.isclass(value):
            inputs.append(name)
        else:
            pages[page_of(name, value)] += entry("palimpsest.", name, value)
    pages["functions"] += ["### Inputs of graphs", "",
                           "A letter for the dtype (b, w, i, l, f, d, c, z: int8 to int64, float32, float64, "
                           "complex64, complex128), a word for the axes; with an s, several at once: "
                           + ", ".join(f"`{name}`" for name in inputs) + ".", ""]
    for name in sorted(vars(palimpsest.ops)):
        value = getattr(palimpsest.ops, name)
        if not name.startswith("_") and callable(value) and not INPUT.match(name) and not inspect.ismodule(value):
            pages["ops"] += entry("palimpsest.ops.", name, value)
    for name in sorted(vars(palimpsest.errors)):
        value = getattr(palimpsest.errors, name)
        if inspect.isclass(value) and not hasattr(palimpsest, name):
            pages["errors"] += entry("palimpsest.errors.", name, value)
    for name, lines in pages.items():
        (folder / f"{name}.md").write_text("\n".join([f"# {name.capitalize()}", "", *lines]))
        count = sum(line.startswith("### ") for line in lines)
        index.append(f"- [{name}]({name}.md): {count} names")
    (folder / "index.md").write_text("\n".join(index) + "\n")


def public_headers(root):
    for path in sorted((root / "src/palimpsest").rglob("*.hpp")):
        if path.relative_to(root / "src/palimpsest").parts[0] not in ("python", "cli"):
            if "// Internal" not in "\n".join(path.read_text().split("\n")[:3]):
                yield path
