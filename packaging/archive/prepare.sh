#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Makes the root in which build.sh builds the relocatable archives. Runs in a bare Debian 11,
# because its glibc 2.31 is the oldest one that the archives support.
set -eu
mirror=$1

# Debian 12 has a meson that is new enough, and the headers that this tree needs. Neither depends on
# the C library.
printf 'deb %s %s main\n' "$mirror" bullseye "$mirror" bookworm >/etc/apt/sources.list
printf 'Package: *\nPin: release n=bookworm\nPin-Priority: 100\n' >/etc/apt/preferences.d/bookworm
dpkg --add-architecture arm64
apt-get -qq update
libraries=
for library in libc6 libhwloc libibverbs libinih libjansson libmicrohttpd libmnl libnuma libsodium \
	liburcu libxxhash zlib1g; do
	libraries="$libraries $library-dev:amd64 $library-dev:arm64"
done
# shellcheck disable=SC2086 # a list of words
apt-get -qq install -y --no-install-recommends gcc gcc-aarch64-linux-gnu ninja-build patchelf \
	pkg-config meson/bookworm linux-libc-dev:amd64/bookworm linux-libc-dev:arm64/bookworm \
	systemtap-sdt-dev $libraries
cd /tmp
apt-get -qq download libibverbs-dev/bookworm libcurl4-gnutls-dev/bookworm
for package in *.deb; do
	dpkg-deb --fsys-tarfile "$package" | tar -C / -x ./usr/include
	rm "$package"
done
# The client loads libcurl when it is needed, and the build reads only its headers.
mv /usr/include/x86_64-linux-gnu/curl /usr/include/curl
printf 'Name: libcurl\nDescription: headers\nVersion: 7.88\n' >/usr/share/pkgconfig/libcurl.pc

# Without these links the linker takes the static libraries.
for machine in x86_64-linux-gnu aarch64-linux-gnu; do
	rm "/usr/lib/$machine/libjansson.so" "/usr/lib/$machine/libsodium.so" \
		"/usr/lib/$machine/libxxhash.so"
done
apt-get clean
