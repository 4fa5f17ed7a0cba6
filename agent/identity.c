// SPDX-License-Identifier: BSD-3-Clause
// Identity of this agent: node name, host name, machine id and boot id.
#include "agent.h"

#include <lib/error.h>
#include <lib/scoped.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool name_is_sound(const char *name) {
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789-_.";

	return name[0] != '\0' && name[strspn(name, allowed)] == '\0';
}

static int file_read_line(const char *path, char *text, size_t size) {
	scoped_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t got = fd < 0 ? -1 : read(fd, text, size - 1);

	if (got < 0)
		return neg_errno();
	text[got] = '\0';
	text[strcspn(text, "\n")] = '\0';
	return 0;
}

// Parse a boot id such as "0f0d9e46-...": 32 hex digits, separated by dashes.
static void boot_id(uint8_t id[static 16]) {
	char text[64];
	uint32_t digits = 0;

	memset(id, 0, 16);
	if (file_read_line("/proc/sys/kernel/random/boot_id", text, sizeof(text)) != 0)
		return;
	for (const char *at = text; *at != '\0' && digits < 32; at++) {
		const char *hex = "0123456789abcdef";
		const char *digit = strchr(hex, *at);

		if (digit == NULL)
			continue;
		id[digits / 2] = (uint8_t)(id[digits / 2] << 4 | (digit - hex));
		digits++;
	}
}

int identity_find(struct agent *agent, struct ras_peer_info *ret_self) {
	struct ras_peer_info self = {.pid = (uint32_t)getpid(), .version = TOCSIN_VERSION};
	const char *name = agent->settings->node.name;
	const char *host = agent->settings->node.host;
	char machine[64];
	struct stat net;

	if (name[0] != '\0') {
		snprintf(self.name, sizeof(self.name), "%s", name);
	} else if (gethostname(self.name, sizeof(self.name)) != 0 || !name_is_sound(self.name)) {
		snprintf(
			agent->detail, sizeof(agent->detail),
			"this machine has no host name of at most %d letters, digits, '-', '_' and "
			"'.'; set one, or give [node] name",
			RAS_NAME_MAX
		);
		return -EINVAL;
	}

	// The host includes the id of the network namespace. Agents in several namespaces of one
	// machine, mostly in tests, represent different machines.
	snprintf(self.host, sizeof(self.host), "%s", host[0] != '\0' ? host : self.name);
	if (host[0] == '\0' && file_read_line("/etc/machine-id", machine, sizeof(machine)) == 0 &&
	    machine[0] != '\0' && stat("/proc/self/ns/net", &net) == 0)
		snprintf(
			self.host, sizeof(self.host), "%.32s-%" PRIu64, machine,
			(uint64_t)net.st_ino
		);
	boot_id(self.boot_id);
	*ret_self = self;
	return 0;
}
