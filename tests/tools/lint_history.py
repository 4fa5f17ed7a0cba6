# SPDX-License-Identifier: BSD-3-Clause
"""Since which commit ./dev lint looks: the last one that passed.

A run that passes on a clean tree remembers HEAD in .git/tocsin-lint-passed, a file that all
worktrees share, newest first. What counts as changed is what differs from the first that exists
of these:

    1. the newest remembered commit that HEAD descends from
    2. where HEAD left a remembered commit: after a rebase, or on another branch
    3. where HEAD left the main branch of origin
    4. BASELINE, if HEAD descends from it

With none of them nothing is known to have passed, and all counts as changed. The messages that
are checked are those of all commits of HEAD that lie behind no remembered commit, no remote
branch and not BASELINE.
"""

import contextlib
import os
import pathlib
import subprocess
import tempfile

# The history up to here was accepted as it is, also where its titles are too long.
BASELINE = "93aaade6f1a6fecd487f07bc5a3e4a5880d01cea"
FILE = "tocsin-lint-passed"
KEPT = 20  # worktrees and branches take turns


def git(root, *words, must=False):
    """What git prints; nothing if it fails, unless it must not."""
    done = subprocess.run(["git", *words], cwd=root, stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return done.stdout.strip()
    if must:
        raise SystemExit(f"lint: git {' '.join(words)}: {done.stderr.strip()}")
    return ""


def file_of(root):
    return pathlib.Path(root, git(root, "rev-parse", "--git-common-dir"), FILE)


def known(root, commits):
    """Those commits that this repository has, in their order."""
    if not commits:
        return []
    return git(root, "rev-list", "--no-walk=unsorted", "--ignore-missing", *commits).split()


def passed(root):
    """The commits that passed, newest first."""
    try:
        text = file_of(root).read_text(encoding="ascii", errors="replace")
    except OSError:
        return []
    return known(root, [word for word in text.split() if len(word) >= 40 and word.isalnum()])


def descends_from(root, commit):
    return git(root, "merge-base", "HEAD", commit) == commit


def base(root):
    """The commit since which files count as changed, or None if all do."""
    remembered = passed(root)
    for commit in remembered:
        if descends_from(root, commit):
            return commit
    for other in [*remembered, "origin/HEAD", "origin/main"]:
        found = git(root, "merge-base", "HEAD", other)
        if found:
            return found
    return BASELINE if known(root, [BASELINE]) and descends_from(root, BASELINE) else None


def changed_since(root, commit):
    """The files that differ from the commit, and those that git does not know yet."""
    differ = git(root, "diff", "--name-only", "--no-renames", "-z", commit, must=True)
    fresh = git(root, "ls-files", "-o", "--exclude-standard", "-z", must=True)
    return set((differ + "\0" + fresh).split("\0")) - {""}


def commits_of_others(root):
    """Revisions for git log --not: what lies behind them is not looked at again."""
    return [*passed(root), *known(root, [BASELINE]), "--remotes"]


def clean_head(root):
    """HEAD if the tree is exactly that commit, or nothing."""
    if git(root, "status", "--porcelain", "--untracked-files=normal", must=True):
        return ""
    return git(root, "rev-parse", "--verify", "HEAD")


def remember(root, commit):
    """All passed that was begun when clean_head() gave this.

    Nothing is kept if somebody edited or committed meanwhile: it was another tree that passed. A
    repository that cannot be written stays as it is.
    """
    if not commit or commit != clean_head(root):
        return
    path = file_of(root)
    rest = [other for other in passed(root) if other != commit]
    with contextlib.suppress(OSError):
        with tempfile.NamedTemporaryFile("w", dir=path.parent, prefix=FILE, delete=False) as file:
            file.write("\n".join([commit, *rest][:KEPT]) + "\n")
        os.replace(file.name, path)
