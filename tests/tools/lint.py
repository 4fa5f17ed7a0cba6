#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""./dev lint: runs every check to its end, then says which failed and how long each took.

The cheap checks look at every file always. Static analysis looks at the units made of files
changed since the last commit that passed (lint_history.py says which that is), or at all with
--all, which also sees where flags alone have changed. What layout, rules and analysis found
clean is remembered for all clones (clean_cache.py).
"""

import hashlib
import os
import pathlib
import re
import sys
import time

import clean_cache
import lint_history
import source_rules
import tidy

ROOT = pathlib.Path(__file__).resolve().parents[2]
DATABASE = "build-clang"
FORMAT = "clang-format-14"
VENDOR = "vendor/"
SUBJECT_MAX = 60


def command(*words, quiet=False):
    done = tidy.quiet_run(words, ROOT)
    if done.returncode == 0:
        return done.stdout
    if quiet:
        return ""
    raise SystemExit(f"lint: {' '.join(words)}: {done.stderr.strip()}")


def complaints_of(*words):
    """What a foreign checker says; nothing if it is content."""
    done = tidy.quiet_run(words, ROOT)
    return [] if done.returncode == 0 else [(done.stdout + done.stderr).strip()]


def tree():
    """Every file, tracked or about to be, that is text of this project, not of another one."""
    names = command("git", "ls-files", "-co", "--exclude-standard", "-z").split("\0")
    return sorted(name for name in names if (ROOT / name).is_file() and "/corpus/" not in name
                  and not name.startswith(VENDOR))


def check_vendor(_, root=ROOT):
    """What others wrote is in vendor/ alone: each file as its digest says, beside its licence."""
    said, count = [], 0
    for folder in sorted(path for path in (root / VENDOR).iterdir()):
        sums = folder / "SHA256SUMS"
        rows = sums.read_text(encoding="ascii").split() if sums.is_file() else []
        wanted = dict(zip(rows[1::2], rows[::2]))
        found = {path.name: hashlib.sha256(path.read_bytes()).hexdigest()
                 for path in folder.iterdir() if path.name != "SHA256SUMS"}
        where = folder.relative_to(root)
        said += [f"{where}/{name}: not as {where}/SHA256SUMS says"
                 for name in sorted(wanted.keys() | found.keys())
                 if wanted.get(name) != found.get(name)]
        if "LICENSE" not in found:
            said.append(f"{where}: no LICENSE")
        count += len(found)
    return said, f"{count} files"


def text_of(name):
    return (ROOT / name).read_text(encoding="utf-8", errors="replace")


def is_shell(name):
    return name.endswith(".sh") or (
        "." not in pathlib.Path(name).name and text_of(name).startswith("#!/bin/sh"))


def analyser():
    """Which clang-format and clang-tidy judge; another one has to look at everything again."""
    packages = command("dpkg-query", "-W", "clang*-14", "libclang*14", "libllvm14", quiet=True)
    return packages or command(FORMAT, "--version") + command(tidy.TIDY, "--version")


def check_format(names, digests):
    sources = [name for name in names if name.endswith((".c", ".h"))]
    settings = [name for name in names if os.path.basename(name) == ".clang-format"]
    identity = [analyser(), *(text for name in settings for text in (name, text_of(name)))]
    clean = clean_cache.CleanFiles("layout", clean_cache.digest_of(*identity), digests, ROOT)
    fresh = clean.unknown(sources)
    said = complaints_of(FORMAT, "--dry-run", "-Werror", *fresh) if fresh else []
    clean.save([] if said else fresh)
    return said, f"{len(sources)} files, {len(fresh)} looked at"


def check_rules(names, digests):
    wanted = [name for name in names
              if name.endswith((".c", ".h", ".py", ".sh", "meson.build")) or is_shell(name)]
    identity = clean_cache.digest_of(pathlib.Path(source_rules.__file__).read_bytes())
    clean = clean_cache.CleanFiles("rules", identity, digests, ROOT)
    fresh = clean.unknown(wanted)
    complaints = {name: list(source_rules.complaints(source_rules.Source(name, text_of(name))))
                  for name in fresh}
    clean.save([name for name in fresh if not complaints[name]])
    lines = ((name, len(text_of(name).splitlines())) for name in wanted)
    long = [f"{name} {count}" for name, count in lines if count > source_rules.FILE_LINES_WARN]
    note = f"; over {source_rules.FILE_LINES_WARN} lines: {', '.join(long)}" if long else ""
    said = [text for name in fresh for text in complaints[name]]
    return said, (f"{len(wanted)} files, {len(fresh)} looked at, "
                  f"{len(source_rules.RULES)} rules{note}")


def check_shell(names):
    scripts = [name for name in names if is_shell(name)]
    return complaints_of("shellcheck", "-x", *scripts), f"{len(scripts)} scripts"


def check_spelling(names):
    ignored = ROOT / "tests/tools/spelling.txt"
    return complaints_of("codespell", f"--ignore-words={ignored}", *names), f"{len(names)} files"


def check_fuzz_list(names):
    """A target that meson.build does not list would silently never run."""
    listed = set(re.findall(r"^\t'(\w+)':", text_of("tests/fuzz/meson.build"), re.MULTILINE))
    matches = (re.match(r"tests/fuzz/(\w+)_fuzz\.c$", name) for name in names)
    found = {match.group(1) for match in matches if match}
    said = [f"tests/fuzz/{name}_fuzz.c: tests/fuzz/meson.build does not list it"
            for name in sorted(found - listed)]
    said += [f"tests/fuzz/corpus/{name} has no seed" for name in sorted(listed)
             if not any((ROOT / "tests/fuzz/corpus" / name).glob("*"))]
    return said, f"{len(found)} targets"


def check_unit_list(names):
    """A unit test that no program in meson.build names would silently never run. Meson itself
    refuses a name without a file."""
    table = "tests/unit/meson.build"
    code = re.sub(r"#.*", "", text_of(table))
    named = {word for quoted in re.findall(r"'([^']*)'", code) for word in quoted.split()}
    matches = [(name, re.match(r"tests/unit/(?:\w+/)*(\w+)_test\.c$", name)) for name in names]
    groups = [(name, match[1]) for name, match in matches if match]
    said = [f"{name}: no program in {table} has the group {group}"
            for name, group in groups if group not in named]
    return said, f"{len(groups)} groups"


def check_commits(_):
    """Of the commits that neither passed before nor are on a remote; lint_history.py has more."""
    log = command("git", "log", "--no-merges", "--format=%h%x00%s%x00%b%x01", "HEAD", "--not",
                  *lint_history.commits_of_others(ROOT))
    said, count = [], 0
    for record in log.split("\x01"):
        if not record.strip():
            continue
        digest, subject, body = record.strip("\n").split("\0")
        count += 1
        if not re.match(r"[a-z][a-z0-9_./-]*: [a-z0-9]", subject) or len(subject) > SUBJECT_MAX:
            said.append(f"{digest} '{subject}': not 'area: verb ...' in {SUBJECT_MAX} characters")
        if not body.strip():
            said.append(f"{digest} '{subject}': the body says why; it is empty")
    return said, f"{count} commits"


def check_tidy(names, digests, everything):
    base = None if everything else lint_history.base(ROOT)
    changed = lint_history.changed_since(ROOT, base) if base else None
    said, note = tidy.run(ROOT, DATABASE, names, changed, analyser(), digests)
    return said, f"{note}; changed since {base[:7]}" if base else note


def run_checks(checks, names):
    """The titles of those that failed."""
    failed = []
    for title, check in checks:
        started = time.monotonic()
        said, note = check(names)
        took = time.monotonic() - started
        print(f"{title:10} {'FAILED' if said else 'ok':7} {took:5.1f} s  {note}", flush=True)
        for text in said:
            print("\n".join(f"  {line}" for line in text.splitlines()), flush=True)
        if said:
            failed.append(title)
    return failed


def main(arguments):
    everything = "--all" in arguments
    os.chdir(ROOT)
    head = lint_history.clean_head(ROOT)
    names, digests = tree(), clean_cache.Digests()
    checks = [
        ("layout", lambda files: check_format(files, digests)),
        ("rules", lambda files: check_rules(files, digests)),
        ("shell", check_shell),
        ("spelling", check_spelling),
        ("vendor", check_vendor),
        ("fuzz list", check_fuzz_list),
        ("unit list", check_unit_list),
        ("commits", check_commits),
        ("analysis", lambda files: check_tidy(files, digests, everything)),
    ]
    failed = run_checks(checks, names)
    if failed:
        print(f"lint: failed: {', '.join(failed)}")
        return 1
    lint_history.remember(ROOT, head)
    print(f"lint: {len(checks)} checks passed")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
