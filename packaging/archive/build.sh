#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Builds the directory of a relocatable archive. Runs in the root that prepare.sh makes.
#
#     build.sh SOURCE MACHINE DIRECTORY
#
# MACHINE is x86_64, or aarch64 by the cross compiler.
set -eu
source=$1
machine=$2
directory=$3
libraries=/usr/lib/$machine-linux-gnu

cross=
[ "$machine" = "$(uname -m)" ] || cross="--cross-file $source/packaging/archive/$machine.ini"
# shellcheck disable=SC2086 # a list of words
meson setup $cross "/build-$machine" "$source" --buildtype=release --libdir=lib \
	-Dperf=false -Djobs=false -Ddpdk=off
ninja -C "/build-$machine" agent/tocsin dataplane/soft/preload/libtocsin-verbs.so

own=$directory/lib/tocsin/own
mkdir -p "$directory/bin" "$own" "$directory/licenses"
cp "/build-$machine/agent/tocsin" "$directory/bin"
cp "/build-$machine/dataplane/soft/preload/libtocsin-verbs.so" "$directory/lib/tocsin"
cp "$source/LICENSE" "$directory/licenses/tocsin"
cp "$source/packaging/archive/README" "$directory"
# A system may lack these shared libraries. Where it has one, the programs load the system's.
for library in libhwloc.so.15 libibverbs.so.1 libmnl.so.0 libnl-3.so.200 libnl-route-3.so.200 \
	libudev.so.1; do
	cp "$libraries/$library" "$own"
done
for package in libhwloc15 libibverbs1 libjansson4 libmnl0 libnl-3-200 libnl-route-3-200 \
	libsodium23 libudev1 libxxhash0; do
	cp "/usr/share/doc/$package/copyright" "$directory/licenses/$package"
done

"$machine-linux-gnu-strip" "$directory/bin/tocsin" "$directory/lib/tocsin/libtocsin-verbs.so"
# shellcheck disable=SC2016 # the dynamic linker expands $ORIGIN
{
	system=$libraries:/usr/lib64
	patchelf --set-rpath "$system:"'$ORIGIN/../lib/tocsin/own' "$directory/bin/tocsin"
	patchelf --set-rpath "$system:"'$ORIGIN/own' "$directory/lib/tocsin/libtocsin-verbs.so"
	patchelf --set-rpath '$ORIGIN' "$own"/*
}
