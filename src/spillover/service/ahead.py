"""What the service does ahead, so that nobody waits for it: learning what is new, and keeping reasons."""

from collections.abc import Callable
from typing import Any

from spillover.service.background import Background
from spillover.service.deciding import VERSION, intervals_of, packed
from spillover.service.desk import Desk
from spillover.service.events import ReasonsKept
from spillover.service.learning import can_prepare
from spillover.service.one_thread import one_thread


class Ahead:
    """Works ahead for the streams on a desk. Without a thread nothing is done ahead, and all of it on demand."""

    def __init__(self, desk: Desk, *, thread: bool) -> None:
        self.desk = desk
        self.background = Background() if thread else None

    def close(self) -> None:
        """Finish what is being done, and stop the thread."""
        if self.background is not None:
            self.background.close()

    def step_aside(self) -> None:
        """A request came that should not share the processor."""
        if self.background is not None:
            self.background.step_aside()

    def idle(self, timeout: float | None = None) -> bool:
        """Wait until there is nothing to do; False if that takes longer than the timeout, in seconds."""
        return self.background is None or self.background.idle(timeout)

    def learn_soon(self, stream: str) -> None:
        """Learn what is new, if that takes long enough to be worth it."""
        if self.background is not None and self.desk.sheet(stream).learning.worth_preparing:
            self.background.add(f"learn {stream}", lambda: self.learn(stream), first=True)

    def learn(self, stream: str) -> None:
        """Learn what is new in a stream; others may write to it meanwhile."""
        sheet = self.desk.sheet(stream)
        with sheet.learning_lock:
            with self.desk.writing(stream) as ledger, one_thread():
                kept = sheet.ledger is ledger  # otherwise the stream was let go of while this thread waited
                needed = kept and can_prepare(ledger) and not sheet.learning.is_current(ledger)
                material = sheet.learning.material(ledger) if needed else None
            if material is not None:
                sheet.learning.prepare(material)
                self.desk.note_learned(stream, sheet)

    def keep_reasons_soon(self, stream: str, label: str, answer: Callable[[], dict[str, Any]], size: int = 0) -> None:
        """Record the whole answer to a round. size: see `background.Work`."""
        if self.background is not None:
            name = reasons_name(stream, label)
            self.background.add(name, lambda: self.keep_reasons(stream, label, answer), size=size)

    def keep_reasons_now(self, stream: str, label: str) -> None:
        """Record them at once, if they wait to be recorded: somebody asks for them."""
        if self.background is not None:
            self.background.hurry(reasons_name(stream, label))

    def keep_reasons(self, stream: str, label: str, answer: Callable[[], dict[str, Any]]) -> None:
        whole = answer()
        found, intervals = packed(whole), intervals_of(whole)
        with self.desk.writing(stream) as ledger:
            if label not in ledger.reasons_at:
                kept = ReasonsKept(round=label, version=VERSION, intervals=intervals)
                self.desk.record(ledger, kept, f"reasons:{label}", {"reasons": label}, "service", found)


def reasons_name(stream: str, label: str) -> str:
    """The name of the work that keeps the reasons of a round."""
    return f"reasons of {label} in {stream}"
