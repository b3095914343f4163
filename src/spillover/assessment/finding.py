"""One finding about a table: a code for programs, a sentence for people, and how much it matters."""

from typing import Any, NamedTuple

FINE, NOTE, WARNING = "fine", "note", "warning"
DECISIVE = {  # findings that are repeated next to a decision and an evaluation
    "always-chosen",
    "always-opposite",
    "always-together",
    "arms-dependent",
    "changes",
    "choices-follow-outcomes",
    "choices-follow-season",
    "constant-outcomes",
    "constant-sum",
    "later-effects",
    "outlier",
    "pair",
    "pooled-effect",
    "saturation",
    "season-in-residuals",
    "switched-once",
    "too-few-rounds",
    "total-among-arms",
    "trend",
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
