"""Measured numbers in the documents: a block is what a command printed, word for word.

<!-- measured by `python examples/study_numbers.py beyond setting` on 2026-11-16 -->
...
<!-- end -->

`make numbers` runs the commands again and rewrites the blocks, in all documents or in those that are named
(`make numbers ARGS=docs/policies.md`); a word that is no document takes only commands that contain it
(`make numbers ARGS="docs/benchmarks.md service"`). Some commands take minutes, and those of `study_numbers.py` need
what `make reproduce` writes. A block without a code fence is Markdown; in a fence it is plain text.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
PICTURES = {"regret.png": "synthetic/figures/regret-fresh.png"}  # images of the documents that a study draws
BLOCK = re.compile(
    r"<!-- measured by `(?P<command>[^`]+)`(?: on (?P<when>[^>]*?))? -->\n(?P<text>.*?)<!-- end -->", re.S
)
FENCE = "```"


class Block(NamedTuple):
    """A measured block of a document."""

    command: str
    when: str  # a date, and for times the machine
    text: str

    @property
    def fenced(self) -> bool:
        return self.text.startswith(FENCE)

    def __str__(self) -> str:
        return f"<!-- measured by `{self.command}` on {self.when} -->\n{self.text}<!-- end -->"


def documents() -> list[Path]:
    """The documents that may have measured numbers."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def blocks(text: str) -> Iterator[Block]:
    """The measured blocks of a document."""
    for found in BLOCK.finditer(text):
        yield Block(found["command"], found["when"] or "", found["text"])


def without_blocks(text: str) -> str:
    """A document without its measured blocks and without code, whose answers are compared elsewhere."""
    return re.sub(rf"^{FENCE}.*?^{FENCE}", "", BLOCK.sub("", text), flags=re.S | re.M)


def printed_by(command: str) -> str:
    """Run a command and return what it prints: a Python script or module of the repository."""
    program, *words = shlex.split(command)
    if program != "python":
        raise ValueError(f"command = {command!r}: must start with python")
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run([sys.executable, *words], cwd=ROOT, env=environment, text=True, stdout=subprocess.PIPE)
    if done.returncode:
        raise RuntimeError(f"{command}: ended with code {done.returncode}")
    return done.stdout.strip("\n")


def measured_again(block: Block) -> Block:
    """The block with what its command prints now; the date changes only with the numbers."""
    fence = f"{FENCE}text\n{{}}\n{FENCE}\n" if block.fenced else "{}\n"
    text = fence.format(printed_by(block.command))
    return block if text == block.text else Block(block.command, f"{date.today()}{machine(block)}", text)


def machine(block: Block) -> str:
    """For times the kind of machine, which other numbers do not depend on."""
    if not block.fenced:
        return ""
    return f", {os.cpu_count()} cores, Python {sys.version_info.major}.{sys.version_info.minor}"


def measure(names: list[str]) -> list[str]:
    """Rewrite the blocks of these documents (all, if none is named) whose commands contain the other words.

    Returns the commands whose numbers changed.

    Each block is written when it has been measured, so that an interrupted run keeps what it has.
    """
    changed = []
    named = [name for name in names if name.endswith(".md")]
    words = [name for name in names if name not in named]
    for path in documents():
        if named and path.relative_to(ROOT).as_posix() not in named:
            continue
        for block in list(blocks(path.read_text(encoding="utf-8"))):
            if not all(word in block.command for word in words):
                continue
            print(block.command, file=sys.stderr, flush=True)
            fresh = measured_again(block)
            if fresh != block:
                replace_block(path, fresh)
                changed.append(block.command)
    return changed


def replace_block(path: Path, fresh: Block) -> None:
    """Rewrite the block of that command in a document."""

    def renewed(found: re.Match[str]) -> str:
        return str(fresh) if found["command"] == fresh.command else found[0]

    path.write_text(BLOCK.sub(renewed, path.read_text(encoding="utf-8")), encoding="utf-8")


def copy_pictures() -> None:
    """The pictures that the studies have drawn."""
    for name, source in PICTURES.items():
        if (drawn := ROOT / "results" / source).exists():
            shutil.copy(drawn, ROOT / "docs" / "images" / name)


if __name__ == "__main__":
    print("\n".join(measure(sys.argv[1:])) or "all measured numbers are as the commands print")
    copy_pictures()
