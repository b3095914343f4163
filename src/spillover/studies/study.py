"""The base class of studies: a study is run as a whole, stored in its own folder, and shown on a page.

`spillover reproduce` runs the studies in `spillover.studies.STUDIES`; `spillover report` asks each of them whether it
owns a folder.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from spillover.experiments.run import to_stderr

Findings: TypeAlias = dict[str, Any]  # what `--json` prints; has at least "experiment", "results" and "seconds"
Job: TypeAlias = Callable[[], Findings]
Announce: TypeAlias = Callable[[str, int | None, Sequence[Any]], None]


class Option(NamedTuple):
    """A folder that only one study needs, such as its data."""

    name: str
    what: str  # a description for errors
    help: str


class Summary(NamedTuple):
    """The findings for people: a table, and notes below it."""

    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    notes: Sequence[str] = ()


def say_nothing(plan: str, workers: int | None, tasks: Sequence[Any]) -> None:
    """For those who do not want to know."""


@dataclass(frozen=True, kw_only=True)
class Request:
    """How to run a study.

    replications, seed: instead of the study's. quick: a small run. engine, jobs, address: as for `run_experiment`.
    page: whether to write the report too. options: the study's own ones, by name. notify: called with messages for
    people, such as that data are not available. any_size: run it however large it is. announce: called before
    anything is computed, with the plan, the number of workers (None: not known) and what they will compute. plan: what
    `announce` is called with.
    """

    output: Path
    quick: bool = False
    replications: int | None = None
    seed: int | None = None
    engine: str = "serial"
    jobs: int | None = None
    address: str | None = None
    page: bool = True
    progress: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)
    notify: Callable[[str], None] = to_stderr
    any_size: bool = False
    announce: Announce = say_nothing
    plan: str = ""


class Study(ABC):
    """A study. Results go to a folder of its name, inside the one of the request."""

    name: str
    title: str
    quick: str  # the size of a quick run, such as "10 replications"
    about: str = ""  # a paragraph for the help of `spillover reproduce`, besides its title
    options: tuple[Option, ...] = ()

    @abstractmethod
    def prepare(self, request: Request) -> Job:
        """Check the request and get its data, or reject it; the result is a function that runs the study."""

    @abstractmethod
    def owns(self, folder: Path) -> bool:
        """Whether the results in a folder are of this study."""

    @abstractmethod
    def write_report(self, folder: Path) -> Path:
        """Write the page of a folder of results; returns its path."""

    @abstractmethod
    def summary(self, findings: Findings) -> Summary:
        """What `spillover reproduce` prints."""
