// SPDX-License-Identifier: BSD-3-Clause
// Give orders to the processes of a mesh, round by round.
#include "mesh/mesh_lead.h"

#include "mesh/mesh_flows.h"
#include "mesh/mesh_wire.h"
#include "run/gate.h"

#include <lib/clock.h>
#include <lib/error.h>

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define FRAME_NS UINT64_C(10000000000)	   // for the rest of a frame
#define DIRECTION_NS UINT64_C(60000000000) // for a measurement without its samples
#define SAMPLE_NS UINT64_C(10000000)	   // per sample; generous, so that a slow path still passes
#define BYTE_NS UINT64_C(100)		   // per byte of a sample
#define AGAIN_MAX 3 // times that a direction which stands out is measured again

struct seat {
	struct channel channel; // fd -1: has not joined, or is gone
	uint32_t host;		// first process on its machine
	uint32_t place;		// processor assigned to the process
	bool busy;
};

// A pair that measures both directions, one after the other. A flow has one direction only.
struct meeting {
	bool open, second;
	uint32_t from, to, order;
	bool listens, ready, going, measured, served;
	uint64_t deadline_ns;
};

// Purpose of the current pairs: the matrix first, then the flows of <mesh_flows.h>.
enum phase { PHASE_MATRIX, PHASE_ALONE, PHASE_TOGETHER, PHASE_INCAST };

struct leading {
	const struct mesh_lead *config;
	struct mesh *mesh;
	struct seat *seats;
	enum phase phase;
	struct meeting meetings[MESH_NODES_MAX];
	struct mesh_pair pairs[MESH_NODES_MAX]; // of the current round; flows go from one to other
	uint32_t pair_count, open;
	uint32_t again;		     // 0: first pass over all pairs
	struct mesh_summary summary; // of the previous pass
	bool done[MESH_NODES_MAX];   // pairs that have finished
	uint32_t orders;
};

static struct deadline deadline_from_now(uint64_t wait_ns) {
	return deadline_after(clock_monotonic_ns(), wait_ns);
}

// Admit a process that has proven the token. Returns 0, or -errno with the reason in `why`: the
// caller then refuses this process and waits for the remaining ones.
static int join_accept(
	struct leading *leading,
	const struct channel *channel,
	const struct channel_message *message,
	struct lab_why *why
) {
	struct mesh_join join;
	struct seat *seat;
	int err = mesh_read_join(message, &join, why);

	if (err != 0)
		return err;
	if (strcmp(join.version, TOCSIN_VERSION) != 0)
		return lab_fail(
			why, -EPROTO,
			"process 0 of the mesh is tocsin-perf " TOCSIN_VERSION
			": use one release everywhere"
		);
	if (join.count != leading->mesh->count || join.rank >= leading->mesh->count)
		return lab_fail(
			why, -EINVAL, "process 0 of the mesh has another number of processes"
		);
	if (leading->mesh->nodes[join.rank].joined)
		return lab_fail(why, -EEXIST, "another process of the mesh has this rank");
	leading->mesh->nodes[join.rank] = join.node;
	leading->mesh->nodes[join.rank].joined = true;
	seat = &leading->seats[join.rank];
	seat->channel = *channel;
	seat->channel.signal_fd = -1; // wait_for_answers() polls the signal itself
	return 0;
}

static int wait_all_joined(struct leading *leading, struct lab_why *why) {
	const struct mesh_lead *config = leading->config;
	struct deadline deadline = deadline_from_now(config->patience_ns);
	const struct mesh *mesh = leading->mesh;
	struct channel *channel = calloc(1, sizeof(*channel));
	struct gate *gate = NULL;
	int err = channel != NULL
			  ? gate_create(config->listener, config->secrets, config->quiet, &gate)
			  : -ENOMEM;

	if (err != 0)
		(void)lab_fail(why, err, "no memory");
	while (err == 0) {
		struct lab_why late = {.text = ""};
		struct channel_message message;
		uint32_t first = 0, absent = 0;

		for (uint32_t n = mesh->count; n-- > 0;) {
			if (mesh->nodes[n].joined)
				continue;
			first = n;
			absent++;
		}
		if (absent == 0)
			break;
		err = gate_wait(gate, config->signal_fd, deadline, channel, &message, &late);
		if (err == 0 && join_accept(leading, channel, &message, &late) != 0)
			gate_refuse(gate, channel, &late);
		else if (err == -ETIMEDOUT)
			lab_fail(
				why, err,
				"%u of %u processes did not join in time, the first is process %u",
				absent, mesh->count, first
			);
		else if (err != 0)
			lab_fail(why, err, "%s", late.text);
	}
	gate_destroy(gate);
	free(channel);
	return err;
}

// Derive the racks from host names, which often begin with the name of the rack. The rack is the
// host name without its last number. If that is the same for all hosts, no rack is set.
static void derive_racks(struct mesh *mesh) {
	char stems[2][MESH_HOST_BYTES];
	bool differ = false;

	for (uint32_t pass = 0; pass < 2; pass++) {
		for (uint32_t n = 0; n < mesh->count; n++) {
			struct mesh_node *node = &mesh->nodes[n];
			size_t length = strcspn(node->host, ".");

			while (length > 0 && strchr("0123456789", node->host[length - 1]) != NULL)
				length--;
			snprintf(stems[n > 0], MESH_HOST_BYTES, "%.*s", (int)length, node->host);
			differ |= n > 0 && strcmp(stems[0], stems[1]) != 0;
			if (pass == 1 && differ && node->rack[0] == '\0')
				memcpy(node->rack, stems[n > 0], MESH_HOST_BYTES);
		}
	}
}

// Assign the lowest free processor of the machine to a process. Each later pass begins with the
// next processor, so that a direction changes its processors. A process that is alone on its
// machine may use any.
static void assign_processor(struct leading *leading, uint32_t who) {
	struct seat *seat = &leading->seats[who];
	bool taken[MESH_NODES_MAX] = {false};
	bool alone = true;
	uint32_t place = leading->again;

	for (uint32_t n = 0; n < leading->mesh->count; n++) {
		const struct seat *other = &leading->seats[n];

		if (other->host != seat->host)
			continue;
		alone &= n == who;
		if (other->busy && other->place < MESH_NODES_MAX)
			taken[other->place] = true;
	}
	while (place < MESH_NODES_MAX && taken[place])
		place++;
	// The target of an incast has several children, which must not share one processor.
	seat->place = alone || leading->phase == PHASE_INCAST ? MESH_PROCESSOR_ANY : place;
	seat->busy = true;
}

// Return true if all flows of the phase begin at the same time.
static bool phase_starts_together(const struct leading *leading) {
	return leading->phase == PHASE_TOGETHER || leading->phase == PHASE_INCAST;
}

// Return true if both machines have free processors. Flows that begin together need no free
// processor. Two processes may always run on a machine. So a machine with one processor still
// measures one pair at a time.
static bool pair_can_start(const struct leading *leading, const struct mesh_pair *pair) {
	uint32_t ends[2] = {pair->one, pair->other};

	if (leading->phase != PHASE_MATRIX)
		return phase_starts_together(leading) || leading->open == 0;
	if (leading->config->at_once > 0 && leading->open >= leading->config->at_once)
		return false;
	for (int n = 0; n < 2; n++) {
		uint32_t host = leading->seats[ends[n]].host;
		uint32_t needed = 1 + (leading->seats[ends[1 - n]].host == host);
		uint32_t room = leading->mesh->nodes[host].processors;

		for (uint32_t at = 0; at < leading->mesh->count; at++)
			needed += leading->seats[at].busy && leading->seats[at].host == host;
		if (needed > (room > 2 ? room : 2))
			return false;
	}
	return true;
}

static void send_order(
	struct leading *leading, uint32_t who, enum channel_kind kind, struct mesh_order *order
) {
	struct lab_why unheard = {.text = ""};

	order->place = leading->seats[who].place;
	order->plan = leading->mesh->plan;
	order->waits_for_go = phase_starts_together(leading);
	// The servers of an incast share the processors of one machine, so none may spin.
	if (leading->phase == PHASE_INCAST)
		order->plan.policy = IDLE_ADAPTIVE;
	// The loss of a process is noticed when its channel is read.
	if (leading->seats[who].channel.fd >= 0)
		(void)mesh_send_order(&leading->seats[who].channel, kind, order, &unheard);
}

// Return the address of `to` as seen by `from`. A process on the lead's machine may have joined
// over loopback. Other machines then reach it at the lead's address.
static struct sock_addr
server_address(const struct leading *leading, const struct meeting *meeting, uint16_t port) {
	const struct channel *from = &leading->seats[meeting->from].channel;
	const struct channel *to = &leading->seats[meeting->to].channel;
	bool ours = sock_addr_is_loopback(&to->peer) && !sock_addr_is_loopback(&from->peer);
	struct sock_addr address = ours ? from->local : to->peer;

	address.port = port;
	return address;
}

uint64_t mesh_direction_ns(const struct plan *plan) {
	return DIRECTION_NS + plan->duration_ns +
	       plan->iterations * (SAMPLE_NS + plan->sizes[0] * BYTE_NS);
}

static void begin_direction(struct leading *leading, struct meeting *meeting) {
	struct mesh_order order = {.number = ++leading->orders};

	meeting->order = order.number;
	meeting->listens = meeting->ready = meeting->going = false;
	meeting->measured = meeting->served = false;
	meeting->deadline_ns = clock_monotonic_ns() + leading->config->answer_ns;
	send_order(leading, meeting->to, CHANNEL_MESH_SERVE, &order);
}

// Record the reason of a direction that is not tried.
static void skip_direction(struct leading *leading, uint32_t from, uint32_t to) {
	struct mesh_cell *cell = mesh_cell(leading->mesh, from, to);
	uint32_t gone = leading->mesh->nodes[from].lost ? from : to;

	if (leading->phase == PHASE_MATRIX && !cell->measured)
		snprintf(cell->why, sizeof(cell->why), "process %u left the mesh", gone);
}

static void end_direction(struct leading *leading, struct meeting *meeting) {
	uint32_t from = meeting->from, to = meeting->to;
	bool gone = leading->mesh->nodes[from].lost || leading->mesh->nodes[to].lost;

	if (gone && !meeting->second)
		skip_direction(leading, to, from);
	if (gone || meeting->second) {
		meeting->open = false;
		leading->open--;
		leading->seats[from].busy = leading->seats[to].busy = false;
		return;
	}
	meeting->from = to;
	meeting->to = from;
	meeting->second = true;
	begin_direction(leading, meeting);
}

static void fail_direction(struct leading *leading, struct meeting *meeting, const char *text) {
	struct mesh_cell *cell = mesh_cell(leading->mesh, meeting->from, meeting->to);
	struct mesh_order order = {.number = meeting->order};

	if (leading->phase != PHASE_MATRIX && !leading->config->quiet)
		fprintf(stderr, "from process %u to %u: %s\n", meeting->from, meeting->to, text);
	else if (!cell->measured && cell->why[0] == '\0')
		snprintf(cell->why, sizeof(cell->why), "%s", text);
	send_order(leading, meeting->from, CHANNEL_MESH_STOP, &order);
	send_order(leading, meeting->to, CHANNEL_MESH_STOP, &order);
	end_direction(leading, meeting);
}

// Find the meeting with an order, if `who` takes part in it.
static struct meeting *find_meeting(struct leading *leading, uint32_t order, uint32_t who) {
	for (uint32_t n = 0; n < MESH_NODES_MAX; n++) {
		struct meeting *meeting = &leading->meetings[n];

		if (meeting->open && meeting->order == order &&
		    (meeting->from == who || meeting->to == who))
			return meeting;
	}
	return NULL;
}

static void node_drop(struct leading *leading, uint32_t who, const char *text) {
	char why[MESH_WHY_BYTES];

	channel_close(&leading->seats[who].channel);
	leading->mesh->nodes[who].lost = true;
	if (!leading->config->quiet)
		fprintf(stderr, "process %u (%s): %s\n", who, leading->mesh->nodes[who].host, text);
	snprintf(why, sizeof(why), "process %u: %.120s", who, text);
	for (uint32_t n = 0; n < MESH_NODES_MAX; n++) {
		struct meeting *meeting = &leading->meetings[n];

		if (meeting->open && (meeting->from == who || meeting->to == who))
			fail_direction(leading, meeting, why);
	}
}

// Store the result of a direction. The histogram is moved from the answer to the cell.
static void
store_result(struct leading *leading, const struct meeting *meeting, struct mesh_answer *answer) {
	static const enum mesh_flow_kind kinds[] = {
		[PHASE_ALONE] = MESH_FLOW_ALONE,
		[PHASE_TOGETHER] = MESH_FLOW_TOGETHER,
		[PHASE_INCAST] = MESH_FLOW_INCAST,
	};
	struct mesh *mesh = leading->mesh;
	struct mesh_node *from = &mesh->nodes[meeting->from], *to = &mesh->nodes[meeting->to];
	struct mesh_cell *cell = mesh_cell(mesh, meeting->from, meeting->to);

	if (leading->phase != PHASE_MATRIX) {
		mesh_flows_store(
			mesh, kinds[leading->phase], meeting->from, meeting->to,
			histogram_percentile(answer->kept, 500000)
		);
		return;
	}
	mesh->measured_again += cell->measured;
	mesh_cell_add_run(cell, answer->kept, answer->taus);
	answer->kept = NULL;
	memcpy(from->device, answer->device, sizeof(answer->device));
	memcpy(to->device, answer->their_device, sizeof(answer->their_device));
}

// Receive one message of a process. An answer to an old order is dropped.
static void answer_receive(struct leading *leading, uint32_t who) {
	struct lab_why why = {.text = ""};
	struct channel_message message;
	struct meeting *meeting;
	enum channel_kind kind;
	struct mesh_order order;
	struct mesh_answer answer;
	int err = channel_receive(
		&leading->seats[who].channel, deadline_from_now(FRAME_NS), &message, &why
	);

	if (err == 0)
		err = mesh_read_answer(&message, &answer, &why);
	if (err != 0) {
		node_drop(leading, who, why.text);
		return;
	}
	meeting = find_meeting(leading, answer.order, who);
	if (meeting == NULL) {
		histogram_destroy(answer.kept);
		return;
	}
	kind = message.kind;
	order = (struct mesh_order){.number = meeting->order};
	if (kind == CHANNEL_MESH_FAILED) {
		fail_direction(leading, meeting, answer.why);
	} else if (kind == CHANNEL_MESH_LISTENS && who == meeting->to && !meeting->listens) {
		meeting->listens = true;
		meeting->deadline_ns =
			clock_monotonic_ns() + mesh_direction_ns(&leading->mesh->plan);
		order.server = server_address(leading, meeting, (uint16_t)answer.port);
		send_order(leading, meeting->from, CHANNEL_MESH_PLAY, &order);
	} else if (kind == CHANNEL_MESH_RESULT && who == meeting->from && !meeting->measured) {
		meeting->measured = true;
		store_result(leading, meeting, &answer);
	} else if (kind == CHANNEL_MESH_READY && who == meeting->from) {
		meeting->ready = true;
	} else if (kind == CHANNEL_MESH_SERVED && who == meeting->to) {
		meeting->served = true;
	}
	if (meeting->open && meeting->measured && meeting->served)
		end_direction(leading, meeting);
	histogram_destroy(answer.kept);
}

// Start the pairs that can start. Returns true if pairs of the round are left.
static bool open_meetings(struct leading *leading) {
	const struct mesh_node *nodes = leading->mesh->nodes;
	bool left = false;

	for (uint32_t n = 0; n < leading->pair_count; n++) {
		const struct mesh_pair *pair = &leading->pairs[n];

		if (leading->done[n])
			continue;
		if (nodes[pair->one].lost || nodes[pair->other].lost) {
			skip_direction(leading, pair->one, pair->other);
			skip_direction(leading, pair->other, pair->one);
			leading->done[n] = true;
		} else if (pair_can_start(leading, pair)) {
			struct meeting *meeting = leading->meetings;

			while (meeting->open)
				meeting++;
			*meeting = (struct meeting){
				.open = true,
				.second = leading->phase != PHASE_MATRIX,
				.from = pair->one,
				.to = pair->other,
			};
			leading->open++;
			if (leading->phase == PHASE_MATRIX &&
			    leading->open > leading->mesh->at_once)
				leading->mesh->at_once = leading->open;
			assign_processor(leading, pair->one);
			assign_processor(leading, pair->other);
			begin_direction(leading, meeting);
			leading->done[n] = true;
		} else {
			left = true;
		}
	}
	return left;
}

// If all flows are ready, order them to begin.
static void start_ready_flows(struct leading *leading) {
	for (uint32_t n = 0; n < MESH_NODES_MAX; n++) {
		if (leading->meetings[n].open && !leading->meetings[n].ready)
			return;
	}
	for (uint32_t n = 0; n < MESH_NODES_MAX; n++) {
		struct meeting *meeting = &leading->meetings[n];
		struct mesh_order order = {.number = meeting->order};

		if (!meeting->open || meeting->going)
			continue;
		meeting->going = true;
		send_order(leading, meeting->from, CHANNEL_MESH_GO, &order);
	}
}

// Wait up to a second for messages, handle them, and check the deadlines of all meetings. Returns
// 0, -EINTR if the user interrupts, or another -errno.
static int wait_for_answers(struct leading *leading) {
	struct pollfd fds[MESH_NODES_MAX + 1];
	uint32_t count = leading->mesh->count;
	uint64_t now_ns;

	for (uint32_t n = 0; n < count; n++)
		fds[n] = (struct pollfd){.fd = leading->seats[n].channel.fd, .events = POLLIN};
	fds[count] = (struct pollfd){.fd = leading->config->signal_fd, .events = POLLIN};
	if (poll(fds, count + 1, 1000) < 0 && errno != EINTR)
		return neg_errno();
	if (fds[count].revents != 0)
		return -EINTR;
	for (uint32_t n = 0; n < count; n++) {
		if (fds[n].revents != 0 && leading->seats[n].channel.fd >= 0)
			answer_receive(leading, n);
	}

	// A process that did not even start to listen hangs as a whole. It is dropped, because it
	// would hang in each of its meetings.
	now_ns = clock_monotonic_ns();
	for (uint32_t n = 0; n < MESH_NODES_MAX; n++) {
		struct meeting *meeting = &leading->meetings[n];

		if (!meeting->open || now_ns < meeting->deadline_ns)
			continue;
		if (meeting->listens)
			fail_direction(leading, meeting, "the measurement took too long");
		else
			node_drop(leading, meeting->to, "does not answer");
	}
	return 0;
}

// Fill in the pairs of a round. Passes after the first one have only pairs with a direction that
// stood out before.
static void round_prepare(struct leading *leading, uint32_t round) {
	const struct mesh *mesh = leading->mesh;
	uint32_t count = mesh_round(mesh->count, round, leading->pairs), kept = 0;

	for (uint32_t n = 0; n < count; n++) {
		struct mesh_pair pair = leading->pairs[n];

		if (leading->again == 0 ||
		    mesh_cell_is_outlier(
			    &leading->summary, mesh_cell(mesh, pair.one, pair.other)
		    ) ||
		    mesh_cell_is_outlier(&leading->summary, mesh_cell(mesh, pair.other, pair.one)))
			leading->pairs[kept++] = pair;
	}
	leading->pair_count = kept;
}

// Measure the current pairs.
static int measure_pairs(struct leading *leading) {
	bool left = true;
	int err = 0;

	memset(leading->done, 0, sizeof(leading->done));
	while (err == 0 && (left || leading->open > 0)) {
		left = open_meetings(leading);
		if (leading->open > 0)
			err = wait_for_answers(leading);
		if (!left && phase_starts_together(leading))
			start_ready_flows(leading);
	}
	return err;
}

// Measure congestion: each direction of the pairs of one round alone, then all pairs at once, one
// direction after the other.
static int measure_congestion(struct leading *leading) {
	struct mesh_pair pairs[MESH_NODES_MAX];
	size_t count = mesh_flows_choose_round(leading->mesh, pairs);
	int err;

	for (size_t n = 0; n < count; n++)
		pairs[count + n] = (struct mesh_pair){pairs[n].other, pairs[n].one};
	if (!leading->config->quiet)
		fprintf(stderr, "congestion: %zu directions alone, then at once\n", 2 * count);
	leading->phase = PHASE_ALONE;
	leading->pair_count = (uint32_t)(2 * count);
	memcpy(leading->pairs, pairs, 2 * count * sizeof(pairs[0]));
	err = measure_pairs(leading);
	leading->phase = PHASE_TOGETHER;
	leading->pair_count = (uint32_t)count;
	for (size_t way = 0; way < 2 && err == 0; way++) {
		memcpy(leading->pairs, pairs + way * count, count * sizeof(pairs[0]));
		err = measure_pairs(leading);
	}
	return err;
}

// Measure incast: for each process, all other processes send to it at once.
static int measure_incast(struct leading *leading) {
	const struct mesh *mesh = leading->mesh;
	int err = 0;

	leading->phase = PHASE_INCAST;
	for (uint32_t to = 0; to < mesh->count && err == 0; to++) {
		leading->pair_count = 0;
		for (uint32_t from = 0; from < mesh->count; from++) {
			if (from != to)
				leading->pairs[leading->pair_count++] =
					(struct mesh_pair){from, to};
		}
		if (!leading->config->quiet)
			fprintf(stderr, "incast to process %u of %u\n", to, mesh->count);
		err = measure_pairs(leading);
	}
	return err;
}

static int play_all_rounds(struct leading *leading) {
	struct mesh *mesh = leading->mesh;
	uint32_t rounds = mesh_rounds(mesh->count);
	int err = 0;

	for (uint32_t round = 0; round < rounds && err == 0; round++) {
		round_prepare(leading, round);
		err = measure_pairs(leading);
		if (!leading->config->quiet && leading->again == 0)
			fprintf(stderr, "round %u of %u: %u of %u measured\n", round + 1, rounds,
				mesh_count_measured(mesh), mesh->count * (mesh->count - 1));
	}
	return err;
}

// Measure all directions. Those that stand out are measured again, in new processes and on other
// processors: the placement of processes may change the latency by more than the interval of one
// run covers.
static void play_all_passes(struct leading *leading) {
	struct mesh *mesh = leading->mesh;
	uint64_t begin_ns = clock_monotonic_ns();
	struct lab_why why = {.text = ""};
	int err = play_all_rounds(leading);

	for (leading->again = 1; leading->again <= AGAIN_MAX && err == 0; leading->again++) {
		err = mesh_summarize(mesh, &leading->summary);
		if (err != 0 || leading->summary.outliers == 0)
			break;
		if (!leading->config->quiet)
			fprintf(stderr, "%u directions stand out: measuring these pairs again\n",
				leading->summary.outliers);
		err = play_all_rounds(leading);
	}
	if (err == 0 && mesh->flows != NULL)
		err = measure_congestion(leading);
	if (err == 0 && mesh->incasts != NULL)
		err = measure_incast(leading);
	mesh->took_ns = clock_monotonic_ns() - begin_ns;
	if (err == -EINTR)
		(void)lab_fail(&why, err, "interrupted");
	else if (err != 0)
		(void)lab_fail(&why, err, "%s", strerrordesc_np(-err));
	memcpy(mesh->partial, why.text, sizeof(mesh->partial));
}

int mesh_lead_run(const struct mesh_lead *lead, struct mesh *mesh, struct lab_why *why) {
	struct leading *leading = calloc(1, sizeof(*leading));
	struct lab_why unheard = {.text = ""};
	struct timespec now;
	int err;

	if (leading != NULL)
		leading->seats = calloc(mesh->count, sizeof(*leading->seats));
	if (leading == NULL || leading->seats == NULL) {
		free(leading);
		return lab_fail(why, -ENOMEM, "no memory");
	}
	leading->config = lead;
	leading->mesh = mesh;
	for (uint32_t n = 0; n < mesh->count; n++)
		leading->seats[n].channel.fd = -1;
	clock_gettime(CLOCK_REALTIME, &now);
	mesh->started_ns = now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
	err = wait_all_joined(leading, why);
	if (err == 0) {
		for (uint32_t n = 0; n < mesh->count; n++) {
			leading->seats[n].host = n;
			for (uint32_t other = n; other-- > 0;) {
				if (strcmp(mesh->nodes[n].host, mesh->nodes[other].host) == 0)
					leading->seats[n].host = other;
			}
		}
		derive_racks(mesh);
		play_all_passes(leading);
	}
	for (uint32_t n = 0; n < mesh->count; n++) {
		struct channel *channel = &leading->seats[n].channel;

		if (channel->fd >= 0)
			(void)channel_send(channel, CHANNEL_MESH_END, NULL, 0, &unheard);
		channel_close(channel);
	}
	free(leading->seats);
	free(leading);
	return err;
}
