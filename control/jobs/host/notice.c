// SPDX-License-Identifier: BSD-3-Clause
// Notices between agents, flooded to all: a rank is gone, a set is agreed on, a node holds some
// ranks. Agents without a rank of the communicator ignore them.
//
// Each notice has the time of what it reports, on the clock of its sender. The receiver translates
// it (peer_clock.c). What may have happened before a local rank registered does not concern that
// rank.
#include "jobs/host/inside.h"

#include <lib/container.h>
#include <lib/wire.h>

#include <stdlib.h>
#include <string.h>

// Agents of two versions work together, and a notice reaches both. So a newer version keeps all
// fields of a notice, appends its own, and gives a notice that differs more a kind of its own.
#define NOTICE_VERSION 2
#define NOTICE_VERSION_MIN 2 // oldest version that is read
#define HEARD_NOTICES_MAX \
	1024 // queued received notices; more are dropped, and their senders resend
#define ROSTER_ROW_BYTES 20
#define HELD_NOTICES_MAX 256
#define HELD_OF_ORIGIN_MAX 32 // so that an agent that answers nothing leaves room for others
#define HELD_NS (60 * RAS_NS_PER_SEC)
#define RANGES_MAX 460 // ranges that fit beside the head of a notice
// Rate limit of this agent, whatever its users do, because every other agent forwards its notices.
#define NOTICES_AT_ONCE 1024u
#define NOTICES_PER_S 256u

enum notice_kind {
	NOTICE_GONE = 1,
	NOTICE_AGREED,
	NOTICE_ROSTER,	       // which node holds which rank; each part is valid by itself
	NOTICE_ROSTER_REQUEST, // asks the coordinator to send the roster
	NOTICE_LEVEL,	       // names a job instead of a communicator
	NOTICE_STALL,	       // the communicator is waiting or stuck
	NOTICE_DEPARTED,       // ranks left in order; answers NOTICE_GONE, older agents ignore it
};

struct heard_notice {
	struct heard_notice *next;
	uint64_t origin;   // the agent that signed it
	uint64_t since_ns; // start of being held
	size_t size;
	uint8_t bytes[];
};

// `fact_ns`: our time of what the notice reports, or an earlier one.
static void
put_head(struct wire_writer *writer, uint8_t kind, const struct host_comm *comm, uint64_t fact_ns) {
	wire_put_u8(writer, NOTICE_VERSION);
	wire_put_u8(writer, kind);
	wire_put_u64(writer, comm->comm_hash);
	wire_put_u64(writer, comm->host_hash);
	wire_put_u64(writer, comm->process_hash);
	wire_put_u32(writer, comm->uid);
	wire_put_u32(writer, comm->size);
	wire_put_u32(writer, comm->attempt);
	wire_put_u64(writer, fact_ns);
}

// Best effort: whatever is not agreed on is sent again. Returns false if the rate limit is reached.
static bool
flood_notice(struct jobhost *host, const struct wire_writer *writer, const void *bytes) {
	uint64_t now_ns = loop_now_ns(host->loop);
	uint64_t whole_s = (now_ns - host->notice_ns) / SAMPLE_NS;
	size_t size;

	if (whole_s > 0) {
		uint64_t tokens = host->notice_tokens + whole_s * NOTICES_PER_S;

		host->notice_tokens =
			(uint32_t)(tokens < NOTICES_AT_ONCE ? tokens : NOTICES_AT_ONCE);
		host->notice_ns += whole_s * SAMPLE_NS;
	}
	if (host->notice_tokens == 0)
		return false;
	host->notice_tokens--;
	host->counters.notices++;
	if (host->overlay != NULL && wire_writer_finish(writer, &size) == 0)
		(void)overlay_notice_send(host->overlay, JOBHOST_NOTICE, bytes, size);
	return true;
}

static void put_gone_rank(struct wire_writer *writer, const struct gone *gone) {
	wire_put_u32(writer, gone->rank);
	wire_put_string(writer, gone->cause, strlen(gone->cause));
}

static void get_gone_rank(struct wire_reader *reader, uint64_t happened_ns, struct gone *ret_gone) {
	ret_gone->rank = wire_get_u32(reader);
	ret_gone->happened_ns = ret_gone->earliest_ns = happened_ns;
	(void)wire_get_string(reader, ret_gone->cause, sizeof(ret_gone->cause));
}

bool notice_send_gone_rank(
	struct jobhost *host, const struct host_comm *comm, const struct gone *gone
) {
	uint8_t bytes[256];
	struct wire_writer writer;

	wire_writer_init(&writer, bytes, sizeof(bytes));
	put_head(&writer, NOTICE_GONE, comm, gone->earliest_ns);
	put_gone_rank(&writer, gone);
	return flood_notice(host, &writer, bytes);
}

// Ranks are sent as ranges: first rank and count. A set of too many ranges is not sent and stays
// undecided on the other agents.
bool notice_send_agreed_set(
	struct jobhost *host, const struct host_comm *comm, const struct gone *newest
) {
	uint8_t bytes[RAS_NOTICE_BYTES_MAX];
	uint64_t oldest_ns = newest->earliest_ns;
	struct wire_writer writer;
	size_t mark;
	uint16_t runs = 0;

	wire_writer_init(&writer, bytes, sizeof(bytes));
	for (uint32_t n = 0; n < comm->gone_count; n++) {
		if (comm->gone[n].earliest_ns < oldest_ns)
			oldest_ns = comm->gone[n].earliest_ns;
	}
	put_head(&writer, NOTICE_AGREED, comm, oldest_ns);
	wire_put_u64(&writer, comm->view);
	put_gone_rank(&writer, newest);
	mark = wire_reserve_u16(&writer);
	for (uint32_t n = 0; n < comm->agreed_count && runs <= RANGES_MAX;) {
		uint32_t first = comm->agreed[n], count = 0;

		while (n < comm->agreed_count && comm->agreed[n] == first + count) {
			count++;
			n++;
		}
		wire_put_u32(&writer, first);
		wire_put_u32(&writer, count);
		runs++;
	}
	wire_patch_u16(&writer, mark, runs);
	return runs > RANGES_MAX || flood_notice(host, &writer, bytes);
}

bool notice_send_roster_part(struct jobhost *host, struct host_comm *comm) {
	uint8_t bytes[RAS_NOTICE_BYTES_MAX];
	struct wire_writer writer;
	uint32_t end = comm->roster_rows_to_send < comm->roster.count ? comm->roster_rows_to_send
								      : comm->roster.count;
	const struct roster_row *rows;
	uint32_t count;

	if (comm->roster_rows_sent >= end)
		return false;
	rows = comm->roster.rows + comm->roster_rows_sent;
	count = end - comm->roster_rows_sent;
	// All rows of a node stay together unless they exceed one notice.
	if (count > ROSTER_ROWS_MAX) {
		count = ROSTER_ROWS_MAX;
		while (count > 0 && rows[count].node == rows[count - 1].node)
			count--;
		if (count == 0)
			count = ROSTER_ROWS_MAX;
	}
	wire_writer_init(&writer, bytes, sizeof(bytes));
	put_head(&writer, NOTICE_ROSTER, comm, comm->roster_asked_ns);
	wire_put_u16(&writer, (uint16_t)count);
	for (uint32_t n = 0; n < count; n++) {
		wire_put_u64(&writer, rows[n].node);
		wire_put_u32(&writer, rows[n].first);
		wire_put_u32(&writer, rows[n].count);
		wire_put_u32(&writer, rows[n].stride);
	}
	if (!flood_notice(host, &writer, bytes))
		return false;
	comm->roster_rows_sent += count;
	return true;
}

bool notice_request_roster(struct jobhost *host, const struct host_comm *comm) {
	uint8_t bytes[64];
	struct wire_writer writer;

	wire_writer_init(&writer, bytes, sizeof(bytes));
	put_head(&writer, NOTICE_ROSTER_REQUEST, comm, 0);
	return flood_notice(host, &writer, bytes);
}

void notice_send_stall(
	struct jobhost *host,
	const struct host_comm *comm,
	const struct stall *stall,
	uint64_t asked_ns
) {
	uint8_t bytes[320];
	struct wire_writer writer;

	wire_writer_init(&writer, bytes, sizeof(bytes));
	put_head(&writer, NOTICE_STALL, comm, asked_ns);
	wire_put_u8(&writer, (uint8_t)stall->kind);
	wire_put_u32(&writer, stall->rank);
	wire_put_string(&writer, stall->text, strlen(stall->text));
	(void)flood_notice(host, &writer, bytes);
}

void notice_send_departures(
	struct jobhost *host,
	const struct host_comm *key,
	const uint32_t *ranks,
	uint32_t count,
	uint64_t earliest_ns
) {
	uint8_t bytes[64 + DEPARTURES_MAX * sizeof(*ranks)];
	struct wire_writer writer;

	wire_writer_init(&writer, bytes, sizeof(bytes));
	put_head(&writer, NOTICE_DEPARTED, key, earliest_ns);
	wire_put_u16(&writer, (uint16_t)count);
	for (uint32_t n = 0; n < count; n++)
		wire_put_u32(&writer, ranks[n]);
	(void)flood_notice(host, &writer, bytes);
}

// A notice about a communicator, as read so far.
struct comm_notice {
	uint64_t origin;
	uint64_t happened_ns; // lower bound of the time of the reported event, on our clock
	uint8_t kind;
	bool is_unproven;	   // an end that an answer of its sender's clock may still prove
	struct wire_reader reader; // of the rest
};

static void handle_roster(struct host_comm *comm, struct comm_notice *notice) {
	struct wire_reader *reader = &notice->reader;
	uint32_t count = wire_get_count_u16(reader, ROSTER_ROWS_MAX, ROSTER_ROW_BYTES);
	struct roster_row rows[ROSTER_ROWS_MAX];

	for (uint32_t n = 0; n < count; n++) {
		rows[n].node = wire_get_u64(reader);
		rows[n].first = wire_get_u32(reader);
		rows[n].count = wire_get_u32(reader);
		rows[n].stride = wire_get_u32(reader);
	}
	if (!wire_reader_ok(reader) || notice->happened_ns <= comm->newest_ns)
		return;
	// An invalid roster changes nothing.
	if (roster_merge_reported(comm, notice->origin, rows, count) == 0)
		comm->roster_asked_ns = notice->happened_ns;
}

void notice_send_level(struct jobhost *host, const struct level_order *order) {
	uint8_t bytes[128];
	struct wire_writer writer;

	wire_writer_init(&writer, bytes, sizeof(bytes));
	wire_put_u8(&writer, NOTICE_VERSION);
	wire_put_u8(&writer, NOTICE_LEVEL);
	wire_put_u8(&writer, order->level);
	wire_put_u64(&writer, order->until_ns - loop_now_ns(host->loop));
	wire_put_string(&writer, order->job, strlen(order->job));
	(void)flood_notice(host, &writer, bytes);
}

static void
handle_agreed_set(struct jobhost *host, struct host_comm *comm, struct comm_notice *notice) {
	struct wire_reader *reader = &notice->reader;
	uint64_t view = wire_get_u64(reader);
	uint32_t room = comm->size < GONE_RANKS_PER_USER ? comm->size : GONE_RANKS_PER_USER;
	uint32_t *ranks = malloc(room * sizeof(*ranks));
	uint32_t runs, count = 0;
	struct gone newest;

	get_gone_rank(reader, notice->happened_ns, &newest);
	runs = wire_get_count_u16(reader, RANGES_MAX, 8);
	for (uint32_t n = 0; n < runs && ranks != NULL && wire_reader_ok(reader); n++) {
		uint32_t first = wire_get_u32(reader), run = wire_get_u32(reader);

		if (first >= comm->size || run == 0 || run > comm->size - first ||
		    run > room - count || (count > 0 && first <= ranks[count - 1])) {
			wire_reader_fail(reader, -EBADMSG);
			break;
		}
		for (uint32_t rank = first; rank < first + run; rank++)
			ranks[count++] = rank;
	}
	if (ranks != NULL && wire_reader_ok(reader) &&
	    agree_can_number_set(comm, notice->origin, ranks, count))
		agree_apply_set(host, comm, view, ranks, count, &newest);
	free(ranks);
}

// Return whether some local rank registered before the end. The others do not hear of it: they
// begin another attempt.
static bool
end_concerns_comm(struct jobhost *host, struct host_comm *comm, const struct gone *gone) {
	uint64_t first_ns = UINT64_MAX;

	if (gone->earliest_ns > comm->newest_ns)
		return true;
	for (const struct host_rank *at = comm->ranks; at != NULL; at = at->next_of_comm) {
		// The next sample shows when an earlier agent registered the rank.
		if ((at->told.flags & JOB_REGISTER_AGAIN) != 0 && !at->page_had_comm)
			return false;
		first_ns = at->since_ns < first_ns ? at->since_ns : first_ns;
	}
	return gone->earliest_ns > first_ns && comm_split_attempt(host, comm, gone->earliest_ns);
}

static void
handle_gone_rank(struct jobhost *host, struct host_comm *comm, struct comm_notice *notice) {
	struct gone gone;

	get_gone_rank(&notice->reader, notice->happened_ns, &gone);
	if (!wire_reader_ok(&notice->reader))
		return;
	// The notice asks for the set if the rank is known to be gone.
	if (agree_find_gone_rank(comm, gone.rank) == NULL) {
		if (!agree_can_report_rank(comm, notice->origin, gone.rank))
			return;
		if (!end_concerns_comm(host, comm, &gone)) {
			notice->is_unproven = true;
			return;
		}
	}
	agree_add_gone_rank(host, comm, gone.rank, gone.cause, gone.happened_ns, false);
}

static void
handle_departures(struct jobhost *host, struct host_comm *comm, struct comm_notice *notice) {
	uint32_t ranks[DEPARTURES_MAX], kept = 0;
	uint32_t count = wire_get_count_u16(&notice->reader, DEPARTURES_MAX, sizeof(*ranks));

	for (uint32_t n = 0; n < count; n++) {
		ranks[kept] = wire_get_u32(&notice->reader);
		kept += agree_can_report_rank(comm, notice->origin, ranks[kept]);
	}
	if (wire_reader_ok(&notice->reader) && notice->happened_ns > comm->newest_ns)
		agree_add_departed_ranks(host, comm, ranks, kept);
}

static void
handle_comm_notice(struct jobhost *host, struct host_comm *comm, struct comm_notice *notice) {
	struct wire_reader *reader = &notice->reader;
	struct stall stall = {0};

	switch (notice->kind) {
	case NOTICE_GONE:
		handle_gone_rank(host, comm, notice);
		break;
	case NOTICE_AGREED:
		handle_agreed_set(host, comm, notice);
		break;
	case NOTICE_ROSTER:
		// The rows may be of the newest attempt.
		if (!comm->is_past)
			handle_roster(comm, notice);
		break;
	case NOTICE_ROSTER_REQUEST:
		watch_on_roster_request(host, comm);
		break;
	case NOTICE_STALL:
		stall.kind = (enum tocsin_event_kind)wire_get_u8(reader);
		stall.rank = wire_get_u32(reader);
		(void)wire_get_string(reader, stall.text, sizeof(stall.text));
		if (wire_reader_ok(reader) && stall_is_current(comm, notice->happened_ns) &&
		    (stall.kind == TOCSIN_COMM_WAITING || stall.kind == TOCSIN_COMM_STUCK) &&
		    (stall.rank == TOCSIN_NO_RANK || stall.rank < comm->size))
			stall_notify_ranks(host, comm, &stall);
		break;
	case NOTICE_DEPARTED:
		handle_departures(host, comm, notice);
		break;
	default:
		break; // from a newer agent
	}
}

static void handle_level(struct jobhost *host, struct wire_reader *reader) {
	char job[JOB_ID_BYTES];
	uint8_t level = wire_get_u8(reader);
	uint64_t for_ns = wire_get_u64(reader);

	(void)wire_get_string(reader, job, sizeof(job));
	if (wire_reader_ok(reader))
		level_apply_notice(host, level, for_ns, job);
}

static void hold_notice(struct jobhost *host, uint64_t origin, const void *bytes, size_t size) {
	struct heard_notice **last = &host->held, *held = NULL;
	uint32_t of_origin = 0;

	// Ask even if the notice is dropped: the next one can then be used.
	peer_clock_ask(host, origin);
	for (; *last != NULL; last = &(*last)->next)
		of_origin += (*last)->origin == origin;
	if (host->held_count < HELD_NOTICES_MAX && of_origin < HELD_OF_ORIGIN_MAX)
		held = malloc(sizeof(*held) + size);
	if (held == NULL)
		return; // its sender repeats what is not agreed on
	*held = (struct heard_notice
	){.origin = origin, .since_ns = loop_now_ns(host->loop), .size = size};
	memcpy(held->bytes, bytes, size);
	*last = held; // in the order of arrival: a later stall replaces an earlier one
	host->held_count++;
}

void notice_handle(struct jobhost *host, uint64_t origin, const void *bytes, size_t size) {
	struct comm_notice notice = {.origin = origin}, copy;
	struct host_comm key = {0}, *comm, *next;
	struct wire_reader *reader = &notice.reader;
	bool is_unproven;
	uint64_t fact_ns;
	uint8_t version;

	wire_reader_init(reader, bytes, size);
	version = wire_get_u8(reader);
	notice.kind = wire_get_u8(reader);
	if (version >= NOTICE_VERSION_MIN && notice.kind == NOTICE_LEVEL) {
		handle_level(host, reader);
		return;
	}
	key.comm_hash = wire_get_u64(reader);
	key.host_hash = wire_get_u64(reader);
	key.process_hash = wire_get_u64(reader);
	key.uid = wire_get_u32(reader);
	key.size = wire_get_u32(reader);
	key.attempt = wire_get_u32(reader);
	fact_ns = wire_get_u64(reader);
	comm = comm_find_by_key(host, &key);
	next = comm_next_past(host, &key, NULL);
	if (!wire_reader_ok(reader) || version < NOTICE_VERSION_MIN)
		return;
	if (notice.kind == NOTICE_GONE)
		departed_ranks_notify(host, &key);
	if (comm == NULL && next == NULL)
		return;
	if (notice.kind != NOTICE_ROSTER_REQUEST &&
	    !peer_clock_translate(host, origin, fact_ns, &notice.happened_ns)) {
		hold_notice(host, origin, bytes, size);
		return;
	}
	copy = notice;
	if (comm != NULL)
		handle_comm_notice(host, comm, &copy);
	is_unproven = copy.is_unproven;
	while (next != NULL) {
		comm = next;
		next = comm_next_past(host, &key, comm);
		copy = notice;
		handle_comm_notice(host, comm, &copy);
		is_unproven = is_unproven || copy.is_unproven;
	}
	// Once its coordinator has numbered the set, the sender repeats nothing. So wait here for a
	// fresh answer of its clock, which may prove more.
	if (is_unproven && !peer_clock_was_just_asked(host, origin))
		hold_notice(host, origin, bytes, size);
}

void notice_release_held(struct jobhost *host, uint64_t origin) {
	struct heard_notice **at = &host->held, *released;

	while (*at != NULL) {
		if ((*at)->origin != origin) {
			at = &(*at)->next;
			continue;
		}
		released = *at;
		*at = released->next;
		host->held_count--;
		released->next = NULL;
		*host->heard_last = released;
		host->heard_last = &released->next;
		host->heard_count++;
		loop_defer(host->loop, &host->heard_job);
	}
}

void notice_tick_held(struct jobhost *host, uint64_t now_ns) {
	struct heard_notice **at = &host->held, *held;

	while ((held = *at) != NULL) {
		if (now_ns - held->since_ns < HELD_NS) {
			peer_clock_ask(host, held->origin);
			at = &held->next;
			continue;
		}
		*at = held->next;
		host->held_count--;
		free(held);
	}
}

static void handle_heard_notices(struct loop_job *job) {
	struct jobhost *host = container_of(job, struct jobhost, heard_job);
	uint64_t began_ns = loop_clock_ns(host->loop);

	while (host->heard != NULL) {
		struct heard_notice *heard = host->heard;

		host->heard = heard->next;
		if (host->heard == NULL)
			host->heard_last = &host->heard;
		host->heard_count--;
		notice_handle(host, heard->origin, heard->bytes, heard->size);
		free(heard);
		if (!jobs_have_time(host, &began_ns) && host->heard != NULL) {
			loop_defer(host->loop, job);
			return;
		}
	}
}

// Runs inside the core, where nothing may be sent: queue the notice.
static void on_notice(void *ctx, uint64_t origin, const void *bytes, size_t size) {
	struct jobhost *host = ctx;
	bool of_comm = size < 2 || ((const uint8_t *)bytes)[1] != NOTICE_LEVEL;
	struct heard_notice *heard;

	if ((of_comm && LIST_EMPTY(&host->users)) || host->heard_count >= HEARD_NOTICES_MAX)
		return;
	heard = malloc(sizeof(*heard) + size);
	if (heard == NULL)
		return;
	heard->next = NULL;
	heard->origin = origin;
	heard->size = size;
	memcpy(heard->bytes, bytes, size);
	*host->heard_last = heard;
	host->heard_last = &heard->next;
	host->heard_count++;
	loop_defer(host->loop, &host->heard_job);
}

void notice_init(struct jobhost *host) {
	host->notice_tokens = NOTICES_AT_ONCE;
	host->notice_ns = loop_now_ns(host->loop);
	host->heard_last = &host->heard;
	host->heard_job.run = handle_heard_notices;
	if (host->overlay != NULL)
		overlay_set_notice_consumer(host->overlay, JOBHOST_NOTICE, on_notice, host);
}

static void free_notices(struct heard_notice **list) {
	while (*list != NULL) {
		struct heard_notice *first = *list;

		*list = first->next;
		free(first);
	}
}

void notice_fini(struct jobhost *host) {
	if (host->overlay != NULL)
		overlay_set_notice_consumer(host->overlay, JOBHOST_NOTICE, NULL, NULL);
	loop_undefer(host->loop, &host->heard_job);
	free_notices(&host->heard);
	free_notices(&host->held);
}
