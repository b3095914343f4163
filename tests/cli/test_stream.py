"""`spillover stream`, `token`, `audit`, `export` and `import`."""

import json

import pytest

from spillover.http import ServerSettings
from tests.cli.calls import call, refused
from tests.service.http.servers import running

PAST = "round,arm,chosen,z,y\n1,a,1,0.5,0.6\n1,b,0,,0.1\n2,a,0,,0.2\n2,b,1,0.3,0.4\n"


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    with running(tmp_path_factory.mktemp("served")) as found:
        yield found


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("SPILLOVER_URL", "SPILLOVER_TOKEN", "SPILLOVER_DATABASE"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def said(*arguments: object) -> str:
    """The output of a command that succeeds."""
    result = call(*arguments)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_a_round_from_the_command_line(url, monkeypatch, here) -> None:
    monkeypatch.setenv("SPILLOVER_URL", url)
    (here / "limits.toml").write_text('[[limits]]\nkind = "exclusive"\narms = ["radio", "a, b"]\n')
    options = ["--budget", 2, "--limits", "limits.toml", "--range", 0, 2, "--max-age-rounds", 9, "--seed", 3]
    assert "created shop" in said("stream", "create", "shop", "--arms", 'radio,"a, b"', "--arms", "video", *options)
    assert "shop" in said("stream", "list").split()
    first = said("stream", "decide", "shop", "2026-10-12", "--unavailable", "radio")
    assert first.startswith("2026-10-12: ")
    assert said("stream", "decide", "shop", "2026-10-12", "--unavailable", "radio").endswith("(decided before)\n")
    assert said("stream", "execute", "shop", "2026-10-12", "--chosen", "radio") == "2026-10-12: overridden radio\n"
    again = ["--chosen", '"a, b",video', "--revision", 2, "--reason", "a slip"]
    assert said("stream", "execute", "shop", "2026-10-12", *again) != ""
    report = ["--z", '"a, b"=1.5,video=0.2', "--y", "radio=0.1"]
    assert said("stream", "report", "shop", "2026-10-12", *report) == "2026-10-12: 3 recorded\n"
    assert said("stream", "report", "shop", "2026-10-12", "--y", "radio=0.1") == "2026-10-12: 1 duplicate\n"
    corrected = said("stream", "correct", "shop", "2026-10-12", "--arm", "radio", "--y", 0.2, "--revision", 2)
    assert corrected == "2026-10-12: corrected, revision 2\n"
    said("stream", "correct", "shop", "2026-10-12", "--arm", "video", "--withdraw", "z", "--revision", 2)
    state = json.loads(said("stream", "show", "shop", "--json"))
    assert state["settings"]["limits"] == [{"kind": "exclusive", "arms": ["radio", "a, b"]}]
    assert "2026-10-12  pending" in said("stream", "show", "shop")
    assert json.loads(said("stream", "explain", "shop", "2026-10-12"))["budget"] == 2
    assert json.loads(said("stream", "explain", "shop"))["budget"] == 2
    assert said("stream", "expire", "shop", "2026-10-12") == "2026-10-12: expired\n"
    assert "everything is right" in said("audit", "shop")


def test_what_is_refused_is_one_line(url) -> None:
    refused(call("stream", "show", "none", "--url", url), "stream = 'none': must be the name of a stream")
    refused(call("stream", "create", "bad", "--arms", "a,b", "--budget", 3, "--url", url), "budget = 3: must be")
    refused(call("stream", "report", "shop", 1, "--y", "a=much", "--url", url), "y of a = 'much': must be a number")
    refused(call("stream", "report", "shop", 1, "--y", "much", "--url", url), "y = 'much': must be a number, or pairs")
    refused(call("stream", "decide", "none", 1, "--context", "x", "--url", url), "context = 'x': must be pairs")
    refused(call("stream", "list", "--url", "localhost"), "url = 'localhost': must be the address of a service")
    refused(call("audit", "shop", "--url", url, "--database", "x.db"), "url = ", "left out where --database is given")


def test_an_outcome_that_is_refused_is_an_error(url) -> None:
    said("stream", "create", "strict", "--arms", "a,b", "--budget", 1, "--url", url)
    said("stream", "execute", "strict", 1, "--chosen", "a", "--url", url)
    result = call("stream", "report", "strict", 1, "--z", "a=0.5,b=0.5", "--url", url)
    assert (result.exit_code, result.stdout) == (2, "1: 1 recorded, 1 refused\n")
    assert "'b' was not executed" in result.stderr
    payoff = ["stream", "create", "one", "--arms", "a,b", "--budget", 1, "--observes", "payoff", "--url", url]
    said(*payoff)
    said("stream", "execute", "one", 1, "--chosen", "a", "--url", url)
    assert said("stream", "report", "one", 1, "--y", "2.5", "--url", url) == "1: 1 recorded\n"


@pytest.mark.parametrize("through", ["url", "database"])
def test_import_export_and_audit(url, through, here) -> None:
    (here / "past.csv").write_text(PAST)
    where = ["--url", url] if through == "url" else ["--database", "mine.db"]
    assert said("import", "past", "past.csv", "--budget", 1, *where) == "imported past.csv as past\n"
    result = call("export", "past", *where)
    assert (result.exit_code, result.stdout) == (0, PAST)
    assert "spillover next - --budget 1" in result.stderr
    for name in ("out.csv", "out.parquet", "out.jsonl"):
        said("export", "past", "--output", name, *where)
    assert (here / "out.csv").read_text() == PAST
    assert (here / "out.parquet").read_bytes()[:4] == b"PAR1"
    assert json.loads((here / "out.jsonl").read_text().splitlines()[0])["arm"] == "a"
    audit = json.loads(said("audit", "past", "--json", *where))
    assert (audit["passed"], audit["problems"]) == (True, [])
    assert said("import", "past", "past.csv", "--budget", 1, *where) == "imported past.csv as past\n"  # once
    refused(call("import", "past", "past.csv", "--budget", 2, *where), "name = 'past': must be a new one")
    refused(call("export", "none", *where), "stream = 'none'")
    (here / "bad.csv").write_text("round,arm\n")
    refused(call("import", "bad", "bad.csv", "--budget", 1, *where), "bad.csv: ")


def test_reading_makes_no_database(here) -> None:
    refused(call("audit", "shop", "--database", "none.db"), "database = 'none.db': must be a file that exists")
    refused(call("export", "shop"), "database = 'spillover.db': must be a file that exists")
    assert not list(here.iterdir())


def test_a_damaged_log_fails_the_audit(here) -> None:
    import sqlite3

    (here / "past.csv").write_text(PAST)
    said("import", "past", "past.csv", "--budget", 1, "--database", "mine.db")
    with sqlite3.connect("mine.db") as connection:
        connection.execute("UPDATE entries SET text = replace(text, '0.25', '0.26'), key = key || 'x' WHERE seq = 2")
    connection.close()
    result = call("audit", "past", "--database", "mine.db")
    assert result.exit_code == 1
    assert "the log is damaged" in result.stdout
    assert "entry 2" in result.stderr


def test_tokens(here, monkeypatch) -> None:
    assert "no tokens in spillover.db.tokens" in said("token", "list")
    result = call("token", "create", "ann", "--scope", "admin")
    secret = result.stdout.strip()
    assert result.exit_code == 0
    assert secret.startswith("spillover_")
    assert secret not in result.stderr
    till = call("token", "create", "till", "--scope", "write", "--stream", "shop").stdout.strip()
    assert said("token", "list").splitlines()[1:] == ["ann    admin  all", "till   write  shop"]
    assert [line["name"] for line in json.loads(said("token", "list", "--json"))] == ["ann", "till"]
    refused(call("token", "create", "ann"), "name = 'ann': must be a new one")
    with running(here, ServerSettings(tokens=here / "spillover.db.tokens")) as url:
        refused(call("stream", "list", "--url", url), "Authorization: must be given")
        monkeypatch.setenv("SPILLOVER_TOKEN", secret)
        said("stream", "create", "shop", "--arms", "a,b", "--budget", 1, "--url", url)
        monkeypatch.setenv("SPILLOVER_TOKEN", till)
        said("stream", "decide", "shop", 1, "--url", url)
        refused(call("import", "new", "none.csv", "--budget", 1, "--url", url), "none.csv: No such file")
        assert said("token", "revoke", "till") == "revoked till\n"
        refused(call("stream", "decide", "shop", 2, "--url", url), "a token that is known here")
    refused(call("token", "revoke", "till"), "name = 'till': must be one of ann")
