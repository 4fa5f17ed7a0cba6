#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# pod.sh PLACE PROGRAMS VOLUMES COMMAND...: does what a container runtime does for one container. It
# makes a root file system that is read-only, with VOLUMES (a file of lines: SOURCE PATH ro|rw), and
# starts the command once a line was read. It runs in mount and network namespaces made for it.
set -eu
place=$1 programs=$2 volumes=$3
shift 3
mount --make-rprivate /
mount -t tmpfs tmpfs "$place"
mkdir "$place/upper" "$place/work" "$place/root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$place/upper,workdir=$place/work" "$place/root"
root=$place/root
mount -t proc proc "$root/proc"
mount -t sysfs sysfs "$root/sys"
mount --rbind /dev "$root/dev"
mkdir -p "$root$programs"
mount --bind "$programs" "$root$programs"
while read -r source path mode; do
	mkdir -p "$root$path"
	mount --bind "$source" "$root$path"
	mount -o "remount,bind,$mode" "$root$path"
done <"$volumes"
mount -o remount,bind,ro "$root"
ip link set lo up
read -r _
exec chroot "$root" "$@"
