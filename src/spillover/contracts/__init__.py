"""The contracts of the parts: a policy, a world, an environment, a delay."""

from spillover.contracts.any_policy import (
    Adapted,
    AnyPolicy,
    FourFunctions,
    as_policy,
    require_explains,
    require_suits,
    suited,
)
from spillover.contracts.delay import Delay
from spillover.contracts.overrides import methods_of, unchanged
from spillover.contracts.policy import (
    EXPECTED_EFFECT,
    Policy,
    Setting,
    Traits,
    edges_of,
    learn_rounds,
    setting_of,
)
from spillover.contracts.world import (
    ContextualWorld,
    Environment,
    ScoredContextualWorld,
    ScoredWorld,
    StructuredWorld,
    World,
    require_context,
    require_contextual,
)

__all__ = [
    "EXPECTED_EFFECT",
    "Adapted",
    "AnyPolicy",
    "ContextualWorld",
    "Delay",
    "Environment",
    "FourFunctions",
    "Policy",
    "ScoredContextualWorld",
    "ScoredWorld",
    "Setting",
    "StructuredWorld",
    "Traits",
    "World",
    "as_policy",
    "edges_of",
    "learn_rounds",
    "methods_of",
    "require_context",
    "require_contextual",
    "require_explains",
    "require_suits",
    "setting_of",
    "suited",
    "unchanged",
]
