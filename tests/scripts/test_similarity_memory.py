"""scripts/measure/similarity_memory.py."""

import re

import pytest
from scripts_for_tests import load_script


def test_the_script_that_measures_memory(capsys):
    script = load_script("measure/similarity_memory.py")
    assert script.main(["--sentences", "300", "--dimensions", "8"]) == 0
    said = capsys.readouterr().out
    shown = re.fullmatch(r"LNS of 300 sentences, 8 dimensions, k = 15: 1 of 1 blocks, peak ([\d.]+) GB, .*\n", said)
    assert 0 < float(shown[1]) < 64  # of the process, which may have run other tests
    with pytest.raises(SystemExit) as stopped:
        script.main(["--sentences", "1"])
    assert stopped.value.code == 2
