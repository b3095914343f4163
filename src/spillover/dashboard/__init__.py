"""The page of a running service: what to choose next and why, what is pending, what changed, the graph, the log.

The page is static: it holds no data of a stream and asks for all of it under /v1, as any other client does. So it needs
no token to be loaded, and it can do nothing that the HTTP interface does not allow.
"""

from spillover.dashboard.pages import routes

__all__ = ["routes"]
