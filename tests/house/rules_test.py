#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Every rule of ./dev lint reports violations, and only these.

rules_test.py
"""

import source_rules
import tap

SPDX = "// SPDX-License-Identifier: BSD-3-Clause\n"

# Rule, path, the text behind the SPDX line: what it must and what it must not complain about.
BAD = [
    ("pragma_once", "lib/include/lib/a.h", "int a(void);\n"),
    ("opening", "lib/a.c", "int a;\n"),
    ("size", "lib/a.c", "\n" * 1001),
    ("columns", "lib/a.c", "\t" * 12 + "int a;\n"),
    ("trailing_space", "lib/a.c", "int a; \n"),
    ("unfinished", "lib/a.c", "// TO" "DO: the rest\n"),
    ("comment_style", "lib/a.c", "/* no */\n"),
    ("comment_style", "lib/a.c", "int a; /* no */\n"),
    ("forbidden", "lib/a.c", "void f(char *s) {\n\tstrcpy(s, \"x\");\n}\n"),
    ("forbidden", "agent/a.c", "int f(const char *s) {\n\treturn strtol(s, 0, 10);\n}\n"),
    ("forbidden", "tests/unit/a_test.c", "void f(void) {\n\tusleep(10);\n}\n"),
    ("forbidden", "dataplane/a.c", "void f(void) {\n\tprintf(\"x\");\n}\n"),
    ("goto", "lib/a.c", "\tgoto again;\n"),
    ("comment_openers", "lib/a.c", "int a; // What is counted.\n"),
    ("comment_openers", "lib/a.c", "// What a node knows.\nint a;\n"),
    ("comment_openers", "lib/a.c", "int a; // the peer, whom we ask\n"),
    ("comment_openers", "lib/a.c", "int a;\n// Of a node: its name.\nint b;\n"),
    ("static_names", "lib/a.c", "static const char *tell(int a) {\n"),
    ("volatile", "lib/a.c", "volatile int a;\n"),
    ("layers", "lib/a.c", "#include <control/loop.h>\n"),
    ("layers", "control/ras/a.c", "#include <dataplane/verbs.h>\n"),
    ("layers", "perf/a.c", "#include <agent/options.h>\n"),
    ("layers", "lib/a.c", "#include \"../control/loop.h\"\n"),
    ("wrappers", "dataplane/a.c", "#include <infiniband/verbs.h>\n"),
    ("wrappers", "control/a.c", "#include <rte_ring.h>\n"),
    ("wrappers", "lib/a.c", "#include <urcu-qsbr.h>\n"),
    ("wrappers", "dataplane/a.c", "#include <sys/sdt.h>\n"),
    ("queue_pairs", "dataplane/lane/pair.c", "\terr = ibv_post_send(qp, wr, &bad);\n"),
    ("queue_pairs", "control/fabric/nic.c", "\tcount = ibv_poll_cq(cq, 1, &wc);\n"),
    ("queue_pairs", "dataplane/lane/lane_drain_fast.c", "\tattr.qp_state = IBV_QPS_RESET;\n"),
    ("executables", "lib/meson.build", "executable('x', 'x.c')\n"),
]
GOOD = [
    ("opening", "lib/a.c", "// Adds.\nint a;\n"),
    ("opening", "tests/unit/a_test.c", "int a;\n"),
    ("columns", "lib/a.c", "\t\t\"" + "x" * 200 + "\",\n"),
    ("unfinished", "lib/a.c", "int todo_list;\n"),
    ("comment_style", "lib/a.c", "const char *glob = \"/*\";\n// a/*b\n"),
    ("forbidden", "lib/a.c", "// strcpy(s, t) is not used here\nvoid my_strcpy(char *s);\n"),
    ("forbidden", "lib/a.c", "void f(void) {\n\tops->system(1);\n\tputs_count(\"atoi(x)\");\n}\n"),
    ("forbidden", "agent/a.c", "void f(void) {\n\tprintf(\"x\");\n}\n"),
    ("forbidden", "lib/parse.c", "\tvalue = strtoull(text, &end, 10);\n"),
    ("goto", "lib/a.c", "\tgoto fail;\n"),
    ("comment_openers", "lib/a.c", "// Write the name of the node\n// To which it belongs.\n"),
    ("comment_openers", "lib/a.c", "const char *a = \"// Of\"; // Total of all.\n"),
    ("static_names", "lib/a.c", "static const char *peer_name(int a) {\n\treturn say(a);\n"),
    ("static_names", "tests/unit/a_test.c", "static void send(void) {\n"),
    ("volatile", "perf/a.h", "\t__asm__ volatile(\"\" : : : \"memory\");\n"),
    ("volatile", "lib/a.c", "static volatile sig_atomic_t stop;\n"),
    ("layers", "control/a.c", "#include <ras/core.h>\n#include <dataplane/verbs.h>\n"),
    ("layers", "tests/unit/a_test.c", "#include <agent/options.h>\n"),
    ("wrappers", "dataplane/include/dataplane/verbs.h", "#include <infiniband/verbs.h>\n"),
    ("queue_pairs", "dataplane/lane/lane_post_fast.c", "\tcode = ibv_post_recv(qp, wr, &bad);\n"),
    ("queue_pairs", "dataplane/lane/pair.c", "// as ibv_post_send() does\n"),
    ("queue_pairs", "dataplane/soft/transport/qp.c", "\tqp->state = IBV_QPS_RESET;\n"),
    ("queue_pairs", "tests/vm/guest/a_test.c", "\tcount = ibv_poll_cq(cq, 1, &wc);\n"),
    ("executables", "agent/meson.build", "executable('x', 'x.c')\n"),
]


def complaints(rule, path, text):
    source = source_rules.Source(path, SPDX + text)
    return list(getattr(source_rules, f"rule_{rule}")(source))


def rule_test(rule):
    def test():
        for name, path, text in BAD:
            assert name != rule or complaints(rule, path, text), f"no complaint: {path}: {text!r}"
        for name, path, text in GOOD:
            said = complaints(rule, path, text) if name == rule else []
            assert not said, f"{said}: {path}: {text!r}"
    return test


def licence_line_is_first():
    for text, bad in (("int a;\n", True), (SPDX + "int a;\n", False), ("", True),
                      ("#!/bin/sh\n# SPDX-License-Identifier: BSD-3-Clause\n", False)):
        assert bool(list(source_rules.rule_licence(source_rules.Source("lib/a.c", text)))) == bad


def every_rule_is_tested():
    rules = {rule.__name__[len("rule_"):] for rule in source_rules.RULES}
    assert rules == {rule for rule, _, _ in BAD} | {"licence"}


if __name__ == "__main__":
    tap.run([(f"the rule '{rule}' complains when it should and only then", rule_test(rule))
             for rule in sorted({rule for rule, _, _ in BAD})] + [
        ("the rule 'licence' wants the SPDX line first", licence_line_is_first),
        ("every rule is tested", every_rule_is_tested),
    ])
