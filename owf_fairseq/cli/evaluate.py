"""`owf evaluate`: scores of translations, and whether systems differ."""

from __future__ import annotations

import argparse

HELP = "score translations with BLEU, chrF, spBLEU and COMET, and test whether systems differ significantly"
EXAMPLE = (
    "owf evaluate big.de one_wide_ffn.de --ref ref.de --baseline big --json scores.json\n"
    "owf evaluate big.de one_wide_ffn.de --ref ref.A.de ref.B.de --src src.en --metrics bleu chrf comet\n"
    "owf evaluate base.de base_no_dec.de big.de big_no_dec.de --ref ref.de --by-size\n"
    "owf evaluate runs/*_seed_*/test.de --ref ref.de --seeds --baseline big\n"
    "owf evaluate --directions runs/big runs/one_wide_ffn --ref flores --baseline big --metrics spbleu"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the flags of the subcommand."""
    from owf_fairseq.scoring.comet import DEFAULT_MODEL
    from owf_fairseq.scoring.direction_files import DIRECTIONS_LAYOUT

    parser.usage = "owf evaluate HYP [HYP ...] --ref REF [REF ...] [options]"
    parser.description = (
        f"{HELP}.\nTexts are plain and have one segment a line; line n of all files belongs together. A flag that "
        "takes several\nnames takes all up to the next flag: put hypotheses first, or after `--`. Warnings of what "
        "looks wrong with the\ntexts go to standard error."
    )
    parser.add_argument(
        "hypotheses",
        nargs="*",
        metavar="HYP",
        help="a file, or NAME=FILE to choose the system's name in the table (default: the file's name without "
        "its last ending; where several have the same one, that of the folder: owf_small/test.de and owf_big/test.de "
        "are owf_small and owf_big; else the path)",
    )
    parser.add_argument(
        "--ref",
        nargs="+",
        default=[],
        metavar="REF",
        help="one reference or more: BLEU and chrF are multi-reference scores then, COMET's is the mean over them. "
        "Needed by all but COMET's reference-free models",
    )
    parser.add_argument("--src", metavar="SRC", help="the source text; COMET needs it")
    parser.add_argument(
        "--baseline",
        action="append",
        default=[],
        metavar="HYP",
        help="compare all others with this one, given by its name in the table or its file, by paired bootstrap "
        "resampling: † marks p < 0.05; repeated, each system is compared with the last baseline that stands before it",
    )
    parser.add_argument(
        "--by-size",
        action="store_true",
        help="without --baseline: compare each with the individual model of its own size, as in the paper, where "
        "names say it as those of configs do: base_no_dec with base, big_no_dec with big; others with the first",
    )
    parser.add_argument(
        "--seeds",
        action="store_true",
        help="NAME_seed_1, NAME_seed_2, ..., as `owf train --seeds` names them, are runs of the configuration NAME: "
        "one row, mean ± standard deviation; --baseline names configurations, and the bootstrap draws runs too",
    )
    parser.add_argument(
        "--metrics",
        nargs="+",
        default=["bleu", "chrf"],
        metavar="METRIC",
        help="of bleu chrf spbleu comet (default: bleu chrf)",
    )
    parser.add_argument(
        "--directions",
        action="store_true",
        help="every name is a folder with files of many directions: scores of each, and of all together (comparing "
        "systems on 90 directions of 1,012 segments takes 7 GB of memory)",
    )
    parser.add_argument(
        "--target-lang",
        metavar="LANG",
        help="of the hypotheses: chooses BLEU's tokenizer, zh, ja-mecab, ko-mecab, or char for Thai, Lao, Khmer, "
        "Burmese and Tibetan (default, and for all others: 13a)",
    )
    parser.add_argument("--tokenize", metavar="NAME", help="sacreBLEU's tokenizer for BLEU, whatever the language")
    parser.add_argument(
        "--comet-model",
        metavar="MODEL",
        default=DEFAULT_MODEL,
        help="COMET's model: a name, a checkpoint, or the folder with hparams.yaml and checkpoints/ (default: the "
        f"paper's, {DEFAULT_MODEL})",
    )
    parser.add_argument("--cpu", action="store_true", help="use no GPU for COMET (default: use one if there is one)")
    parser.add_argument("--samples", type=int, default=1000, metavar="N", help="of the bootstrap (default: 1000)")
    parser.add_argument("--decimals", type=int, default=1, metavar="N", help="of scores in the table (default: 1)")
    parser.add_argument(
        "--json",
        metavar="FILE",
        help="also write everything as JSON, unrounded; the same command reads the scores from there, as long as no "
        "file has changed",
    )
    parser.add_argument("--overwrite", action="store_true", help="score again, and replace --json whatever it is")
    parser.add_argument("--markdown", action="store_true", help="print a Markdown table")
    parser.epilog = f"{DIRECTIONS_LAYOUT}\n\n{parser.epilog}"


def run(args: argparse.Namespace) -> int:
    """Prints one table, and writes the JSON."""
    import json
    import os
    import sys
    from pathlib import Path

    from owf_fairseq.errors import collect
    from owf_fairseq.files.job import Job, OutputFile
    from owf_fairseq.files.outputs import write_output
    from owf_fairseq.scoring import directions, evaluate
    from owf_fairseq.scoring.inputs import unnamed_systems
    from owf_fairseq.scoring.metrics import MetricSettings
    from owf_fairseq.screen import shown_after

    def warn(text: str) -> None:
        print(f"owf evaluate: warning: {text}", file=sys.stderr, flush=True)

    settings = MetricSettings(args.metrics, args.tokenize, args.comet_model, args.cpu, args.samples)
    texts = (args.hypotheses, args.ref, args.src)
    if args.directions:
        inputs = directions.input_files(*texts, args.baseline)
    else:
        given = unnamed_systems([*args.hypotheses, *(() if args.seeds else args.baseline)])
        inputs = [*given.values(), *args.ref, *([args.src] if args.src else [])]
    kind = "folder" if args.directions else "file"
    how = (args.baseline, kind, args.by_size)
    if args.seeds:
        grouped = collect([], lambda: evaluate.named_runs(args.hypotheses, args.baseline, args.by_size))
        systems, compared = (grouped[0], grouped[2]) if grouped else ({}, {})
    else:
        systems, compared = collect([], lambda: evaluate.named(args.hypotheses, *how)) or ({}, {})
    names = ("metrics", "directions", "target_lang", "tokenize", "comet_model", "samples")
    job = Job(
        "owf evaluate",
        {
            "HYP": list(systems),
            "--baseline": [f"{base} for {name}" for name, base in compared.items()],
            **({"--seeds": True} if args.seeds else {}),  # else absent, as in files that were written before
            **{f"--{name.replace('_', '-')}": getattr(args, name) for name in names},
        },
        {"files": [*inputs, *([args.comet_model] if os.path.exists(args.comet_model) else [])]},
        [OutputFile("--json", args.json, evaluate.EVALUATION_KIND)],
        overwrite=args.overwrite,
    )
    problems = []
    if args.decimals < 0:
        problems.append(f"`--decimals` must be 0 or more, but is {args.decimals}")
    if args.directions and not args.ref:
        problems.append("`--directions` needs `--ref`, the folder with the references, whatever the metric")
    if args.directions and args.target_lang:
        problems.append("`--target-lang` does not go with `--directions`: each direction has its own")
    if args.directions and args.seeds:
        problems.append("`--seeds` does not go with `--directions`: score one test set")
    make_report = directions.directions_report if args.directions else evaluate.evaluation_report
    if not problems and job.is_done():
        report = make_report(json.loads(Path(args.json).read_text(encoding="utf-8")), args.decimals)
        print(report.as_markdown() if args.markdown else report.as_text(), flush=True)
        return 0
    problems = job.problems() + problems
    more = {"baselines": args.baseline, "sizes": args.by_size, "settings": settings, "warn": warn, "problems": problems}
    if args.directions:
        data = directions.evaluate_directions(*texts, **more)
    else:
        data = evaluate.evaluate(*texts, seeds=args.seeds, language=args.target_lang, **more)
    report = make_report(data, args.decimals)
    with shown_after(report.as_markdown() if args.markdown else report.as_text()):
        if args.json:
            write_output("--json", args.json, report.as_json().split("\n"))
            job.note()
    return 0
