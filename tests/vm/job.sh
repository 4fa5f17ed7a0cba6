# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=dash
# shellcheck disable=SC2154 # directory, devices, shares and systemd are set by the host above
# The guest's first process when the host's files are in place. "$@" begins with the directories
# to share for writing, then comes COMMAND; its status goes to the host, which ends the guest.
# With systemd this script runs twice: as the first process, which becomes systemd, and as its unit.
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
export HOME=/root TERM=dumb LANG=C.UTF-8 PYTHONDONTWRITEBYTECODE=1
set -e # a first process that ends is a panic, and the host tells of that with the console
ulimit -l unlimited
ulimit -n 20000

# Two ends of one wire in one kernel, which would take the short cut through lo if each address
# were not held to its device; to be said before there are addresses.
wire() {
	for name in all default; do
		for setting in accept_local=1 rp_filter=0 arp_ignore=1 arp_announce=2; do
			echo "${setting#*=}" >"/proc/sys/net/ipv4/conf/$name/${setting%=*}"
		done
	done
	ip -batch - <<-END
		link add ve0 type veth peer name ve1
		link set ve0 up
		link set ve1 up
		addr add 10.0.0.1/24 dev ve0
		addr add 10.0.0.2/24 dev ve1
	END
	rdma -b - <<-END
		link add rxe0 type rxe netdev ve0
		link add rxe1 type rxe netdev ve1
	END
}

# Become a systemd that starts a journal and the unit of COMMAND, and nothing of the host's.
become_systemd() {
	for place in /etc/systemd/system /lib/systemd/system; do
		rm -rf "$place"/*.wants "$place"/*.requires
	done
	echo >/etc/fstab
	mkdir -p /run/systemd/system/sysinit.target.wants
	ln -s /lib/systemd/system/systemd-journald.service /run/systemd/system/sysinit.target.wants
	cat >/run/systemd/system/vm.service <<-UNIT
		[Unit]
		Requires=basic.target
		After=basic.target
		[Service]
		ExecStart=/bin/sh /run/job
		StandardOutput=journal
		LimitMEMLOCK=infinity
	UNIT
	exec /lib/systemd/systemd --system --unit=vm.service --show-status=no --log-target=journal
}

[ "$devices" != wire ] || [ $$ != 1 ] || wire
index=0
while [ "$index" -lt "$shares" ]; do
	[ $$ != 1 ] || mount -t 9p -o trans=virtio,version=9p2000.L,msize=512000,cache=mmap \
		"write$index" "$1"
	index=$((index + 1))
	shift
done
[ "$systemd" = no ] || [ $$ != 1 ] || become_systemd
set +e
(
	cd "$directory" || exit 125
	exec "$@" </dev/null >/dev/vport0p2 2>/dev/vport0p3
)
status=$?
[ "$shares" = 0 ] || sync
echo "$status" >/dev/vport0p1
while :; do
	sleep 60
done
