"""Whoever wants to hear of what a service does: for metrics, and for those who wait for changes."""

from spillover.service.entry import Entry


class Watcher:
    """Hears of everything and does nothing; a watcher of one's own overrides what it needs. Must be quick."""

    def recorded(self, entry: Entry) -> None:
        """An entry is on disk."""

    def folded(self, entries: int, seconds: float) -> None:
        """New entries were taken into memory."""
