"""fairseq-generate's output is put back into order, and sentences that it lost are noticed."""

from __future__ import annotations

from pathlib import Path

import pytest

from owf_fairseq.data.generated import read_generated
from owf_fairseq.data.lines import write_lines
from owf_fairseq.errors import InputError

HEAD = ["2026-11-29 12:00:00 | INFO | fairseq_cli.generate | loading model(s) from checkpoint.pt"]
SUMMARY = (
    "2026-11-29 12:00:00 | INFO | fairseq_cli.generate | "
    "Translated 3 sentences (1,013 tokens) in 20.3s (0.15 sentences/s, 50.00 tokens/s)"
)


def sentence(number: int, text: str) -> list[str]:
    scored = f"-0.5\t{text}"
    return [
        f"S-{number}\tsource",
        f"T-{number}\ttarget",
        f"H-{number}\t{scored}",
        f"D-{number}\t{scored}",
        f"P-{number}\t1",
    ]


def test_order_and_speed(tmp_path: Path) -> None:
    lines = [*HEAD, *sentence(2, "zwei"), *sentence(0, "null\tvier"), *sentence(1, ""), SUMMARY]
    write_lines(tmp_path / "out", lines)
    generated = read_generated(tmp_path / "out", 3)
    assert generated.hypotheses == ["null\tvier", "", "zwei"]
    assert generated.tokens == 1013 - 3
    assert generated.seconds == pytest.approx(1013 / 50)


@pytest.mark.parametrize(
    ("numbers", "messages"),
    [
        ([0, 1], ["has no translation of 1 of 3 sentences: 2"]),
        ([], ["has no translation of 3 of 3 sentences: 0, 1, 2"]),
        ([0, 1, 2, 1], ["has more than one translation of 1 of 3 sentences: 1"]),
        ([0, 1, 2, 3], ["has translations that the test set doesn't, of 1 of 3 sentences: 3"]),
        ([0, 1, 3], ["has no translation of 1 of 3 sentences: 2", "doesn't, of 1 of 3 sentences: 3"]),
    ],
)
def test_wrong_sentences(tmp_path: Path, numbers: list[int], messages: list[str]) -> None:
    write_lines(tmp_path / "out", [*HEAD, *(line for number in numbers for line in sentence(number, "Wort")), SUMMARY])
    with pytest.raises(InputError) as error:
        read_generated(tmp_path / "out", 3)
    assert len(error.value.problems) == len(messages)
    for problem, message in zip(error.value.problems, messages, strict=True):
        assert message in problem


def test_the_summary_may_be_in_the_log(tmp_path: Path) -> None:
    write_lines(tmp_path / "out", [line for number in range(3) for line in sentence(number, "Wort")])
    write_lines(tmp_path / "log", [*HEAD, "INFO:fairseq_cli.generate:" + SUMMARY.rpartition(" | ")[2]])
    assert read_generated(tmp_path / "out", 3, tmp_path / "log").tokens == 1010


def test_cut_off(tmp_path: Path) -> None:
    write_lines(tmp_path / "out", [*HEAD, *(line for number in range(3) for line in sentence(number, "Wort"))])
    with pytest.raises(InputError, match="cut off"):
        read_generated(tmp_path / "out", 3)
