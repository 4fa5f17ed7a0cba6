// SPDX-License-Identifier: BSD-3-Clause
// HEALTH [node]: what is wrong, and how many are not. Answered from the table, in no time.
//
// Until verdicts exist this is what the overlay alone has found; what it cannot know is unknown.
#include "answers.h"
#include "finding.h"
#include "listing.h"
#include "names.h"
#include "roll.h"
#include "show.h"

#include <stdlib.h>

struct health {
	struct listing listing;
	struct roll_row *rows; // of those there is something to say of
	enum finding_grade grade;
	struct ras_view view;
	uint32_t maint;
};

static void drop(void *work) {
	struct health *health = work;

	free(health->rows);
	free(health);
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

static json_t *facts(struct session *session, void *work) {
	struct health *health = work;
	const struct ras_view *view = &health->view;

	(void)session;
	return json_pack(
		"{s:s,s:i,s:i,s:i,s:i,s:i,s:i,s:b,s:b}", "grade", finding_grade_name(health->grade),
		"alive", (int)view->alive, "suspect", (int)view->suspect, "unreachable",
		(int)view->unreachable, "dead", (int)view->dead, "left", (int)view->left, "maint",
		(int)health->maint, "brake", view->brake, "joined", view->joined
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
		"{s:o,s:s,s:s,s:s,s:s,s:b,s:o}", "node", roll_name_json(name), "state",
		ras_state_name(peer.state), "grade", finding_grade_name(finding.grade), "verdict",
		finding.verdict, "evidence", finding.evidence, "maint", peer.maint, "since",
		roll_time_json(session, peer.since_ns)
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
	if (roll_call(
		    session_ras(session), is_worth_a_row, only ? &id : NULL, &health->rows,
		    &health->listing.count
	    ) < 0) {
		session_end(session);
		session_fail(session, "out of memory");
		return;
	}
	look(session, health);
}
