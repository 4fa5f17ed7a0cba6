# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh
# Sourced by ./dev: a release of this tree. CONTRIBUTING.md describes the steps.

# A release changes and commits these alone.
release_files='meson.build CHANGELOG.md debian/changelog'

release_help() {
	cat <<'EOT'
./dev release VERSION [--sign KEYID] [--dry-run]

  A release of this tree, such as ./dev release 0.9.0. The tree must be clean, and CHANGELOG.md must
  say something below [Unreleased]. Sets the version in meson.build and debian/changelog, dates the
  section of CHANGELOG.md, commits, and makes the tag vVERSION. build-release/ then has the source
  archive, the Debian packages and their SHA256SUMS. Nothing is pushed. A failure or an interrupt
  leaves neither commit, tag nor package.

  --sign KEYID  sign the tag and SHA256SUMS by gpg
  --dry-run     check everything, print what would be done, and change nothing
EOT
}

project_version() {
	sed -n "s/^\tversion: '\([^']*\)',$/\1/p" meson.build
}

# Print what CHANGELOG.md says of the changes since the last release.
unreleased_changes() {
	awk '/^## /{ inside = ($0 == "## [Unreleased]"); next } inside && NF' CHANGELOG.md
}

release_check() {
	case $1 in
	*[!0-9.]* | .* | *. | *..* | *.*.*.*) die "release: '$1' is not a version such as 0.9.0" ;;
	*.*.*) ;;
	*) die "release: '$1' is not a version such as 0.9.0" ;;
	esac
	now=$(project_version)
	[ -n "$now" ] || die "release: meson.build names no version"
	newest=$(printf '%s\n%s\n' "$now" "$1" | sort -V | tail -n 1)
	[ "$newest" != "$now" ] ||
		die "release: $1 is not newer than $now, the version of meson.build"
	[ -z "$(git status --porcelain)" ] ||
		die "release: the tree has changes that are not committed: see git status"
	git symbolic-ref -q HEAD >/dev/null ||
		die "release: HEAD is on no branch, so the commit would be lost: see git switch"
	if git rev-parse -q --verify "refs/tags/v$1" >/dev/null; then
		die "release: the tag v$1 exists"
	fi
	[ -n "$(unreleased_changes)" ] ||
		die "release: CHANGELOG.md has nothing below [Unreleased]"
	if [ -n "$2" ]; then
		gpg --batch --list-secret-keys "$2" >/dev/null 2>&1 ||
			die "release: gpg has no secret key $2"
	fi
}

# Write the version and today's date into the files that have them.
release_write_version() {
	sed -i "s/^\tversion: '[^']*',$/\tversion: '$1',/" meson.build
	sed -i "s/^## \[Unreleased\]$/&\n\n## [$1] - $(date -u +%F)/" CHANGELOG.md
	{
		printf 'tocsin (%s) unstable; urgency=medium\n\n' "$1"
		printf '  * CHANGELOG.md has the changes of the program.\n\n'
		author=$(sed -n 's/^\( -- .*>\)  .*/\1/p' debian/changelog | head -n 1)
		printf '%s  %s\n\n' "$author" "$(LC_ALL=C date -u '+%a, %d %b %Y %H:%M:%S +0000')"
		cat debian/changelog
	} >debian/changelog.new
	mv debian/changelog.new debian/changelog
}

# Build the packages, commit, tag, and build the archive from the tag, so that the files have the
# time of the commit.
release_make() {
	rm -rf build-release
	package_deb build-release/packages
	mv build-release/packages/*.deb build-release/
	rm -rf build-release/packages
	# shellcheck disable=SC2086 # a list of words
	git commit -q -m "release: set the version to $1" \
		-m "CHANGELOG.md has the changes since the last release." -- $release_files
	if [ -n "$2" ]; then
		git tag -u "$2" -m "Tocsin $1" "v$1"
	else
		git tag -a -m "Tocsin $1" "v$1"
	fi
	archive=build-release/tocsin-$1.tar
	git archive --format=tar --prefix="tocsin-$1/" "v$1" >"$archive"
	gzip -9 --no-name "$archive"
	(cd build-release && sha256sum -- *.deb *.tar.gz >SHA256SUMS)
	[ -z "$2" ] || gpg --batch --yes --local-user "$2" --armor --detach-sign \
		build-release/SHA256SUMS
}

# Undo a release that failed or was interrupted: tag, commit, and what was written. Files that
# somebody changed meanwhile are left alone, and so is the output of a package build.
release_undo() {
	trap - EXIT
	git tag -d "v$1" >/dev/null 2>&1 || : # it may not have come so far
	git reset -q "$2" || :
	# shellcheck disable=SC2086 # a list of words
	git checkout -q -- $release_files || :
	rm -f debian/changelog.new
	find build-release ! -name build.txt -delete 2>/dev/null || : # a directory with that output
	die "release: failed; commit, tag and files are as before," \
		"and build-release/ has no package"
}

verb_release() {
	version='' key='' dry=
	while [ $# -gt 0 ]; do
		case $1 in
		-h | --help) release_help && return ;;
		--dry-run) dry=yes ;;
		--sign)
			[ $# -ge 2 ] || die "release: --sign needs the id of a key of gpg"
			key=$2
			shift
			;;
		-*) die "release: '$1' is not an option: see ./dev release --help" ;;
		*)
			[ -z "$version" ] || die "release takes one VERSION"
			version=$1
			;;
		esac
		shift
	done
	[ -n "$version" ] || die "release takes a VERSION, such as 0.9.0"
	release_check "$version" "$key"
	say "release: $(project_version) becomes $version, with $(unreleased_changes |
		grep -c '^- ') changes"
	if [ -n "$dry" ]; then
		say "release: would change meson.build, CHANGELOG.md and debian/changelog, build" \
			"build-release/, commit and tag v$version${key:+, signed by $key}"
		return
	fi
	need build package
	before=$(git rev-parse HEAD)
	trap 'release_undo "$version" "$before"' EXIT
	trap 'exit 1' HUP INT TERM
	release_write_version "$version"
	release_make "$version" "$key"
	trap - EXIT HUP INT TERM
	cat build-release/SHA256SUMS
	say "release: git push origin HEAD v$version publishes the commit and the tag"
}
