// SPDX-License-Identifier: BSD-3-Clause
// Shows the answer of PEERS: the table of nodes, the worst first, those that are missing last.
#include "show/answers.h"

#include <inttypes.h>
#include <string.h>

#define DIGEST_PREFIX "0x"

static const char *note_of(const json_t *peer) {
	if (fact_holds(peer, "maint"))
		return "maint";
	if (fact_holds(peer, "sole"))
		return "sole";
	return fact_holds(peer, "self") ? "self" : "";
}

static void say_peer(struct page *page, const json_t *peer) {
	char node[SHOW_BYTES], age[SHOW_BYTES], where[SHOW_BYTES];
	bool missing = fact_is(peer, "state", "missing");
	const char *cause = fact_word(peer, "cause");

	fact_seconds(peer, "for_s", age);
	page_print(
		page, "%-22s %-11s %-12s %-11s %-5s %s\n",
		page_cell(page, fact_name(peer, "node"), 22, node), fact_name(peer, "state"), age,
		cause[0] != '\0' && strcmp(cause, "none") != 0 ? cause : "-", note_of(peer),
		missing ? "expected, not seen"
			: page_cell(page, fact_name(peer, "address"), 34, where)
	);
}

void show_peers(struct page *page, const json_t *answer) {
	const json_t *peers = json_object_get(answer, "peers"), *peer;
	const char *digest = fact_word(answer, "digest");
	uint64_t missing = fact_number(answer, "missing");
	char missing_text[32] = "";
	size_t n;

	if (strncmp(digest, DIGEST_PREFIX, strlen(DIGEST_PREFIX)) == 0)
		digest += strlen(DIGEST_PREFIX);
	if (missing > 0)
		snprintf(missing_text, sizeof(missing_text), ", %" PRIu64 " missing", missing);
	page_print(
		page,
		"%" PRIu64 " alive (%" PRIu64 " suspect, %" PRIu64 " unreachable), %" PRIu64
		" dead, %" PRIu64 " left%s; view %" PRIu64
		" %s%s\n\n%-22s %-11s %-12s %-11s %-5s %s\n",
		fact_number(answer, "alive"), fact_number(answer, "suspect"),
		fact_number(answer, "unreachable"), fact_number(answer, "dead"),
		fact_number(answer, "left"), missing_text, fact_number(answer, "view"), digest,
		fact_holds(answer, "joined") ? "" : "; not joined yet", "NODE", "STATE", "FOR",
		"CAUSE", "NOTE", "ADDRESS"
	);
	json_array_foreach(peers, n, peer) say_peer(page, peer);
}
