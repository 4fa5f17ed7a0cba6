// SPDX-License-Identifier: BSD-3-Clause
// One end of a path with all that it knows: made here, and told here or by another node.
#include "client/congestion.h"
#include "client/gpus.h"
#include "client/names.h"
#include "client/paths.h"
#include "client/peer_list.h"
#include "client/server.h"

#include <lib/histogram.h>
#include <lib/show.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

// From what is remembered to JSON.

static const uint32_t asked_percentiles[] = {500000, 900000, 990000, 999000};
static const char *const percentile_names[] = {"p50_ns", "p90_ns", "p99_ns", "p999_ns"};
#define PERCENTILES (sizeof(asked_percentiles) / sizeof(asked_percentiles[0]))

static json_t *latency_json(const struct histogram *latency) {
	struct histogram_summary summary;
	uint64_t values[PERCENTILES];
	json_t *object;

	if (latency == NULL)
		return json_null();
	histogram_summarize(latency, &summary);
	if (summary.count == 0)
		return json_null();
	histogram_percentiles(latency, asked_percentiles, PERCENTILES, values);
	object = json_pack(
		"{s:I,s:I,s:I}", "count", (json_int_t)summary.count, "min_ns",
		(json_int_t)summary.min, "max_ns", (json_int_t)summary.max
	);
	for (size_t n = 0; n < PERCENTILES; n++)
		json_object_set_new(
			object, percentile_names[n], json_integer((json_int_t)values[n])
		);
	return object;
}

// Of reads, or of writes; a path that is probed in turn has both in one.
static json_t *sizes_json(const struct fabric_path_view *view, bool writes) {
	const struct path_summary *summary = &view->summary;
	const uint64_t *sent = writes ? summary->write_sent : summary->size_sent;
	const uint64_t *lost = writes ? summary->write_lost : summary->size_lost;
	struct path_size_times times[PATH_SIZES] = {{0}};
	json_t *sizes = json_array();

	if (view->memory != NULL)
		path_memory_times(view->memory, writes, times);
	for (uint32_t n = 0; n < PATH_SIZES; n++) {
		bool timed = times[n].answers > 0;

		json_array_append_new(
			sizes,
			json_pack(
				"{s:i,s:I,s:I,s:i,s:o,s:o,s:o}", "bytes",
				(int)(probe_bytes[n] != 0 ? probe_bytes[n] : view->mtu), "sent",
				(json_int_t)sent[n], "lost", (json_int_t)lost[n], "recent",
				(int)times[n].answers, "min_ns",
				timed ? json_integer((json_int_t)times[n].min_ns) : json_null(),
				"median_ns",
				timed ? json_integer((json_int_t)times[n].median_ns) : json_null(),
				"p99_ns",
				timed ? json_integer((json_int_t)times[n].p99_ns) : json_null()
			)
		);
	}
	return sizes;
}

// Seconds since, or null.
static json_t *age_json(struct session *session, uint64_t at_ns) {
	if (at_ns == RAS_NEVER)
		return json_null();
	return json_real((double)time_age_ns(session, at_ns) / (double)RAS_NS_PER_SEC);
}

static json_t *flows_json(const struct fabric_path_view *view) {
	json_t *flows = json_array();

	for (uint32_t n = 0; n < view->flow_count; n++) {
		const struct fabric_flow *flow = &view->flows[n];

		json_array_append_new(
			flows,
			json_pack(
				"{s:i,s:b,s:b,s:I,s:I,s:I,s:I,s:I}", "label", (int)flow->label,
				"current", flow->current, "bad", flow->bad, "probes",
				(json_int_t)flow->probes, "lost", (json_int_t)flow->lost, "late",
				(json_int_t)flow->late, "median_ns", (json_int_t)flow->median_ns,
				"p99_ns", (json_int_t)flow->p99_ns
			)
		);
	}
	return flows;
}

static json_t *path_json(struct session *session, const struct fabric_path_view *view) {
	const struct client_server *server = session->server;
	struct ras_merged_path path = {.node = ras_self_id(session_ras(session))};
	json_t *object, *more;

	server->fabric_calls->path_row(server->fabric, view, &path.row);
	object = paths_row_json(session, &path);
	more = json_pack(
		"{s:b,s:b,s:i,s:i,s:s,s:b,s:I,s:o,s:o,s:o,s:o,s:o}", "pair_up", view->watched,
		"pair_known", view->known, "mtu", (int)view->mtu, "flow_label",
		(int)view->flow_label, "responder",
		view->known ? device_responder_name(view->responder) : "unknown", "shares_overlay",
		view->shares, "baseline_mad_ns", (json_int_t)view->summary.baseline_mad_ns,
		"last_answer_s", age_json(session, view->summary.last_answer_ns), "last_probe_s",
		age_json(session, view->summary.last_probe_ns), "sizes", sizes_json(view, false),
		"writes", sizes_json(view, true), "latency", latency_json(view->latency)
	);
	json_object_update(object, more);
	json_object_set_new(object, "flows", flows_json(view));
	json_object_set_new(object, "gpu", gpu_path_json(session, &view->gpu));
	json_object_set_new(object, "congestion", congestion_json(session, view->device));
	json_decref(more);
	return object;
}

json_t *paths_end_json(struct session *session, const struct ras_peer *peer) {
	const struct client_server *server = session->server;
	char self[NAMES_TEXT_BYTES], name[NAMES_TEXT_BYTES];
	struct fabric_numbers numbers = {0};
	json_t *paths = json_array();
	struct fabric_path_view view;
	uint32_t cursor = 0, devices = 0;

	names_id(session_ras(session), ras_self_id(session_ras(session)), self);
	names_record(peer->record, name);
	if (server->fabric != NULL) {
		server->fabric_calls->numbers(server->fabric, &numbers);
		devices = server->fabric_calls->device_count(server->fabric);
	}
	while (server->fabric != NULL &&
	       server->fabric_calls->path_next(server->fabric, &cursor, &view)) {
		if (view.peer == peer->record->id)
			json_array_append_new(paths, path_json(session, &view));
	}
	return json_pack(
		"{s:o,s:o,s:i,s:b,s:o}", "node", peer_name_json(self), "peer", peer_name_json(name),
		"devices", (int)devices, "probing", numbers.probes.interval_ns != 0, "paths", paths
	);
}

// From JSON to text: what is not there, or of another type, is 0 or "?".

static uint64_t number_of(const json_t *object, const char *key) {
	json_int_t value = json_integer_value(json_object_get(object, key));

	return value > 0 ? (uint64_t)value : 0;
}

#define WORD_BYTES 64
// A device of ours is read with one of theirs; more is said by nobody who means it.
#define SAID_MAX ((size_t)FABRIC_DEVICES_MAX * 2)

static void word_of(const json_t *object, const char *key, char word[static WORD_BYTES]) {
	const char *value = json_string_value(json_object_get(object, key));

	if (value == NULL || value[0] == '\0')
		value = "?";
	names_text(value, strlen(value), word, WORD_BYTES);
}

static void time_of(const json_t *object, const char *key, char text[static SHOW_BYTES]) {
	uint64_t ns = number_of(object, key);

	if (ns == 0)
		snprintf(text, SHOW_BYTES, "-");
	else
		show_duration(ns, text);
}

// "11.9", by which a time is multiplied; "" where one of the two is not known.
static void show_drift(uint64_t now_ns, uint64_t usual_ns, char text[static SHOW_BYTES]) {
	text[0] = '\0';
	if (now_ns > 0 && usual_ns > 0)
		snprintf(text, SHOW_BYTES, "%.2f", (double)now_ns / (double)usual_ns);
}

static void say_latency(struct text *out, const json_t *path) {
	char median[SHOW_BYTES], usual[SHOW_BYTES], spread[SHOW_BYTES], drift[SHOW_BYTES];
	char min[SHOW_BYTES], p99[SHOW_BYTES];

	time_of(path, "median_ns", median);
	time_of(path, "baseline_ns", usual);
	time_of(path, "baseline_mad_ns", spread);
	time_of(path, "min_ns", min);
	time_of(path, "p99_ns", p99);
	show_drift(number_of(path, "median_ns"), number_of(path, "baseline_ns"), drift);
	text_print(out, "  latency   median %s, least %s, p99 %s", median, min, p99);
	if (drift[0] != '\0')
		text_print(out, "; usually %s +- %s: drift x%s", usual, spread, drift);
	else if (json_is_true(json_object_get(path, "steady")))
		text_print(out, "; what is usual is not learnt yet");
	else
		text_print(out, "; read in turn: no usual time");
	text_print(out, "\n");
}

static void say_loss(struct text *out, const json_t *path) {
	uint64_t permille = number_of(path, "lost_permille");
	uint64_t lost = number_of(path, "lost"), sent = lost + number_of(path, "answered");

	text_print(out, "  loss      %" PRIu64 " of %" PRIu64 " probes", lost, sent);
	if (permille > 0)
		text_print(
			out, "; lately %" PRIu64 ".%" PRIu64 " %% of what is large", permille / 10,
			permille % 10
		);
	text_print(out, "\n");
}

// "0.4 s ago", "never".
static void show_ago(const json_t *path, const char *key, char text[static SHOW_BYTES]) {
	const json_t *value = json_object_get(path, key);
	char age[SHOW_BYTES];
	double age_s;

	snprintf(text, SHOW_BYTES, "never");
	if (!json_is_number(value))
		return;
	age_s = json_number_value(value);
	show_duration(age_s > 0 && age_s < UINT32_MAX ? (uint64_t)(age_s * 1e9) : 0, age);
	snprintf(text, SHOW_BYTES, "%.50s ago", age);
}

static void say_pair(struct text *out, const json_t *path) {
	bool steady = json_is_true(json_object_get(path, "steady"));
	char responder[WORD_BYTES], answer[SHOW_BYTES], probe[SHOW_BYTES];

	word_of(path, "responder", responder);
	show_ago(path, "last_answer_s", answer);
	show_ago(path, "last_probe_s", probe);
	text_print(
		out, "  probes    %s; the last %s, the last answer %s\n",
		steady ? "steadily" : "in turn", probe, answer
	);
	if (!json_is_true(json_object_get(path, "pair_known"))) {
		text_print(out, "  pair      %s\n", steady ? "none yet" : "on demand");
		return;
	}
	text_print(
		out, "  pair      %s; MTU %" PRIu64 ", flow label %#" PRIx64 ", answered by %s%s\n",
		json_is_true(json_object_get(path, "pair_up")) ? "up" : "down",
		number_of(path, "mtu"), number_of(path, "flow_label"), responder,
		json_is_true(json_object_get(path, "shares_overlay"))
			? ", on the overlay's interface"
			: ""
	);
}

// Each way that a label chose; nothing where there was but one.
static void say_flows(struct text *out, const json_t *flows) {
	char lost[SHOW_BYTES], late[SHOW_BYTES], probes[SHOW_BYTES], median[SHOW_BYTES];
	const json_t *flow;
	size_t n;

	if (json_array_size(flows) < 2)
		return;
	json_array_foreach(flows, n, flow) {
		if (n == PAIRING_FLOWS)
			break;
		paths_show_count(number_of(flow, "lost"), lost);
		paths_show_count(number_of(flow, "late"), late);
		paths_show_count(number_of(flow, "probes"), probes);
		time_of(flow, "median_ns", median);
		text_print(
			out, "  flow      %#07" PRIx64 ": %s lost, %s late of %s, median %s%s%s\n",
			number_of(flow, "label") & 0xfffff, lost, late, probes, median,
			json_is_true(json_object_get(flow, "current")) ? "; now" : "",
			json_is_true(json_object_get(flow, "bad")) ? "; the bad one" : ""
		);
	}
}

// Nothing where the peer shows no memory of a GPU.
static void say_gpu(struct text *out, const json_t *path) {
	const json_t *gpu = json_object_get(path, "gpu");
	char words[GPU_WORDS_BYTES];

	if (!json_is_object(gpu))
		return;
	gpu_path_words(gpu, words);
	text_print(out, "  GPU       %s\n", words);
	gpu_time_words(gpu, words);
	text_print(out, "            %s\n", words);
}

// Of the port that reads; nothing where its driver counts nothing.
static void say_congestion(struct text *out, const json_t *path) {
	const json_t *port = json_array_get(json_object_get(path, "congestion"), 0);
	char words[CONGESTION_WORDS_BYTES];

	if (port == NULL)
		return;
	congestion_words(port, words);
	text_print(out, "  congested %s\n", words);
}

static bool any_sent(const json_t *sizes) {
	const json_t *size;
	size_t n;

	json_array_foreach(sizes, n, size) {
		if (number_of(size, "sent") > 0)
			return true;
	}
	return false;
}

static void say_sizes(struct text *out, const json_t *sizes, const char *what) {
	const json_t *size;
	char sent[SHOW_BYTES], lost[SHOW_BYTES], bytes[SHOW_BYTES];
	char min[SHOW_BYTES], median[SHOW_BYTES], p99[SHOW_BYTES];
	size_t n;

	text_print(
		out, "  %-10s %8s %8s   %-9s %-9s %-9s of the last\n", what, "SENT", "LOST",
		"MEDIAN", "LEAST", "P99"
	);
	json_array_foreach(sizes, n, size) {
		if (n == PATH_SIZES)
			break;
		snprintf(bytes, sizeof(bytes), "%" PRIu64, number_of(size, "bytes"));
		if (number_of(size, "bytes") == 0)
			snprintf(bytes, sizeof(bytes), "MTU");
		paths_show_count(number_of(size, "sent"), sent);
		paths_show_count(number_of(size, "lost"), lost);
		time_of(size, "median_ns", median);
		time_of(size, "min_ns", min);
		time_of(size, "p99_ns", p99);
		text_print(
			out, "  %-10.10s %8s %8s   %-9s %-9s %-9s %" PRIu64 "\n", bytes, sent, lost,
			median, min, p99, number_of(size, "recent") % 1000
		);
	}
}

void paths_end_say(struct session *session, const char *node, const char *peer, const json_t *end) {
	const json_t *paths = json_object_get(end, "paths"), *path, *writes;
	char seen[WORD_BYTES], age[SHOW_BYTES], device[WORD_BYTES], peer_device[WORD_BYTES];
	struct text *out = &session->out;
	size_t n;

	if (json_array_size(paths) == 0)
		text_print(
			out, "%s reads nothing of %s: %s\n", node, peer,
			number_of(end, "devices") == 0 ? "it has no RDMA device"
			: !json_is_true(json_object_get(end, "probing"))
				? "[probe] enabled is no there"
				: "they are no neighbours, and its turn has not come yet"
		);
	json_array_foreach(paths, n, path) {
		if (n == SAID_MAX) {
			text_print(out, "\nand %zu more\n", json_array_size(paths) - n);
			break;
		}
		word_of(path, "device", device);
		word_of(path, "peer_device", peer_device);
		word_of(path, "seen", seen);
		paths_show_age(number_of(path, "for_s"), age);
		text_print(
			out, "%s%s reads %s, %.31s > %.31s: %s, for %s\n", n > 0 ? "\n" : "", node,
			peer, device, peer_device, seen, age
		);
		say_latency(out, path);
		say_loss(out, path);
		say_pair(out, path);
		say_flows(out, json_object_get(path, "flows"));
		say_gpu(out, path);
		say_congestion(out, path);
		writes = json_object_get(path, "writes");
		say_sizes(out, json_object_get(path, "sizes"), any_sent(writes) ? "READ" : "BYTES");
		if (any_sent(writes))
			say_sizes(out, writes, "WRITTEN");
	}
}
