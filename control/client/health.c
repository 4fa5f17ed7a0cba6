// SPDX-License-Identifier: BSD-3-Clause
// HEALTH [node]: what is wrong, and how many are not. Answered from the table, in no time.
//
// Until verdicts exist this is what the overlay alone has found; what it cannot know is unknown.
#include "answers.h"
#include "listing.h"
#include "names.h"
#include "roll.h"
#include "server.h"

#include <control/finding.h>
#include <lib/hostlist.h>
#include <lib/scoped.h>
#include <lib/show.h>

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MISSING_COLUMNS 64 // of their names in the text; all of them are in JSON

struct health {
	struct listing listing;
	struct roll_row *rows; // of those there is something to say of
	enum finding_grade grade;
	struct ras_view view;
	uint32_t maint;
	uint32_t missing;		      // of the roster: known to no table
	char *missing_names;		      // as a hostlist
	char address_words[STATE_TEXT_BYTES]; // what is wrong with the one we tell; ""
	char join_words[STATE_TEXT_BYTES];    // why we are no member; ""
	struct overlay_strangers strangers;   // count 0: none
	bool only;			      // one node is asked about
	uint64_t id;			      // this one
};

static void drop(void *work) {
	struct health *health = work;

	free(health->missing_names);
	free(health->rows);
	free(health);
}

static void say_missing(struct session *session, const struct health *health) {
	bool fits = session->whole || strlen(health->missing_names) <= MISSING_COLUMNS;
	int columns = fits ? INT_MAX : MISSING_COLUMNS;

	text_print(
		&session->out, "%u of %u expected are not seen: %.*s%s\n", health->missing,
		overlay_expected(session->server->overlay), columns, health->missing_names,
		fits ? "" : "..."
	);
}

// The same number of members as `tocsin status` counts: who is missing is one of them.
static void say_counts(struct session *session, const struct health *health) {
	const struct ras_view *view = &health->view;

	text_print(
		&session->out,
		"%s: %u of %u agents answer, %u suspect, %u unreachable, %u dead, %u left, "
		"%u in maintenance\n",
		finding_grade_name(health->grade), view->alive - view->suspect - view->unreachable,
		view->alive + view->dead + health->missing, view->suspect, view->unreachable,
		view->dead, view->left, health->maint
	);
}

static void say_one(struct session *session, const struct health *health) {
	struct ras_peer peer = {.state = RAS_UNKNOWN};
	char name[NAMES_TEXT_BYTES];

	ras_peer_find(session_ras(session), health->id, &peer);
	names_id(session_ras(session), health->id, name);
	text_print(
		&session->out, "%s: %s %s %s\n", finding_grade_name(health->grade), name,
		peer.state == RAS_LEFT ? "has" : "is", ras_state_name(peer.state)
	);
}

static void say_strangers(struct session *session, const struct health *health) {
	char address[SOCK_ADDR_TEXT_BYTES], age[SHOW_BYTES];

	sock_addr_format(&health->strangers.last, address);
	show_duration(roll_age_ns(session, health->strangers.last_ns), age);
	text_print(
		&session->out,
		"Turned away: %u connections without the key, the last from %s, %s ago\n",
		health->strangers.count, address, age
	);
}

static json_t *strangers_json(struct session *session, const struct health *health) {
	char address[SOCK_ADDR_TEXT_BYTES];

	if (health->strangers.count == 0)
		return json_null();
	sock_addr_format(&health->strangers.last, address);
	return json_pack(
		"{s:i,s:s,s:o}", "count", (int)health->strangers.count, "last", address, "at",
		roll_time_json(session, health->strangers.last_ns)
	);
}

static void say_head(struct session *session, void *work) {
	struct health *health = work;
	const struct ras_view *view = &health->view;

	if (health->only)
		say_one(session, health);
	else
		say_counts(session, health);
	if (!view->joined)
		text_print(&session->out, "This node is not a member of a ring yet.\n");
	if (health->join_words[0] != '\0')
		text_print(&session->out, "  %s\n", health->join_words);
	if (health->strangers.count > 0)
		say_strangers(session, health);
	if (view->brake)
		text_print(
			&session->out,
			"Too many fell silent at once to judge them: deaths by silence are held.\n"
		);
	if (health->missing > 0 && !health->only)
		say_missing(session, health);
	if (health->address_words[0] != '\0')
		text_print(
			&session->out, "The address that this node tells others:\n  %s\n",
			health->address_words
		);
	if (health->listing.count > 0)
		text_print(
			&session->out, "\n%-20s %-11s %-10s %-10s %s\n", "NODE", "AGENT", "VERDICT",
			"FOR", "EVIDENCE"
		);
}

static void say_row(struct session *session, void *work, uint32_t n) {
	struct health *health = work;
	char name[NAMES_TEXT_BYTES], node[SHOW_BYTES], age[SHOW_BYTES], evidence[SHOW_BYTES];
	struct finding finding;
	struct ras_peer peer;

	if (!roll_peer(session_ras(session), &health->rows[n], &peer))
		return;
	finding_of(&peer, &finding);
	names_record(peer.record, name);
	show_duration(roll_age_ns(session, peer.since_ns), age);
	text_print(
		&session->out, "%-20s %-11s %-10s %-10s %s\n",
		session_cell(session, name, 20, node), ras_state_name(peer.state), finding.verdict,
		age, session_cell(session, finding.evidence, 45, evidence)
	);
}

// Who says so, and of whom the grade is (null: of all): a client that comes back can tell whether
// it is still the same start of this agent.
static json_t *facts(struct session *session, void *work) {
	const struct client_server *server = session->server;
	const struct ras *ras = session_ras(session);
	const struct health *health = work;
	const struct ras_view *view = &health->view;
	char node[NAMES_TEXT_BYTES], of[NAMES_TEXT_BYTES], digest[32];
	struct ras_peer self = {0};

	names_id(ras, ras_self_id(ras), node);
	names_id(ras, health->only ? health->id : ras_self_id(ras), of);
	ras_peer_find(ras, ras_self_id(ras), &self);
	snprintf(digest, sizeof(digest), "0x%016" PRIx64, view->digest);
	return json_pack(
		"{s:s,s:o,s:o,s:s,s:s,s:I,s:I,s:s,s:i,s:i,s:i,s:i,s:i,s:i,s:b,s:b,s:i,s:i,s:s,s:o,s:o,s:o}",
		"grade", finding_grade_name(health->grade), "of",
		health->only ? roll_name_json(of) : json_null(), "node", roll_name_json(node),
		"version", server->version, "cluster", server->cluster, "start",
		(json_int_t)ras_incarnation_start(self.incarnation), "view",
		(json_int_t)view->number, "digest", digest, "alive", (int)view->alive, "suspect",
		(int)view->suspect, "unreachable", (int)view->unreachable, "dead", (int)view->dead,
		"left", (int)view->left, "maint", (int)health->maint, "brake", view->brake,
		"joined", view->joined, "expected", (int)overlay_expected(server->overlay),
		"missing", (int)health->missing, "missing_nodes", health->missing_names,
		"address_problem",
		health->address_words[0] != '\0' ? roll_name_json(health->address_words)
						 : json_null(),
		"join_problem",
		health->join_words[0] != '\0' ? roll_name_json(health->join_words) : json_null(),
		"strangers", strangers_json(session, health)
	);
}

static json_t *row_json(struct session *session, void *work, uint32_t n) {
	struct health *health = work;
	char name[NAMES_TEXT_BYTES];
	struct finding finding;
	struct ras_peer peer;

	if (!roll_peer(session_ras(session), &health->rows[n], &peer))
		return json_null();
	finding_of(&peer, &finding);
	names_record(peer.record, name);
	return json_pack(
		"{s:o,s:s,s:s,s:s,s:s,s:b,s:o,s:f}", "node", roll_name_json(name), "state",
		ras_state_name(peer.state), "grade", finding_grade_name(finding.grade), "verdict",
		finding.verdict, "evidence", finding.evidence, "maint", peer.maint, "since",
		roll_time_json(session, peer.since_ns), "for_s",
		(double)roll_age_ns(session, peer.since_ns) / (double)RAS_NS_PER_SEC
	);
}

static const struct listing_ops ops = {
	.key = "findings", .facts = facts, .head = say_head, .row = say_row, .row_json = row_json};

static bool is_worth_a_row(const struct ras_peer *peer, const void *ctx) {
	const uint64_t *only = ctx;

	if (only != NULL)
		return peer->record->id == *only;
	return peer->maint || (peer->state != RAS_ALIVE && peer->state != RAS_LEFT);
}

// Nobody knows them, so they have no row; that they are not there is still not fine.
static int find_missing(struct session *session, struct health *health) {
	const struct overlay *overlay = session->server->overlay;
	scoped_mem const char **names = NULL;
	uint32_t cursor = 0;
	const char *name;

	names = calloc((size_t)overlay_expected(overlay) + 1, sizeof(*names));
	if (names == NULL)
		return -ENOMEM;
	while ((name = overlay_missing_next(overlay, &cursor)) != NULL)
		names[health->missing++] = name;
	return hostlist_compress(names, health->missing, &health->missing_names);
}

// Of one node, where all are not asked about.
static void grade_one(struct session *session, struct health *health, const struct ras_peer *peer) {
	const struct overlay_reach *reach = overlay_reach(session->server->overlay);
	bool self = peer->record->id == ras_self_id(session_ras(session));
	struct finding finding;

	finding_of(peer, &finding);
	health->grade = finding.grade;
	if (self && reach->state == OVERLAY_REACH_UNPROVEN)
		health->grade = finding_worse(health->grade, FINDING_WARNING);
	if (health->view.brake || !health->view.joined)
		health->grade = finding_worse(health->grade, FINDING_UNKNOWN);
}

static bool is_of_another(const struct session *session, const struct health *health) {
	return health->only && health->id != ras_self_id(session_ras(session));
}

static void look(struct session *session, struct health *health) {
	const struct overlay *overlay = session->server->overlay;
	const struct overlay_reach *reach = overlay_reach(overlay);
	char words[STATE_TEXT_BYTES];
	struct finding_sum sum;
	struct ras_peer peer;

	finding_of_all(overlay, &sum);
	health->grade = sum.grade;
	for (uint32_t n = 0; n < health->listing.count; n++) {
		if (roll_peer(overlay_ras(overlay), &health->rows[n], &peer))
			health->maint += peer.maint;
	}
	if (is_of_another(session, health))
		return;
	overlay_strangers(overlay, &health->strangers);
	if (overlay_join_problem(overlay, words))
		names_text(words, strlen(words), health->join_words, sizeof(health->join_words));
	if (reach->state == OVERLAY_REACH_UNPROVEN)
		names_text(
			reach->words, strlen(reach->words), health->address_words,
			sizeof(health->address_words)
		);
}

void answer_health(struct session *session, const char *rest) {
	struct health *health;
	struct ras_peer peer;
	bool only = *rest != '\0';

	if (only && !names_only(session, rest, &peer))
		return;
	health = calloc(1, sizeof(*health));
	if (!session_begin(session, listing_step, drop, health))
		return;
	health->listing.ops = &ops;
	health->only = only;
	if (only)
		health->id = peer.record->id;
	if (find_missing(session, health) < 0 ||
	    roll_call(
		    session_ras(session), is_worth_a_row, only ? &health->id : NULL, &health->rows,
		    &health->listing.count
	    ) < 0) {
		session_end(session);
		session_fail(session, "out of memory");
		return;
	}
	ras_view(session_ras(session), &health->view);
	look(session, health);
	if (only)
		grade_one(session, health, &peer);
}
