"""The client of a running service, and its streams, which have the verbs of `Learner`."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from spillover.client.transport import Transport, given, numbers_in
from spillover.validate import require

Round = str | int
AT_ONCE = 1_000  # outcomes of a request


@dataclass(frozen=True, kw_only=True)
class Decision:
    """The decision of a round. chosen: its arms, the best first. again: whether somebody had asked before.

    entry: the event as it is stored, with scores, what it was made from, time and author.

    >>> Decision(round="2026-10-12", chosen=("video", "social"), again=False, entry={}).chosen
    ('video', 'social')
    """

    round: str
    chosen: tuple[str, ...]
    again: bool
    entry: dict[str, Any]


class Stream:
    """One stream. All calls that record something may be given a `key`; each has one of its own otherwise.

    >>> from spillover.client import Client
    >>> with Client("http://127.0.0.1:8000") as client:
    ...     shop = client.stream("shop")  # nothing is sent before the first call, such as shop.decide("2026-10-12")
    """

    def __init__(self, transport: Transport, name: str) -> None:
        require(bool(name) and "/" not in name, "name", name, "the name of a stream, without /")
        self.transport, self.name = transport, name
        self.path = f"/v1/streams/{quote(name, safe='')}"

    def choose(
        self,
        round: Round,
        *,
        unavailable: Sequence[str] = (),
        context: Mapping[str, Any] | None = None,
        key: str | None = None,
    ) -> Decision:
        """The decision of a round; whoever asks again gets the same one."""
        asked = {"round": round, "unavailable": list(unavailable), "context": dict(context or {})}
        found = self.transport.write("POST", f"{self.path}/decisions", key, json=asked)
        return decision_of(found)

    def play(
        self,
        round: Round,
        chosen: Sequence[str] | None = None,
        *,
        amounts: Mapping[str, float] | None = None,
        cancelled: bool = False,
        context: Mapping[str, Any] | None = None,
        revision: int = 1,
        reason: str = "",
        key: str | None = None,
    ) -> dict[str, Any]:
        """Say what was done: the decision as issued, other arms (`chosen`), or nothing at all (`cancelled`).

        amounts: by arm, instead of `chosen`, in a stream that has amounts. revision: one more than the last corrects
        what was recorded (the first record is 1); reason: why.
        """
        done: dict[str, Any] = {"round": round, "cancelled": cancelled}
        done |= {} if chosen is None else {"chosen": list(chosen)}
        done |= {} if amounts is None else {"amounts": dict(amounts)}
        done |= {} if context is None else {"context": dict(context)}
        done |= {} if revision == 1 else {"revision": revision, "reason": reason}
        return self.record("executions", key, done)

    def report(
        self,
        round: Round,
        z: Mapping[str, float] | None = None,
        y: Mapping[str, float] | float | None = None,
        *,
        key: str | None = None,
    ) -> list[dict[str, Any]]:
        """Report outcomes of a round, or a part of them: z and y by arm; y is one number if the stream has one for all.

        Returns a status for each outcome: recorded, duplicate, late or refused, with the reason.
        """
        return self.report_many(outcomes_of(round, z, y), key=key)

    def report_many(self, outcomes: Iterable[Mapping[str, Any]], *, key: str | None = None) -> list[dict[str, Any]]:
        """Report outcomes of any rounds: each has a round, an arm, and z or y. Sent in batches of 1,000."""
        items = [dict(outcome) for outcome in outcomes]
        require(key is None or len(items) <= AT_ONCE, "key", key, f"left out for more than {AT_ONCE:,} outcomes")
        statuses: list[dict[str, Any]] = []
        for start in range(0, len(items), AT_ONCE):
            statuses += self.record("outcomes", key, {"outcomes": items[start : start + AT_ONCE]})["statuses"]
        return statuses

    def correct(
        self,
        round: Round,
        arm: str | None,
        values: Mapping[str, float | None],
        *,
        revision: int,
        reason: str = "",
        key: str | None = None,
    ) -> dict[str, Any]:
        """Correct an outcome: `values` has z, y or both; None withdraws a value. revision: one more than the last."""
        correction = {"round": round, "arm": arm, "values": dict(values), "revision": revision, "reason": reason}
        return self.record("corrections", key, correction)

    def expire(self, round: Round, *, reason: str = "", key: str | None = None) -> dict[str, Any]:
        """Say that nothing more of a round will arrive."""
        return self.record("expirations", key, {"round": round, "reason": reason})

    def change_settings(self, *, read_at: int | None = None, key: str | None = None, **changes: Any) -> dict[str, Any]:
        """Decide differently from now on.

        read_at: the `seq` of the overview or state from which the settings were read; Refused (409) if somebody has
        changed them since. None: change them whatever they are now.
        """
        content = changes if read_at is None else {"read_at": read_at, **changes}
        found: dict[str, Any] = self.transport.write("PATCH", f"{self.path}/settings", key, json=content)
        return found

    def record(self, what: str, key: str | None, content: dict[str, Any]) -> dict[str, Any]:
        found: dict[str, Any] = self.transport.write("POST", f"{self.path}/{what}", key, json=content)
        return found

    # --- reading -----------------------------------------------------------------------------------------------------

    def explain(self, round: Round | None = None) -> dict[str, Any]:
        """The reasons for the decision of a round, as they were then; without a round: what would be chosen next."""
        if round is None:
            return self.read("outlook")
        return self.read(f"decisions/{quote(str(round), safe='')}")

    def overview(self) -> dict[str, Any]:
        """Settings, counts, pending rounds, the latest rounds."""
        return self.read("")

    def course(self) -> dict[str, Any]:
        """How the estimates have moved, by what is known today."""
        return self.read("course")

    def state(self, at: int | None = None) -> dict[str, Any]:
        """All rounds, with what is known of them; at: as of an entry."""
        return self.read("state", at=at)

    def decisions(self) -> Iterator[Decision]:
        """All decisions in the order in which they were issued."""
        return (decision_of(found) for found in self.pages("decisions"))

    def events(self, after: int = 0) -> Iterator[dict[str, Any]]:
        """The log: entries with numbers above `after`."""
        return self.pages("events", after)

    def audit(self) -> dict[str, Any]:
        """Check the log, and make all decisions again: passed, problems ..."""
        found: dict[str, Any] = self.transport.send("POST", f"{self.path}/audit").json()
        return found

    def export(self, form: str = "csv", *, at: int | None = None, round: Round | None = None) -> bytes:
        """The rounds as a file: "csv", "parquet" or "jsonl"."""
        return self.export_with_command(form, at=at, round=round)[0]

    def export_with_command(
        self, form: str = "csv", *, at: int | None = None, round: Round | None = None
    ) -> tuple[bytes, str]:
        """The rounds as a file, and the command that decides from it."""
        found = self.transport.get(f"{self.path}/export", format=form, at=at, round=round)
        return found.content, unquote(found.headers["X-Spillover-Command"])

    def changes(self) -> Iterator[int]:
        """The number of the last entry, at once and whenever there is a new one; waits for ever."""
        return numbers_in(self.transport, f"{self.path}/changes")

    def read(self, what: str, **parameters: Any) -> dict[str, Any]:
        found: dict[str, Any] = self.transport.get(f"{self.path}/{what}".rstrip("/"), **parameters).json()
        return found

    def pages(self, what: str, after: int = 0) -> Iterator[dict[str, Any]]:
        start: int | None = after
        while start is not None:
            page = self.read(what, after=start)
            yield from page[what]
            start = page["next"]


def decision_of(found: dict[str, Any]) -> Decision:
    return Decision(round=found["round"], chosen=tuple(found["chosen"]), again=found["again"], entry=found)


def outcomes_of(
    round: Round, z: Mapping[str, float] | None, y: Mapping[str, float] | float | None
) -> list[dict[str, Any]]:
    """An outcome for each arm that has a z or a y.

    >>> outcomes_of(7, {"a": 0.5}, {"b": 1.0})
    [{'round': 7, 'arm': 'a', 'z': 0.5}, {'round': 7, 'arm': 'b', 'y': 1.0}]
    """
    if y is not None and not isinstance(y, Mapping):
        require(z is None, "z", z, "left out where there is one outcome for all arms")
        return [{"round": round, "y": y}]
    own, overall = dict(z or {}), dict(y or {})
    require(bool(own or overall), "y", y, "given, or z")
    found = []
    for arm in dict.fromkeys([*own, *overall]):
        values = ({"z": own[arm]} if arm in own else {}) | ({"y": overall[arm]} if arm in overall else {})
        found.append({"round": round, "arm": arm, **values})
    return found


class Client:
    """A running service. Use it as a context manager, or close it.

    >>> from spillover.client import Client
    >>> client = Client("http://127.0.0.1:8000", token=None)
    >>> shop = client.stream("shop")
    >>> client.close()

    token: what `spillover token create` printed; not needed for a service on this machine without tokens.
    timeout: seconds for one attempt. patience: seconds after which a request that fails is given up. Repeating is safe:
    each request that records something has a key, and the service records a key once.
    """

    def __init__(self, url: str, *, token: str | None = None, timeout: float = 30.0, patience: float = 30.0) -> None:
        self.transport = Transport(url, token, timeout, patience)

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        self.transport.close()

    def stream(self, name: str) -> Stream:
        """A stream that there is."""
        return Stream(self.transport, name)

    def streams(self) -> Iterator[str]:
        """The names of all streams."""
        start: str | None = ""
        while start is not None:
            page = self.transport.get("/v1/streams", after=start).json()
            yield from (line["name"] for line in page["streams"])
            start = page["next"]

    def create_stream(
        self, name: str, *, arms: Sequence[str], budget: int, key: str | None = None, **settings: Any
    ) -> Stream:
        """Begin a stream; the same again is no error. settings: policy, observes, limits ... (docs/service.md)"""
        content = {"name": name, "settings": {"arms": list(arms), "budget": budget, **settings}}
        self.transport.write("POST", "/v1/streams", key, json=content)
        return self.stream(name)

    def import_file(
        self, name: str, path: str | Path, *, budget: int, key: str | None = None, **options: Any
    ) -> Stream:
        """Begin a stream with the rounds of a history file; the same again is no error.

        options: policy, set, context, columns, minimise ...
        """
        stream = self.stream(name)
        parameters = given({"budget": budget, "filename": Path(path).name, **options})
        self.transport.write(
            "POST", f"{stream.path}/import", key, params=plain(parameters), content=Path(path).read_bytes()
        )
        return stream

    def health(self) -> bool:
        """Whether the service is there, and can record."""
        return self.transport.get("/v1/ready").is_success


def plain(parameters: dict[str, Any]) -> dict[str, Any]:
    """Values for an address: true and false in JSON's words, sequences as lists."""
    return {
        name: str(value).lower() if isinstance(value, bool) else list(value) if isinstance(value, tuple) else value
        for name, value in parameters.items()
    }
