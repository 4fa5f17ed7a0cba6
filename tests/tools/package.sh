# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh
# Sourced by ./dev: packages for a distribution.

packages_cache=${XDG_CACHE_HOME:-${HOME-}/.cache}/tocsin/packages
debian_mirror=http://deb.debian.org/debian

# Copy the files that git knows or does not ignore. Their time is that of the copy, so that
# SOURCE_DATE_EPOCH replaces the time in every package.
export_tree() {
	mkdir -p "$1"
	git ls-files -z --cached --others --exclude-standard |
		tar --create --null --files-from=- --ignore-failed-read --file=- |
		tar --extract --touch --file=- --directory="$1"
}

# Print the version of this tree.
tree_version() {
	sed -n "s/^\tversion: '\(.*\)',$/\1/p" meson.build
}

# Run a command with its output in the file build.txt of a directory, and show the end of the output
# if the command fails.
run_logged() {
	log=$1/build.txt
	shift
	"$@" >"$log" 2>&1 </dev/null && return
	tail -n 30 "$log" >&2
	say "package: the build failed; the file $log has its output"
	return 1
}

# As run_logged, for a packager that calls meson by its name: PATH may begin with other Pythons
# (build.sh). No object contains the name of the build directory, so the compiler cache may ignore
# this name.
run_builder() {
	log_directory=$1
	shift
	run_logged "$log_directory" env CC="$(build_compiler release)" CCACHE_NOHASHDIR=1 \
		PATH="/usr/bin:$PATH" "$@"
}

# Build the Debian packages of this tree in a directory that this function empties first. Print
# nothing unless the build fails.
package_deb() (
	rm -rf "$1"
	mkdir -p "$1"
	directory=$(cd "$1" && pwd)
	touch "$directory/started"
	export_tree "$directory/source"
	cd "$directory/source" || return
	export DEB_BUILD_OPTIONS="${DEB_BUILD_OPTIONS-parallel=$(nproc)}"
	run_builder "$directory" dpkg-buildpackage --build=binary --no-sign || return
	rm -rf "$directory/source"
	# The stamp has the time at which the build starts, so a file that changes later is newer.
	mv "$directory/started" "$directory/finished"
)

# Build the RPM packages of this tree in a directory that this function empties first.
package_rpm() (
	rm -rf "$1"
	mkdir -p "$1/SOURCES"
	directory=$(cd "$1" && pwd)
	touch "$directory/started"
	version=$(tree_version)
	export_tree "$directory/tocsin-$version"
	date=$(LC_ALL=C date -u -d "$(dpkg-parsechangelog -SDate)" '+%a %b %d %Y')
	sed "s/@VERSION@/$version/; s/@DATE@/$date/" packaging/rpm/tocsin.spec.in \
		>"$directory/tocsin.spec"
	tar -C "$directory" -czf "$directory/SOURCES/tocsin-$version.tar.gz" "tocsin-$version"
	# Debian has the libraries, but rpm does not know its packages. Debian's rpm makes no
	# packages of debug symbols, which the links of build identifiers are for.
	run_builder "$directory" rpmbuild -bb --nodeps --define "_topdir $directory" \
		--define '_build_id_links none' \
		--define '_rpmfilename %%{NAME}-%%{VERSION}-%%{RELEASE}.%%{ARCH}.rpm' \
		"$directory/tocsin.spec" || return
	mv "$directory"/RPMS/*.rpm "$directory"
	rm -rf "$directory/BUILD" "$directory/BUILDROOT" "$directory/RPMS" "$directory/SOURCES" \
		"$directory/SPECS" "$directory/SRPMS" "$directory/tocsin-$version"
	mv "$directory/started" "$directory/finished"
)

# Print the name of a tar file that holds a bare Debian of this release. All checkouts share the
# file. If it is missing, this function makes it, which needs root.
bare_debian() {
	bare=$packages_cache/$1.tar
	if [ ! -f "$bare" ]; then
		mkdir -p "$packages_cache"
		place=$(mktemp -d)
		run_logged "$place" debootstrap --variant=minbase "$1" "$place/root" \
			"$debian_mirror" || return
		rm -f "$place"/root/var/cache/apt/archives/*.deb
		tar -C "$place/root" -cf "$bare.new" .
		mv "$bare.new" "$bare"
		rm -rf "$place"
	fi
	printf '%s' "$bare"
}

# Run a script in a root directory. Its processes and mounts end with the script.
in_root() {
	# shellcheck disable=SC2016 # the inner shell expands the arguments
	unshare --mount --pid --fork --kill-child sh -euc '
		mount -t proc proc "$1/proc"
		mount -t sysfs sysfs "$1/sys"
		mount --bind /dev "$1/dev"
		exec chroot "$1" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 \
			HOME=/root DEBIAN_FRONTEND=noninteractive sh -euc "$2"' sh "$@"
}

# Unpack a tar file into a new root directory, whose programs can resolve names.
unpack_root() {
	mkdir -p "$2"
	tar -C "$2" -xf "$1"
	cp /etc/resolv.conf "$2/etc/resolv.conf"
}

# Print the name of a tar file with the root in which the archives are built. The name has the
# digest of the script that makes the root. One root is kept.
archive_root_make() {
	digest=$(sha256sum packaging/archive/prepare.sh | cut -c1-12)
	prepared=$packages_cache/archive-$digest.tar
	if [ ! -f "$prepared" ]; then
		bare=$(bare_debian bullseye)
		unpack_root "$bare" "$1"
		cp packaging/archive/prepare.sh "$1/prepare.sh"
		run_logged "$1" in_root "$1" "sh /prepare.sh $debian_mirror" || return
		rm -f "$packages_cache"/archive-*.tar
		tar -C "$1" -cf "$prepared.new" .
		mv "$prepared.new" "$prepared"
		rm -rf "$1"
	fi
	printf '%s' "$prepared"
}

# Build the relocatable archives of this tree, for x86-64 and aarch64, in a directory that this
# function empties first.
package_archive() (
	rm -rf "$1"
	mkdir -p "$1"
	directory=$(cd "$1" && pwd)
	touch "$directory/started"
	prepared=$(archive_root_make "$directory/root")
	unpack_root "$prepared" "$directory/root"
	export_tree "$directory/root/source"
	for machine in x86_64 aarch64; do
		name=tocsin-$(tree_version)-linux-$machine
		run_logged "$directory" in_root "$directory/root" \
			"sh /source/packaging/archive/build.sh /source $machine /$name" || return
		tar -C "$directory/root" --sort=name --owner=0 --group=0 --numeric-owner \
			--mtime="@$(git log -1 --format=%ct)" -cf - "$name" |
			gzip -n9 >"$directory/$name.tar.gz"
	done
	rm -rf "$directory/root"
	mv "$directory/started" "$directory/finished"
)

# Make a container image, an OCI layout, in a directory that this function empties first. The second
# directory has the Debian packages.
package_image() (
	rm -rf "$1"
	mkdir -p "$1"
	directory=$(cd "$1" && pwd)
	touch "$directory/started"
	bare=$(bare_debian bookworm)
	unpack_root "$bare" "$directory/root"
	mkdir "$directory/root/packages"
	cp "$2"/tocsin_*.deb "$2"/libtocsin-verbs_*.deb "$directory/root/packages"
	run_logged "$directory" in_root "$directory/root" \
		"$(cat packaging/image/install.sh)" || return
	rmdir "$directory/root/packages"
	rm "$directory/root/etc/resolv.conf"
	image=$directory/tocsin
	# shellcheck disable=SC2016 # the inner shell expands the arguments
	run_logged "$directory" sh -euc '
		umoci init --layout "$1"
		umoci new --image "$1:$2"
		umoci insert --image "$1:$2" "$3" /
		umoci config --image "$1:$2" --config.user tocsin \
			--config.entrypoint /usr/sbin/tocsind --config.cmd=--foreground \
			--config.env RUNTIME_DIRECTORY=/run/tocsin \
			--config.volume /var/lib/tocsin \
			--config.label "org.opencontainers.image.version=$2" \
			--config.label org.opencontainers.image.licenses=BSD-3-Clause
		umoci gc --layout "$1"
		' sh "$image" "$(tree_version)" "$directory/root" || return
	rm -rf "$directory/root"
	mv "$directory/started" "$directory/finished"
)

# Print the sizes of files, and their names from the root of the tree.
list_built() {
	stat --format='%9s  %n' "$@"
}

verb_package() {
	case $* in
	deb | rpm | archive | image) ;;
	*) die "package takes one word: deb, rpm, archive or image" ;;
	esac
	case $1 in
	archive | image)
		[ "$(id -u)" -eq 0 ] || die "package $1 needs root: it uses chroot"
		;;
	esac
	say "package: building; the output goes to build-$1/build.txt"
	case $1 in
	deb)
		need build package
		package_deb build-deb
		list_built build-deb/*.deb
		;;
	rpm)
		need build package-rpm
		package_rpm build-rpm
		list_built build-rpm/*.rpm
		;;
	archive)
		need package-archive
		package_archive build-archive
		list_built build-archive/*.tar.gz
		;;
	image)
		need build package package-image
		package_deb build-deb
		package_image build-image build-deb
		list_built build-image/tocsin/blobs/sha256/*
		;;
	esac
}
