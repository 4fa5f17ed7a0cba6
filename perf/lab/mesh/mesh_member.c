// SPDX-License-Identifier: BSD-3-Clause
// Join the lead, make the ordered measurements and send the results.
#include "mesh/mesh_member.h"

#include "mesh/mesh_start.h"
#include "run/device.h"
#include "run/knock.h"
#include "run/session.h"

#include <dataplane/block_cost.h>
#include <dataplane/soft.h>
#include <lib/clock.h>
#include <lib/cpu_set.h>
#include <lib/error.h>

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define FRAME_NS UINT64_C(10000000000) // for the rest of a frame
#define CLIENT_NS UINT64_C(20000000000)
#define CONNECT_NS UINT64_C(5000000000) // per address
#define RETRY_PAUSE_MS 20
#define GATHER_NS UINT64_C(60000000000) // time until all flows of a group must be ready
#define WINDOWS_MIN 16u			// fewest dependent windows for the interval of a median
#define WINDOWS_FLOW 4u // of a flow among others, whose median is printed without an interval

// A child that measures.
struct child {
	struct channel channel; // socket to the child
	pid_t pid;
	uint32_t order;
	bool told; // the result was forwarded
};

struct present {
	const struct mesh_member *member;
	struct proof_secrets secrets; // proven to the lead, and between measuring children
	struct channel lead;
	// Children that measure: one, or one for each flow if the process is the target of an
	// incast. NULL: free.
	struct child *children[MESH_NODES_MAX];
	struct lab_machine machine;
	char device[DEVICE_NAME_MAX + 1];
};

// A measurement, in the child.
struct measurement {
	const struct mesh_order *order;
	struct channel *parent;
};

static struct deadline frame_deadline(void) {
	return deadline_after(clock_monotonic_ns(), FRAME_NS);
}

static void send_port(void *ctx, const struct sock_addr *address) {
	const struct measurement *measurement = ctx;
	const struct mesh_answer answer = {
		.order = measurement->order->number, .port = address->port};
	struct lab_why unheard = {.text = ""};

	(void)mesh_send_answer(measurement->parent, CHANNEL_MESH_LISTENS, &answer, &unheard);
}

// Report that the child is ready, and wait until the lead orders all flows to begin.
static int wait_for_go(void *ctx, struct lab_why *why) {
	const struct measurement *measurement = ctx;
	const struct mesh_answer answer = {.order = measurement->order->number};
	struct deadline deadline = deadline_after(clock_monotonic_ns(), GATHER_NS);
	struct channel_message message;
	int err = mesh_send_answer(measurement->parent, CHANNEL_MESH_READY, &answer, why);

	if (err != 0)
		return err;
	return channel_expect(measurement->parent, CHANNEL_MESH_GO, deadline, &message, why);
}

// Find the processor with the given index among the allowed ones. Returns false if any may be used.
static bool processor_at_index(uint32_t place, struct cpu_set *ret_cores) {
	struct cpu_set allowed;
	uint32_t count, cpu;

	*ret_cores = (struct cpu_set){{0}};
	if (place == MESH_PROCESSOR_ANY || cpu_set_get_allowed(&allowed) != 0)
		return false;
	count = cpu_set_count(&allowed);
	cpu = cpu_set_next(&allowed, 0);
	for (uint32_t n = 0; n < place % count; n++)
		cpu = cpu_set_next(&allowed, cpu + 1);
	cpu_set_add(ret_cores, cpu);
	return true;
}

static int
client_play(const struct lab_session *session, struct mesh_answer *answer, struct lab_why *why) {
	struct lab_run *run = calloc(1, sizeof(*run));
	const struct lab_result *result;
	double scale = 1;
	int err;

	if (run == NULL)
		return lab_fail(why, -ENOMEM, "no memory");
	result = &run->results[0];
	err = session_client(session, run, why);
	if (err == 0 && !result->summarized)
		err = lab_fail(why, -ENODATA, "no sample was measured");
	if (result->window_messages > 0)
		scale = MESH_UNIT_BYTES / ((double)result->window_messages * (double)result->size);
	if (err == 0)
		err = mesh_samples_to_histogram(result->times, scale, &answer->kept);
	if (err != 0)
		return lab_fail(why, err, "no memory");
	for (int n = 0; n < MESH_QUANTILES; n++)
		answer->taus[n] = result->summary.quantiles[n].tau;
	snprintf(
		answer->device, sizeof(answer->device), "%s",
		environment_get(&run->environment[0], "device")
	);
	snprintf(
		answer->their_device, sizeof(answer->their_device), "%s",
		environment_get(&run->environment[1], "device")
	);
	return 0; // `run` is not released, since the child exits soon
}

__attribute__((noreturn)) static void child_measure(
	const struct present *present,
	struct channel parent,
	enum channel_kind kind,
	const struct mesh_order *order
) {
	struct measurement measurement = {order, &parent};
	struct mesh_answer answer = {.order = order->number};
	struct lab_why why = {.text = ""}, unheard = {.text = ""};
	struct lab_session session = {
		.address = order->server,
		.device = present->device,
		.settings = present->member->settings,
		.plan = order->plan,
		.announce = send_port,
		.announce_ctx = &measurement,
		.patience_ns = CLIENT_NS,
		.quick = true,
		.windows_min = order->waits_for_go ? WINDOWS_FLOW : WINDOWS_MIN,
		.gather = order->waits_for_go ? wait_for_go : NULL,
		.gather_ctx = &measurement,
		.machine = &present->machine,
		.secrets = &present->secrets,
		.signal_fd = present->member->signal_fd,
	};
	struct plan plan;
	bool serves = kind == CHANNEL_MESH_SERVE;
	int err;

	session.cores_given = processor_at_index(order->place, &session.cores);
	err = serves ? session_server(&session, &plan, &why) : client_play(&session, &answer, &why);
	if (err != 0)
		snprintf(answer.why, sizeof(answer.why), "%.*s", MESH_WHY_BYTES - 1, why.text);
	kind = serves ? CHANNEL_MESH_SERVED : CHANNEL_MESH_RESULT;
	(void)mesh_send_answer(&parent, err == 0 ? kind : CHANNEL_MESH_FAILED, &answer, &unheard);
	_exit(0);
}

static void child_kill(struct child **child) {
	if (*child == NULL)
		return;
	kill((*child)->pid, SIGKILL);
	waitpid((*child)->pid, NULL, 0);
	channel_close(&(*child)->channel);
	free(*child);
	*child = NULL;
}

// Return the place of the child with this order, or NULL.
static struct child **find_child(struct present *present, uint32_t order) {
	for (uint32_t n = 0; n < MESH_NODES_MAX; n++) {
		if (present->children[n] != NULL && present->children[n]->order == order)
			return &present->children[n];
	}
	return NULL;
}

static int
send_failure(struct present *present, uint32_t order, const char *text, struct lab_why *why) {
	struct mesh_answer answer = {.order = order};

	snprintf(answer.why, sizeof(answer.why), "%s", text);
	return mesh_send_answer(&present->lead, CHANNEL_MESH_FAILED, &answer, why);
}

static int
order_start(struct present *present, const struct channel_message *message, struct lab_why *why) {
	struct mesh_order order;
	enum channel_kind kind = message->kind;
	struct child **place = NULL, *child;
	pid_t parent = getpid();
	int fds[2], err = mesh_read_order(message, &order, why);

	if (err != 0)
		return err;
	// A child that has sent its result may still hold the address of its device.
	for (uint32_t n = 0; n < MESH_NODES_MAX; n++) {
		if (present->children[n] != NULL && present->children[n]->told)
			child_kill(&present->children[n]);
		if (present->children[n] == NULL && place == NULL)
			place = &present->children[n];
	}
	child = place != NULL ? calloc(1, sizeof(*child)) : NULL;
	if (child == NULL)
		return send_failure(present, order.number, "no memory for a measurement", why);
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) != 0) {
		free(child);
		return send_failure(
			present, order.number, "cannot open a socket for a measurement", why
		);
	}
	child->order = order.number;
	child->channel.signal_fd = -1;
	child->pid = fork();
	if (child->pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(1);
		channel_close(&present->lead);
		close(fds[0]);
		child->channel.fd = fds[1];
		child_measure(present, child->channel, kind, &order);
	}
	close(fds[1]);
	if (child->pid < 0) {
		close(fds[0]);
		free(child);
		return send_failure(
			present, order.number, "cannot start a process for a measurement", why
		);
	}
	child->channel.fd = fds[0];
	*place = child;
	return 0;
}

// Handle one message of the lead. Returns 0, 1 if there are no more orders, or -errno.
static int handle_order(struct present *present, struct lab_why *why) {
	struct channel_message message;
	struct lab_why unheard = {.text = ""};
	struct mesh_order order;
	struct child **child;
	int err = channel_receive(&present->lead, frame_deadline(), &message, why);

	if (err != 0)
		return err;
	switch (message.kind) {
	case CHANNEL_MESH_SERVE:
	case CHANNEL_MESH_PLAY:
		return order_start(present, &message, why);
	case CHANNEL_MESH_STOP:
	case CHANNEL_MESH_GO:
		err = mesh_read_order(&message, &order, why);
		child = err == 0 ? find_child(present, order.number) : NULL;
		if (child != NULL && message.kind == CHANNEL_MESH_STOP)
			child_kill(child);
		else if (child != NULL) // a child that has died is noticed by its closed socket
			(void)channel_send(&(*child)->channel, CHANNEL_MESH_GO, NULL, 0, &unheard);
		return err;
	case CHANNEL_MESH_END:
		return 1;
	default:
		return lab_fail(
			why, -EBADMSG, "the lead sent an unexpected message of kind %u",
			message.kind
		);
	}
}

// Forward one message of a child to the lead unchanged. A child that closes without a final message
// has died.
static int forward_message(struct present *present, struct child **place, struct lab_why *why) {
	struct child *child = *place;
	struct lab_why gone = {.text = ""};
	struct channel_message message;
	uint32_t order = child->order;
	bool told = child->told;

	if (channel_receive(&child->channel, frame_deadline(), &message, &gone) == 0) {
		child->told |=
			message.kind != CHANNEL_MESH_LISTENS && message.kind != CHANNEL_MESH_READY;
		return channel_send(&present->lead, message.kind, message.bytes, message.size, why);
	}
	child_kill(place);
	return told ? 0 : send_failure(present, order, "the measuring process ended early", why);
}

// Handle the messages of the lead and of the children. Returns 0 when there are no more orders, or
// -errno.
static int follow_orders(struct present *present, struct lab_why *why) {
	struct pollfd fds[MESH_NODES_MAX + 2];
	int err = 0;

	while (err == 0) {
		fds[MESH_NODES_MAX] = (struct pollfd){.fd = present->lead.fd, .events = POLLIN};
		fds[MESH_NODES_MAX + 1] =
			(struct pollfd){.fd = present->member->signal_fd, .events = POLLIN};
		for (uint32_t n = 0; n < MESH_NODES_MAX; n++)
			fds[n] = (struct pollfd
			){.fd = present->children[n] != NULL ? present->children[n]->channel.fd
							     : -1,
			  .events = POLLIN};
		if (poll(fds, MESH_NODES_MAX + 2, -1) < 0 && errno != EINTR)
			return lab_fail(why, neg_errno(), "poll: %s", strerrordesc_np(errno));
		if (fds[MESH_NODES_MAX + 1].revents != 0)
			return lab_fail(why, -EINTR, "interrupted");
		if (fds[MESH_NODES_MAX].revents != 0)
			err = handle_order(present, why);
		for (uint32_t n = 0; n < MESH_NODES_MAX && err == 0; n++) {
			struct child **child = &present->children[n];

			// The lead's order may have ended or replaced the child.
			if (fds[n].revents != 0 && *child != NULL &&
			    (*child)->channel.fd == fds[n].fd)
				err = forward_message(present, child, why);
		}
	}
	return err == 1 ? 0 : err;
}

// Collect the secrets that may be those of the lead: given ones, those of its file in the runtime
// directory, and the token of the rendezvous file.
static int collect_secrets(struct present *present, const char *token, struct lab_why *why) {
	const struct mesh_member *member = present->member;
	int err;

	if (member->secrets != NULL) {
		present->secrets = *member->secrets;
		return 0;
	}
	err = access_begin_client(&member->access, &present->lead.peer, &present->secrets, why);
	if (err == 0 && token[0] != '\0' && present->secrets.source[0] == '\0') {
		proof_add_token(&present->secrets, token);
		snprintf(
			present->secrets.source, sizeof(present->secrets.source), "%s",
			member->place
		);
	}
	present->secrets.token_required = true; // nobody else may lead this process
	return err;
}

// Connect to the lead once, and prove the token. Returns 0, or -errno with the reason in `why`.
static int
lead_try(struct present *present, struct deadline deadline, bool *ret_final, struct lab_why *why) {
	const struct mesh_member *member = present->member;
	struct deadline soon = deadline_after(clock_monotonic_ns(), CONNECT_NS);
	struct sock_addr address = member->lead;
	char text[SOCK_ADDR_TEXT_BYTES];
	scoped_token char token[TOKEN_BYTES] = "";
	struct lab_why unheard = {.text = ""};
	int err = 0;

	*ret_final = false;
	if (member->place != NULL)
		err = mesh_read_lead_file(member->place, &address, token, why);
	if (err != 0) {
		*ret_final = err == -EBADMSG;
		return err;
	}
	err = channel_connect(
		&address, member->signal_fd, deadline_earliest(soon, deadline), &present->lead,
		&unheard
	);
	if (err != 0) {
		sock_addr_format(&address, text);
		return lab_fail(
			why, err, "cannot reach process 0 of the mesh at %s: %s", text,
			strerrordesc_np(-err)
		);
	}
	err = collect_secrets(present, token, why);
	*ret_final = err != 0;
	if (err == 0)
		err = knock_prove(
			&present->lead, &present->secrets, "process 0 of the mesh at", soon, why
		);
	// A rendezvous file may be from an earlier mesh. A lead that has no room may drop a
	// process.
	*ret_final |= err != 0 && err != -ECONNRESET && err != -ETIMEDOUT &&
		      (err != -EACCES || member->place == NULL);
	return err;
}

// Connect to the lead, with retries until it listens. The file with the lead's address is read each
// time: it may be from an earlier mesh until the lead replaces it.
static int lead_connect(struct present *present, struct lab_why *why) {
	const struct mesh_member *member = present->member;
	struct deadline deadline = deadline_after(clock_monotonic_ns(), member->patience_ns);

	for (;;) {
		struct lab_why refused = {.text = ""};
		bool final;
		int err = lead_try(present, deadline, &final, &refused);

		if (err == 0)
			return 0;
		channel_close(&present->lead);
		if (err == -EINTR)
			return lab_fail(why, err, "interrupted");
		if (final || deadline_expired(deadline, clock_monotonic_ns()))
			return lab_fail(why, err, "%s", refused.text);
		if (channel_pause(member->signal_fd, RETRY_PAUSE_MS) != 0)
			return lab_fail(why, -EINTR, "interrupted");
	}
}

static int lead_join(struct present *present, struct lab_why *why) {
	const struct mesh_member *member = present->member;
	struct mesh_join join = {.rank = member->rank, .count = member->count};
	struct cpu_set allowed;

	snprintf(join.version, sizeof(join.version), "%s", TOCSIN_VERSION);
	snprintf(join.node.rack, sizeof(join.node.rack), "%s", member->rack);
	if (gethostname(join.node.host, sizeof(join.node.host) - 1) != 0)
		snprintf(join.node.host, sizeof(join.node.host), "?");
	join.node.processors = 1;
	if (cpu_set_get_allowed(&allowed) == 0)
		join.node.processors = cpu_set_count(&allowed);
	return mesh_send_join(&present->lead, &join, why);
}

// Choose the device, and measure the machine. Without this each child would examine all devices,
// and measure the machine, again.
static int machine_prepare(struct present *present, struct lab_why *why) {
	const struct mesh_member *member = present->member;
	int err = 0;

	if (member->device != NULL)
		snprintf(present->device, sizeof(present->device), "%s", member->device);
	else
		err = lab_device_choose(&member->settings, why, present->device);
	if (err != 0)
		return err;
	err = block_cost_measure(&present->machine.block_ns);
	if (err != 0)
		return lab_fail(why, err, "cannot start a thread: %s", strerrordesc_np(-err));
	clock_init_resynced(&present->machine.clock);
	if (strcmp(present->device, "soft") == 0)
		soft_clock_prepare();
	return 0;
}

int mesh_member_run(const struct mesh_member *member, struct lab_why *why) {
	struct present *present = calloc(1, sizeof(*present));
	int err;

	if (present == NULL)
		return lab_fail(why, -ENOMEM, "no memory");
	present->member = member;
	present->lead.fd = -1;
	err = machine_prepare(present, why);
	if (err == 0)
		err = lead_connect(present, why);
	if (err == 0)
		err = lead_join(present, why);
	if (err == 0)
		err = follow_orders(present, why);
	for (uint32_t n = 0; n < MESH_NODES_MAX; n++)
		child_kill(&present->children[n]);
	channel_close(&present->lead);
	proof_secrets_wipe(&present->secrets);
	free(present);
	return err;
}
