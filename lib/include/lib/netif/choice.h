// SPDX-License-Identifier: BSD-3-Clause
// The result of interface selection: one judgement, with its reason, per address of each link.
#pragma once

#include <lib/netif/table.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NETIF_CHOSEN_MAX 16
#define NETIF_NOTE_BYTES 256
#define NETIF_NOTES_MAX 8
#define NETIF_ERROR_BYTES 1024

// One setting of the selection. `origin` names its source: "NCCL_SOCKET_IFNAME", "--peer",
// "default".
struct netif_setting {
	const char *value; // NULL: not set
	const char *origin;
};

struct netif_error {
	// A sentence that quotes the wrong value; netif_error_list() may append lines.
	char text[NETIF_ERROR_BYTES];
};

// Why a candidate was rejected; NETIF_TAKEN: it was accepted.
enum netif_reason {
	NETIF_TAKEN,
	NETIF_LINK_WITHOUT_ADDRESS,
	NETIF_LINK_DOWN,
	NETIF_LINK_NOT_RUNNING,
	NETIF_LINK_WITHOUT_CARRIER,
	NETIF_LINK_IS_BOND_PORT,
	NETIF_LINK_IS_BRIDGE_PORT,
	NETIF_ADDRESS_TENTATIVE,
	NETIF_ADDRESS_DUPLICATE, // another host has the same address
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

// The score of a candidate. The fields are in order of weight, and `value` packs all of them. The
// higher value wins; if two are equal, the lower interface index, then the lower address.
struct netif_score {
	uint8_t selector; // 16 if the first item of the list matches, down to 1; 0: no list
	// Match with the kernel's route to the peer: 2 for its source address, plus 1 for its link.
	uint8_t route;
	uint8_t subnet; // 1 + prefix length if the peer is in the address's subnet, else 0
	uint8_t reach;	// 0 for a link-local or loopback address, else 1
	uint8_t class;	// rank of the link's class, 0 to 9: netif_class_rank()
	uint32_t speed; // Mb/s, at most 2^20 - 1
	uint32_t mtu;	// bytes, at most 2^17 - 1
	// Among addresses of one link: neither temporary nor secondary, then permanent, then IPv4.
	uint8_t preference;
	uint64_t value;
};

struct netif_judgement {
	uint32_t link;	 // index in netif_table.links
	int32_t address; // index in netif_table.addresses; -1: the link has no address
	enum netif_reason reason;
	// nccl: the step that accepted it; a constant string or the origin of the setting.
	const char *rule;
	int32_t item;		  // index of the matching item in the selector; -1: none
	struct netif_score score; // valid with the rules `tocsin` and reason NETIF_TAKEN
};

struct netif_choice {
	struct netif_judgement *judgements; // in kernel order; links without an address are last
	size_t count;
	uint32_t chosen[NETIF_CHOSEN_MAX]; // indexes into `judgements`, best first
	size_t chosen_count;
	uint16_t port; // port in the item of the best choice; 0: none
	// Settings that were ignored or had no effect, and why.
	char notes[NETIF_NOTES_MAX][NETIF_NOTE_BYTES];
	size_t note_count;
};

// Destroy the choice; NULL is allowed. Returns NULL.
struct netif_choice *netif_choice_destroy(struct netif_choice *choice);

// Return a phrase such as "no carrier".
const char *netif_reason_text(enum netif_reason reason);

// Print the name of a link. The kernel allows any byte in a name, so control characters and invalid
// UTF-8 are escaped (lib/escape.h).
#define NETIF_NAME_TEXT_BYTES (4 * IFNAMSIZ)
void netif_name_print(const char *name, char text[static NETIF_NAME_TEXT_BYTES]);

// Print a candidate as "eth0 192.0.2.2/24", or as "eth0" if the link has no address.
#define NETIF_CANDIDATE_BYTES 160
void netif_candidate_print(
	const struct netif_table *table,
	const struct netif_judgement *judgement,
	char text[static NETIF_CANDIDATE_BYTES]
);

// Append a list of the machine's addresses to the sentence, as far as it fits: a heading, one line
// per address or link without an address, and the number of lines left out.
void netif_error_list(struct netif_error *error, const struct netif_table *table);
