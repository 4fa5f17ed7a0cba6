// SPDX-License-Identifier: BSD-3-Clause
// Describes a finding in one sentence.
#include "survey.h"

#include <lib/show.h>

#include <jobs/judge.h>
#include <jobs/report.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define NODE_BYTES 80
#define CHAIN_DETAILED_MAX 3 // communicators of a cycle whose operations and processes are named
#define NS_PER_MS UINT64_C(1000000)

struct sentence {
	const struct jobs_snapshot *look;
	const struct ras_merged_comm *comm;
	const struct jobs_finding *finding;
	const struct jobs_name_resolver *words;
	char *text;
	uint32_t used;
};

static void __attribute__((format(printf, 2, 3)))
append_format(struct sentence *sentence, const char *format, ...) {
	uint32_t left = JOBS_SENTENCE_BYTES - sentence->used;
	va_list arguments;
	int size;

	va_start(arguments, format);
	size = vsnprintf(sentence->text + sentence->used, left, format, arguments);
	va_end(arguments);
	if (size > 0)
		sentence->used += (uint32_t)size < left ? (uint32_t)size : left - 1;
}

static const struct ras_merged_rank *merged_rank(const struct sentence *sentence, uint32_t place) {
	return &sentence->comm->ranks[place];
}

static void append_rank(struct sentence *sentence, const struct ras_merged_rank *rank) {
	char node[NODE_BYTES];

	sentence->words->node_name(sentence->words->ctx, rank->node, node, sizeof(node));
	append_format(sentence, "rank %u (pid %u on %s", rank->rank.rank, rank->rank.pid, node);
	if (rank->rank.nvml_device >= 0)
		append_format(sentence, ", GPU %d", rank->rank.nvml_device);
	append_format(sentence, ")");
}

static void append_duration(struct sentence *sentence, uint64_t ms) {
	char span[SHOW_BYTES];

	show_duration(ms * NS_PER_MS, span);
	append_format(sentence, "%s", span);
}

static void
append_signature(struct sentence *sentence, const struct ras_comm_signature *signature) {
	append_format(sentence, "%s", jobs_operation_name(signature->kind, signature->datatype));
	if (signature->count > 0)
		append_format(
			sentence, " of %llu %s", (unsigned long long)signature->count,
			jobs_datatype_name(signature->datatype)
		);
	if (signature->root != RAS_COMM_ROOT_NONE)
		append_format(sentence, " with root %d", signature->root);
}

// "operation 51 (AllReduce of 1024 float32)"
static void
append_operation_of(struct sentence *sentence, const struct ras_merged_comm *comm, uint64_t seq) {
	const struct ras_comm_signature *signature = NULL;

	for (uint32_t n = 0; signature == NULL && n < comm->rank_count; n++)
		signature = ras_comm_signature_of(comm, &comm->ranks[n], seq);
	append_format(sentence, "operation %llu", (unsigned long long)seq);
	if (signature == NULL)
		return;
	append_format(sentence, " (");
	append_signature(sentence, signature);
	append_format(sentence, ")");
}

static void append_operation(struct sentence *sentence) {
	append_operation_of(sentence, sentence->comm, sentence->finding->seq);
}

static uint32_t count_named(const struct jobs_finding *finding) {
	uint32_t named = 0;

	while (named < finding->late_count && named < JOBS_NAMED_MAX &&
	       finding->late[named] != JOBS_NOBODY)
		named++;
	return named;
}

// "rank 3 (...)", "ranks 1, 2, 5 and 12 more"
static void append_late_ranks(struct sentence *sentence) {
	const struct jobs_finding *finding = sentence->finding;
	uint32_t named = count_named(finding);

	if (finding->late_count == 1) {
		append_rank(sentence, merged_rank(sentence, finding->late[0]));
		return;
	}
	append_format(sentence, "ranks");
	for (uint32_t n = 0; n < named; n++)
		append_format(
			sentence, "%s%u", n > 0 ? ", " : " ",
			merged_rank(sentence, finding->late[n])->rank.rank
		);
	if (finding->late_count > named)
		append_format(sentence, " and %u more", finding->late_count - named);
}

static void append_wait_time(struct sentence *sentence) {
	const struct jobs_finding *finding = sentence->finding;

	append_format(
		sentence, "%u rank%s waited for ", finding->waiting,
		finding->waiting == 1 ? " has" : "s have"
	);
	append_duration(sentence, finding->waited_ms);
}

static void append_exit(struct sentence *sentence, const struct ras_comm_rank *rank) {
	switch (rank->exit_cause) {
	case JOBS_EXIT_STATUS:
		append_format(sentence, ", exited with status %d", rank->exit_value);
		break;
	case JOBS_EXIT_SIGNAL:
		append_format(sentence, ", killed by signal %d", rank->exit_value);
		break;
	case JOBS_EXIT_MEMORY:
		append_format(sentence, ", killed for lack of memory");
		break;
	case JOBS_EXIT_ABORT:
		append_format(
			sentence, ", after it called MPI_Abort with code %d", rank->exit_value
		);
		break;
	default:
		break;
	}
}

static void append_exit_time(struct sentence *sentence, const struct ras_comm_rank *rank) {
	if ((rank->flags & RAS_RANK_EXITED) == 0)
		return;
	append_format(sentence, " ");
	append_duration(sentence, rank->exited_ms);
	append_format(
		sentence, (rank->flags & RAS_RANK_END_SEEN_LATE) != 0 ? " ago or earlier" : " ago"
	);
}

static bool ranks_ended_alike(const struct ras_comm_rank *a, const struct ras_comm_rank *b) {
	return a->exit_cause == b->exit_cause && a->exit_value == b->exit_value;
}

// Append the named dead ranks that ended like late[first], unless an earlier one did. Returns how
// many.
static uint32_t
append_dead_group(struct sentence *sentence, const uint32_t *late, uint32_t named, uint32_t first) {
	const struct ras_comm_rank *rank = &merged_rank(sentence, late[first])->rank;
	uint32_t count = 0;

	for (uint32_t n = 0; n < named; n++) {
		if (!ranks_ended_alike(rank, &merged_rank(sentence, late[n])->rank))
			continue;
		if (n < first)
			return 0;
		count++;
	}
	if (first > 0)
		append_format(sentence, "; ");
	if (count == 1)
		append_rank(sentence, merged_rank(sentence, late[first]));
	else
		append_format(sentence, "ranks %u", rank->rank);
	for (uint32_t n = first + 1; n < named; n++)
		if (ranks_ended_alike(rank, &merged_rank(sentence, late[n])->rank))
			append_format(sentence, ", %u", merged_rank(sentence, late[n])->rank.rank);
	append_format(sentence, count == 1 ? " is gone" : " are gone");
	append_exit(sentence, rank);
	if (first == 0)
		append_exit_time(sentence, rank);
	return count;
}

static void describe_dead(struct sentence *sentence) {
	const struct jobs_finding *finding = sentence->finding;
	uint32_t named = count_named(finding), in_first = 0;

	if (named == 0)
		append_format(
			sentence, "%u rank%s of dead nodes", finding->late_count,
			finding->late_count == 1 ? " is" : "s are"
		);
	else
		in_first = append_dead_group(sentence, finding->late, named, 0);
	if (in_first > 0 && finding->late_count > 1 && finding->death_times_are_known &&
	    merged_rank(sentence, finding->late[0])->rank.exit_cause != JOBS_EXIT_ABORT) {
		if (in_first > 1)
			append_format(
				sentence, " (rank %u, the first of them)",
				merged_rank(sentence, finding->late[0])->rank.rank
			);
		else
			append_format(sentence, ", the first of them");
	}
	for (uint32_t n = 1; n < named; n++)
		(void)append_dead_group(sentence, finding->late, named, n);
	if (named > 0 && finding->late_count > named)
		append_format(sentence, "; %u more are gone", finding->late_count - named);
	if (finding->seq == 0 || finding->waiting == 0)
		return;
	append_format(sentence, "; in ");
	append_operation(sentence);
	append_format(sentence, " ");
	append_wait_time(sentence);
}

// The process waits for its device, whether its thread polls or sleeps.
static void append_device_wait(struct sentence *sentence) {
	const struct jobs_finding *finding = sentence->finding;

	if (finding->via == JOBS_NOBODY && finding->device_waits != JOBS_NOBODY)
		append_format(
			sentence, ", and its device waits in communicator %016llx",
			(unsigned long long)sentence->look->comms[finding->device_waits].id.hash
		);
}

// Append what the process of the first late rank does, if there are several.
static void append_first_doing(struct sentence *sentence) {
	const struct ras_comm_rank *rank = &merged_rank(sentence, sentence->finding->late[0])->rank;
	char doing[JOBS_DOING_BYTES];

	jobs_describe_doing(&rank->doing, doing);
	if (doing[0] != '\0' && !survey_process_is_halted(rank->process_state))
		append_format(sentence, "; rank %u: %s", rank->rank, doing);
}

// Append the state of the only late rank's process.
static void append_process_state(struct sentence *sentence) {
	const struct jobs_finding *finding = sentence->finding;
	const struct ras_comm_rank *rank = &merged_rank(sentence, finding->late[0])->rank;

	char doing[JOBS_DOING_BYTES];

	if ((rank->knows & RAS_RANK_KNOWS_PROCESS) == 0) {
		append_format(sentence, "; the state of its process is unknown");
		return;
	}
	jobs_describe_doing(&rank->doing, doing);
	if (survey_process_is_halted(rank->process_state) ||
	    rank->process_state == JOBS_PROCESS_TRACED)
		doing[0] = '\0';
	// A rank that waits in a call polls, so its processor time says nothing.
	if (doing[0] != '\0' && (rank->doing.call.number != 0 || rank->doing.busy_s != 0 ||
				 (rank->worked_ms < WORK_MS_MIN && !finding->serves))) {
		append_format(sentence, "; %s", doing);
		append_device_wait(sentence);
		return;
	}
	append_format(sentence, "; its process is %s", jobs_process_name(rank->process_state));
	append_format(sentence, ", and has used ");
	if (rank->worked_ms > 0)
		append_duration(sentence, rank->worked_ms);
	append_format(
		sentence, rank->worked_ms > 0 ? " of processor time in " : "no processor time in "
	);
	append_duration(sentence, JOBS_WORK_WINDOW_NS / NS_PER_MS);
	if (finding->serves)
		append_format(sentence, ": the rank may have nothing to send");
	else if (finding->busy)
		append_format(sentence, ": it is busy");
	append_device_wait(sentence);
}

// Return how the late ranks left: the common way of those that are named, or "left".
static const char *left_way(const struct sentence *sentence) {
	const struct jobs_finding *finding = sentence->finding;
	const char *way = NULL;

	for (uint32_t n = 0; n < finding->late_count && n < JOBS_NAMED_MAX; n++) {
		const char *own = jobs_rank_end(&merged_rank(sentence, finding->late[n])->rank);

		if (way != NULL && own != NULL && strcmp(way, own) != 0)
			return "left";
		way = own != NULL ? own : way;
	}
	return way == NULL ? "left" : strcmp(way, "closed") == 0 ? "called tocsin_job_close" : way;
}

static void describe_late(struct sentence *sentence, const char *what) {
	const struct jobs_finding *finding = sentence->finding;
	bool all_left = finding->left == finding->late_count;

	append_late_ranks(sentence);
	if (all_left)
		append_format(
			sentence, "%s %s, and", finding->late_count == 1 ? " has" : " have",
			left_way(sentence)
		);
	append_format(sentence, " %s %s ", finding->late_count == 1 ? "has" : "have", what);
	append_operation(sentence);
	append_format(sentence, ", in which ");
	append_wait_time(sentence);
	if (finding->left > 0 && !all_left)
		append_format(sentence, "; %u of them have left", finding->left);
	if (finding->late_count == 1 && !all_left)
		append_process_state(sentence);
	else if (finding->left == 0)
		append_first_doing(sentence);
	if (finding->blocked)
		append_format(sentence, ", and waits for a rank that itself waits");
	if (finding->via != JOBS_NOBODY)
		append_format(
			sentence, "; a late rank itself waits in communicator %016llx",
			(unsigned long long)sentence->look->comms[finding->via].id.hash
		);
}

static void describe_not_waiting(struct sentence *sentence) {
	const struct jobs_finding *finding = sentence->finding;

	append_late_ranks(sentence);
	append_format(sentence, " %s posted ", finding->late_count == 1 ? "has" : "have");
	append_operation(sentence);
	append_format(
		sentence, " and %s not wait for it, in which ",
		finding->late_count == 1 ? "does" : "do"
	);
	append_wait_time(sentence);
	if (finding->late_count == 1)
		append_process_state(sentence);
	else
		append_first_doing(sentence);
}

static void describe_none_started(struct sentence *sentence) {
	const struct jobs_finding *finding = sentence->finding;

	append_format(sentence, "all ranks have launched ");
	append_operation(sentence);
	append_format(sentence, ", and no device has started it for ");
	append_duration(sentence, finding->waited_ms);
	append_format(sentence, "; ");
	if (finding->late_count > 0) {
		append_rank(sentence, merged_rank(sentence, finding->late[0]));
		append_format(
			sentence, " has finished the fewest earlier operations: %llu %s unfinished",
			(unsigned long long)finding->open_count,
			finding->open_count == 1 ? "is" : "are"
		);
		append_device_wait(sentence);
	} else if (finding->device_waits != JOBS_NOBODY) {
		append_format(sentence, "the devices wait");
		append_format(
			sentence, " in communicator %016llx",
			(unsigned long long)sentence->look->comms[finding->device_waits].id.hash
		);
	} else {
		append_format(
			sentence, "no rank has finished fewer earlier operations than others"
		);
	}
}

static void describe_stopped(struct sentence *sentence) {
	const struct jobs_finding *finding = sentence->finding;
	bool is_frozen =
		merged_rank(sentence, finding->late[0])->rank.process_state == JOBS_PROCESS_FROZEN;

	append_late_ranks(sentence);
	append_format(sentence, finding->late_count == 1 ? " is" : " are");
	append_format(sentence, is_frozen ? " frozen by its cgroup inside " : " stopped inside ");
	append_operation(sentence);
	append_format(sentence, ", in which ");
	append_wait_time(sentence);
}

// Describe a stall in an operation that all ranks have started. `what` has not happened yet.
static void describe_transport(struct sentence *sentence, const char *what) {
	const struct jobs_pair *pair = sentence->finding->pair;

	append_format(sentence, "all ranks have started ");
	append_operation(sentence);
	if (sentence->finding->completed > 0)
		append_format(
			sentence, ", %u of %u %s completed it", sentence->finding->completed,
			sentence->comm->size, sentence->finding->completed == 1 ? "has" : "have"
		);
	append_format(sentence, ", and %s for ", what);
	append_duration(sentence, sentence->finding->waited_ms);
	if (pair != NULL)
		append_format(sentence, "; %s", pair->words);
	else
		append_format(sentence, "; no path between its nodes is known to be bad");
}

static void describe_mismatch(struct sentence *sentence) {
	const struct jobs_mismatch *mismatch = &sentence->finding->mismatch;
	const struct ras_merged_rank *most = merged_rank(sentence, mismatch->most);
	const struct ras_merged_rank *other = merged_rank(sentence, mismatch->other);
	uint32_t differing = mismatch->other_count - mismatch->alike_count;

	if (mismatch->by_counts) {
		append_format(
			sentence, "operation %llu or an earlier one differs: rank %u runs ",
			(unsigned long long)mismatch->seq, most->rank.rank
		);
		append_signature(
			sentence, ras_comm_signature_of(sentence->comm, most, mismatch->seq)
		);
		append_format(sentence, ", which ");
		append_rank(sentence, other);
		append_format(
			sentence, " has run fewer times, in %llu operations in all",
			(unsigned long long)other->rank.launched
		);
		return;
	}
	append_format(sentence, "operation %llu differs: ", (unsigned long long)mismatch->seq);
	append_rank(sentence, other);
	if (mismatch->alike_count > 1)
		append_format(sentence, " and %u more", mismatch->alike_count - 1);
	append_format(sentence, mismatch->alike_count > 1 ? " run " : " runs ");
	append_signature(sentence, ras_comm_signature_of(sentence->comm, other, mismatch->seq));
	append_format(sentence, ", rank %u ", most->rank.rank);
	append_signature(sentence, ras_comm_signature_of(sentence->comm, most, mismatch->seq));
	if (differing > 0)
		append_format(
			sentence, ", and %u more differ%s from both", differing,
			differing == 1 ? "s" : ""
		);
}

// Append a communicator and the rank that it waits for. Ranks have other numbers in other
// communicators, so a short chain also names the process, and the operation. The sentence of a long
// chain would be cut.
static void append_wait_for(struct sentence *sentence, const struct jobs_wait_for *wait) {
	const struct ras_merged_comm *comm = &sentence->look->comms[wait->comm];
	const struct ras_merged_rank *rank = &comm->ranks[wait->place];
	bool is_short = sentence->finding->chain_count <= CHAIN_DETAILED_MAX;

	if (is_short && wait->seq != 0) {
		append_operation_of(sentence, comm, wait->seq);
		append_format(sentence, " of ");
	}
	append_format(sentence, "communicator %016llx for ", (unsigned long long)comm->id.hash);
	if (is_short)
		append_rank(sentence, rank);
	else
		append_format(sentence, "rank %u", rank->rank.rank);
}

static void describe_ordering(struct sentence *sentence) {
	const struct jobs_finding *finding = sentence->finding;

	append_format(sentence, "ranks wait for each other: ");
	for (uint32_t n = 0; n < finding->chain_count; n++) {
		append_format(sentence, n > 0 ? ", which waits in " : "in ");
		append_wait_for(sentence, &finding->chain[n]);
	}
	append_format(
		sentence,
		finding->chain_count < JOBS_CHAIN_MAX ? ", which waits in the first" : ", ..."
	);
}

static void describe_calls(struct sentence *sentence) {
	const struct jobs_finding *finding = sentence->finding;
	char doing[JOBS_DOING_BYTES];

	append_format(sentence, "ranks wait for each other: ");
	for (uint32_t n = 0; n < finding->late_count && n < JOBS_NAMED_MAX; n++) {
		jobs_describe_doing(&merged_rank(sentence, finding->late[n])->rank.doing, doing);
		append_format(sentence, n > 0 ? ", " : "");
		append_rank(sentence, merged_rank(sentence, finding->late[n]));
		append_format(sentence, " %s", doing + strlen("it "));
	}
	append_format(sentence, finding->late_count > JOBS_NAMED_MAX ? ", ... for " : ", for ");
	append_duration(sentence, finding->waited_ms);
}

static void describe_straggler(struct sentence *sentence) {
	const struct jobs_straggler *straggler = &sentence->finding->straggler;
	char late[SHOW_BYTES];

	show_duration(straggler->late_us * 1000, late);
	append_rank(sentence, merged_rank(sentence, straggler->place));
	append_format(
		sentence,
		straggler->seen_by_median ? " waited least in %u of %u samples"
					  : " came last in %u of %u operations",
		straggler->last, straggler->of
	);
	append_format(sentence, ", %s behind the median rank (median)", late);
}

// "rank 3", "ranks 1, 2, 5 and 12 more"
static void append_absent_ranks(struct sentence *sentence) {
	const struct jobs_finding *finding = sentence->finding;
	uint32_t named = 0, place = 0, before = sentence->used;

	append_format(sentence, finding->absent == 1 ? "rank" : "ranks");
	for (uint32_t rank = 0; rank < sentence->comm->size && named < JOBS_NAMED_MAX; rank++) {
		while (place < sentence->comm->rank_count &&
		       merged_rank(sentence, place)->rank.rank < rank)
			place++;
		if (place < sentence->comm->rank_count &&
		    merged_rank(sentence, place)->rank.rank == rank)
			continue;
		append_format(sentence, "%s%u", named++ > 0 ? ", " : " ", rank);
	}
	// Ranks of an earlier attempt count as absent, and are in the list.
	if (named == 0) {
		sentence->used = before;
		append_format(
			sentence, "%u rank%s", finding->absent, finding->absent == 1 ? "" : "s"
		);
	} else if (finding->absent > named) {
		append_format(sentence, " and %u more", finding->absent - named);
	}
}

static void describe_unknown(struct sentence *sentence) {
	const struct jobs_finding *finding = sentence->finding;

	if (finding->absent > 0) {
		append_absent_ranks(sentence);
		append_format(
			sentence, " %s held by no agent that answered; in ",
			finding->absent == 1 ? "is" : "are"
		);
		append_operation(sentence);
		append_format(sentence, " ");
		append_wait_time(sentence);
		return;
	}
	append_format(sentence, "all ranks have launched ");
	append_operation(sentence);
	append_format(sentence, ", and none has made progress for ");
	append_duration(sentence, finding->waited_ms);
	append_format(
		sentence, (finding->knows & RAS_RANK_KNOWS_STARTED) == 0
				  ? "; they do not report what has started"
				  : "; they do not report what has completed"
	);
	if (finding->pair != NULL)
		append_format(sentence, "; %s", finding->pair->words);
}

static void describe_no_cause(struct sentence *sentence) {
	const struct jobs_finding *finding = sentence->finding;

	switch (finding->grade) {
	case JOBS_ENDED:
		append_format(sentence, "the communicator has ended");
		break;
	case JOBS_MOVING:
		append_format(sentence, "its ranks make progress");
		break;
	case JOBS_QUIET:
		append_format(sentence, "no rank has made progress for ");
		append_duration(sentence, finding->waited_ms);
		if (finding->posted > 0)
			append_format(
				sentence,
				"; %u rank%s posted operations, and no rank waits for one",
				finding->posted, finding->posted == 1 ? " has" : "s have"
			);
		else
			append_format(
				sentence,
				(finding->knows & RAS_RANK_KNOWS_COMPLETED) != 0
					? ", and no operation is open"
					: "; the ranks do not report whether an operation is open"
			);
		break;
	case JOBS_WAITING:
	case JOBS_STUCK:
		break;
	}
	if (finding->mismatch.seq == 0)
		return;
	append_format(sentence, "; ");
	describe_mismatch(sentence);
}

void jobs_describe_finding(
	const struct jobs_snapshot *look,
	uint32_t comm,
	const struct jobs_finding *finding,
	const struct jobs_name_resolver *words,
	char ret_text[static JOBS_SENTENCE_BYTES]
) {
	struct sentence sentence = {
		.look = look,
		.comm = &look->comms[comm],
		.finding = finding,
		.words = words,
		.text = ret_text,
	};

	ret_text[0] = '\0';
	switch (finding->cause) {
	case JOBS_CAUSE_NONE:
	case JOBS_CAUSE_COUNT:
		describe_no_cause(&sentence);
		break;
	case JOBS_CAUSE_DEAD_MEMBER:
		describe_dead(&sentence);
		break;
	case JOBS_CAUSE_STOPPED_MEMBER:
		describe_stopped(&sentence);
		break;
	case JOBS_CAUSE_MISSING_ENTER:
		describe_late(&sentence, "not launched");
		break;
	case JOBS_CAUSE_DEVICE_BEHIND:
		if (finding->none_started)
			describe_none_started(&sentence);
		else
			describe_late(&sentence, "launched, and its device has not started");
		break;
	case JOBS_CAUSE_TRANSPORT:
		describe_transport(&sentence, "data has not arrived");
		break;
	case JOBS_CAUSE_MISMATCH:
		describe_mismatch(&sentence);
		break;
	case JOBS_CAUSE_ORDERING:
		describe_ordering(&sentence);
		break;
	case JOBS_CAUSE_SYMMETRIC:
		describe_transport(&sentence, "none has completed it");
		break;
	case JOBS_CAUSE_MISSING_WAIT:
		describe_not_waiting(&sentence);
		break;
	case JOBS_CAUSE_CALLS:
		describe_calls(&sentence);
		break;
	case JOBS_CAUSE_STRAGGLER:
		describe_straggler(&sentence);
		break;
	case JOBS_CAUSE_UNKNOWN:
		describe_unknown(&sentence);
		break;
	}
}
