"""The paper's rows."""

from collections import Counter

import pytest

from owf_fairseq.paper import counts
from owf_fairseq.paper import rows as paper
from owf_fairseq.sharing import ARCHS, CONFIGURATIONS

ROWS = paper.rows()


def row(label, table="other", size="big"):
    found = [row for row in ROWS if (row.row, row.table, row.size) == (label, table, size)]
    assert len(found) == 1
    return found[0]


def test_every_row_is_there():
    assert Counter(row.table for row in ROWS) == {
        "sharing": 5,
        "dropping": 6,
        "one_wide": 5,
        "other": 15,
        "custom_sharing": 8,
        "attention": 7,
    }


def test_a_row_in_full():
    assert row("SharedEncNoDec 49152", "one_wide") == paper.PaperRow(
        table="one_wide",
        row="SharedEncNoDec 49152",
        pair="en-de",
        size="big",
        configuration="shared_enc_no_dec",
        shared_ffn_dim=49152,
        bleu=36.5,
        chrf=63.2,
        comet=59.6,
        tokens_per_s=137.5,
        tokens_per_s_sd=1.6,
        params_millions=228,
        params_percent=100,
        significant_bleu=True,
        significant_chrf=True,
    )
    individual = row("Transformer Big", "sharing")
    assert (individual.shared_ffn_dim, individual.chrf, individual.significant_bleu) == (None, None, None)
    assert row("SharedEncNoDec 4096", "one_wide").significant_bleu is False


def test_every_row_has_an_arch():
    for each in ROWS:
        assert each.configuration in CONFIGURATIONS
        assert each.arch in ARCHS or each.size == "decoder_only"
        assert each.vocab_size == paper.VOCAB_SIZES[each.pair]


@pytest.mark.parametrize(
    ("label", "table", "size", "arch", "flags"),
    [
        ("Transformer Big", "one_wide", "big", "owf_big", []),
        (
            "SharedEncNoDec 24576",
            "one_wide",
            "big",
            "owf_big_shared_enc_no_dec",
            ["--encoder-ffn-embed-dim", "24576"],
        ),
        ("SharedDec", "sharing", "big", "owf_big_shared_dec", ["--decoder-ffn-embed-dim", "4096"]),
        (
            "SharedEncDec",
            "sharing",
            "big",
            "owf_big_shared_enc_dec",
            ["--encoder-ffn-embed-dim", "4096", "--decoder-ffn-embed-dim", "4096"],
        ),
        (
            "SharedDec 49152",
            "other",
            "decoder_only",
            "owf_decoder_only_shared_dec",
            ["--decoder-ffn-embed-dim", "49152"],
        ),
        ("Cycle Rev M=3", "custom_sharing", "big", "owf_big_cycle_rev_3", ["--encoder-ffn-embed-dim", "4096"]),
        ("NoDec", "dropping", "big", "owf_big_no_dec", []),
    ],
)
def test_arch_and_flags(label, table, size, arch, flags):
    found = row(label, table, size)
    assert (found.arch, found.ffn_flags) == (arch, flags)


def test_vocabularies():
    assert {(row.pair, row.vocab_size) for row in ROWS} == {("en-de", 50408), ("en-ro", 39840), ("multi", 240014)}


def test_slips_are_the_papers_own():
    slips = {(row.table, row.row): row.slip for row in ROWS if row.slip}
    assert set(slips) == {
        ("one_wide", "SharedEncNoDec 4096"),
        ("one_wide", "SharedEncNoDec 24576"),
        ("one_wide", "SharedEncNoDec 98304"),
        ("other", "SharedDec 4096"),
    }
    assert len(slips) == len(paper.SLIPS)
    for each in ROWS:
        if each.slip:
            assert getattr(each, each.slip.column) == each.slip.printed != each.slip.exact
    assert str(slips["one_wide", "SharedEncNoDec 24576"]) == "printed in the paper: 80 %, exact 78 %"


def test_a_row_without_its_arch_has_no_count(monkeypatch):
    monkeypatch.setattr(counts, "ARCHS", {})
    assert counts.count_row(ROWS[0]) is None
    report = counts.parameter_counts()
    assert all(cells[-1].startswith("this arch is not built yet") for cells in report.rows)
    assert all(line["total"] is None for line in report.data)


def test_the_report_sets_our_counts_beside_the_papers():
    report = counts.parameter_counts()
    assert len(report.rows) == len(report.data) == len(ROWS)
    for cells, line, each in zip(report.rows, report.data, ROWS, strict=True):
        assert len(cells) == len(report.header)
        assert (line["table"], line["row"], line["flags"]) == (each.table, each.row, each.ffn_flags)
        assert (line["paper_millions"], line["paper_percent"]) == (each.params_millions, each.params_percent)
        if each.arch in ARCHS:
            assert (cells[7], cells[9]) == (f"{line['total'] / 1e6:.1f}", f"{line['percent']:.1f}")
            assert cells[10] == line["note"] == str(each.slip or "")
