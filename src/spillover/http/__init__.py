"""The service over HTTP: strict requests, problem details, tokens, live changes, metrics."""

try:
    from spillover.http.app import create_app
    from spillover.http.server_settings import ServerSettings
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        f"the service needs a package that is not installed ({error}): pip install 'spillover[serve]'"
    ) from None

__all__ = ["ServerSettings", "create_app"]
