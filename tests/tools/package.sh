# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh
# Sourced by ./dev: packages for a distribution.

# Copy the files that git knows or does not ignore. Their time is that of the copy, so that
# SOURCE_DATE_EPOCH replaces the time in every package.
export_tree() {
	mkdir -p "$1"
	git ls-files -z --cached --others --exclude-standard |
		tar --create --null --files-from=- --ignore-failed-read --file=- |
		tar --extract --touch --file=- --directory="$1"
}

# Build the Debian packages of this tree in a directory that this function empties first. Print
# nothing unless the build fails.
package_deb() (
	rm -rf "$1"
	mkdir -p "$1"
	directory=$(cd "$1" && pwd)
	touch "$directory/started"
	export_tree "$directory/source"
	CC=$(build_compiler release)
	DEB_BUILD_OPTIONS=${DEB_BUILD_OPTIONS-parallel=$(nproc)}
	# No object contains the name of the build directory, so the compiler cache may ignore it.
	CCACHE_NOHASHDIR=1
	# debhelper calls meson by its name, and PATH may begin with other Pythons (build.sh).
	PATH=/usr/bin:$PATH
	export CC DEB_BUILD_OPTIONS CCACHE_NOHASHDIR PATH
	cd "$directory/source" || return
	dpkg-buildpackage --build=binary --no-sign >"$directory/build.txt" 2>&1 </dev/null || {
		tail -n 30 "$directory/build.txt" >&2
		say "package: the build failed; the file $directory/build.txt has its output"
		return 1
	}
	rm -rf "$directory/source"
	# The stamp has the time at which the build starts, so a file that changes later is newer.
	mv "$directory/started" "$directory/finished"
)

verb_package() {
	[ "$*" = deb ] || die "package takes one word: deb"
	need build package
	say "package: building; the output goes to build-deb/build.txt"
	package_deb build-deb
	(cd build-deb && ls -l -- *.deb) | awk '{ printf "%9d  build-deb/%s\n", $5, $NF }'
}
