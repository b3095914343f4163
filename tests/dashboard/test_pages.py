"""What the server sends of the page: no data, nothing inline, nothing from outside."""

import re
from pathlib import Path

import httpx
import pytest

import spillover.dashboard
from tests.dashboard.serving import new_service, serving
from tests.service.http.servers import PATIENCE

ASSETS = Path(spillover.dashboard.__file__).parent / "assets"


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    with (
        new_service(tmp_path_factory.mktemp("pages")) as service,
        serving(service) as url,
        httpx.Client(base_url=url, timeout=PATIENCE) as found,
    ):
        yield found


@pytest.mark.parametrize("path", ["/", "/streams/shop", "/streams/%3Cscript%3Ealert(1)%3Cscript%3E"])
def test_a_page_has_nothing_inline_and_nothing_from_outside(client, path) -> None:
    answer = client.get(path)
    assert (answer.status_code, answer.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert not re.search(r"<style|\sstyle=|\son\w+=|<script>|javascript:", answer.text)
    assert "unsafe" not in answer.headers["content-security-policy"]
    for address in re.findall(r'(?:src|href)="([^"#]+)"', answer.text):
        assert address.startswith("/")
        assert not address.startswith("//")
        assert client.get(address).status_code == 200, address


def test_a_name_in_an_address_is_written_as_text(client) -> None:
    text = client.get("/streams/%22%3E%3Cimg%20src=x%3E").text
    assert "<img" not in text
    assert 'data-stream="&#34;&gt;&lt;img src=x&gt;"' in text


def test_scripts_import_only_what_is_there() -> None:
    for script in ASSETS.glob("*.js"):
        for name in re.findall(r'from "\./([^"]+)"', script.read_text(encoding="utf-8")):
            assert (ASSETS / name).is_file(), (script.name, name)


def test_scripts_never_read_markup() -> None:
    """Whoever writes text as markup lets a name become a script."""
    dangerous = re.compile(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function")
    for script in ASSETS.glob("*.js"):
        assert not dangerous.search(script.read_text(encoding="utf-8")), script.name


def test_an_asset_is_sent_again_only_if_it_changed(client) -> None:
    for name in ("base.css", "stream.js", "plotly.min.js"):
        first = client.get(f"/assets/{name}")
        assert (first.status_code, first.headers["cache-control"]) == (200, "no-cache")
        assert client.get(f"/assets/{name}", headers={"If-None-Match": first.headers["etag"]}).status_code == 304


@pytest.mark.parametrize("name", ["nothing.js", "..%2Fpages.py", "%2e%2e%2fpages.py", "templates"])
def test_nothing_else_is_sent(client, name) -> None:
    assert client.get(f"/assets/{name}").status_code == 404
