// SPDX-License-Identifier: BSD-3-Clause
// Ports of this machine's RDMA devices as sysfs shows them, and their history: whether they were
// up, their best rate, and recent errors.
#pragma once

#include <control/checks.h>

#define LINK_DEVICES_MAX 32
#define LINK_PORTS_MAX 64 // of all devices together
#define LINK_DEVICE_PORTS_MAX 8
#define LINK_COUNTERS_MAX 16
#define LINK_BOOT_BYTES 40 // boot id with its NUL
#define LINK_BOOK_BYTES 65536
#define LINK_LINE_BYTES 64

// Error counter of a port that a sound link does not raise. Index into the table of links.c.
struct link_counter {
	const char *directory; // below the port's directory
	const char *name;
	uint32_t per_hour; // more per hour are too many
	// Weight of `per_hour` errors, per mille of a bad link. 0: only mentioned, since a sound
	// port counts faults of its peers here.
	uint32_t weight;
};

extern const struct link_counter link_counters[];
extern const uint32_t link_counter_count;

struct link_port {
	char device[CHECKS_NAME_MAX];
	uint8_t number;
	uint64_t guid; // of the device; 0: unknown
	uint8_t state; // 4: active; 0: cannot be read
	char state_name[16];
	char phys_name[24];
	uint32_t rate_mbps;		      // 0: unknown
	uint64_t counters[LINK_COUNTERS_MAX]; // UINT64_MAX: does not exist
};

struct link_device_list {
	char names[LINK_DEVICES_MAX][CHECKS_NAME_MAX];
	uint32_t count;
};

// Read the first line of a file. Returns false if the file cannot be read or the line is empty.
bool link_line_read(const char *path, char line[static LINK_LINE_BYTES]);
// List the devices below `root` ("/sys/class/infiniband"). Empty if the directory does not exist.
// Does not enter a driver.
void link_list_devices(const char *root, struct link_device_list *ret_list);
// Read the ports of one device and return their number. Unreadable values are zero or UINT64_MAX.
// May block in the driver.
uint32_t link_read_device(
	const char *root, const char *device, struct link_port ports[LINK_DEVICE_PORTS_MAX]
);

// History of one port. Counters and `up` belong to one boot of the machine.
struct link_past {
	char device[CHECKS_NAME_MAX];
	uint8_t number;
	uint64_t guid;
	uint32_t best_mbps;
	// At any time; in this boot.
	bool was_up, up;
	bool seen; // in the last read
	uint64_t looked_ns;
	uint64_t counters[LINK_COUNTERS_MAX];
	// Leaky bucket: thousandths of an error in about the last hour.
	uint64_t milli[LINK_COUNTERS_MAX];
};

struct link_book {
	char boot[LINK_BOOT_BYTES];
	struct link_past ports[LINK_PORTS_MAX];
	uint32_t count;
	bool changed; // a change has not been written yet
};

// Return the history of a port; NULL: the book has none.
struct link_past *link_book_find(struct link_book *book, const char *device, unsigned int number);
// Load a book that this boot or an earlier one wrote. Malformed lines are skipped.
void link_book_parse(struct link_book *book, const char *text, const char *boot);
// Format the book and return its length. Ports that do not fit are omitted.
size_t link_book_format(const struct link_book *book, char text[static LINK_BOOK_BYTES]);

struct link_finding {
	enum check_level level;
	char evidence[VERDICT_EVIDENCE_MAX + 1];
	uint32_t more; // faults not named for lack of room
};

// Append one fault to the evidence, and raise the level if needed. A fault that does not fit is
// only counted.
__attribute__((format(printf, 3, 4))) void
link_finding_add(struct link_finding *finding, enum check_level level, const char *format, ...);
// Append the number of faults that did not fit, if there are any.
void link_finding_add_more(struct link_finding *finding);

enum { LINK_STATE, LINK_RATE, LINK_ERRORS, LINK_FINDING_COUNT };

// Enter one read of all ports into the book and judge it. now_ns counts from the machine's boot.
void link_judge(
	struct link_book *book,
	const struct link_port *ports,
	uint32_t count,
	const struct checks_builtin_settings *settings,
	uint64_t now_ns,
	struct link_finding ret_findings[static LINK_FINDING_COUNT]
);
