# SPDX-License-Identifier: BSD-3-Clause
"""The calls of libtocsin by ctypes.

Calls that count take some nanoseconds and never wait, so they keep the interpreter's lock. Calls
that may wait for libtocsin's own thread release the lock.
"""

import contextlib
import ctypes
import errno
import os
import time

KINDS = ("broadcast", "reduce", "all_gather", "reduce_scatter", "all_reduce", "send", "receive",
         "all_to_all", "gather", "scatter", "barrier", "scan", "one_sided", "other")
(BROADCAST, REDUCE, ALL_GATHER, REDUCE_SCATTER, ALL_REDUCE, SEND, RECEIVE, ALL_TO_ALL, GATHER,
 SCATTER, BARRIER, SCAN, ONE_SIDED, OTHER) = range(14)
UNKNOWN_DATATYPE = 255
NAMES = ("libtocsin.so.1", "libtocsin.so")  # names of the library, unless TOCSIN_LIBRARY is set
FLAGS = {"no_started": 1, "no_completed": 2, "blocks": 4, "times": 8, "aborts": 16}
MARKS = {"init": 0, "async_error": 1, "finalized": 2, "destroyed": 3, "aborted": 4,
         "posted": 7}
STATES = ("alone", "connected", "refused")
NAME_BYTES_MAX = 31
WHY_BYTES_MAX = 23
TEXT_BYTES = 160


class LibraryMissing(OSError):
    """libtocsin.so is not found, or lacks a function."""


class _JobConfig(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("socket_path", ctypes.c_char_p),
                ("job_id", ctypes.c_char_p), ("event", ctypes.c_void_p),
                ("event_context", ctypes.c_void_p), ("flags", ctypes.c_uint32)]


class _CommConfig(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("comm_hash", ctypes.c_uint64),
                ("host_hash", ctypes.c_uint64), ("process_hash", ctypes.c_uint64),
                ("size", ctypes.c_uint32), ("rank", ctypes.c_uint32),
                ("cuda_device", ctypes.c_int16), ("nvml_device", ctypes.c_int16),
                ("configuration_hash", ctypes.c_uint64), ("flags", ctypes.c_uint32),
                ("context", ctypes.c_void_p), ("name", ctypes.c_char_p)]


class _Counts(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("launched", ctypes.c_uint64),
                ("started", ctypes.c_uint64), ("completed", ctypes.c_uint64),
                ("signatures_lost", ctypes.c_uint64), ("launched_of", ctypes.c_uint64 * 32),
                ("started_of", ctypes.c_uint64 * 32), ("completed_of", ctypes.c_uint64 * 32)]


_POINTER, _INT = ctypes.c_void_p, ctypes.c_int
_WAITS = {  # name: result, arguments
    "tocsin_job_open": (_INT, ctypes.POINTER(_JobConfig), ctypes.POINTER(_POINTER)),
    "tocsin_job_close": (None, _POINTER),
    "tocsin_job_busy": (_INT, _POINTER, ctypes.c_uint64, ctypes.c_char_p),
    "tocsin_job_state": (_INT, _POINTER, ctypes.c_char_p, ctypes.c_size_t),
    "tocsin_comm_register": (_INT, _POINTER, ctypes.POINTER(_CommConfig),
                             ctypes.POINTER(_POINTER)),
    "tocsin_comm_unregister": (None, _POINTER),
    "tocsin_comm_state": (_INT, _POINTER, ctypes.c_char_p, ctypes.c_size_t),
    "tocsin_comm_counts": (_INT, _POINTER, ctypes.POINTER(_Counts)),
}
_COUNTS = {
    "tocsin_comm_launched": (None, _POINTER, _INT, ctypes.c_uint64, ctypes.c_uint8,
                             ctypes.c_int32),
    "tocsin_comm_started": (None, _POINTER, _INT),
    "tocsin_comm_completed": (None, _POINTER, _INT),
    "tocsin_comm_mark": (_INT, _POINTER, _INT, ctypes.c_uint64),
    "tocsin_comm_should_abort": (ctypes.c_bool, _POINTER),
}


def load(path=None):
    """Return the functions of the library by name. Raises LibraryMissing."""
    names = [path or os.environ.get("TOCSIN_LIBRARY")]
    said = ""
    for name in names if names[0] else NAMES:
        try:
            waits, counts = ctypes.CDLL(name), ctypes.PyDLL(name)
            functions = {}
            for library, calls in ((waits, _WAITS), (counts, _COUNTS)):
                for word, (result, *arguments) in calls.items():
                    function = functions[word] = getattr(library, word)
                    function.restype, function.argtypes = result, arguments
            return functions
        except (OSError, AttributeError) as wrong:
            said = str(wrong)
    raise LibraryMissing(errno.ENOENT, f"libtocsin cannot be loaded: {said}")


def _check(answer, what):
    if answer != 0:
        raise OSError(-answer, f"{what}: {os.strerror(-answer)}")


def _shortened(text, size):
    """Return at most `size` bytes of the text, without a part of a character at the end."""
    return text.encode("utf-8", "replace")[:size].decode("utf-8", "ignore").encode()


class Comm:
    """One rank of one communicator. Any thread may count, but not after close()."""

    def __init__(self, job, handle, size, rank, name):
        self.job, self.size, self.rank, self.name = job, size, rank, name
        self._handle, self._calls = handle, job.calls
        self._launched = self._calls["tocsin_comm_launched"]
        self._started = self._calls["tocsin_comm_started"]
        self._completed = self._calls["tocsin_comm_completed"]

    def launched(self, kind, count=0, datatype=UNKNOWN_DATATYPE, root=-1):
        """Count an operation that the rank has launched."""
        if self._handle:
            self._launched(self._handle, kind, count, datatype, root)

    def started(self, kind):
        """Count an operation that the library or the device has started."""
        if self._handle:
            self._started(self._handle, kind)

    def completed(self, kind):
        """Count an operation that has ended."""
        if self._handle:
            self._completed(self._handle, kind)

    @contextlib.contextmanager
    def operation(self, kind, count=0, datatype=UNKNOWN_DATATYPE, root=-1):
        """Count an operation that ends with the block; an exception is marked as an error."""
        self.launched(kind, count, datatype, root)
        self.started(kind)
        try:
            yield self
        except BaseException:
            self.mark("async_error", 1)
            raise
        finally:
            self.completed(kind)

    def mark(self, name, value=1):
        """Set a mark: init, async_error, finalized, destroyed, aborted or posted."""
        if self._handle:
            _check(self._calls["tocsin_comm_mark"](self._handle, MARKS[name], value), name)

    def counts(self):
        """Return the counts of this process: (launched, started, completed)."""
        counts = _Counts(ctypes.sizeof(_Counts))
        if self._handle:
            _check(self._calls["tocsin_comm_counts"](self._handle, ctypes.byref(counts)), "counts")
        return counts.launched, counts.started, counts.completed

    def state(self):
        """Return alone, connected or refused, and the reason if the agent does not know it."""
        if not self._handle:
            return "alone", "closed"
        text = ctypes.create_string_buffer(TEXT_BYTES)
        state = self._calls["tocsin_comm_state"](self._handle, text, TEXT_BYTES)
        return STATES[state], text.value.decode("utf-8", "replace")

    def should_abort(self):
        """Return whether a member is gone; needs the flag `aborts`."""
        return bool(self._handle) and self._calls["tocsin_comm_should_abort"](self._handle)

    def close(self):
        """Unregister the rank, so that the agent knows that it leaves on purpose."""
        handle, self._handle = self._handle, None
        if handle:
            self._calls["tocsin_comm_unregister"](handle)
            self.job.forget(self)


class Job:
    """The job of this process. Raises LibraryMissing, OSError."""

    def __init__(self, socket_path=None, job_id=None, library=None):
        self.calls = load(library)
        self._comms = set()
        self._handle = ctypes.c_void_p()
        config = _JobConfig(ctypes.sizeof(_JobConfig), _bytes(socket_path), _bytes(job_id))
        _check(self.calls["tocsin_job_open"](ctypes.byref(config), ctypes.byref(self._handle)),
               "tocsin_job_open")

    def state(self):
        """Return alone, connected or refused, and the reason if no agent reads the counts."""
        if not self._handle:
            return "alone", "closed"
        text = ctypes.create_string_buffer(TEXT_BYTES)
        state = self.calls["tocsin_job_state"](self._handle, text, TEXT_BYTES)
        return STATES[state], text.value.decode("utf-8", "replace")

    @contextlib.contextmanager
    def busy(self, seconds, why=""):
        """Report that the process is busy on purpose until the block ends, at most so long."""
        until = time.monotonic_ns() + int(seconds * 1e9)
        if self._handle:
            _check(self.calls["tocsin_job_busy"](self._handle, until,
                                                 _shortened(why, WHY_BYTES_MAX)),
                   "tocsin_job_busy")
        try:
            yield self
        finally:
            if self._handle:
                self.calls["tocsin_job_busy"](self._handle, 0, None)

    def register(self, comm_hash, size, rank, name=None, host_hash=0, process_hash=0,
                 cuda_device=-1, flags=()):
        """Register a communicator; only its ranks have the same comm_hash."""
        if not self._handle:
            _check(-errno.EBADF, "the job is closed")
        config = _CommConfig(ctypes.sizeof(_CommConfig), nvml_device=-1)
        config.comm_hash, config.host_hash = comm_hash, host_hash
        config.process_hash, config.size, config.rank = process_hash, size, rank
        config.cuda_device = cuda_device
        config.flags = sum(FLAGS[flag] for flag in set(flags))
        config.name = _shortened(name, NAME_BYTES_MAX) if name else None
        handle = ctypes.c_void_p()
        _check(self.calls["tocsin_comm_register"](self._handle, ctypes.byref(config),
                                                  ctypes.byref(handle)), "tocsin_comm_register")
        comm = Comm(self, handle, size, rank, name)
        self._comms.add(comm)
        return comm

    def forget(self, comm):
        """Forget a communicator that was closed."""
        self._comms.discard(comm)

    def close(self):
        """Unregister all, so that the agent knows that the process leaves on purpose."""
        handle, self._handle = self._handle, None
        if handle:
            for comm in list(self._comms):
                comm.close()
            self.calls["tocsin_job_close"](handle)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def _bytes(text):
    return None if text is None else os.fsencode(text)
