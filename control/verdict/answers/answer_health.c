// SPDX-License-Identifier: BSD-3-Clause
// HEALTH [node|*]: the nodes with a problem, and the number of the others. With * it lists all
// members and the advice for each. The answer comes from the verdict store and needs no question to
// other nodes.
#include "client/absent.h"
#include "client/answers.h"
#include "client/listing.h"
#include "client/names.h"
#include "client/peer_list.h"
#include "client/server.h"

#include <control/finding.h>
#include <control/health.h>
#include <lib/hostlist.h>
#include <lib/scoped.h>
#include <lib/show.h>
#include <records/findings.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VERSIONS_MAX 8 // further versions are counted together

struct survey {
	struct listing listing;
	struct peer_list_row *rows; // peers that get a row
	uint32_t row_count;
	struct absent absent; // absent roster nodes, listed after the rows
	enum finding_grade grade;
	struct ras_view view;
	uint32_t maint;
	uint32_t missing;		      // all absent nodes, even if one node is asked about
	char *missing_names;		      // as a hostlist
	char address_words[STATE_TEXT_BYTES]; // problem of the advertised address; ""
	char join_words[STATE_TEXT_BYTES];    // why this node has not joined; ""
	struct overlay_strangers strangers;   // count 0: none
	bool only;			      // one node is asked about
	uint64_t id;			      // id of that node
};

static void health_drop(void *work) {
	struct survey *survey = work;

	absent_fini(&survey->absent);
	free(survey->missing_names);
	free(survey->rows);
	free(survey);
}

static json_t *strangers_json(struct session *session, const struct survey *survey) {
	char address[SOCK_ADDR_TEXT_BYTES], at[SHOW_BYTES];

	if (survey->strangers.count == 0)
		return json_null();
	sock_addr_format(&survey->strangers.last, address);
	return json_pack(
		"{s:i,s:s,s:s,s:I}", "count", (int)survey->strangers.count, "last", address, "at",
		time_text(session, survey->strangers.last_ns, at), "ago_ns",
		(json_int_t)time_age_ns(session, survey->strangers.last_ns)
	);
}

static json_t *mistakes_json(struct session *session, const struct survey *survey) {
	char words[STATE_TEXT_BYTES], clean[STATE_TEXT_BYTES];
	json_t *array = json_array();
	uint32_t cursor = 0;

	// An answer about one node has none, because mistakes concern several nodes.
	while (!survey->only && overlay_mistake_next(session->server->overlay, &cursor, words)) {
		names_sanitize_text(words, strlen(words), clean, sizeof(clean));
		json_array_append_new(array, safe_string_json(clean));
	}
	return array;
}

struct version_count {
	char version[RAS_VERSION_MAX + 1]; // "": all further versions
	uint32_t count;
};

static int version_counts_compare(const void *left, const void *right) {
	const struct version_count *a = left, *b = right;

	if (a->count != b->count)
		return a->count > b->count ? -1 : 1;
	return strcmp(a->version, b->version);
}

// Count the living members by the version of their agents, the most frequent version first.
static json_t *versions_json(const struct ras *ras, const struct ras_view *view) {
	struct version_count counts[VERSIONS_MAX + 1] = {0};
	json_t *array = json_array();
	struct ras_peer_info info;
	struct ras_peer peer;
	uint32_t used = 0, n;

	for (uint32_t slot = 0; slot < view->slots_max; slot++) {
		if (ras_peer_at(ras, slot, &peer) < 0 ||
		    (peer.state != RAS_ALIVE && peer.state != RAS_SUSPECT &&
		     peer.state != RAS_UNREACHABLE))
			continue;
		ras_record_info(peer.record, &info);
		for (n = 0; n < used && strcmp(counts[n].version, info.version) != 0; n++) {
		}
		if (n == used && used < VERSIONS_MAX)
			memcpy(counts[used++].version, info.version, sizeof(info.version));
		counts[n].count++;
	}
	qsort(counts, used, sizeof(counts[0]), version_counts_compare);
	for (n = 0; n <= used; n++) {
		if (counts[n].count > 0)
			json_array_append_new(
				array, json_pack(
					       "{s:o,s:i}", "version",
					       n < used ? safe_string_json(counts[n].version)
							: json_null(),
					       "count", (int)counts[n].count
				       )
			);
	}
	return array;
}

// Return the start of the verdict if it has ever changed, else of the peer's state. 0 means
// unknown: this agent has not started to join.
static uint64_t since_ns(const struct ras_peer *peer, const struct finding *finding) {
	bool changed = finding->has_view && finding->view.since_ns != 0;

	return changed ? finding->view.since_ns : peer->since_ns;
}

// Return the members before the rows. They include the answering node with its start number, so
// that a client notices a restart. "of" is the node that the grade is about; null: all.
static json_t *health_facts(struct session *session, void *work) {
	const struct client_server *server = session->server;
	const struct ras *ras = session_ras(session);
	const struct survey *survey = work;
	const struct ras_view *view = &survey->view;
	uint64_t granter =
		server->config.health != NULL ? health_granter(server->config.health) : 0;
	char node[NAMES_TEXT_BYTES], of[NAMES_TEXT_BYTES] = "", digest[32];
	char granter_name[NAMES_TEXT_BYTES] = "";
	json_t *waiting = json_null();
	struct ras_peer self = {0};

	if (view->waits)
		waiting = json_pack(
			"{s:i,s:i,s:i,s:s}", "reached", (int)view->reached, "of",
			(int)view->reached_of, "misses", (int)(view->reached_of - view->reached),
			"command", "tocsin forget --unreachable"
		);
	if (granter != 0) // the node that grants drains, as this node sees it
		names_format_id(ras, granter, granter_name);

	names_format_id(ras, ras_self_id(ras), node);
	if (survey->only && survey->absent.count > 0)
		names_sanitize_name(survey->absent.names[0], strlen(survey->absent.names[0]), of);
	else if (survey->only)
		names_format_id(ras, survey->id, of);
	ras_peer_find(ras, ras_self_id(ras), &self);
	snprintf(digest, sizeof(digest), "0x%016" PRIx64, view->digest);
	return json_pack(
		"{s:s,s:o,s:o,s:s,s:s,s:I,s:I,s:s,s:i,s:i,s:i,s:i,s:i,s:i,s:b,s:b,s:i,s:i,s:s,s:o,s:o,"
		"s:o,s:o,s:b,s:o,s:o,s:b,s:o}",
		"grade", finding_grade_name(survey->grade), "of",
		survey->only ? safe_string_json(of) : json_null(), "node", safe_string_json(node),
		"version", server->version, "cluster", server->cluster, "start",
		(json_int_t)ras_incarnation_start(self.incarnation), "view",
		(json_int_t)view->number, "digest", digest, "alive", (int)view->alive, "suspect",
		(int)view->suspect, "unreachable", (int)view->unreachable, "dead", (int)view->dead,
		"left", (int)view->left, "maint", (int)survey->maint, "brake", view->brake,
		"joined", view->joined, "expected", (int)overlay_roster_count(server->overlay),
		"missing", (int)survey->missing, "missing_nodes", survey->missing_names,
		"address_problem",
		survey->address_words[0] != '\0' ? safe_string_json(survey->address_words)
						 : json_null(),
		"join_problem",
		survey->join_words[0] != '\0' ? safe_string_json(survey->join_words) : json_null(),
		"strangers", strangers_json(session, survey), "waiting", waiting, "alone",
		overlay_is_alone(server->overlay), "mistakes", mistakes_json(session, survey),
		"granter", granter != 0 ? safe_string_json(granter_name) : json_null(), "act",
		server->config.health == NULL || !health_observes_only(server->config.health),
		"versions", survey->only ? json_array() : versions_json(ras, view)
	);
}

// Fills the members that tell how sure the verdict is.
static void
fill_view(struct session *session, const struct finding *finding, struct finding_row *row) {
	const struct verdict_view *view = &finding->view;

	row->withheld = finding->withheld;
	row->would = finding->would != VERDICT_ADVICE_NOTHING ? verdict_advice_name(finding->would)
							      : NULL;
	row->looked_ns = time_for_ns(session, finding->has_view ? view->looked_ns : 0);
	if (!finding->has_view)
		return;
	row->confidence = view->confidence == VERDICT_SURE ? "sure" : "likely";
	row->both_planes = view->both_planes;
}

// When an absent node went is unknown: no node saw it.
static json_t *absent_json(struct session *session, const char *name) {
	const struct ras_peer nobody = {.state = RAS_UNKNOWN};
	struct finding_row row = {
		.node = name,
		.state = ABSENT_STATE,
		.observers = json_array(),
		.for_ns = RECORD_UNKNOWN,
	};
	struct finding finding;

	finding_for_peer(session->server->config.health, &nobody, &finding);
	row.grade = finding_grade_name(finding.grade);
	row.verdict = finding.verdict;
	row.reason = finding.reason;
	row.evidence = finding.evidence;
	row.advice = verdict_advice_name(finding.advice);
	fill_view(session, &finding, &row);
	return record_to_json(&finding_record, &row);
}

static json_t *row_json(struct session *session, void *work, uint32_t n) {
	struct survey *survey = work;
	char name[NAMES_TEXT_BYTES], since[SHOW_BYTES];
	char evidence[STATE_TEXT_BYTES];
	struct finding_row row = {0};
	struct finding finding;
	struct ras_peer peer;
	uint64_t began_ns;

	if (n >= survey->row_count)
		return absent_json(session, survey->absent.names[n - survey->row_count]);
	if (!peer_list_find_peer(session_ras(session), &survey->rows[n], &peer))
		return json_null();
	finding_for_peer(session->server->config.health, &peer, &finding);
	names_format_record(peer.record, name);
	names_sanitize_text(finding.evidence, strlen(finding.evidence), evidence, sizeof(evidence));
	row.node = name;
	row.state = ras_state_name(peer.state);
	row.grade = finding_grade_name(finding.grade);
	row.verdict = finding.verdict;
	row.reason = finding.reason;
	row.evidence = evidence;
	row.advice = verdict_advice_name(finding.advice);
	row.maint = peer.maint;
	row.observers = node_names_json(
		session_ras(session), finding.view.observers,
		finding.has_view ? finding.view.observer_count : 0, VERDICT_OBSERVERS_MAX
	);
	began_ns = since_ns(&peer, &finding);
	row.since = began_ns != 0 ? time_text(session, began_ns, since) : NULL;
	row.for_ns = time_for_ns(session, began_ns);
	fill_view(session, &finding, &row);
	return record_to_json(&finding_record, &row);
}

static const struct listing_ops ops = {
	.key = "findings", .facts = health_facts, .row_json = row_json};

// Selection of the rows.
struct wanted {
	const struct health *store;
	bool only, all;
	uint64_t id; // id of the only node
	char name[CLIENT_LINE_BYTES_MAX];
};

static bool peer_needs_row(const struct ras_peer *peer, const void *ctx) {
	const struct wanted *wanted = ctx;
	struct finding finding;

	if (wanted->only)
		return peer->record->id == wanted->id;
	if (wanted->all || peer->maint)
		return true;
	if (peer->state != RAS_ALIVE)
		return peer->state != RAS_LEFT;
	finding_for_peer(wanted->store, peer, &finding);
	return finding.grade != FINDING_OK;
}

// Order by grade, then by verdict; later verdicts of the enum are worse.
static uint32_t peer_badness(const struct ras_peer *peer, const void *ctx) {
	const struct wanted *wanted = ctx;
	struct finding finding;

	finding_for_peer(wanted->store, peer, &finding);
	return finding_grade_rank(finding.grade) * VERDICT_COUNT +
	       (finding.has_view ? finding.view.verdict : VERDICT_NONE);
}

// Set the grade of one node, for an answer about one node.
static void
survey_grade_node(struct session *session, struct survey *survey, const struct ras_peer *peer) {
	const struct overlay_reach *reach = overlay_reach(session->server->overlay);
	bool self = survey->id == ras_self_id(session_ras(session));
	struct finding finding;

	finding_for_peer(session->server->config.health, peer, &finding);
	survey->grade = finding.grade;
	if (self &&
	    (reach->state == OVERLAY_REACH_UNPROVEN || overlay_is_alone(session->server->overlay)))
		survey->grade = finding_worse_grade(survey->grade, FINDING_WARNING);
	if (finding_view_is_braked(&survey->view) || !survey->view.joined)
		survey->grade = finding_worse_grade(survey->grade, FINDING_UNKNOWN);
}

static void peers_survey(struct session *session, struct survey *survey) {
	const struct overlay *overlay = session->server->overlay;
	const struct overlay_reach *reach = overlay_reach(overlay);
	char words[STATE_TEXT_BYTES];
	struct cluster_finding sum;
	struct ras_peer peer;

	finding_for_cluster(overlay, session->server->config.health, &sum);
	survey->grade = sum.grade;
	for (uint32_t n = 0; n < survey->row_count; n++) {
		if (peer_list_find_peer(overlay_ras(overlay), &survey->rows[n], &peer))
			survey->maint += peer.maint;
	}
	// An agent knows the rest only of itself.
	if (survey->only && survey->id != ras_self_id(session_ras(session)))
		return;
	overlay_strangers(overlay, &survey->strangers);
	if (overlay_join_problem(overlay, words))
		names_sanitize_text(
			words, strlen(words), survey->join_words, sizeof(survey->join_words)
		);
	if (reach->state == OVERLAY_REACH_UNPROVEN)
		names_sanitize_text(
			reach->words, strlen(reach->words), survey->address_words,
			sizeof(survey->address_words)
		);
}

static bool
survey_gather(struct session *session, const struct wanted *wanted, struct survey *survey) {
	const struct peer_list_filter wish = {
		.keep = peer_needs_row, .badness = peer_badness, .ctx = wanted};
	const struct overlay *overlay = session->server->overlay;
	struct absent all;
	int err;

	// All absent nodes are counted and named; only the node asked about gets a row.
	if (absent_collect_all(overlay, &all) != 0)
		return false;
	survey->missing = all.count;
	err = hostlist_compress((const char *const *)all.names, all.count, &survey->missing_names);
	if (!wanted->only)
		survey->absent = all;
	else
		absent_fini(&all);
	if (err == 0 && wanted->only && absent_has_node(overlay, wanted->name))
		err = absent_make_single(wanted->name, &survey->absent);
	if (err < 0 ||
	    peer_list_make(session_ras(session), &wish, &survey->rows, &survey->row_count) < 0)
		return false;
	survey->listing.count = survey->row_count + survey->absent.count;
	return true;
}

// Parse the name of the only node. Returns false after an error message. An absent node is accepted
// too, with state UNKNOWN.
static bool parse_single_node(
	struct session *session, const char *rest, struct wanted *wanted, struct ras_peer *ret_peer
) {
	const char *words = rest;

	if (command_word(&words, wanted->name, sizeof(wanted->name)) && *words == '\0' &&
	    absent_has_node(session->server->overlay, wanted->name)) {
		wanted->id = ras_id(wanted->name, strlen(wanted->name));
		*ret_peer = (struct ras_peer){.state = RAS_UNKNOWN};
		return true;
	}
	if (!names_parse_single(session, rest, ret_peer))
		return false;
	wanted->id = ret_peer->record->id;
	return true;
}

void answer_health(struct session *session, const char *rest) {
	struct wanted wanted = {
		.store = session->server->config.health,
		.all = strcmp(rest, "*") == 0,
	};
	struct survey *survey;
	struct ras_peer peer;

	wanted.only = *rest != '\0' && !wanted.all;
	if (wanted.only && !parse_single_node(session, rest, &wanted, &peer))
		return;
	survey = calloc(1, sizeof(*survey));
	if (!session_begin(session, listing_step, health_drop, survey))
		return;
	survey->listing.ops = &ops;
	survey->only = wanted.only;
	survey->id = wanted.id;
	if (!survey_gather(session, &wanted, survey)) {
		session_end(session);
		session_fail(session, "out of memory");
		return;
	}
	ras_view(session_ras(session), &survey->view);
	peers_survey(session, survey);
	if (wanted.only)
		survey_grade_node(session, survey, &peer);
}
