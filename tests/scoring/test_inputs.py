"""Names of systems: short, readable, never twice, and the same whatever else is evaluated."""

import pytest

from owf_fairseq.errors import InputError
from owf_fairseq.scoring.inputs import name_systems


@pytest.mark.parametrize(
    ("given", "names"),
    [
        (["out/base.de", "one_wide_ffn.hyp"], ["base", "one_wide_ffn"]),
        (["base.detok.txt"], ["base.detok"]),
        (["runs/base/test.hyp", "runs/wide/test.hyp"], ["base", "wide"]),
        (["runs/base/", "runs/wide"], ["base", "wide"]),
        (["runs/big/out", "runs/small/out/"], ["big", "small"]),
        (["wide/test.de", "wide/../base/test.de"], ["wide", "base"]),
        (["a/model.de", "a/model.fr"], ["a/model.de", "a/model.fr"]),
        (["base/test.de", "wide/test.de", "base.hyp"], ["base/test.de", "wide", "base"]),
        (["Big=runs/base/test.hyp", "runs/wide/test.hyp"], ["Big", "test"]),
        (["test=runs/base/hyp.de", "runs/wide/test.de"], ["test", "wide"]),
    ],
)
def test_names(given, names):
    paths, baseline = name_systems(given)
    assert list(paths) == names
    assert list(paths.values()) == [text.split("=")[-1] for text in given]
    assert baseline == {}


def test_a_file_with_an_equals_sign(tmp_path):
    (tmp_path / "beam=5.hyp").write_text("a\n")
    paths, _ = name_systems([str(tmp_path / "beam=5.hyp")])
    assert paths == {"beam=5": str(tmp_path / "beam=5.hyp")}


def test_baseline_comes_first(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "a.de").write_text("a\n")
    with_b = {"b": "b", "a": "b", "c": "b"}
    assert name_systems(["a.de", "b.de", "c.de"], ["b"]) == ({"b": "b.de", "a": "a.de", "c": "c.de"}, with_b)
    paths, baselines = name_systems(["a.de", "b.de"], ["b.de"])
    assert (list(paths), baselines) == (["b", "a"], {"b": "b", "a": "b"})
    one_more = name_systems(["new/a.de"], ["old/a.de"])
    assert one_more == ({"old": "old/a.de", "new": "new/a.de"}, {"old": "old", "new": "old"})


def test_each_is_compared_with_the_last_baseline_before_it():
    given = ["x.de", "base.de", "wide.de", "deep.de", "deep_wide.de"]
    paths, baselines = name_systems(given, ["deep.de", "base"])
    assert list(paths) == ["base", "x", "wide", "deep", "deep_wide"]
    assert baselines == {"base": "base", "x": "base", "wide": "base", "deep": "deep", "deep_wide": "deep"}
    with pytest.raises(InputError, match="`--baseline` old/a.de is none of the systems: x, base"):
        name_systems(given, ["deep", "old/a.de"])


def test_names_say_the_size():
    given = ["big_no_dec.de", "base.de", "mine.de", "big.de", "deep_shallow_one_wide_ffn.de", "owf_base_no_enc.de"]
    paths, baselines = name_systems(given, sizes=True)
    assert list(paths) == [name.removesuffix(".de") for name in given]
    assert [*baselines.values()] == ["big", "base", "big", "big", "big", "base"]
    assert set(name_systems(given, ["base"], sizes=True)[1].values()) == {"base"}  # what is named wins


def test_baseline_by_the_name_of_a_folder():
    files = ["owf_big/test.de", "owf_small/test.de"]
    assert name_systems(files, ["owf_small"])[0] == {"owf_small": files[1], "owf_big": files[0]}


def test_a_baseline_that_is_not_there():
    with pytest.raises(InputError) as caught:
        name_systems(["runs/owf_big/test.de", "runs/owf_small/test.de"], ["owf_smal"])
    assert caught.value.problems == [
        "`--baseline` owf_smal is neither a file nor one of the systems: owf_big, owf_small"
    ]


def test_given_names_must_differ():
    with pytest.raises(InputError, match=r"a\.de and b\.de have one name, 'X': give another, as in `NAME=b\.de`"):
        name_systems(["X=a.de", "X=b.de"])
    with pytest.raises(InputError, match=r"a\.de and a\.de have one name"):
        name_systems(["a.de", "a.de"])
