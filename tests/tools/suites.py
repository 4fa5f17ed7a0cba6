# SPDX-License-Identifier: BSD-3-Clause
"""What tests there are, by meson's own account, and which of them run at which level in which
build. A test has suites; the first of them is the main one.

    level 1   ./dev test: the release, and asan
    level 2   ./dev test --all, and a test or suite by its name: all of level 1; main suites in
              LEVEL_TWO and tests in the suite "long"; the builds tsan and fuzz

    release   every suite
    asan      what bytes and lifetimes can break: main suites in ASAN that are not in the suite
              release-only, and tests in the suite sanitized; on level 2 those in sanitized-all
    tsan      groups of unit tests that start threads
    fuzz      short libFuzzer runs from the seeds (release and asan only replay these)

docs/internals/tests.md tells what each suite alone can find.
"""

import json
import pathlib

DIRECTORIES = {"release": "build", "asan": "build-asan", "tsan": "build-tsan",
               "fuzz": "build-fuzz"}
KINDS_OF_LEVEL = {1: {"release", "asan"}, 2: set(DIRECTORIES)}
LEVEL_TWO = {"browser", "perf-truth", "prometheus", "slurm", "soft-rxe", "torch", "vm"}
ASAN = {"checks", "comms", "dataplane", "fuzz", "hostile", "nccl-plugin", "net", "perf", "ras",
        "smoke", "soft", "soft-model", "soft-programs", "unit", "verdict"}
# What touches no network and no port: two builds of it run side by side as they are.
NO_NETWORK = {"ras", "verdict", "sim", "fuzz", "rcu"}
# On the machine's own network: Slurm resolves no name where loopback is the only address.
SHARED_NETWORK = {"slurm"}
# How much of a processor a test takes while it runs, before that was ever measured.
WAITING_SUITES = {"agent", "mpi", "python", "torch", "netns", "hostile", "slurm", "prometheus",
                  "feeds", "smoke", "vm"}
WAITING_SHARE = 0.25


class Test:
    """One test program in one build, whose directory is root."""

    def __init__(self, kind, entry, root=None, files=None, groups=None):
        self.kind = kind
        self.name = entry["name"]
        self.suites = [suite.split(":")[-1] for suite in entry["suite"]] or ["tests"]
        self.command = entry["cmd"]
        self.environment = entry["env"]
        self.directory = entry["workdir"] or root  # its command may name files from there
        self.limit = entry["timeout"]
        self.protocol = entry["protocol"]  # tap, or exitcode
        self.alone = not entry["is_parallel"]
        self.priority = entry["priority"]
        # What has to be built for it, as ninja's targets.
        self.needs = sorted({file for target in entry["depends"]
                             for file in (files or {}).get(target, ())})
        # A program of unit tests: its groups of tests, one for each NAME_test.c.
        self.groups = sorted({group for target in entry["depends"]
                              for group in (groups or {}).get(target, ())})

    @property
    def suite(self):
        return self.suites[0]

    @property
    def title(self):
        return f"{self.kind} {self.suite}/{self.name}"

    @property
    def waits(self):
        """Whether it mostly waits, as far as the suite tells."""
        return bool(WAITING_SUITES & set(self.suites))

    @property
    def computes(self):
        """Whether it takes what is left of the processors, beside whatever runs."""
        return not self.waits and not self.alone

    @property
    def share(self):
        """Of a processor, before that was ever measured."""
        return WAITING_SHARE if self.waits else 1.0

    @property
    def isolated(self):
        """Whether it may have a network namespace of its own."""
        return not (SHARED_NETWORK | NO_NETWORK) & set(self.suites)

    @property
    def needs_places(self):
        """Whether it takes ports, addresses or names that another build of it would take, too."""
        return not NO_NETWORK & set(self.suites)

    def is_wanted(self, level):
        return is_wanted_in(self.kind, self.suites, level)

    def is_called(self, chosen):
        """Whether it is the chosen test, has the chosen group, or is in the chosen suite; the
        empty word chooses all."""
        return (not chosen or chosen == self.name or chosen in self.suites or
                chosen in self.groups)

    def narrowed(self, chosen):
        """The test; of a program of unit tests the chosen group alone."""
        if chosen in self.groups and chosen != self.name:
            self.command = [*self.command, "--filter", chosen]
            self.name = chosen
        return self


def level_of(of_test):
    """The level from which on a test of these suites runs."""
    return 2 if of_test[0] in LEVEL_TWO or "long" in of_test else 1


def is_in_asan(of_test, level):
    return ("sanitized" in of_test or level == 2 and "sanitized-all" in of_test or
            of_test[0] in ASAN and not {"release-only", "sanitized-all"} & set(of_test))


def is_wanted_in(kind, of_test, level):
    """Whether a test of these suites runs at this level in a kind of build."""
    if kind not in KINDS_OF_LEVEL[level] or level_of(of_test) > level:
        return False
    if kind == "asan":
        return is_in_asan(of_test, level)
    return {"release": True, "tsan": "threads" in of_test, "fuzz": "fuzz" in of_test}[kind]


def tool(name):
    """Debian's own, as build.sh chooses it: PATH may begin with others that lack modules."""
    own = pathlib.Path("/usr/bin", name)
    return str(own) if own.exists() else name


def introspected(directory, what):
    path = pathlib.Path(directory, "meson-info", f"intro-{what}.json")
    return json.loads(path.read_text(encoding="utf-8"))


def read(kind, directory=None):
    """Every test of a build directory that is configured, whether it is wanted there or not."""
    directory = directory or DIRECTORIES[kind]
    root = pathlib.Path(directory).resolve()
    targets = introspected(directory, "targets")
    files = {target["id"]: [str(pathlib.Path(file).relative_to(root))
                            for file in target["filename"]]
             for target in targets}
    groups = {target["id"]: groups_of(target) for target in targets
              if target["name"].startswith("unit-")}
    return [Test(kind, entry, root, files, groups) for entry in introspected(directory, "tests")]


def groups_of(target):
    """The names of the files NAME_test.c that a program of unit tests is made of."""
    return [pathlib.Path(file).stem.removesuffix("_test")
            for sources in target["target_sources"] for file in sources["sources"]
            if file.endswith("_test.c")]
