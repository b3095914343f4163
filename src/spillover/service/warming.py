"""Compile and load what decisions need, so that the first one after the start of a server does not wait for it."""

import random
import threading
from collections.abc import Callable

from spillover import kernels
from spillover.core.ahead import compile_apart, is_missing
from spillover.policies import InstrumentalSEM, PayoffRegression, SwitchingSEM
from spillover.service.deciding import issued, made
from spillover.service.events import RoundsImported, StreamCreated
from spillover.service.learning import Learning
from spillover.service.ledger import Ledger
from spillover.service.settings import Settings
from spillover.service.table import Coming

POLICIES = (SwitchingSEM, InstrumentalSEM, PayoffRegression)  # those of streams that name none
ARMS = ("a", "b", "c", "d")
ROUNDS = 40


def warm_up(stopped: threading.Event, say: Callable[[str], None] = lambda words: None) -> None:
    """Compile what is not in the cache, in other processes, and decide in a small stream of each kind.

    stopped: set to end it early. say: is told what takes long.
    """
    names = list(dict.fromkeys(name for policy in POLICIES for name in policy().kernels))
    lacking, policies = kernels.missing(names), [policy() for policy in POLICIES if is_missing(policy())]
    if lacking or policies:
        say("compiling what decisions need, about a minute, once only: until then decisions wait for it")
        kernels.compile_apart(names, stopped)
        for policy in policies:
            compile_apart(policy, stopped)
    for observes in ("both", "overall", "payoff"):
        if not stopped.is_set():
            decide_in(Settings(arms=ARMS, budget=2, observes=observes))


def decide_in(settings: Settings) -> None:
    """Decide in a stream without rounds, and with some; without limits, and with one; with all reasons."""
    ledger, learning, coming = Ledger("warm-up"), Learning(), Coming(str(ROUNDS + 1), {})
    ledger.take(StreamCreated(settings=settings.to_dict()), 1)
    made(ledger, coming, learning)
    ledger.take(RoundsImported(source="", rounds=tuple(rounds_of(settings))), 2)
    ledger.version = 2
    for unavailable in ((), ARMS[:1]):
        found = made(ledger, coming._replace(unavailable=unavailable), learning)
        issued(ledger, coming, found)
        found.answer()


def rounds_of(settings: Settings) -> list[dict[str, object]]:
    """Rounds with noise in their outcomes."""
    draw = random.Random(0)
    found: list[dict[str, object]] = []
    for number in range(1, ROUNDS + 1):
        chosen = draw.sample(ARMS, settings.budget)
        z = [draw.random() if arm in chosen else None for arm in ARMS] if settings.sees_own else None
        y = [draw.random() for _ in (ARMS if settings.sees_overall else ARMS[:1])]
        found.append({"round": str(number), "chosen": chosen, "context": {}, "z": z, "y": y})
    return found
