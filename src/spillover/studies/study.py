"""What a study is: something that can be run as a whole, kept in a folder of its own, and shown on a page.

`spillover reproduce` runs the studies that `spillover.studies.STUDIES` lists; `spillover report` asks each of them
whether a folder is its own.
"""

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

Findings: TypeAlias = dict[str, Any]  # what `--json` prints; has at least "experiment", "results" and "seconds"
Job: TypeAlias = Callable[[], Findings]


class Option(NamedTuple):
    """A folder that one study wants and the others do not, such as its data."""

    name: str
    what: str  # it is, in an error
    help: str


class Summary(NamedTuple):
    """What was found, for people: a table, and lines below it."""

    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    notes: Sequence[str] = ()


def to_stderr(message: str) -> None:
    print(message, file=sys.stderr)


@dataclass(frozen=True, kw_only=True)
class Request:
    """What is asked of a study.

    replications, seed: instead of the study's own. quick: few replications, for a first look. engine, jobs, address: as
    for `run_experiment`. page: whether the report is written too. options: of the study's own, by name. notify: called
    with what people should know, such as data that could not be had.
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


class Study(ABC):
    """A study, by its name. Results go to a folder of this name, inside of the one that the request names."""

    name: str
    title: str
    quick: str  # what a quick look is, such as "10 replications"
    about: str = ""  # what the help of `spillover reproduce` says of it, beside its title
    options: tuple[Option, ...] = ()

    @abstractmethod
    def prepare(self, request: Request) -> Job:
        """Check the request and get what it needs; what cannot be done is refused now, and what is returned runs it."""

    @abstractmethod
    def owns(self, folder: Path) -> bool:
        """Whether the results in a folder are this study's."""

    @abstractmethod
    def write_report(self, folder: Path) -> Path:
        """Write the page of a folder of results; returns its path."""

    @abstractmethod
    def summary(self, findings: Findings) -> Summary:
        """What `spillover reproduce` prints."""
