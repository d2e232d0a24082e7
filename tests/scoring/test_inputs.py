"""Names of systems: short, readable, never twice, and the same whatever else is evaluated."""

import pytest

from owf_fairseq.errors import InputError
from owf_fairseq.scoring.inputs import name_systems


@pytest.mark.parametrize(
    ("given", "names"),
    [
        (["out/base.de", "one_wide_ffn.hyp"], ["base", "one_wide_ffn"]),
        (["hyp.OpenNMT.de", "hyp.Online-A.de"], ["OpenNMT", "Online-A"]),
        (["hyp.OpenNMT.de"], ["OpenNMT"]),
        (["base.detok.en-de.txt"], ["base.detok"]),
        (["model.v2.de", "model.v3.de"], ["model.v2", "model.v3"]),
        (["hyp", "hyp.de"], ["hyp", "hyp.de"]),
        (["model.de", "model.fr"], ["model.de", "model.fr"]),
        (["runs/base/test.hyp", "runs/wide/test.hyp"], ["base", "wide"]),
        (["a/x/test.hyp", "b/x/test.hyp", "c.hyp"], ["a", "b", "c"]),
        (["owf_small/test.de", "owf_small_one_wide_ffn/test.de"], ["owf_small", "owf_small_one_wide_ffn"]),
        (["a/test.de", "b/test.de", "b/test.fr"], ["a/test.de", "b/test.de", "b/test.fr"]),
        (["a/x/test.de", "b/x/test.de", "a/y/test.de"], ["a/x/test", "b/x/test", "a/y/test"]),
        (["base/test.de", "wide/test.de", "base.hyp"], ["base/test", "wide/test", "base"]),
        (["test.de", "wide/test.de"], ["test", "wide"]),
        (["../test.de", "wide/test.de"], ["../test", "wide/test"]),
        (["runs/big/out", "runs/small/out/"], ["big", "small"]),
        (["Big=runs/base/test.hyp", "runs/wide/test.hyp"], ["Big", "test"]),
        (["test=runs/base/hyp.de", "runs/wide/test.de"], ["test", "test.de"]),
        (["runs/base/", "runs/wide"], ["base", "wide"]),
    ],
)
def test_names(given, names):
    paths, baseline = name_systems(given)
    assert list(paths) == names
    assert list(paths.values()) == [text.split("=")[-1] for text in given]
    assert baseline is None


def test_a_file_with_an_equals_sign(tmp_path):
    (tmp_path / "beam=5.hyp").write_text("a\n")
    paths, _ = name_systems([str(tmp_path / "beam=5.hyp")])
    assert paths == {"beam=5": str(tmp_path / "beam=5.hyp")}


def test_baseline_comes_first(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "a.de").write_text("a\n")
    assert name_systems(["a.de", "b.de", "c.de"], "b") == ({"b": "b.de", "a": "a.de", "c": "c.de"}, "b")
    paths, baseline = name_systems(["a.de", "b.de"], "b.de")
    assert (list(paths), baseline) == (["b", "a"], "b")
    assert name_systems(["a.de"], "old/a.de") == ({"old": "old/a.de", "a": "a.de"}, "old")  # one more system


def test_baseline_by_the_name_of_a_folder():
    files = ["owf_big/test.de", "owf_small/test.de"]
    assert name_systems(files, "owf_small") == ({"owf_small": files[1], "owf_big": files[0]}, "owf_small")


def test_a_baseline_that_is_not_there():
    with pytest.raises(InputError) as caught:
        name_systems(["runs/owf_big/test.de", "runs/owf_small/test.de"], "owf_smal")
    assert caught.value.problems == [
        "`--baseline` owf_smal is neither a file nor one of the systems: owf_big, owf_small"
    ]


def test_given_names_must_differ():
    with pytest.raises(InputError, match=r"a\.de and b\.de have one name, 'X': give another, as in `NAME=b\.de`"):
        name_systems(["X=a.de", "X=b.de"])
    with pytest.raises(InputError, match=r"a\.de and a\.de have one name"):
        name_systems(["a.de", "a.de"])
