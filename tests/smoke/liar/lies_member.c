// SPDX-License-Identifier: BSD-3-Clause
// Lies about members: updates of the table. liars.py says what must hold against each.
#include "liar.h"

#include <stdio.h>
#include <string.h>

#define DEATH_TURNS 50	   // between two deaths of the victim
#define DEATHS_MAX 2	   // after more than three the victim counts as flapping
#define NAMELESS_MAX 20000 // members without a record
#define NAMELESS_AT_ONCE 500
#define INVENTED_MAX 40000 // members with a record and an address
#define INVENTED_AT_ONCE 200
#define INVENTED_PORT 28030

// Make a record with the key of this agent, for a name and an address of the liar's choice.
static struct ras_record *
record_make(struct liar *liar, const char *name, uint64_t start, const struct sock_addr *address) {
	struct ras_record *record;
	struct ras_peer_info info;

	ras_record_info(ras_self(liar->ras)->record, &info);
	snprintf(info.name, sizeof(info.name), "%s", name);
	snprintf(info.host, sizeof(info.host), "host-%s", name);
	info.start = start;
	info.addresses[0] = *address;
	info.address_count = 1;
	info.device_count = 0;
	return ras_record_from_info(liar->ras->interner, &info, &record) == 0 ? record : NULL;
}

static void send_alive(struct liar *liar, struct ras_record *record) {
	const struct peer_news news = {
		.id = record->id,
		.incarnation = ras_incarnation(record->start, 0),
		.record = record,
		.state = RAS_ALIVE,
	};

	liar_send_news(liar, &news);
	ras_record_put(liar->ras->interner, record);
}

// Members that nobody can look for: ids without a record.
static void tell_members(struct liar *liar) {
	uint8_t frame[RAS_FRAME_MAX];
	struct wire_writer writer;

	if (liar->turn * NAMELESS_AT_ONCE >= NAMELESS_MAX)
		return;
	wire_writer_init(&writer, frame, sizeof(frame));
	wire_put_u8(&writer, MESSAGE_UPDATE);
	for (uint32_t n = 0; n < NAMELESS_AT_ONCE; n++) {
		uint64_t number = liar->turn * NAMELESS_AT_ONCE + n;
		const struct peer_news news = {
			.id = ras_id((const char *)&number, sizeof(number)),
			.incarnation = ras_incarnation(1, 0),
			.state = RAS_ALIVE,
		};

		message_news_encode(&news, &writer);
	}
	liar_send_all(liar, frame, wire_writer_used(&writer));
}

// Members at addresses where nobody listens.
static void tell_addresses(struct liar *liar) {
	for (uint32_t n = 0; n < INVENTED_AT_ONCE; n++) {
		uint32_t number = liar->turn * INVENTED_AT_ONCE + n;
		struct sock_addr address = {
			.family = SOCK_ADDR_V4,
			.port = INVENTED_PORT,
			.address = {127, 252, (uint8_t)(number / 250), (uint8_t)(number % 250 + 1)},
		};
		struct ras_record *record;
		char name[32];

		if (number >= INVENTED_MAX)
			return;
		snprintf(name, sizeof(name), "ghost%u", number);
		record = record_make(liar, name, 1, &address);
		if (record != NULL)
			send_alive(liar, record);
	}
}

// A second name at the address of the victim.
static void tell_twin(struct liar *liar) {
	struct ras_record *record;

	if (liar->turn % LIAR_TURNS_PER_SECOND != 0)
		return;
	record = record_make(
		liar, "twin", 1 + liar->turn, &liar_victim_entry(liar)->record->address
	);
	if (record != NULL)
		send_alive(liar, record);
}

// The victim is dead, as two other members saw.
static void tell_death(struct liar *liar) {
	const struct peer_entry *victim = liar_victim_entry(liar);
	struct ras *ras = liar->ras;
	uint32_t members = peers_member_count(&ras->peers);
	struct peer_news news = {
		.id = liar->victim,
		.incarnation = victim->incarnation,
		.maint = victim->maint,
		.state = RAS_DEAD,
		.cause = RAS_CAUSE_SILENT,
		.reached = members - 1,
		.of = members,
	};

	if (liar->turn % DEATH_TURNS != 0 || liar->turn >= DEATHS_MAX * DEATH_TURNS ||
	    !peer_is_member(victim))
		return;
	for (uint32_t slot = 0; slot < ras->peers.entry_count; slot++) {
		const struct peer_entry *entry = ras_entry(ras, slot);

		if (entry->record != NULL && peer_is_member(entry) && slot != ras->self_slot &&
		    entry->record->id != liar->victim && news.observer_count < RAS_OBSERVERS_MAX)
			news.observers[news.observer_count++] = entry->record->id;
	}
	liar_send_news(liar, &news);
}

// The victim's name with another key, at an address of the liar.
static void tell_claim(struct liar *liar) {
	const struct peer_entry *victim = liar_victim_entry(liar);
	struct sock_addr address = ras_self(liar->ras)->record->address;
	struct ras_record *record;
	char name[RAS_NAME_MAX + 1];

	if (liar->turn % LIAR_TURNS_PER_SECOND != 1)
		return;
	snprintf(name, sizeof(name), "%.*s", victim->record->name_length, victim->record->name);
	record = record_make(
		liar, name, ras_incarnation_start(victim->incarnation) + 1 + liar->turn, &address
	);
	if (record != NULL)
		send_alive(liar, record);
}

// The victim has left, and its name is there with another key.
static void tell_left(struct liar *liar) {
	const struct peer_entry *victim = liar_victim_entry(liar);
	const struct peer_news news = {
		.id = liar->victim,
		.incarnation = victim->incarnation,
		.maint = victim->maint,
		.state = RAS_LEFT,
	};

	if (liar->turn % LIAR_TURNS_PER_SECOND == 0)
		liar_send_news(liar, &news);
	tell_claim(liar);
}

// An order that nobody gave: the victim is in maintenance.
static void tell_maint(struct liar *liar) {
	const struct peer_entry *victim = liar_victim_entry(liar);
	const struct peer_news news = {
		.id = liar->victim,
		.incarnation = victim->incarnation,
		.maint = (victim->maint + 1) | 1,
		.state = RAS_ALIVE,
	};

	if (liar->turn == 0)
		liar_send_news(liar, &news);
}

const struct lie lies_of_members[] = {
	{"members", tell_members, NULL}, {"addresses", tell_addresses, NULL},
	{"twin", tell_twin, NULL},	 {"death", tell_death, NULL},
	{"claim", tell_claim, NULL},	 {"left", tell_left, NULL},
	{"maint", tell_maint, NULL},	 {NULL, NULL, NULL},
};
