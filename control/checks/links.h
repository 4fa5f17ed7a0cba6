// SPDX-License-Identifier: BSD-3-Clause
// The ports of the RDMA devices of this machine, as sysfs shows them, and what is remembered of
// them: whether they were up, how fast they can be, and how many errors they counted of late.
#pragma once

#include <control/checks.h>

#define LINK_DEVICES_MAX 32
#define LINK_PORTS_MAX 64 // of all devices
#define LINK_DEVICE_PORTS_MAX 8
#define LINK_COUNTERS_MAX 16
#define LINK_BOOT_BYTES 40 // of a boot id, with its NUL
#define LINK_BOOK_BYTES 65536

// Of a port, by place in the table of links.c: errors that a link without faults does not have.
struct link_counter {
	const char *directory; // below the port
	const char *name;
	uint32_t per_hour; // more than so many in an hour are too many
	uint32_t weight;   // per mille: what as many as may be in an hour are of a bad link; 0:
			   // nothing, what a sound port counts of others is only told
};

extern const struct link_counter link_counters[];
extern const uint32_t link_counter_count;

struct link_port {
	char device[CHECKS_NAME_MAX];
	uint8_t number;
	uint64_t guid; // of the device; 0: not known
	uint8_t state; // 4: active; 0: not to be read
	char state_name[16];
	char phys_name[24];
	uint32_t rate_mbps;		      // 0: not known
	uint64_t counters[LINK_COUNTERS_MAX]; // UINT64_MAX: there is none
};

struct link_device_list {
	char names[LINK_DEVICES_MAX][CHECKS_NAME_MAX];
	uint32_t count;
};

// root: "/sys/class/infiniband". None where there is no such directory. Asks no driver.
void link_list(const char *root, struct link_device_list *ret_list);
// The ports of one device; how many. What cannot be read is as nothing. Asks its driver.
uint32_t
link_read(const char *root, const char *device, struct link_port ports[LINK_DEVICE_PORTS_MAX]);

// One port as it is remembered. Counters and `up` are of one boot of the machine.
struct link_past {
	char device[CHECKS_NAME_MAX];
	uint8_t number;
	uint64_t guid;
	uint32_t best_mbps;
	bool was_up, up; // ever; in this boot
	bool seen;	 // in the last look
	uint64_t looked_ns;
	uint64_t counters[LINK_COUNTERS_MAX];
	uint64_t milli[LINK_COUNTERS_MAX]; // thousandths of an error, of the last hour or so
};

struct link_book {
	char boot[LINK_BOOT_BYTES];
	struct link_past ports[LINK_PORTS_MAX];
	uint32_t count;
	bool changed; // since it was written
};

// As it was written in this or an earlier boot; lines that are none are left out.
void link_book_parse(struct link_book *book, const char *text, const char *boot);
// The length; what does not fit is left out.
size_t link_book_format(const struct link_book *book, char text[static LINK_BOOK_BYTES]);

struct link_finding {
	enum check_level level;
	char evidence[VERDICT_EVIDENCE_MAX + 1];
	uint32_t more; // not named for want of room
};

enum { LINK_STATE, LINK_RATE, LINK_ERRORS, LINK_FINDING_COUNT };

// Enters a look into the book, and says what is wrong. now_ns counts from the machine's boot.
void link_judge(
	struct link_book *book,
	const struct link_port *ports,
	uint32_t count,
	const struct checks_builtin_settings *settings,
	uint64_t now_ns,
	struct link_finding ret_findings[static LINK_FINDING_COUNT]
);
