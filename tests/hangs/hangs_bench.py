#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""`./dev bench hangs`: 60 odd and hanging programs under two agents, and what is said of each.

    hangs_bench.py BUILD-ROOT [--json] [AT-ONCE] [NAME...]

Without NAME all are played, AT-ONCE (6) at the same time. tests/hangs/catalogue.txt has what must
be said, and what never. Exit status 0 only if no word is false and 28 of 30 hangs are named within
20 s. Programs whose MPI library or torch is not installed are not played, and the target is missed.
"""

import argparse
import json
import sys

import corpus

HEAD = f"{'program':16} {'layer':9} {'expected':13} {'named':>7}  said"


def show(row):
    who = "/".join(",".join(map(str, each)) for each in row["who"]) or "-"
    named = f"{row['seconds']:.1f} s" if row["seconds"] is not None else "-"
    print(f"{row['name']:16} {row['layer']:9} {row['state'] + ' ' + who:13} {named:>7}  "
          f"{(row['said'] or 'nothing')}", flush=True)
    for fault in row["faults"]:
        print(f"    {fault['kind'].upper()}: {fault['said']}", flush=True)


def main():
    parser = argparse.ArgumentParser(
        formatter_class=argparse.RawDescriptionHelpFormatter, description=__doc__)
    parser.add_argument("build")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("words", nargs="*", metavar="AT-ONCE or NAME")
    asked = parser.parse_args()
    catalogue = corpus.read_catalogue()
    at_once = [int(word) for word in asked.words if word.isdigit()] or [6]
    names = [word for word in asked.words if not word.isdigit()] or list(catalogue)
    unknown = [name for name in names if name not in catalogue]
    if unknown or len(at_once) > 1 or at_once[0] < 1:
        parser.error(f"no such program: {' '.join(unknown)}; tests/hangs/catalogue.txt has all"
                     if unknown else "one number of programs at once, at least 1")
    if not corpus.can_have_namespaces():
        print("hangs: namespaces of processes and network are refused; run as root",
              file=sys.stderr)
        return 1
    status = corpus.in_namespaces()
    if status is not None:
        return status
    programs = [catalogue[name] for name in names]
    lacking = {program.name: corpus.missing_software(program) for program in programs}
    programs = [program for program in programs if not lacking[program.name]]
    rows = []
    if not asked.json:
        print(HEAD, flush=True)
    with corpus.Play(asked.build) as play:
        for row in play.play(programs, at_once[0]):
            rows.append(row)
            if not asked.json:
                show(row)
    counts = corpus.totals(rows)
    skipped = {name: why for name, why in lacking.items() if why}
    if asked.json:
        print(json.dumps({"bench": "hangs", "rows": rows, "totals": counts,
                          "not_played": skipped}))
    else:
        for name, why in skipped.items():
            print(f"{name:16} not played: {why} is not installed")
        print(", ".join(f"{kind} {count}" for kind, count in counts.items()))
    return 0 if corpus.is_reached(counts) and not skipped else 1


if __name__ == "__main__":
    sys.exit(main())
