"""Ctrl-C at moments at which Python cannot raise it."""

import _thread
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

SECONDS_LATER = 0.05
MAIN = threading.main_thread().ident or 0


def interrupt_again() -> None:
    """Interrupt the main thread, from another one, also while it waits for something."""
    if os.name == "nt":
        _thread.interrupt_main()
    else:
        signal.pthread_kill(MAIN, signal.SIGINT)


@contextmanager
def no_interrupt_lost() -> Iterator[None]:
    """Raise an interrupt again that came while Python cleared an object away.

    Errors at that moment have nowhere to go: Python shows them and goes on, as if Ctrl-C had not been pressed.
    """
    usual = sys.unraisablehook

    def hook(lost: Any) -> None:
        if lost.exc_type is KeyboardInterrupt:  # not here and now, where it would be lost again
            later = threading.Timer(SECONDS_LATER, interrupt_again)
            later.daemon = True
            later.start()
        else:
            usual(lost)

    sys.unraisablehook = hook
    try:
        yield
    finally:
        sys.unraisablehook = usual
