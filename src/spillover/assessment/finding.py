"""One finding about a table: a code for programs, a sentence for people, and how much it matters."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from spillover.validate import quoted

FINE, NOTE, WARNING = "fine", "note", "warning"
LISTED_NAMES = 8  # in a sentence
DECISIVE = {  # findings that are repeated next to a decision and an evaluation
    "always-chosen",
    "always-opposite",
    "always-together",
    "arms-dependent",
    "choices-follow-season",
    "constant-outcomes",
    "constant-sum",
    "outlier",
    "pooled-effect",
    "season-in-residuals",
    "switched-once",
    "too-few-rounds",
    "total-among-arms",
    "trends-differ",
}


class Finding(NamedTuple):
    """What the data show, or cannot show.

    >>> Finding("never-chosen", "warning", "web was never chosen.", arms=("web",)).arms
    ('web',)
    """

    code: str
    severity: str  # "fine": can be learned; "note": good to know; "warning": cannot be learned, or misleads
    sentence: str
    arms: tuple[str, ...] = ()

    @property
    def warning(self) -> bool:
        return self.severity == WARNING

    def to_dict(self) -> dict[str, Any]:
        return {"code": self.code, "severity": self.severity, "sentence": self.sentence, "arms": list(self.arms)}


def join_names(names: Sequence[str]) -> str:
    """The first names in a sentence, and how many more there are.

    >>> join_names(["a", "b", "c"])
    'a, b and c'
    """
    rest = len(names) - LISTED_NAMES
    if rest > 0:
        return f"{', '.join(map(quoted, names[:LISTED_NAMES]))} and {rest} more"
    some = [quoted(name) for name in names]
    return " and ".join([", ".join(some[:-1]), some[-1]] if len(some) > 1 else some)


def count_of(number: int, noun: str) -> str:
    """A number and its noun.

    >>> count_of(1, "round"), count_of(1200, "round")
    ('1 round', '1,200 rounds')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
