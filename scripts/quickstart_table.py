#!/usr/bin/env python3
"""The quickstart's table: quality, speed and size of the models of one run, and ten translations.

    python scripts/quickstart_table.py --run runs/quickstart-en-de --archs owf_small owf_small_one_wide_ffn --rounds 2

Reads the references (`corpus/`), the output of fairseq-generate (`ARCH/test.ROUND.out`) and the checkpoints.
Writes `table.md` and `table.json` to the run's folder, and prints the former.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import platform
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

from owf_fairseq.data.generated import read_generated
from owf_fairseq.data.lines import read_lines, write_lines
from owf_fairseq.errors import InputError
from owf_fairseq.tables import markdown_table

SAMPLES = 10


def measure(run: Path, archs: list[str], rounds: int) -> dict[str, Any]:
    """Collect what the table says.

    Args:
        run: folder of the run.
        archs: the models; speeds are relative to the first.
        rounds: how often each translated the test set.

    Returns:
        What `table.json` holds.

    Raises:
        InputError: a file is missing, or doesn't have a translation of every sentence.
    """
    corpus = json.loads((run / "corpus" / "corpus.json").read_text(encoding="utf-8"))
    source, target = corpus["source"], corpus["target"]
    sources, references = (read_lines(run / "corpus" / f"test.{lang}") for lang in (source, target))
    models: list[dict[str, Any]] = []
    hypotheses: dict[str, list[str]] = {}
    for arch in archs:
        outputs = [run / arch / f"test.{number}.out" for number in range(1, rounds + 1)]
        generated = [read_generated(output, len(references), output.with_suffix(".log")) for output in outputs]
        hypotheses[arch] = generated[0].hypotheses
        rate = sum(one.tokens for one in generated) / sum(one.seconds for one in generated)
        models.append(
            {
                "arch": arch,
                "parameters": parameters(run / arch / "checkpoint_best.pt", run / "data"),
                **score(hypotheses[arch], references, target),
                "tokens_per_second": rate,
                "tokens_per_second_by_round": [one.tokens / one.seconds for one in generated],
                "relative_speed": rate / models[0]["tokens_per_second"] if models else 1.0,
            }
        )
    samples = [
        {"source": sources[n], "reference": references[n], **{arch: hypotheses[arch][n] for arch in archs}}
        for n in range(min(SAMPLES, len(references)))
    ]
    return {
        "source": source,
        "target": target,
        "training_pairs": corpus["counts"]["train"],
        "test_sentences": len(references),
        "models": models,
        "samples": samples,
        "machine": machine(),
    }


def score(hypotheses: list[str], references: list[str], target: str) -> dict[str, Any]:
    """BLEU and chrF of detokenised text, with sacreBLEU's signatures.

    Raises:
        InputError: the numbers of lines differ; sacreBLEU would score the shorter without a word.
    """
    from sacrebleu.metrics import BLEU, CHRF

    if len(hypotheses) != len(references):
        raise InputError(f"there are {len(hypotheses)} translations for {len(references)} references")
    # 13a splits at spaces, which these languages don't have.
    tokenize = {"zh": "zh", "ja": "char", "th": "char"}.get(target.split("-")[0], "13a")
    bleu, chrf = BLEU(tokenize=tokenize), CHRF()
    return {
        "bleu": bleu.corpus_score(hypotheses, [references]).score,
        "bleu_signature": str(bleu.get_signature()),
        "chrf": chrf.corpus_score(hypotheses, [references]).score,
        "chrf_signature": str(chrf.get_signature()),
    }


def parameters(checkpoint: Path, data: Path) -> int:
    """Count the parameters of a trained model, a shared tensor once."""
    logging.disable(logging.INFO)
    from fairseq import checkpoint_utils

    models, *_ = checkpoint_utils.load_model_ensemble_and_task([str(checkpoint)], arg_overrides={"data": str(data)})
    return sum(tensor.numel() for tensor in models[0].parameters())


def machine() -> dict[str, Any]:
    """What the speeds depend on."""
    versions = {}
    for name in ("torch", "fairseq", "ve-fairseq", "fairseq-fixed", "sacrebleu", "sentencepiece"):
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return {"cpus": os.cpu_count(), "architecture": platform.machine(), "python": platform.python_version(), **versions}


def markdown(result: dict[str, Any], rounds: int) -> str:
    """Write the table and the samples as Markdown."""
    models = result["models"]
    table = markdown_table(
        ("model", "parameters", "BLEU", "chrF", "tokens/s", "speed"),
        [
            (
                model["arch"],
                f"{model['parameters']:,}",
                f"{model['bleu']:.1f}",
                f"{model['chrf']:.1f}",
                f"{model['tokens_per_second']:.1f}",
                f"{model['relative_speed']:.2f}",
            )
            for model in models
        ],
    )
    times = "once" if rounds == 1 else f"{rounds} times, the models in turn"
    lines = [
        f"# {result['source']}-{result['target']}: {result['training_pairs']:,} training pairs, "
        f"{result['test_sentences']:,} test sentences",
        "",
        *table.split("\n"),
        "",
        f"- BLEU: sacreBLEU, `{models[0]['bleu_signature']}`; chrF: `{models[0]['chrf_signature']}`; "
        "of detokenised text.",
        "- tokens/s: pieces of the translations, without end-of-sentence symbols, in each second of search (loading is "
        f"not timed); beam 5, one sentence at a time, one thread of a CPU; the test set was translated {times}.",
        f"- speed: relative to {models[0]['arch']}.",
        "- parameters: all, a shared tensor once.",
        "",
        f"The first {len(result['samples'])} test sentences (their order is random):",
    ]
    for sample in result["samples"]:
        lines += ["", *(f"- {name}: {text}" for name, text in sample.items())]
    return "\n".join(lines)


def main(argv: list[str] | None = None) -> int:
    """Print and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", required=True, type=Path, metavar="DIR", help="folder of the quickstart's run")
    parser.add_argument("--archs", required=True, nargs="+", metavar="ARCH", help="the models")
    parser.add_argument("--rounds", type=int, default=1, metavar="N", help="how often each translated (default: 1)")
    args = parser.parse_args(argv)
    try:
        result = measure(args.run, args.archs, args.rounds)
    except InputError as error:
        for problem in error.problems:
            print(f"quickstart_table.py: {problem}", file=sys.stderr)
        return 2
    text = markdown(result, args.rounds)
    write_lines(args.run / "table.json", json.dumps(result, indent=1, ensure_ascii=False).split("\n"))
    write_lines(args.run / "table.md", text.split("\n"))
    print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
