"""Where the command line meets people and shells: exit codes, one-line errors, help that shows examples."""

import atexit
import gc
import os
import select
import sys
import traceback
from collections.abc import Sequence
from typing import Any, NoReturn

import click

from spillover.registry import suggestion

FAILED, BAD_INPUT, INTERRUPTED = 1, 2, 130

INPUT_ERRORS = (ValueError, OSError, ModuleNotFoundError)  # what was given is wrong: the message says it all
# an OSError too, but nothing that was written is wrong: the other side is not there
CONNECTION_ERRORS = (ConnectionError, TimeoutError)


class Stopped(Exception):
    """Ctrl-C; click would turn the interrupt itself into one without its message."""


class Command(click.Command):
    """A command whose examples are printed below its options, as they are written."""

    def __init__(self, *args: Any, examples: Sequence[str] = (), **extra: Any) -> None:
        super().__init__(*args, **extra)
        self.examples = tuple(examples)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        write_examples(formatter, self.examples)


class Group(click.Group):
    """A group that suggests the command that was meant; the outermost one turns errors into exit codes."""

    command_class = Command

    def __init__(self, *args: Any, examples: Sequence[str] = (), **extra: Any) -> None:
        super().__init__(*args, **extra)
        self.examples = tuple(examples)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        write_examples(formatter, self.examples)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)  # in the order of use, not of the alphabet

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if not name.startswith("-") and self.get_command(ctx, name) is None:
            there = self.list_commands(ctx)
            listed = f"{', '.join(there)}{suggestion(name, there)}"
            raise click.UsageError(f"command = {name!r}: must be one of {listed}", ctx)
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as stop:
            raise Stopped(str(stop) or "interrupted") from None
        except BrokenPipeError as error:
            if not reader_left():  # the run's connection to somebody; click would end without a word
                raise ConnectionError(str(error)) from error
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for what is flushed on the way out
            return None

    def main(self, args: Sequence[str] | None = None, prog_name: str | None = None, **extra: Any) -> NoReturn:  # type: ignore[override]
        given = list(sys.argv[1:] if args is None else args)
        atexit.register(gc.freeze)  # the memory goes back anyhow: looking through all of it first takes 0.15 s
        try:
            code = super().main(given or ["--help"], prog_name, **extra | {"standalone_mode": False})
        except Stopped as stop:
            code = say(str(stop), INTERRUPTED)
        except click.Abort:
            code = INTERRUPTED
        except click.ClickException as error:
            code = say(usage_message(error), BAD_INPUT)
        except Exception as error:
            code = explain_failure(error, "--traceback" in given)
        sys.exit(code if isinstance(code, int) else 0)


def reader_left() -> bool:
    """Whether who reads our output has seen enough, as in `spillover policies | head`."""
    try:
        poll = select.poll()
        poll.register(sys.stdout.fileno(), 0)
    except AttributeError:  # Windows cannot ask a pipe: what could not be written before cannot be written now
        return not can_flush()
    except ValueError:  # not a file at all
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


def say(message: str, code: int) -> int:
    """One line on stderr."""
    print(f"spillover: {' '.join(message.split())}", file=sys.stderr)
    return code


def usage_message(error: click.ClickException) -> str:
    """What is wrong, and which help tells more."""
    message = error.format_message().rstrip(".")
    context = getattr(error, "ctx", None)
    return message if context is None else f"{message} (see {context.command_path} --help)"


def explain_failure(error: Exception, whole: bool) -> int:
    """Bad input is told in a line; so is a failed run, with the way to see all of it."""
    if whole:
        traceback.print_exception(error)
    if isinstance(error, CONNECTION_ERRORS):
        return say(str(error), FAILED)
    if isinstance(error, OSError) and error.filename is not None:
        return say(f"{error.filename}: {error.strerror}", BAD_INPUT)
    if isinstance(error, INPUT_ERRORS):
        return say(str(error), BAD_INPUT)
    hint = "" if whole else " (spillover --traceback ... shows where)"
    return say(f"the run failed: {str(error) or type(error).__name__}{hint}", FAILED)
