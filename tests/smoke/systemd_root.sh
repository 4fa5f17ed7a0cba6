#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Process 1 of namespaces of its own (tests/smoke/systemd_netns.py makes them): turns into a
# systemd that starts nothing of this machine. What it writes goes to memory.
#
#	systemd_root.sh SCRATCH BUILD-ROOT
set -eu
root=$1/root
units=$root/etc/systemd/system

mount --make-rprivate /
mount -t tmpfs tmpfs "$1"
mkdir "$1/upper" "$1/work" "$root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$1/upper,workdir=$1/work" "$root"
mount -t proc proc "$root/proc"
mount --bind "$root/proc/sys" "$root/proc/sys"
mount -o remount,ro,bind "$root/proc/sys"
mount -t sysfs sysfs "$root/sys" -o ro
mount -t tmpfs tmpfs "$root/sys/fs/cgroup" # where there is a directory for it
mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
mount -t tmpfs tmpfs "$root/run" -o mode=755
mount -t tmpfs tmpfs "$root/tmp" -o mode=1777
mount -t tmpfs tmpfs "$root/dev" -o mode=755
# PrivateDevices= of the root helper takes over pts, ptmx and shm.
mkdir "$root/dev/shm" "$root/dev/pts"
mount -t devpts devpts "$root/dev/pts" -o newinstance
ln -s pts/ptmx "$root/dev/ptmx"
for device in null zero full random urandom tty; do
	touch "$root/dev/$device"
	mount --bind "/dev/$device" "$root/dev/$device"
done
# Nothing is wanted by any target, neither of the distribution's nor of this machine's.
for wants in "$root"/lib/systemd/system/*.wants "$units"/*.wants; do
	[ ! -d "$wants" ] || mount -t tmpfs tmpfs "$wants"
done
mkdir -p "$root/usr/local/sbin" "$root/usr/local/bin" "$units/tocsind.service.d" \
	"$units/tocsin-root.service.d" "$root/usr/local/libexec"
cp "$2/agent/tocsind" "$root/usr/local/sbin"
cp "$2/agent/tocsin" "$root/usr/local/bin"
cp "$2/agent/tocsin-root" "$root/usr/local/libexec"
sed "s|^ExecStart=.*|ExecStart=/usr/local/sbin/tocsind|" "$2/agent/tocsind.service" \
	>"$units/tocsind.service"
sed "s|^ExecStart=[^ ]*|ExecStart=/usr/local/libexec/tocsin-root|" "$2/agent/tocsin-root.service" \
	>"$units/tocsin-root.service"
cp "$(dirname "$0")/../../agent/deploy/tocsin-root.socket" "$units"
systemd-sysusers --root="$root" "$(dirname "$0")/../../agent/deploy/tocsin.sysusers"
# There is no journal; and a watchdog of 30 s is a long time to wait for.
cat >"$units/tocsind.service.d/test.conf" <<-UNIT
	[Service]
	StandardError=append:/run/tocsind.log
	WatchdogSec=3
	RestartSec=1
UNIT
printf '[Service]\nStandardError=append:/run/tocsin-root.log\n' \
	>"$units/tocsin-root.service.d/test.conf"
rm -rf "$root/etc/tocsin" "$root/var/lib/tocsin"
# Files of an earlier agent that ran as root: the upgrade must change their owner.
mkdir -m 755 "$root/etc/tocsin"
mkdir -m 750 "$root/var/lib/tocsin"
echo 41 >"$root/var/lib/tocsin/start"
"$2/agent/tocsin" keygen --output "$root/etc/tocsin/tocsin.key"
cat >"$root/etc/tocsin/tocsin.conf" <<-CONFIG
	[overlay]
	key = /etc/tocsin/tocsin.key
	listen = 127.0.0.1
CONFIG
ip link set lo up
exec env -i container=test PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
	chroot "$root" /lib/systemd/systemd --system --unit=basic.target --log-target=console \
	--show-status=no
