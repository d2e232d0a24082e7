#!/usr/bin/env python3
"""An experiment: what if layers that share self-attention shared its cache of earlier steps, too?

example:
  python scripts/measure/one_cache.py runs/study/models/attention_isi_seed_1/checkpoint_best.pt \\
      --input raw/test.en --ref raw/test.de --output test.one_cache.de --json one_cache.json

fairseq files the keys and values of earlier decoder steps under the attention object. Where layers share the object,
each step appends the keys of all of them to one cache, and each layer reads those of the others. This plugin gives each
layer a cache of its own, and so does every search of the product. This script decodes the same weights both ways, and
prints BLEU and chrF. If the paper's loss of 8 to 10 BLEU by shared decoder self-attention comes from the cache, it
shows in the second row and not in the first.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from functools import partial
from typing import Any

from owf_fairseq.data.segmentation import Segmentation
from owf_fairseq.decoding.fairseq_backend import FairseqBackend
from owf_fairseq.decoding.search import SearchOptions
from owf_fairseq.decoding.translator import Translator
from owf_fairseq.errors import InputError, collect
from owf_fairseq.files.lines import read_lines
from owf_fairseq.files.outputs import check_output_file, write_output
from owf_fairseq.progress import Progress
from owf_fairseq.tables import markdown_table, number

WAYS = {"a cache for each layer": False, "one cache": True}


def main(argv: Sequence[str] | None = None) -> int:
    """Decodes both ways, scores and prints.

    Returns:
        The exit status.
    """
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoint", metavar="CHECKPOINT", help="whose decoder layers share self-attention")
    parser.add_argument("--input", required=True, metavar="FILE", help="text in the source language")
    parser.add_argument("--ref", required=True, metavar="FILE", help="its reference translation")
    parser.add_argument("--beam", type=int, default=5, metavar="N", help="beam size (default: 5)")
    parser.add_argument("--output", metavar="FILE", help="write the translations with one cache")
    parser.add_argument("--json", metavar="FILE", help="write the scores as JSON")
    args = parser.parse_args(argv)
    try:
        problems = [
            *check_output_file("--output", args.output, overwrite=True, inputs=[args.input, args.ref]),
            *check_output_file("--json", args.json, overwrite=True, inputs=[args.input, args.ref]),
        ]
        source, reference = (collect(problems, partial(read_lines, path)) for path in (args.input, args.ref))
        if problems or source is None or reference is None:
            raise InputError(problems)
        if len(source) != len(reference):
            raise InputError(f"{args.input} has {len(source):,} lines, but {args.ref} has {len(reference):,}")
        found = {way: translated(args.checkpoint, source, one, args.beam) for way, one in WAYS.items()}
    except InputError as error:
        for problem in error.problems:
            print(f"one_cache.py: error: {problem}", file=sys.stderr)
        return 2
    scores = {way: scored(lines, reference) for way, lines in found.items()}
    rows = [[way, *(number(score, 1) for score in one.values())] for way, one in scores.items()]
    print(markdown_table(["decoding", "BLEU", "chrF"], rows))
    if args.output:
        write_output("--output", args.output, found["one cache"])
    if args.json:
        write_output("--json", args.json, json.dumps({"scores": scores, "beam": args.beam}, indent=1).split("\n"))
    return 0


def translated(checkpoint: str, lines: Sequence[str], one_cache: bool, beam: int = 5) -> list[str]:
    """Translates lines on the CPU.

    Args:
        checkpoint: of the model.
        lines: of text.
        one_cache: whether layers that share self-attention share its cache.
        beam: of the search.

    Raises:
        InputError: the checkpoint can't be read.
    """
    backend = FairseqBackend.from_checkpoint(checkpoint, cpu=True)
    if one_cache:
        share_caches(backend.models[0])
    segmentation: Segmentation = backend.segmentation()
    translator = Translator(backend, segmentation, SearchOptions(beam=beam))
    with Progress("sentences", len(lines)) as progress:
        return [best[0].text for best in translator.translate(lines, progress)]


def share_caches(model: Any) -> None:
    """Makes one object of the self-attention of all decoder layers that share it, as a naive implementation does.

    fairseq's key of the cache is the object's, and a search reorders the cache of each object once.
    """
    first: dict[int, Any] = {}
    for layer in model.decoder.layers:
        attention = getattr(layer, "self_attn", None)
        if attention is not None:
            layer.self_attn = first.setdefault(id(attention.k_proj), attention)


def scored(lines: Sequence[str], reference: Sequence[str]) -> dict[str, float]:
    """BLEU and chrF."""
    from sacrebleu.metrics import BLEU, CHRF

    return {
        name: float(metric.corpus_score(list(lines), [list(reference)]).score)
        for name, metric in (("bleu", BLEU()), ("chrf", CHRF()))
    }


if __name__ == "__main__":
    raise SystemExit(main())
