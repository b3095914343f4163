"""One thread that works ahead: what it does saves time later, and nothing is lost if it never gets to it."""

import logging
import threading
import traceback
from collections import OrderedDict
from collections.abc import Callable
from time import monotonic
from typing import NamedTuple

MOST = 32  # pieces of work that wait; of more, the oldest are dropped
MOST_BYTES = 256 << 20  # likewise, as each may hold a whole history
PAUSE = 0.25  # seconds without a request before it begins: requests come in a row, and would wait for it
LONGEST = 5.0  # seconds that a piece of work waits for such a pause
REST = 4.0  # times what the last piece took, before the next one begins without a pause
logger = logging.getLogger(__name__)


class Work(NamedTuple):
    """A piece of work, when it was first asked for, and how many bytes of memory it holds until it is done."""

    do: Callable[[], None]
    now: Callable[[], None]  # the same while somebody waits for it
    since: float
    size: int


class Background:
    """A thread with pieces of work, each under a name; work under the same name is done once."""

    def __init__(self) -> None:
        self.waiting: OrderedDict[str, Work] = OrderedDict()
        self.changed = threading.Condition()
        self.busy = self.closed = False
        self.elsewhere = 0  # pieces of work that others do, see `hurry`
        self.hurried = 0  # callers that wait for it to finish
        self.last_request = self.rested = 0.0
        self.thread = threading.Thread(target=self.run, name="spillover-ahead", daemon=True)
        self.thread.start()

    def add(
        self,
        name: str,
        work: Callable[[], None],
        *,
        now: Callable[[], None] | None = None,
        first: bool = False,
        size: int = 0,
    ) -> None:
        """Do something soon. now, size: see `Work`. first: before what waits already."""
        with self.changed:
            self.last_request = monotonic()
            before = self.waiting.get(name)
            since = self.last_request if before is None else before.since
            self.waiting[name] = Work(work, now or work, since, size)
            if first:
                self.waiting.move_to_end(name, last=False)
            self.drop_too_much(name)
            if len(self.waiting) == 1:  # otherwise the thread waits for the time of earlier work, and looks then
                self.changed.notify_all()

    def drop_too_much(self, newest: str) -> None:
        """Drop the oldest pieces of work, if there are too many, and the oldest that hold memory, if it is too much."""
        others = sorted((name for name in self.waiting if name != newest), key=lambda name: self.waiting[name].since)
        for name in others[: max(len(self.waiting) - MOST, 0)]:
            del self.waiting[name]
        held = sum(work.size for work in self.waiting.values())
        for name in others:
            if held > MOST_BYTES and name in self.waiting and self.waiting[name].size:
                held -= self.waiting.pop(name).size

    def step_aside(self) -> None:
        """A request came that should not share the processor."""
        self.last_request = monotonic()

    def run(self) -> None:
        while (found := self.next_work()) is not None:
            began = monotonic()
            self.finish(found[0], found[1].do)
            self.rested = monotonic() + REST * (monotonic() - began)

    def next_work(self) -> tuple[str, Work] | None:
        """Wait for the next piece of work, and for its time; None at the end."""
        with self.changed:
            self.busy = False
            self.changed.notify_all()
            while not self.closed:
                seconds = self.pause() if self.waiting else None  # somebody else may do what waits: see `hurry`
                if seconds is not None and seconds <= 0.0:
                    self.busy = True
                    return self.waiting.popitem(last=False)
                self.changed.wait(seconds)
            return None

    def hurry(self, name: str) -> None:
        """Do a piece of work now and here, if it waits: somebody asks for what it brings."""
        with self.changed:
            work = self.waiting.pop(name, None)
            if work is None:
                return
            self.elsewhere += 1
            self.changed.notify_all()
        try:
            self.finish(name, work.now)
        finally:
            with self.changed:
                self.elsewhere -= 1
                self.changed.notify_all()

    def pause(self) -> float:
        """Seconds until the next piece of work may begin."""
        if self.hurried:
            return 0.0
        oldest = min(work.since for work in self.waiting.values())
        return min(self.last_request + PAUSE, max(oldest + LONGEST, self.rested)) - monotonic()

    def idle(self, timeout: float | None = None) -> bool:
        """Wait until there is nothing to do; False if that takes longer than the timeout, in seconds."""
        with self.changed:
            self.hurried += 1
            self.changed.notify_all()
            try:
                return self.changed.wait_for(lambda: not (self.waiting or self.busy or self.elsewhere), timeout)
            finally:
                self.hurried -= 1

    def finish(self, name: str, work: Callable[[], None]) -> None:
        """Do a piece of work; if it fails nothing is lost, as whoever needs its result can compute it again."""
        try:
            work()
        except Exception as error:
            if not self.closed:  # then it was interrupted
                # neither the name of the work nor the message: both may name streams and arms
                place = traceback.extract_tb(error.__traceback__)[-1]
                logger.warning("work ahead failed: %s in %s", type(error).__name__, place.name)

    def close(self, interrupt: Callable[[], None] = lambda: None) -> None:
        """Finish the pieces of work that are being done, and stop. interrupt: ends what would take too long."""
        with self.changed:
            self.closed = True
            self.changed.notify_all()
        interrupt()
        with self.changed:
            self.changed.wait_for(lambda: not self.elsewhere)
        self.thread.join()
