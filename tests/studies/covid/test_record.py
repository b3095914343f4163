"""The Covid-19 record: facts of it, a folder, the cache, and a local server that fails in many ways."""

import hashlib
import os
import shutil
import threading
from collections import Counter
from contextlib import contextmanager
from datetime import date
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

from spillover_studies.covid import record as datasets
from spillover_studies.covid.record import DENSITY_WINDOW, REGIONS, STUDY_WINDOW, MissingData, covid_italy, parse_record
from tests.record import NEEDS_RECORD

FIRST = "dpc-covid19-ita-regioni-20200413.csv"
HEADER = "data,stato,codice_regione,denominazione_regione,lat,long,nuovi_positivi,note"


@pytest.fixture
def data():
    """The folder of the record, where there is one."""
    folder = os.environ.get("SPILLOVER_COVID_DATA")
    if not folder:
        pytest.skip(NEEDS_RECORD)
    return Path(folder)


@cache
def invented():
    """Files with the names of the record's and content of our own."""
    return {name: content(name, k) for k, name in enumerate(datasets.registry())}


def content(name, k=0):
    day = datasets.day_of(name)
    rows = [f"{day}T17:00:00,ITA,{i},{region},4{i % 8},1{i % 9},{k + i}," for i, region in enumerate(REGIONS.values())]
    return ("\n".join([HEADER, *rows]) + "\n").encode()


def changed(old, new, name=FIRST):
    """The invented files with one of them edited."""
    text = invented()[name].decode()
    assert old in text
    return {**invented(), name: text.replace(old, new).encode()}


@pytest.fixture
def own_registry(monkeypatch):
    """A registry of the invented files, a cache in nobody's home, and no folder in the environment."""
    hashes = {name: hashlib.sha256(text).hexdigest() for name, text in invented().items()}
    monkeypatch.setattr(datasets, "registry", lambda: hashes)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.delenv("SPILLOVER_COVID_DATA", raising=False)


@contextmanager
def server(answer):
    """A local HTTP server; answer(handler, name, attempt) writes the response. Gives the address and the counts."""
    asked: Counter[str] = Counter()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            name = self.path.rpartition("/")[2]
            asked[name] += 1
            answer(self, name, asked[name])

        def log_message(self, *arguments):
            pass

    httpd = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=httpd.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{httpd.server_port}/dati-regioni/", asked
    finally:
        httpd.shutdown()
        thread.join()
        httpd.server_close()


def send(handler, body, length=None, status=200):
    handler.send_response(status)
    handler.send_header("Content-Length", str(len(body) if length is None else length))
    handler.end_headers()
    handler.wfile.write(body)


def serve_well(handler, name, attempt):
    send(handler, invented()[name])


def left_in(folder):
    """Files of a cache that are not exactly what they should be."""
    return [p.name for p in folder.iterdir() if invented().get(p.name) != p.read_bytes()]


# --- facts of the record ---------------------------------------------------------------------------------------------


def test_the_record_has_the_facts_that_are_known_of_it(data):
    record = covid_italy(data)
    lockdown, study = record.window(*DENSITY_WINDOW), record.window(*STUDY_WINDOW)
    assert (record.cases.shape, lockdown.shape, study.shape) == ((139, 21), (45, 21), (80, 21))
    assert (int((lockdown < 0).sum()), int((study < 0).sum()), int((record.cases < 0).sum())) == (5, 0, 6)
    assert np.isfinite(record.cases).all()
    lombardia = record.regions.index("LOM")
    assert round(lockdown[:, lombardia].mean(), 1) == 515.7
    assert round(study[:, lombardia].mean(), 1) == 382.8
    assert (record.names[11], record.regions[11]) == ("P.A. Bolzano", "PAB")
    assert (record.names[12], record.regions[12]) == ("P.A. Trento", "PAT")
    assert record.source == "record"
    assert "Dipartimento della Protezione Civile" in record.attribution
    assert "CC-BY-4.0" in record.attribution


def test_the_environment_variable_names_the_folder(data, monkeypatch, tmp_path):
    np.testing.assert_array_equal(covid_italy().cases, covid_italy(data).cases)
    monkeypatch.setenv("SPILLOVER_COVID_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(ValueError, match=r"SPILLOVER_COVID_DATA = .*nowhere"):
        covid_italy()
    assert len(covid_italy(data).days) == 139  # the argument goes first


def test_a_changed_file_of_the_record_is_refused(data, tmp_path):
    for path in data.glob("*.csv"):
        shutil.copy(path, tmp_path)
    target = tmp_path / FIRST
    target.write_bytes(target.read_bytes().replace(b"1262", b"1263"))
    with pytest.raises(ValueError, match=f"SHA-256 of .*{FIRST} = [0-9a-f]{{64}} .*must be [0-9a-f]{{64}}"):
        covid_italy(tmp_path)


def test_the_registry_has_every_day_of_both_windows():
    days = [datasets.day_of(name) for name in datasets.registry()]
    expected = datasets.days_between(date(2020, 4, 13), date(2020, 6, 3))
    expected += datasets.days_between(date(2020, 7, 24), date(2020, 10, 18))
    assert days == expected
    assert all(len(digest) == 64 for digest in datasets.registry().values())


# --- a folder --------------------------------------------------------------------------------------------------------


def write(folder, files):
    folder.mkdir(exist_ok=True)
    for name, text in files.items():
        (folder / name).write_bytes(text)
    return folder


def test_a_folder_is_read(own_registry, tmp_path):
    record = covid_italy(write(tmp_path, invented()))
    assert record.cases[3, 4] == 3 + 4
    assert record.latitude[4] == 44


def test_a_missing_day_in_a_folder_is_named(own_registry, tmp_path):
    write(tmp_path, invented())
    (tmp_path / FIRST).unlink()
    with pytest.raises(ValueError, match=f"all 139 files of the record; 1 missing: {FIRST}"):
        covid_italy(tmp_path)


def test_half_a_file_in_a_folder_is_refused(own_registry, tmp_path):
    write(tmp_path, invented() | {FIRST: invented()[FIRST][:300]})
    with pytest.raises(ValueError, match=r"300 bytes.*changed or incomplete"):
        covid_italy(tmp_path)


def test_a_file_is_no_folder(tmp_path):
    with pytest.raises(ValueError, match="must be a folder"):
        covid_italy(tmp_path / "none")


# --- the download ----------------------------------------------------------------------------------------------------


def test_files_are_downloaded_once(own_registry, tmp_path, capsys):
    with server(serve_well) as (url, asked):
        first = datasets.fetch(tmp_path / "cache", base_url=url)
        again = datasets.fetch(tmp_path / "cache", base_url=url)
    assert first == again == invented()
    assert set(asked.values()) == {1}
    assert capsys.readouterr() == ("", "")  # piped: no bar, and nothing of pooch's


def test_covid_italy_goes_through_the_cache(own_registry, tmp_path, monkeypatch):
    monkeypatch.setattr(datasets, "cache_folder", lambda: write(tmp_path / "cache", invented()))
    assert covid_italy(download=False).cases[0, 2] == 2


def test_a_failed_download_is_tried_again(own_registry, tmp_path, monkeypatch):
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    names = list(invented())

    def answer(handler, name, attempt):
        body = invented()[name]
        if attempt > 1 or name not in names[:4]:
            send(handler, body)
        elif name == names[0]:
            send(handler, b"later", status=503)
        elif name == names[1]:
            send(handler, body[:200], length=len(body))  # the connection breaks half-way
        elif name == names[2]:
            send(handler, body[:200])  # half a file with the length of a complete one
        else:
            send(handler, b"<html>log in first</html>")

    with server(answer) as (url, asked):
        assert datasets.fetch(tmp_path, base_url=url, progress=False) == invented()
    assert [asked[name] for name in names[:5]] == [2, 2, 2, 2, 1]


@pytest.mark.parametrize("kind", ["status", "broken", "half", "wrong"])
def test_repeated_failures_leave_no_file_that_looks_complete(own_registry, tmp_path, monkeypatch, kind):
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    bad = list(invented())[5]

    def answer(handler, name, attempt):
        body = invented()[name]
        if name != bad:
            send(handler, body)
        elif kind == "status":
            send(handler, b"no", status=404)
        elif kind == "broken":
            send(handler, body[:200], length=len(body))
        else:
            send(handler, body[:200] if kind == "half" else body + b"x")

    with server(answer) as (url, _):
        with pytest.raises(MissingData, match=f"{bad}.* could not be downloaded"):
            datasets.fetch(tmp_path, base_url=url, progress=False)
        assert left_in(tmp_path) == []
        assert not (tmp_path / bad).exists()
    with server(serve_well) as (url, asked):  # the next time only the rest is asked for
        assert datasets.fetch(tmp_path, base_url=url, progress=False) == invented()
    assert bad in asked
    assert FIRST not in asked


def test_a_damaged_file_in_the_cache_is_downloaded_again(own_registry, tmp_path):
    write(tmp_path, invented() | {FIRST: invented()[FIRST][:300]})
    with pytest.raises(MissingData, match=f"1 of 139 .*{FIRST}.*disabled"):
        datasets.fetch(tmp_path, download=False)
    with server(serve_well) as (url, asked):
        assert datasets.fetch(tmp_path, base_url=url) == invented()
    assert asked == {FIRST: 1}


def test_offline_the_error_says_what_to_do_and_soon(own_registry, tmp_path, monkeypatch):
    waits: list[float] = []
    monkeypatch.setattr("time.sleep", waits.append)
    with server(serve_well) as (url, _):
        pass  # nobody listens at this address any more
    waits.clear()
    with pytest.raises(MissingData) as caught:
        datasets.fetch(tmp_path / "cache", base_url=url)
    assert sum(waits) < 8  # between attempts
    message = str(caught.value)
    assert "139 of 139 files" in message
    assert f"{FIRST}, " in message
    assert "and 136 more" in message
    assert datasets.SOURCE in message
    assert "set SPILLOVER_COVID_DATA" in message


def test_without_download_nothing_is_requested(own_registry, tmp_path):
    with pytest.raises(MissingData, match=r"139 of 139 files .* downloading is disabled"):
        datasets.fetch(tmp_path / "cache", download=False)
    assert not (tmp_path / "cache").exists()


# --- reading ---------------------------------------------------------------------------------------------------------


def test_rows_may_come_in_any_order_and_negative_counts_stay():
    head, *rows = changed("Abruzzo,40,10,0,", "Abruzzo,40,10,-17,")[FIRST].splitlines()
    record = parse_record({**invented(), FIRST: b"\n".join([head, *rows[::-1]])})
    assert record.cases[0].tolist() == [-17, *range(1, 21)]


def test_a_window_needs_all_of_its_days():
    record = parse_record(invented())
    with pytest.raises(ValueError, match="2020-06-04, 2020-06-05, 2020-06-06 and 47 more missing"):
        record.window(date(2020, 6, 1), date(2020, 7, 31))
