"""Text in pieces and back, for every kind of segmentation that can be recorded."""

import json
import shutil

import pytest

from owf_fairseq import cli
from owf_fairseq.data.languages import has_spaces, short_code
from owf_fairseq.data.segmentation import KINDS, SEGMENTATION_RECORD, Segmentation
from owf_fairseq.errors import InputError
from owf_fairseq.files.lines import read_lines

LINES = ['He said: "well-known (and cheap), is it?" 5 < 6 & more.', "The lamp opens the door, slowly."] * 30


@pytest.fixture(scope="module", params=sorted(KINDS))
def prepared(request, tmp_path_factory):
    """Kind and folder of prepared data, whose German is its English."""
    folder = tmp_path_factory.mktemp(request.param)
    for split in ("train", "valid"):
        for lang in ("en", "de"):
            (folder / f"{split}.{lang}").write_text("\n".join(LINES) + "\n")
    flags = ["--train", str(folder / "train"), "--valid", str(folder / "valid"), "--langs", "en-de"]
    flags += [
        "--vocab-size",
        "30" if request.param == "moses-bpe" else "80",
        "--segmentation",
        request.param.removeprefix("separate-"),
        "--output",
        str(folder / "data"),
    ]
    flags += ["--separate-vocabularies"] if request.param.startswith("separate-") else []
    assert cli.main(["prepare", *flags]) == 0
    return request.param, folder / "data"


def test_kinds_are_there():
    assert set(KINDS) == {"sentencepiece", "separate-sentencepiece", "moses-bpe", "none"}


def test_text_comes_back(prepared):
    _, folder = prepared
    segmentation = Segmentation.load(folder)
    for lang in ("en", "de"):
        encoded = read_lines(folder / "encoded" / f"train.{lang}")
        assert encoded == [segmentation.encode(line, lang) for line in LINES]
        assert [segmentation.decode(line) for line in encoded] == LINES
    assert segmentation.encode("") == ""


def test_every_piece_is_in_the_dictionary(prepared):
    kind, folder = prepared
    known = {line.split(" ")[0] for line in read_lines(folder / "dict.en.txt")}
    pieces = {piece for line in read_lines(folder / "encoded/train.en") for piece in line.split(" ")}
    assert pieces <= known
    if kind == "moses-bpe":
        assert any(piece.endswith("@@") for piece in pieces)
        assert "&quot;" in pieces | {piece.removesuffix("@@") for piece in pieces}


def test_spellings_of_special_symbols_are_unknown(prepared):
    _, folder = prepared
    pieces = Segmentation.load(folder).encode("the </s> <pad> door").split(" ")
    assert not {"</s>", "<pad>", "<s>"} & set(pieces)


def test_text_in_pieces_is_left_as_it_is():
    segmentation = KINDS["none"]("en", "de")
    assert segmentation.encode("▁the  ▁la\u2028mp\x00 ") == "▁the ▁la mp"


def test_damaged_files_are_named(prepared, tmp_path):
    kind, folder = prepared
    record = json.loads((folder / SEGMENTATION_RECORD).read_text())
    for name in KINDS[kind].FILES:
        shutil.copytree(folder, tmp_path / name)
        (tmp_path / name / record[name]).unlink()
        with pytest.raises(InputError, match=rf"names {record[name]}, which is not in"):
            Segmentation.load(tmp_path / name)
        (tmp_path / name / record[name]).write_text("nothing of the kind")
        with pytest.raises(InputError, match=rf"{record[name]} (is|holds) (no|not a) "):
            Segmentation.load(tmp_path / name)


@pytest.mark.parametrize("record", ["[]", '{"type": ["none"]}', '{"type": "none", "source": 1, "target": "de"}', "{"])
def test_malformed_records_are_named(tmp_path, record):
    (tmp_path / SEGMENTATION_RECORD).write_text(record)
    with pytest.raises(InputError, match=r"segmentation\.json (can't be read|lacks source|is of type)"):
        Segmentation.load(tmp_path)


def test_languages_for_moses():
    assert [short_code(lang) for lang in ("en", "pt_BR", "zh-Hans", "ron", "eng_Latn")] == [
        "en", "pt", "zh", "ro", "en"
    ]  # fmt: skip


def test_languages_without_spaces_whatever_their_code():
    assert [has_spaces(lang) for lang in ("en", "ko", "eng_Latn", "vi")] == [True] * 4
    without = ("zh", "zho_Hans", "zh-TW", "ja", "jpn", "th", "tha", "km", "khm", "lo", "my", "mya", "bo", "bod", "yue")
    assert [has_spaces(lang) for lang in without] == [False] * len(without)


def test_an_unknown_kind_is_refused(tmp_path, capsys):
    flags = ["--train", str(tmp_path / "train"), "--valid", str(tmp_path / "valid"), "--langs", "en-de"]
    assert cli.main(["prepare", *flags, "--segmentation", "bpe", "--output", str(tmp_path / "data")]) == 2
    assert "`--segmentation` must be one of sentencepiece, moses-bpe, none, but is 'bpe'" in capsys.readouterr().err
