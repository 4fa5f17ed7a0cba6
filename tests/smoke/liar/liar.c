// SPDX-License-Identifier: BSD-3-Clause
// The liar's side of the core: three wrapped functions, and the tools of the lies.
//
// ras_create() gets operations whose `send` the liar can change. ras_conn_frame() shows what others
// say. After ras_tick() the lies are told, and the next tick is requested early.
#include "liar.h"

#include "collect/collect_message.h"

#include <lib/log.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define JOBS_NOTICE_LEVEL 5 // names a job instead of a communicator
#define LIES_MAX 32
#define LOG_GAP_NS RAS_NS_PER_SEC

struct told_lie {
	const struct lie *lie;
	uint64_t sent;
};

static struct liar state;
static struct told_lie told[LIES_MAX];
static uint32_t told_count;
static uint64_t next_turn_ns, next_log_ns;
static bool begun;

// The names are fixed by the linker. NOLINTBEGIN(bugprone-reserved-identifier)
int __real_ras_create(
	const struct ras_config *config,
	const struct ras_memory *memory,
	struct ras_interner *interner,
	const struct ras_ops *ops,
	void *ops_ctx,
	struct ras **ret_ras
);
int __wrap_ras_create(
	const struct ras_config *config,
	const struct ras_memory *memory,
	struct ras_interner *interner,
	const struct ras_ops *ops,
	void *ops_ctx,
	struct ras **ret_ras
);
void __real_ras_conn_frame(
	struct ras *ras, uint64_t now_ns, uint32_t conn, const void *frame, size_t size
);
void __wrap_ras_conn_frame(
	struct ras *ras, uint64_t now_ns, uint32_t conn, const void *frame, size_t size
);
void __real_ras_tick(struct ras *ras, uint64_t now_ns);
void __wrap_ras_tick(struct ras *ras, uint64_t now_ns);

static const struct lie *lie_find(const char *name) {
	const struct lie *const tables[] = {lies_of_notices, lies_of_members};

	for (size_t n = 0; n < sizeof(tables) / sizeof(tables[0]); n++)
		for (const struct lie *lie = tables[n]; lie->name != NULL; lie++)
			if (strcmp(lie->name, name) == 0)
				return lie;
	return NULL;
}

static void environment_read(void) {
	const char *victim = getenv("TOCSIN_LIE_VICTIM");
	const char *names = getenv("TOCSIN_LIE");
	char *copy = strdup(names != NULL ? names : "");
	char *rest = copy;

	must(copy != NULL);
	if (victim != NULL)
		state.victim = ras_id(victim, strlen(victim));
	for (char *name; (name = strsep(&rest, ",")) != NULL;) {
		const struct lie *lie = lie_find(name);

		if (*name == '\0')
			continue;
		if (lie == NULL || told_count == LIES_MAX) {
			fprintf(stderr, "tocsind-liar: no lie is called '%s'\n", name);
			exit(2);
		}
		told[told_count++] = (struct told_lie){lie, 0};
	}
	free(copy);
}

// Return true if the victim is a member, a link is good, and the lies may begin.
static bool lies_may_begin(void) {
	const char *begin = getenv("TOCSIN_LIE_BEGIN");
	const struct peer_entry *victim = liar_victim_entry(&state);

	if (begun)
		return true;
	if (victim == NULL || !peer_is_member(victim) ||
	    (begin != NULL && access(begin, F_OK) != 0))
		return false;
	begun = true;
	return true;
}

static int op_send(void *ctx, uint32_t conn, const void *frame, size_t size) {
	static uint8_t copy[RAS_FRAME_MAX];
	bool changed = false;

	if (!begun || size > sizeof(copy))
		return state.ops.send(ctx, conn, frame, size);
	memcpy(copy, frame, size);
	for (uint32_t n = 0; n < told_count; n++) {
		if (told[n].lie->change == NULL || !told[n].lie->change(&state, copy, size))
			continue;
		told[n].sent++;
		changed = true;
	}
	return state.ops.send(ctx, conn, changed ? copy : frame, size);
}

int __wrap_ras_create(
	const struct ras_config *config,
	const struct ras_memory *memory,
	struct ras_interner *interner,
	const struct ras_ops *ops,
	void *ops_ctx,
	struct ras **ret_ras
) {
	struct ras_ops changed = *ops;
	int err;

	environment_read();
	state.ops = *ops;
	state.ops_ctx = ops_ctx;
	changed.send = op_send;
	err = __real_ras_create(config, memory, interner, &changed, ops_ctx, ret_ras);
	if (err == 0)
		state.ras = *ret_ras;
	return err;
}

// Keep what a lie may use: a notice of the victim, and the name of a communicator.
static void notice_keep(const uint8_t *frame, size_t size) {
	struct collect_notice notice;
	struct wire_reader reader;

	wire_reader_init(&reader, frame, size);
	if (wire_get_u8(&reader) != MESSAGE_NOTICE || collect_notice_decode(&reader, &notice) != 0)
		return;
	if (notice.origin == state.victim && notice.kind == LIAR_NOTICE_HEALTH &&
	    size <= LIAR_KEPT_BYTES_MAX && state.kept_count < LIAR_REPLAY_FRAMES_MAX) {
		state.kept[state.kept_count].size = size;
		memcpy(state.kept[state.kept_count++].frame, frame, size);
	}
	if (notice.kind == LIAR_NOTICE_JOBS && notice.size >= LIAR_COMM_HEAD_BYTES) {
		memcpy(state.comm_head, notice.payload, LIAR_COMM_HEAD_BYTES);
		if (state.comm_head[1] == JOBS_NOTICE_LEVEL)
			return;
		wire_reader_init(&reader, state.comm_head + LIAR_COMM_SIZE_AT, 4);
		state.comm_size = wire_get_u32(&reader);
		state.has_comm = true;
	}
}

void __wrap_ras_conn_frame(
	struct ras *ras, uint64_t now_ns, uint32_t conn, const void *frame, size_t size
) {
	notice_keep(frame, size);
	__real_ras_conn_frame(ras, now_ns, conn, frame, size);
}

// Log how many frames each lie sent: one line for all, because the rate of a log site is limited.
static void sent_log(void) {
	char text[1024] = "";
	size_t used = 0;

	for (uint32_t n = 0; n < told_count; n++)
		if (told[n].sent > 0 && used < sizeof(text))
			used += (size_t)snprintf(
				text + used, sizeof(text) - used, "%s:%" PRIu64 ",",
				told[n].lie->name, told[n].sent
			);
	log_event(LOG_LEVEL_INFO, "lies_told", log_str("sent", text));
}

static void lies_tell(uint64_t now_ns) {
	static uint32_t logged;
	uint32_t begun_count = 0;

	for (uint32_t n = 0; n < told_count; n++) {
		state.sent = 0;
		if (told[n].lie->tell != NULL)
			told[n].lie->tell(&state);
		told[n].sent += state.sent;
		begun_count += told[n].sent > 0;
	}
	state.turn++;
	if (begun_count == 0 || (now_ns < next_log_ns && begun_count == logged))
		return;
	next_log_ns = now_ns + LOG_GAP_NS;
	logged = begun_count;
	sent_log();
}

void __wrap_ras_tick(struct ras *ras, uint64_t now_ns) {
	__real_ras_tick(ras, now_ns);
	if (ras->leaving || ras->left)
		return;
	state.now_ns = now_ns;
	if (now_ns >= next_turn_ns && ras->joined && lies_may_begin() &&
	    liar_victim_entry(&state) != NULL) {
		next_turn_ns = now_ns + LIAR_GAP_NS;
		lies_tell(now_ns);
	}
	if (ras->wake_requested_ns > now_ns + LIAR_GAP_NS)
		state.ops.wake(state.ops_ctx, now_ns + LIAR_GAP_NS);
}

void liar_send_all(struct liar *liar, const void *frame, size_t size) {
	struct ras *ras = liar->ras;

	ras_enter(ras, liar->now_ns);
	for (uint32_t n = 0; n < ras->links.count; n++) {
		if (!link_is_good(ras->links.table[n]))
			continue;
		link_send(ras, ras->links.table[n], frame, size);
		liar->sent++;
	}
	ras_exit(ras);
}

bool liar_send_to(struct liar *liar, uint64_t peer, const void *frame, size_t size) {
	struct link *link = link_find(liar->ras, peers_find(&liar->ras->peers, peer));

	if (link == NULL || !link_is_good(link))
		return false;
	ras_enter(liar->ras, liar->now_ns);
	link_send(liar->ras, link, frame, size);
	ras_exit(liar->ras);
	liar->sent++;
	return true;
}

void liar_forge_notice(
	struct liar *liar, uint64_t id, uint32_t kind, const void *payload, size_t size
) {
	uint8_t frame[RAS_NOTICE_BYTES_MAX + 128], bytes[FLOOD_SIGNED_BYTES_MAX];
	uint8_t signature[RAS_SIGNATURE_BYTES];
	const struct collect_notice notice = {
		.origin = liar->victim,
		.id = id,
		.kind = kind,
		.hops = 1,
		.payload = payload,
		.size = size,
		.signature = signature,
	};
	struct wire_writer writer;
	size_t signed_size = flood_signed_bytes(liar->ras->cluster, &notice, bytes);

	liar->ops.sign(liar->ops_ctx, bytes, signed_size, signature);
	wire_writer_init(&writer, frame, sizeof(frame));
	collect_notice_encode(&notice, &writer);
	liar_send_all(liar, frame, wire_writer_used(&writer));
}

void liar_send_notice(struct liar *liar, uint32_t kind, const void *payload, size_t size) {
	if (ras_notice(liar->ras, liar->now_ns, kind, payload, size) == 0)
		liar->sent++;
}

void liar_send_news(struct liar *liar, const struct peer_news *news) {
	uint8_t frame[RAS_RECORD_BYTES_MAX + 128];
	struct wire_writer writer;

	wire_writer_init(&writer, frame, sizeof(frame));
	wire_put_u8(&writer, MESSAGE_UPDATE);
	message_news_encode(news, &writer);
	liar_send_all(liar, frame, wire_writer_used(&writer));
}

struct peer_entry *liar_victim_entry(const struct liar *liar) {
	uint32_t slot = peers_find(&liar->ras->peers, liar->victim);

	return slot != RAS_NO_SLOT ? ras_entry(liar->ras, slot) : NULL;
}

uint64_t liar_victim_latest_id(const struct liar *liar) {
	const struct flood_seen *seen = &liar->ras->flood.notices;

	for (uint32_t n = 0; n < seen->count; n++)
		if (seen->origins[n].origin == liar->victim)
			return seen->origins[n].highest;
	return ras_incarnation_start(liar_victim_entry(liar)->incarnation) << 32;
}
// NOLINTEND(bugprone-reserved-identifier)
