"""What two people say of the same thing: said alike, it is recorded once; said otherwise, both are shown."""

from collections.abc import Mapping
from typing import Any

from spillover.service.canonical import digest_of
from spillover.service.desk import Receipt
from spillover.service.entry import Entry
from spillover.service.errors import Conflict
from spillover.service.events import Event, RoundsImported
from spillover.service.settings import FIXED, Settings

DERIVED = ("how", "learned")  # they follow from the rest and from when it was recorded


def said_again(entry: Entry, event: Event, request: Mapping[str, Any], what: str, hint: str) -> Receipt:
    """The receipt of an entry that says what an event says, whatever their keys; a Conflict if it says otherwise.

    what: the part of the request that both are about; hint: what else may be done.
    """
    recorded, given = said_of_round(entry, event), event.to_dict()
    if entry.request == digest_of(request) or content(recorded) == content(given):
        return Receipt(entry=entry, again=True)
    raise Conflict(
        f"{what}: must be as in entry {entry.seq}{by(entry)}; {hint}",
        recorded=place(entry) | {"event": recorded},
        given={"event": given},
    )


def check_settings_read(entry: Entry, settings: Settings, changes: Mapping[str, Any], read_at: int) -> None:
    """A Conflict if settings were changed after the entry at which they were read. entry: the one that says them."""
    if read_at < entry.seq:
        known = {name: value for name, value in settings.to_dict().items() if name not in FIXED}
        raise Conflict(
            f"read_at = {read_at}: must be at least {entry.seq}, the entry in which settings were changed{by(entry)}",
            recorded=place(entry) | {"settings": known},
            given={"settings": dict(changes)},
        )


def other_settings(name: str, recorded: Mapping[str, Any], given: Mapping[str, Any]) -> Conflict:
    """The Conflict of a stream that is there with other settings; it shows those that differ."""
    differ = [key for key in {**recorded, **given} if recorded.get(key) != given.get(key)]
    return Conflict(
        f"name = {name!r}: must be a new one: there is a stream of this name, with other settings",
        recorded={"settings": {key: recorded.get(key) for key in differ}},
        given={"settings": {key: given.get(key) for key in differ}},
    )


def said_of_round(entry: Entry, event: Event) -> dict[str, Any]:
    """What an entry says, as plain values; of an import, what it says was done in the round of an event."""
    found: dict[str, Any] = entry.content["event"]
    if entry.content["kind"] != RoundsImported.kind:
        return found
    line = next(line for line in found["rounds"] if line["round"] == vars(event)["round"])
    return {"how": "imported"} | {name: value for name, value in line.items() if name not in ("z", "y")}


def content(event: Mapping[str, Any]) -> dict[str, Any]:
    """What counts for two events to say the same."""
    return {name: value for name, value in event.items() if name not in DERIVED and value != {}} | {
        "cancelled": event.get("how") == "cancelled"
    }


def place(entry: Entry) -> dict[str, Any]:
    return {"seq": entry.seq, "time": entry.time, "author": entry.author}


def by(entry: Entry) -> str:
    return f" by {entry.author!r}" if entry.author else ""
