// SPDX-License-Identifier: BSD-3-Clause
// HEALTH [node]: what is wrong, and how many are not. Answered from the table, in no time.
//
// Until verdicts exist this is what the overlay alone has found; what it cannot know is unknown.
#include "answers.h"
#include "finding.h"
#include "listing.h"
#include "names.h"
#include "roll.h"
#include "server.h"

#include <lib/hostlist.h>
#include <lib/scoped.h>
#include <lib/show.h>

#include <errno.h>
#include <inttypes.h>
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
	uint32_t missing;    // of the roster: known to no table
	char *missing_names; // as a hostlist
};

static void drop(void *work) {
	struct health *health = work;

	free(health->missing_names);
	free(health->rows);
	free(health);
}

static void say_missing(struct session *session, const struct health *health) {
	bool fits = strlen(health->missing_names) <= MISSING_COLUMNS;

	text_print(
		&session->out, "%u of %u expected are not known: %.*s%s\n", health->missing,
		overlay_expected(session->server->overlay), MISSING_COLUMNS, health->missing_names,
		fits ? "" : "..."
	);
}

static void say_head(struct session *session, void *work) {
	struct health *health = work;
	const struct ras_view *view = &health->view;

	text_print(
		&session->out,
		"%s: %u of %u agents answer, %u suspect, %u unreachable, %u dead, %u left, "
		"%u in maintenance\n",
		finding_grade_name(health->grade), view->alive - view->suspect - view->unreachable,
		view->alive + view->dead, view->suspect, view->unreachable, view->dead, view->left,
		health->maint
	);
	if (!view->joined)
		text_print(&session->out, "This node is not a member of a ring yet.\n");
	if (view->brake)
		text_print(
			&session->out,
			"Too many fell silent at once to judge them: deaths by silence are held.\n"
		);
	if (health->missing > 0)
		say_missing(session, health);
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
	show_cell(name, 20, node);
	show_duration(roll_age_ns(session, peer.since_ns), age);
	show_cell(finding.evidence, 45, evidence);
	text_print(
		&session->out, "%-20s %-11s %-10s %-10s %s\n", node, ras_state_name(peer.state),
		finding.verdict, age, evidence
	);
}

// Who says so: a client that comes back can tell whether it is still the same start of this agent.
static json_t *facts(struct session *session, void *work) {
	const struct client_server *server = session->server;
	const struct ras *ras = session_ras(session);
	const struct health *health = work;
	const struct ras_view *view = &health->view;
	char node[NAMES_TEXT_BYTES], digest[32];
	struct ras_peer self = {0};

	names_id(ras, ras_self_id(ras), node);
	ras_peer_find(ras, ras_self_id(ras), &self);
	snprintf(digest, sizeof(digest), "0x%016" PRIx64, view->digest);
	return json_pack(
		"{s:s,s:o,s:s,s:s,s:I,s:I,s:s,s:i,s:i,s:i,s:i,s:i,s:i,s:b,s:b,s:i,s:i,s:s}",
		"grade", finding_grade_name(health->grade), "node", roll_name_json(node), "version",
		server->version, "cluster", server->cluster, "start",
		(json_int_t)ras_incarnation_start(self.incarnation), "view",
		(json_int_t)view->number, "digest", digest, "alive", (int)view->alive, "suspect",
		(int)view->suspect, "unreachable", (int)view->unreachable, "dead", (int)view->dead,
		"left", (int)view->left, "maint", (int)health->maint, "brake", view->brake,
		"joined", view->joined, "expected", (int)overlay_expected(server->overlay),
		"missing", (int)health->missing, "missing_nodes", health->missing_names
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

static void look(struct session *session, struct health *health) {
	const struct ras *ras = session_ras(session);
	struct finding finding;
	struct ras_peer peer;

	ras_view(ras, &health->view);
	if (health->view.brake || !health->view.joined)
		health->grade = FINDING_UNKNOWN;
	for (uint32_t n = 0; n < health->listing.count; n++) {
		if (!roll_peer(ras, &health->rows[n], &peer))
			continue;
		finding_of(&peer, &finding);
		health->grade = finding_worse(health->grade, finding.grade);
		health->maint += peer.maint;
	}
}

void answer_health(struct session *session, const char *rest) {
	struct health *health;
	struct ras_peer peer;
	bool only = *rest != '\0';
	uint64_t id = 0;

	if (only) {
		if (!names_only(session, rest, &peer))
			return;
		id = peer.record->id;
	}
	health = calloc(1, sizeof(*health));
	if (!session_begin(session, listing_step, drop, health))
		return;
	health->listing.ops = &ops;
	if (find_missing(session, health) < 0 ||
	    roll_call(
		    session_ras(session), is_worth_a_row, only ? &id : NULL, &health->rows,
		    &health->listing.count
	    ) < 0) {
		session_end(session);
		session_fail(session, "out of memory");
		return;
	}
	look(session, health);
	if (!only && health->missing > 0)
		health->grade = finding_worse(health->grade, FINDING_UNKNOWN);
}
