"""A part of a file holds the lines that reading all of it gives, wherever the part begins."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from owf_fairseq.errors import InputError
from owf_fairseq.files import line_index
from owf_fairseq.files.line_index import index_lines
from owf_fairseq.files.lines import raw_lines, read_lines, stream_lines

CASES = [
    b"",
    b"\n",
    b"a",
    b"a\n",
    b"\xef\xbb\xbf",
    b"\xef\xbb\xbf\n",
    b"\xef\xbb\xbfa\nb",
    b"ab\n\xef\xbb\xbf",
    b"a\nb\nc\n\xef\xbb\xbfd\ne\n",
    b"\r\n\r\r\na\r",
    b"\n\n\n\n",
    b"a\n\nb\n" * 9,
]


@pytest.fixture(params=[1, 2, 7, 1 << 22], ids="blocks of {}".format)
def small(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of some lines is read in several blocks, and every third line is remembered."""
    monkeypatch.setattr(line_index, "_BLOCK", request.param)
    monkeypatch.setattr(line_index, "_STEP", 3)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("data", CASES, ids=repr)
def test_lines_are_those_of_the_whole_file(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "text"
    path.write_bytes(data)
    lines = read_lines(path)
    index = index_lines(path)
    assert index.lines == len(lines)
    for start in range(len(lines)):
        for count in (1, 2, len(lines) - start):
            part = [raw.decode() for raw in raw_lines(path, *index.place(start), count)]
            assert part == lines[start : start + count]


@pytest.mark.usefixtures("small")
def test_every_line_of_a_longer_file_is_found(tmp_path: Path) -> None:
    draw = random.Random(1)
    lines = ["".join(draw.choices("aä\u2028\r\x85 ", k=draw.randint(0, 9))).rstrip("\r") for _ in range(200)]
    path = tmp_path / "text"
    path.write_bytes("\n".join(lines).encode() + b"\n")
    index = index_lines(path)
    found = [next(iter(raw_lines(path, *index.place(n), 1))).decode() for n in range(index.lines)]
    assert found == lines == list(stream_lines(path))


def test_what_was_read_is_told(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_bytes(b"lamp\n" * 100)
    told: list[int] = []
    index_lines(path, told.append)
    assert sum(told) == 500


def test_a_stream_raises_after_its_last_line(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_bytes(b"\xff\ngood\n" * 12)
    seen: list[str] = []
    with pytest.raises(InputError, match="line 1: not UTF-8") as error:
        seen.extend(stream_lines(path))
    assert seen == ["", "good"] * 12
    assert len(error.value.problems) == 11
    assert error.value.problems[-1] == f"{path}: 2 more lines are not UTF-8"


def test_a_missing_file_is_an_input_error(tmp_path: Path) -> None:
    for read in (index_lines, lambda path: list(raw_lines(path)), lambda path: list(stream_lines(path))):
        with pytest.raises(InputError, match="none can't be read: No such file"):
            read(tmp_path / "none")
