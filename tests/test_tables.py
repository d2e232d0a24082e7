"""Tables, character by character."""

import json

from owf_fairseq.tables import Report, markdown_table, number, text_table

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


def test_report():
    report = Report(HEADER, ROWS, {"n": 1000}, notes=("First.", "Second."), words=(0, 2))
    assert report.as_text() == text_table(HEADER, ROWS, words=(0, 2)) + "\n\nFirst.\nSecond."
    assert report.as_markdown() == markdown_table(HEADER, ROWS, words=(0, 2)) + "\n\nFirst.\nSecond."
    assert json.loads(report.as_json()) == {"n": 1000}
    assert Report(HEADER, ROWS, None).as_text() == text_table(HEADER, ROWS)


def test_numbers():
    assert [number(None), number(0), number(49_152), number(1234.56, 1)] == ["-", "0", "49,152", "1,234.6"]
