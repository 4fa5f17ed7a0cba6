# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh
# Sourced by ./dev: tests. What runs in which build: suites.py; how: runner.py.

sanitizer_options() {
	# What was freed is held back up to this size. More makes agents warn of their own memory.
	export ASAN_OPTIONS=detect_stack_use_after_return=1:quarantine_size_mb=32
	export UBSAN_OPTIONS=print_stacktrace=1
	export TSAN_OPTIONS=second_deadlock_stack=1
}

# What guests boot from, made before the tests that need it: these may have a network namespace of
# their own, where nothing can be downloaded.
guests_can_boot() {
	need vm "$@" && tests/vm/kit.sh >/dev/null
}

verb_test() {
	[ $# -le 1 ] || die "test takes one SUITE or NAME, or --failed"
	chosen=${1-}
	[ $# -eq 0 ] || [ -n "$chosen" ] || die "test: '' is neither a suite nor a test"
	need build test slurm fuzz
	case $chosen in
	vm | guest | ports) guests_can_boot || say "test: the suite vm will be skipped" ;;
	"" | --failed | soft-rxe | soft_rxe)
		guests_can_boot soft-rxe || say "test: vm and soft-rxe will be skipped"
		;;
	esac
	case $chosen in
	"" | --failed | browser | page_browser)
		need browser || say "test: the suite browser will be skipped"
		;;
	esac
	case $chosen in
	torch | torch_gloo) need torch || say "test: the suite torch will be skipped" ;;
	"" | --failed | mpi | mpi_programs) need mpi || say "test: the suite mpi will be skipped" ;;
	esac
	configure release
	kinds=$("$(tool python3)" tests/tools/verb_test.py kinds ${chosen:+"$chosen"})
	for kind in $kinds; do
		configure "$kind" || : # which is counted as a failure
	done
	sanitizer_options
	exec "$(tool python3)" tests/tools/verb_test.py run ${chosen:+"$chosen"} </dev/null
}

# Of VERB and its words NAME [KIND]: sets name and kind.
test_and_kind() {
	verb=$1
	shift
	case $# in
	1 | 2) ;;
	*) die "$verb takes a NAME and one of: release asan tsan" ;;
	esac
	name=$1
	kind=${2-release}
	case $kind in
	release | asan | tsan) ;;
	*) die "$verb: '$kind' is not one of: release asan tsan" ;;
	esac
}

verb_try() {
	test_and_kind try "$@"
	need build test
	case $name in
	vm | guest | ports | soft_rxe)
		guests_can_boot soft-rxe || say "try: $name will be skipped"
		;;
	torch_gloo) need torch || say "try: $name will be skipped" ;;
	mpi_programs) need mpi || say "try: $name will be skipped" ;;
	page_browser) need browser || say "try: $name will be skipped" ;;
	esac
	configure "$kind"
	sanitizer_options
	exec "$(tool python3)" tests/tools/one.py try "$kind" "$name" </dev/null
}

verb_debug() {
	words=$#
	for word in "$@"; do
		[ "$word" = -- ] && break
		words=$((words - 1))
	done
	# What stands before --, then what stands behind it.
	ours=$(($# - words))
	case $ours in
	1) test_and_kind debug "$1" ;;
	2) test_and_kind debug "$1" "$2" ;;
	*) test_and_kind debug ;;
	esac
	shift "$ours"
	[ $# -eq 0 ] || shift
	need build test debug
	configure "$kind"
	sanitizer_options
	exec "$(tool python3)" tests/tools/one.py debug "$kind" "$name" "$@"
}
