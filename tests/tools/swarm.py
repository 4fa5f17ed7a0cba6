# SPDX-License-Identifier: BSD-3-Clause
"""./dev swarm: mixes of faults in the simulator for so many seconds, at all sizes in turn.

    swarm.py TOCSIN_SIM SECONDS [SEED]
    swarm.py TOCSIN_SIM --turns TURNS SEED   for ./dev test: so many times all sizes
    swarm.py TOCSIN_SIM --commit TURNS TREE  the same with the commit of a work tree as the seed

A run with --turns or --commit begins no further turn when its simulators have used 60 s of CPU
time. The first turn always plays all sizes.

Small clusters come first and most often: there is all of a mix in every node's neighbourhood. Seeds
are drawn anew each time, and told; the same SEED draws the same. By the commit each one plays other
mixes, and the same ones wherever it is tested; a tree without git takes seed 1. Exit status: 0 if
no mix broke an invariant, 1 if one did, 3 if the simulator did not run."""

import os
import random
import re
import subprocess
import sys
import tempfile
import time

# Arguments, and mixes in one turn.
SIZES = [(["--nodes", str(nodes)], 40) for nodes in (2, 3, 4, 5, 6, 7, 8, 9, 12)] + [
    (["--nodes", "12", "--hosts", "3"], 40),
    (["--nodes", "16"], 20),
    (["--nodes", "24"], 20),
    (["--nodes", "64"], 6),
    (["--nodes", "64", "--hosts", "8"], 4),
    (["--nodes", "200"], 2),
]
SEED_MAX = 10**12
# CPU seconds of all simulators in one --turns or --commit run, after which no turn begins.
CPU_SECONDS_MAX = 60


def name_of(size):
    """12, or 12/3 on fewer hosts."""
    return "/".join(size[1::2])


def play(simulator, size, seed, count):
    """How many of the mixes broke; -1 if they did not run."""
    command = [simulator, "--swarm", str(count), *size, "--seed", str(seed)]
    broken = -1
    with tempfile.TemporaryFile(mode="w+", encoding="utf-8") as trouble:
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=trouble, text=True) as player:
            for line in player.stdout:  # at once: to make it smaller takes a while
                last = re.match(r"swarm: (\d+) of \d+ mixes", line)
                if last is not None:
                    broken = int(last.group(1))
                else:
                    print(line, end="", flush=True)
        if broken < 0:
            trouble.seek(0)
            print(f"swarm: {' '.join(map(str, command))}: exit status {player.returncode}\n"
                  f"{trouble.read()}")
    return broken


class Until:
    """Whether there is time for another size."""

    def __init__(self, seconds):
        self.ends = time.monotonic() + seconds

    def __bool__(self):
        return time.monotonic() < self.ends


def simulator_cpu_seconds():
    """CPU seconds of all simulators that have ended."""
    spent = os.times()
    return spent.children_user + spent.children_system


def turns(count):
    """Sizes and counts: so many times all of them, or as long as it is true."""
    while count:
        if isinstance(count, int) and simulator_cpu_seconds() > CPU_SECONDS_MAX:
            print(f"swarm: {CPU_SECONDS_MAX} s of CPU time are used; {count} turns are not played")
            return
        for size in SIZES:
            if count:
                yield size
        if isinstance(count, int):
            count -= 1


def seed_of_commit(tree):
    """A number of the commit that the tree has checked out, and what it is of."""
    # Of a hook or of a caller's own repository, perhaps.
    own = {name: text for name, text in os.environ.items() if not name.startswith("GIT_")}
    try:
        asked = subprocess.run(["git", "-C", tree, "rev-parse", "--verify", "HEAD"], env=own,
                               capture_output=True, text=True, check=True)
        commit = asked.stdout.strip()
        return int(commit, 16) % SEED_MAX, f"commit {commit[:12]}"
    except (OSError, ValueError, subprocess.CalledProcessError):
        return 1, "no commit: this tree is in no git repository"


def main(simulator, seed, how_long):
    """Plays all, then tells how many of which size."""
    draw = random.Random(seed)
    played = dict.fromkeys((name_of(size) for size, _ in SIZES), 0)
    broken = 0
    print(f"swarm: seed {seed}", flush=True)
    for size, count in turns(how_long):
        found = play(simulator, size, draw.randrange(SEED_MAX), count)
        if found < 0:
            return 3
        played[name_of(size)] += count
        broken += found
    for name, count in played.items():
        print(f"  {name:>6} nodes {count:>8} mixes")
    print(f"swarm: {broken} of {sum(played.values())} mixes broke an invariant (seed {seed})")
    return 1 if broken > 0 else 0


if __name__ == "__main__":
    if sys.argv[2] == "--turns":
        sys.exit(main(sys.argv[1], int(sys.argv[4]), int(sys.argv[3])))
    if sys.argv[2] == "--commit":
        SEED, OF = seed_of_commit(sys.argv[4])
        print(f"swarm: {OF}")
        sys.exit(main(sys.argv[1], SEED, int(sys.argv[3])))
    GIVEN = int(sys.argv[3]) if len(sys.argv) > 3 else random.SystemRandom().randrange(SEED_MAX)
    sys.exit(main(sys.argv[1], GIVEN, Until(int(sys.argv[2]))))
