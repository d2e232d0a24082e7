"""Configs as files: what a base gives, and what is wrong in them, with the line."""

import pytest

from owf_fairseq.errors import InputError
from owf_fairseq.training.config import find_config, read_config


def values(path):
    return {key: setting.value for key, setting in read_config(path).items()}


def write(folder, **texts):
    for name, text in texts.items():
        (folder / f"{name}.yaml").write_text(text)
    return folder / f"{next(iter(texts))}.yaml"


def test_a_file_wins_over_its_base_and_the_base_over_its_own(tmp_path):
    path = write(
        tmp_path,
        row="base: middle.yaml\nlr: 7e-4\n",
        middle="base: lowest.yaml\nlr: 1\ndropout: 0.3\n",
        lowest="lr: 2\ndropout: 0\nseed: 1\n",
    )
    assert values(path) == {"lr": "7e-4", "dropout": "0.3", "seed": "1"}
    assert read_config(path)["dropout"].where == f"{tmp_path}/middle.yaml, line 3"


def test_values_stay_as_they_are_typed(tmp_path):
    path = write(tmp_path, row="lr: 7e-4\nadam-betas: (0.9, 0.98)\nfp16: true\nlangs: [no, en]\nsource-lang: no\n")
    assert values(path) == {
        "lr": "7e-4",
        "adam-betas": "(0.9, 0.98)",
        "fp16": "true",
        "langs": "no,en",
        "source-lang": "no",
    }


def test_an_empty_file_has_no_settings(tmp_path):
    assert values(write(tmp_path, row="# nothing\n")) == {}


def test_all_problems_of_all_files_are_told_at_once(tmp_path):
    path = write(
        tmp_path,
        row="base: lowest.yaml\nlr:\nseed: 1\nseed: 2\ndropout: {a: 1}\n",
        lowest="base: nowhere.yaml\nwarmup-updates: [[1], 2]\n",
    )
    with pytest.raises(InputError) as refused:
        read_config(path)
    assert refused.value.problems == [
        f"{tmp_path}/row.yaml, line 2: `lr` has no value",
        f"{tmp_path}/row.yaml, line 4: `seed` is there twice, first in {tmp_path}/row.yaml, line 3",
        f"{tmp_path}/row.yaml, line 5: `dropout` must have one value, or a list of values",
        f"{tmp_path}/lowest.yaml, line 2: `warmup-updates` must have one value, or a list of values",
        f"{tmp_path}/lowest.yaml, line 1: `base` must be a config, relative to this file, but {tmp_path}/nowhere.yaml "
        "is not there",
    ]


def test_a_base_that_leads_back(tmp_path):
    path = write(tmp_path, row="base: middle.yaml\n", middle="lr: 1\nbase: row.yaml\n")
    with pytest.raises(InputError, match=r"middle.yaml, line 2: `base` row.yaml leads back to this file"):
        read_config(path)
    with pytest.raises(InputError, match=r"self.yaml, line 1: `base` self.yaml leads back to this file"):
        read_config(write(tmp_path, self="base: self.yaml\n"))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (b"lr: 1\nx: [1\n", "line 2: not YAML: "),
        (b"- lr\n", "a config consists of lines `flag: value`"),
        (b"lr: 1\n# \xff\n", "line 2: not UTF-8"),
    ],
)
def test_no_config_at_all(text, problem, tmp_path):
    path = tmp_path / "row.yaml"
    path.write_bytes(text)
    with pytest.raises(InputError, match=problem):
        read_config(path)


def test_names_and_files(tmp_path, monkeypatch):
    assert find_config("wmt22_en_de/big").read_text(encoding="utf-8").startswith("# WMT22")
    monkeypatch.chdir(tmp_path)
    path = write(tmp_path, row="")
    assert find_config("row.yaml").samefile(path)
    with pytest.raises(InputError, match=r"there is no config 'nowhere.yaml'"):
        find_config("nowhere.yaml")
    with pytest.raises(InputError, match=r"no config 'wmt22_en_de/big_one_wide': did you mean .*big_one_wide_ffn"):
        find_config("wmt22_en_de/big_one_wide")
