// SPDX-License-Identifier: BSD-3-Clause
// The checks by which a node tests itself. There are two kinds: the user's checks, run by the spawn
// helper, and the agent's own. The agent's own checks test links, drivers, memory and disk. Results
// become statements (<verdict/observation.h>).
//
// Each check has a level, and its statement follows the level. The statement gets worse after
// `confirm` such runs in a row, and better after `clear` runs. UNKNOWN means that a run timed out,
// could not start or gave no valid result. It is a separate statement that withdraws nothing, so it
// does not change whether a node is drained. Before its first run, a check is unknown.
//
// A program that survives SIGKILL is stated (CheckStuck...) with its pid and the kernel function in
// which it hangs. Nothing waits for it. Its check does not start again before it has ended, and the
// other checks continue.
//
// Loop thread only. Calls that may hang are made by keepers.
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

#define CHECKS_USER_MAX 32	// less than SPAWN_PENDING_MAX
#define CHECKS_COMMAND_MAX 1024 // bytes
#define CHECKS_NAME_MAX 64
#define CHECKS_STATEMENTS_MAX \
	(VERDICT_STATEMENTS_MAX - 2) // statements at a time; the most severe ones
#define CHECKS_CONFIRM_MAX 100
// first runs are spread over this time, or over one interval
#define CHECKS_FIRST_SPREAD_NS UINT64_C(5000000000)

enum check_level {
	CHECK_OK,
	CHECK_WARNING,
	CHECK_CRITICAL,
	CHECK_UNKNOWN,
	CHECK_LEVEL_COUNT,
};

enum check_convention {
	CHECK_NAGIOS, // exit status 0 ok, 1 warning, 2 critical, 3 unknown
	CHECK_NPD,    // node-problem-detector: exit status 0 ok, 1 not ok
};

const char *check_level_name(enum check_level level);

struct check_settings {
	const char *name;
	const char *command; // format of check_command_split()
	const char *user;    // user who runs the program; NULL: the agent's own
	bool by_root_helper; // the root helper runs the program; it knows the check by its name
	enum check_convention convention;
	uint64_t interval_ns, timeout_ns;
	uint32_t confirm, clear; // runs in a row, at least 1
};

// Split a command into words, in place. Blanks separate words. '...' keeps every byte. "..." keeps
// every byte except \" and \\. \ keeps the next byte. No shell is involved. `words` ends with NULL.
// Returns 0, -EINVAL (no word, or an open quote) or -E2BIG (SPAWN_ARGUMENTS_MAX); *ret_why explains
// the error.
int check_command_split(
	char *command, char *words[static SPAWN_ARGUMENTS_MAX + 1], const char **ret_why
);

// Check that a command of the configuration can be split and begins with an absolute path. Returns
// 0, or -EINVAL with the error. A text above CHECKS_COMMAND_MAX is left to the bounds of its key.
int check_command_validate(const char *text, size_t length, struct parse_error *error);

// Reasons of a check's statements: "Check", "CheckUnknown" and "CheckStuck", followed by the name
// in CamelCase. Cut to VERDICT_REASON_MAX.
struct check_reasons {
	char bad[VERDICT_REASON_MAX + 1];
	char unknown[VERDICT_REASON_MAX + 1];
	char stuck[VERDICT_REASON_MAX + 1];
};

// Build the reasons. Returns 0, or -EINVAL if the name has no letter or digit.
int check_reasons_build(const char *name, struct check_reasons *ret_reasons);
// Return whether two checks have the same reasons; whether a user's check has the reasons of one of
// the agent's own checks.
bool check_reasons_clash(const struct check_reasons *a, const struct check_reasons *b);
bool check_reasons_clash_with_builtin(const struct check_reasons *reasons);

// The agent's own checks.

#define CHECKS_BUILTIN_COUNT 11
#define CHECKS_WORKERS_MAX 64
#define CHECKS_DEVICES_MAX 16

// Return the name of the n-th own check, NULL past the last.
const char *checks_builtin_name(uint32_t own);

// Parse a rate in gigabits per second, from 0.001 to 99999.999: "100" or "2.5 Gb/s". Returns 0 or
// -EINVAL.
int checks_rate_parse(
	const char *text, size_t length, struct parse_error *error, uint32_t *ret_mbps
);

// An RDMA device that must be up, or must have a minimum speed.
struct checks_device {
	char name[CHECKS_NAME_MAX];
	uint8_t port;	      // 0: any port
	uint32_t expect_mbps; // 0: the highest speed seen so far
};

struct checks_builtin_settings {
	uint64_t interval_ns;
	bool off[CHECKS_BUILTIN_COUNT];
	uint64_t memory_max_bytes; // maximum resident memory of the agent; 0: no limit
	uint64_t disk_free_bytes;  // minimum free space of the state directory's file system
	struct checks_device devices[CHECKS_DEVICES_MAX];
	uint32_t device_count;
};

// Current state of a polling thread.
struct checks_worker {
	const char *name;
	pid_t tid;
	struct worker_progress sign;
	// The CPU sets, if somebody changed where the thread may run (cpuset, taskset); else both
	// are empty.
	struct cpu_set wanted, allowed;
};

struct checks_config {
	uint64_t subject; // this node's id
	struct loop *loop;
	struct spawn *spawn;
	struct spawn *root_spawn;	 // of the root helper; NULL: no check uses it
	struct keeper_counters *keepers; // totals over all keepers; may be NULL
	const char *sysfs;		 // NULL: "/sys/class/infiniband"
	// Read the counters of a network interface; may hang. NULL: use ethtool.
	int (*ethtool
	)(const char *netdev, void (*take)(void *ctx, const char *name, uint64_t value), void *ctx);
	const char *proc; // NULL: "/proc"
	// NULL: no directory; links are remembered until the agent ends
	const char *state_directory;
	const struct fabric_calls *fabric_calls;
	const struct fabric *fabric; // must outlive the checks; NULL: no fabric
	// Return the n-th worker; false past the last. NULL: there are no workers.
	bool (*worker_at)(void *ctx, uint32_t n, struct checks_worker *ret_worker);
	void *worker_ctx;
	uint64_t random_seed;
	// Publish a statement. Returns 0 or an error; after an error it is called again within 1 s.
	// A withdrawal never fails.
	int (*say)(void *ctx, const struct statement *statement);
	void *say_ctx;
};

// Returns 0, -ENOMEM, or the error of a keeper.
int checks_create(const struct checks_config *config, struct checks **ret_checks);
struct checks *checks_destroy(struct checks *checks);

// Replace the user's checks. New checks start, and missing checks withdraw their statements. A
// check with a changed command runs again, and keeps its statements until then. The caller has
// checked the settings: no two clash, and there are at most CHECKS_USER_MAX. Returns 0 or -ENOMEM;
// on error some checks are missing.
int checks_set_user(struct checks *checks, const struct check_settings *settings, uint32_t count);

// Set up the agent's own checks. They do not run before this call. Returns 0, -ENOMEM, or the error
// of a keeper; on error they do not run either.
int checks_set_builtin(struct checks *checks, const struct checks_builtin_settings *settings);

// The current state of a check.

struct check_view {
	const char *name;
	const char *command; // "" for the agent's own checks
	uint64_t interval_ns, timeout_ns;
	bool ran; // has run; the next four fields are valid
	enum check_level level;
	const char *evidence;
	uint64_t at_ns, took_ns;
	enum check_level told; // level of its statement; never unknown
	const char *reason;    // reason of its most severe statement; "" if it has none
	bool running;
	bool stuck; // a process hangs, described by `what`
	struct spawn_stuck what;
	uint64_t next_ns; // UINT64_MAX: after the current run ends
	uint64_t counts[CHECK_LEVEL_COUNT];
};

uint32_t checks_count(const struct checks *checks);
// Return the n-th check; valid until the next input.
void checks_at(const struct checks *checks, uint32_t n, struct check_view *ret_view);

struct checks_counters {
	uint64_t runs;
	uint64_t results[CHECK_LEVEL_COUNT];
	uint64_t timed_out, not_started, skipped, stuck;
	uint64_t statements; // statements made, including withdrawals
	uint32_t checks, warning, critical, unknown, stuck_now; // current numbers
};

void checks_counters(const struct checks *checks, struct checks_counters *ret_counters);
