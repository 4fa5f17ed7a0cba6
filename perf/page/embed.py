#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Writes files as arrays of bytes in C: embed.py OUTPUT NAME=FILE..."""

import pathlib
import sys


def array(name, data):
    rows = [", ".join(str(byte) for byte in data[at:at + 16]) for at in range(0, len(data), 16)]
    return (f"static const unsigned char bytes_of_{name}[] = {{\n\t"
            + ",\n\t".join(rows) + ",\n};\n"
            + f"const struct page_bytes page_{name} = "
            + f"{{bytes_of_{name}, sizeof(bytes_of_{name})}};\n")


def main(output, *files):
    parts = ['#include "page_data.h"\n']
    for word in files:
        name, _, path = word.partition("=")
        parts.append(array(name, pathlib.Path(path).read_bytes()))
    pathlib.Path(output).write_text("\n".join(parts), encoding="ascii")


main(*sys.argv[1:])
