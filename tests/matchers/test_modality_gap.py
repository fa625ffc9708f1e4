"""Whether L_s closes a gap between the modalities: the benchmark, shorter."""

import runpy
from pathlib import Path

import pytest

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "modality_gap.py"


@pytest.mark.slow
def test_l_s_closes_the_gap_and_without_it_it_stays():
    play = runpy.run_path(str(BENCHMARK))["play"]
    without, by_l_s = (play(weight, seed=0, steps=1200) for weight in (0, 10))
    assert without["accuracy"] > 0.9 and without["new"] > 0.9
    assert without["bits"] < 0.3
    assert by_l_s["accuracy"] < 0.65 and by_l_s["new"] < 0.65
    assert by_l_s["bits"] > 0.95
    for direction in ("i2t_r1", "t2i_r1"):
        assert by_l_s[direction] > without[direction] - 0.05
