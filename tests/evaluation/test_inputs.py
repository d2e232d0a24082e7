"""Names of systems: short, readable, never twice, and the same whatever else is evaluated."""

import pytest

from owf_fairseq.errors import InputError
from owf_fairseq.evaluation.inputs import name_systems


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
        (["runs/base/test.hyp", "runs/wide/test.hyp"], ["base/test", "wide/test"]),
        (["a/x/test.hyp", "b/x/test.hyp", "c.hyp"], ["a/x/test", "b/x/test", "c"]),
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


def test_baseline_comes_first():
    assert name_systems(["a.de", "b.de", "c.de"], "b") == ({"b": "b.de", "a": "a.de", "c": "c.de"}, "b")
    paths, baseline = name_systems(["a.de", "b.de"], "b.de")
    assert (list(paths), baseline) == (["b", "a"], "b")
    assert name_systems(["a.de"], "old/a.de") == ({"old/a": "old/a.de", "a": "a.de"}, "old/a")  # one more system


def test_given_names_must_differ():
    with pytest.raises(InputError, match=r"a\.de and b\.de have one name, 'X': give another, as in `NAME=b\.de`"):
        name_systems(["X=a.de", "X=b.de"])
    with pytest.raises(InputError, match=r"a\.de and a\.de have one name"):
        name_systems(["a.de", "a.de"])
