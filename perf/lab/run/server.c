// SPDX-License-Identifier: BSD-3-Clause
// Server end of a session: serves the operations of the client.
#include "run/session.h"

#include <lib/clock.h>
#include <lib/histogram.h>
#include <lib/show.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#define HELLO_NS UINT64_C(5000000000) // timeout of the client's first message

struct server {
	struct lab_party party;
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
		err = wait_for_wake(server, LAB_WAKE_CHANNEL, deadline_never(), why);
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
	int err = wait_for_wake(server, LAB_WAKE_CHANNEL, deadline_never(), why);

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

// Return true if the connection was no client: port scanners, or scripts that wait for the open
// port.
static bool error_is_from_stranger(int err) {
	return err == -ECONNRESET || err == -ETIMEDOUT || err == -ENOMSG;
}

static int accept_client(
	struct server *server,
	const struct lab_session *session,
	const struct channel_listener *listener,
	struct lab_hello *ret_hello,
	struct lab_why *why
) {
	struct channel *channel = &server->party.channel;
	uint64_t now_ns = clock_monotonic_ns();
	struct deadline deadline = session->patience_ns > 0
					   ? deadline_after(now_ns, session->patience_ns)
					   : deadline_never();

	for (;;) {
		char text[SOCK_ADDR_TEXT_BYTES];
		struct lab_why said = {.text = ""};
		int err = channel_accept(listener, session->signal_fd, deadline, channel, why);

		if (err != 0)
			return err;
		err = session_receive_hello(
			channel, deadline_after(clock_monotonic_ns(), HELLO_NS), ret_hello, &said
		);
		if (!error_is_from_stranger(err))
			return err == 0 ? 0 : lab_fail(why, err, "%s", said.text);
		sock_addr_format(&channel->peer, text);
		if (!server->quiet)
			fprintf(stderr, "tocsin-perf: %s is not a client, still waiting: %s\n",
				text, said.text);
		channel_send_error(channel, &said);
		channel_close(channel);
	}
}

// Wait for a client, and close the listener as soon as the client has connected.
static int wait_for_client(
	struct server *server,
	const struct lab_session *session,
	struct lab_hello *ret_hello,
	struct lab_why *why
) {
	char text[SOCK_ADDR_TEXT_BYTES];
	struct channel_listener listener;
	int err = channel_listen(&session->address, &listener, why);

	if (err != 0)
		return err;
	if (session->announce != NULL) {
		session->announce(session->announce_ctx, &listener.address);
	} else {
		sock_addr_format(&listener.address, text);
		printf("Waits for a client on %s.\n", text);
		fflush(stdout);
	}
	err = accept_client(server, session, &listener, ret_hello, why);
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
	int err = wait_for_client(&server, session, &hello, why);

	if (err == 0)
		err = plan_compare(&hello.plan, &session->plan, session->given, why);
	if (err == 0) {
		server.party.plan = hello.plan;
		err = session_send_hello(&server.party.channel, &hello.plan, why);
	}
	*ret_plan = server.party.plan;
	if (err == 0)
		err = session_connect(session, &server.party, why);
	if (err == 0)
		err = serve_all_sizes(&server, why);
	session_end(&server.party, why);
	return err;
}
