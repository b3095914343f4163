"""The pages of examples/real show what their commands print; `make examples` writes them again."""

import re
import runpy

import pytest

from tests.cli.calls import call
from tests.real.scripts import FOLDER, PACKAGES, ROOT, require

NUMBER = re.compile(r"[+-]?\d+(?:,\d{3})*(?:\.\d+)?")
COMMANDS = re.compile(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)
BLOCK = re.compile(r"(?<=```console\n)(.*?)(?=```)", re.DOTALL)


def printed(line, capsys) -> str:
    """What a command of a page prints, without the time that a process takes to start."""
    program, *words = line.split()
    if program == "spillover":
        result = call(*words)
        return result.stdout + result.stderr
    runpy.run_path(str(ROOT / words[0]), run_name="__main__")
    return capsys.readouterr().out


def agree(shown: str, found: str) -> bool:
    """Whether two numbers are the same but for the last digit shown."""
    decimals = len(shown.partition(".")[2])
    difference = abs(float(shown.replace(",", "")) - float(found.replace(",", "")))
    return difference < 1.5 * 10.0**-decimals or difference <= 0.01 * abs(float(shown.replace(",", "")))


@pytest.mark.parametrize("page", PACKAGES)
def test_a_page_shows_what_its_commands_print(page, tmp_path, monkeypatch, capsys) -> None:
    require(PACKAGES[page])
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(FOLDER))
    blocks = BLOCK.findall((FOLDER / f"{page}.md").read_text(encoding="utf-8"))
    for line, shown in COMMANDS.findall("".join(blocks)):
        found = printed(line, capsys)
        assert NUMBER.sub("#", shown) == NUMBER.sub("#", found), line
        pairs = zip(NUMBER.findall(shown), NUMBER.findall(found), strict=True)
        assert [pair for pair in pairs if not agree(*pair)] == [], line
    made = {path.name for path in tmp_path.iterdir()}
    assert {f"/{name}" for name in made} <= set((ROOT / ".gitignore").read_text(encoding="utf-8").splitlines())
