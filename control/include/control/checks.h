// SPDX-License-Identifier: BSD-3-Clause
// What this node finds out about itself: checks of its user, run by the spawn helper, and its own,
// on links, drivers, memory and disk. What they find is said as statements
// (<verdict/observation.h>).
//
// A check has a level. Its statement follows the level with `confirm` runs in a row for the worse
// and `clear` for the better. UNKNOWN (a run that timed out, was not to be started, or made no
// sense) is a statement of its own beside that: it takes nothing back, so it neither drains nor
// undrains. Before its first run a check is unknown.
//
// A program that SIGKILL does not end is said (CheckStuck...) with its pid and where it hangs; it
// is not waited for, its check is not started again before it has ended, and the others go on.
//
// All on the loop's thread. Calls that may hang are made by keepers.
#pragma once

#include <control/loop.h>
#include <control/spawn.h>
#include <dataplane/worker.h>
#include <verdict/engine.h>

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct checks;
struct fabric;
struct fabric_calls;
struct keeper_counters;
struct parse_error;

#define CHECKS_USER_MAX 32	// fewer than programs that may be under way
#define CHECKS_COMMAND_MAX 1024 // bytes
#define CHECKS_NAME_MAX 64
#define CHECKS_TOLD_MAX (VERDICT_STATEMENTS_MAX - 2) // at once, those that weigh most
#define CHECKS_CONFIRM_MAX 100
#define CHECKS_FIRST_NS UINT64_C(5000000000) // first runs are spread over so long, or an interval

enum check_level {
	CHECK_OK,
	CHECK_WARNING,
	CHECK_CRITICAL,
	CHECK_UNKNOWN,
	CHECK_LEVEL_COUNT,
};

enum check_convention {
	CHECK_NAGIOS, // 0 ok, 1 warning, 2 critical, 3 unknown
	CHECK_NPD,    // node-problem-detector: 0 ok, 1 not ok
};

const char *check_level_name(enum check_level level);

struct check_settings {
	const char *name;
	const char *command; // as check_command_split() takes it
	const char *user;    // whose program it is; NULL: the agent's own
	enum check_convention convention;
	uint64_t interval_ns, timeout_ns;
	uint32_t confirm, clear; // runs in a row, at least 1
};

// Splits a command into words, in place: blanks part them; '...' keeps everything, "..." keeps
// everything but \" and \\; \ keeps the next byte. No shell. `words` is NULL behind the last.
// -EINVAL (none, or a quote without its end), -E2BIG (SPAWN_ARGUMENTS_MAX); *ret_why says what.
int check_command_split(
	char *command, char *words[static SPAWN_ARGUMENTS_MAX + 1], const char **ret_why
);

// What its statements are called: "Check", "CheckUnknown" and "CheckStuck" with the name in
// CamelCase behind, cut to VERDICT_REASON_MAX.
struct check_reasons {
	char bad[VERDICT_REASON_MAX + 1];
	char unknown[VERDICT_REASON_MAX + 1];
	char stuck[VERDICT_REASON_MAX + 1];
};

// -EINVAL: there is no letter or digit in the name.
int check_reasons_of(const char *name, struct check_reasons *ret_reasons);
// Whether two checks of these names would be told as one, or a user's as one of the agent's own.
bool check_reasons_clash(const struct check_reasons *a, const struct check_reasons *b);
bool check_reasons_are_own(const struct check_reasons *reasons);

// The agent's own checks.

#define CHECKS_BUILTIN_COUNT 10
#define CHECKS_WORKERS_MAX 64
#define CHECKS_DEVICES_MAX 16

// By place; NULL past the last.
const char *checks_builtin_name(uint32_t own);

// "100", "2.5 Gb/s": gigabits a second, of 0.001 to 99999.999. -EINVAL.
int checks_rate_parse(
	const char *text, size_t length, struct parse_error *error, uint32_t *ret_mbps
);

// An RDMA device of which something is expected: that it is up, or as fast as that.
struct checks_device {
	char name[CHECKS_NAME_MAX];
	uint8_t port;	      // 0: any of its ports
	uint32_t expect_mbps; // 0: as fast as it ever was
};

struct checks_builtin_settings {
	uint64_t interval_ns;
	bool off[CHECKS_BUILTIN_COUNT];
	uint64_t memory_max_bytes; // of the agent, resident; 0: whatever it is
	uint64_t disk_free_bytes;  // of the state directory's file system
	struct checks_device devices[CHECKS_DEVICES_MAX];
	uint32_t device_count;
};

// A polling thread, as it is now.
struct checks_worker {
	const char *name;
	pid_t tid;
	struct worker_sign sign;
	// Somebody changed where it may run, as a cpuset or taskset does; else both are empty.
	struct cpu_set wanted, allowed;
};

struct checks_config {
	uint64_t subject; // this node's id
	struct loop *loop;
	struct spawn *spawn;
	struct keeper_counters *keepers; // of all keepers together; may be NULL
	const char *sysfs;		 // NULL: "/sys/class/infiniband"
	// What a network interface counts; may hang. NULL: as the kernel tells it (ethtool).
	int (*ethtool
	)(const char *netdev, void (*take)(void *ctx, const char *name, uint64_t value), void *ctx);
	const char *proc;	     // NULL: "/proc"
	const char *state_directory; // NULL: there is none, and links are remembered until the end
	const struct fabric_calls *fabric_calls;
	const struct fabric *fabric; // outlives the checks; NULL: none
	// False past the last; NULL: there are none.
	bool (*worker_at)(void *ctx, uint32_t n, struct checks_worker *ret_worker);
	void *worker_ctx;
	uint64_t random_seed;
	void (*say)(void *ctx, const struct statement *statement);
	void *say_ctx;
};

// -ENOMEM, or what keepers say.
int checks_create(const struct checks_config *config, struct checks **ret_checks);
struct checks *checks_destroy(struct checks *checks);

// The user's checks from now on: new ones begin, those that are not among them are taken back, one
// whose command changed is run anew and says until then what it said. Settings are checked before:
// no two clash, and there are at most CHECKS_USER_MAX. -ENOMEM: not all of them are there.
int checks_set_user(struct checks *checks, const struct check_settings *settings, uint32_t count);

// The agent's own checks from now on; before it is called they do not look. -ENOMEM, or what
// keepers say: then they do not look either.
int checks_set_builtin(struct checks *checks, const struct checks_builtin_settings *settings);

// To look at.

struct check_view {
	const char *name;
	const char *command; // "" of the agent's own
	uint64_t interval_ns, timeout_ns;
	bool ran; // then the next four are known
	enum check_level level;
	const char *evidence;
	uint64_t at_ns, took_ns;
	enum check_level told; // what its statement says: not unknown
	const char *reason;    // of the statement that weighs most; "" if there is none
	bool running;
	bool stuck; // then what hangs
	struct spawn_stuck what;
	uint64_t next_ns; // UINT64_MAX: not before what runs has ended
	uint64_t counts[CHECK_LEVEL_COUNT];
};

uint32_t checks_count(const struct checks *checks);
// Valid until the next input.
void checks_at(const struct checks *checks, uint32_t n, struct check_view *ret_view);

struct checks_counters {
	uint64_t runs;
	uint64_t results[CHECK_LEVEL_COUNT];
	uint64_t timed_out, not_started, skipped, stuck;
	uint64_t statements; // told, also those that take another back
	uint32_t checks, warning, critical, unknown, stuck_now; // now
};

void checks_counters(const struct checks *checks, struct checks_counters *ret_counters);
