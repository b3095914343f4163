"""A server that is killed under clients that retry: nothing acknowledged is lost, and nothing is there twice."""

import os

import pytest

from tests.sampling import few_or_many
from tests.service.http.killed_server import after_kills

pytestmark = pytest.mark.skipif(os.name == "nt", reason="kill -9: POSIX")


@pytest.mark.parametrize("kills", few_or_many(1, 200))
def test_kills_under_retrying_clients(kills, tmp_path) -> None:
    found = after_kills(tmp_path, kills, seed=7)
    assert found.pop("acknowledged")
    assert found == {"kills": kills, "lost": 0, "doubled": 0, "problems": []}
