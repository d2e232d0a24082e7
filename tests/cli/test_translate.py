"""`owf translate` on files of bytes: one line out for each line in, and the right one."""

import io
import shutil
import sys

import pytest
import torch
from fairseq_for_tests import TOY_SENTENCES, text_sentences
from fairseq_for_tests import run as run_fairseq

from owf_fairseq import USER_DIR, cli


def odd(space):
    """The sentence A with another sign where a space was."""
    return A.replace(" opens", f"{space}opens")


A, B, C = TOY_SENTENCES


@pytest.fixture
def model(request, copier):
    """What the tests translate with: a checkpoint, or what was exported of it."""
    return request.getfixturevalue("exported_copier") if getattr(request, "param", "") == "ctranslate2" else copier


WITH_BOTH_BACKENDS = pytest.mark.parametrize("model", ["fairseq", "ctranslate2"], indirect=True)


@pytest.fixture
def translate(model, capsysbinary, monkeypatch, tmp_path):
    """Runs the command on bytes, through standard input or a file; gives status, output and what it said."""

    def run(data, *flags, through="stdin", checkpoint=model):
        arguments = ["translate", str(checkpoint), "--cpu", *flags]
        if through == "file":
            (tmp_path / "input.txt").write_bytes(data)
            arguments += [
                "--input",
                str(tmp_path / "input.txt"),
                "--output",
                str(tmp_path / "output.txt"),
                "--overwrite",
            ]
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
        capsysbinary.readouterr()
        status = cli.main(arguments)
        out, err = capsysbinary.readouterr()
        if through == "file" and status == 0:
            assert out == b""
            out = (tmp_path / "output.txt").read_bytes()
        return status, out, err.decode()

    return run


@WITH_BOTH_BACKENDS
def test_the_model_of_these_tests_gives_each_sentence_its_own_translation(translate):
    status, out, err = translate(f"{A}\n{B}\n{C}\n".encode())
    assert status == 0
    assert out.decode() == f"{A}\n{B}\n{C}\n"
    assert err == ""


INPUTS = {
    "blank lines": (f"\n{A}\n\n\n{B}\n\n", ["", A, "", "", B, ""]),
    "white space only": (f"{A}\n \t\n\u00a0\u3000\u2028\n\x00\n{B}\n", [A, "", "", "", B]),
    "no final line feed": (f"{A}\n{B}", [A, B]),
    "only a line feed": ("\n", [""]),
    "nothing": ("", []),
    "CRLF": (f"{A}\r\n\r\n{B}\r\n", [A, "", B]),
    "lone CR": (f"{odd(chr(13))}\n{B}\n", [A, B]),
    "U+2028 and U+2029": (f"{odd(chr(0x2028))}\u2029\n{B}\n", [A, B]),
    "U+0085": (f"{odd(chr(0x85))}\n{B}\n", [A, B]),
    "form feed and file separators": (f"{odd(chr(0xC) + chr(0x1C))}\x1d\n\x1e{B}\n", [A, B]),
    "byte order mark": (f"\ufeff{A}\n{B}\n", [A, B]),
    "tabs and many spaces": (f"  {odd(chr(9))}  \n{B}\n", [A, B]),
}


@WITH_BOTH_BACKENDS
@pytest.mark.parametrize("through", ["stdin", "file"])
@pytest.mark.parametrize("kind", INPUTS)
def test_one_line_out_for_each_line_in(translate, kind, through):
    text, expected = INPUTS[kind]
    status, out, _ = translate(text.encode(), through=through)
    assert status == 0
    assert out.decode().split("\n") == [*expected, ""]


@WITH_BOTH_BACKENDS
@pytest.mark.parametrize("through", ["stdin", "file"])
def test_bytes_that_are_not_utf8(translate, through, tmp_path):
    data = f"{A}\n".encode() + b"the \xff lamp\n" + f"{B}\n".encode() + b"\xc3\n"
    status, out, err = translate(data, through=through)
    assert (status, out) == (2, b"")
    assert not (tmp_path / "output.txt").exists()
    name = "standard input" if through == "stdin" else "input.txt"
    for line in (2, 4):
        assert f"{name}, line {line}: not UTF-8" in err
    status, out, err = translate(data, "--on-error", "blank", through=through)
    assert status == 0
    assert out.decode() == f"{A}\n\n{B}\n\n"
    for line in (2, 4):
        assert f"warning: {tmp_path / 'input.txt' if through == 'file' else name}, line {line}: not UTF-8" in err


@WITH_BOTH_BACKENDS
def test_lines_longer_than_the_model_takes_are_translated_in_parts(translate):
    long = " ".join([A, B, C, A])
    status, out, err = translate(f"{C}\n{long}\n{A}\n".encode(), "--max-source-length", "24")
    assert status == 0
    assert out.decode() == f"{C}\n{long}\n{A}\n"
    (warning,) = err.splitlines()
    assert "standard input, line 2: " in warning
    assert "more than 24: translated in " in warning
    status, out, err = translate(f"{C}\n{long}\n{A}\n".encode(), "--max-source-length", "24", "--long-lines", "blank")
    assert out.decode() == f"{C}\n\n{A}\n"
    assert "line 2" in err
    assert "left blank" in err


@WITH_BOTH_BACKENDS
def test_a_line_far_longer_than_the_model_takes(translate, copier):
    endless = "a" * 3000
    status, out, err = translate(f"{A}\n{' '.join([A] * 200)}\n{endless}\n{B}\n".encode())
    assert status == 0
    lines = out.decode().split("\n")
    assert len(lines) == 5
    assert (lines[0], lines[1], lines[3]) == (A, " ".join([A] * 200), B)
    assert "line 2" in err
    assert "line 3" in err


@WITH_BOTH_BACKENDS
def test_translations_depend_neither_on_batches_nor_on_neighbours(translate):
    lines = [*text_sentences(40, seed=5), "lamp", "the the the door door", "xyz ?!"]
    text = "".join(f"{line}\n" for line in lines).encode()
    cap = ("--max-len-a", "1.1", "--max-len-b", "0", "--scores", "--nbest", "3")

    def scored(*flags):
        status, out, _ = translate(text, *cap, *flags)
        assert status == 0
        rows = [line.split("\t") for line in out.decode().splitlines()]
        return [(int(number), float(score), hypothesis) for number, score, hypothesis in rows]

    alone = scored("--batch-size", "1")
    assert len(alone) == 3 * len(lines)
    assert [row[0] for row in alone] == sorted(row[0] for row in alone)
    for flags in (("--batch-size", "7"), ("--max-tokens", "100"), ("--max-tokens", "100000"), ("--buffer-size", "3")):
        other = scored(*flags)
        assert [(row[0], row[2]) for row in other] == [(row[0], row[2]) for row in alone], flags
        assert [row[1] for row in other] == pytest.approx([row[1] for row in alone], abs=1e-4), flags


@WITH_BOTH_BACKENDS
def test_translations_are_those_of_fairseq_generate(translate, copier, tmp_path):
    data = copier.parent.parent / "data"
    output = run_fairseq(
        "generate", data, "--user-dir", USER_DIR, "--path", copier, "--beam", "5", "--batch-size", "1", "--cpu",
        "--required-batch-size-multiple", "1", "--max-len-a", "2", "--max-len-b", "10", "--num-workers", "0",
        "--remove-bpe", "sentencepiece", "--nbest", "2",
    )  # fmt: skip
    theirs = {}
    for line in output.splitlines():
        if line.startswith("H-"):
            number, score, text = line.split("\t")
            theirs.setdefault(int(number[2:]), []).append((text, float(score) * 0.6931471805599453))
    source = (copier.parent.parent / "test.en").read_bytes()
    status, out, _ = translate(source, "--nbest", "2")
    ours = {}
    for line in out.decode().splitlines():
        number, score, text = line.split("\t")
        ours.setdefault(int(number) - 1, []).append((text, float(score)))
    assert ours.keys() == theirs.keys()
    assert len(ours) == 20
    for number in ours:
        assert [text for text, _ in ours[number]] == [text for text, _ in theirs[number]]
        # fairseq-generate prints log2 with four digits or so
        assert [s for _, s in ours[number]] == pytest.approx([s for _, s in theirs[number]], abs=2e-3)


@WITH_BOTH_BACKENDS
def test_length_penalty_and_length_cap_are_heeded(translate):
    data = f"{B}\n".encode()
    assert translate(data, "--min-len", "30", "--max-len-b", "30")[1].decode().count(" ") > B.count(" ")
    status, out, err = translate(data, "--max-len-a", "0", "--max-len-b", "3")
    assert len(out) < len(data) / 2
    assert "1 of 1 translations ended at their length cap (lines 1)" in err
    one, other = (float(translate(data, "--scores", "--lenpen", x)[1].split(b"\t")[1]) for x in ("1", "0"))
    assert other < one < 0


def test_an_ensemble_of_one_model_twice_is_that_model(translate, copier):
    data = f"{A}\n{B}\n".encode()
    (_, once, _), (_, twice, _) = (
        translate(data, "--scores", checkpoint=checkpoint) for checkpoint in (copier, f"{copier}:{copier}")
    )
    for line, other in zip(once.splitlines(), twice.splitlines(), strict=True):
        assert line.split(b"\t")[2] == other.split(b"\t")[2]
        assert float(line.split(b"\t")[1]) == pytest.approx(float(other.split(b"\t")[1]), abs=1e-5)


@pytest.mark.parametrize("segmentation", ["separate-sentencepiece", "moses-bpe", "none"])
def test_other_segmentations_are_found_beside_the_data(translate, copier_with, segmentation):
    status, out, _ = translate(f"{A}\n\n{B}\n".encode(), checkpoint=copier_with(segmentation))
    assert status == 0
    first, between, second, end = out.decode().split("\n")
    assert between == end == ""
    # pieces that are not put together, or not as it was trained, change every word; so small a model may take another
    words, expected = f"{first} {second}".split(" "), f"{A} {B}".split(" ")
    assert len(words) == len(expected)
    assert sum(one != other for one, other in zip(words, expected, strict=True)) <= 1


def test_the_data_are_found_when_the_run_has_moved(translate, copier, tmp_path, monkeypatch):
    moved = tmp_path / "moved"
    shutil.copytree(copier.parent.parent, moved)
    hidden = copier.parent.parent.with_name("hidden")
    copier.parent.parent.rename(hidden)
    try:
        monkeypatch.chdir(tmp_path)
        assert translate(f"{A}\n".encode(), checkpoint=moved / "model/checkpoint_last.pt")[1].decode() == f"{A}\n"
        (moved / "data").rename(moved / "elsewhere")
        status, _, err = translate(f"{A}\n".encode(), checkpoint=moved / "model/checkpoint_last.pt")
        assert status == 2
        assert "name the folder with `--data`" in err
        flags = ("--data", str(moved / "elsewhere"))
        assert translate(f"{A}\n".encode(), *flags, checkpoint=moved / "model/checkpoint_last.pt")[0] == 0
    finally:
        hidden.rename(copier.parent.parent)


def test_other_data_of_the_same_name_in_this_folder_are_not_taken(translate, copier, tmp_path, monkeypatch):
    run = tmp_path / "run"
    shutil.copytree(copier.parent.parent, run)
    state = torch.load(run / "model/checkpoint_last.pt", weights_only=True)
    state["cfg"]["task"]["data"] = "data"  # as when fairseq-train was started in the run's folder
    torch.save(state, run / "model/checkpoint_last.pt")
    other = tmp_path / "other"
    shutil.copytree(run / "data", other / "data")
    for lang in ("en", "de"):
        path = other / "data" / f"dict.{lang}.txt"
        path.write_text("".join(reversed(path.read_text().splitlines(keepends=True))))
    monkeypatch.chdir(other)
    assert translate(f"{A}\n".encode(), checkpoint=run / "model/checkpoint_last.pt")[1].decode() == f"{A}\n"
    shutil.rmtree(run / "data")
    monkeypatch.chdir(copier.parent.parent)
    assert translate(f"{A}\n".encode(), checkpoint=run / "model/checkpoint_last.pt")[1].decode() == f"{A}\n"


def test_all_problems_are_reported_together(translate, tmp_path, copier):
    (tmp_path / "there.txt").write_text("mine")
    status, out, err = translate(
        b"\xff\n", "--beam", "0", "--max-tokens", "0", "--fp16", "--output", str(tmp_path / "there.txt"),
        checkpoint=tmp_path / "missing.pt",
    )  # fmt: skip
    assert (status, out) == (2, b"")
    for part in (
        "`--beam`",
        "`--max-tokens`",
        "`--fp16`",
        "there.txt exists",
        "missing.pt can't be read",
        "line 1: not",
    ):
        assert part in err
    assert (tmp_path / "there.txt").read_text() == "mine"


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--nbest", "6"), "`--nbest` must be from 1 to `--beam` (5), but is 6"),
        (("--max-source-length", "5000"), "`--max-source-length` must be from 8 to 1023"),
        (("--max-len-b", "-1"), "must not be negative"),
        (("--max-len-a", "nan"), "`--max-len-a` must be a number from"),
        (("--max-len-a", "inf"), "`--max-len-a` must be a number from"),
        (("--lenpen", "nan"), "`--lenpen` must be a number from"),
        (("--output", "/proc/nowhere/x"), "`--output` /proc/nowhere/x can't be written"),
        (("--min-len", "2000"), "`--min-len` 2000 is more than"),
        (("--buffer-size", "0"), "`--buffer-size` must be at least 1"),
        (("--segmentation", "nowhere"), "segmentation.json can't be read"),
        (("--data", "nowhere"), "`--data` nowhere must hold dict.SOURCE.txt and dict.TARGET.txt"),
        (("--input", "nowhere.txt"), "nowhere.txt can't be read"),
    ],
)
def test_wrong_values(translate, flags, message):
    status, out, err = translate(b"x\n", *flags)
    assert (status, out) == (2, b"")
    assert message in err


def test_text_without_a_recorded_segmentation(translate, copier, tmp_path):
    shutil.copytree(copier.parent.parent / "data", tmp_path / "data")
    (tmp_path / "data/segmentation.json").unlink()
    status, _, err = translate(f"{A}\n".encode(), "--data", str(tmp_path / "data"))
    assert status == 2
    assert "`--segmentation none`" in err
    status, out, _ = translate("▁the ▁lamp\n".encode(), "--data", str(tmp_path / "data"), "--segmentation", "none")
    assert status == 0
    assert "▁" in out.decode()


def test_two_dictionaries_for_shared_embeddings_are_refused(translate, copier, tmp_path):
    shutil.copytree(copier.parent.parent / "data", tmp_path / "data")
    path = tmp_path / "data/dict.de.txt"
    path.write_text("".join(reversed(path.read_text().splitlines(keepends=True))))
    status, _, err = translate(b"x\n", "--data", str(tmp_path / "data"))
    assert status == 2
    assert "was trained with other symbols than those of dict.de.txt" in err


def test_dictionaries_of_other_data_are_refused(translate, copier, tmp_path):
    shutil.copytree(copier.parent.parent / "data", tmp_path / "data")
    for lang in ("en", "de"):
        path = tmp_path / "data" / f"dict.{lang}.txt"
        path.write_text(path.read_text() + "more 1\n")
    status, _, err = translate(b"x\n", "--data", str(tmp_path / "data"))
    assert status == 2
    assert "was trained with other symbols than those of dict.de.txt, dict.en.txt" in err
