// SPDX-License-Identifier: BSD-3-Clause
// Finds the process that occupies a port which this program cannot bind.
#include <lib/port_holder.h>
#include <lib/scoped.h>

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <string.h>

#define STATE_LISTEN "0A"
#define ADDRESS_TEXT_BYTES 40
#define SOCKET_NAME_BYTES 32

// Return true if a socket with this local address prevents binding ours.
static bool local_address_conflicts(const char *local, const struct sock_addr *address) {
	char own[ADDRESS_TEXT_BYTES];
	char port[8];
	const char *colon = strchr(local, ':');
	size_t length, words = address->family == SOCK_ADDR_V4 ? 1 : 4;
	uint32_t word;

	if (colon == NULL)
		return false;
	snprintf(port, sizeof(port), "%04X", address->port);
	if (strcmp(colon + 1, port) != 0)
		return false;
	length = (size_t)(colon - local);
	// The kernel's tables print each 32-bit word of the address in memory as one number.
	for (size_t n = 0; n < words; n++) {
		memcpy(&word, address->address + n * sizeof(word), sizeof(word));
		snprintf(own + n * 8, sizeof(own) - n * 8, "%08X", word);
	}
	return sock_addr_is_any(address) || strspn(local, "0") == length ||
	       (length == strlen(own) && strncmp(local, own, length) == 0);
}

// Return the inode of the socket in a table line if the socket conflicts, else NULL. state NULL:
// any state.
static const char *
conflicting_socket_inode(char *line, const struct sock_addr *address, const char *state) {
	char *rest = NULL;
	char *field = strtok_r(line, " ", &rest);

	for (unsigned n = 0; field != NULL; n++) {
		if (n == 1 && !local_address_conflicts(field, address))
			return NULL;
		if (n == 3 && state != NULL && strcmp(field, state) != 0)
			return NULL;
		if (n == 9)
			return field;
		field = strtok_r(NULL, " ", &rest);
	}
	return NULL;
}

// Find a conflicting socket. Its name is "socket:[12345]", as in the links in /proc/PID/fd.
static bool table_find_socket(
	const char *table,
	const struct sock_addr *address,
	const char *state,
	char name[static SOCKET_NAME_BYTES]
) {
	scoped_file FILE *file = fopen(table, "re");
	const char *inode;
	char line[512];

	while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
		inode = conflicting_socket_inode(line, address, state);
		if (inode != NULL) {
			snprintf(name, SOCKET_NAME_BYTES, "socket:[%.20s]", inode);
			return true;
		}
	}
	return false;
}

static bool find_socket(
	enum port_protocol protocol,
	const struct sock_addr *address,
	char name[static SOCKET_NAME_BYTES]
) {
	static const struct {
		const char *tables[2];
		const char *state;
	} protocols[] = {
		[PORT_TCP] = {{"/proc/net/tcp", "/proc/net/tcp6"}, STATE_LISTEN},
		[PORT_UDP] = {{"/proc/net/udp", "/proc/net/udp6"}, NULL},
	};
	const char *state = protocols[protocol].state;

	return table_find_socket(protocols[protocol].tables[0], address, state, name) ||
	       table_find_socket(protocols[protocol].tables[1], address, state, name);
}

// Return true if the process has the socket. *unseen is set if permissions forbid to look.
static bool process_has_socket(const char *pid, const char *name, bool *unseen) {
	scoped_dir DIR *dir = NULL;
	struct dirent *entry;
	char path[64];
	char target[64];
	ssize_t length;

	snprintf(path, sizeof(path), "/proc/%.20s/fd", pid);
	dir = opendir(path);
	if (dir == NULL)
		*unseen |= errno == EACCES || errno == EPERM;
	// NOLINTNEXTLINE(concurrency-mt-unsafe): the directory is ours alone
	while (dir != NULL && (entry = readdir(dir)) != NULL) {
		length = readlinkat(dirfd(dir), entry->d_name, target, sizeof(target) - 1);
		if (length < 0)
			continue;
		target[length] = '\0';
		if (strcmp(target, name) == 0)
			return true;
	}
	return false;
}

void port_holder_find(
	enum port_protocol protocol, const struct sock_addr *address, struct port_holder *ret_holder
) {
	struct port_holder holder = {.kind = PORT_HOLDER_NONE};
	scoped_dir DIR *dir = NULL;
	struct dirent *entry;
	char name[SOCKET_NAME_BYTES];
	bool unseen = false;

	if (find_socket(protocol, address, name)) {
		dir = opendir("/proc");
		while (dir != NULL && holder.kind == PORT_HOLDER_NONE &&
		       // NOLINTNEXTLINE(concurrency-mt-unsafe): the directory is ours alone
		       (entry = readdir(dir)) != NULL) {
			const char *pid = entry->d_name;
			scoped_file FILE *file = NULL;
			uint64_t number = 0;
			char path[64];

			if (!isdigit((unsigned char)pid[0]) ||
			    !process_has_socket(pid, name, &unseen))
				continue;
			snprintf(path, sizeof(path), "/proc/%.20s/comm", pid);
			file = fopen(path, "re");
			if (file == NULL ||
			    fgets(holder.command, sizeof(holder.command), file) == NULL)
				snprintf(holder.command, sizeof(holder.command), "a program");
			holder.command[strcspn(holder.command, "\n")] = '\0';
			parse_u64(pid, strlen(pid), 0, UINT32_MAX, NULL, &number);
			holder.pid = (uint32_t)number;
			holder.kind = PORT_HOLDER_PROCESS;
		}
		if (holder.kind == PORT_HOLDER_NONE)
			holder.kind = unseen ? PORT_HOLDER_NOT_VISIBLE : PORT_HOLDER_KERNEL;
	}
	*ret_holder = holder;
}

void port_holder_format(
	const struct port_holder *holder, char text[static PORT_HOLDER_TEXT_BYTES]
) {
	static const char *const words[] = {
		[PORT_HOLDER_NONE] = "no process: the port is free now",
		[PORT_HOLDER_NOT_VISIBLE] = "a process of another user",
		[PORT_HOLDER_KERNEL] = "the kernel or a process of another container",
	};

	if (holder->kind == PORT_HOLDER_PROCESS)
		snprintf(
			text, PORT_HOLDER_TEXT_BYTES, "%s, process %u", holder->command, holder->pid
		);
	else
		snprintf(text, PORT_HOLDER_TEXT_BYTES, "%s", words[holder->kind]);
}
