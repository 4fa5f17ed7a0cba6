// SPDX-License-Identifier: BSD-3-Clause
// Take the nodes from an agent's table of peers, and let each one read every other one.
#include "mesh/mesh_agents.h"

#include "run/agent_ask.h"
#include "run/via_agent.h"

#include <lib/clock.h>

#include <jansson.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define NODE_NONE UINT32_MAX

struct asking {
	const struct mesh_agents *agents;
	struct mesh *mesh;
	uint32_t self; // node of the asked agent
};

static const char *json_text(const json_t *object, const char *key) {
	const char *text = json_string_value(json_object_get(object, key));

	return text != NULL ? text : "";
}

// Return true if the peer can take part: nodes that left or never joined cannot.
static bool peer_is_node(const json_t *peer) {
	const char *state = json_text(peer, "state");

	return strcmp(state, "left") != 0 && strcmp(state, "missing") != 0 &&
	       agent_name_is_word(json_text(peer, "node"));
}

static int make_mesh(struct asking *asking, const json_t *peers, struct lab_why *why) {
	uint32_t count = 0, place = 0;
	const json_t *peer;
	size_t n;

	json_array_foreach(peers, n, peer) count += peer_is_node(peer);
	if (count < 2 || count > MESH_NODES_MAX)
		return lab_fail(
			why, -EINVAL, "the agent knows %u node%s; a mesh needs 2 to %u", count,
			count == 1 ? "" : "s", MESH_NODES_MAX
		);
	if (mesh_create(&asking->agents->plan, count, asking->mesh) != 0)
		return lab_fail(why, -ENOMEM, "no memory");
	asking->mesh->plan.via_agents = true;
	asking->self = NODE_NONE;
	json_array_foreach(peers, n, peer) {
		struct mesh_node *node = &asking->mesh->nodes[place];

		if (!peer_is_node(peer))
			continue;
		if (json_is_true(json_object_get(peer, "self")))
			asking->self = place;
		snprintf(node->host, sizeof(node->host), "%s", json_text(peer, "node"));
		snprintf(node->machine, sizeof(node->machine), "%s", json_text(peer, "host"));
		lab_sanitize(node->host);
		lab_sanitize(node->machine);
		node->joined = strcmp(json_text(peer, "state"), "alive") == 0;
		node->lost = !node->joined;
		place++;
	}
	return 0;
}

// Measure one direction. A failure is recorded in its cell. The function fails only if the local
// agent is gone or the user interrupts.
static int
direction_measure(struct asking *asking, uint32_t from, uint32_t to, struct lab_why *why) {
	struct mesh_node *nodes = asking->mesh->nodes;
	struct mesh_cell *cell = mesh_cell(asking->mesh, from, to);
	const struct via_agent via = {
		.from = from == asking->self ? NULL : nodes[from].host,
		.node = nodes[to].host,
		.socket = asking->agents->socket,
		.plan = asking->mesh->plan,
		.quick = true,
		.signal_fd = asking->agents->signal_fd,
	};
	struct lab_why failed = {.text = ""};
	struct lab_run *run = calloc(1, sizeof(*run));
	int err = run != NULL ? via_agent_run(&via, run, &failed) : -ENOMEM;

	if (err == 0)
		err = mesh_samples_to_histogram(run->results[0].times, 1, &cell->kept);
	if (err == 0) {
		for (int n = 0; n < MESH_QUANTILES; n++)
			cell->taus[n] = run->results[0].summary.quantiles[n].tau;
		mesh_cell_compute(cell);
		snprintf(
			nodes[from].device, sizeof(nodes[from].device), "%s",
			environment_get(&run->environment[0], "device")
		);
	}
	if (run != NULL)
		run_release(run);
	free(run);
	if (err == 0)
		return 0;
	snprintf(
		cell->why, sizeof(cell->why), "%.*s", MESH_WHY_BYTES - 1,
		failed.text[0] != '\0' ? failed.text : strerrordesc_np(-err)
	);
	return err == -EREMOTEIO || err == -EPROTO ? 0 : lab_fail(why, err, "%s", cell->why);
}

static int rounds_measure(struct asking *asking, struct lab_why *why) {
	struct mesh *mesh = asking->mesh;
	const struct mesh_node *nodes = mesh->nodes;
	uint32_t rounds = mesh_rounds(mesh->count);
	int err = 0;

	for (uint32_t round = 0; round < rounds && err == 0; round++) {
		struct mesh_pair pairs[MESH_NODES_MAX / 2];
		uint32_t count = mesh_round(mesh->count, round, pairs);

		// Both directions of each pair, one after the other.
		for (uint32_t n = 0; n < 2 * count && err == 0; n++) {
			const struct mesh_pair *pair = &pairs[n / 2];
			uint32_t from = n % 2 == 0 ? pair->one : pair->other;
			uint32_t to = n % 2 == 0 ? pair->other : pair->one;
			struct mesh_cell *cell = mesh_cell(mesh, from, to);

			if (nodes[from].joined && nodes[to].joined)
				err = direction_measure(asking, from, to, why);
			else
				snprintf(
					cell->why, sizeof(cell->why), "%.60s is not alive",
					nodes[nodes[from].joined ? to : from].host
				);
		}
		fprintf(stderr, "round %u of %u: %u of %u measured\n", round + 1, rounds,
			mesh_count_measured(mesh), mesh->count * (mesh->count - 1));
	}
	return err;
}

int mesh_agents_run(const struct mesh_agents *agents, struct mesh *ret_mesh, struct lab_why *why) {
	struct asking asking = {.agents = agents, .mesh = ret_mesh};
	uint64_t begun_ns = clock_monotonic_ns();
	struct lab_why ended = {.text = ""};
	struct agent agent;
	json_t *answer = NULL;
	struct timespec now;
	int err = agent_open(&agent, agents->socket, agents->signal_fd, why);

	if (err == 0)
		err = agent_ask(&agent, "PEERS", &answer, why);
	agent_close(&agent);
	if (err == 0)
		err = make_mesh(&asking, json_object_get(answer, "peers"), why);
	json_decref(answer);
	if (err != 0)
		return err;
	clock_gettime(CLOCK_REALTIME, &now);
	ret_mesh->started_ns = now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
	ret_mesh->at_once = 1;
	if (rounds_measure(&asking, &ended) != 0)
		snprintf(ret_mesh->partial, sizeof(ret_mesh->partial), "%s", ended.text);
	ret_mesh->took_ns = clock_monotonic_ns() - begun_ns;
	return 0;
}
