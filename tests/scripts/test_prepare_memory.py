"""The script that measures memory: it measures, and extrapolates what it says it does."""

from __future__ import annotations

import argparse
import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
from fairseq_for_tests import REPOSITORY


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location(
        "prepare_memory", REPOSITORY / "scripts" / "measure" / "prepare_memory.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where its processes find it
    spec.loader.exec_module(module)
    module.WORDS = 1000  # type: ignore[attr-defined]
    return module


def test_the_corpus_is_parallel_and_its_length_known(script: ModuleType, tmp_path: Path) -> None:
    characters = script.write_corpus(tmp_path, 200)
    texts = [(tmp_path / f"{split}.{lang}").read_text() for split in ("train", "valid") for lang in ("en", "de")]
    assert [text.count("\n") for text in texts] == [200, 200, 1000, 1000]
    assert characters == pytest.approx(sum(map(len, texts[:2])) / 200, abs=1)


def test_steps_are_measured(script: ModuleType, tmp_path: Path) -> None:
    args = argparse.Namespace(vocab_size=300, sample=100, shards=2, workers=1)
    script.write_corpus(tmp_path, 64)
    peaks: dict[str, object] = {}
    data = script.prepare(tmp_path, args, peaks)
    assert data == f"{tmp_path}/data/shard-00:{tmp_path}/data/shard-01"
    assert {"counting lines", "writing binary data"} <= set(peaks)
    for peak in peaks.values():
        assert 5e6 < peak.own < peak.resident < 2e9


def test_a_shard_is_loaded_and_then_the_next(
    script: ModuleType, data_bin: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(script, "LANGS", ("src", "tgt"))
    script.load(f"{data_bin}:{data_bin}", tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["1", "2", "all"]


def test_memory_of_a_process_and_its_children(script: ModuleType, tmp_path: Path) -> None:
    held = bytearray(60_000_000)
    held[::4096] = b"x" * len(held[::4096])
    resident, own = script.memory_of(os.getpid())
    assert resident >= own > 60_000_000
    with subprocess.Popen(["sleep", "30"]) as child:
        assert script.processes_of(os.getpid()).count(child.pid) == 1
        child.kill()
    assert script.memory_of(child.pid) == (0, 0)


def test_growth_is_that_of_the_corpus_or_of_a_shard(script: ModuleType) -> None:
    args = argparse.Namespace(lines=1000, shards=4, pairs=100_000, in_shards=10)
    small = {step: script.Peak(2_000_000, 1_000_000) for step in ("checking the text", "making shards")}
    large = {step: script.Peak(9_000_000, 1_750_000) for step in small}
    corpus, shard = script.rows(small, large, args)
    # 1000 bytes a pair of the corpus; for the shards 4000 a pair of theirs, which are 10,000 pairs then instead of 250
    assert corpus == ["checking the text", "2 (1)", "9 (2)", "1000.0", "0.1"]
    assert shard == ["making shards", "2 (1)", "9 (2)", "4000.0", "0.0"]
    args.pairs = 100_000_000
    corpus, shard = script.rows(small, large, args)
    assert (corpus[-1], shard[-1]) == ("100.0", "40.0")
