# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh
# Sourced by ./dev: the kinds of build, one directory each.

# Print the path of Debian's own meson or ninja, which use the system's python. PATH may begin with
# other Pythons that lack meson's modules.
tool() {
	if [ -x "/usr/bin/$1" ]; then
		printf '/usr/bin/%s' "$1"
	else
		command -v "$1"
	fi
}

build_dir() {
	case $1 in
	release) echo build ;;
	*) echo "build-$1" ;;
	esac
}

# A plain build (README) has neither tests nor -Werror. Builds of ./dev have both.
build_options() {
	echo "-Dwerror=true -Dtests=true"
	case $1 in
	release | clang) ;;
	# Sanitizers find as many faults at -O1. -g1 keeps functions and lines, which reports need.
	asan) echo "-Doptimization=1 -Dc_args=-g1 -Db_sanitize=address,undefined" ;;
	tsan) echo "-Doptimization=1 -Dc_args=-g1 -Db_sanitize=thread" ;;
	fuzz) echo "-Doptimization=1 -Dc_args=-g1 -Dfuzz=true -Db_sanitize=address,undefined" ;;
	esac
}

build_compiler() {
	case $1 in
	fuzz | clang) compiler=clang-14 ;;
	*) compiler=gcc ;;
	esac
	if command -v ccache >/dev/null 2>&1; then
		compiler="ccache $compiler"
	fi
	echo "$compiler"
}

build_needs() {
	case $1 in
	fuzz | clang) need build fuzz ;;
	*) need build ;;
	esac
}

# CCACHE_DEPEND: ccache does not preprocess, but reads the list of headers from the compiler's -MD
# file. A cache miss adds 13 % to a compilation, not 43 %.
export CCACHE_DEPEND=1

# Run a command of meson or ninja on a build directory. Show its output only if it fails.
run_quietly() {
	log=$1/configure.txt
	shift
	"$@" >"$log" 2>&1 </dev/null && return
	tail -n 20 "$log" >&2
	return 1
}

# Configure the build directory of a kind, without building. ./dev test reads its list of tests,
# ./dev lint its compile database. If its file dev-options differs from the options of ./dev,
# configure it again. They differ in an older tree, or in a directory that a user made.
configure() {
	kind=$1
	dir=$(build_dir "$kind")
	options=$(build_options "$kind" | xargs)
	build_needs "$kind"
	[ -f "$dir/build.ninja" ] || say "configure: $dir"
	mkdir -p "$dir"
	if [ ! -w "$dir" ]; then
		say "build: $(id -un) may not write in $PWD/$dir: a clone of your own is needed"
		return 1
	fi
	# shellcheck disable=SC2086 # a list of words
	if [ ! -f "$dir/build.ninja" ]; then
		run_quietly "$dir" env CC="$(build_compiler "$kind")" "$(tool meson)" setup "$dir" \
			$options || return
	elif [ "$options" != "$(cat "$dir/dev-options" 2>/dev/null)" ]; then
		run_quietly "$dir" "$(tool meson)" configure "$dir" $options || return
	fi
	printf '%s\n' "$options" >"$dir/dev-options"
	run_quietly "$dir" "$(tool ninja)" -C "$dir" build.ninja
}

# Build all targets of a kind, or only the named ones. Print nothing if all are up to date, so that
# only the output of the requested job shows.
build() {
	kind=$1
	shift
	configure "$kind"
	case $("$(tool ninja)" -C "$(build_dir "$kind")" -n "$@" 2>&1 </dev/null) in
	*"ninja: no work to do.") return 0 ;;
	esac
	"$(tool ninja)" -C "$(build_dir "$kind")" "$@" </dev/null
}
