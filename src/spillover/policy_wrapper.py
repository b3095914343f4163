"""Base class of policies around another policy."""

from abc import abstractmethod
from typing import Any

from spillover.contracts import Policy, ScoredWorld, Setting, setting_of
from spillover.types import Problem


def passed_on(name: str) -> Any:
    """A member of the contract as the policy inside has it."""
    return property(lambda self: getattr(self.inner, name))


class PolicyWrapper(Policy):
    """Passes the members of the contract on to `inner`; subclasses override some of them.

    `explain_choice` is the contract's own, so that it shows what the wrapper selects. `grids` are empty: a wrapper with
    a field for the policy lists them under the field's name, as `Constrained` does. Rounds are played and learned by
    the wrapper's own functions.
    """

    @property
    @abstractmethod
    def inner(self) -> Policy:
        """The policy inside."""

    @abstractmethod
    def around(self, inner: Policy) -> Policy:
        """The same wrapper around another policy."""

    init = passed_on("init")
    select = passed_on("select")
    played = passed_on("played")
    update = passed_on("update")
    traits = passed_on("traits")
    observe = passed_on("observe")
    explain = passed_on("explain")
    outline = passed_on("outline")
    adjacency = passed_on("adjacency")
    signals = passed_on("signals")

    @property
    def setting(self) -> Setting:
        """The policy without the constraints that may be around it, and these."""
        found = setting_of(self.inner)
        return found._replace(policy=self.around(found.policy))

    def for_problem(self, problem: Problem, world: ScoredWorld | None = None) -> Policy:
        inner = self.inner.for_problem(problem, world)
        return self if inner is self.inner else self.around(inner)
