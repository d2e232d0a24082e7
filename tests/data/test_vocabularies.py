"""Which vocabulary `owf prepare` makes: one for each language, of text in small letters, of normalised text."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from prepare_for_tests import SIZE, read_binary, write_corpus

from owf_fairseq import cli
from owf_fairseq.data.prepare import prepare
from owf_fairseq.data.recorded import RecordedData
from owf_fairseq.data.segmentation import SPECIALS, Segmentation
from owf_fairseq.errors import InputError
from owf_fairseq.files.fingerprint import fingerprint
from owf_fairseq.files.lines import read_lines, write_lines


def own_pieces(folder: Path, side: str) -> set[str]:
    """The pieces of a side's model, read by SentencePiece itself."""
    import sentencepiece

    model = sentencepiece.SentencePieceProcessor(model_file=str(folder / f"sentencepiece.{side}.model"))
    return {model.id_to_piece(n) for n in range(model.get_piece_size())} - set(SPECIALS)


@pytest.fixture(scope="module")
def separate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """English in small letters, German in capitals: hardly a piece is of both."""
    folder = tmp_path_factory.mktemp("separate")
    prepare(write_corpus(folder), "en-de", folder / "data", vocab_size=40, separate_vocabularies=True)
    return folder / "data"


def test_each_language_has_its_model_and_the_dictionary_the_pieces_of_both(separate: Path) -> None:
    source, target = own_pieces(separate, "source"), own_pieces(separate, "target")
    assert all(30 < len(pieces) <= 40 - len(SPECIALS) for pieces in (source, target))
    assert not any(piece != piece.lower() for piece in source)
    assert not any(piece != piece.upper() for piece in target)
    symbols = [line.split(" ")[0] for line in read_lines(separate / "dict.en.txt")]
    assert {symbol for symbol in symbols if not symbol.startswith("madeupword")} == source | target
    assert (len(SPECIALS) + len(symbols)) % 8 == 0
    assert (separate / "dict.en.txt").read_bytes() == (separate / "dict.de.txt").read_bytes()
    for lang, pieces in (("en", source), ("de", target)):
        assert {piece for line in read_binary(separate, "train", lang) for piece in line.split()} <= {*pieces, "</s>"}


def test_text_is_cut_by_the_model_of_its_language(separate: Path) -> None:
    segmentation = RecordedData(separate, "en", "de").segmentation()
    assert set(segmentation.encode("the lamp").split()) <= own_pieces(separate, "source")
    assert segmentation.decode(segmentation.encode("THE LAMP", "de")) == "THE LAMP"
    assert "▁THE" in segmentation.encode("THE LAMP", "de").split()
    assert "▁THE" not in segmentation.encode("THE LAMP", "en").split()
    with pytest.raises(InputError, match="a vocabulary for en and one for de, but none for fr"):
        segmentation.encode("la lampe", "fr")
    named = {path.name for path in RecordedData(separate, "en", "de").files()}
    assert named >= {"sentencepiece.source.model", "sentencepiece.target.model"}


def test_the_other_way_takes_the_models_over(separate: Path, tmp_path: Path) -> None:
    prefixes = write_corpus(tmp_path)
    prepare(prefixes, "de-en", tmp_path / "back", like=separate)
    back, there = Segmentation.load(tmp_path / "back"), Segmentation.load(separate)
    for lang, line in (("en", "the lamp opens"), ("de", "THE LAMP OPENS")):
        assert back.encode(line, lang) == there.encode(line, lang)
    assert back.source == "de"
    write_corpus(tmp_path, target="fr")
    with pytest.raises(InputError, match=r"`--like` .*a vocabulary for en and one for de, and `--langs` is en-fr"):
        prepare(prefixes, "en-fr", tmp_path / "french", like=separate)


@pytest.mark.parametrize(
    ("flags", "problem"),
    [
        ({"segmentation": "moses-bpe"}, "`--separate-vocabularies` is for sentencepiece, not for `--segmentation` mos"),
        ({"segmentation_text": ["{}/train.en"]}, "leave out `--segmentation-text`"),
        ({"like": "{}"}, "leave out `--separate-vocabularies`"),
    ],
)
def test_separate_vocabularies_of_nothing_to_separate(tmp_path: Path, flags: dict, problem: str) -> None:
    prefixes = write_corpus(tmp_path)
    flags = {name: [v.format(tmp_path) for v in value] if name[-1] == "t" else value for name, value in flags.items()}
    with pytest.raises(InputError, match=problem):
        prepare(prefixes, "en-de", tmp_path / "data", separate_vocabularies=True, **flags)


@pytest.mark.parametrize("kind", ["sentencepiece", "moses-bpe"])
def test_small_letters_are_recorded(tmp_path: Path, kind: str) -> None:
    """Without a flag, text is cut as it was for the training; a model of one is not one of the other."""
    lines = ["Mr. Lamp sees THE DOOR. The End is slow.", "He said: THE LAMP opens."] * 30
    for split in ("train", "valid"):
        for lang in ("en", "de"):
            write_lines(tmp_path / f"{split}.{lang}", lines)
    prefixes = {split: str(tmp_path / split) for split in ("train", "valid")}
    for name, lowercase in (("small", True), ("as-is", False)):
        prepare(prefixes, "en-de", tmp_path / name, 50, segmentation=kind, lowercase=lowercase)
    small, as_is = (Segmentation.load(tmp_path / name) for name in ("small", "as-is"))
    encoded = small.encode("The LAMP")
    assert encoded == small.encode("the lamp") != as_is.encode("The LAMP")
    assert "<unk>" not in encoded
    assert small.decode(small.encode(lines[0])) == lines[0].lower()
    assert read_lines(tmp_path / "small/encoded/train.en")[0] == small.encode(lines[0])
    before, after = (fingerprint(tmp_path / name)["segmentation.json"] for name in ("small", "as-is"))
    assert before != after
    prepare(prefixes, "en-de", tmp_path / "more", like=tmp_path / "small")
    assert Segmentation.load(tmp_path / "more").encode("The LAMP") == encoded


def test_moses_sees_the_capitals_first(tmp_path: Path) -> None:
    """Of small letters alone it takes a full stop before a word for an abbreviation's."""
    for split in ("train", "valid"):
        for lang in ("en", "de"):
            write_lines(tmp_path / f"{split}.{lang}", ["It is so. The end."] * 9)
    prefixes = {split: str(tmp_path / split) for split in ("train", "valid")}
    prepare(prefixes, "en-de", tmp_path / "data", 30, segmentation="moses-bpe", lowercase=True)
    assert read_lines(tmp_path / "data/encoded/train.en")[0].replace("@@ ", "") == "it is so . the end ."


def test_a_rule_of_normalisation_is_in_the_model(tmp_path: Path) -> None:
    prefixes = write_corpus(tmp_path)
    for rule in ("identity", "nfkc", "nmt_nfkc_cf"):
        prepare(prefixes, "en-de", tmp_path / rule, vocab_size=SIZE, normalization=rule)
        record = json.loads((tmp_path / rule / "segmentation.json").read_text())
        assert record["normalization"] == rule
    wide = "\uff4c\uff41\uff4d\uff50"  # "lamp" in full width
    encoded = {rule: Segmentation.load(tmp_path / rule).encode(wide) for rule in ("identity", "nfkc")}
    assert encoded["nfkc"] == Segmentation.load(tmp_path / "nfkc").encode("lamp") != encoded["identity"]
    folded = Segmentation.load(tmp_path / "nmt_nfkc_cf")
    assert folded.decode(folded.encode("THE LAMP")) == "the lamp"
    prepare(prefixes, "en-de", tmp_path / "default", vocab_size=SIZE)
    model = "sentencepiece.model"
    assert (tmp_path / "default" / model).read_bytes() == (tmp_path / "identity" / model).read_bytes()


def test_a_rule_that_there_is_not(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    prefixes = write_corpus(tmp_path)
    flags = [word for split in ("train", "valid") for word in (f"--{split}", prefixes[split])]
    flags += [
        "--langs",
        "en-de",
        "--output",
        str(tmp_path / "data"),
        "--normalization",
        "nfc",
        "--segmentation",
        "none",
    ]
    assert cli.main(["prepare", *flags]) == 2
    err = capsys.readouterr().err
    assert "`--normalization` must be one of identity, nmt_nfkc, nmt_nfkc_cf, nfkc, nfkc_cf, but is 'nfc'" in err
    assert "`--normalization` is for sentencepiece, not for `--segmentation` none" in err
