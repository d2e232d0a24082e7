"""Text that shows nothing is empty, and a byte order mark before text is none of it, in every command."""

import unicodedata

import pytest

from owf_fairseq.data.pairs import Rules, copy_pairs
from owf_fairseq.data.segmentation import NoSegmentation, clean
from owf_fairseq.files.visible import is_blank, shown
from owf_fairseq.scoring.inputs import read_text

NOTHING = [
    "",
    " ",
    "\u200b",
    "\ufeff",
    "\u2060",
    "\u200b \u200c\u200d",
    "\u00ad",
    "\u3164",
    "\ufe0f",
    "\u200e\t",
    "\u2581",
]
REAL = {
    "Persian": "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",  # a non-joiner inside a word
    "Hindi": "\u0915\u094d\u200d\u0937",
    "a family": "\U0001f468\u200d\U0001f469\u200d\U0001f467",
    "a heart": "\u2764\ufe0f",
    "a number sign": "\u0600",
    "a mark of direction": "\u200fabc",
    "a mark inside": "a\ufeffb",
}


@pytest.mark.parametrize("line", NOTHING, ids=ascii)
def test_what_shows_nothing_is_empty_everywhere(line, tmp_path):
    assert is_blank(line)
    assert shown(line) == clean(line) == NoSegmentation.clean(line) == ""
    paths = tmp_path / "a.en", tmp_path / "a.de"
    paths[0].write_text(f"one\n{line}\nthree\n", "utf-8")
    paths[1].write_text("eins\nzwei\ndrei\n", "utf-8")
    copied = copy_pairs([paths], (tmp_path / "b.en", tmp_path / "b.de"), Rules(drop_empty=True))
    assert (copied.written, copied.empty) == (2, 1)
    assert read_text(str(paths[0])).lines == ["one", "", "three"]


@pytest.mark.parametrize("what", REAL)
def test_real_text_stays_as_it_is(what, tmp_path):
    text = unicodedata.normalize("NFC", REAL[what])
    assert not is_blank(text)
    assert clean(text) == shown(text) == NoSegmentation.clean(text) == text
    paths = tmp_path / "a.en", tmp_path / "a.de"
    for path in paths:
        path.write_text(f"{text}\n", "utf-8")
    copy_pairs([paths], (tmp_path / "b.en", tmp_path / "b.de"), Rules(drop_empty=True))
    assert (tmp_path / "b.en").read_text("utf-8") == f"{text}\n"
    assert read_text(str(paths[0])).lines == [text]


def test_a_byte_order_mark_before_a_line_is_none_of_the_text(tmp_path):
    # as `cat one two` leaves it, where both begin with one
    paths = tmp_path / "a.en", tmp_path / "a.de"
    paths[0].write_text("\ufeffone\n\ufefftwo\n", "utf-8")
    paths[1].write_text("eins\nzwei\n", "utf-8")
    copy_pairs([paths], (tmp_path / "b.en", tmp_path / "b.de"))
    assert (tmp_path / "b.en").read_text("utf-8") == "one\ntwo\n"
    assert read_text(str(paths[0])).lines == ["one", "two"]
    assert clean("\ufeff one") == clean(" \ufeffone") == NoSegmentation.clean("\ufeffone") == "one"
