#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""./dev release in a copy of this tree's files. Packages are stand-ins; the suite packages builds
real ones.

release_test.py SOURCE-ROOT
"""

import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile

import tap

ROOT = pathlib.Path(sys.argv[1]).resolve()
# The script sources release.sh as ./dev does. A stand-in makes the packages.
SCRIPT = """
. tests/tools/release.sh
say() { printf '%s\\n' "$*" >&2; }
die() { say "dev: $*"; exit 2; }
need() { :; }
package_deb() {
	mkdir -p "$1"
	case ${BREAK-} in
	build) echo lost >"$1/build.txt" && touch "$1/tocsin_amd64.deb" && return 1 ;;
	signal) kill -TERM $$ ;;
	stray) touch stray ;;
	esac
	sed -n "s/^.version: '\\(.*\\)',/\\1/p" meson.build >"$1/tocsin_amd64.deb"
}
verb_release "$@"
"""


class Clone:
    """A repository with the files of this tree that a release changes."""

    def __init__(self):
        if shutil.which("git") is None:
            raise tap.Skip("git is not installed")
        self.place = tempfile.TemporaryDirectory(prefix="tocsin-release-")
        self.root = pathlib.Path(self.place.name, "tree")
        self.environment = {
            **os.environ, "GNUPGHOME": f"{self.place.name}/gpg", "GIT_CONFIG_GLOBAL": "/dev/null",
            "GIT_CONFIG_NOSYSTEM": "1",
            **{f"GIT_{who}_{what}": text for who in ("AUTHOR", "COMMITTER")
               for what, text in (("NAME", "Tester"), ("EMAIL", "tester@localhost"))}}
        for name in ("meson.build", "CHANGELOG.md", "debian/changelog", "tests/tools/release.sh",
                     ".gitignore"):
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, path)
        # A tree that was just released has nothing here.
        text = self.read("CHANGELOG.md").replace(
            "## [Unreleased]\n", "## [Unreleased]\n\n### Added\n\n- A thing.\n", 1)
        (self.root / "CHANGELOG.md").write_text(text, encoding="utf-8")
        self.git("init", "-q")
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "tree: start")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if (self.root.parent / "gpg").exists():
            subprocess.run(["gpgconf", "--kill", "gpg-agent"], env=self.environment, check=False)
        self.place.cleanup()

    def git(self, *words):
        return subprocess.run(["git", *words], cwd=self.root, env=self.environment, text=True,
                              check=True, stdout=subprocess.PIPE).stdout

    def read(self, name):
        return (self.root / name).read_text(encoding="utf-8")

    def release(self, *words, **environment):
        return subprocess.run(["sh", "-euc", SCRIPT, "sh", *words], cwd=self.root, text=True,
                              env={**self.environment, **environment}, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)

    def broken(self, name):
        """A directory for PATH with a program of this name that fails."""
        program = self.root.parent / f"broken-{name}" / name
        program.parent.mkdir()
        program.write_text("#!/bin/sh\nexit 1\n", encoding="ascii")
        program.chmod(0o755)
        return program.parent

    def state(self):
        return self.git("rev-parse", "HEAD"), self.git("tag"), self.git("status", "--porcelain")


def release_sets_the_version_and_tags_it():
    with Clone() as clone:
        start = clone.state()
        done = clone.release("99.0.1")
        assert done.returncode == 0 and "git push origin HEAD v99.0.1" in done.stderr, done
        assert clone.git("rev-parse", "HEAD~1") == start[0]
        assert clone.git("tag") == "v99.0.1\n"
        assert clone.git("cat-file", "-t", "v99.0.1") == "tag\n"
        assert clone.git("rev-parse", "v99.0.1^{commit}") == clone.git("rev-parse", "HEAD")
        assert clone.git("status", "--porcelain") == ""
        assert "\tversion: '99.0.1',\n" in clone.read("meson.build")
        assert clone.read("debian/changelog").startswith("tocsin (99.0.1) unstable;")
        if shutil.which("dpkg-parsechangelog"):
            assert subprocess.run(["dpkg-parsechangelog", "-SVersion"], cwd=clone.root, text=True,
                                  check=True, stdout=subprocess.PIPE).stdout == "99.0.1\n"
        assert re.search(r"^## \[Unreleased\]\n\n## \[99\.0\.1\] - \d{4}-\d\d-\d\d\n\n### Added\n",
                         clone.read("CHANGELOG.md"), re.MULTILINE)
        files = clone.root / "build-release"
        names = sorted(path.name for path in files.iterdir())
        assert names == ["SHA256SUMS", "tocsin-99.0.1.tar.gz", "tocsin_amd64.deb"], names
        sums = dict(line.split("  ")[::-1] for line in
                    clone.read("build-release/SHA256SUMS").splitlines())
        assert sums == {name: hashlib.sha256((files / name).read_bytes()).hexdigest()
                        for name in names[1:]}, sums
        assert (files / "tocsin_amd64.deb").read_text(encoding="ascii") == "99.0.1\n"
        with tarfile.open(files / names[1]) as archive:
            inside = {name for name in archive.getnames() if name != "tocsin-99.0.1"}
            text = archive.extractfile("tocsin-99.0.1/meson.build").read().decode()
        assert all(name.startswith("tocsin-99.0.1/") for name in inside), inside
        assert "tocsin-99.0.1/CHANGELOG.md" in inside and "'99.0.1'" in text
        # The next release needs changes of its own.
        again = clone.release("99.0.2")
        assert again.returncode == 2 and "nothing below [Unreleased]" in again.stderr, again


def release_is_refused_without_a_change():
    with Clone() as clone:
        start = clone.state()
        for words, said in ((["99.0"], "not a version"), (["99.0.0-rc1"], "not a version"),
                            (["v99.0.0"], "not a version"), (["1.2.3.4"], "not a version"),
                            (["0.0.1"], "not newer"), ([], "takes a VERSION"),
                            (["99.0.0", "--sign"], "needs the id"),
                            (["99.0.0", "--push"], "not an option"),
                            (["99.0.0", "99.0.1"], "takes one VERSION"),
                            (["99.0.0", "--sign", "nobody"], "no secret key nobody")):
            done = clone.release(*words)
            assert done.returncode == 2 and said in done.stderr, (words, done)
        done = clone.release("99.0.0", "--dry-run")
        assert done.returncode == 0 and "commit and tag v99.0.0" in done.stderr, done
        assert clone.state() == start and not (clone.root / "build-release").exists()
        # Each failure leaves the tree, the commits and the tags as they were.
        files = clone.root / "build-release"
        done = clone.release("99.0.0", BREAK="build")
        assert done.returncode == 2 and "as before" in done.stderr, done
        assert clone.state() == start
        left = [path.name for path in files.rglob("*") if path.is_file()]
        assert left == ["build.txt"], left
        assert clone.release("99.0.0", BREAK="signal").returncode == 2
        assert clone.state() == start and not files.exists()
        for program in ("sha256sum", "mv"):
            done = clone.release("99.0.0", PATH=f"{clone.broken(program)}:{os.environ['PATH']}")
            assert done.returncode == 2 and "as before" in done.stderr, done
            assert clone.state() == start and not files.exists(), program
        clone.git("checkout", "-q", "--detach")
        assert "on no branch" in clone.release("99.0.0").stderr
        clone.git("checkout", "-q", "-")
        clone.git("tag", "v99.0.0")
        assert "the tag v99.0.0 exists" in clone.release("99.0.0").stderr
        (clone.root / "new").touch()
        assert "not committed" in clone.release("99.0.1").stderr


def files_that_came_meanwhile_are_not_committed():
    with Clone() as clone:
        done = clone.release("99.0.0", BREAK="stray")
        assert done.returncode == 0, done
        assert clone.git("status", "--porcelain") == "?? stray\n"
        assert set(clone.git("show", "--format=", "--name-only").split()) == \
            {"meson.build", "CHANGELOG.md", "debian/changelog"}


def release_is_signed():
    if shutil.which("gpg") is None:
        raise tap.Skip("gpg is not installed")
    with Clone() as clone:
        (clone.root.parent / "gpg").mkdir(mode=0o700)
        subprocess.run(["gpg", "--batch", "--quiet", "--passphrase", "", "--quick-generate-key",
                        "tester@localhost", "ed25519", "sign"], env=clone.environment, check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        done = clone.release("99.0.0", "--sign", "tester@localhost")
        assert done.returncode == 0, done
        clone.git("verify-tag", "v99.0.0")
        sums = clone.root / "build-release" / "SHA256SUMS"
        verify = ["gpg", "--batch", "--verify", f"{sums}.asc", str(sums)]
        assert subprocess.run(verify, env=clone.environment, check=False,
                              stderr=subprocess.DEVNULL).returncode == 0
        sums.write_text(sums.read_text(encoding="ascii") + "x\n", encoding="ascii")
        assert subprocess.run(verify, env=clone.environment, check=False,
                              stderr=subprocess.DEVNULL).returncode == 1


if __name__ == "__main__":
    tap.run([(test.__name__.replace("_", " "), test) for test in (
        release_sets_the_version_and_tags_it, release_is_refused_without_a_change,
        files_that_came_meanwhile_are_not_committed, release_is_signed)])
