"""The command `spillover` from its first moment: Ctrl-C ends it with one line while the package is still loading.

This is a module of its own because the import of anything inside of the package loads the package first. It imports
next to nothing itself: an interrupt before `main` would show where in the imports it came.
"""

import os
import signal

INTERRUPTED = 130


def leave(number: int, frame: object) -> None:
    """Say so and end at once: nothing is half-written while modules are loaded, or when all is done."""
    os.write(2, b"spillover: interrupted\n")
    os._exit(INTERRUPTED)


def main() -> None:
    """Load the package and run the command; a process that ignores Ctrl-C goes on ignoring it."""
    usual = signal.getsignal(signal.SIGINT)
    heeded = usual is signal.default_int_handler
    if heeded:
        signal.signal(signal.SIGINT, leave)
    from spillover.cli import main as run  # takes some tenths of a second

    try:
        signal.signal(signal.SIGINT, usual)
        run(prog_name="spillover")
    finally:
        if heeded:
            signal.signal(signal.SIGINT, leave)
