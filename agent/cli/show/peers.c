// SPDX-License-Identifier: BSD-3-Clause
// Shows the answer of PEERS: the table of nodes, the worst first, those that are missing last.
#include "show/answers.h"

#include <records/peers.h>

#include <inttypes.h>
#include <string.h>

#define DIGEST_PREFIX "0x"

static void show_table(struct page *page, const json_t *answer, const struct record *record) {
	const json_t *peers = json_object_get(answer, "peers");
	const char *digest = fact_word(answer, "digest");
	uint64_t missing = fact_number(answer, "missing");
	char missing_text[32] = "";

	if (strncmp(digest, DIGEST_PREFIX, strlen(DIGEST_PREFIX)) == 0)
		digest += strlen(DIGEST_PREFIX);
	if (missing > 0)
		snprintf(missing_text, sizeof(missing_text), ", %" PRIu64 " missing", missing);
	page_print(
		page,
		"%" PRIu64 " alive (%" PRIu64 " suspect, %" PRIu64 " unreachable), %" PRIu64
		" dead, %" PRIu64 " left%s; view %" PRIu64 " %s%s\n\n",
		fact_number(answer, "alive"), fact_number(answer, "suspect"),
		fact_number(answer, "unreachable"), fact_number(answer, "dead"),
		fact_number(answer, "left"), missing_text, fact_number(answer, "view"), digest,
		fact_holds(answer, "joined") ? "" : "; not joined yet"
	);
	page_table(page, record, peers, NULL);
}

void show_peers(struct page *page, const json_t *answer) {
	show_table(page, answer, &peer_record);
}

void show_peers_keys(struct page *page, const json_t *answer) {
	show_table(page, answer, &peer_key_record);
}

void show_peers_versions(struct page *page, const json_t *answer) {
	show_table(page, answer, &peer_version_record);
}
