#!/usr/bin/env python3
"""Do layouts beyond the paper's learn? Trains one of each kind on the quickstart's corpus, and compares them.

example:
  bash scripts/quickstart.sh --smoke --output runs/quickstart-en-de   # text and data, or any run of the quickstart
  python scripts/measure/layouts.py --run runs/quickstart-en-de --json docs/layouts/layouts.json
  python scripts/measure/layouts.py --run runs/quickstart-en-de --trained   # the trainings are there: the rest

4 + 4 layers of size small, 3,000 updates by configs/quickstart/_base.yaml. Each step is an `owf` command, whose output
stays in `--run`; what is there already is not done again.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
from pathlib import Path
from typing import Any

from owf_fairseq import cli
from owf_fairseq.files.lines import write_lines

ROOT = Path(__file__).resolve().parent.parent.parent
SIZE = "encoder-layers: 4\ndecoder-layers: 4\nmax-update: 3000\n"

LAYOUTS: dict[str, dict[str, str]] = {
    "individual": {},
    "shared": {"encoder-ffn": "shared", "decoder-ffn": "shared"},
    "shared, bias": {"encoder-ffn": "shared", "decoder-ffn": "shared", "ffn-per-layer": "bias"},
    "shared, lora-4": {"encoder-ffn": "shared", "decoder-ffn": "shared", "ffn-per-layer": "lora-4"},
    "one wide": {"encoder-ffn": "shared", "encoder-ffn-embed-dim": "2048", "decoder-ffn": "none"},
    "two in the middle": {
        "encoder-ffn": "-,0,1,-",
        "encoder-ffn-embed-dim": "512",
        "decoder-ffn": "-,0,1,-",
        "decoder-ffn-embed-dim": "512",
    },
    "narrower with depth": {"encoder-ffn-widths": "512,256,128,128", "decoder-ffn-widths": "512,256,128,128"},
    "attention in half of the decoder": {"decoder-self-attn": "0,-,1,-"},
}
"""By name, the flags that differ from the individual model's; all but the shared ones have about its size."""


def main() -> int:
    """Trains, translates, scores, measures and writes the table's JSON."""
    args = parse_args()
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    configs = {}
    for name, flags in LAYOUTS.items():
        folder = re.sub(r"[^\w-]+", "_", name)
        configs[name] = args.run / "configs" / f"{folder}.yaml"
        lines = [f"base: {ROOT / 'configs/quickstart/_base.yaml'}", "arch: owf_small", *SIZE.splitlines()]
        configs[name].parent.mkdir(exist_ok=True)
        write_lines(configs[name], [*lines, *(f"{flag}: {value}" for flag, value in flags.items())])
    checkpoints = {name: args.run / path.stem / "checkpoint_best.pt" for name, path in configs.items()}
    if not args.trained:
        owf("train", *configs.values(), "--run", args.run, "--cpu", *args.jobs)
    translations = {}
    for name, checkpoint in checkpoints.items():
        translations[name] = checkpoint.with_name("test.de")
        owf("translate", checkpoint, "--input", args.run / "raw/test.en", "--output", translations[name])
    scores, speed = args.run / "layouts_scores.json", args.run / "layouts_speed.json"
    systems = [f"{name}={path}" for name, path in translations.items()]
    owf("evaluate", *systems, "--ref", args.run / "raw/test.de", "--src", args.run / "raw/test.en", "--json", scores)
    models = [f"{name}={path}" for name, path in checkpoints.items()]
    owf("benchmark", *models, "--input", args.run / "raw/test.en", "--sentences", "40", "--cpu", "--json", speed)
    made = table(json.loads(scores.read_text()), json.loads(speed.read_text()))
    write_lines(args.json, json.dumps(made, indent=1).splitlines())
    return 0


def parse_args() -> argparse.Namespace:
    """Reads the command line."""
    assert __doc__ is not None
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", type=Path, required=True, help="a run of the quickstart, with raw/ and data/")
    parser.add_argument("--json", type=Path, default=ROOT / "docs/layouts/layouts.json", help="default: %(default)s")
    parser.add_argument("--trained", action="store_true", help="train nothing")
    parser.add_argument("--jobs", type=lambda n: ["--jobs", n], default=[], help="trainings at a time")
    return parser.parse_args()


def owf(*words: object) -> None:
    """Runs a command; ends with its status if it fails."""
    print("$ owf", *words, flush=True)
    status = cli.main([str(word) for word in words])
    if status:
        sys.exit(status)


def table(scores: dict[str, Any], speed: dict[str, Any]) -> dict[str, Any]:
    """One row a layout."""
    models = {model["name"]: model for model in speed["models"]}
    ratios = {entry["name"]: entry["ratio"] for entry in speed["measurements"]}
    rows = []
    for system in scores["systems"]:
        name = system["name"]
        bleu, chrf = (system["scores"][metric]["score"] for metric in ("bleu", "chrf"))
        ratio = ratios[name]["median"] if ratios[name] else 1.0
        flags = " ".join(f"--{flag}={value}" for flag, value in LAYOUTS[name].items())
        rows.append(
            {
                "layout": name,
                "flags": f"`{flags}`" if flags else "",
                "parameters": f"{models[name]['parameters']:,}",
                "BLEU": f"{bleu:.1f}",
                "chrF": f"{chrf:.1f}",
                "speed": f"{ratio:.2f}",
            }
        )
    return {"made_by": "python scripts/measure/layouts.py --run runs/quickstart-en-de", "rows": rows}


if __name__ == "__main__":
    sys.exit(main())
