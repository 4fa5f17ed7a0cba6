#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Makes what a guest boots from, unless it is there, and prints where: the directory of Debian's
# stock kernel, the newest that this machine's package lists know, and the file name of an initrd.
#
#   vmlinux      unpacked here, since the guest would take longer for that than we do
#   lib/modules  all of its modules
#   initrd.SUM   a static busybox, ./init, the first modules; SUM is of the files it came from
#
# They lie in the user's cache, for all trees: the kernel's package is a download of 70 MB. Other
# guests may be running: what is there is not changed, and new things get their names when whole.
set -eu
CDPATH='' cd -- "$(dirname -- "$0")/../.."

say() {
	printf '%s\n' "$*" >&2
}

. tests/tools/setup.sh

PATH=$PATH:/usr/sbin:/sbin # modprobe and depmod, for those who are not root
tree=$PWD
cache=${XDG_CACHE_HOME:-${HOME:-/var/tmp}/.cache}/tocsin/vm
boot_modules="virtio_pci virtio_console 9pnet_virtio 9p overlay"
more_modules="crc32_generic rdma_rxe rdma_ucm veth virtio_net"
initrd=initrd.$(cat tests/vm/kit.sh tests/vm/init | cksum | cut -d ' ' -f 1)

# PACKAGE=VERSION; nothing if the lists know none.
newest_kernel() {
	apt-cache show --no-all-versions linux-image-amd64 2>/dev/null |
		sed -n 's/^Depends: \([^ ,]*\) (= \([^ ,)]*\)).*/\1=\2/p'
}

refresh_lists() {
	say "vm: refreshing the package lists"
	apt_get update
	kernel=$(newest_kernel)
	[ -n "$kernel" ] || { say "vm: the package lists have no linux-image-amd64" && return 1; }
}

# The lists may name a version that the mirror has replaced.
download() {
	say "vm: downloading $kernel (70 MB)"
	apt-get -qq download "$kernel" >/dev/null 2>&1 && return 0
	refresh_lists
	apt-get -qq download "$kernel" >download.txt 2>&1 && return 0
	tail -n 1 download.txt >&2
	return 1
}

# vmlinuz is a small unpacker and, behind it, the kernel as one stream of xz.
unpack_kernel() {
	offset=$(LC_ALL=C grep -abo -m 1 -P '\xfd7zXZ\x00' "$1" | head -n 1 | cut -d : -f 1)
	tail -c "+$((offset + 1))" "$1" | xz -dc --single-stream
}

# All in a new directory of which "kernel" is written last but for the name.
make_kernel() {
	rm -rf "$cache/new"
	mkdir "$cache/new"
	cd "$cache/new"
	download
	say "vm: unpacking it"
	dpkg-deb --fsys-tarfile linux-image-*.deb | tar -x ./boot ./lib/modules
	release=$(ls lib/modules)
	depmod -b . "$release"
	unpack_kernel "boot/vmlinuz-$release" >vmlinux
	rm -r boot linux-image-*.deb
	printf '%s\n' "$kernel" >package
	rm -rf "$cache/kernel"
	mv "$cache/new" "$cache/kernel"
}

make_initrd() {
	cd "$cache/kernel"
	release=$(ls lib/modules)
	rm -rf root
	mkdir -p root/bin root/proc root/sys root/dev root/run
	cp /bin/busybox root/bin/busybox
	for name in sh modprobe mount mkdir head ip switch_root; do
		ln -s busybox "root/bin/$name"
	done
	cp "$tree/tests/vm/init" root/init
	chmod +x root/init
	for module in $boot_modules $more_modules; do
		modprobe -d . -S "$release" --show-depends "$module"
	done | sed -n 's,^insmod .*/\(lib/modules/[^ ]*\) *$,\1,p' | sort -u |
		cpio -pdm --quiet root
	depmod -b root "$release" 2>/dev/null # it misses lists that nothing here reads
	(cd root && find . | cpio -o -H newc --quiet) >new
	rm -r root
	mv new "$initrd"
}

mkdir -p "$cache"
exec 9>"$cache/lock"
flock 9 # guests that start together make one kit
# Asking apt takes a second: only when its lists have changed since it was asked.
if [ -z "$(find "$cache/kernel/package" -newer /var/lib/apt/lists 2>/dev/null)" ]; then
	kernel=$(newest_kernel)
	[ -n "$kernel" ] || refresh_lists
	[ "$(cat "$cache/kernel/package" 2>/dev/null)" = "$kernel" ] || (make_kernel)
	touch "$cache/kernel/package"
fi
[ -f "$cache/kernel/$initrd" ] || (make_initrd)
printf '%s\n' "$cache/kernel/$initrd"
