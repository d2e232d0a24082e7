"""Files from a server that breaks off, is slow, busy or not there; it runs on this machine."""

import time

import pytest
from server_for_tests import QUICK, serving

from owf_fairseq.data.downloads import Downloader, DownloadError

TEXT = bytes(range(256)) * 400


@pytest.fixture
def server():
    with serving() as server:
        yield server


def fetch(server, tmp_path, path="/file.gz"):
    Downloader(QUICK).fetch(server.url(path), tmp_path / "cache/file.gz")
    return (tmp_path / "cache/file.gz").read_bytes()


def test_what_breaks_off_is_taken_up(server, tmp_path):
    server.files["/file.gz"] = TEXT
    server.faults["/file.gz"] = [("cut", 30_000), ("cut", 20_000), ("slow", 10, 0.1)]
    assert fetch(server, tmp_path) == TEXT
    assert [bytes_ for _, bytes_ in server.asked] == [None, "bytes=30000-", "bytes=50000-"]
    assert [path.name for path in (tmp_path / "cache").iterdir()] == ["file.gz"]


def test_a_server_that_falls_silent_is_asked_again(server, tmp_path):
    server.files["/file.gz"] = TEXT
    server.faults["/file.gz"] = [("slow", 70_000, 1.0)]
    begun = time.monotonic()
    assert fetch(server, tmp_path) == TEXT
    assert time.monotonic() - begun < 0.95
    assert server.asked[1] == ("/file.gz", "bytes=65536-")


def test_more_cuts_than_tries_as_long_as_something_comes(server, tmp_path):
    server.files["/file.gz"] = TEXT
    server.faults["/file.gz"] = [("cut", 10_000)] * 8
    assert fetch(server, tmp_path) == TEXT
    assert len(server.asked) == 9


def test_busy_and_closed_servers_are_waited_for(server, tmp_path):
    server.files["/file.gz"] = TEXT
    server.faults["/file.gz"] = [("busy",), ("shut",), ("busy",), ("cut", 0), ("cut", 5)]
    assert fetch(server, tmp_path) == TEXT


def test_a_later_process_goes_on(server, tmp_path):
    server.files["/file.gz"] = TEXT
    server.faults["/file.gz"] = [("cut", 40_000), *[("shut",)] * 3]
    with pytest.raises(DownloadError):
        fetch(server, tmp_path)
    assert not (tmp_path / "cache/file.gz").exists()
    server.asked.clear()
    assert fetch(server, tmp_path) == TEXT
    assert server.asked == [("/file.gz", "bytes=40000-")]


def test_what_is_another_file_now_is_fetched_anew(server, tmp_path):
    server.files["/file.gz"] = TEXT
    server.faults["/file.gz"] = [("cut", 40_000), *[("shut",)] * 3]
    with pytest.raises(DownloadError):
        fetch(server, tmp_path)
    server.files["/file.gz"], server.tag = TEXT[::-1], '"2"'
    assert fetch(server, tmp_path) == TEXT[::-1]


@pytest.mark.parametrize(("ranges", "tag"), [(False, '"1"'), (True, ""), (True, 'W/"1"')])
def test_servers_that_cannot_go_on_begin_anew(ranges, tag, server, tmp_path):
    server.files["/file.gz"] = TEXT
    server.ranges, server.tag = ranges, tag
    server.faults["/file.gz"] = [("cut", 40_000)]
    assert fetch(server, tmp_path) == TEXT
    server.faults["/file.gz"] = [("cut", 40_000)] * 100
    (tmp_path / "cache/file.gz").unlink()
    server.asked.clear()
    with pytest.raises(DownloadError):  # and not for ever
        fetch(server, tmp_path)
    assert len(server.asked) == 4


def test_what_was_complete_but_for_its_name(server, tmp_path):
    server.files["/file.gz"] = TEXT
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache/file.gz.part").write_bytes(TEXT)
    (tmp_path / "cache/file.gz.part.version").write_text('"1"')
    assert fetch(server, tmp_path) == TEXT
    server.files["/file.gz"] = TEXT[:100]  # and what is longer than the server's
    (tmp_path / "cache/file.gz.part").write_bytes(TEXT)
    (tmp_path / "cache/file.gz.part.version").write_text('"1"')
    assert fetch(server, tmp_path) == TEXT[:100]


def test_what_is_not_there_is_said_at_once(server, tmp_path):
    with pytest.raises(DownloadError, match="404"):
        fetch(server, tmp_path)
    assert len(server.asked) == 1
    with pytest.raises(DownloadError, match="refused"):
        Downloader(QUICK).fetch("http://127.0.0.1:1/x", tmp_path / "x")


def test_a_server_that_sends_less_than_the_rest_is_asked_for_more(server, tmp_path):
    server.files["/file.gz"] = TEXT
    server.faults["/file.gz"] = [("cut", 30_000), ("part", 1_000), ("part", 500)]
    assert fetch(server, tmp_path) == TEXT
    assert [bytes_ for _, bytes_ in server.asked] == [None, "bytes=30000-", "bytes=31000-", "bytes=31500-"]


def test_two_versions_are_not_mixed_by_a_server_that_does_not_look(server, tmp_path):
    server.files["/file.gz"] = TEXT
    server.faults["/file.gz"] = [("cut", 40_000), *[("shut",)] * 3]
    with pytest.raises(DownloadError):
        fetch(server, tmp_path)
    server.files["/file.gz"], server.tag, server.blind = TEXT[::-1], '"2"', True
    assert fetch(server, tmp_path) == TEXT[::-1]
