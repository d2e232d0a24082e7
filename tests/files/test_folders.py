"""An output folder appears when it is complete, and never replaces what another hand put there."""

from __future__ import annotations

from pathlib import Path

import pytest

from owf_fairseq.errors import InputError
from owf_fairseq.files.folders import MANIFEST, check_output, output_folder


def make(path: Path, command: str = "owf one", text: str = "text") -> None:
    with output_folder(path, command) as folder:
        (folder / "sub").mkdir()
        (folder / "sub" / "file").write_text(text)


def names(path: Path) -> list[str]:
    return sorted(found.relative_to(path).as_posix() for found in path.rglob("*") if found.is_file())


def test_a_new_folder_and_an_empty_one_are_filled(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for name in ("empty", "deep/new"):
        make(tmp_path / name)
        assert names(tmp_path / name) == [MANIFEST, "sub/file"]
    assert sorted(found.name for found in tmp_path.iterdir()) == ["deep", "empty"]


def test_its_own_folder_is_replaced_whole(tmp_path: Path) -> None:
    make(tmp_path / "out", text="old")
    with output_folder(tmp_path / "out", "owf one") as folder:
        (folder / "other").write_text("new")
        assert (tmp_path / "out" / "sub" / "file").read_text() == "old"
    assert names(tmp_path / "out") == [MANIFEST, "other"]
    assert [found.name for found in tmp_path.iterdir()] == ["out"]


def test_a_failure_leaves_what_was_there(tmp_path: Path) -> None:
    make(tmp_path / "out", text="old")

    def interrupted(path: Path) -> None:
        with output_folder(path, "owf one") as folder:
            (folder / "half").write_text("half")
            raise KeyboardInterrupt

    for name in ("out", "new"):
        with pytest.raises(KeyboardInterrupt):
            interrupted(tmp_path / name)
    assert [found.name for found in tmp_path.iterdir()] == ["out"]
    assert (tmp_path / "out" / "sub" / "file").read_text() == "old"


def test_foreign_files_are_refused_and_named(tmp_path: Path) -> None:
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    (foreign / "thesis.tex").write_text("years of work")
    own = tmp_path / "own"
    make(own)
    (own / "checkpoint.pt").write_text("hours of work")
    other = tmp_path / "other"
    make(other, command="owf two")
    damaged = tmp_path / "damaged"
    make(damaged)
    (damaged / MANIFEST).write_text("{")
    a_file = tmp_path / "a_file"
    a_file.write_text("text")
    for path, named in [
        (foreign, "thesis.tex"),
        (own, "checkpoint.pt"),
        (other, "sub/file"),
        (damaged, "sub/file"),
        (a_file, "not a folder"),
    ]:
        before = names(path)
        with pytest.raises(InputError, match=named), output_folder(path, "owf one"):
            raise AssertionError("the block must not run")
        assert len(check_output(path, "owf one")) == 1
        assert names(path) == before
    assert a_file.read_text() == "text"
