// SPDX-License-Identifier: BSD-3-Clause
// Two network namespaces connected by a veth pair, one per side. The namespaces have no names, so
// they end with the processes. Without the privilege to create one, a user namespace is created
// first, if the system allows it.
#include "soft.h"

#include <lib/error.h>

#include <fcntl.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define PREFIX_BITS 24
#define RUNNING_MS_MAX 5000

struct place {
	int32_t pid;
	bool own_user; // in a user namespace, which the other side has to join
};

static int write_text(const char *path, const char *text) {
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	int err = fd >= 0 && write(fd, text, strlen(text)) > 0 ? 0 : neg_errno();

	if (fd >= 0)
		close(fd);
	return err;
}

// Enter a new user namespace as root, with only the own user mapped.
static int enter_own_user(void) {
	uid_t user = getuid();
	gid_t group = getgid();
	char map[32];
	int err;

	if (unshare(CLONE_NEWUSER) != 0)
		return neg_errno();
	err = write_text("/proc/self/setgroups", "deny");
	snprintf(map, sizeof(map), "0 %u 1", user);
	if (err == 0)
		err = write_text("/proc/self/uid_map", map);
	snprintf(map, sizeof(map), "0 %u 1", group);
	return err != 0 ? err : write_text("/proc/self/gid_map", map);
}

static int join_user(int32_t pid) {
	char path[64];
	int fd, err;

	snprintf(path, sizeof(path), "/proc/%d/ns/user", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return neg_errno();
	err = setns(fd, CLONE_NEWUSER) == 0 ? 0 : neg_errno();
	close(fd);
	return err;
}

static int enter_net(struct soft_side *side, struct place *mine) {
	int err = unshare(CLONE_NEWNET) == 0 ? 0 : neg_errno();

	if (err == -EPERM) {
		err = enter_own_user();
		mine->own_user = true;
		if (err == 0 && unshare(CLONE_NEWNET) != 0)
			err = neg_errno();
	}
	// The kernel clears this setting when privileges change.
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	return soft_fail(
		&side->why, err,
		"no network namespace, which needs root or unprivileged user namespaces: %s",
		err == -ENOSPC ? "as many as /proc/sys/user allows" : strerrordesc_np(-err)
	);
}

static int run_ip(struct soft_side *side, const char *lines) {
	const char *words[] = {"ip", "-batch", "-", NULL};
	size_t size = strlen(lines);
	int in = memfd_create("ip", MFD_CLOEXEC);
	int status = -EIO;

	if (in >= 0 && write(in, lines, size) == (ssize_t)size && lseek(in, 0, SEEK_SET) == 0)
		status = soft_program_run(words, in, STDERR_FILENO);
	if (in >= 0)
		close(in);
	if (status == SOFT_NOT_FOUND)
		return soft_fail(&side->why, -ENOENT, "ip (iproute2) is not installed");
	return soft_fail(&side->why, status != 0 ? -EIO : 0, "ip could not make a veth pair");
}

static int veth_bring_up(struct soft_side *side) {
	const char *address = side->setup->address[side->number];
	char lines[256];

	snprintf(
		lines, sizeof(lines),
		"link set lo up\nlink set " SOFT_VETH " addrgenmode none\nlink set " SOFT_VETH
		" up\n"
	);
	if (side->setup->wire == SOFT_WIRE_UDP)
		snprintf(
			lines + strlen(lines), sizeof(lines) - strlen(lines),
			"addr add %s/%d dev " SOFT_VETH "\n", address, PREFIX_BITS
		);
	return run_ip(side, lines);
}

// Wait until the veth pair is running. The kernel reports link states late, by a timer.
static int veth_wait_running(struct soft_side *side) {
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq request = {.ifr_name = SOFT_VETH};
	int err = 0;

	for (int ms = 0; err == 0 && (request.ifr_flags & IFF_RUNNING) == 0; ms++) {
		if (ioctl(fd, SIOCGIFFLAGS, &request) != 0)
			err = neg_errno();
		else if (ms == RUNNING_MS_MAX)
			err = -ETIMEDOUT;
		else
			poll(NULL, 0, 1);
	}
	close(fd);
	return soft_fail(&side->why, err, "the veth pair does not run");
}

int soft_netns_enter(struct soft_side *side) {
	struct place mine = {.pid = getpid()}, theirs;
	char line[128];
	int err = 0;

	// Side 0 enters first, because side 1 may have to join its user namespace.
	if (side->number == 0)
		err = enter_net(side, &mine);
	if (err == 0)
		err = soft_exchange(side, &mine, &theirs, sizeof(mine));
	if (side->number == 1 && err == 0 && theirs.own_user)
		err = soft_fail(&side->why, join_user(theirs.pid), "no user namespace to join");
	if (side->number == 1 && err == 0)
		err = enter_net(side, &mine);
	if (err == 0)
		err = soft_exchange(side, &mine, &theirs, sizeof(mine));
	if (side->number == 0 && err == 0) {
		snprintf(
			line, sizeof(line),
			"link add " SOFT_VETH " type veth peer name " SOFT_VETH " netns %d\n",
			theirs.pid
		);
		err = run_ip(side, line);
	}
	if (err == 0)
		err = soft_exchange(side, &mine, &theirs, sizeof(mine));
	if (err == 0)
		err = veth_bring_up(side);
	if (err == 0)
		err = soft_exchange(side, &mine, &theirs, sizeof(mine));
	return err != 0 ? err : veth_wait_running(side);
}
