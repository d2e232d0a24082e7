"""Line n stays line n, whatever the line holds (contract 9), and nothing half-written stands under its final name."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import pytest

from owf_fairseq.errors import InputError
from owf_fairseq.files.lines import atomic_path, read_lines, write_lines

# Everything that some reader takes for the end of a line, and LF does not.
NOT_LINE_ENDS = ["a\rb", "a\u2028b", "a\u2029b", "a\u0085b", "a\x0bb", "a\x0cb", "a\x1cb", "a\x1db", "a\x1eb", "a\x00b"]


@pytest.mark.parametrize("line", NOT_LINE_ENDS, ids=ascii)
def test_only_lf_separates_lines(tmp_path: Path, line: str) -> None:
    path = tmp_path / "text"
    path.write_bytes(f"{line}\n{line}\n".encode())
    assert read_lines(path) == [line, line]


@pytest.mark.parametrize(
    ("data", "lines"),
    [
        (b"", []),
        (b"\n", [""]),
        (b"a", ["a"]),
        (b"a\n", ["a"]),
        (b"a\n\n", ["a", ""]),
        (b"a\n\nb", ["a", "", "b"]),
        (b"a\r\nb\r\n", ["a", "b"]),
        (b"a\r\r\n", ["a\r"]),
        (b"\r\n", [""]),
        (b" a \t\n", [" a \t"]),
        (b"\xef\xbb\xbfa\nb\n", ["a", "b"]),
        (b"a\n\xef\xbb\xbfb\n", ["a", "\ufeffb"]),
    ],
    ids=repr,
)
def test_lines_of_a_file_and_of_a_stream(tmp_path: Path, data: bytes, lines: list[str]) -> None:
    path = tmp_path / "text"
    path.write_bytes(data)
    assert read_lines(path) == lines
    assert read_lines(str(path)) == lines
    assert read_lines(io.BytesIO(data)) == lines


def test_bytes_that_are_not_utf8_are_an_error_that_names_every_line(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_bytes(b"good\nb\xfcse\ngood\n\xff\n")
    with pytest.raises(InputError) as error:
        read_lines(path)
    assert [f"{path}, line 2" in error.value.problems[0], f"{path}, line 4" in error.value.problems[1]] == [True, True]
    assert "0xfc" in error.value.problems[0]
    assert len(error.value.problems) == 2
    with pytest.raises(InputError, match="standard input, line 1"):
        read_lines(io.BytesIO(b"\xff"))


def test_bytes_that_are_not_utf8_can_be_replaced() -> None:
    assert read_lines(io.BytesIO(b"b\xfcse\nb"), errors="replace") == ["b\ufffdse", "b"]


def test_many_faulty_lines_are_counted_not_listed() -> None:
    with pytest.raises(InputError, match="90 more lines") as error:
        read_lines(io.BytesIO(b"\xff\n" * 100))
    assert len(error.value.problems) == 11


def test_a_missing_file_and_a_folder_are_input_errors(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none can't be read: No such file"):
        read_lines(tmp_path / "none")
    with pytest.raises(InputError, match="can't be read"):
        read_lines(tmp_path)


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    lines = ["", "ä", *NOT_LINE_ENDS, " ", ""]
    path = tmp_path / "new" / "text"
    write_lines(path, lines)
    assert path.read_bytes() == "".join(f"{line}\n" for line in lines).encode()
    assert read_lines(path) == lines
    assert [found.name for found in path.parent.iterdir()] == ["text"]


def test_a_line_feed_in_a_line_is_refused_and_the_old_file_stays(tmp_path: Path) -> None:
    path = tmp_path / "text"
    write_lines(path, ["old"])
    with pytest.raises(ValueError, match="line 2 .* line feed"):
        write_lines(path, ["new", "a\nb"])
    assert read_lines(path) == ["old"]
    assert [found.name for found in tmp_path.iterdir()] == ["text"]


def test_a_failing_writer_leaves_nothing(tmp_path: Path) -> None:
    def interrupted(path: Path, fill: Callable[[Path], object]) -> None:
        with atomic_path(path) as temporary:
            fill(temporary)
            assert temporary.exists()
            assert not path.exists()
            raise KeyboardInterrupt

    for name, fill in (("file", lambda path: path.write_text("half")), ("folder", lambda path: path.mkdir())):
        with pytest.raises(KeyboardInterrupt):
            interrupted(tmp_path / name, fill)
    assert list(tmp_path.iterdir()) == []


def test_a_finished_file_or_folder_gets_its_name(tmp_path: Path) -> None:
    with atomic_path(tmp_path / "file") as temporary:
        temporary.write_text("whole")
    with atomic_path(tmp_path / "folder") as temporary:
        temporary.mkdir()
        (temporary / "part").write_text("whole")
    assert sorted(found.name for found in tmp_path.iterdir()) == ["file", "folder"]
    assert (tmp_path / "folder" / "part").read_text() == "whole"
