#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The model of the membership rules: spin finds no error in it, and one in each broken rule.

membership_test.py MODEL RULES-PAGE [DEFINE...]

With a DEFINE (for example N=4 CUTS=2) it checks this one model only, as large as it may be, and
prints the steps that lead to an error.
"""

import pathlib
import re
import resource
import shutil
import subprocess
import sys
import tempfile

import tap

LARGEST = ["N=3", "CUTS=3"]
SMALL = [
    ("three members, and three changes of a partition", LARGEST),
    ("three members, a partition, a crash and a restart",
     ["N=3", "CUTS=1", "CRASHES=1", "RESTARTS=1"]),
    ("three members, a partition, a departure and a restart",
     ["N=3", "CUTS=1", "LEAVES=1", "RESTARTS=1"]),
    ("four members and a partition", ["N=4", "CUTS=1"]),
]
# Each broken rule, a model that is large enough, and a part of the assertion that must fail.
BROKEN = [
    ("half of the votes are enough", "HALF_DECLARES", ["N=4", "CUTS=1"], "lawful"),
    ("missed members are not in the electorate", "SUBJECT_NOT_COUNTED", ["N=4", "CUTS=1"],
     "lawful"),
    ("the brake holds nobody", "BRAKE_IGNORED", ["N=3", "CUTS=2"], "brake"),
    ("a readmitted member keeps its vote", "READMITTED_VOTES", ["N=3", "CUTS=2"], "fallen"),
    ("a dead agent does not refute", "NO_REFUTATION", ["N=3", "CUTS=2"], "life"),
    ("a census counts the dead", "DEAD_COUNTED", ["N=4", "CUTS=2"], "electorate"),
    ("a peer that a third one hears is declared", "HEARD_IGNORED", ["N=4", "CUTS=1"], "heard"),
    ("one witness is enough", "ONE_WITNESS", ["N=3", "CUTS=1"], "witnessed"),
]
RESULT = re.compile(r"depth reached (\d+), errors: (\d+)\s+(\d+) states, stored", re.DOTALL)
MEMORY = re.compile(r"([\d.]+)\s+total actual memory usage")
FAILED = re.compile(r"assertion violated (.*) \(at depth")


class Outcome:
    """Result of one exhaustive search. `failed` is the assertion that does not hold, or None."""

    def __init__(self, output):
        found = RESULT.search(output)
        assert found, output
        self.depth, self.errors, self.states = (int(number) for number in found.groups())
        self.memory_mb = float(MEMORY.search(output)[1])
        failed = FAILED.search(output)
        self.failed = failed[1] if failed else None
        assert "max search depth too small" not in output, output
        assert "out of memory" not in output, output


def command_run(command, directory):
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command[0]}: {done.stdout}{done.stderr}"
    return done.stdout


def search(model, defines, show=False):
    """Search all states of the model with these macros. Show the steps that lead to an error."""
    if shutil.which("spin") is None or shutil.which("gcc") is None:
        raise tap.Skip("no spin or no gcc (Debian packages spin and gcc)")
    options = [f"-D{define}" for define in defines]
    # An optimized build takes 8 s, which pays only for a large search.
    level = "-O1" if show or defines == LARGEST else "-O0"
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with tempfile.TemporaryDirectory(prefix="tocsin-spec-") as directory:
        shutil.copy(model, directory)
        command_run(["spin", "-a", *options, model.name], directory)
        # No partial order reduction: there is one process, and every step is atomic.
        command_run(["gcc", level, "-w", "-DSAFETY", "-DNOREDUCE", "-DCOLLAPSE", "-o", "pan",
                     "pan.c"], directory)
        outcome = Outcome(command_run(["./pan", "-m1000000"], directory))
        if show and outcome.errors > 0:
            print(command_run(["spin", "-k", f"{model.name}.trail", *options, model.name],
                              directory))
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    tap.comment(f"{' '.join(defines)}: {outcome.states} states, depth {outcome.depth}, "
                f"{outcome.memory_mb:.0f} MB, {used_s:.1f} s of processor time, "
                f"{outcome.errors} errors")
    return outcome


def small_check(model, defines):
    outcome = search(model, defines)
    assert outcome.errors == 0, outcome.failed


def broken_check(model, name, defines, part):
    outcome = search(model, [*defines, f"MUTANT_{name}"])
    assert outcome.errors == 1, "spin finds no error"
    assert part in outcome.failed, outcome.failed


def limit_check(model):
    """Rule V16 names this limit. Once it holds no more, the page and the model are out of date."""
    outcome = search(model, ["N=3", "CUTS=2", "ANY_MOMENT"])
    assert outcome.errors == 1 and "declared" in outcome.failed, outcome.failed


def rule_names_check(model, page):
    """Each rule that the model names is in the page."""
    rules = set(re.findall(r"^- \*\*([A-Z]\d+)\.\*\*", page.read_text(encoding="utf-8"),
                           re.MULTILINE))
    comments = "\n".join(line.partition("//")[2]
                         for line in model.read_text(encoding="utf-8").splitlines())
    named = set(re.findall(r"\b[A-OQ-Z]\d+\b", comments))  # P1 and so on are properties
    assert len(rules) > 50 and len(named) > 20, (rules, named)
    assert named <= rules, f"{page.name} has no rule {sorted(named - rules)}"


def main():
    model, page = (pathlib.Path(argument) for argument in sys.argv[1:3])
    if len(sys.argv) > 3:
        sys.exit(search(model, sys.argv[3:], show=True).errors)
    tap.run([
        ("every rule that the model names is in the page",
         lambda: rule_names_check(model, page)),
        *((f"no error: {sentence}", lambda defines=defines: small_check(model, defines))
          for sentence, defines in SMALL),
        *((f"an error if {sentence}", lambda case=case: broken_check(model, *case))
          for sentence, *case in BROKEN),
        ("an error if a partition shifts between a census and the death declared by it",
         lambda: limit_check(model)),
    ])


if __name__ == "__main__":
    main()
