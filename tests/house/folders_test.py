#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Folders depend on each other in one direction only.

folders_test.py SOURCE-ROOT

A folder depends on another one if one of its files includes a header of the other. A public header
of control or dataplane belongs to the folder with its NAME.c, or to the one in folders.txt. Other
components are one library each, and each is one folder. Folders in a cycle cannot be understood
separately. folders.txt lists the remaining cycles: the include to remove, with the reason. Other
entries are errors.
"""

import collections
import pathlib
import re
import sys

import tap

TOPS = ("control", "dataplane", "agent", "perf/lab")
# A quoted include is relative to the nearest of these roots above the file, else to another one.
ROOTS = ("control", "control/ras", "control/verdict/engine", "control/fabric/probe", "dataplane",
         "dataplane/soft", "agent", "agent/cli", "perf/lab")
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)


def above(name):
    """Return the root of a file."""
    return max((root for root in ROOTS if name.startswith(root + "/")), key=len)


def folder_of(name, owners):
    """Return the folder to which a file belongs."""
    public = re.match(r"(.*)/include/(.*)$", name)
    if not public:
        return str(pathlib.PurePosixPath(name).parent)
    return owners.get(public[2], f"{public[1]}/include")


def owners_of(names, listed):
    """Return the folder of each public header of control and dataplane."""
    folders = collections.defaultdict(set)
    for name in names:
        path = pathlib.PurePosixPath(name)
        if path.suffix == ".c" and above(name) in ("control", "dataplane"):
            stem = path.stem.removesuffix("_fast")
            folders[path.parts[0], stem].add(str(path.parent))
    owners = {}
    for name in names:
        public = re.match(r"(control|dataplane)/include/(.*)\.h$", name)
        if public:
            found = folders[public[1], public[2].split("/")[1]]
            if len(found) == 1:
                owners[public[2] + ".h"] = next(iter(found))
    return owners | listed


def edges_of(texts, listed):
    """Return for each folder the folders whose headers it includes, with one including file each.
    """
    names = set(texts)
    owners = owners_of(names, listed)
    places = {re.sub(r".*/include/", "", name): name for name in names if "/include/" in name}
    edges = {}
    for name, text in sorted(texts.items()):
        for mark, header in INCLUDE.findall(text):
            if mark == "<":
                found = places.get(header)
            else:
                beside = str(pathlib.PurePosixPath(name).parent / header)
                below = [f"{root}/{header}" for root in (above(name), *ROOTS)]
                found = next((path for path in (below[0], beside, *below) if path in names), None)
                assert found, f'{name}: "{header}" is not below {above(name)}'
            if found:
                edge = folder_of(name, owners), folder_of(found, owners)
                if edge[0] != edge[1]:
                    edges.setdefault(edge, name)
    return edges


def circle_in(edges):
    """Return the folders of a dependency cycle, or nothing."""
    after = collections.defaultdict(set)
    for start, end in edges:
        after[start].add(end)
    done, way = set(), []

    def walk(folder):
        if folder in way:
            return way[way.index(folder):] + [folder]
        if folder in done:
            return None
        way.append(folder)
        for nearby in sorted(after[folder]):
            found = walk(nearby)
            if found:
                return found
        way.pop()
        done.add(folder)
        return None

    for folder in sorted(after):
        found = walk(folder)
        if found:
            return found
    return []


def lists_of(text):
    """Read the owners of headers and the excepted edges, each with a reason after #."""
    owners, excepted = {}, set()
    for line in text.splitlines():
        row, _, reason = line.partition("#")
        if not row.strip():
            continue
        assert reason.strip(), f"folders.txt: without a reason: {row}"
        start, middle, end = row.split()
        if middle == "of":
            owners[start] = end
        else:
            excepted.add((start, end))
    return owners, excepted


def texts_of(root):
    paths = (path for top in TOPS for path in (root / top).rglob("*.[ch]"))
    return {str(path.relative_to(root)): path.read_text(encoding="utf-8") for path in paths}


def a_circle_is_found():
    texts = {"control/a/x.c": '#include "b/y.h"\n', "control/b/y.h": "#include <control/x.h>\n",
             "control/include/control/x.h": ""}
    assert circle_in(edges_of(texts, {})) == ["control/a", "control/b", "control/a"]
    assert circle_in(edges_of(texts, {"control/x.h": "control/c"})) == []


def folders_depend_on_each_other_in_one_direction():
    owners, excepted = lists_of((ROOT / "tests/house/folders.txt").read_text(encoding="utf-8"))
    edges = edges_of(texts_of(ROOT), owners)
    gone = sorted(excepted - set(edges))
    assert not gone, f"folders.txt excepts what nobody includes any more: {gone}"
    found = circle_in(set(edges) - excepted)
    said = [f"{start} needs {end} ({edges[start, end]})" for start, end in zip(found, found[1:])]
    assert not found, "a circle: " + ", ".join(said)


def no_exception_is_for_nothing():
    owners, excepted = lists_of((ROOT / "tests/house/folders.txt").read_text(encoding="utf-8"))
    edges = set(edges_of(texts_of(ROOT), owners))
    idle = [one for one in sorted(excepted) if not circle_in(edges - excepted | {one})]
    assert not idle, f"folders.txt excepts what makes no circle: {idle}"


if __name__ == "__main__":
    ROOT = pathlib.Path(sys.argv[1]).resolve()
    tap.run([
        ("a circle of folders is found", a_circle_is_found),
        ("folders depend on each other in one direction",
         folders_depend_on_each_other_in_one_direction),
        ("no exception is for nothing", no_exception_is_for_nothing),
    ])
