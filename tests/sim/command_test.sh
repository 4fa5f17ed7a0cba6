#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The command line of tocsin-sim: command_test.sh PROGRAM BROKEN_PROGRAM. TAP.
set -eu
export LC_ALL=C.UTF-8

sim=$1
broken=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
number=0

# Says whether what came before it held.
check() {
	status=$?
	number=$((number + 1))
	[ $status -eq 0 ] && echo "ok $number - $1" || echo "not ok $number - $1"
}

digest_of() {
	"$sim" "$@" --json | sed 's/.*"digest":"\([0-9a-f]*\)".*/\1/'
}

# Runs it with wrong arguments; its only line must hold the words, its status be 2.
refuses() {
	words=$1
	shift
	"$sim" "$@" >"$work/out" 2>"$work/err" && return 1
	[ $? -eq 2 ] && grep -qF -e "$words" "$work/err" && [ "$(wc -l <"$work/err")" -eq 1 ]
}

echo 1..23

set +e
[ "$(digest_of --scenario mixed --nodes 50 --seed 9)" = \
	"$(digest_of --scenario mixed --nodes 50 --seed 9)" ]
check "two runs of one seed have the same digest"

[ "$(digest_of --scenario mixed --nodes 50 --seed 9)" != \
	"$(digest_of --scenario mixed --nodes 50 --seed 10)" ]
check "another seed has another"

[ "$(digest_of --scenario crash --nodes 20 --trace "$work/trace")" = \
	"$(digest_of --scenario crash --nodes 20)" ] && grep -q DEAD "$work/trace"
check "a trace tells of the death and changes nothing"

"$sim" --scenario crash --nodes 20 --json >"$work/json" &&
	for key in scenario nodes profile seed digest joined_s first_dead_s all_dead_s \
		false_suspect false_dead rejoined_s converged_s flood_hops_max \
		bytes_per_node_s_mean bytes_per_node_s_p99 instance_bytes relay_delivered_pct \
		relay_nak_pct links_changed_per_join wall_s; do
		grep -q "\"$key\":" "$work/json" || exit 1
	done
check "the object has all the keys"

[ "$("$sim" --scenario crash --nodes 20 | awk 'length > 100' | wc -l)" -eq 0 ]
check "the table keeps to 100 columns"

"$sim" --help | grep -q -e '--swarm COUNT' && [ "$("$sim" --list | wc -l)" -ge 21 ]
check "help and list tell what there is"

"$sim" --scenario faults --nodes 20 --faults 'kill:5@2s+9s,freeze:7@3s+6s' >"$work/out"
check "faults can be spelt"

refuses 'nothing to do' --nodes 5
check "without anything to do it says what there is"
refuses '"nonsense" is no scenario' --scenario nonsense
check "an unknown scenario is quoted"
refuses '"slow" is no profile; there are: fast, nccl' --scenario crash --profile slow
check "an unknown profile is quoted with those there are"
refuses '20000' --scenario crash --nodes 20001
check "too many nodes are told the limit"
refuses 'tiny takes 1 to 4 nodes' --scenario tiny --nodes 5
check "more nodes than a scenario takes are told the limit"
refuses '--seed: ' --scenario crash --seed 1x
check "a seed that is no number names its option"
refuses '"kil" is no fault' --scenario faults --faults kil:5@2s
check "a fault that is none is quoted"
refuses 'belong together' --scenario crash --faults kill:5@2s
check "faults are for their scenario only"

refuses '--exhaust takes 3 to 5 nodes' --exhaust --nodes 6
check "an exhaustive search of a large ring is refused"
refuses 'fabric needs --verdicts' --scenario faults --nodes 3 --faults fabric:1@2s+5s
check "a fault of the fabric is refused where nobody looks at the fabric"
refuses '--verdicts belongs to' --scenario crash --verdicts
check "verdicts are for listed faults only"

"$sim" --exhaust --depth 1 | sed 's/, .* s of CPU//' >"$work/one" &&
	"$sim" --exhaust --depth 1 --jobs 3 | sed 's/, .* s of CPU//' >"$work/three" &&
	cmp "$work/one" "$work/three" &&
	grep -q '^exhaust: 3 nodes, up to 1 faults: 11 of 11 combinations' "$work/one"
check "each fault alone breaks nothing, and several processes find the same as one"

"$sim" --exhaust --depth 1 --from 6 >"$work/out" &&
	grep -q ': 5 of 11 combinations from 6 on, 0 broke' "$work/out"
check "an exhaustive search goes on where it is told to"

# A third, on a host of its own, is a part that waits: what is refused elsewhere is held there.
"$sim" --scenario faults --nodes 12 --hosts 3 --seed 5 --trace "$work/trace" \
	--faults split/67@5s+60s,kill:10@10s >"$work/out" &&
	grep -q 'n00009 *event *n00010 *DEAD cause=exited' "$work/trace" &&
	! grep -q 'n00009 *event *n00010 *UNREACHABLE' "$work/trace"
check "who exits beside others of its host is dead to them in a part that waits"

"$broken" --swarm 12 --nodes 64 --seed 1 >"$work/out" 2>"$work/err"
[ $? -eq 1 ] && grep -q '^seed [0-9]* breaks: A: ' "$work/out" &&
	grep -q '^shrunk from 64 nodes and ' "$work/out" && grep -q '^what led to it:' "$work/err"
check "a core that needs no second observer is found and shrunk"

# The command that was shown, as it was shown.
arguments=$(sed -n 's/^  tocsin-sim //p' "$work/out" | tail -n 1)
# shellcheck disable=SC2086
[ -n "$arguments" ] && ! "$broken" $arguments >"$work/again" 2>&1 &&
	grep -q 'BROKEN.* A: ' "$work/again"
check "the command it shows breaks again"
