// SPDX-License-Identifier: BSD-3-Clause
// Learnt baselines of paths, kept over a restart.
#include <control/path_book.h>
#include <lib/fields.h>
#include <lib/must.h>

#include <xxhash.h>

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define MTU_MAX 65536
#define WORD_BYTES 16

// The book.

static bool past_is_of_path(
	const struct path_book_entry *past,
	uint64_t peer,
	const char *device,
	const char *peer_device
) {
	return past->peer == peer && strcmp(past->device, device) == 0 &&
	       strcmp(past->peer_device, peer_device) == 0;
}

const struct path_book_entry *path_book_find(
	const struct path_book *book, uint64_t peer, const char *device, const char *peer_device
) {
	for (uint32_t n = 0; n < book->count; n++) {
		if (past_is_of_path(&book->baselines[n], peer, device, peer_device))
			return &book->baselines[n];
	}
	return NULL;
}

// Check that a name is one word. Peers choose the names of their devices.
static bool name_is_word(const char *name) {
	for (const char *at = name; *at != '\0'; at++) {
		if ((unsigned char)*at <= ' ' || *at == 0x7f)
			return false;
	}
	return name[0] != '\0';
}

bool path_book_put(struct path_book *book, const struct path_book_entry *past) {
	uint32_t oldest = 0, place = 0;

	if (!name_is_word(past->device) || !name_is_word(past->peer_device))
		return false;
	// Replace the entry of the path. A new path gets a free place, or that of the oldest.
	for (; place < book->count; place++) {
		const struct path_book_entry *at = &book->baselines[place];

		if (past_is_of_path(at, past->peer, past->device, past->peer_device))
			break;
		if (at->learnt_s < book->baselines[oldest].learnt_s)
			oldest = place;
	}
	if (place == PATH_BOOK_PATHS_MAX)
		place = oldest;
	book->baselines[place] = *past;
	book->count += place == book->count;
	return true;
}

void path_book_expire(struct path_book *book, uint64_t before_s) {
	uint32_t kept = 0;

	for (uint32_t n = 0; n < book->count; n++) {
		if (book->baselines[n].learnt_s >= before_s)
			book->baselines[kept++] = book->baselines[n];
	}
	book->count = kept;
}

// Writing.

// PATH_BOOK_BYTES has room for every line.
__attribute__((format(printf, 3, 4))) static size_t
line_put(char *text, size_t used, const char *format, ...) {
	size_t room = PATH_BOOK_BYTES - used;
	va_list arguments;
	int size;

	va_start(arguments, format);
	size = vsnprintf(text + used, room, format, arguments);
	va_end(arguments);
	must(size > 0 && (size_t)size < room);
	return used + (size_t)size;
}

size_t path_book_format(
	const struct path_book *book, uint64_t observer, char text[static PATH_BOOK_BYTES]
) {
	size_t used = line_put(text, 0, "paths %d 0x%016" PRIx64 "\n", PATH_BOOK_VERSION, observer);

	for (uint32_t n = 0; n < book->count; n++) {
		const struct path_book_entry *past = &book->baselines[n];

		used = line_put(
			text, used,
			"path 0x%016" PRIx64 " %s %s %s %" PRIu32 " %" PRIu32 " %" PRIu64
			" %" PRIu64 " %" PRIu32 " %" PRIu64 "\n",
			past->peer, past->device, past->peer_device,
			observation_responder_name(past->responder), past->mtu, past->speed_mbps,
			past->baseline_ns, past->baseline_mad_ns, past->windows, past->learnt_s
		);
	}
	return line_put(
		text, used, "end %" PRIu32 " 0x%016" PRIx64 "\n", book->count,
		(uint64_t)XXH3_64bits(text, used)
	);
}

// Reading.

static bool line_ends(const char *at) {
	return *at == '\n';
}

static bool read_responder(const char **at, enum observation_responder *ret_responder) {
	char word[WORD_BYTES];

	if (!field_read_text(at, word, sizeof(word)))
		return false;
	for (unsigned int n = 0; n < OBSERVATION_RESPONDER_COUNT; n++) {
		if (strcmp(word, observation_responder_name((enum observation_responder)n)) == 0) {
			*ret_responder = (enum observation_responder)n;
			return true;
		}
	}
	return false;
}

static bool read_u32(const char **at, uint32_t max, uint32_t *ret_value) {
	uint64_t value;

	if (!field_read_u64(at, max, &value))
		return false;
	*ret_value = (uint32_t)value;
	return true;
}

static bool read_past(const char *at, struct path_book_entry *ret_past) {
	struct path_book_entry past = {0};

	if (!field_match_word(&at, "path") || !field_read_u64(&at, UINT64_MAX, &past.peer) ||
	    !field_read_text(&at, past.device, sizeof(past.device)) ||
	    !field_read_text(&at, past.peer_device, sizeof(past.peer_device)) ||
	    !read_responder(&at, &past.responder) || !read_u32(&at, MTU_MAX, &past.mtu) ||
	    !read_u32(&at, UINT32_MAX, &past.speed_mbps) ||
	    !field_read_u64(&at, PATH_LATENCY_MAX_NS - 1, &past.baseline_ns) ||
	    !field_read_u64(&at, PATH_LATENCY_MAX_NS - 1, &past.baseline_mad_ns) ||
	    !read_u32(&at, PATH_PAST_WINDOWS, &past.windows) ||
	    !field_read_u64(&at, INT64_MAX / RAS_NS_PER_SEC, &past.learnt_s) || !line_ends(at))
		return false;
	*ret_past = past;
	return past.baseline_ns > 0 && past.windows >= PATH_LEARN_WINDOWS;
}

// Find the line `end`, which is the last one. Returns NULL if it is missing or does not match the
// text before it.
static const char *text_find_end(const char *text, uint64_t *ret_count) {
	size_t size = strlen(text);
	const char *end = text + size;
	uint64_t digest;
	const char *at;

	if (size == 0 || end[-1] != '\n')
		return NULL;
	for (end--; end > text && end[-1] != '\n';)
		end--;
	at = end;
	if (!field_match_word(&at, "end") || !field_read_u64(&at, PATH_BOOK_PATHS_MAX, ret_count) ||
	    !field_read_u64(&at, UINT64_MAX, &digest) || !line_ends(at) ||
	    digest != XXH3_64bits(text, (size_t)(end - text)))
		return NULL;
	return end;
}

static const char *
read_baselines(struct path_book *book, const char *at, const char *end, uint64_t count) {
	for (; at < end; at = strchr(at, '\n') + 1) {
		struct path_book_entry past;

		// A path that occurs twice makes the count wrong.
		if (!read_past(at, &past) || book->count == PATH_BOOK_PATHS_MAX ||
		    !path_book_put(book, &past))
			return "the file has an invalid path";
	}
	return book->count == count
		       ? NULL
		       : "the number of paths differs from the number in the last line";
}

int path_book_parse(
	struct path_book *book, const char *text, uint64_t observer, const char **ret_reason
) {
	const char *reason = NULL, *end, *at = text;
	uint64_t version = 0, found = 0, count;

	book->count = 0;
	if (!field_match_word(&at, "paths") || !field_read_u64(&at, UINT64_MAX, &version) ||
	    (version == PATH_BOOK_VERSION &&
	     (!field_read_u64(&at, UINT64_MAX, &found) || !line_ends(at))))
		reason = "the file is not a list of path baselines";
	else if (version != PATH_BOOK_VERSION)
		reason = "the file has an unsupported version";
	else if (found != observer)
		reason = "the file belongs to another node";
	if (reason == NULL) {
		end = text_find_end(text, &count);
		reason = end == NULL ? "the file was cut short or altered"
				     : read_baselines(book, strchr(text, '\n') + 1, end, count);
	}
	if (reason == NULL)
		return 0;
	book->count = 0;
	*ret_reason = reason;
	return -EBADMSG;
}
