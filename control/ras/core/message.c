// SPDX-License-Identifier: BSD-3-Clause
// Encoding and decoding of the messages on links: INIT, BEAT, UPDATE and the tables.
#include "core/message.h"

#include <errno.h>
#include <string.h>

// Encode family, address and port. The scope is not sent, since it is an interface index of the
// sender's machine.
void message_sock_addr_encode(const struct sock_addr *address, struct wire_writer *writer) {
	wire_put_u8(writer, address->family);
	wire_put_bytes(writer, address->address, address->family == SOCK_ADDR_V4 ? 4 : 16);
	wire_put_u16(writer, address->port);
}

void message_sock_addr_decode(struct wire_reader *reader, struct sock_addr *ret_address) {
	struct sock_addr address = {.family = wire_get_u8(reader)};

	if (address.family != SOCK_ADDR_V4 && address.family != SOCK_ADDR_V6)
		wire_reader_fail(reader, -EBADMSG);
	wire_get_bytes(reader, address.address, address.family == SOCK_ADDR_V4 ? 4 : 16);
	address.port = wire_get_u16(reader);
	if (wire_reader_ok(reader))
		*ret_address = address;
}

static void record_encode(const void *record, size_t record_size, struct wire_writer *writer) {
	must(record_size <= RAS_RECORD_BYTES_MAX);
	wire_put_u16(writer, (uint16_t)record_size);
	wire_put_bytes(writer, record, record_size);
}

static const void *record_decode(struct wire_reader *reader, size_t *ret_size) {
	uint32_t size = wire_get_count_u16(reader, RAS_RECORD_BYTES_MAX, 1);
	const void *record = wire_get_view(reader, size);

	*ret_size = size;
	return record;
}

// Decode the state in which the other side holds this agent. An unknown value is no reason to
// refute anything.
static uint8_t held_state_decode(struct wire_reader *reader) {
	uint8_t state = wire_get_u8(reader);

	return state <= RAS_LEFT ? state : RAS_UNKNOWN;
}

// Return true if news and briefs may carry the state. Suspicions stay with the observer.
static bool state_is_sent_to_peers(uint8_t state) {
	return state == RAS_ALIVE || state == RAS_DEAD || state == RAS_LEFT;
}

int message_init_encode(const struct message_init *init, struct wire_writer *writer) {
	wire_put_u8(writer, MESSAGE_INIT);
	wire_put_u16(writer, init->version_min);
	wire_put_u16(writer, init->version_max);
	wire_put_u64(writer, init->cluster);
	wire_put_u8(writer, init->flags);
	wire_put_u32(writer, init->uses);
	record_encode(init->record, init->record_size, writer);
	wire_put_u64(writer, init->incarnation);
	wire_put_u64(writer, init->digest);
	wire_put_u8(writer, init->your_state);
	wire_put_u64(writer, init->your_incarnation);
	wire_put_u64(writer, init->sought);
	return wire_writer_finish(writer, &(size_t){0});
}

int message_init_decode(struct wire_reader *reader, struct message_init *ret_init) {
	struct message_init init = {0};

	init.version_min = wire_get_u16(reader);
	init.version_max = wire_get_u16(reader);
	init.cluster = wire_get_u64(reader);
	init.flags = wire_get_u8(reader);
	init.uses = wire_get_u32(reader);
	init.record = record_decode(reader, &init.record_size);
	init.incarnation = wire_get_u64(reader);
	init.digest = wire_get_u64(reader);
	init.your_state = held_state_decode(reader);
	init.your_incarnation = wire_get_u64(reader);
	if (wire_reader_left(reader) > 0) // older agents end the message here
		init.sought = wire_get_u64(reader);
	if (init.version_min > init.version_max)
		wire_reader_fail(reader, -EBADMSG);
	if (!wire_reader_ok(reader))
		return wire_reader_error(reader);
	*ret_init = init;
	return 0;
}

int message_init_ack_encode(const struct message_init_ack *ack, struct wire_writer *writer) {
	must(ack->redirect_count <= MESSAGE_REDIRECTS_MAX);
	wire_put_u8(writer, MESSAGE_INIT_ACK);
	wire_put_u16(writer, ack->version_min);
	wire_put_u16(writer, ack->version);
	wire_put_u8(writer, ack->refusal);
	wire_put_u32(writer, ack->uses);
	record_encode(ack->record, ack->record_size, writer);
	wire_put_u64(writer, ack->incarnation);
	wire_put_u64(writer, ack->digest);
	wire_put_u8(writer, ack->your_state);
	wire_put_u64(writer, ack->your_incarnation);
	wire_put_u64(writer, ack->your_start);
	wire_put_u16(writer, (uint16_t)ack->redirect_count);
	for (uint32_t n = 0; n < ack->redirect_count; n++)
		message_sock_addr_encode(&ack->redirects[n], writer);
	wire_put_u8(writer, ack->flags);
	return wire_writer_finish(writer, &(size_t){0});
}

int message_init_ack_decode(struct wire_reader *reader, struct message_init_ack *ret_ack) {
	struct message_init_ack ack = {0};

	ack.version_min = wire_get_u16(reader);
	ack.version = wire_get_u16(reader);
	ack.refusal = wire_get_u8(reader);
	ack.uses = wire_get_u32(reader);
	ack.record = record_decode(reader, &ack.record_size);
	ack.incarnation = wire_get_u64(reader);
	ack.digest = wire_get_u64(reader);
	ack.your_state = held_state_decode(reader);
	ack.your_incarnation = wire_get_u64(reader);
	ack.your_start = wire_get_u64(reader);
	ack.redirect_count = wire_get_count_u16(reader, MESSAGE_REDIRECTS_MAX, 7);
	for (uint32_t n = 0; n < ack.redirect_count; n++)
		message_sock_addr_decode(reader, &ack.redirects[n]);
	ack.flags = wire_get_u8(reader);
	if (ack.version_min > ack.version)
		wire_reader_fail(reader, -EBADMSG);
	if (!wire_reader_ok(reader))
		return wire_reader_error(reader);
	*ret_ack = ack;
	return 0;
}

void message_beat_encode(const struct message_beat *beat, struct wire_writer *writer) {
	uint8_t flags = beat->flags & (uint8_t)~MESSAGE_BEAT_WALL;

	if (beat->wall_ns != 0)
		flags |= MESSAGE_BEAT_WALL;
	wire_put_u8(writer, MESSAGE_BEAT);
	wire_put_u32(writer, beat->sequence);
	wire_put_u32(writer, beat->echo);
	wire_put_u32(writer, beat->echo_delay_us);
	wire_put_u64(writer, beat->digest);
	wire_put_u32(writer, beat->uses);
	wire_put_u8(writer, beat->period);
	wire_put_u8(writer, flags);
	if (beat->wall_ns != 0)
		wire_put_u64(writer, beat->wall_ns);
}

int message_beat_decode(struct wire_reader *reader, struct message_beat *ret_beat) {
	struct message_beat beat = {0};

	beat.sequence = wire_get_u32(reader);
	beat.echo = wire_get_u32(reader);
	beat.echo_delay_us = wire_get_u32(reader);
	beat.digest = wire_get_u64(reader);
	beat.uses = wire_get_u32(reader);
	beat.period = wire_get_u8(reader);
	beat.flags = wire_get_u8(reader);
	if ((beat.flags & MESSAGE_BEAT_WALL) != 0) {
		beat.wall_ns = wire_get_u64(reader);
		if (beat.wall_ns == 0)
			wire_reader_fail(reader, -EBADMSG);
	}
	if (!wire_reader_ok(reader))
		return wire_reader_error(reader);
	*ret_beat = beat;
	return 0;
}

// Decode the version of a maintenance switch. A member that claims a version which no honest one
// reaches could block the switch for good, so such a version says nothing.
static uint32_t maint_version_decode(struct wire_reader *reader) {
	uint32_t version = wire_get_u32(reader);

	return version <= RAS_MAINT_VERSION_MAX ? version : 0;
}

// One item of news: flags, state, hops, id, incarnation, maintenance, then the fields that the
// flags announce.
#define NEWS_RECORD 0x01
#define NEWS_DEATH 0x02	 // only for deaths: cause, observers, u32 reached, u32 all members
#define NEWS_SIGNED 0x04 // only for departures: their signature, after the fields of a death
#define NEWS_KNOWN (NEWS_RECORD | NEWS_DEATH | NEWS_SIGNED)
#define NEWS_BYTES_MIN 23
#define NEWS_HOPS_AT 2

size_t message_news_bytes(const struct peer_news *news) {
	size_t bytes = MESSAGE_ITEM_LENGTH_BYTES + NEWS_BYTES_MIN;

	if (news->state == RAS_DEAD)
		bytes += 10 + news->observer_count * sizeof(uint64_t);
	if (news->signature != NULL)
		bytes += RAS_SIGNATURE_BYTES;
	if (news->record != NULL)
		bytes += 2 + news->record->size;
	return bytes;
}

void message_news_encode(const struct peer_news *news, struct wire_writer *writer) {
	size_t length_at = wire_reserve_u16(writer);
	size_t begin = wire_writer_used(writer);
	uint8_t flags = 0;

	must(news->observer_count <= RAS_OBSERVERS_MAX);
	if (news->record != NULL)
		flags |= NEWS_RECORD;
	if (news->state == RAS_DEAD)
		flags |= NEWS_DEATH;
	if (news->signature != NULL)
		flags |= NEWS_SIGNED;
	wire_put_u8(writer, flags);
	wire_put_u8(writer, news->state);
	wire_put_u8(writer, news->hops);
	wire_put_u64(writer, news->id);
	wire_put_u64(writer, news->incarnation);
	wire_put_u32(writer, news->maint);
	if ((flags & NEWS_DEATH) != 0) {
		wire_put_u8(writer, news->cause);
		wire_put_u8(writer, news->observer_count);
		for (uint32_t n = 0; n < news->observer_count; n++)
			wire_put_u64(writer, news->observers[n]);
		wire_put_u32(writer, news->reached);
		wire_put_u32(writer, news->of);
	}
	if (news->signature != NULL)
		wire_put_bytes(writer, news->signature, RAS_SIGNATURE_BYTES);
	if (news->record != NULL)
		record_encode(news->record->encoding, news->record->size, writer);
	wire_patch_u16(writer, length_at, (uint16_t)(wire_writer_used(writer) - begin));
}

// Decode the fields after the head of an item whose state is known.
static void
news_body_decode(struct wire_reader *body, uint8_t flags, struct message_news *decoded) {
	struct peer_news *news = &decoded->news;

	if (!state_is_sent_to_peers(news->state) ||
	    ((flags & NEWS_DEATH) != 0) != (news->state == RAS_DEAD) ||
	    ((flags & NEWS_SIGNED) != 0 && news->state != RAS_LEFT))
		wire_reader_fail(body, -EBADMSG);
	if ((flags & NEWS_DEATH) != 0) {
		news->cause = wire_get_u8(body);
		news->observer_count = wire_get_u8(body);
		if (news->observer_count > RAS_OBSERVERS_MAX) {
			wire_reader_fail(body, -EBADMSG);
			news->observer_count = 0;
		}
		for (uint32_t n = 0; n < news->observer_count; n++)
			news->observers[n] = wire_get_u64(body);
		news->reached = wire_get_u32(body);
		news->of = wire_get_u32(body);
		if (news->reached > news->of)
			wire_reader_fail(body, -EBADMSG);
	}
	if ((flags & NEWS_SIGNED) != 0)
		news->signature = wire_get_view(body, RAS_SIGNATURE_BYTES);
	if ((flags & NEWS_RECORD) != 0)
		decoded->record = record_decode(body, &decoded->record_size);
	// Fields of unknown flags follow those of the known flags.
	decoded->foreign = (flags & ~NEWS_KNOWN) != 0 || news->cause >= RAS_CAUSE_COUNT ||
			   wire_reader_left(body) > 0;
}

int message_news_decode(struct wire_reader *reader, struct message_news *ret_news) {
	struct message_news decoded = {0};
	struct peer_news *news = &decoded.news;
	struct wire_reader body;
	uint8_t flags;

	if (!wire_reader_ok(reader))
		return wire_reader_error(reader);
	if (wire_reader_left(reader) == 0)
		return -ENODATA;
	decoded.item_size = wire_get_u16(reader);
	decoded.item = wire_get_view(reader, decoded.item_size);
	wire_reader_init(&body, decoded.item, decoded.item != NULL ? decoded.item_size : 0);
	flags = wire_get_u8(&body);
	news->state = wire_get_u8(&body);
	news->hops = wire_get_u8(&body);
	news->id = wire_get_u64(&body);
	news->incarnation = wire_get_u64(&body);
	news->maint = maint_version_decode(&body);
	decoded.state_foreign = message_state_is_foreign(news->state);
	if (decoded.state_foreign)
		decoded.foreign = true;
	else
		news_body_decode(&body, flags, &decoded);
	wire_reader_fail(reader, wire_reader_error(&body));
	if (!wire_reader_ok(reader))
		return wire_reader_error(reader);
	*ret_news = decoded;
	return 0;
}

int message_item_compare(const void *a, size_t a_size, const void *b, size_t b_size) {
	const uint8_t *first = a, *second = b;
	size_t shorter = a_size < b_size ? a_size : b_size;
	int order;

	must(shorter >= NEWS_BYTES_MIN);
	order = memcmp(first, second, NEWS_HOPS_AT);
	if (order == 0)
		order =
			memcmp(first + NEWS_HOPS_AT + 1, second + NEWS_HOPS_AT + 1,
			       shorter - NEWS_HOPS_AT - 1);
	return order != 0 ? order : (a_size > b_size) - (a_size < b_size);
}

void message_brief_begin(uint64_t mask, uint8_t flags, struct wire_writer *writer) {
	wire_put_u8(writer, MESSAGE_BRIEF);
	wire_put_u64(writer, mask);
	wire_put_u8(writer, flags);
	wire_put_u16(writer, MESSAGE_BRIEF_BYTES);
}

int message_brief_head_decode(struct wire_reader *reader, struct message_brief_head *ret_head) {
	struct message_brief_head head;

	head.mask = wire_get_u64(reader);
	head.flags = wire_get_u8(reader);
	head.entry_bytes = wire_get_u16(reader);
	if (head.entry_bytes < MESSAGE_BRIEF_BYTES)
		wire_reader_fail(reader, -EBADMSG);
	if (!wire_reader_ok(reader))
		return wire_reader_error(reader);
	*ret_head = head;
	return 0;
}

void message_brief_encode(const struct message_brief *brief, struct wire_writer *writer) {
	wire_put_u64(writer, brief->id);
	wire_put_u64(writer, brief->incarnation);
	wire_put_u64(writer, brief->record_digest);
	wire_put_u32(writer, brief->maint);
	wire_put_u8(writer, brief->state);
	wire_put_u8(writer, brief->weight);
}

int message_brief_decode(
	struct wire_reader *reader, uint16_t entry_bytes, struct message_brief *ret_brief
) {
	struct message_brief brief = {0};

	must(entry_bytes >= MESSAGE_BRIEF_BYTES);
	if (!wire_reader_ok(reader))
		return wire_reader_error(reader);
	if (wire_reader_left(reader) == 0)
		return -ENODATA;
	brief.id = wire_get_u64(reader);
	brief.incarnation = wire_get_u64(reader);
	brief.record_digest = wire_get_u64(reader);
	brief.maint = maint_version_decode(reader);
	brief.state = wire_get_u8(reader);
	brief.weight = wire_get_u8(reader);
	wire_get_view(reader, entry_bytes - MESSAGE_BRIEF_BYTES);
	if (!message_state_is_foreign(brief.state) &&
	    (!state_is_sent_to_peers(brief.state) || brief.weight > RAS_OBSERVERS_MAX ||
	     (brief.state != RAS_DEAD && brief.weight > 0)))
		wire_reader_fail(reader, -EBADMSG);
	if (!wire_reader_ok(reader))
		return wire_reader_error(reader);
	*ret_brief = brief;
	return 0;
}
