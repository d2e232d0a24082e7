"""What CTranslate2's Transformer cannot express of a model, told before anything is written."""

from __future__ import annotations

from typing import Any

from owf_fairseq.flag_checks import HasFlags
from owf_fairseq.flags import flag_name
from owf_fairseq.plan import make_plan

ACTIVATIONS = {
    "relu": "RELU",
    "gelu": "GELU",
    "gelu_accurate": "GELUTanh",
    "gelu_fast": "GELUTanh",
    "tanh": "Tanh",
}
"""CTranslate2's names, by fairseq's."""


def inexpressible(args: HasFlags) -> list[str]:
    """What CTranslate2's Transformer cannot express of a model.

    Args:
        args: the model's flags, with defaults filled in.

    Returns:
        A sentence for each, naming the flag; empty if the model can be exported.
    """

    def given(name: str) -> Any:
        return getattr(args, name, None)

    if args.decoder_only:
        return [
            f"`--arch {args.arch}` is decoder-only, and CTranslate2 has no prefix language model: it can't be exported"
        ]
    problems = [
        f"`{flag_name(f'encoder_{name}')}` and `{flag_name(f'decoder_{name}')}` must be the same for CTranslate2, "
        f"whose Transformer has one setting, but they are {given(f'encoder_{name}')} and {given(f'decoder_{name}')}"
        for name in ("normalize_before", "attention_heads")
        if given(f"encoder_{name}") != given(f"decoder_{name}")
    ]
    if args.activation_fn not in ACTIVATIONS:
        problems.append(
            f"`--activation-fn` must be one of {', '.join(ACTIVATIONS)} for CTranslate2, but is '{args.activation_fn}'"
        )
    plan = make_plan(args)
    for stack, pattern in (("encoder", plan.encoder_self_attn), ("decoder", plan.decoder_self_attn)):
        if pattern[0] is None and not (args.encoder_normalize_before or args.layernorm_embedding):
            problems.append(
                f"`--{stack}-self-attn {getattr(args, f'{stack}_self_attn')}` can't be exported from a post-norm "
                "model: CTranslate2 normalises after the first self-attention also where that adds nothing"
            )
    for name, why in _NOT_EXPRESSED.items():
        if given(name):
            problems.append(f"`{flag_name(name)}` can't be exported: {why}")
    if args.decoder_normalize_before and given("no_decoder_final_norm"):
        problems.append("`--no-decoder-final-norm` can't be exported: CTranslate2 drops both stacks' last norm or none")
    for name in ("decoder_input_dim", "decoder_output_dim"):
        if given(name) not in (None, args.decoder_embed_dim):
            problems.append(
                f"`{flag_name(name)}` must be `--decoder-embed-dim` ({args.decoder_embed_dim}) for CTranslate2's "
                f"Transformer, but is {given(name)}"
            )
    return problems


_NOT_EXPRESSED = {
    "no_token_positional_embeddings": "CTranslate2's Transformer always adds positions",
    "no_cross_attention": "every decoder layer of CTranslate2's Transformer reads the encoder",
    "adaptive_softmax_cutoff": "CTranslate2 has no adaptive softmax",
    "adaptive_input": "CTranslate2 has no adaptive embeddings",
    "char_inputs": "CTranslate2 has no embeddings of characters",
    "encoder_xformers_att_config": "CTranslate2 has fairseq's own attention only",
    "decoder_xformers_att_config": "CTranslate2 has fairseq's own attention only",
}
