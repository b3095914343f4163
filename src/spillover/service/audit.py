"""Audit: whether the log is whole, and whether each decision follows from what was known before it."""

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import version

from spillover.service.canonical import canonical_json, digest
from spillover.service.deciding import decided
from spillover.service.entry import START, Entry
from spillover.service.events import DecisionIssued
from spillover.service.ledger import Ledger
from spillover.service.log import EventLog
from spillover.service.table import Coming


@dataclass(frozen=True, kw_only=True)
class Audit:
    """What an audit found; `problems` is empty if everything is right."""

    stream: str
    entries: int
    decisions: int  # that were made again and compared
    skipped: int  # made by another version of the package, which may decide otherwise
    problems: tuple[str, ...]

    @property
    def passed(self) -> bool:
        return not self.problems


def audited(log: EventLog, stream: str, *, decisions: bool = True) -> Audit:
    """Check the entries of a stream, and make its decisions again."""
    ledger = Ledger(stream)
    problems: list[str] = []
    again = skipped = 0
    previous = START
    for entry in all_entries(log, stream):
        found = entry_problems(entry, ledger.head.seq + 1, previous)
        problems += found
        if found:
            break  # what follows a damaged entry cannot be trusted
        previous = entry.digest
        event = entry.event
        if decisions and isinstance(event, DecisionIssued):
            if event.made_from["version"] != version("spillover"):
                skipped += 1
            else:
                again += 1
                problems += decision_problems(ledger, entry, event)
        ledger.apply(entry)
    head = log.head(stream)
    if not problems and (head.seq, head.digest) != (ledger.head.seq, ledger.head.digest):
        problems.append(f"entry {head.seq}: must be the last one, but the entries end with {ledger.head.seq}")
    return Audit(stream=stream, entries=ledger.head.seq, decisions=again, skipped=skipped, problems=tuple(problems))


def all_entries(log: EventLog, stream: str) -> Iterator[Entry]:
    after = 0
    while entries := log.read(stream, after):
        yield from entries
        after = entries[-1].seq


def entry_problems(entry: Entry, seq: int, previous: str) -> list[str]:
    """What is wrong with an entry: its hash, its number, its columns, the entry before it, what is attached to it."""
    if entry.seq != seq:
        return [f"entry {seq}: is missing"]
    if digest(entry.text) != entry.digest:
        return [f"entry {seq}: has another hash than was recorded"]
    content = entry.content
    if canonical_json(content) != entry.text:
        return [f"entry {seq}: is not in the one form in which entries are written"]
    if content["previous"] != previous:
        return [f"entry {seq}: does not follow the entry before it"]
    if (content["stream"], content["seq"], content["key"]) != (entry.stream, entry.seq, entry.key):
        return [f"entry {seq}: is filed under another stream, number or key"]
    if (digest(entry.attachment) if entry.attachment else "") != content["attachment"]:
        return [f"entry {seq}: its attachment has another hash than was recorded"]
    return []


def decision_problems(ledger: Ledger, entry: Entry, event: DecisionIssued) -> list[str]:
    """Make a decision again, and compare."""
    if event.made_from["seq"] != ledger.head.seq:
        return [f"entry {entry.seq}: decision of {event.round} was made from entry {event.made_from['seq']}"]
    found = decided(ledger, Coming(event.round, event.context, event.unavailable))
    if canonical_json(found.event.to_dict()) != canonical_json(event.to_dict()):
        return [f"entry {entry.seq}: decision of {event.round}: another one follows from what was known"]
    if zlib.decompress(entry.attachment).decode() != found.answer:
        return [f"entry {entry.seq}: decision of {event.round}: other reasons follow from what was known"]
    return []
