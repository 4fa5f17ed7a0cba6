// SPDX-License-Identifier: BSD-3-Clause
// Link book: the history of links as a file with lines of words. Pure.
//
//     boot ID
//     port DEVICE NUMBER GUID BEST_MBPS WAS_UP UP LOOKED_NS
//     counter DEVICE NUMBER NAME VALUE MILLI
//
// Device names contain no blanks.
#include "checks/links.h"

#include <lib/fields.h>

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct link_past *link_book_find(struct link_book *book, const char *device, unsigned int number) {
	for (uint32_t n = 0; n < book->count; n++) {
		if (book->ports[n].number == number && strcmp(book->ports[n].device, device) == 0)
			return &book->ports[n];
	}
	return NULL;
}

static bool read_flag(const char **at, bool *ret_flag) {
	uint64_t value;

	if (!field_read_u64(at, 1, &value))
		return false;
	*ret_flag = value == 1;
	return true;
}

static void parse_port_line(struct link_book *book, const char *at, bool same_boot) {
	struct link_past past = {.number = 0};
	uint64_t number, best;

	if (!field_read_text(&at, past.device, sizeof(past.device)) ||
	    !field_read_u64(&at, UINT8_MAX, &number) ||
	    !field_read_u64(&at, UINT64_MAX, &past.guid) ||
	    !field_read_u64(&at, UINT32_MAX, &best) || !read_flag(&at, &past.was_up) ||
	    !read_flag(&at, &past.up) || !field_read_u64(&at, UINT64_MAX, &past.looked_ns))
		return;
	if (number == 0 || book->count == LINK_PORTS_MAX ||
	    link_book_find(book, past.device, (unsigned int)number) != NULL)
		return;
	past.number = (uint8_t)number;
	past.best_mbps = (uint32_t)best;
	past.up = same_boot && past.up;
	past.looked_ns = same_boot ? past.looked_ns : 0;
	memset(past.counters, 0xff, sizeof(past.counters));
	book->ports[book->count++] = past;
}

static void parse_counter_line(struct link_book *book, const char *at) {
	char device[CHECKS_NAME_MAX], name[CHECKS_NAME_MAX];
	uint64_t number, value, milli;
	struct link_past *past;

	if (!field_read_text(&at, device, sizeof(device)) ||
	    !field_read_u64(&at, UINT8_MAX, &number) || !field_read_text(&at, name, sizeof(name)) ||
	    !field_read_u64(&at, UINT64_MAX - 1, &value) ||
	    !field_read_u64(&at, UINT32_MAX, &milli))
		return;
	past = link_book_find(book, device, (unsigned int)number);
	for (uint32_t n = 0; past != NULL && n < link_counter_count; n++) {
		if (strcmp(link_counters[n].name, name) != 0)
			continue;
		past->counters[n] = value;
		past->milli[n] = milli;
	}
}

void link_book_parse(struct link_book *book, const char *text, const char *boot) {
	const char *at = text;
	bool same_boot;

	memset(book, 0, sizeof(*book));
	snprintf(book->boot, sizeof(book->boot), "%s", boot);
	if (!field_match_word(&at, "boot"))
		return;
	same_boot = boot[0] != '\0' && field_match_word(&at, boot);
	while ((at = strchr(at, '\n')) != NULL) {
		at++;
		if (field_match_word(&at, "port"))
			parse_port_line(book, at, same_boot);
		else if (same_boot && field_match_word(&at, "counter"))
			parse_counter_line(book, at);
	}
}

__attribute__((format(printf, 3, 4))) static size_t
line_put(char *text, size_t used, const char *format, ...) {
	size_t room = LINK_BOOK_BYTES - used;
	va_list arguments;
	int size;

	va_start(arguments, format);
	size = vsnprintf(text + used, room, format, arguments);
	va_end(arguments);
	if (size > 0 && (size_t)size < room)
		return used + (size_t)size;
	text[used] = '\0';
	return used;
}

size_t link_book_format(const struct link_book *book, char text[static LINK_BOOK_BYTES]) {
	size_t used = line_put(text, 0, "boot %s\n", book->boot[0] != '\0' ? book->boot : "-");

	for (uint32_t n = 0; n < book->count; n++) {
		const struct link_past *past = &book->ports[n];

		used = line_put(
			text, used, "port %s %u %" PRIu64 " %" PRIu32 " %u %u %" PRIu64 "\n",
			past->device, past->number, past->guid, past->best_mbps, past->was_up,
			past->up, past->looked_ns
		);
		for (uint32_t k = 0; k < link_counter_count; k++) {
			if (past->counters[k] == UINT64_MAX)
				continue;
			used = line_put(
				text, used, "counter %s %u %s %" PRIu64 " %" PRIu64 "\n",
				past->device, past->number, link_counters[k].name,
				past->counters[k], past->milli[k]
			);
		}
	}
	return used;
}
