# SPDX-License-Identifier: Apache-2.0
"""Pages of the gallery: the programs of examples/python with their pictures."""

import ast
import re
import shutil


def cells(text):
    """The docstring of a program, and pairs of a title and the code under it."""
    docstring = ast.get_docstring(ast.parse(text))
    parts = re.split(r"^# %% (.*)$", text, flags=re.MULTILINE)[1:]
    return docstring, list(zip(parts[::2], (code.strip("\n") for code in parts[1::2])))


def pictures(text):
    return re.findall(r'\.save\("([\w.]+)"', text)


def write(root, folder):
    folder.mkdir(parents=True)
    lines = ["# Gallery", "", "Programs that run as tests, each with what it draws.", ""]
    for path in sorted((root / "examples" / "python").glob("[0-9]*.py")):
        text = path.read_text()
        docstring, code = cells(text)
        title, _, rest = docstring.partition("\n")
        title = title.rstrip(".")
        page = [f"# {title}", "", rest.strip(), ""]
        for picture in pictures(text):
            shutil.copyfile(root / "docs" / "images" / "gallery" / picture, folder / picture)
            page += [f"![{title}]({picture})", ""]
        for heading, block in code:
            page += [f"## {heading}", "", "```python", block, "```", ""]
        name = path.stem + ".md"
        (folder / name).write_text("\n".join(page))
        first = pictures(text)[0]
        lines += [f"## [{title}]({name})", "", f"[![{title}]({first})]({name})", ""]
    (folder / "index.md").write_text("\n".join(lines))
