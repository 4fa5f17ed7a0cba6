# SPDX-License-Identifier: BSD-3-Clause
"""The statistics beside scipy's, on the same data. TAP."""

import json
import statistics
import subprocess
import sys


def largest(differences):
    return max(differences, default=float("inf"))


def main():
    try:
        from scipy import stats  # pylint: disable=import-outside-toplevel
    except ImportError:
        print("1..0 # SKIP no scipy: ./dev setup installs python3-scipy for /usr/bin/python3")
        return 0
    told = json.loads(subprocess.run([sys.argv[1]], capture_output=True, check=True).stdout)
    exact = [stats.mannwhitneyu(row["b"], row["a"], method="exact").pvalue
             for row in told["comparisons"]]
    rows = [
        ("binomial sums are those of scipy",
         largest(abs(stats.binom.cdf(successes, trials, p) - value)
                 for trials, p, successes, value in told["binomials"]) < 1e-9),
        ("the tail of Kolmogorov is that of scipy",
         largest(abs(stats.kstwobign.sf(x) - value) for x, value in told["kolmogorov"]) < 1e-9),
        ("normal quantiles are those of scipy",
         largest(abs(stats.norm.ppf(p) - value) for p, value in told["normal"]) < 1e-9),
        ("the exact test of Mann and Whitney is that of scipy",
         len(exact) > 50 and largest(abs(row["p"] - value) for row, value
                                     in zip(told["comparisons"], exact)) < 1e-9),
        ("the shift is the median of all differences",
         largest(abs(row["shift"] - statistics.median(b - a for a in row["a"] for b in row["b"]))
                 for row in told["comparisons"]) < 1e-12),
    ]
    print(f"1..{len(rows)}")
    for number, (name, good) in enumerate(rows, 1):
        print(f"{'ok' if good else 'not ok'} {number} - {name}")
    return 0 if all(good for _, good in rows) else 1


sys.exit(main())
