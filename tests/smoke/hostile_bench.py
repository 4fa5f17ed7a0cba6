#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""`./dev bench hostile`: eight agents, one of which tells one lie after the other.

    hostile_bench.py BUILD-ROOT [--json] [SECONDS] [LIE...]

SECONDS are for all lies together (600). Without LIE all are told; --help lists them. Exit status 0
only if what must hold holds. A row that ends in "known" does not hold, as docs/security.md says.
"""

import argparse
import json
import sys

import liars

HEAD = f"{'lie':10} {'sent':>7} {'dead':>5} {'muted':>5} {'verdicts':>8} {'told':>5} {'named':>8}"


def show(row):
    named = f"{row['named_s']:.2f} s" if row["named_s"] is not None else "-"
    print(f"{row['lie']:10} {row['sent']:7} {row['dead']:5} {row['muted']:5} "
          f"{row['verdicts']:8} {row['told']:5} {named:>8}  {row['outcome']}", flush=True)
    for fault in row["faults"]:
        print(f"    {fault[:76]}", flush=True)


def outcome(name, result):
    if not result.faults:
        return "held"
    return "BROKEN" if liars.LIES[name].holds else "known"


def rows(build, seconds, names):
    with liars.Play(build) as play:
        play.start()
        for name in names:
            result = play.tell([name], seconds // len(names))
            yield {"lie": name, "does": liars.LIES[name].does, **result._asdict(),
                   "outcome": outcome(name, result)}


def main():
    parser = argparse.ArgumentParser(
        formatter_class=argparse.RawDescriptionHelpFormatter, description=__doc__,
        epilog="\n".join(f"  {name:10} {lie.does}" for name, lie in liars.LIES.items()))
    parser.add_argument("build")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("words", nargs="*", metavar="SECONDS or LIE")
    asked = parser.parse_args()
    seconds = [int(word) for word in asked.words if word.isdigit()] or [600]
    names = [word for word in asked.words if not word.isdigit()] or list(liars.LIES)
    unknown = [name for name in names if name not in liars.LIES]
    if unknown or len(seconds) > 1:
        parser.error(f"no such lie: {' '.join(unknown)}" if unknown else "one number of seconds")
    found = []
    if not asked.json:
        print(HEAD)
    for row in rows(asked.build, seconds[0], names):
        found.append(row)
        if not asked.json:
            show(row)
    if asked.json:
        print(json.dumps({"bench": "hostile", "rows": found}))
    return 1 if any(row["outcome"] == "BROKEN" for row in found) else 0


if __name__ == "__main__":
    sys.exit(main())
