// SPDX-License-Identifier: BSD-3-Clause
// What selection decided, and why: one judgement for each address of each link.
#pragma once

#include <lib/netif/table.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NETIF_CHOSEN_MAX 16
#define NETIF_NOTE_BYTES 256
#define NETIF_NOTES_MAX 8
#define NETIF_ERROR_BYTES 1024

// One value that steers selection, and who set it: "NCCL_SOCKET_IFNAME", "--peer", "default".
struct netif_setting {
	const char *value; // NULL: not set
	const char *origin;
};

struct netif_error {
	char text[NETIF_ERROR_BYTES]; // a sentence that quotes what is wrong; perhaps a list below
};

// Why a candidate is out, or that it is in.
enum netif_reason {
	NETIF_TAKEN,
	NETIF_LINK_WITHOUT_ADDRESS,
	NETIF_LINK_DOWN,
	NETIF_LINK_NOT_RUNNING,
	NETIF_LINK_WITHOUT_CARRIER,
	NETIF_LINK_IS_BOND_PORT,
	NETIF_LINK_IS_BRIDGE_PORT,
	NETIF_ADDRESS_TENTATIVE,
	NETIF_ADDRESS_DUPLICATE, // detection failed: another host has it
	NETIF_ADDRESS_DEPRECATED,
	NETIF_ADDRESS_LOOPBACK,
	NETIF_ADDRESS_LINK_LOCAL,
	NETIF_FAMILY_NOT_ASKED,
	NETIF_NOT_SELECTED,
	NETIF_EXCLUDED,
	NETIF_CONTAINER_ONLY,
	NETIF_NAME_TAKEN_BEFORE, // nccl: one address for each name
	NETIF_EARLIER_STEP_WON,	 // nccl
	NETIF_LIST_FULL,	 // nccl: 16 at most
};
#define NETIF_REASON_COUNT (NETIF_LIST_FULL + 1)

// The parts in the order of their weight. value holds them all: the higher one wins, and of two
// equal ones the lower interface index, then the lower address.
struct netif_score {
	uint8_t selector; // 16 for the first item of the list that names it, down to 1; 0: no list
	uint8_t route;	  // 3 way and source address, 2 source address, 1 way, of the peer's route
	uint8_t subnet;	  // 1 + prefix length when the peer is in it
	uint8_t reach;	  // 1 unless link-local or loopback
	uint8_t class;	  // 9 down to 0, see netif_class_rank()
	uint32_t speed;	  // Mb/s, at most 2^20 - 1
	uint32_t mtu;	  // bytes, at most 2^17 - 1
	uint8_t preference; // of the addresses of one link: permanent, primary, IPv4
	uint64_t value;
};

struct netif_judgement {
	uint32_t link;	 // position in the table
	int32_t address; // position in the table, -1: the link has none
	enum netif_reason reason;
	const char *rule;	  // nccl: the step that took it, a constant or the setting's origin
	int32_t item;		  // position in the selector's list, -1: none
	struct netif_score score; // only with the rules tocsin, and only when taken
};

struct netif_choice {
	struct netif_judgement *judgements; // in kernel order; a link without address is last
	size_t count;
	uint32_t chosen[NETIF_CHOSEN_MAX]; // positions in judgements, best first
	size_t chosen_count;
	uint16_t port;				       // that the winning item asks for, 0: none
	char notes[NETIF_NOTES_MAX][NETIF_NOTE_BYTES]; // settings that were passed over, and why
	size_t note_count;
};

// Takes NULL. Returns NULL.
struct netif_choice *netif_choice_destroy(struct netif_choice *choice);

// Half a sentence: "no carrier".
const char *netif_reason_text(enum netif_reason reason);

// A name as text for people: the kernel allows control characters and any byte in it, which are
// escaped as lib/escape.h does.
#define NETIF_NAME_TEXT_BYTES (4 * IFNAMSIZ)
void netif_name_print(const char *name, char text[static NETIF_NAME_TEXT_BYTES]);

// "eth0 192.0.2.2/24" or "eth0", the name as above.
#define NETIF_CANDIDATE_BYTES 160
void netif_candidate_print(
	const struct netif_table *table,
	const struct netif_judgement *judgement,
	char text[static NETIF_CANDIDATE_BYTES]
);

// Puts what the machine has below the sentence, as far as it fits: a line "There are:", one
// for each address or link without any, and how many more.
void netif_error_list(struct netif_error *error, const struct netif_table *table);
