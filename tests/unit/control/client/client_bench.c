// SPDX-License-Identifier: BSD-3-Clause
#include "control/client/client_bench.h"

#include <control/state.h>
#include <control/transport.h>
#include <lib/stream.h>
#include <ras/collective.h>
#include <ras/relay.h>
#include <ras/transfer.h>
#include <support/heap.h>
#include <support/units.h>

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define NOW_NS UINT64_C(1000000000000)
#define UNIX_NS INT64_C(1795000000000000000) // what the clock on the wall says at NOW_NS
#define TURNS 24
#define PATIENCE_TURNS 20000

struct bench bench;
static char heard[1 << 22];

static const struct ras_memory memory = HEAP_MEMORY(NULL);

// The overlay, as far as clients see it

const struct ras *overlay_ras(const struct overlay *overlay) {
	return (const struct ras *)(const void *)overlay;
}

uint64_t overlay_now_ns(const struct overlay *overlay) {
	(void)overlay;
	return clock_now_ns(&bench.clock);
}

const struct state *overlay_state(const struct overlay *overlay) {
	return (const struct state *)(const void *)overlay;
}

struct sock_addr overlay_address(const struct overlay *overlay) {
	return overlay->records[0]->address;
}

int64_t overlay_realtime_ns(const struct overlay *overlay, uint64_t now_ns) {
	(void)overlay;
	return UNIX_NS + (int64_t)(now_ns - NOW_NS);
}

uint32_t overlay_roster_count(const struct overlay *overlay) {
	uint32_t cursor = 0;

	while (overlay_missing_next(overlay, &cursor) != NULL)
		continue;
	return cursor > 0 ? cursor + overlay->peer_count : 0;
}

bool overlay_roster_has_node(const struct overlay *overlay, const char *name, size_t length) {
	uint32_t cursor = 0;
	const char *missing;

	while ((missing = overlay_missing_next(overlay, &cursor)) != NULL)
		if (strlen(missing) == length && memcmp(missing, name, length) == 0)
			return true;
	return false;
}

const char *overlay_missing_next(const struct overlay *overlay, uint32_t *cursor) {
	if (*cursor >= COUNT_OF(overlay->missing) || overlay->missing[*cursor] == NULL)
		return NULL;
	return overlay->missing[(*cursor)++];
}

const struct overlay_reach *overlay_reach(const struct overlay *overlay) {
	return &overlay->reach;
}

bool overlay_join_problem(const struct overlay *overlay, char ret_words[static STATE_TEXT_BYTES]) {
	if (overlay->join_problem != NULL)
		snprintf(ret_words, STATE_TEXT_BYTES, "%s", overlay->join_problem);
	return overlay->join_problem != NULL;
}

bool overlay_is_alone(const struct overlay *overlay) {
	return overlay->alone;
}

uint32_t overlay_forget_remembered(struct overlay *overlay) {
	overlay->remembered_forgotten++;
	return 3;
}

bool overlay_mistake_next(
	const struct overlay *overlay, uint32_t *cursor, char ret_words[static STATE_TEXT_BYTES]
) {
	if (overlay->mistake == NULL || (*cursor)++ > 0)
		return false;
	snprintf(ret_words, STATE_TEXT_BYTES, "%s", overlay->mistake);
	return true;
}

bool overlay_strangers(const struct overlay *overlay, struct overlay_strangers *ret_strangers) {
	if (overlay->strangers.count > 0)
		*ret_strangers = overlay->strangers;
	return overlay->strangers.count > 0;
}

const char *overlay_event_text(const struct overlay *overlay, uint64_t sequence) {
	return overlay->text != NULL && sequence + 1 == overlay->event_next ? overlay->text : "";
}

void overlay_listen(struct overlay *overlay, struct overlay_listener *listener) {
	listener->next = overlay->listeners;
	overlay->listeners = listener;
}

void overlay_unlisten(struct overlay *overlay, struct overlay_listener *listener) {
	struct overlay_listener **place = &overlay->listeners;

	while (*place != listener)
		place = &(*place)->next;
	*place = listener->next;
}

void overlay_answer_put(struct overlay_answer *answer) {
	if (--answer->references > 0)
		return;
	ras_comms_destroy(answer->comms);
	ras_paths_destroy(answer->paths);
	free(answer->conns);
	free(answer);
}

int overlay_ask_all(
	struct overlay *overlay,
	enum ras_collect_kind kind,
	uint64_t timeout_ns,
	struct overlay_question *question
) {
	if (overlay->ask_err < 0)
		return overlay->ask_err;
	overlay->asked++;
	overlay->ask_kind = kind;
	overlay->ask_timeout_ns = timeout_ns;
	question->next = overlay->questions;
	overlay->questions = question;
	return 0;
}

void overlay_cancel_question(struct overlay_question *question) {
	struct overlay_question **place = &bench.overlay.questions;

	while (*place != question)
		place = &(*place)->next;
	*place = question->next;
	bench.overlay.forgotten++;
}

int overlay_call_start(
	struct overlay *overlay,
	uint64_t node,
	const char *line,
	uint64_t timeout_ns,
	struct overlay_call *call
) {
	(void)node;
	overlay->call_timeout_ns = timeout_ns;
	if (overlay->call_err < 0)
		return overlay->call_err;
	overlay->call = call;
	snprintf(overlay->call_line, sizeof(overlay->call_line), "%s", line);
	return 0;
}

void overlay_call_ready(struct overlay_call *call) {
	assert_ptr_equal(call, bench.overlay.call);
	bench.overlay.call_readies++;
}

void overlay_call_cancel(struct overlay_call *call) {
	assert_ptr_equal(call, bench.overlay.call);
	bench.overlay.call = NULL;
	bench.overlay.call_cancelled++;
}

void overlay_set_call_server(struct overlay *overlay, overlay_serve_fn *fn, void *ctx) {
	overlay->serve = fn;
	overlay->serve_ctx = ctx;
}

uint64_t overlay_served_life_ns(const struct overlay_served *served) {
	const struct overlay *overlay = &bench.overlay;

	(void)served;
	return overlay->served_life_ns != 0 ? overlay->served_life_ns : 60 * RAS_NS_PER_SEC;
}

int overlay_served_write(struct overlay_served *served, const void *data, size_t size) {
	struct overlay *overlay = &bench.overlay;

	(void)served;
	if (size > sizeof(overlay->served) - 1 - overlay->served_size)
		return -ENOSPC;
	memcpy(overlay->served + overlay->served_size, data, size);
	overlay->served_size += size;
	overlay->served[overlay->served_size] = '\0';
	return 0;
}

void overlay_served_end(struct overlay_served *served, int err) {
	(void)served;
	assert_false(bench.overlay.served_ended);
	bench.overlay.served_ended = true;
	bench.overlay.served_err = err;
}

int overlay_ping_start(
	struct overlay *overlay, uint64_t node, uint64_t timeout_ns, struct overlay_ping *ping
) {
	(void)node;
	(void)timeout_ns;
	if (overlay->ping_err < 0)
		return overlay->ping_err;
	overlay->ping = ping;
	return 0;
}

void overlay_ping_cancel(struct overlay_ping *ping) {
	assert_ptr_equal(ping, bench.overlay.ping);
	bench.overlay.ping = NULL;
	bench.overlay.ping_cancelled++;
}

int overlay_report_peer(
	struct overlay *overlay, uint64_t subject, uint32_t uid, const char *reason
) {
	(void)uid;
	(void)subject;
	snprintf(overlay->order, sizeof(overlay->order), "report %s", reason);
	return overlay->order_err;
}

int overlay_set_maintenance(
	struct overlay *overlay, uint64_t peer, const struct overlay_maintenance_order *order
) {
	(void)peer;
	snprintf(overlay->order, sizeof(overlay->order), "maint %d", order != NULL);
	if (order != NULL)
		overlay->maintenance = *order;
	return overlay->order_err;
}

bool overlay_maintenance_find(
	const struct overlay *overlay,
	const struct ras_peer *peer,
	struct overlay_maintenance_order *ret_order,
	uint64_t *ret_age_ns
) {
	(void)peer;
	*ret_order = overlay->maintenance;
	*ret_age_ns = 60 * RAS_NS_PER_SEC;
	return overlay->maintenance.uid != 0 || overlay->maintenance.for_ns != 0;
}

const struct overlay_maintenance_counters *
overlay_maintenance_counters(const struct overlay *overlay) {
	static const struct overlay_maintenance_counters none;

	(void)overlay;
	return &none;
}

// The record of one that is forgotten is freed; here it loses its name, which a test can see.
int overlay_forget_peer(struct overlay *overlay, uint64_t peer) {
	for (uint32_t n = 0; n < overlay->peer_count && overlay->order_err == 0; n++) {
		if (overlay->records[n]->id == peer)
			overlay->records[n]->name_length = 0;
	}
	snprintf(overlay->order, sizeof(overlay->order), "forget");
	return overlay->order_err;
}

uint32_t overlay_forget_unreachable(struct overlay *overlay) {
	snprintf(overlay->order, sizeof(overlay->order), "forget unreachable");
	return 1;
}

// The core, as far as clients ask it

static const struct overlay *played(const struct ras *ras) {
	return (const struct overlay *)(const void *)ras;
}

void ras_view(const struct ras *ras, struct ras_view *ret_view) {
	const struct overlay *overlay = played(ras);
	uint32_t counts[RAS_LEFT + 1] = {0};

	for (uint32_t n = 0; n < overlay->peer_count; n++)
		counts[overlay->peers[n].state]++;
	*ret_view = overlay->view;
	ret_view->suspect = counts[RAS_SUSPECT];
	ret_view->unreachable = counts[RAS_UNREACHABLE];
	ret_view->alive = counts[RAS_ALIVE] + ret_view->suspect + ret_view->unreachable;
	ret_view->dead = counts[RAS_DEAD];
	ret_view->left = counts[RAS_LEFT];
	ret_view->slots_max = overlay->peer_count;
}

uint64_t ras_self_id(const struct ras *ras) {
	return played(ras)->records[0]->id;
}

int ras_peer_at(const struct ras *ras, uint32_t slot, struct ras_peer *ret_peer) {
	const struct overlay *overlay = played(ras);

	if (slot >= overlay->peer_count || overlay->peers[slot].record == NULL)
		return -ENOENT;
	*ret_peer = overlay->peers[slot];
	return 0;
}

int ras_peer_find(const struct ras *ras, uint64_t id, struct ras_peer *ret_peer) {
	const struct overlay *overlay = played(ras);

	for (uint32_t n = 0; n < overlay->peer_count; n++) {
		if (overlay->peers[n].record != NULL && overlay->peers[n].record->id == id)
			return ras_peer_at(ras, n, ret_peer);
	}
	return -ENOENT;
}

int ras_link_at(const struct ras *ras, uint32_t n, struct ras_link_info *ret_info) {
	const struct overlay *overlay = played(ras);

	if (n >= overlay->link_count)
		return -ENOENT;
	*ret_info = overlay->links[n];
	return 0;
}

uint32_t ras_history(
	const struct ras *ras,
	uint64_t from,
	struct ras_event *events,
	uint32_t count,
	uint64_t *ret_oldest
) {
	const struct overlay *overlay = played(ras);
	uint64_t capacity = overlay->event_capacity;
	uint64_t oldest = overlay->event_next > capacity ? overlay->event_next - capacity : 1;
	uint32_t copied = 0;

	*ret_oldest = oldest;
	if (from < oldest)
		from = oldest;
	while (copied < count && from < overlay->event_next)
		events[copied++] = overlay->events[from++ % BENCH_EVENTS_MAX];
	return copied;
}

const struct ras_counters *ras_counters(const struct ras *ras) {
	static const struct ras_counters counters = {.frames_sent = 17, .news_hops_max = 3};

	(void)ras;
	return &counters;
}

const struct ras_collect_counters *ras_collect_counters(const struct ras *ras) {
	static const struct ras_collect_counters counters = {.started = 5};

	(void)ras;
	return &counters;
}

const struct ras_relay_counters *ras_relay_counters(const struct ras *ras) {
	static const struct ras_relay_counters counters = {.detours = 2};

	(void)ras;
	return &counters;
}

// In the object of what is played above.
const char *ras_relay_reason_name(enum ras_relay_reason reason) {
	return reason == RAS_RELAY_NO_ROUTE ? "no-route" : "no-answer";
}

uint32_t state_earlier(const struct state *state, const struct state_event **ret_events) {
	(void)state;
	*ret_events = bench.earlier;
	return bench.earlier_count;
}

// State that the test arranges

uint64_t bench_add_peer(const char *name, const char *host, enum ras_state state) {
	struct overlay *overlay = &bench.overlay;
	uint32_t n = overlay->peer_count++;
	struct ras_peer_info info = {
		.start = 3,
		.pid = 100 + n,
		.version = "0.1.0",
		.address_count = 1,
		.device_count = 1,
	};

	snprintf(info.name, sizeof(info.name), "%s", name);
	snprintf(info.host, sizeof(info.host), "%s", host);
	snprintf(info.devices[0].name, sizeof(info.devices[0].name), "mlx5_0");
	info.addresses[0] = (struct sock_addr){
		.address = {10, 0, (uint8_t)(n >> 8), (uint8_t)n},
		.port = 28030,
		.family = SOCK_ADDR_V4,
	};
	assert_int_equal(ras_record_from_info(overlay->interner, &info, &overlay->records[n]), 0);
	overlay->peers[n] = (struct ras_peer){
		.record = overlay->records[n],
		.slot = n,
		.incarnation = ras_incarnation(3, 1),
		.state = state,
		.since_ns = NOW_NS - 65 * RAS_NS_PER_SEC,
	};
	return overlay->records[n]->id;
}

struct ras_peer *bench_peer(const char *name) {
	uint64_t id = ras_id(name, strlen(name));

	for (uint32_t n = 0; n < bench.overlay.peer_count; n++) {
		if (bench.overlay.records[n]->id == id)
			return &bench.overlay.peers[n];
	}
	fail_msg("no peer %s", name);
	return NULL;
}

void bench_add_event(
	enum ras_event_kind kind, const char *name, enum ras_cause cause, uint64_t value
) {
	struct overlay *overlay = &bench.overlay;
	struct ras_event *event = &overlay->events[overlay->event_next % BENCH_EVENTS_MAX];

	*event = (struct ras_event){
		.sequence = overlay->event_next++,
		.at_ns = clock_now_ns(&bench.clock),
		.kind = kind,
		.cause = cause,
		.incarnation = ras_incarnation(3, 1),
		.value = value,
	};
	if (name != NULL) {
		event->peer = ras_id(name, strlen(name));
		snprintf(event->name, sizeof(event->name), "%s", name);
	}
	for (struct overlay_listener *listener = overlay->listeners; listener != NULL;
	     listener = listener->next)
		listener->event(listener, event);
}

struct overlay_answer *bench_answer_new(void) {
	struct overlay_answer *answer = calloc(1, sizeof(*answer));

	assert_non_null(answer);
	answer->references = 1;
	answer->kind = RAS_COLLECT_COMMS;
	answer->result.missing = bench.missing;
	answer->result.member_count = bench.overlay.peer_count;
	answer->result.answered = bench.overlay.peer_count;
	answer->result.elapsed_ns = 3 * RAS_NS_PER_MS;
	assert_int_equal(ras_comms_create(&memory, &answer->comms), 0);
	return answer;
}

// Answer all waiting questions, as the overlay does.
void bench_answer(struct overlay_answer *answer) {
	struct overlay_question *question;

	while ((question = bench.overlay.questions) != NULL) {
		bench.overlay.questions = question->next;
		answer->references++;
		question->answered(question, answer);
	}
	overlay_answer_put(answer);
}

static void create_server(void) {
	char detail[CLIENT_DETAIL_BYTES];
	int err;

	err = client_server_create(
		bench.loop, &bench.config, &bench.overlay, detail, &bench.server
	);
	if (err < 0)
		fail_msg("%s", detail);
}

int bench_start(void **state) {
	(void)state;
	memset(&bench, 0, sizeof(bench));
	clock_init_fake(&bench.clock, NOW_NS);
	assert_int_equal(loop_create(&bench.clock, &bench.loop), 0);
	assert_int_equal(ras_interner_create(&memory, &bench.overlay.interner), 0);
	bench.overlay.event_next = 1;
	bench.overlay.event_capacity = BENCH_EVENTS_MAX;
	bench.overlay.view = (struct ras_view){.number = 12, .digest = 0xabc, .joined = true};
	bench_add_peer("n1", "rack1", RAS_ALIVE);
	bench_add_peer("n2", "rack1", RAS_ALIVE);
	bench_add_peer("n3", "rack2", RAS_ALIVE);
	snprintf(bench.directory, sizeof(bench.directory), "/tmp/tocsin-client-XXXXXX");
	assert_non_null(mkdtemp(bench.directory));
	snprintf(bench.path, sizeof(bench.path), "%s/sock", bench.directory);
	client_config_init(&bench.config);
	bench.config.listen = (struct sock_addr){.address = {127, 0, 0, 1}, .family = SOCK_ADDR_V4};
	bench.config.socket_path = bench.path;
	bench.config.version = "0.1.0";
	bench.config.cluster = "test";
	bench.config.asks_burst = 1000;
	create_server();
	return 0;
}

void bench_restart(void) {
	client_server_destroy(bench.server);
	create_server();
}

int bench_stop(void **state) {
	struct overlay *overlay = &bench.overlay;

	(void)state;
	client_server_destroy(bench.server);
	loop_destroy(bench.loop);
	assert_null(overlay->questions);
	for (uint32_t n = 0; n < overlay->peer_count; n++)
		ras_record_put(overlay->interner, overlay->records[n]);
	ras_interner_destroy(overlay->interner);
	unlink(bench.path);
	return rmdir(bench.directory);
}

static int connect_to(const struct sockaddr *address, socklen_t length, uint32_t uid) {
	int fd = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	if (uid != geteuid() && fchown(fd, uid, (gid_t)-1) != 0) {
		print_message("only root has sockets of other users\n");
		skip();
	}
	assert_int_equal(connect(fd, address, length), 0);
	return fd;
}

int bench_connect_from(uint32_t uid) {
	struct sock_addr address = client_server_address(bench.server);
	struct sockaddr_storage storage;
	socklen_t length = sock_addr_to_sockaddr(&address, &storage);

	return connect_to((const struct sockaddr *)&storage, length, uid);
}

int bench_connect(void) {
	return bench_connect_from(geteuid());
}

int bench_connect_local(void) {
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", bench.path);
	return connect_to((const struct sockaddr *)&address, sizeof(address), geteuid());
}

void bench_turn(void) {
	for (uint32_t n = 0; n < TURNS; n++)
		assert_int_equal(loop_turn(bench.loop, 0), 0);
}

void bench_send(int fd, const char *text, size_t size) {
	while (size > 0) {
		ssize_t sent = stream_send(fd, text, size);

		if (sent == -EAGAIN) {
			bench_turn();
			continue;
		}
		if (sent < 0)
			return; // the server has had enough of it
		text += sent;
		size -= (size_t)sent;
	}
}

void bench_say(int fd, const char *text) {
	snprintf(bench.question, sizeof(bench.question), "%s", text);
	bench_send(fd, text, strlen(text));
}

// How much came, and whether the connection ended.
static size_t hear(int fd, size_t used, bool *ret_ended) {
	ssize_t size;

	while ((size = stream_receive(fd, heard + used, sizeof(heard) - 1 - used)) > 0)
		used += (size_t)size;
	*ret_ended = size != -EAGAIN;
	heard[used] = '\0';
	return used;
}

const char *bench_hear(int fd) {
	size_t used = 0, before;
	bool ended;

	do {
		before = used;
		bench_turn();
		used = hear(fd, used, &ended);
	} while (used > before);
	return heard;
}

const char *bench_hear_all(int fd) {
	bool ended = false;
	size_t used = 0;

	for (uint32_t n = 0; n < PATIENCE_TURNS && !ended; n++) {
		assert_int_equal(loop_turn(bench.loop, 0), 0);
		used = hear(fd, used, &ended);
	}
	assert_true(ended);
	return heard;
}

bool bench_is_open(int fd) {
	char byte;

	bench_turn();
	return stream_receive(fd, &byte, 1) == -EAGAIN;
}

json_t *bench_ask_json(int fd, const char *text) {
	json_error_t error;
	const char *answer;
	json_t *object;

	bench_say(fd, text);
	answer = bench_hear(fd);
	assert_non_null(strchr(answer, '\n'));
	assert_ptr_equal(strchr(answer, '\n'), answer + strlen(answer) - 1);
	object = json_loads(answer, 0, &error);
	if (object == NULL)
		fail_msg("%s: %s", error.text, answer);
	bench_assert_units(object);
	return object;
}

// NOLINTNEXTLINE(misc-no-recursion): bounded by jansson
void bench_assert_units(const json_t *value) {
	const json_t *member;
	const char *key;
	size_t n;

	json_object_foreach((json_t *)value, key, member) {
		if (key_has_foreign_unit(key) ||
		    (key_has_ending(key, "_ns") && json_is_real(member)))
			fail_msg("%s in the answer of %s", key, bench.question);
		bench_assert_units(member);
	}
	json_array_foreach(value, n, member) bench_assert_units(member);
}

void bench_assert_narrow(const char *text, size_t columns) {
	while (*text != '\0') {
		size_t length = strcspn(text, "\n");

		if (length > columns)
			fail_msg("%zu columns: %.*s", length, (int)length, text);
		text += length + (text[length] == '\n');
	}
}

static bool starts_with_words(const char *text, const char *words) {
	while (*words != '\0') {
		size_t blanks = strspn(words, " \n");

		if (blanks > 0) {
			if (strspn(text, " \n") == 0)
				return false;
			words += blanks;
			text += strspn(text, " \n");
		} else if (*text++ != *words++) {
			return false;
		}
	}
	return true;
}

const char *bench_find(const char *text, const char *words) {
	for (; *text != '\0'; text++) {
		if (starts_with_words(text, words))
			return text;
	}
	return NULL;
}

// Fakes for the other sources of COUNTERS.

size_t ras_memory_used(const struct ras *ras) {
	(void)ras;
	return 4096;
}

size_t ras_history_bytes(const struct ras *ras) {
	(void)ras;
	return 1024;
}

const struct transport *overlay_transport(const struct overlay *overlay) {
	(void)overlay;
	return NULL;
}

const struct transport_counters *transport_counters(const struct transport *transport) {
	(void)transport;
	return NULL;
}

void ras_relay_stats(const struct ras *ras, struct ras_relay_stats *ret_stats) {
	(void)ras;
	*ret_stats = (struct ras_relay_stats){0};
}

const struct ras_transfer_counters *ras_transfer_counters(const struct ras *ras) {
	(void)ras;
	return NULL;
}

const char *ras_relay_class_name(enum ras_relay_class class) {
	return class == RAS_RELAY_CONTROL ? "control" : "bulk";
}

const char *ras_relay_outcome_name(enum ras_relay_outcome outcome) {
	return outcome == RAS_RELAY_OUTCOME_DELIVERED ? "delivered" : "refused";
}

const char *ras_transfer_outcome_name(enum ras_transfer_outcome outcome) {
	return outcome == RAS_TRANSFER_DONE ? "done" : "refused";
}

void state_counters(const struct state *state, struct state_counters *ret_counters) {
	(void)state;
	*ret_counters = (struct state_counters){0};
}
