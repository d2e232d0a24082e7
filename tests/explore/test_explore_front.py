"""Which layouts are on the front, how they are ranked, and which lines are shown."""

import json
import random

import pytest
from fairseq_for_tests import REPOSITORY

from owf_fairseq.cost_model.cost import Workload
from owf_fairseq.cost_model.device_profiles import CPU, PROFILES, V100
from owf_fairseq.errors import InputError
from owf_fairseq.explore.front import Question, find_matches, individual_count, time_matches
from owf_fairseq.explore.layouts import layout_of_row
from owf_fairseq.explore.tables import Timing, explore, paper_rows
from owf_fairseq.paper.rows import rows

BIG = Question("big", 50_408, 228_000_000)
WORKLOAD = Workload(1, 5, 26, 30)


@pytest.fixture(scope="module")
def timed():
    question = Question("deep_shallow", 50_408, 230_000_000, 0.25, ("taper",))
    return time_matches(find_matches(question), question.vocab_size, V100, WORKLOAD)


def test_the_front_is_what_nothing_surpasses(timed):
    """By the definition, pair by pair; speeds that differ by the order of a sum alone are equal."""
    costs = {(one.parameters, float(f"{one.tokens_per_s:.9g}")): one.on_front for one in timed}
    assert 3 <= sum(costs.values()) < len(costs)
    for (parameters, speed), on_front in costs.items():
        surpassed = any(
            (more >= parameters and faster > speed) or (more > parameters and faster >= speed) for more, faster in costs
        )
        assert on_front != surpassed


def test_ranks_and_layouts_that_are_alike(timed):
    speeds = [float(f"{one.tokens_per_s:.9g}") for one in timed]
    assert speeds == sorted(speeds, reverse=True)
    for one in random.Random(0).sample(timed, 50):
        speed = float(f"{one.tokens_per_s:.9g}")
        assert one.rank == 1 + sum(other > speed for other in speeds)
        same = [t for t, s in zip(timed, speeds, strict=True) if (s, t.parameters) == (speed, one.parameters)]
        assert one.alike == len(same)
        assert [t for t in same if t.is_first] == [same[0]]


def test_all_match_the_budget():
    question = Question("small", 4_000, 1_050_000, 0.12, multiple_of=8)
    found = [match.parameters for match in find_matches(question)]
    assert all(924_000 <= parameters <= 1_176_000 for parameters in found)
    # a tolerance above 10 % has widths for budgets that far away too
    assert min(found) < 960_000
    assert max(found) > 1_140_000
    narrow = [match.parameters for match in find_matches(Question("small", 4_000, 1_050_000, 0.01, multiple_of=8))]
    assert all(1_039_500 <= parameters <= 1_060_500 for parameters in narrow)


def test_no_layout_matches():
    with pytest.raises(InputError) as raised:
        find_matches(Question("big", 50_408, 100_000_000))
    [problem] = raised.value.problems
    assert "99,000,000 and 101,000,000" in problem
    assert "the nearest have 127,225,856" in problem
    with pytest.raises(InputError, match="smaller `--multiple-of`"):
        find_matches(Question("small", 4_000, 1_000_000, 0.00001, ("taper",), 128))


def test_one_wide_ffn_at_the_papers_budget():
    """Its place, its figures, and why it is not on the front: the same parameters used once are faster."""
    found = explore(BIG, Timing(V100, (WORKLOAD, Workload(32, 5, 26, 30))))
    [wide] = [line for line in found.data["workloads"][0]["layouts"] if (line["paper"] or {}).get("bleu") == 36.5]
    assert wide["flags"] == ["--encoder-ffn", "shared", "--encoder-ffn-embed-dim", "49152", "--decoder-ffn", "none"]
    assert (wide["parameters"], wide["on_front"]) == (227_941_376, False)
    assert (wide["paper"]["tokens_per_s"], wide["paper"]["chrf"]) == (137.5, 63.2)
    assert f"{wide['tokens_per_s']:.1f}" == "130.5"  # as docs/speed/README.md has it
    [big] = [line for line in found.data["workloads"][0]["layouts"] if line["flags"] == []]
    assert big["ratio"] == 1
    fastest = found.data["workloads"][0]["layouts"][0]
    assert fastest["rank"] == 1 < wide["rank"] < big["rank"]
    later = {tuple(line["flags"]): line["rank"] for line in found.data["workloads"][1]["layouts"]}
    assert later[tuple(wide["flags"])] > later[()]  # at batch size 32 it is behind the individual model


def test_the_lines_that_are_shown():
    few = explore(BIG, Timing(CPU, (WORKLOAD,), top=3))
    lines = few.data["workloads"][0]["layouts"]
    assert few.data["matching"] == len(few.timed[0]) > 10_000
    front = [line for line in lines if line["on_front"]]
    assert len(front) == few.data["workloads"][0]["on_front"] < len(lines)
    others = [line for line in lines if not line["on_front"] and line["paper"] is None]
    assert len(others) <= 3
    everything = explore(Question("small", 4_000, 1_050_000), Timing(CPU, (WORKLOAD,), everything=True))
    assert len(everything.data["workloads"][0]["layouts"]) == everything.data["matching"]


def test_the_papers_figures_by_vocabulary():
    pairs = {
        vocabulary: {row.pair for row in paper_rows("base", vocabulary).values()} for vocabulary in (39_840, 32_000)
    }
    assert pairs == {39_840: {"en-ro"}, 32_000: {"en-de"}}
    # of the rows that repeat a model, the one with the most figures
    [individual] = [row for row in paper_rows("big", 50_408).values() if row.configuration == "individual"]
    assert (individual.tokens_per_s, individual.chrf) == (110.8, 62.6)
    big = {layout_of_row(row).key for row in rows() if (row.pair, row.size) == ("en-de", "big")}
    assert set(paper_rows("big", 50_408)) == big


def test_the_budget_is_the_individual_models():
    assert individual_count("big", 50_408) == 227_975_168


@pytest.mark.parametrize("name", ["v100", "cpu"])
def test_the_committed_results_are_what_the_code_gives(name):
    committed = json.loads((REPOSITORY / f"docs/explore/{name}.json").read_text(encoding="utf-8"))
    setting = Timing(PROFILES[name], (WORKLOAD, Workload(32, 5, 26, 30)))
    fresh = json.loads(json.dumps(explore(BIG, setting).data))
    for ours, theirs in zip(fresh["workloads"], committed["workloads"], strict=True):
        for line, other in zip(ours["layouts"], theirs["layouts"], strict=True):
            assert line == {**other, **{key: pytest.approx(other[key]) for key in ("tokens_per_s", "ratio", "flops")}}
    assert {**fresh, "workloads": []} == {**committed, "workloads": []}
