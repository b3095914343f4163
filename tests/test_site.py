"""What builds the documentation site: sessions run, docstrings become Markdown, every page has a place."""

import re
from pathlib import Path

import pytest

pytest.importorskip("mkdocs")

from website.docstrings import as_markdown
from website.outside import repository_path, site_path
from website.sessions import run_sessions

ROOT = Path(__file__).parent.parent


def no_picture(link: str, figure: object) -> None:
    raise AssertionError(link)


def test_a_session_shows_what_it_prints_now() -> None:
    first = "```python\n>>> a = [1,\n...      2]\n>>> print(a)  # doctest: +ELLIPSIS\n[1, ...]\n\n```\n"
    page = f"{first}\nb\n\n```\n>>> a[0]\n1\n```\n"
    shown, complaints = run_sessions(page, "page.md", no_picture)
    assert complaints == []
    assert shown == "```pycon\n>>> a = [1,\n...      2]\n>>> print(a)\n[1, 2]\n```\n\nb\n\n```pycon\n>>> a[0]\n1\n```\n"


def test_an_answer_that_has_changed_and_an_error_are_complaints() -> None:
    _, complaints = run_sessions("```python\n>>> 1 + 1\n3\n>>> 1 / 0\n```\n", "page.md", no_picture)
    assert ["2" in complaints[0], "3" in complaints[0], "ZeroDivisionError" in complaints[1]] == [True] * 3


def test_errors_that_are_shown_are_no_complaints() -> None:
    page = "```python\n>>> 1 / 0\nTraceback (most recent call last):\nZeroDivisionError: division by zero\n```\n"
    assert run_sessions(page, "page.md", no_picture) == (page.replace("python", "pycon"), [])


def test_other_blocks_stay_as_they_are() -> None:
    page = "```text\n>>> no\n```\n\n```\nplain\n```\n\n```toml\na = 1\n```\n"
    assert run_sessions(page, "page.md", no_picture) == (page, [])


def test_the_picture_below_a_block_is_drawn_from_its_figure() -> None:
    drawn: list[tuple[str, object]] = []
    page = "```python\n>>> figure = 7\n\n```\n\n![seven](images/seven.png)\n\n![other](images/other.png)\n"
    run_sessions(page, "page.md", lambda link, figure: drawn.append((link, figure)))
    assert drawn == [("images/seven.png", 7)]


def test_docstrings_become_markdown() -> None:
    text = "What it does.\n\nbudget: the most arms.\n    Always.\nseed: of draws\n\n>>> f(1)\n2\n\nMore: this is prose."
    assert as_markdown(text).split("\n") == [
        "What it does.",
        "",
        "",
        "- `budget`: the most arms.",
        "      Always.",
        "- `seed`: of draws",
        "",
        "```pycon",
        ">>> f(1)",
        "2",
        "```",
        "",
        "More: this is prose.",
    ]


@pytest.mark.parametrize("path", ["docs/next.md", "docs/start/dataframe.md", "examples/README.md", "CHANGELOG.md"])
def test_pages_are_found_again_in_the_repository(path) -> None:
    assert repository_path(site_path(ROOT / path)) == path


def test_every_page_has_a_place_in_the_navigation() -> None:
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:")[2]
    listed = re.findall(r"^ *- (?:[^#\n]*: )?(\S+\.md)$", navigation, re.MULTILINE)
    there = [path for folder in ("docs", "examples") for path in (ROOT / folder).rglob("*.md")]
    assert sorted(listed) == sorted(["CHANGELOG.md", "CONTRIBUTING.md", *(site_path(path) for path in there)])
