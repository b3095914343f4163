"""Read a file of past decisions and their outcomes, and replay it to a policy."""

from spillover.history.cells import HistoryError
from spillover.history.read import read_history
from spillover.history.record import History
from spillover.history.replay import replay_history

__all__ = ["History", "HistoryError", "read_history", "replay_history"]
