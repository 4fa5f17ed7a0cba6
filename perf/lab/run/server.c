// SPDX-License-Identifier: BSD-3-Clause
// Server end of a session: serves the operations of the client.
#include "run/gate.h"
#include "run/session.h"

#include <lib/clock.h>
#include <lib/histogram.h>
#include <lib/show.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#define STEP_SLACK_NS UINT64_C(60000000000) // for warm-up and end of a size
#define BETWEEN_NS UINT64_C(600000000000)   // for a client that evaluates a size

struct server {
	struct lab_party party;
	uint64_t until_ns; // the session must end by then
	int signal_fd;
	bool quiet; // the caller reports to the user
	struct noise before;
	// State when the client began to record, and at the end of the step.
	uint64_t mark_ns, mark_played, ended_ns, ended_played;
};

static int wait_for_wake(
	struct server *server, uint32_t wanted, struct deadline deadline, struct lab_why *why
) {
	const struct player *player = lab_end_player(server->party.end);
	uint32_t wakes;

	do {
		wakes = lab_end_wait(
			server->party.end,
			(wanted & LAB_WAKE_CHANNEL) != 0 ? &server->party.channel : NULL,
			server->signal_fd, deadline
		);
		if ((wakes & LAB_WAKE_SIGNAL) != 0)
			return lab_fail(why, -EINTR, "the server was interrupted");
		if ((wakes & LAB_WAKE_TIME) != 0)
			return lab_fail(why, -ETIMEDOUT, "the server's worker does not answer");
		// The client's own error message explains more than the failure of the pair.
		if ((wakes & LAB_WAKE_CHANNEL) == 0 && !lab_end_is_playing(server->party.end) &&
		    player->failed)
			return session_fail_player(player, why);
	} while ((wakes & wanted) == 0);
	return 0;
}

static uint64_t operations_played(const struct server *server) {
	const struct player *player = lab_end_player(server->party.end);

	return atomic_load_explicit(&player->played, memory_order_relaxed);
}

// Return the time at which a session of this plan must have ended.
static uint64_t session_end_ns(const struct plan *plan) {
	uint64_t whole_ns = PLAN_TIME_NS_MAX;

	// The time of other plans depends on the latency, as that of an open loop whose operations
	// are slower than their arrivals.
	if (plan->duration_ns > 0 && plan->arrivals == PLAN_CLOSED)
		whole_ns = plan_time_ns(plan);
	return clock_monotonic_ns() + whole_ns + plan->size_count * STEP_SLACK_NS;
}

// Wait for a message of the client, at most for `silence_ns` in which no operation is played. An
// idle server sees no operations, so it waits until the session must end.
static int wait_for_client(struct server *server, uint64_t silence_ns, struct lab_why *why) {
	bool counts =
		lab_end_is_playing(server->party.end) && !plan_server_is_idle(&server->party.plan);
	uint64_t played;
	int err;

	if (lab_end_is_playing(server->party.end) && !counts)
		silence_ns = PLAN_TIME_NS_MAX;
	do {
		struct deadline until = {server->until_ns};
		struct lab_why unheard = {.text = ""};

		played = operations_played(server);
		err = wait_for_wake(
			server, LAB_WAKE_CHANNEL,
			deadline_earliest(deadline_after(clock_monotonic_ns(), silence_ns), until),
			&unheard
		);
		if (err != -ETIMEDOUT)
			return err == 0 ? 0 : lab_fail(why, err, "%s", unheard.text);
		if (deadline_expired(until, clock_monotonic_ns()))
			return lab_fail(
				why, err, "the client has not ended in the time of its plan"
			);
	} while (counts && operations_played(server) != played);
	return lab_fail(
		why, err, "the client was silent for %u s", (uint32_t)(silence_ns / 1000000000)
	);
}

static void mark_recorded_start(struct server *server) {
	noise_read(
		lab_end_facts(server->party.end)->tid, lab_end_worker(server->party.end),
		&server->before
	);
	server->mark_ns = clock_monotonic_ns();
	server->mark_played = operations_played(server);
}

static int
begin_step(struct server *server, const struct channel_message *message, struct lab_why *why) {
	struct wire_reader reader;
	uint32_t step;
	int err;

	wire_reader_init(&reader, message->bytes, message->size);
	step = wire_get_u32(&reader);
	if (wire_reader_finish(&reader) != 0 || step >= server->party.plan.size_count)
		return lab_fail(
			why, -EBADMSG, "the client asks for a size that is not in its plan"
		);
	player_set_size(lab_end_player(server->party.end), server->party.plan.sizes[step]);
	mark_recorded_start(server);
	lab_end_player(server->party.end)->stretch = (struct player_stretch){
		.count = UINT64_MAX,
		.last_ns = UINT64_MAX,
		.window_messages = UINT64_MAX,
	};
	err = lab_end_request(server->party.end, PLAYER_REQUEST_SERVE, why);
	if (err == 0)
		err = wait_for_wake(server, LAB_WAKE_PLAYER, session_answer_deadline(), why);
	if (err == 0)
		err = channel_send(&server->party.channel, CHANNEL_STEP_READY, NULL, 0, why);
	return err;
}

// Stop the player, and send the noise and the answer times of the step.
static int end_step(struct server *server, struct lab_why *why) {
	const struct lab_end_facts *facts = lab_end_facts(server->party.end);
	const struct device_time *time = lab_end_get_device_time(server->party.end);
	const struct histogram *answers = time != NULL ? time->answers : NULL;
	struct histogram_summary all = {.count = 0};
	bool sends = server->party.plan.both_ways;
	uint8_t buffer[CHANNEL_BYTES_MAX];
	struct wire_writer writer;
	struct noise after, between;
	int err;

	server->ended_ns = clock_monotonic_ns();
	server->ended_played = operations_played(server);
	err = lab_end_request(server->party.end, PLAYER_REQUEST_STOP, why);
	if (err == 0)
		err = wait_for_wake(server, LAB_WAKE_PLAYER, session_answer_deadline(), why);
	if (err != 0)
		return err;
	noise_read(facts->tid, lab_end_worker(server->party.end), &after);
	between = noise_between(&server->before, &after);
	wire_writer_init(&writer, buffer, sizeof(buffer));
	noise_encode(&between, &writer);
	wire_put_u64(&writer, sends ? server->ended_played - server->mark_played : 0);
	wire_put_u64(&writer, sends ? server->ended_ns - server->mark_ns : 0);

	// The answer times of the server's program are all zero if stamps are not used.
	if (answers != NULL)
		histogram_summarize(answers, &all);
	wire_put_u64(&writer, all.count);
	wire_put_u64(&writer, (uint64_t)(all.mean * 1e3));
	wire_put_u64(&writer, all.count > 0 ? histogram_percentile(answers, 500000) : 0);
	wire_put_u64(&writer, all.count > 0 ? histogram_percentile(answers, 990000) : 0);
	wire_put_u64(&writer, all.max);
	return channel_send(
		&server->party.channel, CHANNEL_STEP_NOISE, buffer, wire_writer_used(&writer), why
	);
}

// Serve one size until the client ends the step.
static int serve_until_end(struct server *server, struct lab_why *why) {
	struct channel_message message;
	int err;

	for (;;) {
		err = wait_for_client(server, plan_silence_max_ns(&server->party.plan), why);
		if (err == 0)
			err = channel_receive(
				&server->party.channel, session_answer_deadline(), &message, why
			);
		if (err != 0)
			return err;
		if (message.kind != CHANNEL_MARK)
			break;
		mark_recorded_start(server);

		// With stamps the answer times start anew, and the client waits for that.
		if (lab_end_get_device_time(server->party.end) == NULL)
			continue;
		err = lab_end_request(server->party.end, PLAYER_REQUEST_MARK, why);
		if (err == 0)
			err = channel_send(&server->party.channel, CHANNEL_MARKED, NULL, 0, why);
		if (err != 0)
			return err;
	}
	return message.kind == CHANNEL_STEP_END
		       ? end_step(server, why)
		       : lab_fail(
				 why, -EBADMSG, "the client sent an unexpected message of kind %u",
				 message.kind
			 );
}

// Serve one step, from STEP to STEP_END. Returns 1 after the client's BYE.
static int serve_step(struct server *server, struct lab_why *why) {
	struct channel_message message;
	int err = wait_for_client(server, BETWEEN_NS, why);

	if (err == 0)
		err = channel_receive(
			&server->party.channel, session_answer_deadline(), &message, why
		);
	if (err != 0)
		return err;
	if (message.kind == CHANNEL_BYE)
		return 1;
	if (message.kind != CHANNEL_STEP)
		return lab_fail(
			why, -EBADMSG, "the client sent an unexpected message of kind %u",
			message.kind
		);
	err = begin_step(server, &message, why);
	return err == 0 ? serve_until_end(server, why) : err;
}

static int serve_all_sizes(struct server *server, struct lab_why *why) {
	const struct plan *plan = &server->party.plan;
	uint32_t steps = 0;
	int err;

	if (!server->quiet) {
		printf("Serves %s%s, %s, on %s", plan->command == PLAN_BW ? "bandwidth of " : "",
		       plan_op_name(plan->op), plan_arrivals_name(plan->arrivals),
		       lab_end_facts(server->party.end)->device);
		if (plan->runs > 1)
			printf(", run %u of %u", plan->run, plan->runs);
		printf(".\n");
		fflush(stdout);
	}
	while ((err = serve_step(server, why)) == 0)
		steps++;
	if (err == 1 && !server->quiet)
		printf("Served %u of %u size%s.\n", steps, plan->size_count,
		       PLURAL(plan->size_count));
	return err == 1 ? 0 : err;
}

// Wait for a client that proves a secret and has a possible plan. Any other connection is refused.
static int accept_client(
	struct server *server,
	const struct lab_session *session,
	const struct channel_listener *listener,
	struct lab_hello *ret_hello,
	struct lab_why *why
) {
	struct channel *channel = &server->party.channel;
	struct deadline deadline =
		session->patience_ns > 0
			? deadline_after(clock_monotonic_ns(), session->patience_ns)
			: deadline_never();
	struct channel_message message;
	struct gate *gate;
	int err = gate_create(listener, session->secrets, server->quiet, &gate);

	if (err != 0)
		return lab_fail(why, err, "no memory");
	for (;;) {
		struct lab_why refused = {.text = ""};

		err = gate_wait(gate, session->signal_fd, deadline, channel, &message, why);
		if (err != 0 || session_read_hello(&message, ret_hello, &refused) == 0)
			break;
		gate_refuse(gate, channel, &refused);
		channel->fd = -1;
	}
	gate_destroy(gate);
	return err;
}

static void address_announce(const struct lab_session *session, const struct sock_addr *address) {
	char text[SOCK_ADDR_TEXT_BYTES];

	if (session->announce != NULL) {
		session->announce(session->announce_ctx, address);
		return;
	}
	sock_addr_format(address, text);
	printf("Waits for a client on %s.\n", text);
	if (session->token_is_new && !session->secrets->open && !sock_addr_is_loopback(address))
		printf("Its token is %s.\n", session->token);
	fflush(stdout);
	if (session->secrets->open)
		fprintf(stderr,
			"tocsin-perf: --open: the first client is served without a proof\n");
}

// Wait for a client, and close the listener as soon as the client has connected. The token is
// published before anybody can connect, so a client that is connected finds it.
static int listen_for_client(
	struct server *server,
	const struct lab_session *session,
	struct lab_hello *ret_hello,
	struct lab_why *why
) {
	struct lab_why unpublished = {.text = ""};
	struct channel_listener listener;
	int err = channel_bind(&session->address, &listener, why);

	if (err != 0)
		return err;
	if (session->token != NULL &&
	    token_publish(&listener.address, session->token, &unpublished) != 0)
		fprintf(stderr,
			"tocsin-perf: clients on this machine need --token-file or " TOKEN_ENVIRONMENT
			": %s\n",
			unpublished.text);
	if (session->token != NULL && session->access.token_file != NULL)
		err = token_file_replace(session->access.token_file, session->token, why);
	if (err == 0)
		err = channel_listen(&listener, why);
	if (err == 0) {
		address_announce(session, &listener.address);
		err = accept_client(server, session, &listener, ret_hello, why);
	}
	if (session->token != NULL)
		token_unpublish(&listener.address, session->token);
	channel_listener_close(&listener);
	return err;
}

int session_server(const struct lab_session *session, struct plan *ret_plan, struct lab_why *why) {
	struct server server = {
		.party = {.channel.fd = -1, .serves = true},
		.signal_fd = session->signal_fd,
		.quiet = session->announce != NULL,
	};
	struct lab_hello hello;
	int err = listen_for_client(&server, session, &hello, why);

	if (err == 0)
		err = plan_compare(&hello.plan, &session->plan, session->given, why);
	if (err == 0) {
		server.party.plan = hello.plan;
		err = session_send_hello(&server.party.channel, &hello.plan, why);
	}
	*ret_plan = server.party.plan;
	server.until_ns = session_end_ns(&server.party.plan);
	if (err == 0)
		err = session_connect(session, &server.party, why);
	if (err == 0)
		err = serve_all_sizes(&server, why);
	session_end(&server.party, why);
	return err;
}
