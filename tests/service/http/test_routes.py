"""Every route: what it answers, and that it records what it says."""

from urllib.parse import quote, unquote

import httpx
import pytest

from tests.service.http.conftest import ARMS, begin, executed, problem


def test_a_stream_is_created_once(http) -> None:
    content = {"name": "once", "settings": {"arms": ARMS, "budget": 2}}
    first, again = (http.post("/v1/streams", json=content) for _ in range(2))
    assert (first.status_code, again.status_code) == (201, 200)
    assert (first.json()["again"], again.json()["again"]) == (False, True)
    assert first.json()["digest"] == again.json()["digest"]
    other = content | {"settings": {"arms": ARMS, "budget": 1}}
    problem(http.post("/v1/streams", json=other), 409, "name = 'once'")


def test_a_receipt_is_the_entry_as_the_log_has_it(http) -> None:
    arms = ['"quoted"', "back\\slash", "Öl"]
    stream = begin(http, arms=arms, budget=1)
    decision = http.post(f"{stream}/decisions", json={"round": 1}).json()
    execution = http.post(f"{stream}/executions", json={"round": 1}).json()
    created, *entries = http.get(f"{stream}/events").json()["events"]
    chosen = entries[0]["event"]["chosen"]
    assert decision == entries[0] | {"again": False, "round": "1", "chosen": chosen}
    assert execution == entries[1] | {"again": False}
    assert set(chosen) <= set(created["event"]["settings"]["arms"]) == set(arms)


def test_streams_are_listed_in_pages(http) -> None:
    names = [begin(http).removeprefix("/v1/streams/") for _ in range(3)]
    found, after = [], ""
    for _ in range(100):
        page = http.get("/v1/streams", params={"after": after, "limit": 2}).json()
        found += page["streams"]
        if (after := page["next"]) is None:
            break
    assert [line["name"] for line in found] == sorted(line["name"] for line in found)
    assert {(name, 1) for name in names} <= {(line["name"], line["seq"]) for line in found}


def test_settings_change_except_those_that_the_rounds_depend_on(http, stream) -> None:
    changed = http.patch(f"{stream}/settings", json={"budget": 1, "seed": 5})
    assert changed.status_code == 201
    assert http.get(stream).json()["settings"]["budget"] == 1
    found = problem(http.patch(f"{stream}/settings", json={"arms": ["a"]}), 422, "recorded rounds depend on it")
    assert found["field"] == "arms"


def test_settings_that_somebody_else_changed_show_both(http, stream) -> None:
    read_at = http.get(stream).json()["seq"]
    limits = [{"kind": "exclusive", "arms": ["radio", "video"], "label": "one of them"}]
    assert http.patch(f"{stream}/settings", json={"limits": limits, "read_at": read_at}).status_code == 201
    for _ in range(2):
        found = problem(http.patch(f"{stream}/settings", json={"budget": 1, "read_at": read_at}), 409, "read_at = 1")
        assert (found["recorded"]["seq"], found["recorded"]["settings"]["limits"]) == (2, limits)
        assert found["given"] == {"settings": {"budget": 1}}
    same = http.patch(f"{stream}/settings", json={"limits": limits, "read_at": read_at})
    assert (same.status_code, same.json()["seq"]) == (200, 2)
    assert http.patch(f"{stream}/settings", json={"budget": 1, "read_at": 2}).status_code == 201
    now = http.get(stream).json()["settings"]
    assert (now["budget"], now["limits"]) == (1, limits)
    assert problem(http.patch(f"{stream}/settings", json={"budget": 2, "read_at": 99}), 422)["field"] == "read_at"


def test_the_same_is_recorded_once_under_any_key_and_executions_are_corrected(http, stream) -> None:
    def send(what: str, key: str, **content: object) -> httpx.Response:
        return http.post(f"{stream}/{what}", json={"round": 1, **content}, headers={"Idempotency-Key": key})

    executed(http, stream)
    for what, content in (("executions", {}), ("expirations", {"reason": "lost"})):
        answers = [send(what, key, **content) for key in ("ann", "bob", "cem")]
        assert {answer.json()["seq"] for answer in answers} == {answers[0].json()["seq"]}
        assert [answer.status_code for answer in answers[1:]] == [200, 200]
    found = problem(send("executions", "dan", chosen=["radio"]), 409, "correct it with revision 2")
    assert found["recorded"]["event"]["how"] == "as-issued"
    assert found["given"]["event"]["chosen"] == ["radio"]
    corrected = send("executions", "dan", chosen=["radio"], revision=2, reason="a slip")
    assert (corrected.status_code, corrected.json()["kind"]) == (201, "execution-corrected")
    line = http.get(f"{stream}/state").json()["rounds"][0]
    assert (line["chosen"], line["how"], line["revision"]) == (["radio"], "overridden", 2)
    assert problem(send("executions", "eva", chosen=[], revision=4), 422)["field"] == "revision"


def test_a_person_may_do_anything_that_can_be_done(http, stream) -> None:
    """Arms are refused by name if they do not exist; more than may be chosen, or unavailable ones, are facts."""
    http.post(f"{stream}/decisions", json={"round": 1, "unavailable": ["video"]})
    found = problem(http.post(f"{stream}/executions", json={"round": 1, "chosen": ["radio", "tv"]}), 422, "'tv'")
    assert (found["field"], found["value"]) == ("chosen", "tv")
    assert http.get(f"{stream}/state").json()["rounds"][0]["status"] == "issued"
    done = http.post(f"{stream}/executions", json={"round": 1, "chosen": ARMS}).json()["event"]
    assert (done["how"], done["chosen"]) == ("overridden", ARMS)


def test_a_round_from_decision_to_correction(http, stream) -> None:
    outlook = http.get(f"{stream}/outlook").json()
    assert http.get(f"{stream}/course").status_code == 200
    first = http.post(f"{stream}/decisions", json={"round": "2026-10-12"})
    again = http.post(f"{stream}/decisions", json={"round": "2026-10-12"})
    assert (first.status_code, again.status_code) == (201, 200)
    assert first.json() | {"again": True} == again.json()
    chosen = first.json()["chosen"]
    assert sorted(chosen) == sorted(outlook["choose"])
    assert http.post(f"{stream}/executions", json={"round": "2026-10-12"}).json()["event"]["how"] == "as-issued"
    items = [{"round": "2026-10-12", "arm": arm, "y": 0.5} for arm in ARMS]
    items += [{"round": "2026-10-12", "arm": chosen[0], "z": 0.25}, {"round": "2026-10-12", "arm": "none", "z": 0.25}]
    report = http.post(f"{stream}/outcomes", json={"outcomes": items}).json()
    assert [status["status"] for status in report["statuses"]] == ["recorded"] * 4 + ["refused"]
    assert report["statuses"][-1]["field"] == "arm"
    correction = {"round": "2026-10-12", "arm": "radio", "revision": 2, "values": {"y": 0.75}, "reason": "recount"}
    assert http.post(f"{stream}/corrections", json=correction).status_code == 201
    known = http.get(f"{stream}/state").json()["rounds"][0]["outcomes"]
    assert known["radio"] == {"z": 0.25 if chosen[0] == "radio" else None, "y": 0.75, "revision": 2}
    before = http.get(f"{stream}/state", params={"at": report["seq"]}).json()["rounds"][0]["outcomes"]
    assert before["radio"]["y"] == 0.5
    assert http.post(f"{stream}/expirations", json={"round": "2026-10-12"}).status_code == 201
    kinds = [entry["kind"] for entry in http.get(f"{stream}/events").json()["events"]]
    assert [kind for kind in kinds if kind != "reasons-kept"] == [
        "stream-created",
        "decision-issued",
        "decision-executed",
        "outcomes-reported",
        "outcome-corrected",
        "outcome-expired",
    ]


def test_an_execution_may_differ_or_be_cancelled(http, stream) -> None:
    for number in (1, 2):
        http.post(f"{stream}/decisions", json={"round": number})
    other = http.post(f"{stream}/executions", json={"round": 1, "chosen": ["radio"]}).json()
    assert (other["event"]["how"], other["event"]["chosen"]) == ("overridden", ["radio"])
    cancelled = http.post(f"{stream}/executions", json={"round": 2, "cancelled": True}).json()
    assert cancelled["event"]["how"] == "cancelled"
    problem(http.post(f"{stream}/executions", json={"round": 2, "chosen": ["radio"]}), 409)


def test_reasons_are_those_of_the_decision_as_it_was(http, stream) -> None:
    executed(http, stream, 1)
    then = http.get(f"{stream}/decisions/1").json()
    http.post(f"{stream}/outcomes", json={"outcomes": [{"round": 1, "arm": arm, "y": 1.0} for arm in ARMS]})
    assert http.get(f"{stream}/decisions/1").json() == then
    assert then["budget"] == 2
    problem(http.get(f"{stream}/decisions/2"), 404, "round = '2'")


def test_lists_have_cursors(http, stream) -> None:
    for number in range(1, 6):
        http.post(f"{stream}/decisions", json={"round": number})
    for what in ("decisions", "events"):
        found, after = [], 0
        for _ in range(10):
            page = http.get(f"{stream}/{what}", params={"after": after, "limit": 2}).json()
            found += page[what]
            if (after := page["next"]) is None:
                break
        numbers = [entry["seq"] for entry in found]
        assert numbers == sorted(set(numbers))
        assert [entry["event"]["round"] for entry in found if entry["kind"] == "decision-issued"] == list("12345")


def test_a_key_gives_the_first_answer_again_and_refuses_another_request(http, stream) -> None:
    executed(http, stream)
    outcome = {"outcomes": [{"round": 1, "arm": "radio", "y": 0.5}]}
    first, again = (
        http.post(f"{stream}/outcomes", json=outcome, headers={"Idempotency-Key": "delivery 7"}).json()
        for _ in range(2)
    )
    assert (first["again"], again["again"]) == (False, True)
    assert (first["seq"], first["statuses"]) == (again["seq"], again["statuses"])
    other = {"outcomes": [{"round": 1, "arm": "radio", "y": 0.6}]}
    refused = http.post(f"{stream}/outcomes", json=other, headers={"Idempotency-Key": "delivery 7"})
    problem(refused, 409, "key = 'delivery 7'")


@pytest.mark.parametrize("form", ["csv", "parquet", "jsonl"])
def test_an_export_is_the_file_that_import_takes(http, stream, form) -> None:
    chosen = executed(http, stream, "2026-10-12")
    items = [{"round": "2026-10-12", "arm": arm, "y": 0.5} for arm in ARMS]
    items += [{"round": "2026-10-12", "arm": arm, "z": 0.5} for arm in chosen]
    http.post(f"{stream}/outcomes", json={"outcomes": items})
    found = http.get(f"{stream}/export", params={"format": form})
    assert int(found.headers["x-spillover-seq"]) >= 4
    assert unquote(found.headers["x-spillover-command"]).startswith("spillover next FILE --budget 2")
    if form == "jsonl":  # for programs; `next` reads tables
        return
    options = {"budget": 2, "filename": f"past.{form}"}
    imported = http.post(f"{stream}-again/import", params=options, content=found.content)
    assert imported.status_code == 201, imported.text
    assert imported.json()["event"]["source"] == f"past.{form}"
    assert http.get(f"{stream}-again/export").text == http.get(f"{stream}/export").text
    assert http.post(f"{stream}-again/import", params=options, content=found.content).json()["again"]
    problem(http.post(f"{stream}-again/import", params=options | {"budget": 1}, content=found.content), 409)
    key = {"Idempotency-Key": "file 1"}
    first, again = (
        http.post(f"{stream}-once/import", params=options, content=found.content, headers=key) for _ in range(2)
    )
    assert (first.status_code, again.status_code) == (201, 200)
    assert first.json()["seq"] == again.json()["seq"] == 2


def test_a_file_that_cannot_be_read_is_named_as_the_user_knows_it(http) -> None:
    refused = http.post("/v1/streams/new/import?budget=1&filename=mine.csv", content=b"round,arm\n")
    assert problem(refused, 422, "mine.csv: ")["detail"].count("/") == 0
    problem(http.post("/v1/streams/new/import?budget=1&filename=mine.exe", content=b"x"), 422, "must end in .csv")
    problem(http.post("/v1/streams/new/import?filename=mine.csv", content=b"x"), 422, "budget")
    problem(http.get("/v1/streams/new"), 404)


def test_an_audit_makes_the_decisions_again(http, stream) -> None:
    executed(http, stream)
    found = http.post(f"{stream}/audit").json()
    assert (found["passed"], found["decisions"], found["problems"]) == (True, 1, [])


def test_names_of_all_kinds(http) -> None:
    name, arms = "<script>alert(1)</script> & söme?#%41".replace("/", "|"), ["<b>", "a,b", "ü\u202f".strip(), "‰"]
    made = http.post("/v1/streams", json={"name": name, "settings": {"arms": arms, "budget": 1}})
    assert made.status_code == 201

    path = f"/v1/streams/{quote(name, safe='')}"
    assert set(http.get(path).json()["settings"]["arms"]) == set(arms)
    assert http.get(path).headers["content-type"] == "application/json"


def test_health_readiness_and_metrics(http, stream) -> None:
    assert http.get("/v1/health").json() == http.get("/v1/ready").json() == {"status": "ok"}
    executed(http, stream)
    text = http.get("/metrics").text
    assert 'spillover_events_total{kind="decision-issued"}' in text
    assert 'route="/v1/streams/{stream}/decisions"' in text
    assert "spillover_streams_open" in text
    assert stream.removeprefix("/v1/streams/") not in text


def test_the_page_of_the_interface_loads_nothing_from_outside(http) -> None:
    page = http.get("/docs").text
    assert "http" not in page.replace("HTTP interface", "")
    for asset in (
        "/docs/assets/swagger-ui.css",
        "/docs/assets/swagger-ui-bundle.js",
        "/docs/start.js",
        "/docs/openapi.json",
    ):
        assert http.get(asset).status_code == 200
        assert asset.rpartition("/")[2] in page + http.get("/docs/start.js").text
    problem(http.get("/docs/assets/other.js"), 404)


def test_unknown_paths_and_methods_are_problems_too(http, stream) -> None:
    problem(http.get("/v1/nothing"), 404)
    problem(http.get("/v1/streams/none"), 404, "stream = 'none'")
    problem(http.delete(stream), 405)
    problem(http.get("/v1/streams/%00"), 404)
    problem(http.get("/v1/streams/%ff"), 404)
