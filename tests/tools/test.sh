# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh
# Sourced by ./dev: which suite runs in which build, and the count at the end.
#
#   release   every suite
#   asan      every suite but house, which looks at the tree and at release objects, and soft-rxe,
#             in which an emulated machine is busy enough
#   tsan      stress, and threads: those of unit that start some
#   fuzz      short libFuzzer runs from the seeds (release and asan only replay these)

# So many tests that only wait may run at once, beside one for each processor.
waiting_tests=4

# Prints "SUITE NAME #NUMBER" of every test of a build directory, one per line; one that is in two
# suites twice, with the same number.
tests_read() {
	"$(tool meson)" introspect --tests "$1" </dev/null | "$(tool python3)" -c '
import json, sys
for number, test in enumerate(json.load(sys.stdin)):
    for suite in test["suite"]:
        print(suite.split(":")[-1], test["name"], "#%d" % number)'
}

# Of such lines the ones that a kind of build runs.
tests_of() {
	case $1 in
	release) grep -v '^threads ' ;;
	asan) grep -v -e '^house ' -e '^threads ' -e '^soft-rxe ' ;;
	tsan) grep -e '^stress ' -e '^threads ' ;;
	fuzz) grep '^fuzz ' ;;
	esac
}

# Compiler lines are progress: a few are enough. What meson finds when it configures anew is
# of interest only if it fails.
thin_out() {
	# mawk waits for a whole block of input, which is minutes of tests, unless told otherwise.
	case $(awk -W version 2>&1 </dev/null) in
	mawk*) set -- -W interactive ;;
	*) set -- ;;
	esac
	awk "$@" '/Regenerating build files/ { quiet = 1 }
		/^Found ninja-/ { quiet = 0; next }
		/^FAILED: / { quiet = 0 }
		quiet && !/ERROR/ { next }
		/^\[[0-9]+\/[0-9]+\] / { if (lines++ % 25 == 0) print; next }
		/^(ninja: |Cleaning\.\.\. |>>> |Full log |$)/ { next }
		# meson counts programs; the tally counts tests.
		/^(Ok|Expected Fail|Fail|Unexpected Pass|Skipped|Timeout): +[0-9]+ *$/ { next }
		{ print; fflush() }'
}

# Builds everything of a kind with few lines. A pipe's status is that of its last command,
# hence the mark that a failure leaves.
build_whole() {
	broken=$(build_dir "$1")/broken
	rm -f "$broken"
	{ build "$1" || : >"$broken"; } | thin_out
	[ ! -e "$broken" ]
}

# Builds what the chosen tests (meson's arguments) need and runs them. meson's log is the
# result; no log means that the build failed, which is counted like a failed test.
test_kind() {
	kind=$1
	shift
	rm -f "$(build_dir "$kind")/meson-logs/testlog.json"
	echo "== $kind"
	configure "$kind" || return 0
	# The whole product must build, not only what tests need.
	if [ "$kind$chosen" = release ]; then
		build_whole release || return 0
	fi
	# A slow machine must not fail a test that is only slow there. Beside those that compute, a
	# few more run, since agents and guests wait most of the time.
	"$(tool meson)" test -C "$(build_dir "$kind")" --timeout-multiplier 4 \
		--num-processes $(($(nproc) + waiting_tests)) "$@" </dev/null 2>&1 | thin_out
}

# Such lines as one list per suite, in lines of at most 100 columns.
list_by_suite() {
	sort | awk '
		$1 != suite { if (line) print line; suite = $1; line = "  " suite ":" }
		length(line) + 1 + length($2) > 100 { print line; line = "   " }
		{ line = line " " $2 }
		END { if (line) print line }'
}

verb_test() {
	[ $# -le 1 ] || die "test takes one SUITE or NAME"
	chosen=${1-}
	[ $# -eq 0 ] || [ -n "$chosen" ] || die "test: '' is neither a suite nor a test"
	need build test slurm fuzz
	case $chosen in
	vm | guest) need vm || say "test: the suite vm will be skipped" ;;
	"" | soft-rxe | soft_rxe) need vm soft-rxe || say "test: vm and soft-rxe will be skipped" ;;
	esac
	configure release
	tests=$(tests_read build)
	if [ -n "$chosen" ] && ! printf '%s\n' "$tests" | tr ' ' '\n' | grep -qxF -e "$chosen"; then
		say "dev: test: '$chosen' is neither a suite nor a test. There are, by suite:"
		printf '%s\n' "$tests" | list_by_suite >&2
		exit 2
	fi
	export ASAN_OPTIONS=detect_stack_use_after_return=1
	export UBSAN_OPTIONS=print_stacktrace=1
	export TSAN_OPTIONS=second_deadlock_stack=1

	tallied=
	for kind in release asan tsan fuzz; do
		picked=$(printf '%s\n' "$tests" | tests_of "$kind" |
			awk -v c="$chosen" 'c == "" || $1 == c || $2 == c')
		[ -n "$picked" ] || continue
		# A few tests are not in every build: not under a sanitizer, for one.
		if configure "$kind"; then
			picked=$(tests_read "$(build_dir "$kind")" | tests_of "$kind" |
				awk -v c="$chosen" 'c == "" || $1 == c || $2 == c')
			[ -n "$picked" ] || continue
		fi
		set --
		for suite in $(printf '%s\n' "$picked" | cut -d ' ' -f 1 | sort -u); do
			set -- "$@" --suite "$suite"
		done
		# A name that is no suite narrows the choice further.
		printf '%s\n' "$picked" | grep -q "^$chosen " || set -- "$@" ${chosen:+"$chosen"}
		started=$(date +%s)
		test_kind "$kind" "$@"
		took=$(($(date +%s) - started))
		# Each once: a test may be in two suites.
		programs=$(printf '%s\n' "$picked" | cut -d ' ' -f 3 | sort -u | wc -l)
		tallied="$tallied $kind:$(build_dir "$kind"):$took:$programs"
	done
	# The list is words on purpose.
	# shellcheck disable=SC2086
	"$(tool python3)" tests/tools/tally.py ${chosen:+--chosen} $tallied
}
