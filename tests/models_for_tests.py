"""Small models, batches and a plain-PyTorch reference for the tests."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import torch
import torch.nn.functional as F
from fairseq import models, options
from fairseq.data import Dictionary, data_utils

from owf_fairseq import models as _models  # noqa: F401  registers the archs
from owf_fairseq.sharing import ARCHS

TINY_ARCHS = sorted(arch for arch, (size, _) in ARCHS.items() if size == "tiny")
VOCABULARY = 40
PAD, EOS = 1, 2


def make_task(vocabulary: int = VOCABULARY) -> Any:
    """What a model asks of a task: two dictionaries, equal, so that embeddings can be shared."""
    dictionary = Dictionary()
    for number in range(vocabulary - len(dictionary)):
        dictionary.add_symbol(f"w{number}")
    return SimpleNamespace(source_dictionary=dictionary, target_dictionary=dictionary)


def parse(arch: str, *flags: str) -> Namespace:
    """The flags of fairseq-train as its own parser reads them."""
    parser = options.get_training_parser()
    return options.parse_args_and_arch(parser, ["data", "--arch", arch, *flags])


def make_model(arch: str, *flags: str, seed: int = 1) -> torch.nn.Module:
    """A model with random weights, layer norms and biases included, so that nothing is hidden by ones and zeros."""
    torch.manual_seed(seed)
    model = models.build_model(parse(arch, *flags), make_task())
    for parameter in model.parameters():
        if parameter.dim() == 1:
            torch.nn.init.normal_(parameter, mean=0.5, std=0.2)
    return model


def make_batch(source_lengths: list[int], target_lengths: list[int], seed: int = 2) -> dict[str, Any]:
    """Random sentences as fairseq batches them: source padded on the left, target on the right."""
    generator = torch.Generator().manual_seed(seed)

    def sentences(lengths: list[int]) -> list[torch.Tensor]:
        return [
            torch.cat([torch.randint(4, VOCABULARY, (n - 1,), generator=generator), torch.tensor([EOS])])
            for n in lengths
        ]

    targets = sentences(target_lengths)
    return {
        "src_tokens": data_utils.collate_tokens(sentences(source_lengths), PAD, EOS, left_pad=True),
        "src_lengths": torch.tensor(source_lengths),
        "prev_output_tokens": data_utils.collate_tokens(targets, PAD, EOS, move_eos_to_beginning=True),
    }


def step_by_step(
    model: Any,
    batch: dict[str, Any],
    tokens: torch.Tensor,
    orders: list[torch.Tensor],
    state: dict[str, Any] | None = None,
) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """The logits of each step of incremental decoding, and those that the whole prefix gives at once: (B, V) each.

    Args:
        model: an encoder-decoder one or a decoder-only one.
        batch: with N sentences.
        tokens: (B, T), the B / N hypotheses of a sentence side by side.
        orders: how the rows are reordered before the second step, the third and so on, as in beam search.
        state: the cache, which can be looked at afterwards.
    """
    beams = torch.arange(len(batch["src_tokens"])).repeat_interleave(len(tokens) // len(batch["src_tokens"]))
    encoded = model.encoder(batch["src_tokens"], batch["src_lengths"])
    encoded = model.encoder.reorder_encoder_out(encoded, beams)
    state = {} if state is None else state
    for step in range(tokens.shape[1]):
        if 0 < step <= len(orders):
            model.decoder.reorder_incremental_state_scripting(state, orders[step - 1])
            tokens = torch.cat([tokens[orders[step - 1], :step], tokens[:, step:]], 1)
        found = model.decoder(tokens[:, : step + 1], encoded, incremental_state=state)[0][:, -1]
        yield found, model.decoder(tokens[:, : step + 1], encoded)[0][:, -1]


def all_weights(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    """Parameters and buffers under every name that they have, where a state dict has a shared one once."""
    named = [*model.named_parameters(remove_duplicate=False), *model.named_buffers(remove_duplicate=False)]
    return {name: tensor.detach() for name, tensor in named}


def trained_weights(state: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """A state without the buffer that fairseq 0.12.2 leaves uninitialised."""
    return {name: tensor for name, tensor in state.items() if not name.endswith("_float_tensor")}


def untied_flags(args: Namespace) -> list[str]:
    """The flags of the model that has a block a layer wherever ``args`` has a shared one; what is dropped stays so."""
    flags = []
    for name in ("encoder_ffn", "decoder_ffn", "encoder_self_attn", "decoder_self_attn", "decoder_cross_attn"):
        flags += ["--" + name.replace("_", "-"), "none" if getattr(args, name) == "none" else "individual"]
    for stack in ("encoder", "decoder"):
        flags += [f"--{stack}-ffn-embed-dim", str(getattr(args, f"{stack}_ffn_embed_dim"))]
        flags += [f"--{stack}-normalize-before"] if getattr(args, f"{stack}_normalize_before") else []
    return flags


def _ffn(weights: dict[str, torch.Tensor], layer: str, x: torch.Tensor) -> torch.Tensor:
    """FFN of a layer with its own terms, written out: fc2(relu(fc1(x)))."""

    def linear(name: str, x: torch.Tensor) -> torch.Tensor:
        if f"{name}.scale" in weights:
            x = x * weights[f"{name}.scale"]
        y = F.linear(x, weights[f"{name}.weight"], weights[f"{name}.bias"])
        if f"{name}.lora_a" in weights:
            y = y + (x @ weights[f"{name}.lora_a"].T) @ weights[f"{name}.lora_b"].T
        return y

    return linear(f"{layer}.fc2", linear(f"{layer}.fc1", x).relu())


def reference_logits(model: torch.nn.Module, batch: dict[str, Any]) -> torch.Tensor:
    """The Transformer, post-norm or pre-norm, from its weights, in plain PyTorch: (B, T, V).

    A sublayer whose weights are not there is left out, with its residual connection and its layer norm.
    """
    weights = {name: value.double() for name, value in all_weights(model).items()}
    cfg = model.cfg

    def layer_norm(name: str, x: torch.Tensor) -> torch.Tensor:
        return F.layer_norm(x, x.shape[-1:], weights[f"{name}.weight"], weights[f"{name}.bias"])

    def linear(name: str, x: torch.Tensor) -> torch.Tensor:
        return F.linear(x, weights[f"{name}.weight"], weights[f"{name}.bias"])

    def attention(name: str, heads: int, x: torch.Tensor, y: torch.Tensor, hidden: torch.Tensor) -> torch.Tensor:
        def split(z: torch.Tensor) -> torch.Tensor:
            return z.unflatten(-1, (heads, -1)).transpose(1, 2)  # (B, H, T, C / H)

        q, k, v = (
            split(linear(f"{name}.q_proj", x)),
            split(linear(f"{name}.k_proj", y)),
            split(linear(f"{name}.v_proj", y)),
        )
        scores = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5
        probabilities = scores.masked_fill(hidden, float("-inf")).softmax(-1)
        return linear(f"{name}.out_proj", (probabilities @ v).transpose(1, 2).flatten(2))

    def sublayer(pre_norm: bool, norm: str, x: torch.Tensor, function: Any) -> torch.Tensor:
        return x + function(layer_norm(norm, x)) if pre_norm else layer_norm(norm, x + function(x))

    def embed(stack: str, tokens: torch.Tensor) -> torch.Tensor:
        module = getattr(model, stack)
        embedded = weights[f"{stack}.embed_tokens.weight"][tokens] * cfg.encoder.embed_dim**0.5
        embedded = embedded + module.embed_positions(tokens).double()
        name = f"{stack}.layernorm_embedding"
        return layer_norm(name, embedded) if f"{name}.weight" in weights else embedded

    def run(
        stack: str, x: torch.Tensor, hidden: torch.Tensor, memory: Any = None, memory_hidden: Any = None
    ) -> torch.Tensor:
        part = getattr(cfg, stack)
        for number in range(part.layers):
            layer = f"{stack}.layers.{number}"
            if f"{layer}.self_attn.out_proj.weight" in weights:
                x = sublayer(
                    part.normalize_before,
                    f"{layer}.self_attn_layer_norm",
                    x,
                    lambda h, layer=layer: attention(f"{layer}.self_attn", part.attention_heads, h, h, hidden),
                )
            if f"{layer}.encoder_attn.out_proj.weight" in weights:
                x = sublayer(
                    part.normalize_before,
                    f"{layer}.encoder_attn_layer_norm",
                    x,
                    lambda h, layer=layer: attention(
                        f"{layer}.encoder_attn", part.attention_heads, h, memory, memory_hidden
                    ),
                )
            if f"{layer}.fc1.weight" in weights:
                x = sublayer(
                    part.normalize_before,
                    f"{layer}.final_layer_norm",
                    x,
                    lambda h, layer=layer: _ffn(weights, layer, h),
                )
        return layer_norm(f"{stack}.layer_norm", x) if part.normalize_before else x

    source, target = batch["src_tokens"], batch["prev_output_tokens"]
    source_padding = source.eq(PAD)[:, None, None, :]
    future = torch.ones(target.shape[1], target.shape[1]).triu(1).bool()
    embedded = embed("encoder", source) * source.ne(PAD).unsqueeze(-1)
    memory = run("encoder", embedded, source_padding)
    x = run("decoder", embed("decoder", target), future | target.eq(PAD)[:, None, None, :], memory, source_padding)
    return F.linear(x, weights["decoder.output_projection.weight"])


def one_stack_reference_logits(
    model: Any, weights: dict[str, torch.Tensor], source: torch.Tensor, target: torch.Tensor, restart: bool = False
) -> torch.Tensor:
    """Logits (T, V) of a decoder-only model for one sentence: source ++ target in one sequence, with one mask."""
    cfg = model.cfg
    tokens = torch.cat([source, target])
    length, prefix = len(tokens), len(source)
    hidden = torch.ones(length, length).triu(1).bool()
    hidden[:prefix, :prefix] = False  # the source sees all of the source
    positions = torch.arange(length)
    if restart:
        positions = torch.cat([torch.arange(prefix), torch.arange(len(target))])
    # fairseq's sinusoids start behind the number of the padding symbol
    numbered = model.decoder.embed_positions(torch.full((1, length), EOS))[0].double()
    x = weights["decoder.embed_tokens.weight"][tokens] * cfg.decoder.embed_dim**0.5 + numbered[positions]

    def norm(name, x):
        return F.layer_norm(x, x.shape[-1:], weights[f"{name}.weight"], weights[f"{name}.bias"])

    def linear(name, x):
        return F.linear(x, weights[f"{name}.weight"], weights[f"{name}.bias"])

    def attention(name, x):
        heads = cfg.decoder.attention_heads
        q, k, v = (linear(f"{name}.{part}_proj", x).unflatten(-1, (heads, -1)).transpose(0, 1) for part in "qkv")
        scores = (q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5).masked_fill(hidden, -torch.inf)
        return linear(f"{name}.out_proj", (scores.softmax(-1) @ v).transpose(0, 1).flatten(1))

    def sublayer(name, x, function):
        if cfg.decoder.normalize_before:
            return x + function(norm(name, x))
        return norm(name, x + function(x))

    if "decoder.layernorm_embedding.weight" in weights:
        x = norm("decoder.layernorm_embedding", x)
    for number in range(cfg.decoder.layers):
        layer = f"decoder.layers.{number}"
        if f"{layer}.self_attn.out_proj.weight" in weights:
            x = sublayer(f"{layer}.self_attn_layer_norm", x, lambda h, layer=layer: attention(f"{layer}.self_attn", h))
        if f"{layer}.fc1.weight" in weights:
            x = sublayer(
                f"{layer}.final_layer_norm",
                x,
                lambda h, layer=layer: _ffn(weights, layer, h),
            )
    x = norm("decoder.layer_norm", x) if cfg.decoder.normalize_before else x
    return F.linear(x[prefix:], weights["decoder.output_projection.weight"])


def checkpoint_of(model: torch.nn.Module, args: Namespace, updates: int = 7) -> dict[str, Any]:
    """A checkpoint of the model, as fairseq-train writes it where the model was made with these flags."""
    return {
        "args": None,
        "cfg": {"common": {"user_dir": args.user_dir}, "model": args, "task": None},
        "model": model.state_dict(),
        "criterion": None,
        "optimizer_history": [{"optimizer_name": "FairseqAdam", "lr_scheduler_state": {}, "num_updates": updates}],
        "task_state": {},
        "extra_state": {"train_iterator": {"epoch": 2}, "val_loss": 1.5},
        "last_optimizer_state": {"state": {}},
    }
