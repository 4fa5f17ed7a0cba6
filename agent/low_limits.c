// SPDX-License-Identifier: BSD-3-Clause
// Describes descriptor, thread and address space limits that are too low for an agent.
#include "low_limits.h"

#include <lib/show.h>

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

// Minimum limits. An agent in a cluster of a few nodes holds about sixty descriptors and threads.
#define OPEN_FILES_MIN 256
#define PROCESSES_MIN 256
#define ADDRESS_SPACE_MIN (UINT64_C(4) << 30)

static void text_append_item(char *text, const char *words) {
	size_t used = strlen(text);

	snprintf(text + used, LOW_LIMITS_TEXT_BYTES - used, "%s%s", used > 0 ? "; " : "", words);
}

void low_limits_describe(char ret_text[static LOW_LIMITS_TEXT_BYTES]) {
	char words[160], size[SHOW_BYTES];
	struct rlimit limit;

	ret_text[0] = '\0';
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < OPEN_FILES_MIN) {
		snprintf(
			words, sizeof(words), "%" PRIu64 " open files (ulimit -n, LimitNOFILE)",
			(uint64_t)limit.rlim_cur
		);
		text_append_item(ret_text, words);
	}
	if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur < ADDRESS_SPACE_MIN) {
		show_bytes(limit.rlim_cur, size);
		snprintf(words, sizeof(words), "%s of address space (ulimit -v, LimitAS)", size);
		text_append_item(ret_text, words);
	}
	if (getrlimit(RLIMIT_NPROC, &limit) == 0 && limit.rlim_cur < PROCESSES_MIN) {
		snprintf(
			words, sizeof(words), "%" PRIu64 " threads (ulimit -u, LimitNPROC)",
			(uint64_t)limit.rlim_cur
		);
		text_append_item(ret_text, words);
	}
}
