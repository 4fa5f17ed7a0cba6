# SPDX-License-Identifier: BSD-3-Clause
"""What a check found clean, remembered for every clone and worktree of this user.

The files lie in ${XDG_CACHE_HOME:-~/.cache}/tocsin/NAME, one per key, each replaced whole, so
that two runs at once lose at most an entry. A file that no run has used for 30 days is removed.
A cache that cannot be read or written is an empty one: more is checked, nothing fails.
"""

import contextlib
import hashlib
import json
import os
import pathlib
import tempfile
import time

DAY_S = 24 * 3600
UNUSED_DAYS_MAX = 30


def digest_of(*texts):
    state = hashlib.blake2b(digest_size=16)
    for text in texts:
        data = text if isinstance(text, bytes) else text.encode()
        state.update(b"%d " % len(data) + data)
    return state.hexdigest()


class Digests:
    """The digest of each file, computed once in a run."""

    def __init__(self):
        self.known = {}

    @staticmethod
    def version(path):
        try:
            found = os.stat(path)
        except OSError:
            return None
        return found.st_mtime_ns, found.st_size, found.st_ino

    def of(self, path):
        """None if the file cannot be read."""
        if path not in self.known:
            version = self.version(path)
            try:
                self.known[path] = version, digest_of(pathlib.Path(path).read_bytes())
            except OSError:
                self.known[path] = None, None
        return self.known[path][1]

    def unchanged(self, paths):
        """Whether the files are still those whose digests were taken."""
        return all(self.version(path) == self.known[path][0] for path in paths)


class Store:
    """A directory of JSON objects by key."""

    def __init__(self, name):
        home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
        self.directory = pathlib.Path(home, "tocsin", name)

    def get(self, key):
        path = self.directory / key
        try:
            value = json.loads(path.read_text(encoding="utf-8"))
            # The date of last use, for expire(); a day is exact enough.
            if path.stat().st_mtime < time.time() - DAY_S:
                os.utime(path)
        except (OSError, ValueError):
            return {}
        return value if isinstance(value, dict) else {}

    def put(self, key, value):
        with contextlib.suppress(OSError):
            self.directory.mkdir(parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile("w", dir=self.directory, prefix="new-",
                                             delete=False) as file:
                json.dump(value, file, separators=(",", ":"))
            os.replace(file.name, self.directory / key)

    def expire(self):
        oldest = time.time() - UNUSED_DAYS_MAX * DAY_S
        with contextlib.suppress(OSError), os.scandir(self.directory) as entries:
            for entry in entries:
                with contextlib.suppress(OSError):  # another run may have removed it
                    if entry.stat(follow_symlinks=False).st_mtime < oldest:
                        os.unlink(entry.path)


class CleanFiles:
    """The files that one check, judging each by itself, found clean."""

    def __init__(self, check, identity, digests, root):
        self.store, self.check, self.identity = Store("lint"), check, identity
        self.digests, self.root = digests, root
        known = self.store.get(check)
        self.today = int(time.time() // DAY_S)
        self.days = {key: day for key, day in known.items()
                     if isinstance(day, int) and day > self.today - UNUSED_DAYS_MAX}
        self.saved = dict(known)

    def key(self, name):
        path = os.path.join(self.root, name)
        return digest_of(self.identity, name, self.digests.of(path) or "")

    def unknown(self, names):
        """Those of the names that are still to be judged."""
        keys = {name: self.key(name) for name in names}
        self.days.update({key: self.today for key in keys.values() if key in self.days})
        return [name for name in names if keys[name] not in self.days]

    def save(self, names):
        """These were judged clean, and did not change meanwhile."""
        for name in names:
            if self.digests.unchanged([os.path.join(self.root, name)]):
                self.days[self.key(name)] = self.today
        if self.days != self.saved:
            self.store.put(self.check, self.days)
