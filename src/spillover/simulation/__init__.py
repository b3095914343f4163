"""The game: single rounds, thousands of replications at once, and recorded logs."""

from spillover.simulation.protocol import Round, replay, rounds
from spillover.simulation.replications import simulate
from spillover.simulation.run import Run

__all__ = ["Round", "Run", "replay", "rounds", "simulate"]
