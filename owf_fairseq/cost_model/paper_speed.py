"""The paper's decoding speeds beside the cost model's, and the fit of the model's constants for the paper's GPU.

Source: Pires, Lopes, Assogba and Setiawan (2023, arXiv:2309.01826). Speeds of its tables are in
``paper/results.tsv``, those of its appendix on the batch size in ``paper/batch_sizes.tsv``, as printed. They were
measured with one V100 GPU and a single-threaded Xeon Gold 6148, batch size 1 and beam 5, over five runs. Not stated,
and assumed here: fairseq's float32, and 26 and 30 pieces of a sentence.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from owf_fairseq.cost_model.cost import ModelShape, Workload, shape_of_arch
from owf_fairseq.cost_model.device_profiles import V100, V100_ROOFLINE, DeviceProfile
from owf_fairseq.paper import rows as paper
from owf_fairseq.sharing import ARCHS
from owf_fairseq.tables import Report, number

INDIVIDUAL_BIG, ONE_WIDE_BIG = "owf_big", "owf_big_one_wide_ffn"
VOCAB_SIZE = paper.VOCAB_SIZES["en-de"]
WORKLOAD = Workload(batch_size=1, beam=5, source_length=26, target_length=30)


def shape_of_row(row: paper.PaperRow) -> ModelShape:
    """The model of a row of the paper's tables."""
    flags = row.ffn_flags
    widths = {flag.split("-")[2]: int(width) for flag, width in zip(flags[::2], flags[1::2], strict=True)}
    return shape_of_arch(row.arch, row.vocab_size, widths)


FITTED = (("owf_big", 1), ("owf_big_no_dec", 1), ("owf_deep_shallow", 1), ("owf_big", 32))
"""Arch and batch size of the speeds that the constants are fitted to."""


def fit_v100() -> DeviceProfile:
    """The data sheet's V100 with the four constants that give the four speeds of ``FITTED`` exactly.

    With a given efficiency the three overheads follow from the three speeds at batch size 1, which are linear in them;
    the efficiency is then the one that gives the speed at batch size 32.
    """
    import numpy as np

    speeds = {(row.arch, 1): row.tokens_per_s for row in paper.rows() if row.tokens_per_s and row.pair == "en-de"}
    speeds |= {(INDIVIDUAL_BIG, row.batch_size): row.baseline for row in paper.batch_rows()}
    *singles, (arch, batch_size) = FITTED
    shapes = {name: shape_of_arch(name, VOCAB_SIZE) for name, _ in FITTED}

    def with_overheads(efficiency: float) -> DeviceProfile:
        profile = replace(V100_ROOFLINE, efficiency=efficiency)
        equations = []
        for key in singles:
            shape, speed = shapes[key[0]], speeds[key]
            assert speed is not None
            seconds = profile.seconds(shape, WORKLOAD)
            one_second_each = (
                replace(profile, attention_overhead=1.0),
                replace(profile, ffn_overhead=1.0),
                replace(profile, step_overhead=1.0),
            )
            counts = [other.seconds(shape, WORKLOAD) - seconds for other in one_second_each]
            equations.append([*counts, WORKLOAD.generated_tokens / speed - seconds])
        table = np.array(equations)
        attention, ffn, step = map(float, np.linalg.solve(table[:, :-1], table[:, -1]))
        return replace(profile, attention_overhead=attention, ffn_overhead=ffn, step_overhead=step)

    low, high = 0.05, 1.0
    wanted, at = speeds[arch, batch_size], replace(WORKLOAD, batch_size=batch_size)
    assert wanted is not None
    for _ in range(40):
        middle = (low + high) / 2
        is_slow = with_overheads(middle).tokens_per_s(shapes[arch], at) < wanted
        low, high = (middle, high) if is_slow else (low, middle)
    return with_overheads(low)


def compare_batch_sizes() -> Report:
    """The paper's table of batch sizes beside two predictions: with the fitted constants, and from the data sheet."""
    baseline, one_wide = shape_of_arch(INDIVIDUAL_BIG, VOCAB_SIZE), shape_of_arch(ONE_WIDE_BIG, VOCAB_SIZE)
    cells, data = [], []
    for row in paper.batch_rows():
        at = replace(WORKLOAD, batch_size=row.batch_size)
        predicted = [V100.tokens_per_s(shape, at) for shape in (baseline, one_wide)]
        sheet = [V100_ROOFLINE.tokens_per_s(shape, at) for shape in (baseline, one_wide)]
        speed_up, sheet_speed_up = (100 * (other / first - 1) for first, other in (predicted, sheet))
        cells.append(
            [
                *(str(row.batch_size), f"{row.baseline:,.1f}", f"{row.one_wide:,.1f}", f"{row.speed_up:+d}"),
                *(f"{predicted[0]:,.1f}", f"{predicted[1]:,.1f}", f"{speed_up:+.0f}", f"{sheet_speed_up:+.0f}"),
            ]
        )
        data.append(
            {
                "batch_size": row.batch_size,
                "paper": {"baseline": row.baseline, "one_wide": row.one_wide, "speed_up": row.speed_up},
                "predicted": {"baseline": predicted[0], "one_wide": predicted[1], "speed_up": speed_up},
                "data_sheet": {"baseline": sheet[0], "one_wide": sheet[1], "speed_up": sheet_speed_up},
            }
        )
    header = (
        *("batch size", "Transformer Big", "One Wide FFN", "speed-up, %"),
        *("predicted: Big", "One Wide FFN", "speed-up, %", "data sheet alone: speed-up, %"),
    )
    ends = [profile.break_even(baseline, one_wide, WORKLOAD) for profile in (V100, V100_ROOFLINE)]
    notes = (
        "Tokens a second. Predicted: with four constants fitted to four of the paper's speeds (Big here at 1 and 32).",
        f"One Wide FFN stops being ahead at batch size {ends[0]} (predicted), {ends[1]} (from the data sheet alone); "
        "in the paper between 16 and 32.",
    )
    return Report(header, cells, data, notes, words=())


def compare_rows() -> Report:
    """Every speed of the paper's other tables beside the prediction."""
    rows = [row for row in paper.rows() if row.tokens_per_s is not None and row.arch in ARCHS]
    baselines = {(row.pair, row.size): row for row in _without_repeated(rows) if row.configuration == "individual"}
    cells, data = [], []
    for row in _without_repeated(rows):
        first = baselines[row.pair, row.size]
        assert row.tokens_per_s is not None
        assert first.tokens_per_s is not None
        predicted, of_first = (V100.tokens_per_s(shape_of_row(one), WORKLOAD) for one in (row, first))
        fitted = (row.arch, 1) in FITTED and row.pair == "en-de"
        speed_up, predicted_speed_up = row.tokens_per_s / first.tokens_per_s, predicted / of_first
        ratios = ["", ""] if row is first else [f"{100 * (x - 1):+.0f}" for x in (speed_up, predicted_speed_up)]
        cells.append(
            [
                *(row.pair, row.size.replace("_", " "), row.row, number(row.tokens_per_s, 1)),
                *(number(predicted, 1) + (" (fitted)" if fitted else ""), *ratios),
            ]
        )
        data.append(
            {
                "pair": row.pair,
                "size": row.size,
                "row": row.row,
                "arch": row.arch,
                "fitted": fitted,
                "paper": row.tokens_per_s,
                "predicted": predicted,
                "speed_up": speed_up,
                "predicted_speed_up": predicted_speed_up,
            }
        )
    header = ("pair", "size", "row", "paper", "predicted", "speed-up, %", "predicted, %")
    return Report(header, cells, data, ("Tokens a second at batch size 1.",), words=(0, 1, 2))


def _without_repeated(rows: Iterable[paper.PaperRow]) -> list[paper.PaperRow]:
    """The rows with each model once: two tables have some of them, the later with one more digit."""
    return list({(row.pair, row.arch, row.shared_ffn_dim): row for row in rows}.values())
