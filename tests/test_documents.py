"""Links between the documents lead somewhere, and the files, folders and names that they mention exist."""

import re
import tomllib
from pathlib import Path
from pkgutil import resolve_name

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "spillover"
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
# not in the repository: what readers write themselves, what runs write, and a repository of others
ELSEWHERE = re.compile(
    r"(.*[./])?(my_|test_my_|harvest|NAME)|(results|cells|claims|figures|tuning|\.venv)/|pcm-dpc/|build/site"
    r"|spillover/World-v0"
)
TEST = re.compile(r"^ *def (test_\w+)", re.MULTILINE)

each_document = pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)


def code_spans(text: str) -> list[str]:
    """The `code` in the sentences of a document, outside of its blocks."""
    sentences = re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    return [" ".join(span.split()) for span in re.findall(r"`([^`]+)`", sentences)]


def mentioned_paths(text: str) -> list[str]:
    """Python files and folders: in code spans, and the files next to the calls of a ```text block."""
    spans = [span for span in code_spans(text) if re.fullmatch(r"[\w.-]+\.py|[\w.-]+(/[\w.-]+)*/[\w.-]*", span)]
    walks = re.findall(r"^```text\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)
    return spans + [path for walk in walks for path in re.findall(r"[\w/]+\.py\b", walk)]


def mentioned_names(text: str) -> list[str]:
    """Names such as spillover.x.y or spillover_studies.x, also where they are shown as a call."""
    found = (re.fullmatch(r"(spillover(?:_studies)?(?:\.\w+)+)(?:\(.*\))?", span) for span in code_spans(text))
    return [match.group(1) for match in found if match]


def path_exists(path: str) -> bool:
    """Whether it is a path in the repository or the package, or the name of a file in any folder of the package."""
    return any((folder / path).exists() for folder in (ROOT, PACKAGE.parent, PACKAGE)) or (
        "/" not in path and any(PACKAGE.rglob(path))
    )


def name_exists(name: str) -> bool:
    try:
        resolve_name(name)
    except (ImportError, AttributeError):
        return False
    return True


@each_document
def test_links_lead_somewhere(document):
    links = re.findall(r"\]\(([^)#]+)\)", document.read_text(encoding="utf-8"))
    missing = [link for link in links if "://" not in link and not (document.parent / link).exists()]
    assert not missing


@each_document
def test_files_and_folders_exist(document):
    paths = mentioned_paths(document.read_text(encoding="utf-8"))
    assert [path for path in paths if not ELSEWHERE.match(path) and not path_exists(path)] == []


@each_document
def test_names_exist(document):
    names = mentioned_names(document.read_text(encoding="utf-8"))
    assert [name for name in names if not ELSEWHERE.match(name) and not name_exists(name)] == []


@each_document
def test_tests_that_show_a_promise_exist(document):
    spans = code_spans(document.read_text(encoding="utf-8"))
    named = [match[1] for span in spans if (match := re.fullmatch(r"(?:[\w/]*(?:\.py)?::)?(test_\w+)", span))]
    there = {
        name for path in (ROOT / "tests").rglob("*.py") for name in [path.stem, *TEST.findall(path.read_text("utf-8"))]
    }
    assert [name for name in named if not ELSEWHERE.match(name) and name not in there] == []


def test_what_has_moved_would_be_found():
    text = "`cli/app.py`, `cli/edge.py` and\n`studies/italy`; `spillover.cli.app`, `spillover.cli.edge.f(x)`\n"
    text += "```text\nmain    cli/gone.py\n```\n"
    assert [path for path in mentioned_paths(text) if not path_exists(path)] == [
        "cli/edge.py",
        "studies/italy",
        "cli/gone.py",
    ]
    assert [name for name in mentioned_names(text) if not name_exists(name)] == ["spillover.cli.edge.f"]


def test_all_extras_are_listed():
    """docs/install.md has a row for each extra, or a few of them."""
    table = re.findall(r"^\| (`.*?) \|", (ROOT / "docs" / "install.md").read_text(encoding="utf-8"), flags=re.MULTILINE)
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    assert sorted(name for row in table for name in re.findall(r"`(.*?)`", row)) == sorted(extras)


def test_every_page_is_in_the_index():
    index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    assert [
        path.name for path in (ROOT / "docs").glob("*.md") if path.name != "index.md" and path.name not in index
    ] == []
