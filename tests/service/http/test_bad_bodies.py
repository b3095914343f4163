"""Bodies that must be refused, each with a problem that says why, and none with a 5xx."""

import httpx
import pytest

from spillover.http.routing import BadJson, without_repeats
from tests.service.http.conftest import ARMS, begin, executed, problem

JSON = {"Content-Type": "application/json"}
OUTCOME = b'{"outcomes": [{"round": 1, "arm": "radio", "y": %s}]}'
NO_JSON = {
    "empty": b"",
    "cut": b'{"outcomes": [',
    "not UTF-8": b'{"outcomes": "\xff"}',
    "UTF-16": '{"outcomes": []}'.encode("utf-16"),
    "byte order mark": b"\xef\xbb\xbf{}",
    "NaN": OUTCOME % b"NaN",
    "Infinity": OUTCOME % b"-Infinity",
    "a field twice": b'{"outcomes": [], "outcomes": []}',
    "an inner field twice": b'{"outcomes": [{"round": 1, "arm": "radio", "y": 1, "y": 2}]}',
    "a field twice by an escape": b'{"outcomes": [{"round": 1, "arm": "radio", "y": 1, "\\u0079": 2}]}',
    "nested lists": b"[" * 100_000 + b"]" * 100_000,
    "nested objects": b'{"a":' * 50_000 + b"1" + b"}" * 50_000,
    "nested a little": b'{"outcomes": ' + b"[" * 20 + b"]" * 20 + b"}",
    "too many digits": OUTCOME % (b"9" * 5_000),
    "half a surrogate pair": b'{"outcomes": [{"round": 1, "arm": "\\ud800", "y": 1}]}',
    "two values": b"{}{}",
    "single quotes": b"{'outcomes': []}",
    "a comment": b"{} // x",
    "a comma too many": b'{"outcomes": [],}',
    "NUL": b'{"outcomes": "\x00"}',
    "leading zero": OUTCOME % b"01",
    "plus sign": OUTCOME % b"+1",
    "hexadecimal": OUTCOME % b"0x1",
}
WRONG = {
    "a list": b"[]",
    "null": b"null",
    "a number": b"1",
    "a text": b'"outcomes"',
    "no outcomes": b"{}",
    "outcomes null": b'{"outcomes": null}',
    "none at all": b'{"outcomes": []}',
    "too many": b'{"outcomes": [' + b",".join([b'{"round": 1, "arm": "radio", "y": 1}'] * 1_001) + b"]}",
    "an unknown field": b'{"outcomes": [{"round": 1, "arm": "radio", "y": 1}], "x": 1}',
    "an unknown inner field": b'{"outcomes": [{"round": 1, "arm": "radio", "y": 1, "Y": 2}]}',
    "a number in quotes": OUTCOME % b'"0.5"',
    "true": OUTCOME % b"true",
    "1e999": OUTCOME % b"1e999",
    "-1e999": OUTCOME % b"-1e999",
    "a large whole number": OUTCOME % (b"9" * 400),
    "a list as a number": OUTCOME % b"[1]",
    "a round of another type": b'{"outcomes": [{"round": 1.5, "arm": "radio", "y": 1}]}',
    "a round null": b'{"outcomes": [{"round": null, "arm": "radio", "y": 1}]}',
    "a round true": b'{"outcomes": [{"round": true, "arm": "radio", "y": 1}]}',
    "a round without end": b'{"outcomes": [{"round": %s, "arm": "radio", "y": 1}]}' % (b"9" * 100),
    "a long round": b'{"outcomes": [{"round": "%s", "arm": "radio", "y": 1}]}' % (b"9" * 100),
    "an arm of another type": b'{"outcomes": [{"round": 1, "arm": 3, "y": 1}]}',
    "a long arm": b'{"outcomes": [{"round": 1, "arm": "%s", "y": 1}]}' % (b"a" * 201),
}


@pytest.fixture(scope="module")
def ready(http: httpx.Client) -> str:
    """The path of a stream with an executed round."""
    stream = begin(http)
    executed(http, stream)
    return stream


def send(http: httpx.Client, path: str, body: bytes, **headers: str) -> httpx.Response:
    return http.post(path, content=body, headers=JSON | headers)


@pytest.mark.parametrize("body", NO_JSON.values(), ids=NO_JSON)
def test_what_is_not_json_is_a_400(http, ready, body) -> None:
    found = send(http, f"{ready}/outcomes", body)
    problem(found, 400 if body else 422)


@pytest.mark.parametrize("body", WRONG.values(), ids=WRONG)
def test_what_is_not_a_report_is_a_422(http, ready, body) -> None:
    found = problem(send(http, f"{ready}/outcomes", body), 422)
    assert found["field"]


class Counted(str):
    """A name that counts how often it is compared with another one."""

    compared = 0

    def __eq__(self, other: object) -> bool:
        Counted.compared += 1
        return str.__eq__(self, other)

    __hash__ = str.__hash__


def test_a_field_given_twice_among_many_is_found_without_comparing_all_of_them() -> None:
    names = [Counted(f"field {k}") for k in range(1_000)]
    Counted.compared = 0
    with pytest.raises(BadJson, match="field 999: must be given once"):
        without_repeats([(name, None) for name in [*names, Counted("field 999")]])
    assert Counted.compared <= 2 * len(names)


def test_refused_bodies_record_nothing(http) -> None:
    stream = begin(http)
    executed(http, stream)
    http.get(f"{stream}/decisions/1")
    for body in [*NO_JSON.values(), *WRONG.values()]:
        send(http, f"{stream}/outcomes", body)
    kinds = [entry["kind"] for entry in http.get(f"{stream}/events").json()["events"]]
    assert "outcomes-reported" not in kinds


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "text/json", ""]
)
def test_json_must_be_called_json(http, ready, kind) -> None:
    """A form of another page could send the others without asking."""
    body = b'{"outcomes": [{"round": 1, "arm": "radio", "y": 1}]}'
    problem(http.post(f"{ready}/outcomes", content=body, headers={"Content-Type": kind}), 415)


SETTINGS = {
    "no arms": {"arms": []},
    "the same arm twice": {"arms": ["a", "a"]},
    "the same arm in capitals": {"arms": ["a", "A"]},
    "an empty name": {"arms": ["a", ""]},
    "a name of two lines": {"arms": ["a", "b\nc"]},
    "a name with NUL": {"arms": ["a", "b\x00"]},
    "a budget of 0": {"budget": 0},
    "a budget below 0": {"budget": -1},
    "more than there are": {"budget": 4},
    "a budget without end": {"budget": 10**30},
    "an unknown policy": {"policy": "no-such-policy"},
    "a policy of one's own": {"policy": "os:system"},
    "a policy that does not learn": {"policy": "../../etc/passwd"},
    "a setting without a value": {"set": ["discount"]},
    "an unknown setting": {"set": ["no_such=1"]},
    "a setting that is code": {"set": ["discount=__import__('os').system('true')"]},
    "a range upside down": {"reward_range": [1, 0]},
    "half a range": {"reward_range": [1]},
    "an empty range": {"reward_range": [0, 0]},
    "an unknown limit": {"limits": [{"kind": "no-such"}]},
    "a limit without a kind": {"limits": [{}]},
    "a limit of another type": {"limits": [{"kind": ["cost"]}]},
    "a limit with texts for numbers": {"limits": [{"kind": "cost", "costs": "much", "most": {}}]},
    "a limit on other arms": {"limits": [{"kind": "unavailable", "arms": ["none"]}]},
    "a nested limit": {"limits": [{"kind": {"kind": {"kind": {}}}}]},
    "no such observation": {"observes": "nothing"},
    "a context twice": {"context": ["price", "price"]},
    "a context that is a column": {"context": ["chosen"]},
    "an effort below 0": {"effort": -1},
    "a seed below 0": {"seed": -1},
    "a seed without end": {"seed": 2**64},
    "no age": {"max_age_rounds": 0},
}


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
def test_settings_that_no_stream_can_have(http, settings) -> None:
    content = {"name": "refused", "settings": {"arms": ARMS, "budget": 2} | settings}
    found = problem(http.post("/v1/streams", json=content), 422)
    assert "field" in found or found["detail"].startswith("constraint 1")
    problem(http.get("/v1/streams/refused"), 404)


@pytest.mark.parametrize("count", [1_001, 5_000, 100_000])
def test_too_many_arms_are_refused_when_a_stream_is_created(http, count) -> None:
    settings = {"arms": [f"arm {k}" for k in range(count)], "budget": 1}
    answer = http.post("/v1/streams", json={"name": "large", "settings": settings})
    found = problem(answer, 422, f"arms = {count}: must be at most 1,000 names")
    assert (found["field"], found["value"]) == ("arms", count)
    assert http.get("/v1/streams/large").status_code == 404


@pytest.mark.parametrize("name", ["", " ", "a/b", ".", "..", " a", "a\nb", "a\x00", "\x7f", "a" * 201, "\u202e"])
def test_names_that_no_stream_can_have(http, name) -> None:
    content = {"name": name, "settings": {"arms": ARMS, "budget": 2}}
    assert problem(http.post("/v1/streams", json=content), 422)["field"] == "name"


ROUNDS = [
    "",
    " ",
    "soon",
    "2026-13-01",
    "2026-02-30",
    "1e3",
    "0x10",
    "1.5",
    "NaN",
    "٣",
    "-",
    "05/06/07",
    "9" * 40,
    -(10**15),
]


@pytest.mark.parametrize("round", ROUNDS)
def test_rounds_that_cannot_be_decided(http, stream, round) -> None:
    found = http.post(f"{stream}/decisions", json={"round": round})
    assert found.status_code in (201, 422), found.text
    if found.status_code == 422:
        assert problem(found, 422)["field"] == "round"
    assert http.get(f"{stream}/decisions/{round}").status_code < 500


@pytest.mark.parametrize("key", ["a" * 201, "\x7f", "ü\x80".encode("latin-1").decode("latin-1"), "tab\tinside"])
def test_keys_that_are_refused(http, stream, key) -> None:
    found = http.post(f"{stream}/decisions", json={"round": 1}, headers={"Idempotency-Key": key.encode("latin-1")})
    assert found.status_code in (400, 422), found.text


@pytest.mark.parametrize(
    "query", ["after=-1", "after=x", "after=1e3", f"after={10**30}", "limit=0", "limit=1001", "limit=", "limit=1.5"]
)
def test_cursors_that_are_refused(http, ready, query) -> None:
    problem(http.get(f"{ready}/events?{query}"), 422)
    problem(http.get(f"{ready}/decisions?{query}"), 422)


def test_a_key_of_ours_in_the_hand_of_a_client_does_no_harm(http, stream) -> None:
    """Entries without a given key have one too; a client cannot take it away from them."""
    taken = {"Idempotency-Key": "decide:2"}
    assert http.post(f"{stream}/decisions", json={"round": 1}, headers=taken).status_code == 201
    assert http.post(f"{stream}/decisions", json={"round": 2}).status_code == 201
