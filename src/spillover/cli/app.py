"""The base classes of all commands: exit codes, one-line errors, help with examples."""

import _thread
import atexit
import gc
import io
import os
import select
import signal
import sys
import threading
import traceback
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

import click

from spillover.cli.output import note
from spillover.validate import suggestion

FAILED, BAD_INPUT, INTERRUPTED = 1, 2, 130

INPUT_ERRORS = (ValueError, OSError, ModuleNotFoundError)  # bad input: the message is enough
# OSErrors too, but the input is not at fault: the other side does not answer
CONNECTION_ERRORS = (ConnectionError, TimeoutError)


class Stopped(Exception):
    """Ctrl-C; click would replace the interrupt itself by an Abort without its message."""


class Command(click.Command):
    """A command whose help ends with its examples, printed as they are."""

    def __init__(self, *args: Any, examples: Sequence[str] = (), **extra: Any) -> None:
        super().__init__(*args, **extra)
        self.examples = tuple(examples)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        write_examples(formatter, self.examples)


class Group(click.Group):
    """A group that suggests the nearest command; the outermost one turns errors into exit codes."""

    command_class = Command

    def __init__(self, *args: Any, examples: Sequence[str] = (), **extra: Any) -> None:
        super().__init__(*args, **extra)
        self.examples = tuple(examples)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        write_examples(formatter, self.examples)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)  # in the order of use, not alphabetically

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not args and not ctx.resilient_parsing:  # a bare group is a question, not an error
            click.echo(ctx.get_help(), color=ctx.color)
            ctx.exit()
        return super().parse_args(ctx, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if not name.startswith("-") and self.get_command(ctx, name) is None:
            names = self.list_commands(ctx)
            accepted = f"{', '.join(names)}{suggestion(name, names)}"
            raise click.UsageError(f"command = {name!r}: must be one of {accepted}", ctx)
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as stop:
            raise Stopped(str(stop) or "interrupted") from None
        except BrokenPipeError as error:
            if not reader_left():  # a connection of the run itself; click would exit without a message
                raise ConnectionError(str(error)) from error
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for what is flushed at exit
            return None

    def main(self, args: Sequence[str] | None = None, prog_name: str | None = None, **extra: Any) -> NoReturn:  # type: ignore[override]
        given = list(sys.argv[1:] if args is None else args)
        atexit.register(gc.freeze)  # the process ends anyway, and a last garbage collection takes 0.15 s
        open_missing_streams()
        show_any_text()
        try:
            with warnings.catch_warnings(), no_interrupt_lost():
                warnings.showwarning = show_warning
                code = super().main(given, prog_name, **extra | {"standalone_mode": False})
        except Stopped as stop:
            code = print_error(str(stop), INTERRUPTED)
        except (click.Abort, KeyboardInterrupt):  # before or after the command itself
            code = print_error("interrupted", INTERRUPTED)
        except click.ClickException as error:
            code = print_error(usage_message(error), BAD_INPUT)
        except Exception as error:
            code = report_failure(error, "--traceback" in given)
        sys.exit(code if isinstance(code, int) else 0)


def open_missing_streams() -> None:
    """Whoever starts the command may have closed its standard streams: nothing comes in, or is shown to nobody."""
    nowhere = Path(os.devnull)
    sys.stdin = sys.stdin or nowhere.open(encoding="utf-8")
    sys.stdout = sys.stdout or nowhere.open("w", encoding="utf-8")
    sys.stderr = sys.stderr or nowhere.open("w", encoding="utf-8")


def show_any_text() -> None:
    """Characters that the output's encoding lacks are written as escapes, as Python does on stderr."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def show_warning(message: Warning | str, category: type[Warning], *place: Any, **extra: Any) -> None:
    """A warning in one line, without its place in the source."""
    note(f"{category.__name__}: {message}")


def reader_left() -> bool:
    """Whether the reader of our output has closed the pipe, as in `spillover policies | head`."""
    try:
        poll = select.poll()
        poll.register(sys.stdout.fileno(), 0)
    except AttributeError:  # Windows cannot poll a pipe: if it is closed, flushing fails again
        return not can_flush()
    except ValueError:  # stdout is not a file
        return False
    return any(event & (select.POLLERR | select.POLLHUP) for _, event in poll.poll(0))


def can_flush() -> bool:
    try:
        sys.stdout.flush()
    except OSError:
        return False
    return True


def write_examples(formatter: click.HelpFormatter, examples: Sequence[str]) -> None:
    if examples:
        with formatter.section("Examples"):
            formatter.write("".join(f"  {line}\n" for line in examples))


def print_error(message: str, code: int) -> int:
    """Print one line on stderr; returns the exit code."""
    note(message)
    return code


def usage_message(error: click.ClickException) -> str:
    """Say what is wrong, and which help to read."""
    message = error.format_message().rstrip(".")
    context = error.ctx if isinstance(error, click.UsageError) else None
    return message if context is None else f"{message} (see {context.command_path} --help)"


def report_failure(error: Exception, with_traceback: bool) -> int:
    """One line for bad input, and one for a failed run, with a hint how to see the traceback."""
    if with_traceback:
        traceback.print_exception(error)
    if isinstance(error, MemoryError):
        what = f": {error}" if str(error) else ""
        return print_error(f"not enough memory{what}: must be a smaller input, or a machine with more", BAD_INPUT)
    if isinstance(error, CONNECTION_ERRORS):
        return print_error(str(error), FAILED)
    if isinstance(error, OSError) and error.filename is not None:
        return print_error(f"{error.filename}: {error.strerror}", BAD_INPUT)
    if isinstance(error, INPUT_ERRORS):
        return print_error(str(error), BAD_INPUT)
    hint = "" if with_traceback else " (spillover --traceback ... shows where)"
    return print_error(f"the run failed: {str(error) or type(error).__name__}{hint}", FAILED)


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
