// SPDX-License-Identifier: BSD-3-Clause
// Checks of --check-config that the table of keys cannot make. They find values that contradict
// each other, and values that do not work on this machine. The checks start nothing and leave
// nothing behind.
#include "check.h"

#include "agent.h"
#include "config_schema.h"

#include <control/history.h>
#include <dataplane/soft.h>
#include <lib/config.h>
#include <lib/cpu_set.h>
#include <lib/must.h>
#include <lib/scoped.h>
#include <lib/seal_keys.h>

#include <errno.h>
#include <grp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// Return an address from the configuration. Returns false if the key is empty or already rejected.
static bool parse_address(
	const struct config_load *load,
	const char *const *member,
	uint16_t port,
	struct sock_addr *ret_address
) {
	const char *text = *member;

	if (text[0] == '\0' || !config_key_is_valid(load, member))
		return false;
	must(sock_addr_parse(text, strlen(text), port, NULL, ret_address) == 0);
	return true;
}

// Reject keys of the software device in sections of other devices, where they have no effect.
static void check_soft_keys(const struct agent_settings *settings, struct config_load *load) {
	const struct device_section *device;

	for (size_t n = 0; (device = settings->devices[n]) != NULL; n++) {
		const char *const *const keys[] = {
			&device->wire, &device->address, &device->faults};

		if (strcmp(config_section_name(device->section), SOFT_DEVICE_NAME) == 0) {
			if (device->expect_rate[0] != '\0')
				config_reject_key(
					load, &device->expect_rate,
					"the software device has no rate, so this key does not apply to it"
				);
			continue;
		}
		for (size_t k = 0; k < sizeof(keys) / sizeof(keys[0]); k++) {
			if ((*keys[k])[0] != '\0')
				config_reject_key(
					load, keys[k],
					"applies to the software device, [device %s], only",
					SOFT_DEVICE_NAME
				);
		}
	}
}

void check_contradictions(const struct config *config, struct config_load *load) {
	const struct agent_settings *settings = config_settings(config);
	struct sock_addr overlay, advertise, clients, http;
	bool has_overlay = parse_address(load, &settings->overlay.listen, OVERLAY_PORT, &overlay);
	bool has_clients = parse_address(load, &settings->client.listen, CLIENT_PORT, &clients);
	bool has_http = parse_address(load, &settings->http.listen, HTTP_PORT, &http);

	if (has_overlay) {
		if (settings->overlay.key[0] == '\0' &&
		    config_key_is_valid(load, &settings->overlay.key) &&
		    !sock_addr_is_loopback(&overlay))
			config_reject_key(
				load, &settings->overlay.listen,
				"without a key the agent uses loopback only; set [overlay] key, or an address such as 127.0.0.1"
			);
		if (parse_address(load, &settings->overlay.advertise, OVERLAY_PORT, &advertise) &&
		    advertise.family != overlay.family)
			config_reject_key(
				load, &settings->overlay.advertise,
				"has another address family than [overlay] listen; both must be IPv4, or both IPv6"
			);
	}
	if (settings->history.size_bytes > 0 && settings->history.size_bytes < HISTORY_SIZE_MIN)
		config_reject_key(
			load, &settings->history.size_bytes,
			"is too small; give 2MiB or more, or 0 for no file"
		);
	check_soft_keys(settings, load);
	check_user_checks(settings, load);
	if (has_clients && !sock_addr_is_loopback(&clients))
		config_reject_key(
			load, &settings->client.listen,
			"clients are served on loopback only; give an address such as 127.0.0.1"
		);
	if (has_http && !sock_addr_is_loopback(&http) &&
	    config_key_is_valid(load, &settings->http.allow) && settings->http.allow.count == 0)
		config_reject_key(
			load, &settings->http.listen,
			"other machines can reach this address, but [http] allow is empty; list "
			"their networks there, such as 10.0.0.0/8, or 0.0.0.0/0 for all"
		);
	if (has_clients && has_overlay && clients.port != 0 && sock_addr_equal(&clients, &overlay))
		config_reject_key(
			load, &settings->client.listen, "is the same address as [overlay] listen"
		);
	if (has_http && has_overlay && http.port != 0 && sock_addr_equal(&http, &overlay))
		config_reject_key(
			load, &settings->http.listen, "is the same address as [overlay] listen"
		);
	if (has_http && has_clients && http.port != 0 && sock_addr_equal(&http, &clients))
		config_reject_key(
			load, &settings->http.listen, "is the same address as [client] listen"
		);
}

// Check the name of the node, its keys, addresses and directories, and its devices.
static void check_node(const struct config *config, struct config_load *load) {
	const struct agent_settings *settings = config_settings(config);
	// Nothing below writes to the configuration.
	struct agent probe = {.config = (struct config *)config, .settings = settings};
	const char *path = settings->overlay.key;
	bool may_choose = config_key_is_valid(load, &settings->overlay.listen) &&
			  config_key_is_valid(load, &settings->overlay.interface) &&
			  config_key_is_valid(load, &settings->overlay.key);
	struct listen_choice choice;
	struct ras_peer_info self;
	bool chosen = false;
	int err;

	if (config_key_is_valid(load, &settings->node.name) &&
	    config_key_is_valid(load, &settings->node.host) && identity_find(&probe, &self) != 0)
		config_reject_key(load, &settings->node.name, "%s", probe.detail);
	if (path[0] != '\0')
		err = seal_keys_load(path, probe.detail, &probe.keys);
	else
		err = seal_keys_create_keyless("check", &probe.keys);
	if (err != 0)
		config_reject_key(
			load, &settings->overlay.key, "%s%s%s%s", probe.detail,
			err == -ENOENT ? "; make a key with tocsin keygen --output " : "",
			err == -ENOENT ? settings->overlay.key : "",
			err == -ENOENT ? ", or copy the key file of another node" : ""
		);
	else
		chosen = may_choose && listen_address_choose(&probe, &choice) == 0;
	if (err == 0 && may_choose && !chosen)
		config_reject_key(load, &settings->overlay.interface, "%s", probe.detail);
	if (chosen && config_key_is_valid(load, &settings->overlay.listen))
		check_address(&choice.address, &settings->overlay.listen, load);
	check_devices(&probe, chosen, load);
	check_places(settings, probe.keys, load);
	seal_keys_put(probe.keys);
}

void check_machine(const struct config *config, struct config_load *load) {
	const struct agent_settings *settings = config_settings(config);
	const char *group = settings->client.group;
	const char *cores = settings->worker.cores;
	scoped_mem char *join = strdup(settings->overlay.join);
	char *rest = join, *item;
	struct cpu_set allowed, set;
	struct parse_error error;

	check_contradictions(config, load);
	check_programs(settings, load);
	check_node(config, load);

	// Only the access to address files is checked: their content may change while the agent
	// runs.
	while (rest != NULL && (item = strsep(&rest, ", ")) != NULL) {
		if (item[0] == '/' && access(item, R_OK) != 0)
			config_reject_key(
				load, &settings->overlay.join, "cannot read %s: %s", item,
				strerrordesc_np(errno)
			);
	}

	// NOLINTNEXTLINE(concurrency-mt-unsafe): there is one thread
	if (group[0] != '\0' && getgrnam(group) == NULL)
		config_reject_key(load, &settings->client.group, "there is no such group");
	if (cores[0] != '\0' && cpu_set_get_allowed(&allowed) == 0 &&
	    cpu_set_parse_allowed(cores, strlen(cores), &allowed, &error, &set) != 0)
		config_reject_key(load, &settings->worker.cores, "%s", error.text);
}

void check_report_first_steps(
	const struct agent_settings *settings, const char *path, FILE *stream
) {
	bool has_key = settings->overlay.key[0] != '\0';
	bool has_join = settings->overlay.join[0] != '\0';
	bool has_expect = settings->overlay.expect[0] != '\0';
	const char *listen = settings->overlay.listen;
	struct sock_addr address;

	if (has_key && has_join && has_expect)
		return;
	// An agent that listens on loopback is started by hand, and needs none of these keys.
	if (sock_addr_parse(listen, strlen(listen), OVERLAY_PORT, NULL, &address) == 0 &&
	    sock_addr_is_loopback(&address))
		return;
	if (access(path, F_OK) != 0)
		fprintf(stream,
			"note: there is no %s yet. Copy the example, then edit it:\n"
			"  mkdir -p /etc/tocsin\n"
			"  cp " TOCSIN_EXAMPLE_PATH " %s\n",
			path, path);
	if (!has_key)
		fprintf(stream,
			"note: [overlay] key is not set, so the agent uses loopback only. On one node:\n"
			"  tocsin keygen\n"
			"  scp -p /etc/tocsin/tocsin.key NODE:/etc/tocsin/    (to each other node)\n"
			"and on every node: key = /etc/tocsin/tocsin.key\n");
	if (!has_join)
		fprintf(stream,
			"note: [overlay] join is not set, so the agent joins no other node. Name two\n"
			"or three nodes, the same on every node: join = node[001-003]\n");
	if (!has_expect)
		fprintf(stream,
			"note: [overlay] expect is not set, so a node that never joins is not\n"
			"reported. Name all nodes: expect = node[001-128]\n");
	fprintf(stream, "Then:\n  tocsind --check-config %s\n  systemctl restart tocsind\n", path);
}
