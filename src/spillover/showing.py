"""Results that show themselves; what they look like is decided above, in `spillover.views`.

A simulation or a learner must not depend on how it is drawn: stored results are recognised by the source code that they
were computed with, and a new colour would make them stale. So a result only names its view, which is loaded when it is
first shown.
"""

from pkgutil import resolve_name
from typing import Any, ClassVar


def view_of(name: str, result: object) -> Any:
    """The view of a result: an object with `text()` and `html()`, and with `plot(...)` if the result has a figure.

    name: "module:class" of the view.
    """
    return resolve_name(name)(result)


class Shown:
    """A result with a short text and, in a notebook, a table; `view` names the class that makes both."""

    view: ClassVar[str]

    def __repr__(self) -> str:
        return str(view_of(self.view, self).text())

    def _repr_html_(self) -> str:
        return str(view_of(self.view, self).html())
