// SPDX-License-Identifier: BSD-3-Clause
// Prints the answer as text, on a terminal in at most 80 columns.
#include "ifaces/ifaces.h"

#include <lib/escape.h>
#include <lib/record.h>

#include <jansson.h>

#include <linux/if_addr.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define TERMINAL_COLUMNS 80
#define QUOTED_BYTES 42 // a setting's line has 38 columns before the value

#define COLUMN(key, unit, ...) \
	{ key, RECORD_NONE, 0, unit, NULL, __VA_ARGS__, NULL, NULL }
static const struct record_field answer_fields[] = {
	COLUMN("interface", UNIT_NONE, "INTERFACE", 15, 0),
	COLUMN("address", UNIT_NONE, "ADDRESS", 43, 0),
	COLUMN("class", UNIT_NONE, "CLASS", 16, 4),
	COLUMN("speed_mbps", UNIT_COUNT, "Mb/s", 9, 3),
	COLUMN("mtu_bytes", UNIT_COUNT, "MTU", 6, 2),
	COLUMN("port", UNIT_COUNT, "PORT", 5, 1),
};
static const struct record answer_record = RECORD("chosen", answer_fields);

struct flag_name {
	uint32_t flag;
	const char *name;
};

static const struct flag_name address_flags[] = {
	{IFA_F_TENTATIVE, "tentative"},
	{IFA_F_DADFAILED, "duplicate"},
	{IFA_F_DEPRECATED, "deprecated"},
};

static void
print_address(const struct netif_table *table, int32_t position, char *text, size_t size) {
	char ip[SOCK_ADDR_TEXT_BYTES];
	struct sock_addr bare;

	if (position < 0) {
		snprintf(text, size, "-");
		return;
	}
	bare = table->addresses[position].address;
	bare.scope_id = 0; // the interface name next to the address already says this
	sock_addr_format_host(&bare, ip);
	snprintf(text, size, "%s/%u", ip, table->addresses[position].prefix_bits);
}

// Format a number; 0 means unknown and gives "-".
static void print_number(uint32_t number, char text[static 16]) {
	if (number == 0)
		snprintf(text, 16, "-");
	else
		snprintf(text, 16, "%u", number);
}

static void print_answer(
	const struct ifaces *ifaces,
	const struct netif_table *table,
	const struct netif_choice *choice
) {
	size_t count = ifaces_answer_count(ifaces, choice);
	json_t *rows = json_array();

	for (size_t n = 0; n < count; n++) {
		const struct netif_judgement *judgement = &choice->judgements[choice->chosen[n]];
		const struct netif_link *link = &table->links[judgement->link];
		const char *alias = ifaces->is_nccl ? ifaces_alias(table, judgement) : NULL;
		char address[SOCK_ADDR_TEXT_BYTES + 8];
		char name[NETIF_NAME_TEXT_BYTES];
		json_t *row;

		print_address(table, judgement->address, address, sizeof(address));
		netif_name_print(alias == NULL ? link->name : alias, name);
		row = json_pack(
			"{s:s,s:s,s:s,s:I}", "interface", name, "address", address, "class",
			netif_class_name(link->class), "mtu_bytes", (json_int_t)link->mtu_bytes
		);
		// A number that is 0 is unknown.
		if (link->sysfs.speed_mbps != 0)
			json_object_set_new(
				row, "speed_mbps", json_integer(link->sysfs.speed_mbps)
			);
		if (choice->port != 0)
			json_object_set_new(row, "port", json_integer(choice->port));
		json_array_append_new(rows, row);
	}
	if (count > 0)
		record_print_table(
			&answer_record, rows, isatty(STDOUT_FILENO) == 1 ? TERMINAL_COLUMNS : 0,
			NULL, NULL, stdout
		);
	json_decref(rows);
}

// Print a quoted value, cut on a terminal only.
static void print_value(const char *value) {
	size_t left = strlen(value);
	struct escape_unit unit;
	char quoted[QUOTED_BYTES];

	if (isatty(STDOUT_FILENO) == 1) {
		escape_quote(value, left, quoted, sizeof(quoted));
		printf("%s\n", quoted);
		return;
	}
	putchar('"');
	for (; left > 0; value += unit.taken_bytes, left -= unit.taken_bytes) {
		escape_next(value, left, &unit);
		printf("%.*s", (int)unit.text_size, unit.text);
	}
	printf("\"\n");
}

static void print_settings(const struct ifaces *ifaces, const struct netif_choice *choice) {
	struct ifaces_setting settings[IFACES_SETTINGS];

	ifaces_settings(ifaces, settings);
	printf("\nRules %s\n", ifaces->is_nccl ? "nccl" : "tocsin");
	for (size_t n = 0; n < IFACES_SETTINGS; n++) {
		printf("  %-22s %-12s ", settings[n].name, settings[n].source);
		if (settings[n].value != NULL)
			print_value(settings[n].value);
		else
			printf("not set\n");
	}
	for (size_t n = 0; n < choice->note_count; n++)
		printf("  note: %s\n", choice->notes[n]);
}

// Print the facts of a link on one line, and the state of link and address on the next.
static void print_facts(const struct netif_table *table, const struct netif_judgement *judgement) {
	const struct netif_link *link = &table->links[judgement->link];
	const struct netif_link *master = netif_table_link_by_index(table, link->master_index);
	const char *alias = ifaces_alias(table, judgement);
	char name[NETIF_NAME_TEXT_BYTES];
	const char *carrier = link->has_carrier ? "carrier" : "no carrier";
	char speed[16];

	if ((link->flags & IFF_UP) == 0)
		carrier = "carrier unknown"; // the carrier of an interface that is down is unknown
	print_number(link->sysfs.speed_mbps, speed);
	printf("    %s, index %u, speed %s%s, mtu %u", netif_class_name(link->class), link->index,
	       link->sysfs.speed_mbps == 0 ? "unknown" : speed,
	       link->sysfs.speed_mbps == 0 ? "" : " Mb/s", link->mtu_bytes);
	if (master != NULL) {
		netif_name_print(master->name, name);
		printf(", port of %s", name);
	}
	printf("\n    %s, %s, %s", (link->flags & IFF_UP) != 0 ? "up" : "down",
	       (link->flags & IFF_RUNNING) != 0 ? "running" : "not running", carrier);
	if (alias != NULL) {
		netif_name_print(alias, name);
		printf(", label %s", name);
	}
	if (!link->sysfs.present)
		printf(", not in sysfs");
	for (size_t n = 0; n < sizeof(address_flags) / sizeof(address_flags[0]); n++) {
		if (judgement->address >= 0 &&
		    (table->addresses[judgement->address].flags & address_flags[n].flag) != 0)
			printf(", %s address", address_flags[n].name);
	}
	printf("\n");
}

static void
print_verdict(const struct ifaces *ifaces, const struct netif_choice *choice, size_t position) {
	const struct netif_judgement *judgement = &choice->judgements[position];
	const struct netif_score *score = &judgement->score;
	enum ifaces_verdict verdict = ifaces_verdict(ifaces, choice, position);

	if (verdict == IFACES_DROPPED) {
		printf("    dropped: %s", netif_reason_text(judgement->reason));
		if (judgement->reason == NETIF_EXCLUDED && judgement->item >= 0)
			printf(", item %s", ifaces_rule(ifaces, judgement));
		printf("\n");
		return;
	}
	printf("    %s by rule: %s\n", ifaces_verdict_word(verdict),
	       ifaces_rule(ifaces, judgement));
	if (ifaces->is_nccl)
		return;
	printf("    score: selector %u route %u subnet %u reach %u class %u speed %u mtu %u\n"
	       "           preference %u\n",
	       score->selector, score->route, score->subnet, score->reach, score->class,
	       score->speed, score->mtu, score->preference);
	if (verdict == IFACES_CHOSEN)
		printf("    decided by %s\n", ifaces_deciding_part(ifaces, choice));
}

static void print_explanation(
	const struct ifaces *ifaces,
	const struct netif_table *table,
	const struct netif_choice *choice
) {
	print_settings(ifaces, choice);
	for (size_t n = 0; n < table->route_count; n++) {
		const struct netif_route *route = &table->routes[n];
		const struct netif_link *link = netif_table_link_by_index(table, route->link_index);
		char peer[SOCK_ADDR_TEXT_BYTES], source[SOCK_ADDR_TEXT_BYTES];
		char name[NETIF_NAME_TEXT_BYTES] = "?";

		sock_addr_format_host(&route->peer, peer);
		sock_addr_format_host(&route->source, source);
		if (link != NULL)
			netif_name_print(link->name, name);
		if (route->error != 0)
			printf("  route to %s: none (%s)\n", peer, strerrordesc_np(-route->error));
		else
			printf("  route to %s: by %s from %s\n", peer, name, source);
	}
	printf("\nCandidates, in the kernel's order\n");
	for (size_t n = 0; n < choice->count; n++) {
		const struct netif_judgement *judgement = &choice->judgements[n];
		char address[SOCK_ADDR_TEXT_BYTES + 8];
		char name[NETIF_NAME_TEXT_BYTES];

		netif_name_print(table->links[judgement->link].name, name);
		print_address(table, judgement->address, address, sizeof(address));
		printf("%c %s %s\n", ifaces_verdict(ifaces, choice, n) == IFACES_CHOSEN ? '*' : ' ',
		       name, address);
		print_facts(table, judgement);
		print_verdict(ifaces, choice, n);
	}
}

void ifaces_print(
	const struct ifaces *ifaces,
	const struct netif_table *table,
	const struct netif_choice *choice,
	bool explain
) {
	print_answer(ifaces, table, choice);
	if (explain) {
		print_explanation(ifaces, table, choice);
		return;
	}
	// Notes about ignored settings are printed even without --explain.
	for (size_t n = 0; n < choice->note_count; n++)
		fprintf(stderr, "tocsin ifaces: %s\n", choice->notes[n]);
}
