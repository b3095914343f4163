"""The service over HTTP: strict requests, problem details, tokens, live changes, metrics."""

from spillover.registry import needed_for

with needed_for("the service", "serve"):
    from spillover.http.access import ServerSettings
    from spillover.http.app import create_app

__all__ = ["ServerSettings", "create_app"]
