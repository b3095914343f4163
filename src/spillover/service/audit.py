"""Audit: whether the log is whole, and whether each decision follows from what was known before it."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from spillover.service.decisions import VERSION, Learning, issued, made, unpacked, whole_answer
from spillover.service.errors import NotFound, StorageError
from spillover.service.events import START, DecisionIssued, Entry, canonical_json, digest
from spillover.service.ledger import Ledger
from spillover.service.log import EventLog
from spillover.service.tables import Coming

PARTS = ("direct", "spilled_over", "exploration", "score")


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
    """Check the entries of a stream and, with `decisions`, make its decisions and their reasons again."""
    ledger, again = Ledger(stream), Again(log)
    problems: list[str] = []
    previous = START
    try:
        head = log.head(stream)  # before the entries: others may append meanwhile
        entries = list(all_entries(log, stream, head.seq or None))
    except StorageError as error:
        return Audit(stream=stream, entries=0, decisions=0, skipped=0, problems=(f"cannot be read: {error}",))
    if not entries and not head.seq:
        raise NotFound(f"stream = {stream!r}: must be the name of a stream")
    for entry in entries:
        found = entry_problems(entry, ledger.head.seq + 1, previous)
        problems += found
        if found:
            break  # what follows a damaged entry cannot be trusted
        previous = entry.digest
        if decisions:
            problems += [f"entry {entry.seq}: {text}" for text in again.problems(ledger, entry)]
        ledger.apply(entry)
    if not problems and head != ledger.head:
        problems.append(f"entry {head.seq}: must be the last one, but the entries end with {ledger.head.seq}")
    return Audit(
        stream=stream,
        entries=ledger.head.seq,
        decisions=again.made,
        skipped=again.skipped,
        problems=tuple(problems),
    )


def all_entries(log: EventLog, stream: str, upto: int | None) -> Iterator[Entry]:
    after = 0
    while entries := log.read(stream, after, upto=upto):
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


@dataclass
class Again:
    """Makes the decisions of a stream again."""

    log: EventLog
    made: int = 0
    skipped: int = 0
    learning: Learning = field(default_factory=Learning)

    def problems(self, ledger: Ledger, entry: Entry) -> list[str]:
        """What is wrong with a decision. ledger: as it was before."""
        event = entry.event
        if not isinstance(event, DecisionIssued):
            return []
        if event.made_from["version"] != VERSION:
            self.skipped += 1
            return []
        self.made += 1
        coming = Coming(event.round, event.context, event.unavailable)
        if event.made_from["seq"] != ledger.head.seq:
            return [f"decision of {event.round}: was made from entry {event.made_from['seq']}, not the one before it"]
        found = issued(ledger, coming, made(ledger, coming, self.learning)).to_dict()
        if not any("interval" in parts for parts in event.scores.values()):  # versions that did not store them
            for parts in found["scores"].values():
                del parts["interval"]
        if canonical_json(found) != canonical_json(event.to_dict()):
            return [f"decision of {event.round}: another one follows from what was known"]
        whole = whole_answer(ledger, coming)
        kept = self.log.kept_answer(entry.stream, entry.seq)
        if kept is not None and unpacked(kept) != whole:
            return [f"reasons of {event.round}: others follow from what was known"]
        return answer_problems(whole, event)


def answer_problems(answer: dict[str, Any], event: DecisionIssued) -> list[str]:
    """Whether a whole answer is that of a decision: the same arms with the same scores."""
    scores = {arm["arm"]: [arm[name] for name in PARTS] for arm in answer["reasons"]["arms"]}
    stored = {arm: [values[name] for name in PARTS] for arm, values in event.scores.items()}
    if answer["choose"] != list(event.chosen) or scores != stored:
        return [f"decision of {event.round}: its reasons belong to another decision"]
    return []
