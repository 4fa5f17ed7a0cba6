#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The rules of the house that no compiler knows: one function per rule.

Each takes a Source and yields (line number, complaint). The tests in tests/house give every
rule something to complain about.
"""

import re

FILE_LINES_MAX = 1000
FILE_LINES_WARN = 500
COLUMNS_MAX = 100
UNFINISHED = r"\b(TO" r"DO|FIX" r"ME|X" r"XX|HA" r"CK)\b"
TAB_COLUMNS = 8

# Who may include whose headers; ras is control/ras, tocsin what lib/job offers to jobs. Support is
# for tests, and for benchmarks that measure on the fake device.
LAYERS = {
    "lib": {"lib"},
    "lib/job": {"tocsin"},
    "dataplane": {"lib", "dataplane"},
    "control/ras": {"lib", "ras"},
    "control/fabric/probe": {"lib", "ras", "verdict"},
    "control/verdict/engine": {"lib", "ras", "verdict"},
    "control/records": {"lib", "records"},
    "control": {"lib", "dataplane", "ras", "verdict", "records", "control", "tocsin"},
    "agent": {"lib", "tocsin", "dataplane", "ras", "verdict", "records", "control", "agent"},
    "perf": {"lib", "dataplane", "perf", "support", "tocsin"},
}
COMPONENT_PREFIXES = set().union(*LAYERS.values()) | {"support"}

# Headers with habits of their own, and the one file that may include them.
WRAPPERS = {
    re.compile(r"infiniband/"): "dataplane/include/dataplane/verbs.h",
    re.compile(r"rte_"): "dataplane/include/dataplane/dpdk.h",
    re.compile(r"urcu"): "lib/include/lib/rcu.h",
    re.compile(r"sys/sdt\.h"): "lib/include/lib/tracepoint.h",
}

WHOM = re.compile(r"\b(whoever|whomever|whom)\b", re.IGNORECASE)
OPENERS = re.compile(r"(Of|Who|What|That|Whoever|Whom|By|To|Nor|But|Where)\b")

# Of the product, but for the device that is made of software: a queue pair is posted to and polled
# by its lane alone, and RESET would forget what a device may still reach.
POSTING = re.compile(r"\bibv_(post_send|post_recv|poll_cq)\s*\(")
LANE = re.compile(r"dataplane/lane/lane_\w+_fast\.c")
RESETTING = re.compile(r"\bIBV_QPS_RESET\b")
SOFTWARE_DEVICE = "dataplane/soft/"

# Each with what to use instead.
FORBIDDEN = {
    "strcpy strcat stpcpy strncpy strncat": "snprintf(), or memcpy() with a checked size",
    "sprintf vsprintf": "snprintf()",
    "gets": "fgets()",
    "atoi atol atoll atof": "<lib/parse.h>",
    "strtok": "strtok_r(), or a loop over strcspn()",
    "alloca": "an array with a bound, or the heap",
    "assert": "must(), which is in every build",
    "system popen": "the spawn helper",
    "tmpnam mktemp": "mkstemp()",
}
PRODUCT_FORBIDDEN = {
    "strtol strtoul strtoll strtoull strtod sscanf": "<lib/parse.h>, which has bounds and errors",
}
TEST_FORBIDDEN = {"sleep usleep nanosleep": "wait for the event, or turn the fake clock"}
# Libraries return; control and agent log. A FILE * given by the caller is fine.
SILENT_FORBIDDEN = {"printf puts putchar perror syslog": "lib and dataplane return an error"}


class Source:
    """One file: its path in the tree, its lines, and for C the same lines without literals."""

    def __init__(self, path, text):
        self.path = str(path)
        self.lines = text.splitlines()
        self.is_header = self.path.endswith(".h")
        self.is_c = self.is_header or self.path.endswith(".c")
        self.is_test = self.path.startswith("tests/")
        # Only the code, only the comments; both line by line.
        self.code, self.comments = split_c(text) if self.is_c else (self.lines, self.lines)

    def component(self):
        for name in sorted(LAYERS, key=len, reverse=True):
            if self.path.startswith(name + "/"):
                return name
        return None


def split_c(text):
    """Two lists of lines: code with empty string literals and no comments, and comments."""
    code, comments, at, state = [], [], 0, "code"
    while at < len(text):
        two, one = text[at:at + 2], text[at]
        if one == "\n":
            code.append("\n")
            comments.append("\n")
            state = state if state == "block" else "code"
        elif state == "code":
            if two == "//":
                state = "line"
                comments.append(two)
                at += 1
            elif two == "/*":
                state = "block"
                comments.append(two)
                at += 1
            else:
                code.append(one)
                if one in "\"'":
                    state = one
        elif state in ("line", "block"):
            comments.append(one)
            if state == "block" and two == "*/":
                state = "code"
                at += 1
        elif one == "\\":
            at += 1
        elif one == state:
            code.append(one)
            state = "code"
        at += 1
    # split(), so that a last line that is all comment still has its (empty) line of code.
    return "".join(code).split("\n"), "".join(comments).split("\n")


def includes(source):
    # From the lines themselves: the literal is what is asked for.
    for number, line in enumerate(source.lines, 1):
        found = re.match(r'\s*#\s*include\s*[<"]([^>"]+)[>"]', line)
        if found:
            yield number, found.group(1)


def rule_licence(source):
    first = source.lines[0] if source.lines else ""
    second = source.lines[1] if len(source.lines) > 1 else ""
    wanted = second if first.startswith("#!") else first
    if "SPDX-License-Identifier: BSD-3-Clause" not in wanted:
        yield 1, "the SPDX line comes first (after #!)"


def rule_pragma_once(source):
    if source.is_header and "#pragma once" not in source.lines:
        yield 1, "a header has #pragma once"


def rule_opening(source):
    if source.is_c and not source.is_header and not source.is_test:
        if not (source.lines[1] if len(source.lines) > 1 else "").startswith("// "):
            yield 2, "a file says in its second line what it is"


def rule_size(source):
    if len(source.lines) > FILE_LINES_MAX:
        yield FILE_LINES_MAX, f"{len(source.lines)} lines: the limit is {FILE_LINES_MAX}"


def rule_columns(source):
    """A message is not broken for its length: it would no longer be found by searching."""
    for number, line in enumerate(source.lines, 1):
        bare = source.code[number - 1] + source.comments[number - 1] if source.is_c else line
        if len(bare.expandtabs(TAB_COLUMNS)) > COLUMNS_MAX:
            yield number, f"more than {COLUMNS_MAX} columns"


def rule_trailing_space(source):
    for number, line in enumerate(source.lines, 1):
        if line != line.rstrip():
            yield number, "space at the end of the line"


def rule_unfinished(source):
    for number, line in enumerate(source.comments, 1):
        if re.search(UNFINISHED, line):
            yield number, "unfinished work is an issue, not a mark in the source"


def rule_comment_style(source):
    if source.is_c:
        for number, line in enumerate(source.comments, 1):
            if re.match(r"\s*/\*", line):
                yield number, "comments are //"


def rule_forbidden(source):
    if not source.is_c:
        return
    tables = [FORBIDDEN]
    if source.is_test:
        tables.append(TEST_FORBIDDEN)
    elif not source.path.startswith("lib/parse"):
        tables.append(PRODUCT_FORBIDDEN)
    if source.component() in ("lib", "lib/job", "dataplane"):
        tables.append(SILENT_FORBIDDEN)
    for table in tables:
        for names, instead in table.items():
            pattern = re.compile(r"(?<![\w.>])(" + "|".join(names.split()) + r")\s*\(")
            for number, line in enumerate(source.code, 1):
                found = pattern.search(line)
                if found:
                    yield number, f"{found.group(1)}(): use {instead}"


def rule_goto(source):
    if source.is_c:
        for number, line in enumerate(source.code, 1):
            if re.search(r"\bgoto\b(?!\s+(fail|out)\s*;)", line):
                yield number, "goto goes to fail or out only"


def rule_comment_openers(source):
    """A comment names its subject first (CONTRIBUTING.md), so none begins with one of these."""
    after_comment = False
    for number, (code, comment) in enumerate(zip(source.code, source.comments), 1):
        text = re.sub(r"^//+\s*", "", comment.strip())
        if text.startswith("SPDX"):
            continue  # the comment below it begins anew
        alone = bool(comment.strip()) and not code.strip()
        if source.is_c and WHOM.search(text):
            yield number, f'"{WHOM.search(text)[0]}" names nobody: write which node, peer or caller'
        if source.is_c and text and not (alone and after_comment) and OPENERS.match(text):
            yield number, f'"{text.split()[0]}" leaves the subject of the comment out'
        after_comment = bool(comment.strip()) and (alone or after_comment)


def rule_static_names(source):
    """A static function of the product has two words: module or object, and action."""
    if source.is_c and source.component() and not source.is_test:
        for number, line in enumerate(source.code, 1):
            found = re.match(r"(?:static (?:[a-z]\w* )*\**|static .*[ *])([a-z]+)\(", line)
            if found and not line.rstrip().endswith(";"):
                yield number, f"{found.group(1)}() is one word: name its object as well"


def rule_volatile(source):
    if source.is_c:
        for number, line in enumerate(source.code, 1):
            if re.search(r"(?<!asm )(?<!asm__ )\bvolatile\b(?! sig_atomic_t)", line):
                yield number, "volatile: shared data is atomic and states its order"


def rule_layers(source):
    component = source.component()
    for number, header in includes(source):
        if header.startswith("../") or "/../" in header:
            yield number, f'"{header}" walks around the include directories'
        prefix = header.split("/")[0]
        if component and "/" in header and prefix in COMPONENT_PREFIXES - LAYERS[component]:
            yield number, f"{component} does not see {prefix}"


def rule_wrappers(source):
    for number, header in includes(source):
        for pattern, wrapper in WRAPPERS.items():
            if pattern.match(header) and source.path != wrapper:
                yield number, f"<{header}> is included by {wrapper} only"


def rule_queue_pairs(source):
    if source.component() in (None, "perf") or source.path.startswith(SOFTWARE_DEVICE):
        return
    for number, line in enumerate(source.code if source.is_c else [], 1):
        if POSTING.search(line) and not LANE.fullmatch(source.path):
            yield number, "posting and polling are the lane's: dataplane/lane/lane_*_fast.c"
        if RESETTING.search(line):
            yield number, "a queue pair goes to ERR, is drained and destroyed"


def rule_executables(source):
    """A component is a library; programs are declared where nothing depends on them. So are the
    examples of the public library, which stand beside it for its users."""
    libraries = ("lib", "lib/job", "dataplane", "control", "control/ras", "control/fabric/probe",
                 "control/verdict/engine")
    if (source.path.endswith("meson.build") and source.component() in libraries
            and source.path != "lib/job/examples/meson.build"):
        for number, line in enumerate(source.lines, 1):
            if re.search(r"\bexecutable\s*\(", line):
                yield number, "executables are declared in agent, perf or tests"


RULES = [value for name, value in list(globals().items()) if name.startswith("rule_")]


def complaints(source):
    """All complaints about one file as text, file:line: first."""
    for rule in RULES:
        for number, complaint in rule(source):
            yield f"{source.path}:{number}: {complaint}"
