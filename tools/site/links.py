# SPDX-License-Identifier: Apache-2.0
"""Follows the links between the files of a site."""

import html.parser
import pathlib
import urllib.parse


class _Page(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.links, self.names = [], set()
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        for key, value in attributes:
            if key in ("id", "name") and value:
                self.names.add(value)
            if value and ((tag in ("a", "link") and key == "href") or
                          (tag in ("img", "script") and key == "src")):
                self.links.append(value)


def broken(site):
    """One line for each link to a file or an anchor of the site that is not there."""
    site = pathlib.Path(site)
    pages = {path: _Page(path.read_text(errors="replace")) for path in site.rglob("*.html")}
    found = []
    for path, page in sorted(pages.items()):
        if path.name == "404.html":  # its links are absolute
            continue
        for link in page.links:
            parts = urllib.parse.urlsplit(link)
            if parts.scheme or parts.netloc or link.startswith("javascript"):
                continue
            target = path if not parts.path else (path.parent / urllib.parse.unquote(parts.path)).resolve()
            if target.is_dir():
                target = target / "index.html"
            anchor = urllib.parse.unquote(parts.fragment)
            if not target.is_file():
                found.append(f"{path.relative_to(site)}: {link}")
            elif anchor and target in pages and anchor not in pages[target].names:
                found.append(f"{path.relative_to(site)}: {link}: no such anchor")
    return found
