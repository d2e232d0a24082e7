"""The paper's decoding speeds beside the predictions, and the constants that were fitted to four of them."""

import pytest
from fairseq_for_tests import REPOSITORY

from owf_fairseq.cost_model import paper_speed
from owf_fairseq.cost_model.device_profiles import V100, V100_ROOFLINE
from owf_fairseq.cost_model.paper_speed import compare_batch_sizes, compare_rows, shape_of_row
from owf_fairseq.paper import rows as paper
from owf_fairseq.paper.rows import batch_rows
from owf_fairseq.sharing import ARCHS


def test_the_constants_are_the_fitted_ones():
    fitted = paper_speed.fit_v100()
    for name in ("efficiency", "attention_overhead", "ffn_overhead", "step_overhead"):
        assert getattr(V100, name) == pytest.approx(getattr(fitted, name), rel=1e-3), name
    for name in ("flops", "half_flops", "bandwidth"):
        assert getattr(V100, name) == getattr(fitted, name) == getattr(V100_ROOFLINE, name)


def test_the_fit_meets_its_four_speeds():
    rows = {row["arch"]: row for row in compare_rows().data if row["fitted"]}
    assert set(rows) == {"owf_big", "owf_big_no_dec", "owf_deep_shallow"}
    for row in rows.values():
        assert row["predicted"] == pytest.approx(row["paper"], rel=2e-3)
    [at_32] = [row for row in compare_batch_sizes().data if row["batch_size"] == 32]
    assert at_32["predicted"]["baseline"] == pytest.approx(at_32["paper"]["baseline"], rel=2e-3)


def test_batch_table_is_the_papers():
    rows = batch_rows()
    assert [row.batch_size for row in rows] == [1, 2, 4, 8, 16, 32, 64, 128, 256, 512]
    for row in rows:
        assert row.speed_up == pytest.approx(100 * (row.one_wide / row.baseline - 1), abs=0.6)
        assert abs(row.batches - 2047 / row.batch_size) < 1
    assert (rows[0].baseline, rows[0].one_wide, rows[-1].one_wide_sd) == (110.8, 137.5, 32.6)
    theirs = REPOSITORY.parent / "shared" / "paper" / "batch_size.tsv"
    if not theirs.exists():
        pytest.skip(f"{theirs.name} of the paper's tables is not beside the repository")
    assert paper.BATCH_SIZES_FILE.read_text() == theirs.read_text()


def test_predicted_speed_ups_are_near_the_papers():
    """Within 8 percentage points at every batch size, and of the same sign."""
    for row in compare_batch_sizes().data:
        said, predicted = row["paper"]["speed_up"], row["predicted"]["speed_up"]
        assert abs(said - predicted) < 8, row
        assert said * predicted > 0, row


def test_every_speed_of_the_paper_has_a_row():
    data = compare_rows().data
    expected = {
        (row.pair, row.arch, row.shared_ffn_dim) for row in paper.rows() if row.tokens_per_s and row.arch in ARCHS
    }
    assert len(data) == len(expected) >= 20
    wide = {row["row"]: row for row in data if row["pair"] == "en-de" and row["size"] == "big"}
    assert wide["SharedEncNoDec 49152"]["paper"] == 137.5
    assert wide["SharedEncNoDec 98304"]["predicted"] < wide["SharedEncNoDec 24576"]["predicted"]
    assert wide["Transformer Big"]["speed_up"] == 1


def widths(row):
    shape = shape_of_row(row)
    return tuple(layer.ffn for layer in shape.encoder), tuple(layer.ffn for layer in shape.decoder)


def test_a_row_has_the_width_that_it_names():
    [row] = [row for row in paper.rows() if row.table == "one_wide" and row.shared_ffn_dim == 24_576]
    assert widths(row) == ((24_576,) * 6, (0,) * 6)
    [row] = [row for row in paper.rows() if row.table == "dropping" and row.configuration == "no_enc_shared_dec"]
    assert widths(row) == ((0,) * 6, (4096,) * 6)
