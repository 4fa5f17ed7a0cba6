# SPDX-License-Identifier: BSD-3-Clause
"""The list of tests, read from meson, and the selection of tests by level and by build.

A test has suites; the first one is its main suite.

    level 1   ./dev test: the builds release and asan
    level 2   ./dev test --all: all tests of level 1, the main suites in LEVEL_TWO_SUITES, tests
              in the suite "long", the builds tsan and fuzz
    level 3   a test or suite by its name: as level 2, and the main suites in NAMED_SUITES

    release   tests of every suite
    asan      main suites in ASAN_SUITES, where memory errors are likely, and tests in the suite
              "sanitized". The suite "release-only" keeps a test out. The suite "sanitized-all"
              keeps a test out of asan at level 1, and adds the test at level 2
    tsan      groups of unit tests that start threads, and the NCCL plugin
    fuzz      short libFuzzer runs from the seeds (release and asan only replay the seeds)

docs/internals/tests.md lists the faults that each suite alone can find.
"""

import copy
import json
import pathlib

DIRECTORIES = {"release": "build", "asan": "build-asan", "tsan": "build-tsan",
               "fuzz": "build-fuzz"}
KINDS_OF_LEVEL = {1: {"release", "asan"}, 2: set(DIRECTORIES), 3: set(DIRECTORIES)}
LEVEL_TWO_SUITES = {"browser", "kubernetes", "perf-truth", "prometheus", "slurm", "soft-rxe",
                    "spec", "torch", "vm"}
NAMED_SUITES = {"packages"}  # minutes of building and downloading
ASAN_SUITES = {"comms", "dataplane", "fuzz", "hostile", "nccl-plugin", "net", "perf",
               "ras", "smoke", "soft", "soft-model", "soft-programs", "unit", "verdict"}
# What touches no network and no port: two builds of it run side by side as they are.
NO_NETWORK = {"ras", "sim", "fuzz", "spec"}
# These suites use the machine's own network: Slurm resolves no name where loopback is the only
# address, and packages are downloaded.
SHARED_NETWORK = {"kubernetes", "packages", "slurm"}
# How much of a processor a test takes while it runs, before that was ever measured.
WAITING_SUITES = {"agent", "mpi", "python", "torch", "netns", "hostile", "slurm", "prometheus",
                  "feeds", "kubernetes", "smoke", "vm"}
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
        # Names of the groups of a unit test program, one per NAME_test.c; empty for other tests,
        # which may depend on such a program, too.
        self.groups = sorted({group for target in entry["depends"]
                              for group in (groups or {}).get(target, ())
                              if self.name.startswith("unit-")})

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
        """Whether CHOSEN names this test, one of its groups or one of its suites; the empty word
        chooses every test."""
        return (not chosen or chosen == self.name or chosen in self.suites or
                chosen in self.groups)

    def narrowed_to(self, group):
        """A copy of the test that runs this group of unit tests only, with a title of its own. A
        test without such a group is returned unchanged."""
        if group not in self.groups:
            return self
        narrowed = copy.copy(self)
        narrowed.command = [*self.command, "--filter", group]
        narrowed.name = f"{self.name}:{group}"
        return narrowed


def lowest_level(suites_of_test):
    """The lowest level that runs a test of these suites."""
    if suites_of_test[0] in NAMED_SUITES:
        return 3
    return 2 if suites_of_test[0] in LEVEL_TWO_SUITES or "long" in suites_of_test else 1


def runs_in_asan(suites_of_test, level):
    return ("sanitized" in suites_of_test or
            level >= 2 and "sanitized-all" in suites_of_test or
            suites_of_test[0] in ASAN_SUITES and
            not {"release-only", "sanitized-all"} & set(suites_of_test))


def is_wanted_in(kind, suites_of_test, level):
    """Whether a test of these suites runs at this level in a kind of build."""
    if kind not in KINDS_OF_LEVEL[level] or lowest_level(suites_of_test) > level:
        return False
    if kind == "asan":
        return runs_in_asan(suites_of_test, level)
    return {"release": True, "tsan": "threads" in suites_of_test,
            "fuzz": "fuzz" in suites_of_test}[kind]


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
    """The names NAME of the sources NAME_test.c of a unit test program."""
    return [pathlib.Path(file).stem.removesuffix("_test")
            for sources in target["target_sources"] for file in sources.get("sources", ())
            if file.endswith("_test.c")]
