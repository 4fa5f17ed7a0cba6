// SPDX-License-Identifier: BSD-3-Clause
#include "message.h"

#include <errno.h>
#include <string.h>

static const char *const type_names[MESSAGE_TYPE_COUNT] = {
	[MESSAGE_INIT] = "INIT",
	[MESSAGE_INIT_ACK] = "INIT_ACK",
	[MESSAGE_BEAT] = "BEAT",
	[MESSAGE_UPDATE] = "UPDATE",
	[MESSAGE_DIGESTS] = "DIGESTS",
	[MESSAGE_BRIEF] = "BRIEF",
	[MESSAGE_PULL] = "PULL",
	[MESSAGE_NOTICE] = "NOTICE",
	[MESSAGE_COLLECT] = "COLLECT",
	[MESSAGE_COLLECTED] = "COLLECTED",
	[MESSAGE_COLLECT_CANCEL] = "COLLECT_CANCEL",
	[MESSAGE_RELAY] = "RELAY",
};

const char *message_type_name(uint8_t type) {
	return type < MESSAGE_TYPE_COUNT && type_names[type] != NULL ? type_names[type] : "unknown";
}

// Family, address and port; a scope is an index of the sender's own machine and stays there.
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

static uint8_t state_decode(struct wire_reader *reader) {
	uint8_t state = wire_get_u8(reader);

	if (state > RAS_LEFT)
		wire_reader_fail(reader, -EBADMSG);
	return state;
}

// What a peer is suspected of stays with the observer.
static bool state_travels(uint8_t state) {
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
	init.your_state = state_decode(reader);
	init.your_incarnation = wire_get_u64(reader);
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
	ack.your_state = state_decode(reader);
	ack.your_incarnation = wire_get_u64(reader);
	ack.your_start = wire_get_u64(reader);
	ack.redirect_count = wire_get_count_u16(reader, MESSAGE_REDIRECTS_MAX, 7);
	for (uint32_t n = 0; n < ack.redirect_count; n++)
		message_sock_addr_decode(reader, &ack.redirects[n]);
	ack.flags = wire_get_u8(reader);
	if (ack.version_min > ack.version || ack.refusal >= RAS_CAUSE_COUNT)
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

// One piece of news: flags, hops, id, incarnation, maintenance, then what the flags announce.
#define NEWS_STATE 0x07
#define NEWS_RECORD 0x08
#define NEWS_DEATH 0x10 // cause, observers, u32 reached of u32: with a death, and nothing else
#define NEWS_KNOWN (NEWS_STATE | NEWS_RECORD | NEWS_DEATH)
#define NEWS_BYTES_MIN 22

size_t message_news_bytes(const struct peer_news *news) {
	size_t bytes = NEWS_BYTES_MIN;

	if (news->state == RAS_DEAD)
		bytes += 10 + news->observer_count * sizeof(uint64_t);
	if (news->record != NULL)
		bytes += 2 + news->record->size;
	return bytes;
}

void message_news_encode(const struct peer_news *news, struct wire_writer *writer) {
	uint8_t flags = news->state;

	must(news->observer_count <= RAS_OBSERVERS_MAX);
	if (news->record != NULL)
		flags |= NEWS_RECORD;
	if (news->state == RAS_DEAD)
		flags |= NEWS_DEATH;
	wire_put_u8(writer, flags);
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
	if (news->record != NULL)
		record_encode(news->record->encoding, news->record->size, writer);
}

static void news_death_decode(struct wire_reader *reader, struct peer_news *news) {
	news->cause = wire_get_u8(reader);
	news->observer_count = wire_get_u8(reader);
	if (news->cause >= RAS_CAUSE_COUNT || news->observer_count > RAS_OBSERVERS_MAX) {
		wire_reader_fail(reader, -EBADMSG);
		return;
	}
	for (uint32_t n = 0; n < news->observer_count; n++)
		news->observers[n] = wire_get_u64(reader);
	news->reached = wire_get_u32(reader);
	news->of = wire_get_u32(reader);
	if (news->reached > news->of)
		wire_reader_fail(reader, -EBADMSG);
}

int message_news_decode(struct wire_reader *reader, struct message_news *ret_news) {
	struct message_news decoded = {0};
	struct peer_news *news = &decoded.news;
	uint8_t flags;

	if (!wire_reader_ok(reader))
		return wire_reader_error(reader);
	if (wire_reader_left(reader) == 0)
		return -ENODATA;
	flags = wire_get_u8(reader);
	news->state = flags & NEWS_STATE;
	news->hops = wire_get_u8(reader);
	news->id = wire_get_u64(reader);
	news->incarnation = wire_get_u64(reader);
	news->maint = wire_get_u32(reader);
	if ((flags & ~NEWS_KNOWN) != 0 || !state_travels(news->state) ||
	    ((flags & NEWS_DEATH) != 0) != (news->state == RAS_DEAD))
		wire_reader_fail(reader, -EBADMSG);
	if ((flags & NEWS_DEATH) != 0)
		news_death_decode(reader, news);
	if ((flags & NEWS_RECORD) != 0)
		decoded.record = record_decode(reader, &decoded.record_size);
	if (!wire_reader_ok(reader))
		return wire_reader_error(reader);
	*ret_news = decoded;
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

int message_brief_decode(struct wire_reader *reader, struct message_brief *ret_brief) {
	struct message_brief brief = {0};

	if (!wire_reader_ok(reader))
		return wire_reader_error(reader);
	if (wire_reader_left(reader) == 0)
		return -ENODATA;
	brief.id = wire_get_u64(reader);
	brief.incarnation = wire_get_u64(reader);
	brief.record_digest = wire_get_u64(reader);
	brief.maint = wire_get_u32(reader);
	brief.state = wire_get_u8(reader);
	brief.weight = wire_get_u8(reader);
	if (!state_travels(brief.state) || brief.weight > RAS_OBSERVERS_MAX ||
	    (brief.state != RAS_DEAD && brief.weight > 0))
		wire_reader_fail(reader, -EBADMSG);
	if (!wire_reader_ok(reader))
		return wire_reader_error(reader);
	*ret_brief = brief;
	return 0;
}
