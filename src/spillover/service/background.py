"""One thread that works ahead: what it does saves time later, and nothing is lost if it never gets to it."""

import logging
import threading
from collections import OrderedDict
from collections.abc import Callable

MOST = 32  # pieces of work that wait, as each may hold a whole history; of more, the oldest are dropped
logger = logging.getLogger(__name__)


class Background:
    """A thread with pieces of work, each under a name; work under the same name is done once."""

    def __init__(self) -> None:
        self.waiting: OrderedDict[str, Callable[[], None]] = OrderedDict()
        self.changed = threading.Condition()
        self.busy = self.closed = False
        self.thread = threading.Thread(target=self.run, name="spillover-ahead", daemon=True)
        self.thread.start()

    def add(self, name: str, work: Callable[[], None], *, first: bool = False) -> None:
        """Do something soon. first: before what waits already."""
        with self.changed:
            self.waiting[name] = work
            if first:
                self.waiting.move_to_end(name, last=False)
            while len(self.waiting) > MOST:
                self.waiting.popitem(last=first)
            self.changed.notify_all()

    def run(self) -> None:
        while True:
            with self.changed:
                self.busy = False
                self.changed.notify_all()
                self.changed.wait_for(lambda: self.waiting or self.closed)
                if self.closed:
                    return
                name, work = self.waiting.popitem(last=False)
                self.busy = True
            try:
                work()
            except Exception as error:  # it would only have saved time
                logger.warning("%s: %s", name, error)

    def idle(self, timeout: float | None = None) -> bool:
        """Wait until there is nothing to do; False if that takes longer than the timeout, in seconds."""
        with self.changed:
            return self.changed.wait_for(lambda: not self.waiting and not self.busy, timeout)

    def close(self) -> None:
        """Finish the current piece of work, and stop."""
        with self.changed:
            self.closed = True
            self.changed.notify_all()
        self.thread.join()
