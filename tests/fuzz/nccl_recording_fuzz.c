// SPDX-License-Identifier: BSD-3-Clause
// Fuzzes NCCL recordings. Any bytes are a recording, or are rejected with line and reason. The
// numbers of a parsed recording must be within its bounds.
#include <lib/must.h>
#include <support/fuzz.h>

#include <replay.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
	struct replay replay;
	struct parse_error error;
	uint32_t line;
	char *text = malloc(size + 1);

	must(text != NULL);
	if (size > 0)
		memcpy(text, data, size);
	text[size] = '\0';
	if (replay_parse(&replay, text, size, &error, &line) == 0) {
		for (size_t n = 0; n < replay.count; n++) {
			must(replay.calls[n].event <= replay.event_max);
			must(replay.calls[n].comm < (int64_t)replay.comm_max);
		}
	} else {
		must(memchr(error.text, '\0', sizeof(error.text)) != NULL);
	}
	replay_fini(&replay);
	return 0;
}
