"""One browser and one server for the tests of a module."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from spillover.service import Service
from tests.dashboard.browser import open_browser
from tests.dashboard.serving import fill, new_service, serving


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with open_browser() as found:
        yield found


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    folder: Path = tmp_path_factory.mktemp("page")
    with new_service(folder) as found:
        fill(found)
        yield found


@pytest.fixture(scope="module")
def url(service: Service) -> Iterator[str]:
    with serving(service) as found:
        yield found
