"""What the service does ahead, so that nobody waits for it: learning what is new, and keeping reasons."""

from collections.abc import Callable
from typing import Any

from spillover.service.apart import Apart
from spillover.service.background import Background
from spillover.service.deciding import VERSION, Kept, kept
from spillover.service.desk import Desk
from spillover.service.events import ReasonsKept
from spillover.service.learning import can_prepare
from spillover.service.one_thread import one_thread

LARGE = 1 << 20  # bytes of a history: computing its reasons would keep requests waiting


class Ahead:
    """Works ahead for the streams on a desk. Without a thread nothing is done ahead, and all of it on demand."""

    def __init__(self, desk: Desk, *, thread: bool) -> None:
        self.desk = desk
        self.background = Background() if thread else None
        self.apart = Apart()

    def close(self) -> None:
        """Finish what is being done here, and stop the thread and the process, whatever that is doing."""
        if self.background is not None:
            self.background.close(interrupt=self.apart.close)

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
        """Record the whole answer to a round: one from much data in a process of its own. size: see `Work`."""
        if self.background is not None:

            def now() -> None:
                self.keep_reasons(stream, label, kept(answer))

            def apart() -> None:
                self.keep_reasons(stream, label, self.apart.compute(kept, answer))

            self.background.add(reasons_name(stream, label), apart if size > LARGE else now, now=now, size=size)

    def keep_reasons_now(self, stream: str, label: str) -> None:
        """Record them at once, if they wait to be recorded: somebody asks for them."""
        if self.background is not None:
            self.background.hurry(reasons_name(stream, label))

    def keep_reasons(self, stream: str, label: str, found: Kept) -> None:
        with self.desk.writing(stream) as ledger:
            if label not in ledger.reasons_at:
                event = ReasonsKept(round=label, version=VERSION, intervals=found.intervals)
                self.desk.record(ledger, event, f"reasons:{label}", {"reasons": label}, "service", found.attachment)


def reasons_name(stream: str, label: str) -> str:
    """The name of the work that keeps the reasons of a round."""
    return f"reasons of {label} in {stream}"
