"""Every pattern by its whole literal list, and what is refused."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from owf_fairseq.errors import InputError
from owf_fairseq.patterns import STRATEGIES, Strategy, blocks_in_order, make_pattern, pattern_text
from owf_fairseq.sharing import ARCHS, CONFIGURATIONS, SIZES, arch_name, wide_ffn_dim

PATTERNS = {
    ("individual", 6): [0, 1, 2, 3, 4, 5],
    ("shared", 6): [0, 0, 0, 0, 0, 0],
    ("none", 6): [None, None, None, None, None, None],
    ("sequence-1", 6): [0, 0, 0, 0, 0, 0],
    ("sequence-2", 6): [0, 0, 0, 1, 1, 1],
    ("sequence-3", 6): [0, 0, 1, 1, 2, 2],
    ("sequence-4", 12): [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3],
    ("cycle-2", 6): [0, 1, 0, 1, 0, 1],
    ("cycle-3", 6): [0, 1, 2, 0, 1, 2],
    ("cycle-6", 6): [0, 1, 2, 3, 4, 5],
    ("cycle-rev-2", 6): [0, 1, 0, 1, 1, 0],
    ("cycle-rev-3", 6): [0, 1, 2, 2, 1, 0],
    ("cycle-rev-2", 2): [0, 1],
    ("cycle-rev-3", 12): [0, 1, 2, 0, 1, 2, 0, 1, 2, 2, 1, 0],
    ("sequence-3", 7): [0, 0, 1, 1, 2, 2, 3],
    ("sequence-4", 6): [0, 1, 2, 3, 4, 5],
    ("cycle-4", 6): [0, 1, 2, 3, 0, 1],
    ("last", 6): [0, 0, 0, 0, 0, 1],
    ("last", 1): [0],
    ("middle-2", 6): [None, None, 0, 1, None, None],
    ("middle-3", 6): [None, 0, 1, 2, None, None],
    ("middle-6", 6): [0, 1, 2, 3, 4, 5],
    ("sandwich", 6): [0, 1, 1, 1, 1, 2],
    ("sandwich", 3): [0, 1, 2],
    ("sandwich", 2): [0, 1],
    ("sandwich", 1): [0],
}


@pytest.mark.parametrize(("text", "layers"), PATTERNS)
def test_pattern(text, layers):
    assert make_pattern(text, layers) == PATTERNS[text, layers]


def test_every_strategy_has_a_literal_row():
    tested = {text.rsplit("-", 1)[0] if text[-1].isdigit() else text for text, _ in PATTERNS}
    assert STRATEGIES
    assert tested == set(STRATEGIES)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("cycle-7", "7 blocks for 6 layers"),
        ("cycle-rev-4", "4 blocks for 6 layers (M must divide the number of layers)"),
        ("middle-7", "7 blocks for 6 layers"),
        ("sequence-0", "'sequence-0'"),
        ("cycle-02", "'cycle-02'"),
        ("cycle-\u0662", "'cycle-"),
        ("cycle-2\n", "'cycle-2"),
        ("cycle-rev-12", "12 blocks for 6 layers"),
        ("cycle", "'cycle'"),
        ("shared-2", "'shared-2'"),
        ("Shared", "'Shared'"),
        ("", "''"),
        ("cycle-", "'cycle-'"),
        ("cycle--2", "'cycle--2'"),
    ],
)
def test_bad_pattern_names_flag_value_and_what_is_allowed(text, reason):
    with pytest.raises(InputError, match="`--encoder-ffn` must be one of") as error:
        make_pattern(text, 6, flag="--encoder-ffn")
    message = str(error.value)
    assert reason in message
    assert all(strategy.spelling in message for strategy in STRATEGIES.values())


EXPLICIT_PATTERNS = {
    "0,0,1,-,1,2": [0, 0, 1, None, 1, 2],
    "-,-,-,-,-,-": [None] * 6,
    "0, 1 ,2,3,4,5": [0, 1, 2, 3, 4, 5],
    "-,0,0,0,0,-": [None, 0, 0, 0, 0, None],
}


@pytest.mark.parametrize("text", EXPLICIT_PATTERNS)
def test_explicit_pattern(text):
    assert make_pattern(text, 6) == EXPLICIT_PATTERNS[text]
    assert make_pattern(pattern_text(EXPLICIT_PATTERNS[text]), 6) == EXPLICIT_PATTERNS[text]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("0,0,1", "3 entries for 6 layers"),
        ("0", "1 entry for 6 layers"),
        ("-", "1 entry for 6 layers"),
        ("0,0,2,-,2,1", "without gaps, in the order of their first use: give 0,0,1,-,1,2"),
        ("1,1,1,1,1,1", "give 0,0,0,0,0,0"),
        ("0,1,1,3,3,3", "give 0,1,1,2,2,2"),
    ],
)
def test_a_wrong_explicit_pattern_says_what_is_wrong(text, reason):
    with pytest.raises(InputError) as error:
        make_pattern(text, 6, flag="--encoder-ffn")
    [problem] = error.value.problems
    assert problem.startswith(f"`--encoder-ffn` is '{text}'")
    assert reason in problem


@pytest.mark.parametrize(
    "text", ["0,0,1,,1,2", "0,0,1,x,1,2", "0;0", "0,1,", "-1,0,0,0,0,0", "0,0,0,0,0,\u0660", "1.0"]
)
def test_what_is_no_pattern_is_told_all_ways(text):
    with pytest.raises(InputError, match="must be one of individual, .* or a number for each layer with - for none"):
        make_pattern(text, 6)


@given(st.lists(st.none() | st.integers(0, 7), min_size=1, max_size=12))
def test_explicit_patterns_are_those_that_number_blocks_by_first_use(numbers):
    used = list(dict.fromkeys(number for number in numbers if number is not None))
    if used == sorted(used) and used == list(range(len(used))):
        assert make_pattern(pattern_text(numbers), len(numbers)) == numbers
        return
    with pytest.raises(InputError) as error:
        make_pattern(pattern_text(numbers), len(numbers))
    [problem] = error.value.problems
    meant = make_pattern(problem.rsplit("give ", 1)[1], len(numbers))  # what it advises is allowed, and the same layout
    same = [[one == other for other in numbers] for one in numbers]
    assert [[one == other for other in meant] for one in meant] == same
    assert [number is None for number in meant] == [number is None for number in numbers]


@given(st.sampled_from(sorted(STRATEGIES)), st.integers(1, 16), st.integers(1, 17))
def test_every_strategy_is_an_explicit_pattern(name, layers, blocks):
    """So that each can be written with numbers, and widths can be listed in the order of its blocks."""
    text = f"{name}-{blocks}" if STRATEGIES[name].counted else name
    try:
        numbers = make_pattern(text, layers)
    except InputError:
        assert blocks > layers or layers % blocks
        return
    assert make_pattern(pattern_text(numbers), layers) == numbers


@pytest.mark.parametrize("numbers", [[0, 0], [0, 1, 2, 3, 4, 6], [0, 1, 2, 3, 4, -1], list(range(7))])
def test_a_strategy_that_does_not_number_the_layers_is_an_error(monkeypatch, numbers):
    monkeypatch.setitem(STRATEGIES, "new", Strategy("new", lambda n: numbers, counted=False, divides=False))
    with pytest.raises(ValueError, match="strategy 'new' must give each of 6 layers a number below it or None"):
        make_pattern("new", 6)


def test_blocks_are_made_when_first_used_and_once():
    made = []

    def make(layer):
        made.append(layer)
        return f"block of layer {layer}"

    blocks = blocks_in_order([0, 1, None, 1, 0, 2], make)
    assert made == []
    assert next(blocks) == "block of layer 0"
    assert made == [0]
    assert list(blocks) == ["block of layer 1", None, "block of layer 1", "block of layer 0", "block of layer 5"]
    assert made == [0, 1, 5]


def test_archs_are_named_once_and_complete():
    assert len(ARCHS) == len(set(ARCHS.values()))
    for size in ("tiny", "base", "big", "deep_shallow", "iwslt", "student_tiny", "student_base"):
        assert {arch_name(size, configuration) for configuration in CONFIGURATIONS} <= set(ARCHS)
    assert arch_name("base", "individual") == "owf_base"
    # with 2 layers a stack, 3 blocks do not fit, and 2 are the individual model, which has no second name
    without = {"sequence_2", "sequence_3", "cycle_2", "cycle_3", "cycle_rev_2", "cycle_rev_3"}
    small = {configuration for size, configuration in ARCHS.values() if size == "small"}
    assert small == set(CONFIGURATIONS) - without
    # nor do M = 3 blocks divide 4 layers, but for the cycle, whose last turn is cut short
    multi30k = {configuration for size, configuration in ARCHS.values() if size == "multi30k"}
    assert multi30k == set(CONFIGURATIONS) - {"sequence_3", "cycle_rev_3"}
    assert set(SIZES) == {size for size, _ in ARCHS.values()}


@pytest.mark.parametrize(
    ("name", "numbers"),
    [
        ("iwslt", (6, 6, 512, 1024, 4)),
        ("multi30k", (4, 4, 128, 256, 4)),
        ("student_tiny", (6, 2, 256, 1536, 8)),
        ("student_base", (6, 2, 512, 2048, 8)),
    ],
)
def test_sizes_of_the_literature(name, numbers):
    assert dataclasses.astuple(SIZES[name]) == numbers


def test_one_wide_ffn_width():
    assert wide_ffn_dim(4096, 6, 6) == 49152
    assert wide_ffn_dim(4096, 12, 2) == 57344
    assert wide_ffn_dim(2048, 6, 6) == 24576
