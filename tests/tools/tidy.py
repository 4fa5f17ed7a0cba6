# SPDX-License-Identifier: BSD-3-Clause
"""clang-tidy over the units of a compile database, one command per process.

(With several files in one process, version 14 reports a false valist.Uninitialized.) The
database is that of the clang build, so that clang's own warnings count too. A unit is a source
and the flags that matter: a source that several targets compile alike is one unit, with other
definitions it is another. clang-tidy is given the flags and not the database, from which it
would take every command of the source, each time.

What came out clean is remembered (clean_cache.py) by what was looked at: the analyser, the flags,
the settings, and each file that was read, of this tree or not, by name and content. Names in the
tree are relative to it, in the flags too, so that any clone finds what another one left.

Which files a unit reads is remembered too, so that no compiler runs where nothing changed. Such
a list holds while the files on it are the same and every #include still finds what it found: no
other file of the tree has come, or gone, that one of the directories searched would offer under
the same name. Only in directories outside of the tree a new file may hide another unseen; it
comes with a package, and counts when something else that the unit reads has changed.
"""

import concurrent.futures
import os
import re
import subprocess

import clean_cache
import compile_line

TIDY = "clang-tidy-14"
SEARCH = ("-I", "-isystem", "-iquote", "-idirafter")
# States of a unit that are remembered: edits, branches and clones, newest first.
STATES_KEPT = 64
LISTS_KEPT = 16  # of what it reads: one for each way to search


def quiet_run(words, directory):
    return subprocess.run(words, cwd=directory, stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, check=False)


class Tree:
    """The files of the tree, by name, and how names outside and inside of it are told apart."""

    def __init__(self, root, names, digests):
        self.root, self.digests = str(root), digests
        self.settings = [name for name in names if os.path.basename(name) == ".clang-tidy"]
        self.by_tail = {}  # "b/c.h" -> the names in the tree that end with it: a/b/c.h
        for name in names:
            for tail in self.tails(name):
                self.by_tail.setdefault(tail, []).append(name)
        self.names, self.rivals_known = {}, {}

    @staticmethod
    def tails(name):
        parts = name.strip("/").split("/")
        return ["/".join(parts[at:]) for at in range(len(parts))]

    def name(self, directory, path):
        """Relative to the tree, or absolute outside of it."""
        if (directory, path) not in self.names:
            whole = os.path.realpath(os.path.join(directory, path))
            inside = whole.startswith(self.root + "/")
            self.names[directory, path] = whole[len(self.root) + 1:] if inside else whole
        return self.names[directory, path]

    def path(self, name):
        return os.path.join(self.root, name)

    def rivals(self, name):
        """(directory, file) of the tree where an #include that found name may look first."""
        if name not in self.rivals_known:
            found = {(other[:-len(tail)].rstrip("/"), other) for tail in self.tails(name)
                     for other in self.by_tail.get(tail, ()) if other != name}
            self.rivals_known[name] = found
        return self.rivals_known[name]

    def settings_of(self, source):
        return [name for name in self.settings
                if source.startswith(name.removesuffix(".clang-tidy"))]


class Unit:
    """One source with one set of flags: those that say where to search, and the others."""

    def __init__(self, line, tree, filled):
        self.line, self.tree, self.source = line, tree, line.source
        flags = [flag.replace(tree.root, "@tree") for flag in line.flags
                 if not flag.startswith(SEARCH)]
        self.meaning = (line.source, *flags)
        self.search = []
        for flag in line.flags:
            option = next((option for option in SEARCH if flag.startswith(option)), None)
            if option is None:
                continue
            name = tree.name(str(line.directory), flag[len(option):])
            if filled(name):
                self.search.append((option, name))

    def reads(self):
        """The names of all files that it is made of, in order; None if it does not compile."""
        words = [self.line.compiler, *self.line.flags, "-D__clang_analyzer__", "-M",
                 str(self.line.file)]
        done = quiet_run(words, self.line.directory)
        if done.returncode != 0:
            return None
        paths = re.split(r"(?<!\\)\s+", done.stdout.replace("\\\n", " ").strip())[1:]
        unescaped = (re.sub(r"\\([ #\\])", r"\1", path).replace("$$", "$") for path in paths)
        return [self.tree.name(str(self.line.directory), path) for path in unescaped]

    def state(self, reads):
        """A digest of everything that is looked at; None if some of it is not there."""
        names = [*reads, *self.tree.settings_of(self.source)]
        digests = [self.tree.digests.of(self.tree.path(name)) for name in names]
        if None in digests:
            return None
        return clean_cache.digest_of(*(text for pair in zip(names, digests) for text in pair))

    def lookups(self, reads):
        """Of what could make the #includes find other files than those read: a digest."""
        searched = {name for _, name in self.search}
        searched |= {os.path.dirname(name) for name in reads if not name.startswith("/")}
        rivals = {file for name in reads for directory, file in self.tree.rivals(name)
                  if directory in searched}
        return clean_cache.digest_of(*sorted(rivals))

    def analyse(self):
        words = [TIDY, "--quiet", str(self.line.file), "--", *self.line.flags]
        done = quiet_run(words, self.line.directory)
        if done.returncode == 0 and not done.stdout.strip():
            return ""
        return done.stdout.strip() or done.stderr.strip() or f"{TIDY}: {done.returncode}"


def units_of(root, database, tree):
    """Every unit once, in lists of those that differ in nothing but where they search."""
    known = {}

    def filled(name):
        """Whether a directory can offer a header: most of the build's never do."""
        if not name.startswith(f"{database}/"):
            return True
        if name not in known:
            known[name] = any(file.endswith(".h") for _, _, files in os.walk(tree.path(name))
                              for file in files)
        return known[name]

    alike = {}
    for line in compile_line.lines_of(root, database):
        if line.source.startswith(f"{database}/"):
            continue  # made by the build from what is looked at elsewhere
        unit = Unit(line, tree, filled)
        alike.setdefault(unit.meaning, {}).setdefault(tuple(unit.search), unit)
    return [list(units.values()) for units in alike.values()]


class Analysis:
    """One run over units: which of them to look at, and what is known of them."""

    def __init__(self, store, analyser, changed):
        self.store, self.analyser, self.changed = store, analyser, changed

    def run(self, units):
        """(what was done, complaint) of each of the units, which differ in their search only."""
        key = clean_cache.digest_of(self.analyser, *units[0].meaning)
        before = self.store.get(key)
        known = {"clean": list(before.get("clean", [])), "lists": dict(before.get("lists", {}))}
        results = [self.judge(unit, known) for unit in units]
        if known != before:
            self.store.put(key, known)
        return results

    def judge(self, unit, known):
        reads, state = self.look(unit, known)
        if state in known["clean"]:
            return "remembered", ""
        if self.changed is not None and reads is not None:
            if not self.changed & {*reads, *unit.tree.settings_of(unit.source)}:
                return "untouched", ""
        said = unit.analyse()
        paths = [unit.tree.path(name) for name in reads or []]
        # What was edited meanwhile is not what the digests are of.
        if not said and state is not None and unit.tree.digests.unchanged(paths):
            known["clean"] = [state, *known["clean"]][:STATES_KEPT]
        return "checked", said

    def look(self, unit, known):
        """(files read, state of them), of the list that is remembered if that still holds."""
        where = clean_cache.digest_of(*(word for pair in unit.search for word in pair))
        listed = known["lists"].get(where, {"reads": [], "seen": []})
        reads = listed["reads"]
        state = unit.state(reads) if reads else None
        if state is not None:
            if clean_cache.digest_of(state, unit.lookups(reads)) in listed["seen"]:
                return reads, state
        fresh = unit.reads()
        state = None if fresh is None else unit.state(fresh)
        if state is not None:
            seen = clean_cache.digest_of(state, unit.lookups(fresh))
            older = listed["seen"] if fresh == reads else []
            known["lists"].pop(where, None)
            known["lists"][where] = {"reads": fresh, "seen": [seen, *older][:STATES_KEPT]}
            for oldest in list(known["lists"])[:-LISTS_KEPT]:
                del known["lists"][oldest]
        return fresh, state


def run(root, database, names, changed, analyser, digests):
    """Checks the units made of a changed file (all if changed is None).

    names are the files of the tree, analyser says which one runs. Returns the complaints and a
    line on what was done.
    """
    store = clean_cache.Store("tidy")
    analysis = Analysis(store, analyser, changed)
    groups = units_of(root, database, Tree(root, names, digests))
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        results = [result for group in pool.map(analysis.run, groups) for result in group]
    store.expire()
    counts = {what: sum(1 for result in results if result[0] == what)
              for what in ("checked", "remembered", "untouched")}
    said = ", ".join(f"{count} {what}" for what, count in counts.items() if count)
    return [text for _, text in results if text], said
