"""What the documents show is what the commands print, and the stories' answers add up."""

import json
import re
import runpy
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.cli.calls import call

ROOT = Path(__file__).parent.parent
NUMBER = re.compile(r"-?\d+\.\d+")
STORIES = {
    "health": ("health.csv", ["--budget", 3]),
    "marketing": ("sales.csv", ["--budget", 4, "--range", 0, 50, "--limits", "limits.toml"]),
    "supply": ("orders.csv", ["--budget", 4, "--range", 0, 10, "--limits", "rules.toml", "--unavailable", "boards"]),
}


def script(path):
    """The module that a script is, run once more."""
    return SimpleNamespace(**runpy.run_path(str(path)))


refresh = script(ROOT / "examples" / "refresh.py")


def in_this_process(line, folder):
    """A command of a document, without the time that a process takes to start; pictures have tests of their own."""
    program, *words = line.split()
    if program == "python":
        script(ROOT / words[0])
        return None
    plain = re.sub(r" --plot \S+", "", " ".join(words))
    return call(*plain.split()).stdout


@pytest.mark.parametrize("document", refresh.DOCUMENTS)
def test_documents_show_what_the_commands_print(document, tmp_path, monkeypatch) -> None:
    """To the words and to the last digit of the numbers; `make examples` writes them again."""
    monkeypatch.chdir(tmp_path)
    text = (ROOT / document).read_text(encoding="utf-8")
    blocks = refresh.BLOCK.findall(text)
    assert blocks
    refresh.save_tables(document, tmp_path)
    made = set(re.findall(r" --plot ([\w.]+)", "".join(blocks)))
    for block in blocks:
        for line, shown in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block, re.MULTILINE):
            printed = in_this_process(line, tmp_path)
            if printed is None or not shown:
                continue
            shown = re.sub(r"^Plot: .*\n", "", shown, flags=re.MULTILINE)
            assert NUMBER.sub("#", shown) == NUMBER.sub("#", printed)
            for found, expected in zip(NUMBER.findall(shown), NUMBER.findall(printed), strict=True):
                last = 10.0 ** -len(expected.partition(".")[2])  # a machine may round the last digit differently
                assert float(found) == pytest.approx(float(expected), abs=max(1.01 * last, 2e-3))
    made |= {path.name for path in tmp_path.iterdir()}
    assert {f"/{name}" for name in made} <= set((ROOT / ".gitignore").read_text().splitlines())


@pytest.mark.parametrize("story", STORIES)
def test_the_answer_of_a_story_adds_up(story, tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    made = script(ROOT / "examples" / story / "make.py")
    file, options = STORIES[story]
    result = call("next", file, *options, "--json")
    assert (result.exit_code, result.stderr) == (0, "")
    found = json.loads(result.stdout)
    assert 0 < len(found["choose"]) <= found["budget"]
    names = {line.split(",")[1] for line in made.text.splitlines()[1:]}
    assert {arm["arm"] for arm in found["reasons"]["arms"]} == names
    for arm in found["reasons"]["arms"]:
        parts = arm["direct"] + arm["spilled_over"] + arm["exploration"]
        assert parts == pytest.approx(arm["score"], abs=1e-9)
        paths = sum(path["amount"] for path in arm["paths"])
        rest = arm["other_ways"] + arm["longer_ways"] + arm["unknown_ways"]
        assert paths + rest == pytest.approx(arm["spilled_over"], abs=1e-9)


def test_the_stories_keep_their_limits(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    for story in ("marketing", "supply"):
        script(ROOT / "examples" / story / "make.py")
    file, options = STORIES["supply"]
    chosen = set(json.loads(call("next", file, *options, "--json").stdout)["choose"])
    assert "freight" in chosen
    assert "boards" not in chosen
    assert "castings" in chosen or "ore" not in chosen
    file, options = STORIES["marketing"]
    chosen = set(json.loads(call("next", file, *options, "--json").stdout)["choose"])
    costs = {"affiliates": 5, "newsletter": 2, "posters": 8, "radio": 12, "search": 15, "social": 9}
    costs |= {"television": 30, "video": 14}
    assert sum(costs[arm] for arm in chosen) <= 40
    assert not {"posters", "video"} <= chosen
