"""Names from files cannot act on a terminal."""

import os
import subprocess
import sys

import pytest

from spillover.formatting import join_lines, printable
from tests.cli.calls import command
from tests.hostile import ACTING_NAMES, ODD_NAMES
from tests.waiting import HANG


@pytest.mark.parametrize("name", ACTING_NAMES)
def test_acting_characters_are_seen(name) -> None:
    shown = printable(name)
    assert shown.isprintable()
    assert shown == name.encode("unicode_escape").decode() or "\\" in shown


@pytest.mark.parametrize("name", ["north", "Zürich", "می‌خواهم", "👩‍👩‍👧", "a\\b", "x\u00a0y", "東京"])
def test_other_characters_stay(name) -> None:
    assert printable(name) == name


def test_a_line_is_a_line() -> None:
    assert join_lines(["a\nb", "c"]) == "a\\nb\nc"


def table_of(names) -> str:
    quoted = ['"' + name.replace('"', '""') + '"' for name in names]
    rows = [
        f"{t},{arm},{(t + k) % 2},{0.5 if (t + k) % 2 else ''},{t % 3}"
        for t in range(8)
        for k, arm in enumerate(quoted)
    ]
    return "round,arm,chosen,z,y\n" + "\n".join(rows) + "\n"


def test_on_a_real_terminal(tmp_path) -> None:
    """There nothing filters escape sequences."""
    pty = pytest.importorskip("pty")
    (tmp_path / "h.csv").write_text(table_of(ACTING_NAMES[:3]))
    ours, theirs = pty.openpty()
    with subprocess.Popen(command("check", "h.csv"), stdout=theirs, stderr=theirs, cwd=tmp_path) as started:
        os.close(theirs)
        shown = b""
        try:
            while part := os.read(ours, 10_000):
                shown += part
        except OSError:  # how Linux says that the other side is closed
            pass
        assert started.wait(HANG) == 0
    os.close(ours)
    text = shown.decode().replace("\r\n", "\n")
    assert "\\x1b[31mred" in text
    assert not set(text) & {"\x1b", "\r", "\x07"}
    assert not any(line.startswith("Next round: choose EVIL") for line in text.splitlines())


@pytest.mark.skipif(sys.platform == "win32", reason="the encoding of a pipe is set otherwise")
def test_an_output_without_the_letters(tmp_path) -> None:
    (tmp_path / "h.csv").write_text(table_of(["東京", "Zürich"]), "utf-8")
    environment = os.environ | {"PYTHONIOENCODING": "latin-1", "PYTHONUTF8": "0"}
    done = subprocess.run(
        command("check", "h.csv"), capture_output=True, cwd=tmp_path, env=environment, timeout=HANG, check=True
    )
    assert b"\\u6771\\u4eac" in done.stdout
    assert "Zürich".encode("latin-1") in done.stdout
    assert done.stderr == b""


@pytest.mark.parametrize("ending", ["svg", "pdf"])
def test_figures_are_well_formed(ending, tmp_path) -> None:
    from xml.dom import minidom

    from tests.cli.calls import call

    (tmp_path / "h.csv").write_text(table_of([*ACTING_NAMES, *ODD_NAMES[:6]]), "utf-8")
    drawn = tmp_path / f"d.{ending}"
    result = call("next", tmp_path / "h.csv", "--budget", 2, "--plot", drawn, "--quiet")
    assert result.exit_code == 0, result.output
    if ending == "svg":
        minidom.parseString(drawn.read_bytes())
    else:
        assert drawn.read_bytes().startswith(b"%PDF")
