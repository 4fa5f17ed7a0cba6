#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Writes the C functions that stand before MPI's own, from the table of calls.

    make_calls.py calls.txt calls.c calls.h

Each call is there as MPI_X, as programs call it, and as PMPI_X, as Open MPI's Fortran calls it.
Both count alike, and once: see call.h.
"""

import pathlib
import sys

INTS = "igroy"
# The operations that a call between two ranks counts as.
PAIR_KINDS = {"send": ["TOCSIN_SEND"], "receive": ["TOCSIN_RECEIVE"],
              "sendrecv": ["TOCSIN_SEND", "TOCSIN_RECEIVE"], "probe": []}
TYPES = {"n": "int", "m": "int", "N": "int", "k": "int64_t"} | {letter: "int" for letter in INTS}


class Call:
    """One function that is followed."""

    def __init__(self, prefix, name, how, kind, letters, large):
        self.symbol, self.name, self.how, self.kind = f"{prefix}_{name}", name, how, kind
        self.letters, self.large = letters, large
        self.number = f"CALL_{prefix}_{name}"

    def type_of(self, letter):
        return "int64_t" if self.large and letter in "nmN" else TYPES.get(letter, "mpi_word")

    def parameters(self):
        return [f"{self.type_of(letter)} a{n}" for n, letter in enumerate(self.letters)]

    def names(self):
        return ", ".join(f"a{n}" for n in range(len(self.letters)))

    def place(self, letter):
        return f"a{self.letters.index(letter)}"

    def pair(self):
        return f"(struct pair){{{self.place('o')}, {self.place('y')}}}"

    def signature(self):
        """What is told of a collective operation."""
        letters = self.letters
        root = self.place("r") if "r" in letters else "-1"
        values = "true" if self.kind in ("reduce", "all_reduce", "reduce_scatter", "scan") \
            else "false"
        if self.kind == "other":
            return f"signature_of_call(JOB_CALL_{self.name.upper()})"
        if "n" not in letters:
            return f"(struct signature){{.root = {root}, .datatype = SIGNATURE_NO_TYPE}}"
        own = f"{self.place('n')}, {self.place('t')}"
        if "m" in letters:
            return (f"{root} == (int)at->rank ? "
                    f"signature_of({self.place('m')}, {self.place('u')}, {values}, {root}) : "
                    f"signature_of({own}, {values}, {root})")
        return f"signature_of({own}, {values}, {root})"


def rows(path):
    for line in path.read_text(encoding="utf-8").splitlines():
        words = line.split("#")[0].split()
        if not words:
            continue
        name, how, kind, letters = words[0], words[1].split("+"), words[2], words[3:]
        for prefix in ("MPI", "MPIX") if "x" in how[1:] else ("MPI",):
            yield Call(prefix, name, how[0], kind, letters, False)
            if "c" in how[1:] and prefix == "MPI":
                yield Call(prefix, f"{name}_c", how[0], kind, letters, True)


def is_collective(call):
    return call.kind not in PAIR_KINDS


def body_of(call):
    """The lines of the function that counts."""
    kind = f"TOCSIN_{call.kind.upper()}"
    made = [f"\tcomm_made(at, err, {call.place('w')});"] if call.how == "makes" else []
    if call.how == "keeps":
        keep, told = (("request_keep", call.signature()) if is_collective(call)
                      else ("request_keep_pair", call.pair()))
        return [f"\tint err = next({call.names()});", "",
                "\tif (err == 0 && at != NULL)",
                f"\t\t{keep}({call.place('q')}, at, {kind}, {told});",
                "\tif (at != NULL)", "\t\tcomm_release(at);", "\treturn err;"]
    if call.how == "posts" and not is_collective(call):
        return ["\tint err;", "",
                "\tif (at == NULL)", f"\t\treturn next({call.names()});",
                f"\tpair_enter(at, {kind});", f"\terr = next({call.names()});",
                f"\tpair_posted(at, {kind}, {call.pair()}, err, {call.place('q')});",
                "\treturn err;"]
    if not is_collective(call):
        kinds = PAIR_KINDS[call.kind]
        number = f"JOB_CALL_{call.name.removesuffix('_c').upper()}"
        return ["\tint err;", "",
                "\tif (at == NULL)", f"\t\treturn next({call.names()});",
                *[f"\tpair_enter(at, {kind});" for kind in kinds],
                f"\tcall_enter(at, {number}, {call.place('o')}, {call.place('y')});",
                f"\terr = next({call.names()});",
                "\tcall_leave(at);",
                *[f"\tpair_leave(at, {kind});" for kind in kinds],
                "\tcomm_release(at);", "\treturn err;"]
    enter = "collective_post" if call.how == "posts" else "collective_enter"
    leave = (f"\tcollective_posted(at, {kind}, place, err, {call.place('q')});"
             if call.how == "posts" else f"\tcollective_leave(at, {kind}, place);")
    return ["\tuint64_t place;", "\tint err;", "",
            "\tif (at == NULL)", f"\t\treturn next({call.names()});",
            f"\tplace = {enter}(at, {kind}, {call.signature()});",
            f"\terr = next({call.names()});",
            *made, leave,
            *(["\tcomm_release(at);"] if call.how != "posts" else []), "\treturn err;"]


def write(calls):
    out = ["// Written by make_calls.py from calls.txt.", '#include "own.h"', "",
           "struct call mpi_calls[] = {",
           *[f'\t[{call.number}] = {{.name = "P{call.symbol}"}},' for call in calls], "};",
           "const unsigned int mpi_call_count = sizeof(mpi_calls) / sizeof(mpi_calls[0]);", ""]
    for call in calls:
        parameters = ", ".join(call.parameters())
        shape = parameters or "void"
        types = ", ".join(call.type_of(letter) for letter in call.letters) or "void"
        function = f"function_{call.symbol}"
        counted = ", ".join(["const void *caller", *call.parameters()])
        out += [f"int {call.symbol}({shape});", f"int P{call.symbol}({shape});",
                f"typedef int {function}({types});",
                f"static int count_{call.symbol}({counted}) {{",
                f"\t{function} *next = (void *)call_next({call.number}, caller);"]
        if call.how == "own":
            passed = ", ".join(["next", call.names()] if call.letters else ["next"])
            out += ["", f"\treturn own_{call.name}({passed});", "}"]
        else:
            out += [f"\tstruct followed *at = comm_hold({call.place('c')});",
                    *body_of(call), "}"]
        given = ", ".join(["CALLER", call.names()] if call.letters else ["CALLER"])
        out += [f"int P{call.symbol}({shape}) {{", f"\treturn count_{call.symbol}({given});", "}",
                f"int {call.symbol}({shape}) {{",
                f"\t{function} *outer = (void *)call_outer({call.number}, CALLER);", "",
                "\tif (outer != NULL)", f"\t\treturn outer({call.names()});",
                f"\treturn count_{call.symbol}({given});", "}", ""]
    return "\n".join(out)


def numbers(calls):
    lines = ["// Written by make_calls.py from calls.txt.", "#pragma once", "", "enum {",
             *[f"\t{call.number}," for call in calls], "};", ""]
    return "\n".join(lines)


def main():
    calls = list(rows(pathlib.Path(sys.argv[1])))
    pathlib.Path(sys.argv[2]).write_text(write(calls), encoding="utf-8")
    pathlib.Path(sys.argv[3]).write_text(numbers(calls), encoding="utf-8")


if __name__ == "__main__":
    main()
