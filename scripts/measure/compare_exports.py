"""Whether CTranslate2 translates as fairseq does: exports trained models, translates a text with both, and compares.

example:
  python scripts/measure/compare_exports.py runs/quickstart-en-de/owf_small/checkpoint_best.pt \\
      runs/quickstart-en-de/owf_small_one_wide_ffn/checkpoint_best.pt \\
      --input runs/quickstart-en-de/raw/test.en --ref runs/quickstart-en-de/raw/test.de

For each model and precision: the file's size, the largest difference of a token's log-probability, how many of the best
hypotheses (beam 5) are the same, and BLEU beside fairseq's. Sentences that differ are listed on standard error.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from functools import partial
from pathlib import Path

from owf_fairseq.decoding.backends import load_backend
from owf_fairseq.decoding.exported import QUANTIZATIONS
from owf_fairseq.decoding.translator import Translator
from owf_fairseq.errors import InputError, collect
from owf_fairseq.export.export import export
from owf_fairseq.files.lines import read_lines
from owf_fairseq.files.outputs import check_output_file, write_output
from owf_fairseq.progress import Progress
from owf_fairseq.tables import Report, number

KIND = "exports"
"""What the JSON says that it is."""

HEADER = ["model", "precision", "bytes", "per parameter", "largest difference", "same translation", "BLEU", "fairseq's"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoints", nargs="+", metavar="CHECKPOINT", help="of encoder-decoder models")
    parser.add_argument("--input", required=True, metavar="FILE", help="text in the source language")
    parser.add_argument("--ref", required=True, metavar="FILE", help="its reference translation")
    parser.add_argument("--quantizations", nargs="+", default=["float32", "int8"], choices=QUANTIZATIONS)
    parser.add_argument(
        "--lines", type=int, default=500, metavar="N", help="of the text, from its start (default: 500)"
    )
    parser.add_argument("--json", metavar="FILE", help="write the numbers as JSON")
    args = parser.parse_args()
    try:
        lines, references = read_text(args)
        rows = [row for path in args.checkpoints for row in compare(path, lines, references, args.quantizations)]
    except InputError as error:
        print("\n".join(error.problems), file=sys.stderr)
        return 2
    notes = [f"{len(lines)} sentences, beam 5; a difference is that of a token's log-probability (natural)"]
    listed = [dict(zip(HEADER, row, strict=True)) for row in rows]
    table = Report(HEADER, rows, {"kind": KIND, "lines": len(lines), "rows": listed})
    print(table.as_markdown())
    print(f"\n{notes[0]}")
    if args.json:
        write_output("--json", args.json, table.as_json().split("\n"))
    return 0


def read_text(args: argparse.Namespace) -> tuple[list[str], list[str]]:
    """Both sides; refuses what would fail only after the work."""
    problems = check_output_file("--json", args.json, overwrite=False, kind=KIND, inputs=[args.input, args.ref])
    if args.lines < 1:
        problems.append(f"`--lines` must be at least 1, but is {args.lines}")
    source, reference = (collect(problems, partial(read_lines, path)) or [] for path in (args.input, args.ref))
    if len(source) != len(reference):
        problems.append(f"`--input` has {len(source)} lines, and `--ref` {len(reference)}: they must be as many")
    if problems:
        raise InputError(problems)
    return source[: args.lines], reference[: args.lines]


def compare(path: str, lines: list[str], references: list[str], quantizations: list[str]) -> list[list[str]]:
    """The rows of one model."""
    name = os.path.basename(os.path.dirname(os.path.abspath(path)))
    theirs = translate(path, lines)
    rows = []
    with tempfile.TemporaryDirectory() as place:
        source = Path(place) / "source"
        source.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        for quantization in quantizations:
            made = export(path, Path(place) / quantization, quantization, verify_on=source)
            ours = translate(str(made.folder), lines)
            for line, (one, other) in enumerate(zip(theirs, ours, strict=True), 1):
                if one != other and quantization == "float32":
                    print(f"{name}, line {line}:\n  fairseq      {one}\n  ctranslate2  {other}", file=sys.stderr)
            same = sum(one == other for one, other in zip(theirs, ours, strict=True))
            rows.append(
                [
                    *(name, quantization, number(made.weights_bytes), f"{made.weights_bytes / made.parameters:.3f}"),
                    *(f"{made.verification.largest:.1e}", f"{same} of {len(lines)}"),
                    *(f"{bleu(ours, references):.2f}", f"{bleu(theirs, references):.2f}"),
                ]
            )
    return rows


def translate(model: str, lines: list[str]) -> list[str]:
    """The best translation of each line, on the CPU."""
    backend = load_backend(model, cpu=True)
    translator = Translator(backend, backend.segmentation())
    with Progress("sentences", len(lines), label=backend.name) as progress:
        return [best.text for best, *_ in translator.translate(lines, progress)]


def bleu(hypotheses: list[str], references: list[str]) -> float:
    """sacreBLEU's, with its default tokenizer."""
    import sacrebleu

    return float(sacrebleu.corpus_bleu(hypotheses, [references]).score)


if __name__ == "__main__":
    sys.exit(main())
