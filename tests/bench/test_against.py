"""The pairs and ratios of `bench.against`."""

from __future__ import annotations

from itertools import count

import pytest

from bench.against import FEWEST, Ratio, checkout, figures_in, in_turn, lines, main, ratio_of
from bench.measuring import ROOT


def test_ratio_of_twelve_pairs_has_the_third_lowest_and_highest_as_interval() -> None:
    # Of twelve the outer two on each side lie beyond the median in 3.9 of 100 repetitions, the outer three in 14.6.
    pairs = [(float(number), 1.0) for number in (7, 3, 11, 1, 9, 5, 12, 2, 10, 4, 8, 6)]
    assert ratio_of(pairs) == Ratio(6.5, 3.0, 10.0)


def test_ratio_of_the_fewest_pairs_has_the_extremes_as_interval() -> None:
    assert ratio_of([(float(number), 2.0) for number in range(1, FEWEST + 1)]) == Ratio(1.75, 0.5, 3.0)


def test_measures_alternate_after_one_each_that_does_not_count() -> None:
    order, numbers = list[str](), count()

    def measure(name: str) -> dict[str, float]:
        order.append(name)
        return {"both": float(next(numbers)), name: 1.0}

    found = in_turn(3, (lambda: measure("other"), lambda: measure("ours")))

    assert order == ["other", "ours", "ours", "other", "other", "ours", "ours", "other"]
    assert found == {"both": [(3.0, 2.0), (4.0, 5.0), (7.0, 6.0)]}


def test_rows_of_bench_become_times() -> None:
    table = (
        "x86_64, 2 cores, load 2.8\n\n"
        "plan_bids, 100 asks, 100 rival bids, outbidding, 5 rungs, 4 live bids        87 us  <= 100 us\n"
        "reserve an order, on disk                                     0.40 ms        bare commit 0.25 ms     1.6 x\n"
        "bid message signed and verified, P2WPKH, one core            10,000/s        unverified 15,727/s     1.5 x\n"
        "\n6 s, load 2.7; 0 failed\n"
    )
    assert dict(figures_in(table)) == {
        "plan_bids, 100 asks, 100 rival bids, outbidding, 5 rungs, 4 live bids, us": 87,
        "reserve an order, on disk, ms": 0.4,
        "bid message signed and verified, P2WPKH, one core, us": 100,
    }


def test_line_has_medians_ratio_and_interval() -> None:
    (line,) = lines({"POST, us": [(30.0, 10.0)] * 6})
    assert line.split() == ["POST,", "us", "30.00", "10.00", "3.000", "x", "3.000", "to", "3.000"]


def test_too_few_pairs_and_unknown_measures_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, said in ((["HEAD", "--pairs", "5"], "at least 6"), (["HEAD", "speed"], "unknown measure speed")):
        with pytest.raises(SystemExit):
            main(arguments)
        assert said in capsys.readouterr().err


def test_checkout_of_a_directory_is_that_directory_and_of_neither_is_refused() -> None:
    with checkout(str(ROOT)) as tree:
        assert tree.path == ROOT
    with pytest.raises(ValueError, match="neither a directory nor a commit"), checkout("no-such-commit"):
        pass
