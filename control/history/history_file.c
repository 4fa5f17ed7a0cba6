// SPDX-License-Identifier: BSD-3-Clause
// Stores and finds blocks in the file of the history.
#include "history/history_file.h"

#include <lib/error.h>
#include <lib/must.h>
#include <lib/scoped.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define FILE_NAME "history"
#define TIER_BLOCKS_MIN 4 // two slots for the block that grows, and two older blocks
#define FINE_EIGHTHS 3	  // share of the fine tier; the coarse tier has the rest
#define NO_SLOT UINT32_MAX
// A higher number in a file is forged: numbers that follow it must be valid as well.
#define SEQUENCE_MAX (UINT64_MAX / 2)

struct slot {
	uint64_t sequence; // 0: free, damaged, or an older copy of another slot
	int64_t first_s, last_s;
	uint32_t used;
	uint8_t tier;
};

struct history_file {
	int fd;
	uint64_t owner;
	struct slot *slots;
	uint32_t slot_count, fine_count; // slots below fine_count are those of the fine tier
	uint32_t current[HISTORY_TIERS], spare[HISTORY_TIERS]; // of the block that grows
	uint64_t last_sequence[HISTORY_TIERS];
};

uint32_t history_file_tier_blocks(uint64_t size_bytes, enum history_tier tier) {
	uint64_t blocks = size_bytes / HISTORY_BLOCK_BYTES;
	uint64_t fine = blocks * FINE_EIGHTHS / 8;

	return (uint32_t)(tier == HISTORY_FINE ? fine : blocks - fine);
}

static off_t slot_offset(uint32_t slot) {
	return (off_t)slot * HISTORY_BLOCK_BYTES;
}

// Read exactly `size` bytes. Returns 0, -ENODATA at the end of the file, or -errno.
static int read_at(int fd, off_t offset, uint8_t *bytes, size_t size) {
	size_t used = 0;

	while (used < size) {
		ssize_t got = pread(fd, bytes + used, size - used, offset + (off_t)used);

		if (got == 0)
			return -ENODATA;
		if (got < 0 && errno != EINTR)
			return neg_errno();
		used += got > 0 ? (size_t)got : 0;
	}
	return 0;
}

// Return whether two slots hold copies of one block.
static bool slots_are_copies(const struct slot *a, const struct slot *b) {
	return a->sequence != 0 && a->sequence == b->sequence && a->tier == b->tier;
}

static int slots_compare(const void *a, const void *b) {
	const struct slot *const *one = a, *const *other = b;

	if ((*one)->sequence != (*other)->sequence)
		return (*one)->sequence < (*other)->sequence ? -1 : 1;
	return (*one)->used < (*other)->used ? -1 : (*one)->used > (*other)->used;
}

// Return the slots of a tier that hold blocks, by sequence. NULL: no memory.
static const struct slot **
slots_list(const struct history_file *file, enum history_tier tier, uint32_t *ret_count) {
	const struct slot **list = calloc(file->slot_count, sizeof(struct slot *));
	uint32_t count = 0;

	if (list == NULL)
		return NULL;
	for (uint32_t n = 0; n < file->slot_count; n++) {
		if (file->slots[n].sequence != 0 && file->slots[n].tier == tier)
			list[count++] = &file->slots[n];
	}
	qsort(list, count, sizeof(struct slot *), slots_compare);
	*ret_count = count;
	return list;
}

// Drop one of two copies of a block: the shorter one, unless the longer one is torn.
static void slot_drop_copy(
	struct history_file *file,
	uint32_t shorter,
	uint32_t longer,
	uint8_t *bytes,
	struct history_file_report *report
) {
	struct history_header header;
	bool is_sound =
		read_at(file->fd, slot_offset(longer), bytes, file->slots[longer].used) == 0 &&
		history_header_read(bytes, &header) == 0 &&
		header.used == file->slots[longer].used && history_block_check(bytes, &header) == 0;

	report->damaged += !is_sound;
	if (is_sound)
		file->slots[shorter].sequence = 0;
	else
		file->slots[longer].sequence = 0;
}

// Read all headers, and keep one copy of each block.
static int slots_scan(struct history_file *file, struct history_file_report *report) {
	scoped_mem uint8_t *bytes = malloc(HISTORY_BLOCK_BYTES);
	struct history_header header;

	if (bytes == NULL)
		return -ENOMEM;
	for (uint32_t n = 0; n < file->slot_count; n++) {
		struct slot *slot = &file->slots[n];
		int err = read_at(file->fd, slot_offset(n), bytes, HISTORY_HEADER_BYTES);

		if (err == 0)
			err = history_header_read(bytes, &header);
		else if (err != -ENODATA)
			return err;
		if (err == 0 && header.sequence > SEQUENCE_MAX)
			err = -EBADMSG;
		if (err == 0 && header.owner != file->owner)
			report->foreign++;
		else if (err == 0)
			*slot = (struct slot
			){header.sequence, header.first_s, header.last_s, header.used,
			  (uint8_t)header.tier};
		report->other_version += err == -EPROTONOSUPPORT;
		report->damaged += err == -EBADMSG;
	}
	for (int tier = 0; tier < HISTORY_TIERS; tier++) {
		uint32_t count;
		const struct slot **list = slots_list(file, (enum history_tier)tier, &count);

		if (list == NULL)
			return -ENOMEM;
		// The last block counts even if it is torn: a later block needs a higher number.
		if (count > 0)
			file->last_sequence[tier] = list[count - 1]->sequence;
		for (uint32_t n = 0; n + 1 < count; n++) {
			if (slots_are_copies(list[n], list[n + 1]))
				slot_drop_copy(
					file, (uint32_t)(list[n] - file->slots),
					(uint32_t)(list[n + 1] - file->slots), bytes, report
				);
			else
				report->blocks++;
		}
		report->blocks += count > 0;
		free(list);
	}
	return 0;
}

// Return the size that a file gets: the wanted one, or what it has and half of the free space. The
// other half is left to the journal and to other programs.
static int size_choose(int fd, uint64_t allocated, uint64_t *size_bytes, bool *ret_is_short) {
	struct statvfs system;
	uint64_t half;

	if (*size_bytes <= allocated)
		return 0;
	if (fstatvfs(fd, &system) != 0)
		return neg_errno();
	half = (uint64_t)system.f_bavail * system.f_frsize / 2;
	if (*size_bytes - allocated > half) {
		*size_bytes = allocated + half;
		*ret_is_short = true;
	}
	return 0;
}

// Reserve the space of the file. Returns 0, with a smaller size if the disk has no room, or -errno.
static int file_allocate(int fd, uint64_t *size_bytes, bool *ret_is_short) {
	uint64_t smallest = (uint64_t)2 * TIER_BLOCKS_MIN * HISTORY_BLOCK_BYTES;
	uint64_t allocated;
	struct stat info;
	int err;

	if (fstat(fd, &info) != 0)
		return neg_errno();
	if (!S_ISREG(info.st_mode))
		return -EINVAL;
	if ((uint64_t)info.st_size > *size_bytes &&
	    (ftruncate(fd, (off_t)*size_bytes) != 0 || fstat(fd, &info) != 0))
		return neg_errno();
	allocated = (uint64_t)info.st_blocks * 512;
	err = size_choose(fd, allocated, size_bytes, ret_is_short);
	*size_bytes -= *size_bytes % HISTORY_BLOCK_BYTES;
	if (err != 0 || *size_bytes < smallest)
		return err != 0 ? err : -ENOSPC;
	while ((err = posix_fallocate(fd, 0, (off_t)*size_bytes)) == EINTR)
		continue;
	if (err != ENOSPC && err != EDQUOT && err != EFBIG)
		return -err;
	// Release the space that was reserved before the failure, and keep the former size.
	if (ftruncate(fd, info.st_size) != 0)
		return neg_errno();
	*ret_is_short = true;
	*size_bytes = (uint64_t)info.st_size - (uint64_t)info.st_size % HISTORY_BLOCK_BYTES;
	return *size_bytes < smallest ? -ENOSPC : 0;
}

int history_file_open(
	const char *directory,
	uint64_t size_bytes,
	uint64_t owner,
	struct history_file **ret_file,
	struct history_file_report *ret_report
) {
	scoped_fd int at = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct history_file *file = calloc(1, sizeof(*file));
	struct history_file_report report = {0};
	int err;

	if (file == NULL)
		return -ENOMEM;
	file->owner = owner;
	file->fd = at < 0 ? -1
			  : openat(at, FILE_NAME, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	err = file->fd < 0 ? neg_errno() : file_allocate(file->fd, &size_bytes, &report.is_short);
	if (err == 0) {
		file->slot_count = (uint32_t)(size_bytes / HISTORY_BLOCK_BYTES);
		file->fine_count = history_file_tier_blocks(size_bytes, HISTORY_FINE);
		file->slots = calloc(file->slot_count, sizeof(*file->slots));
		err = file->slots != NULL ? slots_scan(file, &report) : -ENOMEM;
	}
	if (err != 0) {
		history_file_close(file);
		return err;
	}
	for (int tier = 0; tier < HISTORY_TIERS; tier++)
		file->current[tier] = file->spare[tier] = NO_SLOT;
	*ret_file = file;
	*ret_report = report;
	return 0;
}

struct history_file *history_file_close(struct history_file *file) {
	if (file == NULL)
		return NULL;
	if (file->fd >= 0)
		close(file->fd);
	free(file->slots);
	free(file);
	return NULL;
}

uint64_t history_file_next_sequence(const struct history_file *file, enum history_tier tier) {
	return file->last_sequence[tier] + 1;
}

// Return the slot of a tier's part whose block is the oldest, or a free one. A block of the other
// tier, from when the file had another size, is like a free one: its number says nothing here. The
// slots of the block that grows are left out.
static uint32_t slot_oldest(const struct history_file *file, enum history_tier tier) {
	uint32_t first = tier == HISTORY_FINE ? 0 : file->fine_count;
	uint32_t end = tier == HISTORY_FINE ? file->fine_count : file->slot_count;
	uint32_t oldest = NO_SLOT;
	uint64_t lowest = 0;

	for (uint32_t n = first; n < end; n++) {
		const struct slot *slot = &file->slots[n];
		uint64_t sequence = slot->tier == tier ? slot->sequence : 0;

		if (n == file->current[tier] || n == file->spare[tier])
			continue;
		if (oldest == NO_SLOT || sequence < lowest) {
			oldest = n;
			lowest = sequence;
		}
	}
	must(oldest != NO_SLOT);
	return oldest;
}

int history_file_write(struct history_file *file, const uint8_t *bytes, size_t size) {
	struct history_header header;
	uint32_t to, *current, *spare;
	size_t written = 0;
	struct stat info;
	bool grows;

	must(history_header_read(bytes, &header) == 0 && header.used == size);
	current = &file->current[header.tier];
	spare = &file->spare[header.tier];
	if (fstat(file->fd, &info) != 0)
		return neg_errno();
	if (info.st_nlink == 0)
		return -ESTALE;
	grows = *current != NO_SLOT && file->slots[*current].sequence == header.sequence;
	if (*spare == NO_SLOT)
		*spare = slot_oldest(file, header.tier);
	to = *spare;
	file->slots[to].sequence = 0; // until the write is complete
	while (written < size) {
		ssize_t got =
			pwrite(file->fd, bytes + written, size - written,
			       slot_offset(to) + (off_t)written);

		if (got < 0 && errno != EINTR)
			return neg_errno();
		if (got == 0)
			return -ENOSPC;
		written += got > 0 ? (size_t)got : 0;
	}
	file->slots[to] = (struct slot
	){header.sequence, header.first_s, header.last_s, header.used, (uint8_t)header.tier};
	if (header.sequence > file->last_sequence[header.tier])
		file->last_sequence[header.tier] = header.sequence;
	// The shorter copy of a block that grows is overwritten next.
	if (grows)
		file->slots[*current].sequence = 0;
	*spare = grows ? *current : NO_SLOT;
	*current = to;
	return 0;
}

int64_t history_file_oldest_s(const struct history_file *file, enum history_tier tier) {
	int64_t oldest_s = INT64_MAX;

	for (uint32_t n = 0; n < file->slot_count; n++) {
		const struct slot *slot = &file->slots[n];

		if (slot->sequence != 0 && slot->tier == tier && slot->first_s < oldest_s)
			oldest_s = slot->first_s;
	}
	return oldest_s;
}

static bool
slot_overlaps(const struct slot *slot, enum history_tier tier, int64_t since_s, int64_t until_s) {
	return slot->sequence != 0 && slot->tier == tier && slot->last_s >= since_s &&
	       slot->first_s <= until_s;
}

uint64_t history_file_bytes(
	const struct history_file *file, enum history_tier tier, int64_t since_s, int64_t until_s
) {
	uint64_t bytes = 0;

	for (uint32_t n = 0; n < file->slot_count; n++)
		bytes += slot_overlaps(&file->slots[n], tier, since_s, until_s)
				 ? file->slots[n].used
				 : 0;
	return bytes;
}

int history_file_read(
	struct history_file *file,
	enum history_tier tier,
	int64_t since_s,
	int64_t until_s,
	history_take_fn *take,
	void *ctx
) {
	scoped_mem uint8_t *bytes = malloc(HISTORY_BLOCK_BYTES);
	struct history_header header;
	const struct slot **list;
	uint32_t count;
	int damaged = 0;

	if (bytes == NULL)
		return -ENOMEM;
	list = slots_list(file, tier, &count);
	if (list == NULL)
		return -ENOMEM;
	for (uint32_t n = 0; n < count; n++) {
		const struct slot *slot = list[n];

		if (!slot_overlaps(slot, tier, since_s, until_s))
			continue;
		// The file may have changed since its headers were read.
		if (read_at(file->fd, slot_offset((uint32_t)(slot - file->slots)), bytes,
			    slot->used) == 0 &&
		    history_header_read(bytes, &header) == 0 && header.used == slot->used &&
		    header.owner == file->owner && history_block_check(bytes, &header) == 0)
			take(ctx, bytes, header.used);
		else
			damaged++;
	}
	free(list);
	return damaged;
}
