// SPDX-License-Identifier: BSD-3-Clause
// Parts of --check-config.
#pragma once

#include <lib/config.h>

#include <stdio.h>

struct agent;
struct agent_settings;
struct port_holder;
struct seal_keys;
struct sock_addr;

// check.c: print which of [overlay] key, join and expect is not set, and the commands that a new
// operator needs. Prints nothing if [overlay] listen is a loopback address. The configuration must
// be valid; `path` is its file, which may not exist.
void check_report_first_steps(
	const struct agent_settings *settings, const char *path, FILE *stream
);

// check_commands.c: check each [check NAME] and compare the names. On the local machine also check
// that the programs exist.
void check_user_checks(const struct agent_settings *settings, struct config_load *load);
void check_programs(const struct agent_settings *settings, struct config_load *load);
// Log each program that the running agent would refuse or could not run. May block on the file
// system and on the user directory. Any thread.
void report_unusable_programs(const struct agent_settings *settings);

// check_devices.c: check the RDMA devices. `probe` holds only its configuration, and keys if
// has_address is true. has_address means that the overlay's address can be chosen.
void check_devices(struct agent *probe, bool has_address, struct config_load *load);

// check_places.c: check the client and HTTP addresses, the Unix socket, the state directory and the
// agent's key there. keys: of the cluster; NULL: they cannot be used.
void check_places(
	const struct agent_settings *settings,
	const struct seal_keys *keys,
	struct config_load *load
);
// Reject the key of a member of the settings if the address cannot be bound, unless an agent holds
// it.
void check_address(const struct sock_addr *address, const void *member, struct config_load *load);
// Print which GPUs cannot expose memory to peers, and why. The configuration must be valid.
void check_report_gpus(const struct agent_settings *settings, FILE *stream);
// Return true if the holder of a port is an agent, or if it cannot be identified.
bool check_holder_may_be_agent(const struct port_holder *holder);
// Print which configured addresses a running agent already holds. The configuration must be valid.
void check_report_running_agents(const struct agent_settings *settings, FILE *stream);

// check_unit.c: print which needs of the configuration the local systemd unit denies, and the
// drop-in or unit that allows them. Prints nothing without such a unit. The configuration must be
// valid; `path` is its file, or NULL.
void check_report_unit_denials(
	const struct agent_settings *settings, const char *path, FILE *stream
);

// history.c: print the time for which the history holds records, for several numbers of paths.
void check_report_history(const struct agent_settings *settings, FILE *stream);

// check_unit_user.c: print what the user of the unit may not read or run. Root calls it, to check
// the configuration. `key_is_given` means that each start of the unit gives the key file to the
// user.
void check_report_unit_user(
	const struct agent_settings *settings,
	const char *path,
	const char *name,
	bool key_is_given,
	FILE *stream
);
