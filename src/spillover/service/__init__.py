"""Live decisions: streams on a log that loses nothing; the answer is that of `spillover next` on the stream's export."""

from spillover.service.errors import Conflict, Invalid, NotFound, StorageError
from spillover.service.reporting import Outcome, Status
from spillover.service.service import Decision, Receipt, Report, Service
from spillover.service.settings import Settings
from spillover.service.sqlite_log import SqliteLog

__all__ = [
    "Conflict",
    "Decision",
    "Invalid",
    "NotFound",
    "Outcome",
    "Receipt",
    "Report",
    "Service",
    "Settings",
    "SqliteLog",
    "Status",
    "StorageError",
]
