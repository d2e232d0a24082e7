"""Large files fetched over connections that break: taken up where they broke off, and tried again."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import requests

_BLOCK = 1 << 16
"""Bytes of which some are lost where a server falls silent: what is read is on the disk block by block."""


class DownloadError(Exception):
    """A file that can't be had: why, in a few words."""


@dataclass(frozen=True)
class Patience:
    """How long to wait, and how often to try.

    Attributes:
        tries: in a row that bring nothing, after the first; what brings bytes is taken up for ever.
        seconds: before the second try; twice as many before each one after it.
        timeout: seconds to wait for a connection, and for more bytes.
    """

    tries: int = 5
    seconds: float = 2.0
    timeout: tuple[float, float] = (20.0, 120.0)


@dataclass
class Downloader:
    """Fetches files.

    Args:
        patience: with servers.
        headers: to send.
        advance: is told of each number of bytes that came.
    """

    patience: Patience = field(default_factory=Patience)
    headers: Mapping[str, str] = field(default_factory=dict)
    advance: Callable[[int], None] = lambda number: None

    def fetch(self, url: str, path: Path) -> None:
        """Fetches a file, which is under its name only when it is complete.

        Until then it is ``NAME.part``, and ``NAME.part.version`` has what the server calls its version: a later call,
        or a later process, goes on from there if the server still has the same, and can.

        Raises:
            DownloadError: it can't be had.
        """
        import requests
        import urllib3

        path.parent.mkdir(parents=True, exist_ok=True)
        part, version = (path.with_name(f"{path.name}.part{end}") for end in ("", ".version"))
        most, idle = _size(part), 0
        with self._session() as session:
            while True:
                try:
                    self._go_on(session, url, part, version)
                    break
                except (requests.RequestException, urllib3.exceptions.HTTPError) as error:
                    if isinstance(error, requests.HTTPError | requests.exceptions.InvalidSchema):
                        raise DownloadError(_reason(error)) from error
                    # from a server that begins anew each time, bytes are no progress
                    idle = 0 if _size(part) > most else idle + 1
                    most = max(most, _size(part))
                    if idle > self.patience.tries:
                        raise DownloadError(_reason(error)) from error
                    time.sleep(self.patience.seconds * 2 ** max(idle - 1, 0))
        os.replace(part, path)
        version.unlink(missing_ok=True)

    def _session(self) -> requests.Session:
        """One that waits and asks again where a server is busy or down for a while."""
        import requests
        from requests.adapters import HTTPAdapter
        from urllib3.util import Retry

        session = requests.Session()
        busy = Retry(
            total=self.patience.tries,
            connect=0,  # a server that isn't there is tried again by `fetch`
            read=0,
            backoff_factor=self.patience.seconds,
            status_forcelist=(429, 500, 502, 503, 504),
            raise_on_status=False,
        )
        for scheme in ("http://", "https://"):
            session.mount(scheme, HTTPAdapter(max_retries=busy))
        # the bytes of the file itself, so that they can be counted
        session.headers.update({**self.headers, "Accept-Encoding": "identity"})
        return session

    def _go_on(self, session: requests.Session, url: str, part: Path, version: Path) -> None:
        """One request, for all that is missing."""
        import requests

        have = _size(part)
        known = version.read_text(encoding="utf-8") if have and version.exists() else ""
        rest = {"Range": f"bytes={have}-", "If-Range": known} if known else {}
        with session.get(url, headers=rest, stream=True, timeout=self.patience.timeout) as answer:
            if answer.status_code == 416 and answer.headers.get("Content-Range") == f"bytes */{have}":
                return  # nothing is missing
            if answer.status_code == 416:
                part.unlink(missing_ok=True)
                raise requests.ConnectionError("it is shorter than before")
            answer.raise_for_status()
            resumed = answer.status_code == 206
            if resumed and not answer.headers.get("Content-Range", "").startswith(f"bytes {have}-"):
                raise requests.ConnectionError("the server sends another part than it was asked for")
            if resumed and _version(answer.headers) not in ("", known):  # from a server that ignores If-Range
                part.unlink(missing_ok=True)
                raise requests.ConnectionError("it has changed")
            if not resumed:
                have = 0
                part.unlink(missing_ok=True)  # before it may get another version
                version.write_text(_version(answer.headers), encoding="utf-8")
            with open(part, "ab") as file:
                for block in answer.raw.stream(_BLOCK, decode_content=False):
                    file.write(block)
                    self.advance(len(block))
            length = answer.headers.get("Content-Length")  # which urllib3 itself compares from its version 2 on only
            if length is not None and _size(part) != have + int(length):
                raise requests.ConnectionError(f"the connection broke off after {_size(part):,} bytes")
            whole = answer.headers.get("Content-Range", "").rpartition("/")[2]
            if resumed and whole.isdecimal() and _size(part) < int(whole):
                raise requests.ConnectionError(f"the server sent {_size(part):,} of {int(whole):,} bytes")


def _version(headers: Mapping[str, str]) -> str:
    """What `If-Range` may name: a strong entity tag, or a date; empty if there is neither, and nothing can go on."""
    tag = headers.get("ETag", "")
    return tag if tag.startswith('"') else headers.get("Last-Modified", "")


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _reason(error: Exception) -> str:
    """What requests and urllib3 wrap in each other."""
    inner = error.args[0] if error.args else error
    inner = getattr(inner, "reason", None) or inner
    lines = str(inner).split("\n") if str(inner) else [type(error).__name__]
    return lines[0].rsplit(": ", 1)[-1][:300] if "object at 0x" in lines[0] else lines[0][:300]
