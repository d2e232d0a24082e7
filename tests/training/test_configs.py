"""The package's configs: one for each row of the paper, with its hyper-parameters, sizes and name."""

import re

import pytest
import torch

from owf_fairseq.checkpoints.stored_model import build_model
from owf_fairseq.paper.rows import rows
from owf_fairseq.parameters import SizedDictionary
from owf_fairseq.sharing import ARCHS, SIZES
from owf_fairseq.training.config import (
    CONFIGS,
    DATASETS,
    SMALL_DATASETS,
    config_names,
    read_config,
    row_config,
    table_configs,
)
from owf_fairseq.training.run import plan

NAMES = config_names()
ROWS = {name: [row for row in rows() if row_config(row, name.split("/")[0]) == name] for name in NAMES}

# The paper, Section 3.
UPDATES_AND_DROPOUT = {"wmt22_en_de": (80_000, 0.1), "wmt16_en_ro": (80_000, 0.3), "multilingual": (150_000, 0.0)}


def test_every_row_of_the_paper_has_its_config_and_no_config_is_of_no_row():
    wanted = {row_config(row, DATASETS[row.pair]) for row in rows()}
    small = {row_config(row, dataset) for row in rows() for dataset in SMALL_DATASETS} - {None}
    assert set(NAMES) == wanted | small
    assert len(wanted) == 40
    assert len(small) == 2 * 19 + 25


@pytest.mark.parametrize(
    ("label", "table", "pair", "dataset", "name"),
    [
        ("Transformer Big", "sharing", "en-de", "wmt22_en_de", "wmt22_en_de/big"),
        ("SharedEncNoDec 4096", "one_wide", "en-de", "wmt22_en_de", "wmt22_en_de/big_shared_enc_no_dec"),
        ("SharedEncNoDec 24576", "one_wide", "en-de", "wmt22_en_de", "wmt22_en_de/big_shared_enc_no_dec_24576"),
        ("SharedEncNoDec 49152", "one_wide", "en-de", "wmt22_en_de", "wmt22_en_de/big_one_wide_ffn"),
        ("SharedEncNoDec 57344", "other", "en-de", "wmt22_en_de", "wmt22_en_de/deep_shallow_one_wide_ffn"),
        ("SharedDec 49152", "other", "en-de", "wmt22_en_de", "wmt22_en_de/decoder_only_one_wide_ffn"),
        ("SharedEncNoDec 24576", "other", "en-ro", "wmt16_en_ro", "wmt16_en_ro/base_one_wide_ffn"),
        ("SharedEncNoDec 4096", "other", "multi", "multilingual", "multilingual/big_shared_enc_no_dec"),
        ("SharedEncNoDec 24576", "one_wide", "en-de", "multi30k", "multi30k/small_shared_enc_no_dec_512"),
        ("Cycle M=2", "custom_sharing", "en-de", "multi30k", None),
        ("Cycle M=2", "custom_sharing", "en-de", "iwslt14_de_en", "iwslt14_de_en/iwslt_cycle_2"),
        ("SharedEncNoDec 24576", "one_wide", "en-de", "iwslt14_de_en", "iwslt14_de_en/iwslt_shared_enc_no_dec_6144"),
        ("Transformer Base", "other", "en-ro", "quickstart", None),
        ("Transformer Base", "other", "en-ro", "wmt22_en_de", None),
    ],
)
def test_the_name_of_a_rows_config(label, table, pair, dataset, name):
    [row] = [row for row in rows() if (row.row, row.table, row.pair) == (label, table, pair)]
    assert row_config(row, dataset) == name


def test_the_configs_of_a_table():
    assert table_configs("one_wide", "quickstart") == [
        "quickstart/small",
        "quickstart/small_shared_enc_no_dec",
        "quickstart/small_shared_enc_no_dec_512",
        "quickstart/small_one_wide_ffn",
        "quickstart/small_shared_enc_no_dec_2048",
    ]
    assert len(table_configs("custom_sharing", "wmt22_en_de")) == 8
    assert [name.partition("/")[2] for name in table_configs("similarity", "wmt22_en_de")] == [
        *("big", "big_shared_enc", "big_shared_dec", "big_shared_enc_shared_dec", "big_shared_enc_dec", "big_no_enc"),
        *("big_no_dec", "big_shared_enc_no_dec", "big_one_wide_ffn"),
    ]
    with pytest.raises(ValueError, match="no row of table 'sharing' for 'multilingual', which has other"):
        table_configs("sharing", "multilingual")
    with pytest.raises(ValueError, match="'wmt23', which is none of wmt22_en_de, "):
        table_configs("sharing", "wmt23")


@pytest.mark.parametrize("name", NAMES)
def test_fairseq_reads_it_and_its_model_is_the_papers(name):
    training = plan(name, environment={})
    args = training.args
    dataset, config = name.split("/")
    row = ROWS[name][0]
    assert args.share_all_embeddings
    assert args.optimizer == "adam"
    assert args.required_batch_size_multiple == 1
    assert args.save_dir == f"{args.data.removesuffix('data')}{config}"
    small = dataset in SMALL_DATASETS
    if not small:
        assert (args.lr, args.warmup_updates, args.lr_scheduler, args.fp16) == ([0.0007], 4000, "inverse_sqrt", True)
        assert (args.max_update, args.dropout) == UPDATES_AND_DROPOUT[dataset]
        assert args.data == f"runs/{dataset}/data"
    dictionary = SizedDictionary(row.vocab_size)
    with torch.device("meta"):
        model = build_model(args, dictionary, dictionary)
    millions = sum(parameter.numel() for parameter in model.parameters()) / 1e6
    size, _ = ARCHS[args.arch]
    if not small:
        assert millions == pytest.approx(row.params_millions, abs=1)
        assert size == row.size
    elif row.shared_ffn_dim:
        shared = [getattr(args, f"{stack}_ffn_embed_dim") for stack in ("encoder", "decoder")]
        ratio = row.shared_ffn_dim / SIZES[row.size].ffn_dim
        layers = SIZES[size].encoder_layers + SIZES[size].decoder_layers
        assert any(width / SIZES[size].ffn_dim == ratio * (layers / 12 if ratio > 1 else 1) for width in shared)


@pytest.mark.parametrize("name", NAMES)
def test_it_says_which_row_it_is_and_only_what_differs(name):
    text = (CONFIGS / f"{name}.yaml").read_text(encoding="utf-8")
    comment = "".join(line for line in text.splitlines() if line.startswith("#"))
    for row in ROWS[name]:
        assert re.search(rf'"{re.escape(row.row)}" \([^)]*\b{row.table}\b.*?: (sp)?BLEU {row.bleu}\b', comment)
    keys = [line.split(":")[0] for line in text.splitlines() if not line.startswith("#")]
    assert set(keys) <= {"base", "arch", "encoder-ffn-embed-dim", "save-dir"}


def test_iwslt14_is_trained_as_fairseq_does():
    args = plan("iwslt14_de_en/iwslt", environment={}).args
    assert (args.source_lang, args.target_lang, args.arch) == ("de", "en", "owf_iwslt")
    assert (args.dropout, args.weight_decay, args.lr, args.lr_scheduler) == (0.3, 0.0001, [0.0005], "inverse_sqrt")
    assert (args.warmup_updates, args.label_smoothing, args.adam_betas, args.clip_norm) == (4000, 0.1, "(0.9, 0.98)", 0)
    assert (args.max_tokens, args.update_freq) == (4096, [1])
    assert not args.encoder_normalize_before
    assert not args.decoder_normalize_before


def test_all_directions_are_there():
    given = {key: setting.value.split(",") for key, setting in read_config(CONFIGS / "multilingual/big.yaml").items()}
    assert sorted(given["langs"]) == "de en es fr it ja ko pt sw zh".split()
    assert len(given["lang-pairs"]) == 90
    assert set(given["lang-pairs"]) == {f"{a}-{b}" for a in given["langs"] for b in given["langs"] if a != b}


def test_the_readmes_table_says_what_the_files_say():
    readme = (CONFIGS / "README.md").read_text(encoding="utf-8")
    lines = re.findall(r"^\| `(\w+)` .* ([\d,]+) tokens \| ([\d,]+) \|$", readme, re.MULTILINE)
    assert {dataset for dataset, *_ in lines} == {*DATASETS.values(), *SMALL_DATASETS}
    for dataset, tokens, updates in lines:
        training = plan(next(name for name in NAMES if name.startswith(dataset)), environment={})
        assert training.batch is not None
        assert (f"{training.batch.wanted:,}", f"{training.args.max_update:,}") == (tokens, updates)
