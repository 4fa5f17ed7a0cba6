#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""A stand-in for NCCL's client ncclras 2.30.7: same options, same lines, same order, same reads.

    ncclras.py [-h HOST] [-p PORT] [-t SECONDS] [-f text|json] [-v] [-m[GROUPS]]

Written from what was seen of that client. It is as strict: a reply to TIMEOUT or SET FORMAT is
what one read brings and must be OK as a whole; a report ends with the connection.
"""

import getopt
import socket
import sys

PROTOCOL = 2
CONNECT_SECONDS = 1
READ_BYTES = 4096
CONNECT_TRIES = 60  # the original tries for ever


class Refused(Exception):
    """The server answered what this client does not take."""


def complain(text):
    print(text, file=sys.stderr)


def read_some(stream):
    data = stream.recv(READ_BYTES)
    if not data:
        raise Refused("NCCL unexpectedly closed the connection")
    return data.decode()


def ask(stream, line):
    """One line, and what one read brings."""
    stream.sendall((line + "\n").encode())
    return read_some(stream)


def expect_ok(stream, line):
    answer = ask(stream, line)
    if answer.upper() != "OK\n":
        raise Refused(f"Unexpected response from NCCL: {answer!r}")


def connect(options):
    """Connected, protocols compared and the timeout set; all that within a second a step."""
    stream = socket.create_connection((options["host"], options["port"]), CONNECT_SECONDS)
    answer = ask(stream, f"CLIENT PROTOCOL {PROTOCOL}")
    if not answer.startswith("SERVER PROTOCOL ") or not answer.endswith("\n") \
            or answer.count("\n") != 1:
        raise Refused(f"Unexpected response from NCCL: {answer!r}")
    if int(answer.split()[2]) != PROTOCOL:
        complain("NCCL RAS protocol version mismatch! Will try to continue in spite of that...")
    if options["timeout"] is not None:
        expect_ok(stream, f"TIMEOUT {options['timeout']}")
    return stream


def connect_patiently(options):
    for _ in range(CONNECT_TRIES):
        try:
            return connect(options)
        except TimeoutError:
            complain("Connection timed out; retrying...")
    raise Refused("Failed to connect to the NCCL RAS service!")


def report(stream, options):
    timeout = 5 if options["timeout"] is None else options["timeout"]
    stream.settimeout(None if timeout == 0 else 1 + timeout + 5)
    stream.sendall(b"VERBOSE STATUS\n" if options["verbose"] else b"STATUS\n")
    while True:
        data = stream.recv(READ_BYTES)
        if not data:
            return
        sys.stdout.write(data.decode())
        sys.stdout.flush()


def monitor(stream, options):
    stream.settimeout(None)
    groups = options["monitor"]
    answer = ask(stream, f"MONITOR {groups}" if groups else "MONITOR")
    if not answer.startswith("OK\n"):
        raise Refused(f"Monitor mode activation failed: {answer}")
    complain("RAS Monitor Mode - watching for peer changes (Ctrl+C to exit)...")
    complain("=" * 64)
    data = answer[3:]
    while True:
        sys.stdout.write(data)
        sys.stdout.flush()
        piece = stream.recv(READ_BYTES)
        if not piece:
            complain("Connection closed by the NCCL job.")
            return
        data = piece.decode()


def read_options(arguments):
    options = {"host": "localhost", "port": 28028, "timeout": None, "format": None,
               "verbose": False, "monitor": None}
    # getopt knows no optional argument: -m takes one only when it is attached.
    plain = []
    for argument in arguments:
        if argument.startswith("-m") or argument.startswith("--monitor"):
            options["monitor"] = argument.removeprefix("--monitor").removeprefix("=") \
                if argument.startswith("--") else argument[2:]
        else:
            plain.append(argument)
    given, _ = getopt.getopt(plain, "h:p:t:f:v",
                             ["host=", "port=", "timeout=", "format=", "verbose"])
    for name, value in given:
        if name in ("-h", "--host"):
            options["host"] = value
        elif name in ("-p", "--port"):
            options["port"] = int(value)
        elif name in ("-t", "--timeout"):
            options["timeout"] = int(value)
        elif name in ("-f", "--format"):
            options["format"] = value
        else:
            options["verbose"] = True
    return options


def main():
    options = read_options(sys.argv[1:])
    try:
        stream = connect_patiently(options)
        if options["format"] is not None:
            expect_ok(stream, f"SET FORMAT {options['format']}")
        if options["monitor"] is not None:
            monitor(stream, options)
        else:
            report(stream, options)
    except TimeoutError:
        complain("Connection timed out")
        return 1
    except (OSError, Refused) as error:
        complain(str(error))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
