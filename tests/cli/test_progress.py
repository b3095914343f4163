"""Who waits at a terminal is told why."""

import io

import numba
import pytest

from spillover.cli.progress import Watch


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("quiet", "stream", "said"), [(False, Terminal, 1), (True, Terminal, 0), (False, io.StringIO, 0)]
)
def test_compiling_is_said_once_on_a_terminal(quiet, stream, said, monkeypatch) -> None:
    stderr = stream()
    monkeypatch.setattr("sys.stderr", stderr)
    with Watch(quiet) as watch:
        ready = numba.njit(lambda x: x + 1)
        assert ready(1) == 2
        told = ready(1.5)  # compiled anew, and not said again
        assert told == 2.5
        assert ready(2) == 3
    assert watch.compiling.said == bool(said)
    assert stderr.getvalue().count("spillover: compiling (once") == said


def test_what_is_compiled_already_is_not_announced(monkeypatch) -> None:
    ready = numba.njit(lambda x: x + 1)
    ready(1)
    monkeypatch.setattr("sys.stderr", Terminal())
    with Watch(False) as watch:
        ready(1)
    assert not watch.compiling.said
