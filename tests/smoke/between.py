# SPDX-License-Identifier: BSD-3-Clause
"""A man in the middle of TCP connections: passes on, records, and does mischief once if told to.

Threads of this process, one per direction; the test's own thread only says what is to be done.
"""

import socket
import struct
import threading

HELLO_BYTES = 74  # what the connecting end says first
LENGTH_BYTES = 4  # before each frame

# What may be done to the next connection, or to the next frame that comes by.
FORGERIES = ("flip a bit of a frame", "repeat a frame", "swap two frames")
MISCHIEF = ("flip a bit of the hello", "flip a bit of the answer", *FORGERIES,
            "cut in the hello", "cut in a frame", "pass byte by byte")


def receive(source, size):
    """Exactly so many bytes, or fewer at the end."""
    data = b""
    while len(data) < size:
        more = source.recv(size - len(data))
        if not more:
            break
        data += more
    return data


def flipped(data, place):
    return data[:place] + bytes([data[place] ^ 1]) + data[place + 1:]


class Between:
    """Listens at addresses, each of which stands for another one, that of its target."""

    def __init__(self, routes):
        self.listeners = [(socket.create_server(listen), target) for listen, target in routes]
        self.made = 0  # connections that came to frames
        self.first_flight = b""  # the latest hello that came by
        self.what = None
        self.pairs = []
        self.lock = threading.Lock()

    def __enter__(self):
        for listener, target in self.listeners:
            threading.Thread(target=self.accept, args=(listener, target), daemon=True).start()
        return self

    def __exit__(self, *_):
        for listener, _ in self.listeners:
            listener.shutdown(socket.SHUT_RDWR)  # ends accept() in its thread
            listener.close()
        self.end_all()

    def do(self, what):
        """Mischief once; of what begins a connection the ones that stand are ended for it."""
        with self.lock:
            self.what = what
        if "frame" not in what:
            self.end_all()

    def done(self):
        return self.what is None

    def take(self, what):
        """Whether this is to be done now; then it is done."""
        with self.lock:
            mine = self.what == what
            if mine:
                self.what = None
        return mine

    def end_all(self):
        with self.lock:
            pairs, self.pairs = self.pairs, []
        for pair in pairs:
            self.end(pair)

    @staticmethod
    def end(pair):
        for end in pair:
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def accept(self, listener, target):
        while True:
            try:
                near, _ = listener.accept()
            except OSError:
                return
            try:
                far = socket.create_connection(target)
            except OSError:
                near.close()
                continue
            for end in (near, far):
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with self.lock:
                self.pairs.append((near, far))
            threading.Thread(target=self.carry, args=(near, far), daemon=True).start()

    def carry(self, near, far):
        try:
            self.introduce(near, far)
            back = threading.Thread(target=self.pump, args=(far, near), daemon=True)
            back.start()
            self.pump(near, far)
            back.join()
        except OSError:
            pass
        finally:
            self.end((near, far))
            near.close()
            far.close()

    def introduce(self, near, far):
        """The three messages before the first frame: the hello, the answer, the finish."""
        hello = receive(near, HELLO_BYTES)
        if len(hello) == HELLO_BYTES:
            self.first_flight = hello
        if self.take("flip a bit of the hello"):
            hello = flipped(hello, 40)
        if self.take("cut in the hello"):
            far.sendall(hello[:33])
            raise ConnectionAbortedError
        slowly = self.take("pass byte by byte")
        for n in range(len(hello)) if slowly else ():
            far.sendall(hello[n:n + 1])
        if not slowly:
            far.sendall(hello)
        answer = receive(far, 123)
        if answer and self.take("flip a bit of the answer"):
            answer = flipped(answer, 60)
        near.sendall(answer)
        far.sendall(receive(near, 56))
        with self.lock:
            self.made += 1

    def pump(self, source, sink):
        """Frame by frame, until either end closes; then both are."""
        held = b""
        try:
            while frame := self.frame(source):
                if self.take("flip a bit of a frame"):
                    frame = flipped(frame, len(frame) // 2)
                if self.take("repeat a frame"):
                    frame += frame
                if self.take("cut in a frame"):
                    sink.sendall(frame[:len(frame) // 2])
                    break
                if not held and self.take("swap two frames"):
                    held = frame
                    continue
                sink.sendall(frame + held)
                held = b""
        except OSError:
            pass
        self.end((source, sink))

    @staticmethod
    def frame(source):
        head = receive(source, LENGTH_BYTES)
        if len(head) < LENGTH_BYTES:
            return b""
        return head + receive(source, struct.unpack("<I", head)[0])
