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
	SOURCE_MAINTENANCE,
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
	SOURCE_HTTP,
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
	[SOURCE_HTTP] = "http",		[SOURCE_MAINTENANCE] = "maintenance",
};

// A copy of struct http_counters, whose fields are atomics.
struct http_numbers {
	uint64_t pages_written;
	uint64_t readers_dropped;
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
#define HTTP(field, help) FIELD(SOURCE_HTTP, struct http_numbers, field, COUNTER_COUNT, help)
#define KEEPER(field, kind, help) FIELD(SOURCE_KEEPER, struct keeper_counters, field, kind, help)
#define REACH(field, help) \
	FIELD(SOURCE_REACH, struct overlay_reach_counters, field, COUNTER_COUNT, help)

#define MAINTENANCE(field, help) \
	FIELD(SOURCE_MAINTENANCE, struct overlay_maintenance_counters, field, COUNTER_COUNT, help)

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
	MEMORY(core_bytes, "memory in use by the protocol core"),
	MEMORY(history_bytes, "memory in use by the ring of 4,096 events; part of core_bytes"),
	MEMORY(buffer_bytes, "memory in use by buffers of overlay connections"),
	MEMORY(verdict_bytes, "memory in use by evidence and verdicts"),
	MEMORY(earlier_bytes, "memory in use by events of earlier runs"),

	RAS(frames_sent, "overlay messages sent"),
	RAS(bytes_sent, "bytes of overlay messages sent"),
	RAS(frames_received, "overlay messages received"),
	RAS(bytes_received, "bytes of overlay messages received"),
	RAS(frames_malformed, "malformed overlay messages; their connections were closed"),
	RAS(frames_unknown, "overlay messages of a newer version, skipped"),
	RAS(frames_unexpected,
	      "overlay messages that are valid, but not at this time or from this sender"),
	RAS(queue_dropped, "overlay messages dropped because the queue of a link was full"),
	RAS(conns_refused, "connections refused because the limit of open ones was reached"),
	RAS(inits_refused, "handshakes refused, in either direction"),
	RAS(versions_refused, "handshakes that failed because no protocol version was common"),
	RAS(joins_served, "nodes that joined through this one"),
	RAS(joins_redirected, "nodes that were sent to another node to join"),
	RAS(syncs, "comparisons of tables with another node"),
	RAS(news_sent, "updates of the table sent"),
	RAS(news_received, "updates of the table received"),
	RAS(news_fresh, "received updates that were not known before"),
	RAS(news_foreign, "updates partly of a newer version, kept and forwarded unread"),
	RAS(news_foreign_dropped, "updates of a newer version that were dropped for lack of room"),
	RAS(suspicions, "nodes suspected"),
	RAS(suspicions_cleared, "suspicions that were refuted"),
	RAS(deaths_declared, "nodes that this node declared dead"),
	RAS(long_links_opened, "long links opened"),
	RAS(ring_links_opened, "ring links opened"),
	RAS(links_retired, "links closed because no node needed them any more"),
	RAS(links_shed, "long links closed for lack of room"),
	RAS(own_pauses, "times that this agent itself was paused"),
	FIELD(SOURCE_RAS, struct ras_counters, own_paused_ns, COUNTER_TIME,
	      "time for which this agent was paused"),
	RAS(keys_refused, "records that give a living member another key"),
	RAS(departures_forged, "news that a member left, not signed by its key"),
	RAS(names_held, "new names that had to wait for a proof"),
	RAS(memory_failures, "allocations that failed"),
	FIELD(SOURCE_RAS, struct ras_counters, news_hops_max, COUNTER_GAUGE,
	      "largest number of hops of an update that arrived here"),

	COLLECT(started, "questions to all members asked by this node"),
	COLLECT(finished, "questions of this node that were answered"),
	COLLECT(cancelled, "questions of this node that were cancelled"),
	COLLECT(by_deadline, "questions of this node that ended by their deadline"),
	COLLECT(served, "questions of other members answered"),
	COLLECT(abandoned,
	      "questions of other members dropped because the asking node left or cancelled"),
	COLLECT(requests_repeated, "questions that arrived a second time"),
	COLLECT(requests_refused, "questions refused for lack of room"),
	COLLECT(notices_forged, "notices dropped because their origin did not sign them"),
	COLLECT(notices_unproven, "notices dropped because the key of their origin is unknown"),
	COLLECT(requests_forged,
	      "questions in the name of this node, or of a future start of the asking node"),
	COLLECT(answers_late, "answers that arrived too late"),
	COLLECT(answers_foreign, "answers from nodes that were not asked"),
	COLLECT(legs_lost, "neighbours that disconnected while a question was open"),
	COLLECT(legs_timed_out, "neighbours that did not answer in time"),
	COLLECT(contributions_cut, "answers of this node that were too long"),
	COLLECT(notices_dropped, "notices of other nodes that were too many to forward"),

	{.source = SOURCE_RELAY, .name = "ended", .kind = COUNTER_COUNT,
	 .help = "messages that ended here, by reason and class",
	 .offset = offsetof(struct ras_relay_counters, ended), .width = sizeof(uint64_t),
	 .outer = &by_reason, .inner = &by_class},
	RELAY_BY(accepted, &by_class, "messages of this node accepted"),
	RELAY_BY(forwarded, &by_class, "messages of other nodes forwarded"),
	RELAY_BY(forwarded_bytes, &by_class, "bytes of forwarded messages"),
	RELAY_BY(delivered, &by_class, "messages delivered here"),
	RELAY_BY(delivered_bytes, &by_class, "bytes of messages delivered here"),
	RELAY_BY(outcomes, &by_outcome, "messages of this node by outcome"),
	RELAY(retransmitted, "messages of this node sent again"),
	RELAY(queued, "messages that had to wait for a link"),
	RELAY(detours, "messages sent over a link that leads no nearer"),
	RELAY(rerouted, "messages moved from the queue of a lost link"),
	RELAY(early, "messages that waited for a consumer"),
	RELAY(reordered, "messages that waited for an earlier one"),
	RELAY(acks_sent, "acknowledgements sent"),
	RELAY(naks_sent, "negative acknowledgements sent"),
	RELAY(replies_lost, "acknowledgements, also negative ones, without a route or room"),
	RELAY(replies_unknown, "acknowledgements, also negative ones, of unknown messages"),
	ARRAY(SOURCE_RELAY_STATS, struct ras_relay_stats, queued_bytes, COUNTER_GAUGE, &by_class,
	      "bytes that wait for a link now"),

	TRANSFER(started, "long answers that this node began to send"),
	TRANSFER(accepted, "long answers that this node began to receive"),
	ARRAY(SOURCE_TRANSFER, struct ras_transfer_counters, ended_out, COUNTER_COUNT, &by_ending,
	      "long answers sent, by outcome"),
	ARRAY(SOURCE_TRANSFER, struct ras_transfer_counters, ended_in, COUNTER_COUNT, &by_ending,
	      "long answers received, by outcome"),
	TRANSFER(bytes_sent, "bytes of long answers sent, repetitions included"),
	TRANSFER(bytes_taken, "bytes of long answers received"),
	TRANSFER(resumed, "times that a lost piece of a long answer was sent again"),
	TRANSFER(malformed, "malformed messages of long answers"),
	TRANSFER(overruns, "long answers ended because more bytes arrived than were allowed"),
	TRANSFER(lies, "long answers ended because their sizes disagreed"),

	TRANSPORT(accepted, "connections accepted"),
	TRANSPORT(accept_failures, "times that a connection could not be accepted"),
	TRANSPORT(connects, "connections opened"),
	TRANSPORT(connect_failures, "connections that could not be opened"),
	TRANSPORT(turned_away_full,
	      "connections without proof of the key, closed because there were too many"),
	TRANSPORT(turned_away_rate,
	      "connections without proof of the key, closed because one address had too many"),
	TRANSPORT(strangers_evicted,
	      "connections without proof of the key, closed to make room for newer ones"),
	TRANSPORT(closes_cut,
	      "connections closed before their last messages were sent, for lack of room"),
	TRANSPORT(proofs, "connections that proved the key"),
	TRANSPORT(proof_failures, "connections that failed to prove the key"),
	TRANSPORT(proof_timeouts, "connections that did not prove the key in time"),
	TRANSPORT(proof_unknown_key, "connections with a key that this agent does not have"),
	TRANSPORT(revoked, "connections closed because their key was removed"),
	TRANSPORT(frames_sent, "frames sealed and sent"),
	TRANSPORT(frames_received, "frames received and opened"),
	TRANSPORT(bytes_sent, "bytes sent on the wire"),
	TRANSPORT(bytes_received, "bytes received from the wire"),
	TRANSPORT(frames_forged, "frames that were altered, repeated or out of order"),
	TRANSPORT(frames_malformed, "frames of an impossible size"),
	TRANSPORT(queues_full, "times that a connection could not take more"),
	TRANSPORT(stuck, "connections closed because no byte moved"),
	TRANSPORT(descriptors_short, "times that the process had no file descriptor left"),
	FIELD(SOURCE_TRANSPORT, struct transport_counters, open, COUNTER_GAUGE,
	      "connections open and proven"),
	FIELD(SOURCE_TRANSPORT, struct transport_counters, proving, COUNTER_GAUGE,
	      "connections that have not proven the key yet"),

	LOOP(turns, COUNTER_COUNT, "iterations of the control loop"),
	LOOP(events, COUNTER_COUNT, "events that the control loop handled"),
	LOOP(timers, COUNTER_COUNT, "timers that the control loop handled"),
	LOOP(busy_ns, COUNTER_TIME, "time spent in handlers of the control loop"),
	LOOP(turn_longest_ns, COUNTER_LONGEST,
	      "longest iteration of the control loop in the last one to two minutes"),
	LOOP(timer_late_longest_ns, COUNTER_LONGEST,
	      "largest delay of a timer in the last one to two minutes"),
	LOOP(clients_full, COUNTER_COUNT, "iterations that left clients for the next iteration"),

	CLIENT(accepted, "clients accepted"),
	CLIENT(turned_away, "clients rejected because the limit of clients was reached"),
	CLIENT(accept_failures, "times that a client could not be accepted"),
	CLIENT(lines, "commands of clients"),
	CLIENT(lines_unknown, "commands that do not exist"),
	CLIENT(lines_denied, "commands that the client is not allowed to give"),
	CLIENT(lines_too_long, "clients closed because a line was too long"),
	CLIENT(reports, "status reports to clients"),
	CLIENT(asks_refused, "questions to other nodes or about the past refused by the rate limit"),
	CLIENT(remote_served, "commands answered for other nodes"),
	CLIENT(monitor_events, "events sent to monitors"),
	CLIENT(monitor_lost, "events lost because a monitor was too slow"),
	CLIENT(closed_idle, "clients closed because they sent nothing"),
	CLIENT(closed_for_room, "clients closed because other clients needed their places"),
	CLIENT(closed_slow, "clients closed because they did not read"),
	FIELD(SOURCE_CLIENT, struct client_counters, clients, COUNTER_GAUGE, "clients connected"),

	STATE(events_written, "events written to the journal"),
	STATE(events_lost, "events lost because the disk was too slow"),
	STATE(write_failures, "times that a file of the state directory was not written"),

	REACH(asked, "nodes asked to connect to the address that this node advertises"),
	REACH(reached, "asked nodes that connected"),
	REACH(not_reached, "asked nodes that could not connect"),
	REACH(unanswered, "asked nodes that did not answer"),
	REACH(tries, "connections tried because another node asked for it"),
	REACH(tries_failed,
	      "tries that did not reach the asking node, also those that another agent answered"),
	REACH(tries_turned_off,
	      "requests to try a connection that were rejected because of their number"),
	MAINTENANCE(orders_malformed, "malformed maintenance orders of other members, which were refused"),

	SPAWN(runs, "programs requested"),
	SPAWN(refused, "programs refused for lack of room or of the spawn helper"),
	SPAWN(timed_out, "programs ended at their deadline"),
	SPAWN(failed, "programs that could not be started"),
	SPAWN(lost, "programs lost because the spawn helper ended"),
	SPAWN(stuck, "programs that survive SIGKILL: they hang in the kernel"),
	SPAWN(helper_lost,
	      "times that the spawn helper ended; only a restart of the agent starts it again"),

	CHECKS(checks, COUNTER_GAUGE, "local checks of this node"),
	CHECKS(warning, COUNTER_GAUGE, "local checks that warn"),
	CHECKS(critical, COUNTER_GAUGE, "local checks that failed"),
	CHECKS(unknown, COUNTER_GAUGE, "local checks without a result"),
	CHECKS(stuck_now, COUNTER_GAUGE, "local checks whose program hangs in the kernel"),
	CHECKS(runs, COUNTER_COUNT, "runs of programs of checks"),
	ARRAY(SOURCE_CHECKS, struct checks_counters, results, COUNTER_COUNT, &by_level,
	      "ended runs of checks, by result"),
	CHECKS(timed_out, COUNTER_COUNT, "runs of checks ended at their deadline"),
	CHECKS(not_started, COUNTER_COUNT, "runs of checks that could not be started"),
	CHECKS(skipped, COUNTER_COUNT,
	      "runs of checks skipped for lack of room or of the spawn helper"),
	CHECKS(stuck, COUNTER_COUNT, "runs of checks that survive SIGKILL"),
	CHECKS(statements, COUNTER_COUNT, "statements of this node about itself"),

	KEEPER(calls, COUNTER_COUNT, "calls that may hang, made outside of the control loop"),
	KEEPER(stuck, COUNTER_COUNT, "calls that may hang and exceeded their time limit"),
	KEEPER(refused, COUNTER_COUNT,
	      "calls that may hang and were refused because too many waited"),
	KEEPER(longest_ns, COUNTER_LONGEST, "longest call that may hang and returned"),

	WEBHOOK(told, "runs of the webhook program that succeeded"),
	WEBHOOK(failed, "runs of the webhook program that failed, hung or did not start"),
	WEBHOOK(dropped, "verdict changes dropped because the queue of the webhook was full"),

	HTTP(pages_written, "pages written for readers of HTTP, which share them"),
	HTTP(readers_dropped,
	     "readers of HTTP dropped because they did not read and others needed the room"),

	JOB(processes, COUNTER_GAUGE, "live processes of jobs that are registered here"),
	JOB(ranks, COUNTER_GAUGE, "ranks of communicators that registered processes hold"),
	JOB(kept, COUNTER_GAUGE, "processes that have ended and are still shown"),
	JOB(unshown, COUNTER_GAUGE,
	    "ranks here that the last answer to COMMS left out: their user has too many"),
	JOB(placed, COUNTER_GAUGE,
	      "ranks whose node is known, in communicators with a rank on this node"),
	JOB(waiting, COUNTER_GAUGE, "local communicators whose ranks were notified that they wait"),
	JOB(stuck, COUNTER_GAUGE,
	      "local communicators whose ranks were notified that they are stuck"),
	JOB(stalls, COUNTER_COUNT, "times that a local communicator was found stuck"),
	JOB(accepted, COUNTER_COUNT, "processes that were registered"),
	JOB(refused, COUNTER_COUNT, "processes whose registration was refused"),
	JOB(exits, COUNTER_COUNT, "processes that ended while they were registered"),
	JOB(gone, COUNTER_COUNT,
	      "ranks of local communicators whose process ended or whose node went down"),
	JOB(notices, COUNTER_COUNT,
	      "notices to other agents about ranks that ended and about the nodes of ranks"),
	JOB(reports, COUNTER_COUNT, "reports of a rank about another rank"),
	JOB(packets_bad, COUNTER_COUNT, "connections of jobs closed because of a malformed packet"),
	JOB(pages_bad, COUNTER_COUNT, "reads of counter pages that failed"),

	FABRIC(devices, COUNTER_GAUGE, "RDMA devices that this node measures with"),
	FABRIC(devices_up, COUNTER_GAUGE, "RDMA devices that are open and have an active port"),
	FABRIC(devices_opened, COUNTER_COUNT, "times a device was opened"),
	FABRIC(open_failures, COUNTER_COUNT, "times that a device could not be opened"),
	FABRIC(device_events, COUNTER_COUNT, "events of ports, pairs and devices from drivers"),
	FABRIC(driver_calls, COUNTER_COUNT, "calls into drivers"),
	FABRIC(driver_stuck, COUNTER_COUNT, "calls into drivers that exceeded their time limit"),
	FABRIC(pairs, COUNTER_GAUGE, "queue pairs held"),
	FABRIC(paths, COUNTER_GAUGE, "paths that workers know"),
	FABRIC(paths_published, COUNTER_COUNT, "versions of the path table published"),
	FABRIC(paths_refused, COUNTER_COUNT,
	      "times that the path table was not published because readers held old versions"),
	FABRIC(records_waited, COUNTER_COUNT,
	      "requests that waited because the ring of a worker was full"),
	FABRIC(messages_lost, COUNTER_COUNT, "handshake and rail messages that could not be sent"),
	FABRIC(rails_malformed, COUNTER_COUNT, "malformed rail messages"),
	FABRIC(left_behind, COUNTER_COUNT, "objects that a driver did not release"),

	ARRAY(SOURCE_PROBE, struct fabric_probe_counters, sent, COUNTER_COUNT, &by_size,
	      "reads of pulses sent, by size"),
	ARRAY(SOURCE_PROBE, struct fabric_probe_counters, lost, COUNTER_COUNT, &by_size,
	      "reads of pulses without an answer, by size"),
	ARRAY(SOURCE_PROBE, struct fabric_probe_counters, written, COUNTER_COUNT, &by_size,
	      "writes sent, by size"),
	ARRAY(SOURCE_PROBE, struct fabric_probe_counters, writes_lost, COUNTER_COUNT, &by_size,
	      "writes that were not acknowledged, by size"),
	PROBE(writes_refused, COUNTER_COUNT,
	      "peers that refused a write which they had offered to accept"),
	PROBE(gpu_sent, COUNTER_COUNT,
	      "reads of pages in GPU memory; no other counter includes them"),
	PROBE(gpu_lost, COUNTER_COUNT, "reads of GPU memory without an answer"),
	PROBE(gpu_refused, COUNTER_COUNT,
	      "reads of GPU memory that the peer's device could not do"),
	PROBE(gpu_wrong, COUNTER_COUNT, "reads of GPU memory that returned wrong data"),
	PROBE(answered, COUNTER_COUNT, "probes answered"),
	PROBE(ended, COUNTER_COUNT, "probes that ended with their pair for another reason"),
	PROBE(without_path, COUNTER_COUNT, "planned probes whose path no longer existed"),
	PROBE(skipped, COUNTER_COUNT, "planned probes skipped because a worker was late or busy"),
	PROBE(delayed, COUNTER_COUNT, "probes delayed by the budget"),
	PROBE(skipped_budget, COUNTER_COUNT, "probes skipped because of the budget"),
	PROBE(urgent, COUNTER_COUNT, "probes sent at once to confirm an observation"),
	PROBE(packets, COUNTER_COUNT, "packets of planned probes, both directions"),
	PROBE(bytes, COUNTER_COUNT, "bytes of planned probes, with headers, both directions"),
	PROBE(visits, COUNTER_COUNT, "visits of nodes that are not neighbours"),
	PROBE(visits_unpaired, COUNTER_COUNT, "visits without a pair in time"),
	PROBE(rounds, COUNTER_COUNT, "complete rounds of visits"),
	PROBE(outcomes_lost, COUNTER_COUNT, "probe outcomes that were not consumed in time"),
	PROBE(observations, COUNTER_COUNT, "observations of paths reported"),
	PROBE(doubts, COUNTER_COUNT,
	      "suspicions reported to the overlay because of a stalled pulse"),
	PROBE(excluded, COUNTER_COUNT,
	      "reads whose latency was not judged, because a thread waited for a processor"),
	PROBE(pauses, COUNTER_COUNT, "times that probes noticed a pause of this agent"),
	PROBE(baselines_taken, COUNTER_COUNT, "paths that started with an earlier baseline"),
	PROBE(baselines_outdated, COUNTER_COUNT,
	      "paths whose earlier baseline was rejected: too old, or the device changed"),
	PROBE(path_files_unreadable, COUNTER_COUNT, "unreadable files of path baselines, ignored"),
	PROBE(neighbours, COUNTER_GAUGE, "paths that are probed steadily"),
	PROBE(targets, COUNTER_GAUGE, "paths that are probed one after another"),
	PROBE(interval_ns, COUNTER_LONGEST, "time between two probes of a neighbour"),
	PROBE(coverage_ns, COUNTER_LONGEST, "time in which all other nodes are visited once"),

	PAIRING(begun, "handshakes begun"),
	PAIRING(answered, "handshakes begun because the peer had begun one"),
	PAIRING(succeeded, "handshakes that ended in a pair"),
	ARRAY(SOURCE_PAIRING, struct pairing_counters, failed, COUNTER_COUNT, &by_failure,
	      "handshakes and pairs that failed, by reason"),
	PAIRING(sent, "handshake messages sent"),
	PAIRING(resent, "handshake messages sent again for lack of an answer"),
	PAIRING(send_failed, "handshake messages that the relay did not accept"),
	PAIRING(undelivered, "handshake messages that the relay did not deliver"),
	PAIRING(received, "handshake messages received"),
	PAIRING(malformed, "malformed handshake messages"),
	PAIRING(forged,
	      "handshake messages whose start number is not the one that the relay reports"),
	PAIRING(stale, "handshake messages about a pair that has ended"),
	PAIRING(refused, "handshakes of peers that were refused"),
	PAIRING(repaired, "final handshake messages sent again because the first was lost"),
	PAIRING(replaced, "pairs replaced by a newer pair of the peer"),
	PAIRING(deferred, "handshakes delayed by the rate limit"),
	PAIRING(evicted, "pairs closed for another pair, or for being idle"),
	PAIRING(renewed, "pairs replaced to use another route through the fabric"),
	PAIRING(stuck, "calls into drivers, and drains, that did not end in time"),
	PAIRING(late, "answers of drivers and lanes for which no request waited"),
	PAIRING(waiters, "requests for a pair"),
	PAIRING(waiters_failed, "requests for a pair that failed"),
	FIELD(SOURCE_PAIRING, struct pairing_counters, pending, COUNTER_GAUGE,
	      "pairs whose handshake is under way"),
	FIELD(SOURCE_PAIRING, struct pairing_counters, ready, COUNTER_GAUGE,
	      "pairs that are ready"),
	FIELD(SOURCE_PAIRING, struct pairing_counters, retired, COUNTER_GAUGE,
	      "pairs being closed"),

	LANE(polls, "polls for completions"),
	LANE(completions, "completions"),
	LANE(completion_events, "completions that ended a sleep"),
	LANE(stale, "completions of pairs that do not exist any more"),
	LANE(chains, "chains of work requests posted"),
	LANE(posted, "work requests posted"),
	LANE(signalled, "work requests posted with a completion of their own"),
	LANE(inlined, "work requests posted with inline data"),
	LANE(full, "postings tried again because the device had no room"),
	LANE(post_failures, "postings that the device refused"),
	LANE(poll_failures, "polls that the device refused"),
	LANE(submitted, "operations requested"),
	ARRAY(SOURCE_LANE, struct lane_counters, ended, COUNTER_COUNT, &by_op_end,
	      "operations ended, by outcome"),
	LANE(failed, "pairs that failed"),
	LANE(drained, "pairs that were drained"),
	LANE(stuck, "pairs that a device did not flush in time"),

	WORKER(turns, COUNTER_COUNT, "iterations of the polling threads"),
	WORKER(requests, COUNTER_COUNT, "requests that workers consumed"),
	WORKER(events, COUNTER_COUNT, "events that workers reported"),
	WORKER(events_lost, COUNTER_COUNT, "events of workers lost for lack of room"),
	WORKER(busy_ns, COUNTER_TIME, "time of polling steps that found work"),
	WORKER(spin_ns, COUNTER_TIME, "time of polling steps that found no work"),
	WORKER(yield_ns, COUNTER_TIME, "time yielded to other threads between polling steps"),
	WORKER(blocked_ns, COUNTER_TIME, "time that polling threads slept"),
	WORKER(yields, COUNTER_COUNT, "times that a polling thread yielded the processor"),
	WORKER(blocks, COUNTER_COUNT, "times that a polling thread blocked until an event"),
	WORKER(sleeps, COUNTER_COUNT, "times that a polling thread slept for a fixed time"),
	WORKER(wakes_rung, COUNTER_COUNT, "blocks ended by a doorbell"),
	WORKER(wakes_timed, COUNTER_COUNT, "blocks ended by their time"),
	WORKER(wakes_polled, COUNTER_COUNT, "blocks ended by a completion"),
	WORKER(waits, COUNTER_COUNT, "waits with operations under way"),
	WORKER(paid_ns, COUNTER_TIME, "cost of waits with operations under way"),
	WORKER(optimum_ns, COUNTER_TIME, "cost of the same waits with perfect foresight"),
	WORKER(clock_jumps, COUNTER_COUNT, "TSC clocks replaced by CLOCK_MONOTONIC"),
	WORKER(clock_off_ns, COUNTER_LONGEST,
	      "largest difference found between a TSC clock and CLOCK_MONOTONIC"),

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
	struct http_numbers http = {0};
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
		[SOURCE_MAINTENANCE] = sources->maintenance,
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
		[SOURCE_HTTP] = &http,
	};
	uint32_t used = 0;

	ras_relay_stats(sources->ras, &relay_stats);
	memory_use_read(sources, &memory);
	if (sources->checks != NULL)
		checks_counters(sources->checks, &checks);
	if (sources->http != NULL) {
		http.pages_written =
			atomic_load_explicit(&sources->http->pages_written, memory_order_relaxed);
		http.readers_dropped =
			atomic_load_explicit(&sources->http->readers_dropped, memory_order_relaxed);
	}
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
