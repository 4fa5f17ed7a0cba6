# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh
# Sourced by ./dev: the packages that the machine must have, and their installation.

packages_file=tests/tools/packages.txt
apt_lock_wait_s=600

# Print the packages of the named groups, one per line, each once. Without a name: of all groups but
# torch (629 MB).
packages_of() {
	awk -v groups=" $* " '
		{ sub(/#.*/, "") }
		/^\[/ { group = substr($1, 2, length($1) - 2); next }
		NF && ((groups == "  " && group != "torch") || index(groups, " " group " ")) &&
			!seen[$1]++ { print $1 }
	' "$packages_file"
}

# Print the packages of the named groups that are not installed, in one line. Ask only dpkg's own
# records: no network, no apt.
packages_missing() {
	# dpkg-query expands the braces, not the shell.
	# shellcheck disable=SC2016
	installed=$(packages_of "$@" | xargs dpkg-query -W \
		-f='${db:Status-Abbrev} ${Package}\n' 2>/dev/null | sed -n 's/^ii *//p')
	missing=
	for package in $(packages_of "$@"); do
		printf '%s\n' "$installed" | grep -qxF "$package" || missing="$missing $package"
	done
	printf '%s' "${missing# }"
}

as_root() {
	if [ "$(id -u)" -eq 0 ]; then
		"$@"
	elif [ -t 0 ]; then
		sudo "$@"
	else
		sudo -n "$@" # nobody is there to type a password
	fi
}

# Run apt-get. Wait for another apt-get to finish, but not for ever. DPkg::Lock::Timeout covers
# installing, but not the lock on the package lists, hence the loop.
apt_get() {
	waited_s=0
	while ! said=$(as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq \
		-o DPkg::Lock::Timeout=60 "$@" 2>&1 </dev/null); do
		case $said in
		*"Could not get lock"* | *"Unable to lock"* | *"Unable to acquire the dpkg"*) ;;
		*)
			printf '%s\n' "$said" >&2
			return 1
			;;
		esac
		if [ "$waited_s" -ge "$apt_lock_wait_s" ]; then
			printf '%s\n' "$said" >&2
			return 1
		fi
		[ "$waited_s" -gt 0 ] || say "setup: waiting for another apt to finish"
		sleep 5
		waited_s=$((waited_s + 5))
	done
}

apt_install() {
	apt_get install -y --no-install-recommends "$@"
}

# Succeed if the package lists of this machine know a version of every named package.
apt_knows() {
	for package in "$@"; do
		apt-cache show --no-all-versions "$package" >/dev/null 2>&1 || return 1
	done
}

# Install the missing packages of the named groups (default: all). If none is missing, print
# nothing, use no network and do not call apt.
need() {
	if ! command -v dpkg-query >/dev/null 2>&1 || ! command -v apt-get >/dev/null 2>&1; then
		# Not Debian: the developer installs the packages once, by hand.
		[ -z "${TOCSIN_SETUP_DONE-}" ] || return 0
		say "setup: no dpkg and apt-get here. Install what these Debian packages hold, then"
		say "set TOCSIN_SETUP_DONE=1:"
		packages_of "$@" | sed 's/^/  /' >&2
		return 1
	fi
	wanted=$(packages_missing "$@")
	[ -n "$wanted" ] || return 0
	if [ "$(id -u)" -ne 0 ] && ! command -v sudo >/dev/null 2>&1; then
		say "setup: neither root nor sudo here. Ask for: $wanted"
		return 1
	fi
	say "setup: installing $wanted"
	# Word splitting is intended here.
	# shellcheck disable=SC2086
	if ! apt_knows $wanted || ! apt_install $wanted 2>/dev/null; then
		say "setup: refreshing the package lists"
		apt_get update
		apt_install $wanted
	fi
}
