#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The command line of tocsin: help, mistakes, exit statuses, and the shape of what it prints.

    cli_test.py TOCSIN RECORDINGS
"""

import json
import os
import subprocess
import sys

import tap
from ifaces import SETTINGS, TOCSIN, expect

RACK = sys.argv[2] + "/rack"
COLUMNS_MAX = 100
TERMINAL_COLUMNS = 80


def tocsin(*arguments, stdout=subprocess.PIPE, **environment):
    kept = {name: value for name, value in os.environ.items() if name not in SETTINGS}
    return subprocess.run(
        [TOCSIN, *arguments], env={**kept, **environment}, text=True, stdout=stdout,
        stderr=subprocess.PIPE, check=False)


def expect_usage(words, *arguments, **environment):
    done = tocsin(*arguments, **environment)
    expect((done.returncode, done.stdout), (2, ""))
    assert words in done.stderr, done.stderr
    expect(done.stderr.count("\n"), 1)
    if "known are:" not in done.stderr:  # a list of all words is as long as they are
        assert len(done.stderr) <= COLUMNS_MAX + 1, done.stderr


def help_names_every_command_and_option():
    done = tocsin("--help")
    expect((done.returncode, done.stderr), (0, ""))
    for word in ("ifaces", "--help", "--version", "Exit status"):
        assert word in done.stdout, word
    done = tocsin("ifaces", "--help")
    expect(done.returncode, 0)
    for word in ("--rules", "--ifname", "--family", "--peer", "--explain", "--json", "--watch",
                 "--from", "--record", "--help", "TOCSIN_SOCKET_IFNAME", "TOCSIN_SOCKET_FAMILY",
                 "NCCL_SOCKET_IFNAME", "NCCL_SOCKET_FAMILY", "NCCL_COMM_ID", "Exit status",
                 "peer:ADDR", "default-route"):
        assert word in done.stdout, word
    commands = tocsin("--help").stdout.split("Commands:\n")[1].split("\n\n")[0].splitlines()
    for arguments in ([], *([line.split()[0]] for line in commands)):
        for line in tocsin(*arguments, "--help").stdout.splitlines():
            assert len(line) <= TERMINAL_COLUMNS, (arguments, line)


def help_is_given_whatever_else_was():
    for arguments in (["-h"], ["ifaces", "-h"], ["ifaces", "--json", "--help"]):
        done = tocsin(*arguments)
        expect(done.returncode, 0)
        assert done.stdout.startswith("Usage: tocsin"), done.stdout
    for word, option in ((["help"], ["--help"]), (["help", "ifaces"], ["ifaces", "--help"])):
        expect(tocsin(*word).stdout, tocsin(*option).stdout)
        expect(tocsin(*word).returncode, 0)
    expect_usage('unknown command "iface"; did you mean "ifaces"?', "help", "iface")
    expect_usage('no further "x"', "help", "ifaces", "x")


def version_is_one_line():
    for option in ("--version", "-V"):
        done = tocsin(option)
        expect((done.returncode, done.stdout.split()[0], done.stdout.count("\n")),
               (0, "tocsin", 1))


def no_command_shows_the_help_as_a_mistake():
    done = tocsin()
    expect((done.returncode, done.stdout), (2, ""))
    assert done.stderr.startswith("Usage: tocsin COMMAND"), done.stderr


def unknown_words_are_quoted_with_the_nearest():
    expect_usage('unknown command "iface"; did you mean "ifaces"?', "iface")
    expect_usage('unknown command "frobnicate"; known are: status, ', "frobnicate")
    expect_usage('unknown option "--verison"; did you mean "--version"?', "--verison")
    expect_usage('unknown option "--explian"; did you mean "--explain"?', "ifaces", "--explian")
    expect_usage('unknown option "--pear"; did you mean "--peer"?', "ifaces", "--pear=10.0.0.1")
    expect_usage('unknown option "-x"', "ifaces", "-x")
    expect_usage('unknown option "-xpeer"', "ifaces", "-xpeer", "10.0.0.1")
    expect_usage('unknown option "--"', "ifaces", "--")
    expect_usage('takes no argument "eth0"', "ifaces", "eth0")
    expect_usage('takes no argument ""', "ifaces", "")
    expect_usage('"\\x1b[31m"', "\x1b[31m")


def options_are_held_to_their_form():
    expect_usage("--peer needs a value: --peer ADDR", "ifaces", "--peer")
    expect_usage("--json takes no value", "ifaces", "--json=yes")
    expect_usage("--peer is given twice", "ifaces", "--peer", "10.0.0.1", "--peer=10.0.0.2")
    expect_usage('"best" is neither tocsin nor nccl', "ifaces", "--rules", "best")
    expect_usage('"" is neither tocsin nor nccl', "ifaces", "--rules=")
    for other in (["--explain"], ["--json"], ["--from", "/x"], ["--record", "/x"]):
        expect_usage("--watch and " + other[0], "ifaces", "--watch", *other)
    expect_usage("--from and --record", "ifaces", "--from", "/x", "--record", "/y")


def wrong_settings_are_named_and_quoted():
    expect_usage('--peer: "300.1.2.3" is not an address', "ifaces", "--peer", "300.1.2.3")
    expect_usage('--peer: "" has no host: HOST[:PORT]', "ifaces", "--peer", "")
    expect_usage('TOCSIN_SOCKET_FAMILY: "ipx"', "ifaces", TOCSIN_SOCKET_FAMILY="ipx")


def an_option_goes_before_the_environment():
    done = tocsin("ifaces", "--from", RACK, "--ifname", "bond0.100", TOCSIN_SOCKET_IFNAME="^")
    expect(done.returncode, 0)
    assert "10.2.0.5/24" in done.stdout, done.stdout


def a_recording_that_is_not_there_is_told():
    done = tocsin("ifaces", "--from", "/nonexistent")
    expect((done.returncode, done.stdout), (1, ""))
    assert 'interfaces of "/nonexistent": No such file or directory' in done.stderr, done.stderr


def a_directory_with_control_characters_is_shown_harmless():
    for option in ("--from", "--record"):
        done = tocsin("ifaces", option, "/nonexistent/\x1b[31m")
        expect((done.returncode, done.stdout), (1, ""))
        assert '"/nonexistent/\\x1b[31m": No such file' in done.stderr, done.stderr


def an_item_that_names_nothing_lists_what_there_is():
    done = tocsin("ifaces", "--from", RACK, "--ifname", "ib,eth")
    expect((done.returncode, done.stdout), (1, ""))
    expect(done.stderr.splitlines()[:3], [
        'tocsin ifaces: --ifname: item "ib" matches the beginning of no interface name',
        "Interfaces of this machine:", "  lo 127.0.0.1/8"])
    assert "  eth3 10.4.0.5/24" in done.stderr.splitlines(), done.stderr


def a_list_that_is_wrong_shows_what_there_is_to_name():
    for value, wrong in (("^", ' is "^"'), ("", ' is ""'), ("eth3,,ib", ": item 2 of"),
                         ("a b", ': item "a b"')):
        done = tocsin("ifaces", "--from", RACK, TOCSIN_SOCKET_IFNAME=value)
        expect((done.returncode, done.stdout), (2, ""))
        lines = done.stderr.splitlines()
        assert lines[0].startswith("tocsin ifaces: TOCSIN_SOCKET_IFNAME" + wrong), lines
        expect(lines[1:3], ["Interfaces of this machine:", "  lo 127.0.0.1/8"])
        assert max(len(line) for line in lines) <= COLUMNS_MAX, lines
    for arguments in (["--peer", "300.1.2.3"], ["--from", "/nonexistent", "--ifname", "^"]):
        done = tocsin("ifaces", *arguments)
        expect(done.returncode, 2)
        assert "There are" not in done.stderr, done.stderr


def tables_keep_within_100_columns():
    for arguments in ([], ["--explain"], ["--rules", "nccl"], ["--rules", "nccl", "--explain"],
                      ["--explain", "--peer", "10.2.0.77", "--ifname", "bond,eth,^br,10.0.0.0/8"]):
        done = tocsin("ifaces", "--from", RACK, *arguments)
        expect((done.returncode, done.stderr), (0, ""))
        for line in done.stdout.splitlines():
            assert len(line) <= COLUMNS_MAX, line
    for arguments in (["--explain"], ["--rules", "nccl"]):  # none of these names is long
        for line in tocsin("ifaces", "--from", RACK, *arguments).stdout.splitlines():
            assert len(line) <= TERMINAL_COLUMNS, line


def explanation_shows_settings_and_where_they_came_from():
    done = tocsin("ifaces", "--from", RACK, "--explain", "--ifname", "bond", "--peer", "10.2.0.77",
                  TOCSIN_SOCKET_FAMILY="ipv4")
    lines = [line.split() for line in done.stdout.splitlines()]
    for wanted in (["--ifname", "option", '"bond"'],
                   ["TOCSIN_SOCKET_FAMILY", "environment", '"ipv4"'],
                   ["--peer", "option", '"10.2.0.77"'],
                   ["route", "to", "10.2.0.77:", "by", "bond0.100", "from", "10.2.0.5"],
                   ["*", "bond0.100", "10.2.0.5/24"],
                   ["chosen", "by", "rule:", '"bond"'], ["decided", "by", "route"]):
        assert wanted in lines, (wanted, done.stdout)
    long = "bond,eth,^br,^docker,^dummy,^wg,^tun,^vx,^usb,^mv"  # only a terminal cuts it
    done = tocsin("ifaces", "--from", RACK, "--explain", "--ifname", long)
    assert f'"{long}"\n' in done.stdout, done.stdout


def json_says_the_same_as_the_table():
    for rules in ("tocsin", "nccl"):
        table = tocsin("ifaces", "--from", RACK, "--rules", rules, "--explain").stdout
        told = json.loads(tocsin(
            "ifaces", "--from", RACK, "--rules", rules, "--explain", "--json").stdout)
        expect(told["rules"], rules)
        for one in told["candidates"]:
            name = one["interface"]
            text = f"{name} {one['address']}/{one['prefix_bits']}" if "address" in one else name
            block = table[table.index(f" {text}"):].split("\n")
            assert one["class"] in block[1] and f"mtu {one['mtu_bytes']}" in block[1], block[:4]
            assert one["verdict"] in block[3], block[:4]
            if one["verdict"] == "dropped":
                assert one["reason"] in block[3], block[:4]
            elif rules == "tocsin":
                expect(one["reason"].startswith("qualified, "), one["verdict"] == "qualified")
                assert ("decided_by" in one) == (one["verdict"] == "chosen"), one
                for part in ("selector", "route", "subnet", "reach", "class", "speed", "mtu"):
                    assert f"{part} {one['score'][part]}" in block[4], block[:5]
        for one in told["chosen"]:
            assert f"{one['address']}/{one['prefix_bits']}" in table


def what_decided_is_told():
    for arguments, wanted in (([], "the lower index"),
                              (["--peer", "10.2.0.77"], "route"),
                              (["--ifname", "bond0.100,eth3"], "selector"),
                              (["--ifname", "bond0.100"], "being the only one that qualifies")):
        done = tocsin("ifaces", "--from", RACK, "--explain", "--json", *arguments)
        told = json.loads(done.stdout)
        expect([one["decided_by"] for one in told["candidates"] if "decided_by" in one], [wanted])


def the_carrier_of_a_link_that_is_down_is_unknown():
    told = json.loads(tocsin("ifaces", "--from", RACK, "--explain", "--json").stdout)
    for one in told["candidates"]:
        expect((one["interface"], one["carrier"] is None), (one["interface"], not one["up"]))
    table = tocsin("ifaces", "--from", RACK, "--explain").stdout
    for line in table.splitlines():
        assert not line.startswith("    down,") or "carrier unknown" in line, line


def an_alias_is_shown_by_its_label():
    table = tocsin("ifaces", "--from", RACK, "--rules", "nccl").stdout
    assert ["eth3:1", "10.4.0.6/24"] in [line.split()[:2] for line in table.splitlines()], table
    told = json.loads(tocsin("ifaces", "--from", RACK, "--rules", "nccl", "--json").stdout)
    expect([one["address"] for one in told["chosen"] if one.get("label") == "eth3:1"], ["10.4.0.6"])


def json_without_explain_is_the_choice_alone():
    told = json.loads(tocsin("ifaces", "--from", RACK, "--json").stdout)
    expect(sorted(told), ["chosen", "notes", "rules"])
    expect([(one["interface"], one["address"]) for one in told["chosen"]], [("eth3", "10.4.0.5")])


def json_is_whole_when_nothing_qualifies():
    done = tocsin("ifaces", "--from", RACK, "--json", "--explain", "--ifname", "=tun0")
    expect(done.returncode, 1)
    told = json.loads(done.stdout)
    expect(told["chosen"], [])
    assert "nothing qualifies" in done.stderr and "tun0 10.201.0.1/32: no carrier" in done.stderr


def what_nccl_passes_over_is_told():
    done = tocsin("ifaces", "--from", RACK, "--rules", "nccl", NCCL_COMM_ID="[bad",
                  NCCL_SOCKET_FAMILY="ip", NCCL_SOCKET_IFNAME="e")
    expect(done.returncode, 0)
    for word in ('NCCL_COMM_ID "[bad" is ignored', 'NCCL_SOCKET_FAMILY "ip"',
                 'NCCL_SOCKET_IFNAME "e"'):
        assert word in done.stderr, done.stderr
    expect(len(json.loads(tocsin("ifaces", "--from", RACK, "--rules", "nccl", "--json",
                                 NCCL_COMM_ID="[bad").stdout)["notes"]), 1)


def a_full_disk_is_no_success():
    for arguments in (["ifaces", "--from", RACK], ["ifaces", "--help"], ["--help"], ["--version"]):
        with open("/dev/full", "w", encoding="ascii") as full:
            done = tocsin(*arguments, stdout=full)
        expect((arguments, done.returncode), (arguments, 1))
        assert "cannot write the answer: No space left on device" in done.stderr, done.stderr


TESTS = [
    help_names_every_command_and_option,
    help_is_given_whatever_else_was,
    version_is_one_line,
    no_command_shows_the_help_as_a_mistake,
    unknown_words_are_quoted_with_the_nearest,
    options_are_held_to_their_form,
    wrong_settings_are_named_and_quoted,
    an_option_goes_before_the_environment,
    a_recording_that_is_not_there_is_told,
    a_directory_with_control_characters_is_shown_harmless,
    an_item_that_names_nothing_lists_what_there_is,
    a_list_that_is_wrong_shows_what_there_is_to_name,
    tables_keep_within_100_columns,
    explanation_shows_settings_and_where_they_came_from,
    json_says_the_same_as_the_table,
    what_decided_is_told,
    the_carrier_of_a_link_that_is_down_is_unknown,
    an_alias_is_shown_by_its_label,
    json_without_explain_is_the_choice_alone,
    json_is_whole_when_nothing_qualifies,
    what_nccl_passes_over_is_told,
    a_full_disk_is_no_success,
]

if __name__ == "__main__":
    tap.run([(test.__name__.replace("_", " "), test) for test in TESTS])
