"""Requests of all kinds, made from the description of the interface: none is answered with a 5xx, and every answer is
one that the description has."""

from contextlib import suppress
from itertools import count

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.sampling import few_or_many
from tests.service.http.conftest import ARMS, executed
from tests.service.http.servers import PATIENCE, running

CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
ENDLESS = "/v1/streams/{stream}/changes"
MOST_AT_ONCE = 200  # requests of one kind


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    """A server with three streams: an empty one, one with a round, one with one outcome for all arms and context."""
    with running(tmp_path_factory.mktemp("described")) as found, httpx.Client(base_url=found, timeout=PATIENCE) as http:
        for name, extra in (("empty", {}), ("used", {}), ("payoff", {"observes": "payoff", "context": ["price"]})):
            made = http.post("/v1/streams", json={"name": name, "settings": {"arms": ARMS, "budget": 2} | extra})
            assert made.status_code == 201
        executed(http, "/v1/streams/used", 1)
        yield found


def described(url: str):
    description = httpx.get(f"{url}/openapi.json", timeout=PATIENCE).json()
    schema = schemathesis.openapi.from_dict(description).exclude(path=ENDLESS)
    schema.config.update(base_url=url)
    return schema


@pytest.mark.parametrize("requests", few_or_many(80, 50_000))
def test_no_request_breaks_the_server(url, requests) -> None:
    operations = [found.ok() for found in described(url).get_all_operations()]
    modes = (GenerationMode.POSITIVE, GenerationMode.NEGATIVE)
    each = max(2, min(MOST_AT_ONCE, requests // (2 * len(operations))))
    sent = 0
    for turn in count():  # operations with few parameters have few different requests, so one turn may not do
        sent += sum(send_many(operation, mode, each, turn) for operation in operations for mode in modes)
        if sent >= requests:
            break
    assert httpx.get(f"{url}/v1/ready", timeout=PATIENCE).status_code == 200


def send_many(operation, mode, examples, turn) -> int:
    """Requests to one operation, most of them about streams and rounds that there are; returns how many were sent."""
    sent = count()

    @seed(turn)
    @settings(
        max_examples=examples,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(
        case=operation.as_strategy(generation_mode=mode),
        stream=st.sampled_from(["empty", "used", "payoff", None]),
        round=st.sampled_from([1, "1", 2, None, None]),
    )
    def send(case, stream, round) -> None:
        if stream is not None and "stream" in (case.path_parameters or {}):
            case.path_parameters["stream"] = stream
        if round is not None and isinstance(case.body, dict) and "round" in case.body:
            case.body["round"] = round
        next(sent)
        response = case.call(timeout=PATIENCE)
        case.validate_response(response, checks=CHECKS)

    with suppress(Unsatisfiable):  # an operation without parameters cannot be asked wrongly
        send()
    return next(sent)


@pytest.mark.parametrize("examples", few_or_many(3, 300))
def test_steps_that_follow_each_other(url, examples) -> None:
    """As the links of the description say: what can be done with a stream that was just created."""
    machine = described(url).as_state_machine()
    machine.validate_response = lambda self, response, case, **_: case.validate_response(response, checks=CHECKS)
    machine.run(
        settings=settings(
            max_examples=examples,
            derandomize=True,
            database=None,
            deadline=None,
            stateful_step_count=8,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
    )
