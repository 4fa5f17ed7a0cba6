// SPDX-License-Identifier: BSD-3-Clause
// Fuzzes the bytes of a client. They must split into the same lines however they arrive, and each
// line is parsed as a command. The first byte sets the size of the pieces.
#include "client/command.h"
#include "client/lines.h"

#include <lib/must.h>
#include <support/fuzz.h>

#include <errno.h>
#include <string.h>

struct digest {
	uint64_t lines;
	uint64_t sum;
	int end;
};

static void look_at(char *line, struct digest *digest) {
	char word[32];
	const char *rest = NULL;
	enum verb verb;

	digest->lines++;
	for (const char *at = line; *at != '\0'; at++)
		digest->sum = digest->sum * 31 + (unsigned char)*at;
	verb = command_parse(line, &rest);
	must(verb < VERB_COUNT);
	must((verb == VERB_UNKNOWN) == (rest == NULL));
	if (rest == NULL)
		return;
	must(rest >= line && rest <= line + strlen(line));
	while (command_word(&rest, word, sizeof(word)))
		must(strlen(word) > 0);
}

// Feed all bytes, unless a line is too long.
static struct digest take_all(const uint8_t *data, size_t size, size_t piece) {
	char line[CLIENT_LINE_BYTES_MAX];
	struct digest digest = {0};
	struct lines lines = {0};
	size_t room;

	while (size > 0 && digest.end != -EMSGSIZE) {
		void *into = lines_room(&lines, &room);

		if (room > piece)
			room = piece;
		if (room > size)
			room = size;
		must(room > 0);
		memcpy(into, data, room);
		lines_filled(&lines, room);
		data += room;
		size -= room;
		while ((digest.end = lines_next(&lines, line)) == 0)
			look_at(line, &digest);
	}
	return digest;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
	struct digest whole, pieces;

	if (size == 0)
		return 0;
	whole = take_all(data + 1, size - 1, CLIENT_LINE_BYTES_MAX);
	pieces = take_all(data + 1, size - 1, (size_t)data[0] % 64 + 1);
	must(whole.lines == pieces.lines && whole.sum == pieces.sum && whole.end == pieces.end);
	return 0;
}
