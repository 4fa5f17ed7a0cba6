// SPDX-License-Identifier: BSD-3-Clause
// Reads the interface table from the kernel or from a recording.
#include "address.h"

#include <lib/error.h>
#include <lib/netif/classify.h>
#include <lib/netif/netlink.h>
#include <lib/netif/source.h>
#include <lib/netif/sysfs.h>
#include <lib/scoped.h>

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define GATHER_TRIES 8
#define RECORDING_BYTES_MAX ((size_t)64 * 1024 * 1024)

static const struct {
	enum netif_dump what;
	const char *file;
	bool is_default;
} dumps[] = {
	{NETIF_DUMP_LINKS, "links.nl", false}, // first, because addresses refer to links
	{NETIF_DUMP_ADDRESSES, "addresses.nl", false},
	{NETIF_DUMP_DEFAULTS_IPV4, "defaults4.nl", true},
	{NETIF_DUMP_DEFAULTS_IPV6, "defaults6.nl", true},
};
#define DUMP_COUNT (sizeof(dumps) / sizeof(dumps[0]))

// One request to the kernel; its answer goes into a table or into a file.
struct exchange {
	const struct sock_addr *peer;
	struct netif_table *table;
	int file;
	bool done;
};

static void route_name(const struct sock_addr *peer, char *name, size_t name_size) {
	char text[SOCK_ADDR_TEXT_BYTES];

	address_print(peer, text);
	snprintf(name, name_size, "route-%s.nl", text);
}

static int parse_datagram(void *context, const void *bytes, size_t size) {
	struct exchange *exchange = context;

	return netif_netlink_parse(bytes, size, exchange->peer, exchange->table, &exchange->done);
}

static bool error_is_no_route(int err) {
	return err == -ENETUNREACH || err == -EHOSTUNREACH || err == -EACCES || err == -EINVAL ||
	       err == -ENODEV;
}

static int add_unreachable(struct netif_table *table, const struct sock_addr *peer, int err) {
	struct netif_route route = {.peer = *peer, .family = peer->family, .error = err};

	return netif_table_add_route(table, &route);
}

static int gather_kernel_once(int fd, const struct netif_query *query, struct netif_table *table) {
	for (size_t n = 0; n < DUMP_COUNT; n++) {
		struct exchange exchange = {.table = table};
		int err;

		if (dumps[n].is_default && !query->want_defaults)
			continue;
		err = netif_netlink_dump(
			fd, dumps[n].what, parse_datagram, &exchange, &exchange.done
		);
		if (err != 0)
			return err;
	}
	for (size_t n = 0; n < query->peer_count; n++) {
		const struct sock_addr *peer = &query->peers[n];
		struct exchange exchange = {.peer = peer, .table = table};
		int err = netif_netlink_lookup(fd, peer, parse_datagram, &exchange, &exchange.done);

		if (error_is_no_route(err))
			err = add_unreachable(table, peer, err);
		if (err != 0)
			return err;
	}
	return 0;
}

// Use a new socket and a new table for each attempt, so that nothing of an interrupted dump
// remains.
static int gather_kernel(const struct netif_query *query, struct netif_table **ret_table) {
	int err = -EINTR;

	for (unsigned n = 0; n < GATHER_TRIES && err == -EINTR; n++) {
		struct netif_table *table;
		scoped_fd int fd = -1;

		err = netif_netlink_open(0, &fd);
		if (err != 0)
			return err;
		err = netif_table_create(&table);
		if (err != 0)
			return err;
		err = gather_kernel_once(fd, query, table);
		if (err == 0)
			*ret_table = table;
		else
			netif_table_destroy(table);
	}
	return err;
}

// Read a whole file; a missing file counts as empty.
static int read_file(const char *directory, const char *name, void **ret_bytes, size_t *ret_size) {
	char path[PATH_MAX];
	scoped_fd int fd = -1;
	scoped_mem uint8_t *bytes = NULL;
	struct stat status;
	size_t used = 0;
	ssize_t n;

	if (snprintf(path, sizeof(path), "%s/%s", directory, name) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT) {
		*ret_bytes = NULL;
		*ret_size = 0;
		return 0;
	}
	if (fd < 0 || fstat(fd, &status) != 0)
		return neg_errno();
	if (status.st_size < 0 || (size_t)status.st_size > RECORDING_BYTES_MAX)
		return -EFBIG;
	bytes = malloc((size_t)status.st_size + 1);
	if (bytes == NULL)
		return -ENOMEM;
	while (used < (size_t)status.st_size) {
		n = read(fd, bytes + used, (size_t)status.st_size - used);
		if (n < 0)
			return neg_errno();
		if (n == 0)
			break;
		used += (size_t)n;
	}
	*ret_bytes = scoped_release_mem(&bytes);
	*ret_size = used;
	return 0;
}

static int recording_replay(
	const char *directory,
	const char *name,
	const struct sock_addr *peer,
	struct netif_table *table
) {
	scoped_mem void *bytes = NULL;
	size_t size;
	bool done = false;
	int err = read_file(directory, name, &bytes, &size);

	if (err != 0)
		return err;
	err = netif_netlink_parse(bytes, size, peer, table, &done);
	if (peer != NULL && error_is_no_route(err))
		return add_unreachable(table, peer, err);
	if (peer != NULL && err == 0 && !done)
		return add_unreachable(table, peer, -ENETUNREACH);
	return err;
}

static int gather_recording(const struct netif_query *query, struct netif_table *table) {
	char root[PATH_MAX];
	int err;

	// Without this check, a missing directory would look like a machine without links.
	if (access(query->recording, R_OK | X_OK) != 0)
		return neg_errno();
	if (snprintf(root, sizeof(root), "%s/sys", query->recording) >= (int)sizeof(root))
		return -ENAMETOOLONG;
	for (size_t n = 0; n < DUMP_COUNT; n++) {
		err = recording_replay(query->recording, dumps[n].file, NULL, table);
		if (err != 0)
			return err;
	}
	for (size_t n = 0; n < query->peer_count; n++) {
		char name[SOCK_ADDR_TEXT_BYTES + 16];

		route_name(&query->peers[n], name, sizeof(name));
		err = recording_replay(query->recording, name, &query->peers[n], table);
		if (err != 0)
			return err;
	}
	for (size_t n = 0; n < table->link_count; n++)
		netif_sysfs_read(root, &table->links[n]);
	return 0;
}

int netif_gather(const struct netif_query *query, struct netif_table **ret_table) {
	struct netif_table *table;
	int err;

	if (query->recording == NULL) {
		err = gather_kernel(query, &table);
		if (err != 0)
			return err;
		for (size_t n = 0; n < table->link_count; n++)
			netif_sysfs_read(NETIF_SYSFS_ROOT, &table->links[n]);
	} else {
		err = netif_table_create(&table);
		if (err != 0)
			return err;
		err = gather_recording(query, table);
		if (err != 0) {
			netif_table_destroy(table);
			return err;
		}
	}
	netif_classify(table);
	*ret_table = table;
	return 0;
}

// Parse as well, to find the end of the answer and to reject an inconsistent dump.
static int record_datagram(void *context, const void *bytes, size_t size) {
	struct exchange *exchange = context;
	int err = parse_datagram(context, bytes, size);
	ssize_t n;

	if (err != 0)
		return err;
	n = write(exchange->file, bytes, size);
	if (n < 0)
		return neg_errno();
	return (size_t)n == size ? 0 : -EIO;
}

static int record_exchange(
	int directory,
	const char *name,
	const enum netif_dump *what,
	const struct sock_addr *peer,
	struct netif_table *table
) {
	scoped_fd int fd = -1;
	scoped_fd int file = openat(directory, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	struct exchange exchange = {.peer = peer, .table = table, .file = file};
	int err;

	if (file < 0)
		return neg_errno();
	err = netif_netlink_open(0, &fd);
	if (err != 0)
		return err;
	if (peer == NULL)
		return netif_netlink_dump(fd, *what, record_datagram, &exchange, &exchange.done);
	err = netif_netlink_lookup(fd, peer, record_datagram, &exchange, &exchange.done);
	return error_is_no_route(err) ? 0 : err;
}

static int recording_write(
	const struct netif_query *query, int directory, const char *path, struct netif_table *table
) {
	char root[PATH_MAX];
	int err;

	for (size_t n = 0; n < DUMP_COUNT; n++) {
		err = record_exchange(directory, dumps[n].file, &dumps[n].what, NULL, table);
		if (err != 0)
			return err;
	}
	for (size_t n = 0; n < query->peer_count; n++) {
		char name[SOCK_ADDR_TEXT_BYTES + 16];

		route_name(&query->peers[n], name, sizeof(name));
		err = record_exchange(directory, name, NULL, &query->peers[n], table);
		if (err != 0)
			return err;
	}
	if (mkdirat(directory, "sys", 0755) != 0)
		return neg_errno();
	if (snprintf(root, sizeof(root), "%s/sys", path) >= (int)sizeof(root))
		return -ENAMETOOLONG;
	for (size_t n = 0; n < table->link_count; n++) {
		err = netif_sysfs_record(NETIF_SYSFS_ROOT, table->links[n].name, root);
		if (err != 0 && err != -ENOENT) // a missing sysfs is recorded as well
			return err;
	}
	return 0;
}

int netif_record(const struct netif_query *query, const char *directory) {
	struct netif_table *table;
	scoped_fd int fd = -1;
	int err;

	if (mkdir(directory, 0755) != 0)
		return neg_errno();
	fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return neg_errno();
	err = netif_table_create(&table);
	if (err != 0)
		return err;
	err = recording_write(query, fd, directory, table);
	netif_table_destroy(table);
	return err;
}
