"""Where lines are cut that are too long for a model."""

import pytest

from owf_fairseq.decoding.long_lines import split_to_fit


def letters(text):
    """A length for these tests: letters and signs, without spaces."""
    return len(text.replace(" ", ""))


@pytest.mark.parametrize(
    ("text", "limit", "parts"),
    [
        ("one two.", 10, ["one two."]),
        ("One two. Three four! Five?", 10, ["One two.", "Three four!", "Five?"]),
        (
            'He said "no." She went (out.) Then 3.5 more.',
            12,
            ['He said "no."', "She went", "(out.)", "Then 3.5 more."],
        ),
        ("一二三。四五六！七", 4, ["一二三。", "四五六！", "七"]),
        ("「一。」二三四五", 4, ["「一。」", "二三四五"]),
        ("aaaa bbb cc", 7, ["aaaa bbb", "cc"]),
        ("aaaaaaaaaa", 4, ["aaaa", "aaaa", "aa"]),
        ("b aaaaaaaaaa c", 4, ["b", "aaaa", "aaaa", "aa c"]),
    ],
)
def test_parts(text, limit, parts):
    assert split_to_fit(text, letters, limit) == parts
    assert all(letters(part) <= limit for part in parts)


def test_nothing_is_lost_and_everything_fits():
    text = "Ein Satz. " * 30 + "w" * 200 + " und " + "noch ein paar Wörter " * 40
    for limit in (1, 2, 5, 17, 60, 400, 5000):
        parts = split_to_fit(text.strip(), letters, limit)
        assert "".join(parts).replace(" ", "") == text.replace(" ", "")
        assert max(map(letters, parts)) <= limit


def test_the_time_for_an_endless_word_grows_with_its_length():
    measured = []

    def length(text):
        measured.append(len(text))
        return len(text)

    parts = split_to_fit("a" * 100_000, length, 100)
    assert [len(part) for part in parts] == [100] * 1000
    assert sum(measured) < 5_000_000
