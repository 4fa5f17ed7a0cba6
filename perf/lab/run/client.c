// SPDX-License-Identifier: BSD-3-Clause
// Client end of a session: warms up, measures and stores the results.
#include "run/knock.h"
#include "run/schedule.h"
#include "run/session.h"
#include "run/yardsticks.h"

#include <lib/clock.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define CONNECT_NS UINT64_C(5000000000)
#define SILENCE_MAX_NS UINT64_C(1000000000) // silent wait for a server that does not listen yet
#define RETRY_NS UINT64_C(20000000000)	    // for a server that restarts between two runs
#define RETRY_PAUSE_MS 20
#define WARMUP_NS UINT64_C(1000000000) // upper bound of a warm-up
#define WARMUP_QUICK (2 * WARMUP_SAMPLES_MIN)
#define TICK_NS UINT64_C(1000000000)
#define SILENCE_NS UINT64_C(10000000000) // longest time without a completed operation
#define STOP_NS UINT64_C(5000000000)
#define WINDOW_NS UINT64_C(1000000) // approximate duration of one window of a load
// Windows of a quick run are longer, so that short stalls do not separate their median from the
// mean rate.
#define WINDOW_QUICK_NS UINT64_C(5000000)
#define CALIBRATION_NS UINT64_C(20000000)
#define WINDOWS_MIN 100u // minimum number of windows if --iterations is given

struct client {
	const struct lab_session *session;
	struct lab_party party;
	struct lab_run *run;
	struct outlier_watch *watch;
	uint64_t patience_ns;
};

static int wait_stretch_end(struct client *client, struct lab_why *why) {
	struct lab_end *end = client->party.end;
	const struct player *player = lab_end_player(end);
	uint64_t played = 0, since_ns = clock_monotonic_ns();
	struct channel_message message;
	int err;

	for (;;) {
		uint64_t now_played;
		uint32_t wakes = lab_end_wait(
			end, &client->party.channel, client->session->signal_fd,
			deadline_after(clock_monotonic_ns(), TICK_NS)
		);

		// The server only sends an error during a measurement.
		if ((wakes & LAB_WAKE_CHANNEL) != 0) {
			err = channel_receive(
				&client->party.channel, session_answer_deadline(), &message, why
			);
			if (err == 0)
				err = lab_fail(
					why, -EBADMSG,
					"the server sent an unexpected message of kind %u",
					message.kind
				);
			return err;
		}
		if ((wakes & LAB_WAKE_PLAYER) != 0 && !lab_end_is_playing(end))
			return session_fail_player(player, why);
		if ((wakes & LAB_WAKE_SIGNAL) != 0)
			return lab_fail(why, -EINTR, "interrupted");
		now_played = atomic_load_explicit(&player->played, memory_order_relaxed);
		if (now_played != played)
			since_ns = clock_monotonic_ns();
		played = now_played;
		if (clock_monotonic_ns() - since_ns >= client->patience_ns)
			return lab_fail(
				why, -ETIMEDOUT, "no operation ended for %u s: the other end hangs",
				(uint32_t)(client->patience_ns / TICK_NS)
			);
	}
}

static int
stretch_play(struct client *client, const struct player_stretch *stretch, struct lab_why *why) {
	struct lab_end *end = client->party.end;
	struct lab_why unheard = {.text = ""};
	struct deadline deadline;
	int err;

	lab_end_player(end)->stretch = *stretch;
	err = lab_end_request(end, PLAYER_REQUEST_PLAY, why);
	if (err == 0)
		err = wait_stretch_end(client, why);
	deadline = deadline_after(clock_monotonic_ns(), STOP_NS);
	if (lab_end_is_playing(end))
		(void)lab_end_request(end, PLAYER_REQUEST_STOP, &unheard);
	while (lab_end_is_playing(end) && lab_end_wait(end, NULL, -1, deadline) != LAB_WAKE_TIME)
		;

	// A worker that hangs may still write to the samples, so they stay allocated.
	if (lab_end_is_playing(end))
		err = lab_fail(why, -EBUSY, "the worker hangs");
	return err;
}

// Double the number of samples until the worker is warm, or the time is over.
static int warm_up(struct client *client, struct lab_result *result, struct lab_why *why) {
	uint64_t until_ns = clock_monotonic_ns() + WARMUP_NS;
	uint32_t most = client->session->quick ? WARMUP_QUICK : WARMUP_SAMPLES_MAX;
	int err = 0;

	for (uint32_t count = WARMUP_SAMPLES_MIN;
	     count <= most && !result->warm_check.warm && err == 0; count *= 2) {
		uint64_t now_ns = clock_monotonic_ns();
		struct player_stretch stretch = {
			.count = count - result->warm_count,
			.last_ns = until_ns > now_ns ? until_ns - now_ns : 0,
			.gap_ns = client->run->plan.gap_ns,
			.window_messages = result->window_messages,
			.raw = result->warm + result->warm_count,
		};
		int looked;

		err = stretch_play(client, &stretch, why);
		result->warm_count += (uint32_t)lab_end_player(client->party.end)->kept;
		if (result->warm_count < count)
			break;
		// Judge an interrupted warm-up, too: its file contains these samples.
		result->warm_judged = true;
		looked = warmup_check(result->warm, result->warm_count, &result->warm_check);
		err = err != 0 ? err : looked;
	}
	return err;
}

// Find how many messages fill about one window; the samples of this stretch are dropped. A window
// has at least as many messages as can be outstanding. A worker that lost its processor finds that
// many completions at once. A smaller window would then take no time.
static int window_calibrate(struct client *client, struct lab_result *result, struct lab_why *why) {
	const struct plan *plan = &client->run->plan;
	const struct player *player = lab_end_player(client->party.end);
	struct player_stretch stretch = {
		.count = UINT64_MAX,
		.last_ns = CALIBRATION_NS,
		.window_messages = 1,
	};
	uint64_t least = (uint64_t)plan->depth * plan->pairs;
	uint64_t count = 1, most = plan->iterations / WINDOWS_MIN;
	uint64_t window_ns = client->session->quick ? WINDOW_QUICK_NS : WINDOW_NS;
	int err = stretch_play(client, &stretch, why);

	if (player->took_ns > 0)
		count = (uint64_t
		)((double)player->kept * (double)window_ns / (double)player->took_ns);
	if (plan->iterations > 0 && count > most)
		count = most;
	result->window_messages = count > least ? count : least;
	return err;
}

static uint64_t samples_wanted(const struct plan *plan, const struct lab_result *result) {
	if (plan->iterations == 0)
		return UINT64_MAX;
	if (plan->command == PLAN_LAT)
		return plan->iterations;
	return (plan->iterations + result->window_messages - 1) / result->window_messages;
}

static int size_measure(struct client *client, struct lab_result *result, struct lab_why *why) {
	const struct plan *plan = &client->run->plan;
	const struct player *player = lab_end_player(client->party.end);
	struct device_time *time = lab_end_get_device_time(client->party.end);
	struct result_device *device = &result->device;
	struct channel_message message;
	struct player_stretch stretch = {
		.lead = RESULT_LEAD,
		.count = samples_wanted(plan, result),
		.last_ns = plan->duration_ns > 0 ? plan->duration_ns : UINT64_MAX,
		.gap_ns = plan->gap_ns,
		.window_messages = result->window_messages,
		.windows_min = client->session->windows_min,
		.times = result->times,
		.watch = client->watch,
	};
	int err = channel_send(&client->party.channel, CHANNEL_MARK, NULL, 0, why);

	// The mark starts the recorded part at both ends.
	if (err == 0 && plan_server_uses_stamps(plan))
		err = channel_expect(
			&client->party.channel, CHANNEL_MARKED, session_answer_deadline(), &message,
			why
		);
	if (err != 0)
		return err;
	if (result->open) {
		stretch.count = result->load.due_count;
		stretch.last_ns = UINT64_MAX;
		stretch.due_ns = result->load.due_ns;
		stretch.service = result->load.service;
		stretch.lag = result->load.lag;
	}

	// The clocks were last compared during another size, or never, so the comparison starts
	// anew.
	if (device->stamps != PLAN_STAMPS_NONE) {
		time->device = device->device;
		time->host = device->host;
		time->outside = time->failures = 0;
		device_clock_restart(&time->clock);
	}
	outlier_watch_begin(client->watch, outlier_bound_ns(result->warm, result->warm_count));
	err = stretch_play(client, &stretch, why);
	result->took_ns = player->took_ns;
	result->complete = err == 0;
	if (device->stamps != PLAN_STAMPS_NONE && !lab_end_is_playing(client->party.end)) {
		device->khz = lab_end_facts(client->party.end)->stamp_khz;
		device->off_ns = time->clock.off_ns;
		device->outside = time->outside;
	}
	return err;
}

static int end_step(struct client *client, struct lab_result *result, struct lab_why *why) {
	struct channel_message message;
	struct wire_reader reader;
	int err = channel_send(&client->party.channel, CHANNEL_STEP_END, NULL, 0, why);

	if (err == 0)
		err = channel_expect(
			&client->party.channel, CHANNEL_STEP_NOISE, session_answer_deadline(),
			&message, why
		);
	if (err != 0)
		return err;
	wire_reader_init(&reader, message.bytes, message.size);
	noise_decode(&reader, &result->noise[1]);
	result->peer_messages = wire_get_u64(&reader);
	result->peer_ns = wire_get_u64(&reader);
	result->device.answer_count = wire_get_u64(&reader);
	result->device.answer_mean_ps = wire_get_u64(&reader);
	result->device.answer_p50_ns = wire_get_u64(&reader);
	result->device.answer_p99_ns = wire_get_u64(&reader);
	result->device.answer_max_ns = wire_get_u64(&reader);
	if (wire_reader_finish(&reader) != 0)
		return lab_fail(why, -EBADMSG, "the server's noise report is malformed");
	result->noise_known[1] = true;
	return 0;
}

static int
measure_with_noise(struct client *client, struct lab_result *result, struct lab_why *why) {
	const struct worker *worker = lab_end_worker(client->party.end);
	pid_t tid = lab_end_facts(client->party.end)->tid;
	struct noise before, after;
	int err = 0;

	if (client->run->plan.command == PLAN_BW)
		err = window_calibrate(client, result, why);
	// A quick run of bw is warm after the calibration, which lasts as long as many windows.
	if (err == 0 && (client->run->plan.command != PLAN_BW || !client->session->quick))
		err = warm_up(client, result, why);
	if (err == 0 && client->session->gather != NULL)
		err = client->session->gather(client->session->gather_ctx, why);
	if (err != 0)
		return err;
	noise_read(tid, worker, &before);
	err = size_measure(client, result, why);
	noise_read(tid, worker, &after);
	if (!lab_end_is_playing(client->party.end))
		result->outlier_count = outlier_watch_sorted(client->watch, result->outliers);
	result->noise[0] = noise_between(&before, &after);
	result->noise_known[0] = true;
	return err;
}

static int
size_prepare(struct client *client, struct lab_result *result, uint64_t size, struct lab_why *why) {
	const struct lab_trace *trace = &client->session->trace;
	const struct plan *plan = &client->run->plan;
	struct result_load *load = &result->load;
	bool open = plan->arrivals != PLAN_CLOSED;
	int err = result_prepare(result, size, open);

	client->run->count++;
	client->patience_ns = SILENCE_NS + plan->gap_ns;
	if (err == 0 && plan->stamps != PLAN_STAMPS_NONE)
		err = result_prepare_device(result, plan->stamps);
	if (err != 0)
		return lab_fail(why, err, "no memory for samples");
	result_touch(
		result,
		plan->command == PLAN_LAT && plan->iterations > 0 ? plan->iterations : UINT64_MAX
	);
	if (!open)
		return 0;
	if (plan->arrivals != PLAN_TRACE) {
		err = schedule_make(plan, NULL, why, &load->due_ns, &load->due_count);
	} else {
		load->due_ns = calloc(trace->count, sizeof(*load->due_ns));
		if (load->due_ns == NULL)
			return lab_fail(why, -ENOMEM, "no memory for the schedule");
		memcpy(load->due_ns, trace->due_ns, trace->count * sizeof(*load->due_ns));
		load->due_count = trace->count;
	}
	if (err == 0)
		client->patience_ns =
			SILENCE_NS + schedule_pause_max_ns(load->due_ns, load->due_count);
	return err;
}

static int play_step(struct client *client, uint32_t step, struct lab_why *why) {
	struct lab_result *result = &client->run->results[client->run->count];
	struct channel *channel = &client->party.channel;
	uint64_t size = client->run->plan.sizes[step];
	struct channel_message message;
	uint8_t buffer[sizeof(step)];
	struct wire_writer writer;
	int err = size_prepare(client, result, size, why), summarized;

	if (err == 0) {
		player_set_size(lab_end_player(client->party.end), size);
		wire_writer_init(&writer, buffer, sizeof(buffer));
		wire_put_u32(&writer, step);
		err = channel_send(channel, CHANNEL_STEP, buffer, sizeof(buffer), why);
	}
	if (err == 0)
		err = channel_expect(
			channel, CHANNEL_STEP_READY, session_answer_deadline(), &message, why
		);
	if (err == 0)
		err = measure_with_noise(client, result, why);
	if (err == 0)
		err = end_step(client, result, why);
	if (result->times == NULL || lab_end_is_playing(client->party.end))
		return err;
	summarized = 0;
	if (!client->session->quick) // a quick run leaves no file of its own
		summarized = result_thin(
			result, client->run->plan.size_count, client->session->file_bytes
		);
	if (summarized == 0)
		summarized = result_summarize(result);
	return err != 0 ? err : summarized;
}

// Connect to the server, with retries. A server that was started by the same script may not listen
// yet. A server of several runs starts anew for each run.
static int server_connect(struct client *client, struct lab_why *why) {
	bool again = client->run->plan.run > 1, told = again;
	uint64_t now_ns = clock_monotonic_ns();
	struct deadline deadline = deadline_after(now_ns, again ? RETRY_NS : CONNECT_NS);
	struct deadline silence = deadline_after(now_ns, SILENCE_MAX_NS);
	int signal_fd = client->session->signal_fd;

	for (;;) {
		struct lab_why refused = {.text = ""};
		int err = channel_connect(
			&client->session->address, signal_fd,
			deadline_after(clock_monotonic_ns(), CONNECT_NS), &client->party.channel,
			&refused
		);

		if (err == 0)
			return 0;
		channel_close(&client->party.channel);
		if (err != -ECONNREFUSED || deadline_expired(deadline, clock_monotonic_ns()))
			return lab_fail(why, err, "%s", refused.text);
		if (!told && deadline_expired(silence, clock_monotonic_ns())) {
			fprintf(stderr,
				"tocsin-perf: the server does not listen yet, trying again\n");
			told = true;
		}
		if (channel_pause(signal_fd, RETRY_PAUSE_MS) != 0)
			return lab_fail(why, -EINTR, "interrupted");
	}
}

// Prove a secret. The token of a server on this machine is read after connecting, because the
// server writes it before it listens.
static int prove_to_server(struct client *client, struct lab_why *why) {
	const struct lab_session *session = client->session;
	const struct proof_secrets *secrets = session->secrets;
	scoped_secrets struct proof_secrets own = {.count = 0};
	int err = 0;

	if (secrets == NULL)
		err = access_begin_client(&session->access, &client->party.channel.peer, &own, why);
	if (err == 0)
		err = knock_prove(
			&client->party.channel, secrets != NULL ? secrets : &own, "the server",
			session_answer_deadline(), why
		);
	return err;
}

int session_client(const struct lab_session *session, struct lab_run *run, struct lab_why *why) {
	static struct outlier_watch watch; // static, because a hung worker may still use it
	struct client client = {
		.session = session,
		.party = {.channel.fd = -1, .plan = session->plan},
		.run = run,
		.watch = &watch,
	};
	struct lab_environment yardsticks = {.count = 0};
	const struct lab_end_facts *facts;
	struct channel_message message;
	struct lab_hello hello;
	struct timespec now;
	int err;

	clock_gettime(CLOCK_REALTIME, &now);
	run->started_ns = now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
	run->plan = session->plan;
	if (!session->quick) // before the server is busy
		yardsticks_measure(&yardsticks);
	err = server_connect(&client, why);
	if (err == 0)
		err = prove_to_server(&client, why);
	if (err == 0)
		err = session_send_hello(&client.party.channel, &run->plan, why);
	if (err == 0)
		err = channel_receive(
			&client.party.channel, session_answer_deadline(), &message, why
		);
	if (err == 0)
		err = session_read_hello(&message, &hello, why);
	if (err == 0)
		err = session_connect(session, &client.party, why);
	memcpy(run->environment, client.party.environment, sizeof(run->environment));
	for (uint32_t n = 0; n < yardsticks.count; n++)
		environment_add(
			&run->environment[0], yardsticks.items[n].key, "%s",
			yardsticks.items[n].value
		);
	if (err == 0) {
		facts = lab_end_facts(client.party.end);
		outlier_watch_open(client.watch, facts->tid, facts->cpu);
		for (uint32_t step = 0; step < run->plan.size_count && err == 0; step++)
			err = play_step(&client, step, why);
		if (!lab_end_is_playing(client.party.end))
			outlier_watch_close(client.watch);
		if (err == 0)
			err = channel_send(&client.party.channel, CHANNEL_BYE, NULL, 0, why);
	}
	memcpy(run->partial, why->text, sizeof(run->partial));
	session_end(&client.party, why);
	return err;
}
