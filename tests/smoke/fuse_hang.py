# SPDX-License-Identifier: BSD-3-Clause
"""A file system on which whoever looks at a file hangs in the kernel, until it is let go.

It speaks as much of FUSE as it takes to be mounted. What has read a request of it is waited for in
the state D, where SIGKILL does not reach: the same as on a server of NFS that has gone away. It is
mounted in a mount namespace of this process and its children alone.
"""

import ctypes
import errno
import os
import struct
import threading

LOOKUP, GETATTR, INIT = 1, 3, 26
CLONE_NEWNS = 0x20000
MS_REC, MS_PRIVATE, MNT_DETACH = 0x4000, 1 << 18, 2
HEADER = struct.Struct("<IIQQIIII")
BUFFER_BYTES = 1 << 17

libc = ctypes.CDLL(None, use_errno=True)


def call(what, *arguments):
    if getattr(libc, what)(*arguments) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def own_mounts():
    """From here on what is mounted is seen by this process and those it starts only."""
    call("unshare", CLONE_NEWNS)
    call("mount", b"none", b"/", None, MS_REC | MS_PRIVATE, None)


class Hang:
    """`path` is a file to hang on, from the entry of this context to its end."""

    def __init__(self, directory):
        self.directory = str(directory)
        self.path = f"{self.directory}/file"
        self.held = []
        self.looked = threading.Event()  # somebody hangs
        self.fd = None

    def __enter__(self):
        self.fd = os.open("/dev/fuse", os.O_RDWR)
        options = f"fd={self.fd},rootmode=40000,user_id=0,group_id=0"
        call("mount", b"tocsin-hang", self.directory.encode(), b"fuse", 0, options.encode())
        threading.Thread(target=self.serve, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.let_go()
        call("umount2", self.directory.encode(), MNT_DETACH)

    def let_go(self):
        """All who hang find that there is no such file."""
        while self.held:
            self.answer(self.held.pop(), error=errno.ENOENT)

    def answer(self, unique, body=b"", error=0):
        os.write(self.fd, struct.pack("<IiQ", 16 + len(body), -error, unique) + body)

    def serve(self):
        while True:
            try:
                request = os.read(self.fd, BUFFER_BYTES)
            except OSError:
                return  # not mounted any more
            _, operation, unique, *_ = HEADER.unpack_from(request)
            if operation == INIT:
                self.answer(unique, struct.pack("<IIIIHHII", 7, 31, 0, 0, 12, 9, 4096, 1)
                            + bytes(36))
            elif operation == GETATTR:
                attributes = struct.pack("<QQQQQQIIIIIIIIII", 1, 0, 0, 0, 0, 0, 0, 0, 0, 0o40755,
                                         2, 0, 0, 0, 4096, 0)
                self.answer(unique, struct.pack("<QII", 3600, 0, 0) + attributes)
            elif operation == LOOKUP:
                self.held.append(unique)
                self.looked.set()
            else:
                self.answer(unique, error=errno.ENOSYS)
