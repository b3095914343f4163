"""How many examples a property is tried on, and which."""

from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers
from hypothesis.internal.constants_ast import Constants

COMMON = settings(deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow])
FIXED = settings(COMMON, max_examples=25, derandomize=True)
EXPLORED = settings(COMMON, max_examples=500, derandomize=False, print_blob=True)


def examples(number: int) -> settings:
    """So many examples in `make test`, and twenty times as many where `make test-long` explores.

    Without it a property is tried on as many as the profile says.
    """
    return settings(max_examples=max(1, number * settings().max_examples // FIXED.max_examples))


def forget_constants_of_loaded_modules() -> None:
    """Let the examples depend on nothing but the test and the seed.

    Hypothesis also draws constants that it finds in the source of whatever modules of the project are loaded, so that
    other tests in the same process, and the folder that the project is in, would change the examples.
    """
    nothing = Constants()
    providers._get_local_constants = lambda: nothing
