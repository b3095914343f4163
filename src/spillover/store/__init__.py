"""Results on disk."""

from spillover.store.cells import CellStore, Damaged

__all__ = ["CellStore", "Damaged"]
