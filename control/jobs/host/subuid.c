// SPDX-License-Identifier: BSD-3-Clause
// Reads ranges of subordinate uids. Any thread may read; the control thread looks uids up.
#include "jobs/host/subuid.h"

#include <lib/parse.h>
#include <lib/scoped.h>

#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_BYTES_MAX (1u << 20)
#define RANGES_MAX 16384u

struct range {
	uint32_t first, last;
	uint32_t owner;
	// The name in the file, while the file is parsed.
	const char *name;
	size_t name_length;
};

struct subuids {
	uint32_t count;
	struct range ranges[];
};

static int compare_names(const void *a, const void *b) {
	const struct range *left = a, *right = b;
	const size_t shorter =
		left->name_length < right->name_length ? left->name_length : right->name_length;
	int order = memcmp(left->name, right->name, shorter);

	if (order == 0)
		order = (left->name_length > right->name_length) -
			(left->name_length < right->name_length);
	if (order == 0)
		order = (left->first > right->first) - (left->first < right->first);
	return order;
}

static int compare_ranges(const void *a, const void *b) {
	const struct range *left = a, *right = b;

	return (left->first > right->first) - (left->first < right->first);
}

static bool parse_range(const char *line, size_t length, struct range *ret_range) {
	const char *first = memchr(line, ':', length), *count;
	const char *end = line + length;
	uint64_t from, many;

	count = first != NULL ? memchr(first + 1, ':', (size_t)(end - first - 1)) : NULL;
	if (count == NULL || first == line ||
	    parse_u64(first + 1, (size_t)(count - first - 1), 1, UINT32_MAX - 1, NULL, &from) !=
		    0 ||
	    parse_u64(count + 1, (size_t)(end - count - 1), 1, UINT32_MAX - from, NULL, &many) != 0)
		return false;
	*ret_range = (struct range){
		.first = (uint32_t)from,
		.last = (uint32_t)(from + many - 1),
		.name = line,
		.name_length = (size_t)(first - line),
	};
	return true;
}

// Set the owner of each range: the uid in place of the name, or the first uid of the name's ranges.
static void set_owners(struct subuids *subuids) {
	qsort(subuids->ranges, subuids->count, sizeof(subuids->ranges[0]), compare_names);
	for (uint32_t n = 0; n < subuids->count; n++) {
		struct range *range = &subuids->ranges[n], *before = n > 0 ? range - 1 : NULL;
		uint64_t uid;

		if (before != NULL && before->name_length == range->name_length &&
		    memcmp(before->name, range->name, range->name_length) == 0)
			range->owner = before->owner;
		else if (parse_u64(range->name, range->name_length, 0, UINT32_MAX, NULL, &uid) == 0)
			range->owner = (uint32_t)uid;
		else
			range->owner = range->first;
	}
	qsort(subuids->ranges, subuids->count, sizeof(subuids->ranges[0]), compare_ranges);
	for (uint32_t n = 0; n < subuids->count; n++)
		subuids->ranges[n].name = NULL;
}

static struct subuids *parse_subuids(const char *text, size_t size) {
	const char *at = text, *end = text + size;
	struct subuids *subuids;
	size_t lines = 1;

	for (size_t n = 0; n < size; n++)
		lines += text[n] == '\n';
	if (lines > RANGES_MAX)
		lines = RANGES_MAX;
	subuids = calloc(1, sizeof(*subuids) + lines * sizeof(subuids->ranges[0]));
	if (subuids == NULL)
		return NULL;
	while (at < end && subuids->count < lines) {
		const char *stop = memchr(at, '\n', (size_t)(end - at));
		const size_t length = (size_t)((stop != NULL ? stop : end) - at);

		if (parse_range(at, length, &subuids->ranges[subuids->count]))
			subuids->count++;
		at += length + 1;
	}
	if (subuids->count == 0) {
		subuids_destroy(subuids);
		return NULL;
	}
	set_owners(subuids);
	return subuids;
}

struct subuids *subuids_read(const char *path) {
	// O_NONBLOCK: a FIFO in place of the file must not block the agent.
	scoped_fd int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	scoped_mem char *text = NULL;
	struct stat status;
	size_t size = 0;
	ssize_t got = 1;

	if (fd < 0 || fstat(fd, &status) < 0 || !S_ISREG(status.st_mode))
		return NULL;
	text = malloc(FILE_BYTES_MAX);
	while (text != NULL && got > 0 && size < FILE_BYTES_MAX) {
		got = read(fd, text + size, FILE_BYTES_MAX - size);
		size += got > 0 ? (size_t)got : 0;
	}
	if (text == NULL || got < 0)
		return NULL;
	// A line that is cut by the limit may name another range.
	if (size == FILE_BYTES_MAX)
		while (size > 0 && text[size - 1] != '\n')
			size--;
	return parse_subuids(text, size);
}

void subuids_destroy(struct subuids *subuids) {
	free(subuids);
}

uid_t subuid_owner(const struct subuids *subuids, uid_t uid) {
	uint32_t low = 0, high = subuids != NULL ? subuids->count : 0;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (subuids->ranges[middle].first <= uid)
			low = middle + 1;
		else
			high = middle;
	}
	return low > 0 && uid <= subuids->ranges[low - 1].last ? subuids->ranges[low - 1].owner
							       : uid;
}
