"""Tables, character by character."""

from owf_fairseq.tables import markdown_table, text_table

HEADER, ROWS = ("arch", "n", "note"), [["owf_big", "1,000", "a|b"], ["x", "7", ""]]


def test_text():
    assert text_table(HEADER, ROWS, words=(0, 2)).splitlines() == [
        "arch         n  note",
        "-------  -----  ----",
        "owf_big  1,000  a|b",
        "x            7",
    ]


def test_markdown():
    assert markdown_table(HEADER, ROWS).splitlines() == [
        "| arch | n | note |",
        "| --- | ---: | ---: |",
        "| owf_big | 1,000 | a\\|b |",
        "| x | 7 |  |",
    ]
