# SPDX-License-Identifier: Apache-2.0
"""Builds the documentation site into a directory: see tools/build_site.

The pages of the repository keep their places below the root of the site, so that their links hold. Beside
them come the gallery, the reference of the Python package and that of the C++ headers. A link that leads
nowhere fails the build.
"""

import html
import pathlib
import re
import shutil
import subprocess
import sys

import gallery
import links
import mkdocs.commands.build
import mkdocs.config
import reference

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGES = ["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", *sorted(
    str(path.relative_to(ROOT)) for path in (ROOT / "docs").rglob("*.md"))]
START = ["index", "tutorial", "gallery", "cheat-sheet", "faq", "who-should-not"]
LINK = re.compile(r"\]\((?!https?:|#|mailto:)([^)#\s]+)")


def pages_in(name):
    return [page for page in PAGES if page.startswith(f"docs/{name}/")]


def nav():
    docs = "docs/"
    python = [f"{docs}python/{name}.md" for name in
              ("start", "arrays", "functions", "operators", "solvers", "imaging", "mistakes")]
    python += sorted(page for page in PAGES if page.startswith(docs + "python/") and page not in python)
    return [
        {"Home": "README.md"},
        {"Start": [{"All pages": f"{docs}index.md"}, *(f"{docs}{name}.md" for name in START[1:]),
                   {"Programs of the gallery": "gallery/index.md"}]},
        {"Python": [{"Mistakes in Python": page} if page.endswith("/mistakes.md") else page for page in python]},
        {"How to": pages_in("howto")},
        {"Theory": pages_in("theory")},
        {"Library": [page for page in PAGES if page.count("/") == 1 and page.startswith(docs)
                     and page[len(docs):-len(".md")] not in START]},
        {"Reference": ["reference/index.md", *reference.PAGES]},
        {"Project": ["CONTRIBUTING.md", *pages_in("contributing"), "CHANGELOG.md", "SECURITY.md"]},
    ]


def stage(folder):
    """Copies the pages, the pictures, and the files that pages link to."""
    for page in PAGES:
        text = (ROOT / page).read_text()
        # The heading must come first to be the title of a page. Fences name a language only.
        text = re.sub(r"\A<!-- SPDX[^\n]*\n", "", text)
        text = re.sub(r"^```python \w+$", "```python", text, flags=re.MULTILINE)
        # Code with a bar within a table cell.
        text = re.sub(r"`([^`\n]*\\\|[^`\n]*)`", lambda code: "<code>" + html.escape(code[1].replace("\\|", "|"))
                      .replace("|", "&#124;") + "</code>", text)
        target = folder / page
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
        for link in LINK.findall(text):
            source = (ROOT / page).parent / link
            if source.is_dir():
                sys.exit(f"build_site: {page} links to the folder {link}")
            if source.is_file() and source.suffix != ".md":
                copy = folder / source.resolve().relative_to(ROOT)
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(source, copy)


def config(folder, site):
    file = folder.with_suffix(".yml")
    file.write_text("site_name: Palimpsest\n")
    return mkdocs.config.load_config(
        config_file=str(file), docs_dir=str(folder), site_dir=str(site), nav=nav(),
        theme={"name": "readthedocs", "highlightjs": False, "navigation_depth": 2},
        plugins=["search"], strict=True, use_directory_urls=False,
        extra_css=["site.css"],
        markdown_extensions=["tables", "fenced_code", "toc", "attr_list", {"codehilite": {"guess_lang": False}}],
        validation={"nav": {"omitted_files": "ignore"}, "links": {"anchors": "warn"}},
    )


def styles():
    from pygments.formatters import HtmlFormatter

    return HtmlFormatter().get_style_defs(".codehilite") + """
.wy-nav-content { max-width: 1000px; }
.codehilite .err { border: none; color: inherit; }
.wy-table-responsive table td, .wy-table-responsive table th { white-space: normal; }
"""


def doxygen(site):
    """The reference of the public headers, made by Doxygen, in site/cpp."""
    headers = reference.public_headers(ROOT)
    settings = f"""
PROJECT_NAME = Palimpsest
OUTPUT_DIRECTORY = {site}
HTML_OUTPUT = cpp
GENERATE_LATEX = NO
INPUT = {" ".join(str(path) for path in headers)}
STRIP_FROM_PATH = {ROOT}/src
MARKDOWN_SUPPORT = NO
EXTRACT_ALL = YES
HIDE_UNDOC_RELATIONS = YES
MACRO_EXPANSION = YES
EXPAND_ONLY_PREDEF = YES
PREDEFINED = PALIMPSEST_API=
EXPAND_AS_DEFINED = PALIMPSEST_SOLVE_LIMITS PALIMPSEST_SOLVE_PROGRESS PALIMPSEST_SOLVE_START PALIMPSEST_SOLVE_OPTIONS
ENABLE_PREPROCESSING = YES
SEARCH_INCLUDES = NO
INPUT_FILTER = "{sys.executable} {ROOT}/tools/site/comments.py"
HAVE_DOT = NO
SEARCHENGINE = YES
QUIET = YES
WARNINGS = NO
AUTOLINK_SUPPORT = NO
HTML_TIMESTAMP = NO
"""
    subprocess.run(["doxygen", "-"], input=settings, text=True, check=True)
    # Doxygen links to sections of nested classes that it does not write.
    for page in (site / "cpp").glob("*.html"):
        text = page.read_text()
        if 'href="#nested-classes"' in text and 'name="nested-classes"' not in text:
            page.write_text(re.sub(r'<a href="#nested-classes">[^<]*</a> &#124;', "", text))


def main():
    site = pathlib.Path(sys.argv[1]).resolve()
    folder = site.parent / (site.name + "-pages")
    for old in (site, folder):
        shutil.rmtree(old, ignore_errors=True)
    stage(folder)
    gallery.write(ROOT, folder / "gallery")
    reference.write(folder / "reference")
    (folder / "site.css").write_text(styles())
    mkdocs.commands.build.build(config(folder, site))
    doxygen(site)
    fences = [str(page) for page in site.rglob("*.html") if "```" in page.read_text()]
    if fences:
        sys.exit("\n".join(["build_site: a block of code is not shown as one:", *fences]))
    broken = links.broken(site)
    if broken:
        sys.exit("\n".join(["build_site: links that lead nowhere:", *broken]))
    pages = sum(1 for _ in site.rglob("*.html"))
    print(f"{site}/index.html: {pages} pages, no broken link")


if __name__ == "__main__":
    main()
