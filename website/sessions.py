"""Runs the Python sessions (`>>>`) of a page, and shows what they print now.

A page reads as it does in the repository, where its answers are doctests. What differs from an answer there is a
mistake, except for what doctest overlooks (spaces, `...`); readers of the site then see the whole answer.
"""

import doctest
import re
from collections.abc import Callable
from typing import Any

OPTIONS = doctest.NORMALIZE_WHITESPACE  # as in pyproject.toml
BLOCK = re.compile(
    r"^```(?P<language>[^\n]*)\n(?P<code>.*?)^```[ ]*\n?(?:\n!\[[^\]]*\]\((?P<picture>[^)]+)\))?",
    re.DOTALL | re.MULTILINE,
)
DIRECTIVE = re.compile(r"\s*# doctest:.*")


class Shown(doctest.DocTestRunner):
    """Collects what each example prints, and the complaints about those that print something else."""

    def __init__(self) -> None:
        super().__init__(optionflags=OPTIONS)
        self.answers: dict[int, str] = {}
        self.complaints: list[str] = []

    def report_success(self, out: Any, test: doctest.DocTest, example: doctest.Example, got: str) -> None:
        self.answers[example.lineno] = got if example.exc_msg is None else example.want

    def report_failure(self, out: Any, test: doctest.DocTest, example: doctest.Example, got: str) -> None:
        self.complaints.append(f">>> {example.source}prints\n{got}instead of\n{example.want}")

    def report_unexpected_exception(
        self, out: Any, test: doctest.DocTest, example: doctest.Example, exc_info: Any
    ) -> None:
        self.complaints.append(f">>> {example.source}raises {exc_info[1]!r}")


def run_sessions(text: str, page: str, draw: Callable[[str, Any], None]) -> tuple[str, list[str]]:
    """The text with fresh answers, and the complaints. A picture below a block is drawn from its `figure`."""
    names: dict[str, Any] = {}
    complaints = []

    def answered(block: re.Match[str]) -> str:
        if not is_session(block):
            return block[0]
        shown, found = run_block(block["code"], page, names)
        complaints.extend(found)
        if block["picture"] and "figure" in names and not found:
            draw(block["picture"], names.pop("figure"))
        return block[0].replace(block["code"], shown).replace(block[0].split("\n", 1)[0], "```pycon", 1)

    return BLOCK.sub(answered, text), complaints


def is_session(block: re.Match[str]) -> bool:
    """Whether a block of a page is a Python session."""
    return block["language"] in ("", "python") and block["code"].startswith(">>> ")


def run_block(code: str, page: str, names: dict[str, Any]) -> tuple[str, list[str]]:
    """One block with what it prints; its names stay for the next one."""
    runner = Shown()
    examples = doctest.DocTestParser().get_examples(code, page)
    test = doctest.DocTest(examples, {}, page, page, 0, code)
    test.globs = names  # itself: a DocTest is made with a copy
    runner.run(test, out=lambda _: None, clear_globs=False)
    lines = code.splitlines()
    written = []
    for example, following in zip(examples, [*(e.lineno for e in examples[1:]), len(lines)], strict=True):
        count = example.source.count("\n")
        asked = [DIRECTIVE.sub("", line) for line in lines[example.lineno : example.lineno + count]]
        rest = lines[example.lineno + count + example.want.count("\n") : following]  # remarks between examples
        written += [*asked, *runner.answers.get(example.lineno, example.want).splitlines(), *rest]
    return "\n".join(written).rstrip() + "\n", runner.complaints
