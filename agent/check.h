// SPDX-License-Identifier: BSD-3-Clause
// The parts of --check-config.
#pragma once

#include <lib/config.h>

#include <stdio.h>

struct agent;
struct port_holder;
struct sock_addr;

// check_commands.c: [check NAME], key against key and name against name; and, on this machine, that
// the programs are there.
void check_user_checks(const struct config *config, struct config_load *load);
void check_programs(const struct config *config, struct config_load *load);

// check_devices.c. probe: only its configuration, and its keys if has_address: then the overlay's
// address can be chosen.
void check_devices(struct agent *probe, bool has_address, struct config_load *load);

// check_places.c. The addresses of clients and HTTP, the Unix socket, the state directory.
void check_places(const struct config *config, struct config_load *load);
// Rejects the key if the address cannot be listened on, unless an agent holds it.
void check_address(
	const struct sock_addr *address,
	const char *section,
	const char *key,
	struct config_load *load
);
// Of a configuration that is sound: of which GPU no memory can be shown to peers, and why.
void check_tell_gpus(const struct config *config, FILE *stream);
bool check_holder_is_agent(const struct port_holder *holder);
// Of a configuration that is sound: which of its addresses an agent holds that runs already.
void check_tell_running(const struct config *config, FILE *stream);

// check_unit.c. Of a configuration that is sound: what the systemd unit on this machine denies of
// what it asks for, and which drop-in allows it. Nothing where there is no such unit.
void check_tell_unit(const struct config *config, FILE *stream);
