"""Pages and files of the site that are not in docs/: the examples, the changelog, the guide for contributors.

They keep their place in the repository, where links between documents are paths of files. On the site docs/ is the
root, so a link such as ../examples/README.md has to be told where its target is there.
"""

import posixpath
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parent.parent
PAGES = ("CHANGELOG.md", "CONTRIBUTING.md")
FOLDERS = ("examples",)
SHOWN = {".md", ".py", ".png", ".csv", ".ipynb"}
LINK = re.compile(r"(?<=\]\()(?![a-z]+:|#)([^)\s#]+)")


def outside_files(config: MkDocsConfig) -> list[File]:
    """The files beside docs/ that are part of the site, under their path in the repository."""
    found = [ROOT / page for page in PAGES]
    found += [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*")) if path.suffix in SHOWN]
    return [generated(config, site_path(path)) for path in found]


def generated(config: MkDocsConfig, path: str) -> File:
    """A file of the site, by its path there."""
    return File.generated(config, path, abs_src_path=str(ROOT / repository_path(path)))


def site_path(path: Path) -> str:
    """Find a file of the repository on the site."""
    return path.relative_to(ROOT).as_posix().removeprefix("docs/")


def repository_path(site: str) -> str:
    """Find a page of the site in the repository."""
    return site if site in PAGES or site.split("/")[0] in FOLDERS else f"docs/{site}"


def with_site_links(text: str, page: str, files: Files) -> str:
    """The text of a page with links to files of the repository turned into links of the site."""
    folder = posixpath.dirname(repository_path(page))

    def turned(link: re.Match[str]) -> str:
        target = site_path(ROOT / posixpath.normpath(posixpath.join(folder, link[1])))
        known = files.get_file_from_path(target) is not None
        return posixpath.relpath(target, posixpath.dirname(page) or ".") if known else link[1]

    return LINK.sub(turned, text)
