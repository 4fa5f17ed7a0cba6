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

struct present {
	const struct mesh_member *member;
	struct proof_secrets secrets; // proven to the lead, and between measuring children
	struct channel lead;
	struct channel child; // socket to the child that measures; fd -1: none
	pid_t pid;
	uint32_t order;
	struct lab_machine machine;
	char device[DEVICE_NAME_MAX + 1];
	bool told; // the result was forwarded
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
	int err;

	if (run == NULL)
		return lab_fail(why, -ENOMEM, "no memory");
	err = session_client(session, run, why);
	if (err == 0 && !run->results[0].summarized)
		err = lab_fail(why, -ENODATA, "no sample was measured");
	if (err == 0)
		err = mesh_samples_to_histogram(run->results[0].times, &answer->kept);
	if (err != 0)
		return lab_fail(why, err, "no memory");
	for (int n = 0; n < MESH_QUANTILES; n++)
		answer->taus[n] = run->results[0].summary.quantiles[n].tau;
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
	const struct present *present, enum channel_kind kind, const struct mesh_order *order
) {
	struct channel parent = present->child;
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

static void child_kill(struct present *present) {
	if (present->pid > 0) {
		kill(present->pid, SIGKILL);
		waitpid(present->pid, NULL, 0);
	}
	present->pid = 0;
	channel_close(&present->child);
}

static int send_failure(struct present *present, const char *text, struct lab_why *why) {
	struct mesh_answer answer = {.order = present->order};

	snprintf(answer.why, sizeof(answer.why), "%s", text);
	return mesh_send_answer(&present->lead, CHANNEL_MESH_FAILED, &answer, why);
}

static int
order_start(struct present *present, const struct channel_message *message, struct lab_why *why) {
	struct mesh_order order;
	enum channel_kind kind = message->kind;
	pid_t parent = getpid();
	int fds[2], err = mesh_read_order(message, &order, why);

	if (err != 0)
		return err;
	child_kill(present);
	present->order = order.number;
	present->told = false;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) != 0)
		return send_failure(present, "cannot open a socket for a measurement", why);
	present->pid = fork();
	if (present->pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(1);
		channel_close(&present->lead);
		close(fds[0]);
		present->child.fd = fds[1];
		child_measure(present, kind, &order);
	}
	close(fds[1]);
	if (present->pid < 0) {
		// A closed socket in present->child would be reported as a process that ended.
		close(fds[0]);
		return send_failure(present, "cannot start a process for a measurement", why);
	}
	present->child.fd = fds[0];
	return 0;
}

// Handle one message of the lead. Returns 0, 1 if there are no more orders, or -errno.
static int handle_order(struct present *present, struct lab_why *why) {
	struct channel_message message;
	struct mesh_order order;
	int err = channel_receive(&present->lead, frame_deadline(), &message, why);

	if (err != 0)
		return err;
	switch (message.kind) {
	case CHANNEL_MESH_SERVE:
	case CHANNEL_MESH_PLAY:
		return order_start(present, &message, why);
	case CHANNEL_MESH_STOP:
		err = mesh_read_order(&message, &order, why);
		if (err == 0 && order.number == present->order)
			child_kill(present);
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

// Handle the messages of the lead, and forward those of the child unchanged. Returns 0 when there
// are no more orders, or -errno.
static int follow_orders(struct present *present, struct lab_why *why) {
	struct channel_message message;
	int err = 0;

	while (err == 0) {
		struct pollfd fds[3] = {
			{.fd = present->lead.fd, .events = POLLIN},
			{.fd = present->child.fd, .events = POLLIN},
			{.fd = present->member->signal_fd, .events = POLLIN},
		};

		if (poll(fds, 3, -1) < 0 && errno != EINTR)
			return lab_fail(why, neg_errno(), "poll: %s", strerrordesc_np(errno));
		if (fds[2].revents != 0)
			return lab_fail(why, -EINTR, "interrupted");
		if (fds[0].revents != 0)
			err = handle_order(present, why);
		if (err == 0 && fds[1].revents != 0 && present->child.fd == fds[1].fd) {
			struct lab_why gone = {.text = ""};

			if (channel_receive(&present->child, frame_deadline(), &message, &gone) ==
			    0) {
				present->told |= message.kind != CHANNEL_MESH_LISTENS;
				err = channel_send(
					&present->lead, message.kind, message.bytes, message.size,
					why
				);
				continue;
			}

			// A child that closes without a final message has died.
			child_kill(present);
			if (!present->told)
				err = send_failure(
					present, "the measuring process ended early", why
				);
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
	present->lead.fd = present->child.fd = present->child.signal_fd = -1;
	err = machine_prepare(present, why);
	if (err == 0)
		err = lead_connect(present, why);
	if (err == 0)
		err = lead_join(present, why);
	if (err == 0)
		err = follow_orders(present, why);
	child_kill(present);
	channel_close(&present->lead);
	proof_secrets_wipe(&present->secrets);
	free(present);
	return err;
}
