# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh
# Sourced by ./dev: tests. suites.py decides which tests run in which build; runner.py runs them.

sanitizer_options() {
	# ASan keeps freed memory in quarantine up to this size. With more, agents warn of their own
	# memory.
	export ASAN_OPTIONS=detect_stack_use_after_return=1:quarantine_size_mb=32
	export UBSAN_OPTIONS=print_stacktrace=1
	export TSAN_OPTIONS=second_deadlock_stack=1
}

# Print the package groups that a test, a suite, a unit test group or a level needs, besides
# [build]. The empty word means level one.
test_packages() {
	case ${1##*/} in # SUITE/NAME stands for NAME
	"") echo "test mpi" ;;
	--all)
		echo "test test-all slurm fuzz vm soft-rxe spec browser kubernetes"
		echo "mpi mpich torch"
		;;
	--failed) echo "test" ;;
	vm | guest | ports) echo "test vm" ;;
	soft-rxe | soft_rxe) echo "test vm soft-rxe" ;;
	spec | spec_membership) echo "test spec" ;;
	browser | page_browser) echo "test browser" ;;
	kubernetes) echo "test kubernetes" ;;
	torch | torch_gloo) echo "test torch" ;;
	mpi_openmpi) echo "test mpi" ;;
	mpi | mpi_mpich) echo "test mpi mpich" ;;
	slurm | slurm_mesh) echo "test slurm" ;;
	fuzz) echo "test fuzz" ;;
	packages_systemd) echo "package vm" ;;
	packages) echo "package package-rpm package-archive package-image packages vm" ;;
	packages_*) echo "package package-rpm package-archive package-image packages" ;;
	prometheus* | stats_scipy | perf) echo "test test-all" ;;
	unit-*) echo "run" ;;
	*)
		if find tests/unit -name "${1##*/}_test.c" | grep -q .; then
			echo "run"
		else
			echo "test"
		fi
		;;
	esac
}

# Install the packages of a test. A test whose packages cannot be installed is skipped. The guest
# kit is built here, because tests in a network namespace cannot download.
install_test_packages() {
	# shellcheck disable=SC2046 # a list of words
	need build $(test_packages "$1") ||
		say "test: some packages could not be installed; continuing without them"
	for group in build $(test_packages "$1"); do
		case $group in
		build | run | test | package) need "$group" || return ;;
		vm) { need vm && tests/vm/kit.sh >/dev/null; } ||
			say "test: no guest kit: tests that need a guest are skipped" ;;
		*) need "$group" ||
			say "test: cannot install [$group]; its tests are skipped" ;;
		esac
	done
}

verb_test() {
	[ $# -le 1 ] || die "test takes one SUITE or NAME, or --all, or --failed"
	chosen=${1-}
	[ $# -eq 0 ] || [ -n "$chosen" ] || die "test: '' is neither a suite nor a test"
	install_test_packages "$chosen"
	configure release
	kinds=$("$(tool python3)" tests/tools/verb_test.py kinds ${chosen:+"$chosen"})
	for kind in $kinds; do
		configure "$kind" || : # the run counts it as a failure
	done
	sanitizer_options
	exec "$(tool python3)" tests/tools/verb_test.py run ${chosen:+"$chosen"} </dev/null
}

# Parse the words NAME [KIND] of a verb; sets name and kind.
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
	install_test_packages "$name"
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
	# Split the words: those before --, then those after it.
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
