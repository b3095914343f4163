"""Who may ask: tokens and their scopes, the names of the server, pages of other servers."""

import json
import logging
import os
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

import httpx
import pytest

from spillover.http import ServerSettings
from spillover.http.access import TokenFile, create_token, read_tokens, revoke_token
from spillover.service import Service, SqliteLog
from tests.service.http.conftest import ARMS, begin, executed, problem
from tests.service.http.servers import connected

NEW = {"name": "new", "settings": {"arms": ARMS, "budget": 1}}


@pytest.fixture(scope="module")
def guarded(tmp_path_factory):
    """A server with tokens of all kinds: a client, the tokens by name, the file."""
    folder = tmp_path_factory.mktemp("guarded")
    path = folder / "tokens"
    tokens = {scope: create_token(path, scope, scope, None) for scope in ("read", "write", "admin")}
    tokens["till"] = create_token(path, "till", "write", ("shop", "kiosk"))
    with connected(folder, ServerSettings(tokens=path)) as http:
        for name in ("shop", "other"):
            made = http.post("/v1/streams", json=NEW | {"name": name}, headers=bearer(tokens["admin"]))
            assert made.status_code == 201, made.text
        yield http, tokens, path


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


REQUESTS = [
    ("read", "GET", "/v1/streams/shop", None),
    ("read", "GET", "/v1/streams/shop/outlook", None),
    ("read", "GET", "/v1/streams/shop/decisions", None),
    ("read", "GET", "/v1/streams/shop/events", None),
    ("read", "GET", "/v1/streams/shop/state", None),
    ("read", "GET", "/v1/streams/shop/export", None),
    ("read", "POST", "/v1/streams/shop/audit", None),
    # in the order of a round: each needs those before it
    ("write", "POST", "/v1/streams/shop/decisions", {"round": 1}),
    ("write", "POST", "/v1/streams/shop/executions", {"round": 1}),
    ("write", "POST", "/v1/streams/shop/outcomes", {"outcomes": [{"round": 1, "arm": "radio", "y": 1.0}]}),
    ("write", "POST", "/v1/streams/shop/corrections", {"round": 1, "arm": "radio", "revision": 2, "values": {"y": 2}}),
    ("write", "POST", "/v1/streams/shop/expirations", {"round": 1}),
    ("admin", "POST", "/v1/streams", NEW),
    ("admin", "PATCH", "/v1/streams/shop/settings", {"seed": 1}),
]
ORDER = ("read", "write", "admin")


def test_each_route_needs_its_scope(guarded) -> None:
    for needed, method, path, body in REQUESTS:
        check_scopes(guarded, needed, method, path, body)


def check_scopes(guarded, needed, method, path, body) -> None:
    http, tokens, _ = guarded
    key = {"Idempotency-Key": path} if needed != "read" else {}
    refused = http.request(method, path, json=body)
    problem(refused, 401, "Authorization")
    assert refused.headers["www-authenticate"].startswith("Bearer")
    problem(http.request(method, path, json=body, headers=bearer(tokens["read"] + "x")), 401)
    for scope in ORDER:
        answer = http.request(method, path, json=body, headers=bearer(tokens[scope]) | key)
        if ORDER.index(scope) < ORDER.index(needed):
            problem(answer, 403, f"scope {needed}")
        else:
            assert answer.status_code in (200, 201), answer.text
    own = http.request(method, path, json=body, headers=bearer(tokens["till"]) | key)
    assert own.status_code == (403 if needed == "admin" else 200)
    if path != "/v1/streams":
        problem(http.request(method, path.replace("shop", "other"), json=body, headers=bearer(tokens["till"])), 403)


def test_a_token_for_some_streams_sees_no_others(guarded) -> None:
    http, tokens, _ = guarded
    names = [line["name"] for line in http.get("/v1/streams", headers=bearer(tokens["read"])).json()["streams"]]
    assert {"shop", "other"} <= set(names)
    seen = http.get("/v1/streams", headers=bearer(tokens["till"])).json()
    assert [line["name"] for line in seen["streams"]] == ["shop"]
    assert seen["next"] is None
    problem(http.get("/v1/streams/none", headers=bearer(tokens["till"])), 403)  # nor whether there are any
    problem(http.get("/metrics", headers=bearer(tokens["till"])), 403)
    assert http.get("/metrics", headers=bearer(tokens["read"])).status_code == 200


def test_what_needs_no_token(guarded) -> None:
    http, _, _ = guarded
    for path in ("/v1/health", "/v1/ready", "/openapi.json", "/docs"):
        assert http.get(path).status_code == 200
    problem(http.get("/metrics"), 401)


@pytest.mark.parametrize("given", ["", "Bearer", "Basic dTpw", "bearer x", "Bearer spillover__", "Bearer ü"])
def test_other_authorizations_are_refused(guarded, given) -> None:
    http, _, _ = guarded
    problem(http.get("/v1/streams", headers={"Authorization": given.encode("latin-1")}), 401)


def test_a_token_in_the_address_is_no_token(guarded) -> None:
    http, tokens, _ = guarded
    problem(http.get("/v1/streams", params={"token": tokens["admin"], "access_token": tokens["admin"]}), 401)
    problem(http.get("/v1/streams", headers={"Cookie": f"token={tokens['admin']}"}), 401)


def test_who_asked_is_recorded(guarded) -> None:
    http, tokens, _ = guarded
    made = http.post("/v1/streams", json=NEW | {"name": "kiosk"}, headers=bearer(tokens["admin"])).json()
    decided = http.post("/v1/streams/kiosk/decisions", json={"round": 1}, headers=bearer(tokens["till"])).json()
    assert (made["author"], decided["author"]) == ("admin", "till")


def test_a_revoked_token_ends_at_once_and_the_last_one_opens_nothing(tmp_path) -> None:
    path = tmp_path / "tokens"
    secret = create_token(path, "ann", "admin", None)
    with connected(tmp_path, ServerSettings(tokens=path)) as http:
        assert http.get("/v1/streams", headers=bearer(secret)).status_code == 200
        assert revoke_token(path, "ann") == 0
        problem(http.get("/v1/streams", headers=bearer(secret)), 401)
        problem(http.get("/v1/streams"), 401)
    with connected(tmp_path, ServerSettings(tokens=path)) as http:  # also after a restart
        problem(http.get("/v1/streams"), 401)


def test_a_server_that_had_a_token_for_a_moment_stays_closed(tmp_path) -> None:
    path = tmp_path / "tokens"
    with connected(tmp_path, ServerSettings(tokens=path)) as http:
        assert http.get("/v1/streams").status_code == 200
        create_token(path, "ann", "admin", None)
        problem(http.get("/v1/streams"), 401)
        revoke_token(path, "ann")
        problem(http.get("/v1/streams"), 401)
        path.unlink()
        problem(http.get("/v1/streams"), 401)


def test_another_name_of_the_server_needs_a_token(tmp_path) -> None:
    """It is that of a proxy, behind which everybody comes from this machine."""
    with connected(tmp_path, ServerSettings(hosts=("decisions.example",), tokens=tmp_path / "tokens")) as http:
        for host in ("decisions.example", "localhost"):
            problem(http.get("/v1/streams", headers={"Host": host}), 401)


@pytest.mark.parametrize("header", ["Forwarded", "X-Forwarded-For", "X-Real-IP", "Via"])
def test_a_server_without_tokens_takes_nothing_from_a_proxy(http, header) -> None:
    problem(http.get("/v1/streams", headers={header: "203.0.113.7"}), 403, header.lower(), "spillover token create")


BAD_FILES = [
    "",
    "[]",
    "{}",
    "{",
    "\xff",
    "[" * 100_000,
    '{"version": 2, "tokens": []}',
    '{"version": 1, "tokens": [{}]}',
    '{"version": 1, "tokens": 1}',
    '{"version": 1, "tokens": [{"name": "a", "id": "b", "digest": "c", "scope": "root", "streams": null}]}',
    '{"version": 1, "tokens": [{"name": "a", "id": "b", "digest": 1, "scope": "admin", "streams": null}]}',
    '{"version": 1, "tokens": [{"name": "a", "id": "b", "digest": "c", "scope": "admin", "streams": "shop"}]}',
]


def test_a_file_that_is_damaged_while_the_server_runs_lets_nobody_in(tmp_path, caplog) -> None:
    path = tmp_path / "tokens"
    with connected(tmp_path, ServerSettings(tokens=path)) as http:
        assert http.get("/v1/streams").status_code == 200
        for text in BAD_FILES:
            path.write_bytes(text.encode("latin-1"))
            for _ in range(2):
                problem(http.get("/v1/streams"), 503, "nobody is let in")
        assert len(caplog.records) == len(BAD_FILES)
        path.unlink()
        secret = create_token(path, "ann", "admin", None)
        problem(http.get("/v1/streams"), 401)
        assert http.get("/v1/streams", headers=bearer(secret)).status_code == 200
        path.unlink()
        path.mkdir()
        problem(http.get("/v1/streams", headers=bearer(secret)), 503)


def test_the_file_has_only_hashes_and_is_for_its_owner(guarded) -> None:
    _, tokens, path = guarded
    text = path.read_text()
    assert all(secret not in text and secret.split("_", 2)[2] not in text for secret in tokens.values())
    if os.name != "nt":
        assert path.stat().st_mode & 0o077 == 0
    assert [token.name for token in read_tokens(path)] == list(tokens)


def test_a_file_that_is_damaged_is_said_at_the_start(tmp_path) -> None:
    path = tmp_path / "tokens"
    for text in BAD_FILES:
        path.write_bytes(text.encode("latin-1"))
        with pytest.raises(ValueError, match="must be a file that `spillover token create` wrote"):
            TokenFile(path).current()


def test_tokens_that_are_created_at_the_same_time_are_all_there(tmp_path) -> None:
    names = [f"t{k}" for k in range(16)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda name: create_token(tmp_path / "tokens", name, "read", None), names))
    assert sorted(token.name for token in read_tokens(tmp_path / "tokens")) == sorted(names)


@pytest.mark.skipif(os.name == "nt", reason="permissions: POSIX")
def test_files_are_for_their_owner_alone(tmp_path) -> None:
    before = os.umask(0)
    try:
        log = SqliteLog(tmp_path / "shop.db")
        Service(log).create_stream("shop", cast(Any, NEW["settings"]))
        create_token(tmp_path / "tokens", "ann", "admin", None)
        (tmp_path / "tokens").chmod(0o644)
        create_token(tmp_path / "tokens", "bob", "read", None)
        modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
        log.close()
    finally:
        os.umask(before)
    assert {"shop.db", "shop.db-wal", "tokens"} <= set(modes)
    assert set(modes.values()) == {0o600}


def test_tokens_differ_and_names_do_not_repeat(tmp_path) -> None:
    path = tmp_path / "tokens"
    made = [create_token(path, f"t{k}", "read", None) for k in range(5)]
    assert len(set(made)) == 5
    assert all(TokenFile(path).find(secret) for secret in made)
    assert TokenFile(path).find(made[0][:-1] + ("A" if made[0][-1] != "A" else "B")) is None
    with pytest.raises(ValueError, match="a new one"):
        create_token(path, "t0", "read", None)
    with pytest.raises(ValueError, match="one of t0, t1"):
        revoke_token(path, "none")


def test_no_token_in_any_log(guarded, caplog, capfd) -> None:
    http, tokens, _ = guarded
    with caplog.at_level(logging.DEBUG):
        http.get("/v1/streams", headers=bearer(tokens["admin"]))
        http.get("/v1/streams", headers=bearer(tokens["admin"] + "x"))
        http.post("/v1/streams", content=b"{", headers=bearer(tokens["admin"]) | {"Content-Type": "application/json"})
        http.get("/metrics", headers=bearer(tokens["admin"]))
    shown = capfd.readouterr()
    everything = caplog.text + shown.out + shown.err + http.get("/metrics", headers=bearer(tokens["admin"])).text
    assert tokens["admin"] not in everything
    assert tokens["admin"].rpartition("_")[2] not in everything


# --- names of the server, and pages of others -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "127.0.0.1.evil.example",
        "localhost.evil.example:80",
        "10.0.0.1",
        "",
        "a b",
        "[::2]",
        "localhost@evil.example",
    ],
)
def test_other_hosts_are_refused(http, host) -> None:
    """A page of another server whose name points at 127.0.0.1 (DNS rebinding)."""
    problem(http.get("/v1/streams", headers={"Host": host}), 421, "Host")


@pytest.mark.parametrize("host", ["localhost", "localhost:1", "127.0.0.1", "[::1]:8000", "LOCALHOST"])
def test_names_of_this_machine_are_accepted(http, host) -> None:
    assert http.get("/v1/streams", headers={"Host": host}).status_code == 200


ORIGINS = [
    "http://evil.example",
    "null",
    "http://127.0.0.1:1",
    "https://localhost",
    "file://",
    "",
    "http://[",
    "http://127.0.0.1.evil.example",
]


@pytest.mark.parametrize("origin", ORIGINS)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_other_origins_are_refused(http, origin, method) -> None:
    problem(http.request(method, "/v1/streams", json=NEW, headers={"Origin": origin}), 403, "Origin")
    problem(http.get("/v1/streams/new"), 404)


def test_requests_that_a_browser_calls_foreign_are_refused(http) -> None:
    for site in ("cross-site", "same-site"):
        problem(http.post("/v1/streams", json=NEW, headers={"Sec-Fetch-Site": site}), 403)
    assert http.get("/docs", headers={"Sec-Fetch-Site": "cross-site"}).status_code == 200  # a link to it is fine


def test_the_own_page_may_ask(http) -> None:
    origin = str(http.base_url).rstrip("/")
    stream = begin(http)
    made = http.post(
        f"{stream}/decisions", json={"round": 1}, headers={"Origin": origin, "Sec-Fetch-Site": "same-origin"}
    )
    assert made.status_code == 201


def test_no_answer_lets_other_pages_read_or_frame_it(http, stream) -> None:
    executed(http, stream)
    origin = {"Origin": "http://evil.example"}
    answers = [http.get(stream), http.get("/docs"), http.get("/none"), http.get(stream, headers=origin)]
    answers += [http.options(stream, headers=origin | {"Access-Control-Request-Method": "POST"}), http.get("/metrics")]
    for answer in answers:
        assert not [name for name in answer.headers if name.startswith("access-control-")]
        assert "set-cookie" not in answer.headers
        assert "default-src 'none'" in answer.headers["content-security-policy"]
        assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]
        assert (
            "unsafe-inline"
            not in answer.headers["content-security-policy"].partition("script-src")[2].partition(";")[0]
        )
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert "server" not in answer.headers


def test_another_address_needs_a_token_and_knows_its_names(tmp_path) -> None:
    """As with --host 0.0.0.0, though the test itself listens on 127.0.0.1 alone."""
    service = Service(SqliteLog(tmp_path / "a.db"))
    settings = ServerSettings(host="0.0.0.0", hosts=("decisions.example",), tokens=tmp_path / "tokens")
    with connected(service, settings) as http:
        problem(http.get("/v1/streams"), 401)
        secret = create_token(tmp_path / "tokens", "ann", "read", None)
        for host in ("decisions.example", "192.0.2.7:8000", "localhost"):
            assert http.get("/v1/streams", headers=bearer(secret) | {"Host": host}).status_code == 200
        problem(http.get("/v1/streams", headers=bearer(secret) | {"Host": "evil.example"}), 421)
    service.close()


def test_problems_are_ascii_and_short(http) -> None:
    found = http.post("/v1/streams", json=NEW | {"name": "ü" * 5_000})
    assert found.content.isascii()
    assert len(found.content) < 4_000
    assert json.loads(found.content)["field"] == "name"


def test_a_client_of_httpx_leaves_no_cookie(http) -> None:
    assert isinstance(http, httpx.Client)
    assert not http.cookies
