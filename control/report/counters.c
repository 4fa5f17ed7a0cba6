// SPDX-License-Identifier: BSD-3-Clause
// The table of all counters: name, help, labels, and where each number is read.
#include <control/checks.h>
#include <control/client.h>
#include <control/counters.h>
#include <control/fabric.h>
#include <control/jobhost.h>
#include <control/keeper.h>
#include <control/loop.h>
#include <control/memory_use.h>
#include <control/overlay.h>
#include <control/spawn.h>
#include <control/state.h>
#include <control/transport.h>
#include <control/webhook.h>
#include <lib/must.h>
#include <ras/collective.h>
#include <ras/ras.h>
#include <ras/relay.h>
#include <ras/transfer.h>

#include <stdio.h>
#include <string.h>

// The structs that counters are copied from.
enum source {
	SOURCE_RAS,
	SOURCE_COLLECT,
	SOURCE_RELAY,
	SOURCE_RELAY_STATS,
	SOURCE_TRANSFER,
	SOURCE_TRANSPORT,
	SOURCE_LOOP,
	SOURCE_CLIENT,
	SOURCE_STATE,
	SOURCE_REACH,
	SOURCE_SPAWN,
	SOURCE_CHECKS,
	SOURCE_KEEPER,
	SOURCE_WEBHOOK,
	SOURCE_FABRIC,
	SOURCE_PAIRING,
	SOURCE_LANE,
	SOURCE_WORKER,
	SOURCE_SOFT,
	SOURCE_PROBE,
	SOURCE_MEMORY,
	SOURCE_JOB,
	SOURCE_COUNT,
};

static const char *const groups[SOURCE_COUNT] = {
	[SOURCE_FABRIC] = "rdma",	[SOURCE_PAIRING] = "pairing",
	[SOURCE_LANE] = "lane",		[SOURCE_WORKER] = "worker",
	[SOURCE_RAS] = "overlay",	[SOURCE_COLLECT] = "collective",
	[SOURCE_RELAY] = "relay",	[SOURCE_RELAY_STATS] = "relay",
	[SOURCE_TRANSFER] = "transfer", [SOURCE_TRANSPORT] = "transport",
	[SOURCE_LOOP] = "loop",		[SOURCE_CLIENT] = "client",
	[SOURCE_STATE] = "journal",	[SOURCE_REACH] = "reach",
	[SOURCE_CHECKS] = "check",	[SOURCE_SPAWN] = "spawn",
	[SOURCE_KEEPER] = "keeper",	[SOURCE_SOFT] = "soft",
	[SOURCE_PROBE] = "probe",	[SOURCE_WEBHOOK] = "webhook",
	[SOURCE_MEMORY] = "memory",	[SOURCE_JOB] = "job",
};

// One dimension of an array of counters: its label, and the label's values.
struct axis {
	const char *label;
	uint32_t count;
	const char *(*name)(uint32_t n);
};

static const char *reason_name(uint32_t n) {
	return ras_relay_reason_name((enum ras_relay_reason)n);
}

static const char *class_name(uint32_t n) {
	return ras_relay_class_name((enum ras_relay_class)n);
}

static const char *outcome_name(uint32_t n) {
	return ras_relay_outcome_name((enum ras_relay_outcome)n);
}

static const char *ending_name(uint32_t n) {
	return ras_transfer_outcome_name((enum ras_transfer_outcome)n);
}

static const struct axis by_reason = {"reason", RAS_RELAY_REASON_COUNT, reason_name};
static const struct axis by_class = {"class", RAS_RELAY_CLASS_COUNT, class_name};
static const struct axis by_outcome = {"outcome", RAS_RELAY_OUTCOME_COUNT, outcome_name};
static const struct axis by_ending = {"outcome", RAS_TRANSFER_OUTCOME_COUNT, ending_name};

static const char *failure_name(uint32_t n) {
	return pairing_reason_name((enum pairing_reason)n);
}

static const char *op_end_name(uint32_t n) {
	return op_outcome_name((enum op_outcome)n);
}

static const struct axis by_failure = {"reason", PAIRING_REASON_COUNT, failure_name};
static const char *size_name(uint32_t n) {
	static const char *const names[PATH_SIZES] = {"8", "1024", "mtu", "65536"};

	return names[n];
}

static const struct axis by_size = {"bytes", PATH_SIZES, size_name};
static const struct axis by_op_end = {"outcome", OP_OUTCOME_COUNT, op_end_name};

static const char *level_name(uint32_t n) {
	return check_level_name((enum check_level)n);
}

static const struct axis by_level = {"result", CHECK_LEVEL_COUNT, level_name};

struct spec {
	enum source source;
	const char *name;
	const char *help;
	enum counter_kind kind;
	size_t offset;
	size_t width; // size of one number in bytes
	const struct axis *outer, *inner;
};

#define FIELD(source_, type, field, kind_, help_)                                       \
	{                                                                               \
		.source = (source_), .name = #field, .help = (help_), .kind = (kind_),  \
		.offset = offsetof(type, field), .width = sizeof(((type *)NULL)->field) \
	}
#define ARRAY(source_, type, field, kind_, outer_, help_)                                   \
	{                                                                                   \
		.source = (source_), .name = #field, .help = (help_), .kind = (kind_),      \
		.offset = offsetof(type, field), .width = sizeof(((type *)NULL)->field[0]), \
		.outer = (outer_)                                                           \
	}
#define RAS(field, help) FIELD(SOURCE_RAS, struct ras_counters, field, COUNTER_COUNT, help)
#define COLLECT(field, help) \
	FIELD(SOURCE_COLLECT, struct ras_collect_counters, field, COUNTER_COUNT, help)
#define RELAY(field, help) \
	FIELD(SOURCE_RELAY, struct ras_relay_counters, field, COUNTER_COUNT, help)
#define RELAY_BY(field, axis, help) \
	ARRAY(SOURCE_RELAY, struct ras_relay_counters, field, COUNTER_COUNT, axis, help)
#define TRANSFER(field, help) \
	FIELD(SOURCE_TRANSFER, struct ras_transfer_counters, field, COUNTER_COUNT, help)
#define TRANSPORT(field, help) \
	FIELD(SOURCE_TRANSPORT, struct transport_counters, field, COUNTER_COUNT, help)
#define LOOP(field, kind, help) FIELD(SOURCE_LOOP, struct loop_counters, field, kind, help)
#define CLIENT(field, help) FIELD(SOURCE_CLIENT, struct client_counters, field, COUNTER_COUNT, help)
#define STATE(field, help) FIELD(SOURCE_STATE, struct state_counters, field, COUNTER_COUNT, help)

#define SPAWN(field, help) FIELD(SOURCE_SPAWN, struct spawn_counters, field, COUNTER_COUNT, help)
#define CHECKS(field, kind, help) FIELD(SOURCE_CHECKS, struct checks_counters, field, kind, help)
#define JOB(field, kind, help) FIELD(SOURCE_JOB, struct jobhost_counters, field, kind, help)
#define WEBHOOK(field, help) \
	FIELD(SOURCE_WEBHOOK, struct webhook_counters, field, COUNTER_COUNT, help)
#define KEEPER(field, kind, help) FIELD(SOURCE_KEEPER, struct keeper_counters, field, kind, help)
#define REACH(field, help) \
	FIELD(SOURCE_REACH, struct overlay_reach_counters, field, COUNTER_COUNT, help)

#define FABRIC(field, kind, help) FIELD(SOURCE_FABRIC, struct fabric_counters, field, kind, help)
#define PAIRING(field, help) \
	FIELD(SOURCE_PAIRING, struct pairing_counters, field, COUNTER_COUNT, help)
#define LANE(field, help) FIELD(SOURCE_LANE, struct lane_counters, field, COUNTER_COUNT, help)
#define WORKER(field, kind, help) FIELD(SOURCE_WORKER, struct worker_counters, field, kind, help)
#define PROBE(field, kind, help) \
	FIELD(SOURCE_PROBE, struct fabric_probe_counters, field, kind, help)
#define MEMORY(field, help) FIELD(SOURCE_MEMORY, struct memory_use, field, COUNTER_GAUGE, help)
#define SOFT(field, help) FIELD(SOURCE_SOFT, struct soft_counters, field, COUNTER_COUNT, help),

// clang-format off
static const struct spec specs[] = {
	MEMORY(heap_used_bytes, "memory that malloc() has handed out, touched or not"),
	MEMORY(heap_free_bytes, "memory that malloc() holds and has not handed out"),
	MEMORY(core_bytes, "of what is used, the protocol core's"),
	MEMORY(history_bytes, "of these, events; they fill a ring of 4,096"),
	MEMORY(buffer_bytes, "of what is used, buffers of connections of the overlay"),
	MEMORY(verdict_bytes, "of what is used, evidence and verdicts"),
	MEMORY(earlier_bytes, "of what is used, events of earlier runs"),

	RAS(frames_sent, "messages of the overlay sent"),
	RAS(bytes_sent, "bytes in them"),
	RAS(frames_received, "messages of the overlay received"),
	RAS(bytes_received, "bytes in them"),
	RAS(frames_malformed, "messages that no agent sends; their connections were closed"),
	RAS(frames_unknown, "messages of a newer version, skipped"),
	RAS(frames_unexpected, "messages that were sound, but not now or not from there"),
	RAS(queue_dropped, "messages dropped because the queue of a link was full"),
	RAS(conns_refused, "connections refused because as many are open as may"),
	RAS(inits_refused, "handshakes refused, in either direction"),
	RAS(versions_refused, "handshakes that ended for want of a common protocol version"),
	RAS(joins_served, "nodes that joined through this one"),
	RAS(joins_redirected, "nodes that were sent to another one to join"),
	RAS(syncs, "comparisons of tables with another node"),
	RAS(news_sent, "changes of the table sent"),
	RAS(news_received, "changes of the table received"),
	RAS(news_fresh, "of these, changes not known before"),
	RAS(news_foreign, "changes partly of a newer version, kept and passed on unread"),
	RAS(news_foreign_dropped, "of that kind, but not kept, or no longer, for want of room"),
	RAS(suspicions, "nodes suspected"),
	RAS(suspicions_cleared, "suspicions that were disproved"),
	RAS(deaths_declared, "nodes declared dead by this one"),
	RAS(long_links_opened, "long links opened"),
	RAS(ring_links_opened, "links of the ring opened"),
	RAS(links_retired, "links that nobody needed any more"),
	RAS(links_shed, "long links given up for want of room"),
	RAS(own_pauses, "times this agent was itself stopped"),
	FIELD(SOURCE_RAS, struct ras_counters, own_paused_ns, COUNTER_TIME, "for how long"),
	RAS(memory_failures, "times memory was refused"),
	FIELD(SOURCE_RAS, struct ras_counters, news_hops_max, COUNTER_GAUGE,
	      "the longest way that a change took to here"),

	COLLECT(started, "questions to everybody asked here"),
	COLLECT(finished, "of these, answered"),
	COLLECT(cancelled, "of these, cancelled"),
	COLLECT(by_deadline, "of these, ended by their deadline"),
	COLLECT(served, "questions of others answered"),
	COLLECT(abandoned, "questions of others given up, since the asker went away"),
	COLLECT(requests_repeated, "questions that came a second time"),
	COLLECT(requests_refused, "questions refused, for want of room"),
	COLLECT(requests_forged, "questions in our own name, or from the future"),
	COLLECT(answers_late, "answers that came too late"),
	COLLECT(answers_foreign, "answers from who was not asked"),
	COLLECT(legs_lost, "neighbours that went away while asked"),
	COLLECT(legs_timed_out, "neighbours that did not answer in time"),
	COLLECT(contributions_cut, "own answers that were too long"),

	{.source = SOURCE_RELAY, .name = "ended", .kind = COUNTER_COUNT,
	 .help = "messages that ended here, by reason",
	 .offset = offsetof(struct ras_relay_counters, ended), .width = sizeof(uint64_t),
	 .outer = &by_reason, .inner = &by_class},
	RELAY_BY(accepted, &by_class, "own messages accepted"),
	RELAY_BY(forwarded, &by_class, "messages of others passed on"),
	RELAY_BY(forwarded_bytes, &by_class, "bytes in them"),
	RELAY_BY(delivered, &by_class, "messages delivered here"),
	RELAY_BY(delivered_bytes, &by_class, "bytes in them"),
	RELAY_BY(outcomes, &by_outcome, "own messages by how they ended"),
	RELAY(retransmitted, "own messages sent again"),
	RELAY(queued, "messages that had to wait for a link"),
	RELAY(detours, "messages sent over a link that leads no nearer"),
	RELAY(rerouted, "messages taken from the queue of a lost link"),
	RELAY(early, "messages that waited for a consumer"),
	RELAY(reordered, "messages that waited for an earlier one"),
	RELAY(acks_sent, "acknowledgements sent"),
	RELAY(naks_sent, "refusals sent"),
	RELAY(replies_lost, "acknowledgements and refusals without a way"),
	RELAY(replies_unknown, "acknowledgements and refusals of nothing"),
	ARRAY(SOURCE_RELAY_STATS, struct ras_relay_stats, queued_bytes, COUNTER_GAUGE, &by_class,
	      "bytes that wait now"),

	TRANSFER(started, "long answers begun"),
	TRANSFER(accepted, "long answers that came"),
	ARRAY(SOURCE_TRANSFER, struct ras_transfer_counters, ended_out, COUNTER_COUNT, &by_ending,
	      "long answers sent, by how they ended"),
	ARRAY(SOURCE_TRANSFER, struct ras_transfer_counters, ended_in, COUNTER_COUNT, &by_ending,
	      "long answers received, by how they ended"),
	TRANSFER(bytes_sent, "bytes of them sent, repetitions included"),
	TRANSFER(bytes_taken, "bytes of them taken"),
	TRANSFER(resumed, "times a lost piece was sent again"),
	TRANSFER(malformed, "pieces that no agent sends"),
	TRANSFER(overruns, "long answers ended since more came than was allowed"),
	TRANSFER(lies, "long answers ended since their sizes disagreed"),

	TRANSPORT(accepted, "connections accepted"),
	TRANSPORT(accept_failures, "times a connection could not be accepted"),
	TRANSPORT(connects, "connections opened"),
	TRANSPORT(connect_failures, "of these, failed"),
	TRANSPORT(turned_away_full, "strangers turned away, as many are proving as may"),
	TRANSPORT(turned_away_rate, "strangers turned away, too many from one address"),
	TRANSPORT(strangers_evicted, "strangers given up for newer ones"),
	TRANSPORT(closes_cut, "farewells cut short for want of room"),
	TRANSPORT(proofs, "connections whose key was proven"),
	TRANSPORT(proof_failures, "connections whose key was not proven"),
	TRANSPORT(proof_timeouts, "connections that did not prove the key in time"),
	TRANSPORT(proof_unknown_key, "connections with a key that is not ours"),
	TRANSPORT(revoked, "connections ended, since their key is no longer ours"),
	TRANSPORT(frames_sent, "frames sealed and sent"),
	TRANSPORT(frames_received, "frames received and opened"),
	TRANSPORT(bytes_sent, "bytes on the wire"),
	TRANSPORT(bytes_received, "bytes from the wire"),
	TRANSPORT(frames_forged, "frames altered, repeated or out of order"),
	TRANSPORT(frames_malformed, "frames of a size that no frame has"),
	TRANSPORT(queues_full, "times a connection took no more"),
	TRANSPORT(stuck, "connections ended since nothing moved"),
	TRANSPORT(descriptors_short, "times the process had no descriptor left"),
	FIELD(SOURCE_TRANSPORT, struct transport_counters, open, COUNTER_GAUGE,
	      "connections open and proven"),
	FIELD(SOURCE_TRANSPORT, struct transport_counters, proving, COUNTER_GAUGE,
	      "strangers proving the key"),

	LOOP(turns, COUNTER_COUNT, "turns of the control loop"),
	LOOP(events, COUNTER_COUNT, "events handled"),
	LOOP(timers, COUNTER_COUNT, "timers handled"),
	LOOP(busy_ns, COUNTER_TIME, "time spent in handlers"),
	LOOP(turn_longest_ns, COUNTER_LONGEST, "the longest turn of the last minute or two"),
	LOOP(timer_late_longest_ns, COUNTER_LONGEST,
	     "the latest that a timer was in the last minute or two"),
	LOOP(clients_full, COUNTER_COUNT, "turns that left clients for the next one"),

	CLIENT(accepted, "clients accepted"),
	CLIENT(turned_away, "clients turned away, as many are connected as may"),
	CLIENT(accept_failures, "times a client could not be accepted"),
	CLIENT(lines, "commands"),
	CLIENT(lines_unknown, "commands that do not exist"),
	CLIENT(lines_denied, "commands that the client may not give"),
	CLIENT(lines_too_long, "clients closed for a line without end"),
	CLIENT(reports, "status reports"),
	CLIENT(asks_refused, "questions to other nodes refused, for their rate"),
	CLIENT(remote_served, "commands answered for other nodes"),
	CLIENT(monitor_events, "events told to monitors"),
	CLIENT(monitor_lost, "events that a monitor was too slow for"),
	CLIENT(closed_idle, "clients closed, since they said nothing"),
	CLIENT(closed_for_room, "clients closed, since others waited for their places"),
	CLIENT(closed_slow, "clients closed, since they did not read"),
	FIELD(SOURCE_CLIENT, struct client_counters, clients, COUNTER_GAUGE, "clients connected"),

	STATE(events_written, "events written to the journal"),
	STATE(events_lost, "events lost, since the disk was too slow"),
	STATE(write_failures, "times a file of the state directory was not written"),

	REACH(asked, "others asked to connect to the address that this node tells"),
	REACH(reached, "of these, who did"),
	REACH(not_reached, "of these, who could not"),
	REACH(unanswered, "of these, who did not tell"),
	REACH(tries, "connections tried since another node asked for it"),
	REACH(tries_failed,
	      "tries that did not reach the asking node, also those that another agent answered"),
	REACH(tries_turned_off, "requests for one that were turned off, for their number"),

	SPAWN(runs, "programs asked for"),
	SPAWN(refused, "of these, not taken, for want of room or helper"),
	SPAWN(timed_out, "of these, ended at their deadline"),
	SPAWN(failed, "of these, not to be started"),
	SPAWN(lost, "of these, lost with the helper"),
	SPAWN(stuck, "of these, not ended by SIGKILL: they hang in the kernel"),
	SPAWN(helper_lost, "times the helper process was lost, which only a restart mends"),

	CHECKS(checks, COUNTER_GAUGE, "local checks of this node"),
	CHECKS(warning, COUNTER_GAUGE, "of these, those that warn"),
	CHECKS(critical, COUNTER_GAUGE, "of these, those that failed"),
	CHECKS(unknown, COUNTER_GAUGE, "of these, those that could not tell"),
	CHECKS(stuck_now, COUNTER_GAUGE, "of these, those whose program hangs in the kernel"),
	CHECKS(runs, COUNTER_COUNT, "programs of checks to be run"),
	ARRAY(SOURCE_CHECKS, struct checks_counters, results, COUNTER_COUNT, &by_level,
	      "of these, ended, by what they said"),
	CHECKS(timed_out, COUNTER_COUNT, "of these, ended at their deadline"),
	CHECKS(not_started, COUNTER_COUNT, "of these, not to be started"),
	CHECKS(skipped, COUNTER_COUNT, "of these, not run for want of room or helper"),
	CHECKS(stuck, COUNTER_COUNT, "of these, not ended by SIGKILL"),
	CHECKS(statements, COUNTER_COUNT, "statements of this node on itself"),

	KEEPER(calls, COUNTER_COUNT, "calls that may hang, made beside the loop"),
	KEEPER(stuck, COUNTER_COUNT, "of these, longer than 2 s"),
	KEEPER(refused, COUNTER_COUNT, "of these, not taken, as many were waiting as may"),
	KEEPER(longest_ns, COUNTER_LONGEST, "the longest of them that came back"),

	WEBHOOK(told, "changes of verdicts that the webhook took"),
	WEBHOOK(failed, "of these, with which it failed, hung or was not to be started"),
	WEBHOOK(dropped, "of these, for which there was no room while it ran"),

	JOB(processes, COUNTER_GAUGE, "processes of jobs that are registered here and live"),
	JOB(ranks, COUNTER_GAUGE, "ranks of communicators that they hold"),
	JOB(kept, COUNTER_GAUGE, "processes that have ended and are still shown"),
	JOB(placed, COUNTER_GAUGE, "ranks of communicators here, on all nodes, whose node is known"),
	JOB(waiting, COUNTER_GAUGE, "communicators here whose ranks were told that they wait"),
	JOB(stuck, COUNTER_GAUGE, "communicators here whose ranks were told that they are stuck"),
	JOB(stalls, COUNTER_COUNT, "times that a communicator here was found stuck"),
	JOB(accepted, COUNTER_COUNT, "processes that were registered"),
	JOB(refused, COUNTER_COUNT, "processes that were not, with a reason"),
	JOB(exits, COUNTER_COUNT, "processes that ended while they were registered"),
	JOB(gone, COUNTER_COUNT, "ranks that others were told of as gone"),
	JOB(notices, COUNTER_COUNT, "notices to other agents, of ranks that are gone and where ranks are"),
	JOB(reports, COUNTER_COUNT, "reports of a rank on another one"),
	JOB(packets_bad, COUNTER_COUNT, "connections that were ended for a packet without sense"),
	JOB(pages_bad, COUNTER_COUNT, "looks at counts that could not be read"),

	FABRIC(devices, COUNTER_GAUGE, "RDMA devices that this node measures with"),
	FABRIC(devices_up, COUNTER_GAUGE, "of these, open and with an active port"),
	FABRIC(devices_opened, COUNTER_COUNT, "times a device was opened"),
	FABRIC(open_failures, COUNTER_COUNT, "times it could not be"),
	FABRIC(device_events, COUNTER_COUNT, "what drivers told of ports, pairs and devices"),
	FABRIC(driver_calls, COUNTER_COUNT, "calls into drivers"),
	FABRIC(driver_stuck, COUNTER_COUNT, "of these, longer than 2 s"),
	FABRIC(pairs, COUNTER_GAUGE, "queue pairs that are held"),
	FABRIC(paths, COUNTER_GAUGE, "paths that workers know"),
	FABRIC(paths_published, COUNTER_COUNT, "versions of the paths published"),
	FABRIC(paths_refused, COUNTER_COUNT, "times readers held too many of them"),
	FABRIC(records_waited, COUNTER_COUNT, "requests that a worker had no room for at once"),
	FABRIC(messages_lost, COUNTER_COUNT,
	       "messages of handshakes and about rails that could not be sent"),
	FABRIC(rails_malformed, COUNTER_COUNT, "messages about rails that nobody sends"),
	FABRIC(left_behind, COUNTER_COUNT, "things that a driver did not give back"),

	ARRAY(SOURCE_PROBE, struct fabric_probe_counters, sent, COUNTER_COUNT, &by_size,
	      "reads of pulses sent, by size"),
	ARRAY(SOURCE_PROBE, struct fabric_probe_counters, lost, COUNTER_COUNT, &by_size,
	      "of these, without an answer"),
	ARRAY(SOURCE_PROBE, struct fabric_probe_counters, written, COUNTER_COUNT, &by_size,
	      "writes that were sent, by size"),
	ARRAY(SOURCE_PROBE, struct fabric_probe_counters, writes_lost, COUNTER_COUNT, &by_size,
	      "writes that were not acknowledged, by size"),
	PROBE(writes_refused, COUNTER_COUNT, "peers that refused a write they had offered to take"),
	PROBE(gpu_sent, COUNTER_COUNT, "reads of pages in GPU memory, which are in none of the others"),
	PROBE(gpu_lost, COUNTER_COUNT, "of these, without an answer"),
	PROBE(gpu_refused, COUNTER_COUNT, "of these, which the peer's device could not do"),
	PROBE(gpu_wrong, COUNTER_COUNT, "of these, answered with something else than is there"),
	PROBE(answered, COUNTER_COUNT, "of all probes, answered"),
	PROBE(ended, COUNTER_COUNT, "of all probes, ended with their pair for another reason"),
	PROBE(without_path, COUNTER_COUNT, "planned probes whose path was gone"),
	PROBE(skipped, COUNTER_COUNT, "planned probes left out, since a worker was late or busy"),
	PROBE(delayed, COUNTER_COUNT, "probes sent later than they were due, for the budget"),
	PROBE(skipped_budget, COUNTER_COUNT, "probes not sent at all, for the budget"),
	PROBE(urgent, COUNTER_COUNT, "probes sent at once, to confirm something"),
	PROBE(packets, COUNTER_COUNT, "packets of probes as planned, both directions"),
	PROBE(bytes, COUNTER_COUNT, "bytes in them, headers too"),
	PROBE(visits, COUNTER_COUNT, "turns of nodes that are no neighbours"),
	PROBE(visits_unpaired, COUNTER_COUNT, "of these, without a pair in time"),
	PROBE(rounds, COUNTER_COUNT, "times all of them had their turn"),
	PROBE(outcomes_lost, COUNTER_COUNT, "outcomes that were not taken in time"),
	PROBE(observations, COUNTER_COUNT, "times it was told how a path is seen"),
	PROBE(doubts, COUNTER_COUNT, "peers reported, since their pulse stands"),
	PROBE(pauses, COUNTER_COUNT, "stops of our own that probes noticed"),
	PROBE(baselines_taken, COUNTER_COUNT, "paths that began with what had been learnt of them before"),
	PROBE(baselines_outdated, COUNTER_COUNT, "paths that did not, since it was too old or of another device"),
	PROBE(path_files_unreadable, COUNTER_COUNT, "times the file of what was learnt of paths was ignored"),
	PROBE(neighbours, COUNTER_GAUGE, "paths that are probed steadily"),
	PROBE(targets, COUNTER_GAUGE, "paths that are probed in turn"),
	PROBE(interval_ns, COUNTER_LONGEST, "time between two probes of a neighbour"),
	PROBE(coverage_ns, COUNTER_LONGEST, "time in which all others have their turn"),

	PAIRING(begun, "handshakes begun"),
	PAIRING(answered, "of these, because the peer had begun"),
	PAIRING(succeeded, "handshakes that ended in a pair"),
	ARRAY(SOURCE_PAIRING, struct pairing_counters, failed, COUNTER_COUNT, &by_failure,
	      "handshakes and pairs that failed, by reason"),
	PAIRING(sent, "messages of handshakes sent"),
	PAIRING(resent, "of these, since nothing was heard"),
	PAIRING(send_failed, "messages that the relay did not take"),
	PAIRING(undelivered, "messages that the relay did not deliver"),
	PAIRING(received, "messages of handshakes received"),
	PAIRING(malformed, "of these, not to be read"),
	PAIRING(forged, "of these, in the name of another start of their sender"),
	PAIRING(stale, "of these, about a pair that is over"),
	PAIRING(refused, "handshakes of peers that were refused"),
	PAIRING(repaired, "times a peer had not heard that we are ready"),
	PAIRING(replaced, "pairs that gave way to a newer one of the peer"),
	PAIRING(deferred, "handshakes that waited for the rate"),
	PAIRING(evicted, "pairs closed for another, or for being idle"),
	PAIRING(renewed, "pairs made anew, on another way through the fabric"),
	PAIRING(stuck, "calls into drivers, and drains, that did not come back in time"),
	PAIRING(late, "answers of drivers and lanes that nobody had asked for"),
	PAIRING(waiters, "requests for a pair"),
	PAIRING(waiters_failed, "of these, without one"),
	FIELD(SOURCE_PAIRING, struct pairing_counters, pending, COUNTER_GAUGE, "pairs in the making"),
	FIELD(SOURCE_PAIRING, struct pairing_counters, ready, COUNTER_GAUGE, "pairs that are ready"),
	FIELD(SOURCE_PAIRING, struct pairing_counters, retired, COUNTER_GAUGE,
	      "pairs being taken down"),

	LANE(polls, "times completions were polled for"),
	LANE(completions, "completions"),
	LANE(completion_events, "completions that ended a sleep"),
	LANE(stale, "completions of no pair that there is"),
	LANE(chains, "times work was posted"),
	LANE(posted, "work requests posted"),
	LANE(signalled, "of these, with a completion of their own"),
	LANE(inlined, "of these, with their bytes in them"),
	LANE(full, "postings that the device had no room for, tried again"),
	LANE(post_failures, "postings that the device refused"),
	LANE(poll_failures, "polls that the device refused"),
	LANE(submitted, "operations asked for"),
	ARRAY(SOURCE_LANE, struct lane_counters, ended, COUNTER_COUNT, &by_op_end,
	      "operations by how they ended"),
	LANE(failed, "pairs that failed"),
	LANE(drained, "pairs that were drained"),
	LANE(stuck, "pairs that a device did not flush in time"),

	WORKER(turns, COUNTER_COUNT, "turns of polling threads"),
	WORKER(requests, COUNTER_COUNT, "requests that they took"),
	WORKER(events, COUNTER_COUNT, "events that they told"),
	WORKER(events_lost, COUNTER_COUNT, "events that there was no room for"),
	WORKER(busy_ns, COUNTER_TIME, "time of steps that found something"),
	WORKER(spin_ns, COUNTER_TIME, "time of steps that found nothing"),
	WORKER(yield_ns, COUNTER_TIME, "time given to others between steps"),
	WORKER(blocked_ns, COUNTER_TIME, "time asleep"),
	WORKER(yields, COUNTER_COUNT, "times the processor was given to others"),
	WORKER(blocks, COUNTER_COUNT, "times they blocked"),
	WORKER(sleeps, COUNTER_COUNT, "times they slept whatever would happen"),
	WORKER(wakes_rung, COUNTER_COUNT, "blocks that a doorbell ended"),
	WORKER(wakes_timed, COUNTER_COUNT, "blocks that their time ended"),
	WORKER(wakes_polled, COUNTER_COUNT, "blocks that a completion ended"),
	WORKER(waits, COUNTER_COUNT, "waits with operations under way"),
	WORKER(paid_ns, COUNTER_TIME, "what those waits cost"),
	WORKER(optimum_ns, COUNTER_TIME, "what they would have cost with foresight"),
	WORKER(clock_jumps, COUNTER_COUNT, "TSC clocks given up for CLOCK_MONOTONIC"),
	WORKER(clock_off_ns, COUNTER_LONGEST, "the most that a TSC clock was found off it"),

	SOFT_COUNTERS(SOFT)
};
// clang-format on
#define SPEC_COUNT (sizeof(specs) / sizeof(specs[0]))

static uint32_t spec_elements(const struct spec *spec) {
	return (spec->outer != NULL ? spec->outer->count : 1) *
	       (spec->inner != NULL ? spec->inner->count : 1);
}

uint32_t counters_count(void) {
	uint32_t count = 0;

	for (size_t n = 0; n < SPEC_COUNT; n++)
		count += spec_elements(&specs[n]);
	must(count <= COUNTERS_MAX);
	return count;
}

void counter_at(uint32_t n, struct counter *ret_counter) {
	const struct spec *spec = specs;

	must(n < counters_count());
	while (n >= spec_elements(spec))
		n -= spec_elements(spec++);
	*ret_counter = (struct counter){
		.group = groups[spec->source],
		.name = spec->name,
		.help = spec->help,
		.kind = spec->kind,
	};
	if (spec->outer == NULL)
		return;
	if (spec->inner == NULL)
		snprintf(
			ret_counter->labels, COUNTER_LABELS_BYTES, "%s=\"%s\"", spec->outer->label,
			spec->outer->name(n)
		);
	else
		snprintf(
			ret_counter->labels, COUNTER_LABELS_BYTES, "%s=\"%s\",%s=\"%s\"",
			spec->outer->label, spec->outer->name(n / spec->inner->count),
			spec->inner->label, spec->inner->name(n % spec->inner->count)
		);
}

static uint64_t number_at(const void *base, const struct spec *spec, uint32_t element) {
	const char *at = (const char *)base + spec->offset + element * spec->width;
	uint64_t wide = 0;
	uint32_t narrow;

	if (spec->width == sizeof(wide)) {
		memcpy(&wide, at, sizeof(wide));
		return wide;
	}
	must(spec->width == sizeof(narrow));
	memcpy(&narrow, at, sizeof(narrow));
	return narrow;
}

void counters_read(const struct counter_sources *sources, uint64_t *values) {
	struct ras_relay_stats relay_stats = {0};
	struct state_counters state = {0};
	struct fabric_numbers fabric = {0};
	struct checks_counters checks = {0};
	struct memory_use memory;
	const void *bases[SOURCE_COUNT] = {
		[SOURCE_RAS] = ras_counters(sources->ras),
		[SOURCE_COLLECT] = ras_collect_counters(sources->ras),
		[SOURCE_RELAY] = ras_relay_counters(sources->ras),
		[SOURCE_RELAY_STATS] = &relay_stats,
		[SOURCE_TRANSFER] = ras_transfer_counters(sources->ras),
		[SOURCE_TRANSPORT] = sources->transport,
		[SOURCE_LOOP] = sources->loop,
		[SOURCE_CLIENT] = sources->clients,
		[SOURCE_STATE] = &state,
		[SOURCE_REACH] = sources->reach,
		[SOURCE_SPAWN] = sources->spawn,
		[SOURCE_CHECKS] = &checks,
		[SOURCE_KEEPER] = sources->keepers,
		[SOURCE_WEBHOOK] = sources->webhook,
		[SOURCE_FABRIC] = &fabric.counters,
		[SOURCE_PAIRING] = &fabric.pairing,
		[SOURCE_LANE] = &fabric.lanes,
		[SOURCE_WORKER] = &fabric.workers,
		[SOURCE_SOFT] = &fabric.soft,
		[SOURCE_PROBE] = &fabric.probes,
		[SOURCE_MEMORY] = &memory,
		[SOURCE_JOB] = sources->jobs,
	};
	uint32_t used = 0;

	ras_relay_stats(sources->ras, &relay_stats);
	memory_use_read(sources, &memory);
	if (sources->checks != NULL)
		checks_counters(sources->checks, &checks);
	if (sources->fabric != NULL)
		sources->fabric_calls->numbers(sources->fabric, &fabric);
	if (sources->state != NULL)
		state_counters(sources->state, &state);
	for (size_t n = 0; n < SPEC_COUNT; n++) {
		const void *base = bases[specs[n].source];

		for (uint32_t element = 0; element < spec_elements(&specs[n]); element++)
			values[used++] = base == NULL ? 0 : number_at(base, &specs[n], element);
	}
}
