"""Layouts drawn at random over all flags together: patterns, widths, terms of each layer's own, norms, sizes."""

from __future__ import annotations

import random
from argparse import Namespace
from dataclasses import dataclass
from typing import Any

import torch
from fairseq.models import ARCH_CONFIG_REGISTRY
from models_for_tests import make_task

from owf_fairseq.checkpoints.stored_model import build_model
from owf_fairseq.errors import InputError
from owf_fairseq.parameters import given_flags
from owf_fairseq.patterns import STRATEGIES, make_pattern, number_of_blocks, pattern_text
from owf_fairseq.plan import Plan, make_plan

SEEDS = range(320)
NOT_TOGETHER = ("nothing would read the source", "the rank is at most", "`--share-encoder-decoder-ffn` needs")
"""Why flags that are right one by one may make no model."""


@dataclass(frozen=True)
class Layout:
    """A model's arch and flags, with what they stand for."""

    arch: str
    flags: list[str]
    args: Namespace
    plan: Plan

    def build(self, seed: int = 1) -> Any:
        """The model in float64, in eval mode, with random weights: layer norms, biases and the layers' terms too."""
        torch.manual_seed(seed)
        task = make_task()
        model = build_model(self.args, task.source_dictionary, task.target_dictionary).double().eval()
        for name, parameter in model.named_parameters():
            if parameter.dim() == 1:
                torch.nn.init.normal_(parameter, mean=0.5, std=0.2)
            elif name.endswith("lora_b"):
                torch.nn.init.normal_(parameter, std=0.3)
        return model


def read_flags(arch: str, flags: list[str]) -> Namespace:
    """All flags of a model, as the arch function leaves them."""
    args = Namespace(**given_flags(arch, flags), arch=arch, user_dir=None)
    ARCH_CONFIG_REGISTRY[arch](args)
    args._name = arch
    return args


def draw_layout(seed: int) -> Layout:
    """A layout that makes a model; every sixth is decoder-only."""
    rng = random.Random(seed)
    while True:
        arch, flags = _draw(rng, decoder_only=seed % 6 == 0)
        try:
            args = read_flags(arch, flags)
            return Layout(arch, flags, args, make_plan(args))
        except InputError as error:
            if not all(any(reason in problem for reason in NOT_TOGETHER) for problem in error.problems):
                raise


def _draw(rng: random.Random, decoder_only: bool) -> tuple[str, list[str]]:
    stacks = ("decoder",) if decoder_only else ("encoder", "decoder")
    layers = {stack: rng.randint(1, 5) for stack in stacks}
    both = not decoder_only and rng.random() < 0.15
    norms = rng.choice([(), ("encoder", "decoder"), ("encoder", "decoder"), ("encoder",)])
    flags = ["--share-all-embeddings", *(["--layernorm-embedding"] if rng.random() < 0.2 else [])]
    dim, width = rng.choice([(16, 24), (8, 12)])
    for stack in stacks:
        flags += [f"--{stack}-layers={layers[stack]}", f"--{stack}-embed-dim={dim}", f"--{stack}-attention-heads=2"]
        flags += [f"--{stack}-ffn-embed-dim={width}"]
        flags += [f"--{stack}-normalize-before"] if stack in norms and not (both and len(norms) == 1) else []
        ffn = rng.choice(["shared", _one_block(rng, layers[stack])]) if both else _pattern(rng, layers[stack])
        flags.append(f"--{stack}-ffn={ffn}")
        blocks = number_of_blocks(make_pattern(ffn, layers[stack]))
        if blocks and not both and rng.random() < 0.5:
            flags.append(f"--{stack}-ffn-widths={','.join(str(rng.randint(3, 30)) for _ in range(blocks))}")
        flags.append(f"--{stack}-self-attn={_pattern(rng, layers[stack])}")
    flags += [] if decoder_only else [f"--decoder-cross-attn={_pattern(rng, layers['decoder'])}"]
    flags += ["--share-encoder-decoder-ffn"] if both else []
    terms = [term for term in ("norm", "bias", "scale", f"lora-{rng.randint(1, 3)}") if rng.random() < 0.4]
    flags += [f"--ffn-per-layer={','.join(terms)}"] if terms else []
    return "owf_decoder_only_tiny" if decoder_only else "owf_tiny", flags


def _pattern(rng: random.Random, layers: int) -> str:
    kind = rng.random()
    if kind < 0.25:
        return "individual"
    if kind < 0.55:  # explicit
        numbers: list[int | None] = []
        for _ in range(layers):
            used = number_of_blocks(numbers)
            numbers.append(rng.choice([None, *range(used + 1), *range(used)]))
        return pattern_text(numbers)
    while True:
        name = rng.choice(list(STRATEGIES))
        text = f"{name}-{rng.randint(1, layers)}" if STRATEGIES[name].counted else name
        try:
            make_pattern(text, layers)
        except InputError:  # M does not divide the layers
            continue
        return text


def _one_block(rng: random.Random, layers: int) -> str:
    used = rng.randrange(layers)
    return pattern_text([0 if layer == used or rng.random() < 0.6 else None for layer in range(layers)])
