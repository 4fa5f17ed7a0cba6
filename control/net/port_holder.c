// SPDX-License-Identifier: BSD-3-Clause
#include "port_holder.h"

#include <lib/scoped.h>

#include <ctype.h>
#include <limits.h>
#include <string.h>

#define STATE_LISTEN "0A"
#define ADDRESS_TEXT_BYTES 40

// As /proc/net/tcp and tcp6 print an address: each 32 bits of memory as one number.
static void print_address(const struct sock_addr *address, char text[static ADDRESS_TEXT_BYTES]) {
	size_t words = address->family == SOCK_ADDR_V4 ? 1 : 4;
	uint32_t word;

	for (size_t n = 0; n < words; n++) {
		memcpy(&word, address->address + n * sizeof(word), sizeof(word));
		snprintf(text + n * 8, ADDRESS_TEXT_BYTES - n * 8, "%08X", word);
	}
}

// Whether one who listens there is in the way of us.
static bool is_in_the_way(const char *local, const struct sock_addr *address) {
	char own[ADDRESS_TEXT_BYTES];
	char port[8];
	const char *colon = strchr(local, ':');
	size_t length;

	if (colon == NULL)
		return false;
	snprintf(port, sizeof(port), "%04X", address->port);
	if (strcmp(colon + 1, port) != 0)
		return false;
	length = (size_t)(colon - local);
	print_address(address, own);
	return sock_addr_is_any(address) || strspn(local, "0") == length ||
	       (length == strlen(own) && strncmp(local, own, length) == 0);
}

// The inode of the listening socket of such a line, or NULL.
static const char *inode_of_line(char *line, const struct sock_addr *address) {
	char *rest = NULL;
	char *field = strtok_r(line, " ", &rest);

	for (unsigned n = 0; field != NULL; n++) {
		if (n == 1 && !is_in_the_way(field, address))
			return NULL;
		if (n == 3 && strcmp(field, STATE_LISTEN) != 0)
			return NULL;
		if (n == 9)
			return field;
		field = strtok_r(NULL, " ", &rest);
	}
	return NULL;
}

// "socket:[12345]", as the links in /proc/PID/fd are named.
static bool find_socket(const char *table, const struct sock_addr *address, char name[static 32]) {
	scoped_file FILE *file = fopen(table, "re");
	const char *inode;
	char line[512];

	while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
		inode = inode_of_line(line, address);
		if (inode != NULL) {
			snprintf(name, 32, "socket:[%.20s]", inode);
			return true;
		}
	}
	return false;
}

static bool has_socket(const char *pid, const char *name) {
	scoped_dir DIR *dir = NULL;
	struct dirent *entry;
	char path[64];
	char target[64];
	ssize_t length;

	snprintf(path, sizeof(path), "/proc/%.20s/fd", pid);
	dir = opendir(path);
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

static void describe(const char *pid, char text[static PORT_HOLDER_TEXT_BYTES]) {
	scoped_file FILE *file = NULL;
	char path[64];
	char command[32];

	snprintf(path, sizeof(path), "/proc/%.20s/comm", pid);
	file = fopen(path, "re");
	if (file == NULL || fgets(command, sizeof(command), file) == NULL)
		snprintf(command, sizeof(command), "a process");
	command[strcspn(command, "\n")] = '\0';
	snprintf(text, PORT_HOLDER_TEXT_BYTES, "%s (pid %.20s)", command, pid);
}

bool port_holder_find(const struct sock_addr *address, char text[static PORT_HOLDER_TEXT_BYTES]) {
	scoped_dir DIR *dir = NULL;
	struct dirent *entry;
	char name[32];

	if (!find_socket("/proc/net/tcp", address, name) &&
	    !find_socket("/proc/net/tcp6", address, name))
		return false;
	dir = opendir("/proc");
	// NOLINTNEXTLINE(concurrency-mt-unsafe): the directory is ours alone
	while (dir != NULL && (entry = readdir(dir)) != NULL) {
		if (isdigit((unsigned char)entry->d_name[0]) && has_socket(entry->d_name, name)) {
			describe(entry->d_name, text);
			return true;
		}
	}
	return false;
}
