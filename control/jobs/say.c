// SPDX-License-Identifier: BSD-3-Clause
// Describes a finding in one sentence.
#include <lib/show.h>

#include <jobs/judge.h>
#include <jobs/report.h>
#include <stdarg.h>
#include <stdio.h>

#define NODE_BYTES 80
#define NS_PER_MS UINT64_C(1000000)

struct sentence {
	const struct jobs_look *look;
	const struct ras_merged_comm *comm;
	const struct jobs_finding *finding;
	const struct jobs_words *words;
	char *text;
	uint32_t used;
};

static void __attribute__((format(printf, 2, 3)))
add_words(struct sentence *sentence, const char *format, ...) {
	uint32_t left = JOBS_SENTENCE_BYTES - sentence->used;
	va_list arguments;
	int size;

	va_start(arguments, format);
	size = vsnprintf(sentence->text + sentence->used, left, format, arguments);
	va_end(arguments);
	if (size > 0)
		sentence->used += (uint32_t)size < left ? (uint32_t)size : left - 1;
}

static const struct ras_merged_rank *rank_at(const struct sentence *sentence, uint32_t place) {
	return &sentence->comm->ranks[place];
}

static void add_rank(struct sentence *sentence, uint32_t place) {
	const struct ras_merged_rank *rank = rank_at(sentence, place);
	char node[NODE_BYTES];

	sentence->words->node_name(sentence->words->ctx, rank->node, node, sizeof(node));
	add_words(sentence, "rank %u (pid %u on %s", rank->rank.rank, rank->rank.pid, node);
	if (rank->rank.nvml_device >= 0)
		add_words(sentence, ", GPU %d", rank->rank.nvml_device);
	add_words(sentence, ")");
}

static void add_span(struct sentence *sentence, uint64_t ms) {
	char span[SHOW_BYTES];

	show_duration(ms * NS_PER_MS, span);
	add_words(sentence, "%s", span);
}

static void add_signature(struct sentence *sentence, const struct ras_comm_signature *signature) {
	add_words(sentence, "%s", jobs_kind_name(signature->kind));
	if (signature->count > 0)
		add_words(
			sentence, " of %llu %s", (unsigned long long)signature->count,
			signature->datatype == JOBS_DATATYPE_UNKNOWN
				? "elements"
				: jobs_datatype_name(signature->datatype)
		);
	if (signature->root != RAS_COMM_ROOT_NONE)
		add_words(sentence, " with root %d", signature->root);
}

// "operation 51 (AllReduce of 1024 float32)"
static void add_operation(struct sentence *sentence) {
	uint64_t seq = sentence->finding->seq;
	const struct ras_comm_signature *signature = NULL;

	for (uint32_t n = 0; signature == NULL && n < sentence->comm->rank_count; n++)
		signature = ras_comm_signature_of(sentence->comm, rank_at(sentence, n), seq);
	add_words(sentence, "operation %llu", (unsigned long long)seq);
	if (signature == NULL)
		return;
	add_words(sentence, " (");
	add_signature(sentence, signature);
	add_words(sentence, ")");
}

// "rank 3 (...)", "ranks 1, 2, 5 and 12 more"
static void add_late(struct sentence *sentence) {
	const struct jobs_finding *finding = sentence->finding;
	uint32_t named = 0;

	while (named < finding->late_count && named < JOBS_NAMED_MAX &&
	       finding->late[named] != JOBS_NOBODY)
		named++;
	if (finding->late_count == 1) {
		add_rank(sentence, finding->late[0]);
		return;
	}
	add_words(sentence, "ranks");
	for (uint32_t n = 0; n < named; n++)
		add_words(
			sentence, "%s%u", n > 0 ? ", " : " ",
			rank_at(sentence, finding->late[n])->rank.rank
		);
	if (finding->late_count > named)
		add_words(sentence, " and %u more", finding->late_count - named);
}

static void add_waiting(struct sentence *sentence) {
	const struct jobs_finding *finding = sentence->finding;

	add_words(
		sentence, "%u rank%s waited for ", finding->waiting,
		finding->waiting == 1 ? " has" : "s have"
	);
	add_span(sentence, finding->waited_ms);
}

static void add_exit(struct sentence *sentence, const struct ras_comm_rank *rank) {
	switch (rank->exit_cause) {
	case JOBS_EXIT_STATUS:
		add_words(sentence, ", exited with status %d", rank->exit_value);
		break;
	case JOBS_EXIT_SIGNAL:
		add_words(sentence, ", killed by signal %d", rank->exit_value);
		break;
	case JOBS_EXIT_MEMORY:
		add_words(sentence, ", killed for want of memory");
		break;
	default:
		break;
	}
	if ((rank->flags & RAS_RANK_EXITED) == 0)
		return;
	add_words(sentence, " ");
	add_span(sentence, rank->exited_ms);
	add_words(sentence, " ago");
}

static void say_dead(struct sentence *sentence) {
	const struct jobs_finding *finding = sentence->finding;
	uint32_t place = finding->late[0];

	if (place == JOBS_NOBODY) {
		add_words(
			sentence, "%u rank%s of dead nodes", finding->late_count,
			finding->late_count == 1 ? " is" : "s are"
		);
	} else {
		add_late(sentence);
		add_words(sentence, finding->late_count == 1 ? " is gone" : " are gone");
		add_exit(sentence, &rank_at(sentence, place)->rank);
		if (finding->late_count > 1)
			add_words(
				sentence, " (rank %u%s)", rank_at(sentence, place)->rank.rank,
				finding->dated ? ", the first of them" : ""
			);
	}
	if (finding->seq == 0 || finding->waiting == 0)
		return;
	add_words(sentence, "; in ");
	add_operation(sentence);
	add_words(sentence, " ");
	add_waiting(sentence);
}

// Append the state of the only late rank's process.
static void add_process(struct sentence *sentence) {
	const struct jobs_finding *finding = sentence->finding;
	const struct ras_comm_rank *rank = &rank_at(sentence, finding->late[0])->rank;

	if ((rank->knows & RAS_RANK_KNOWS_PROCESS) == 0) {
		add_words(sentence, "; what its process does is not known");
		return;
	}
	add_words(sentence, "; its process is %s", jobs_process_name(rank->process_state));
	add_words(sentence, ", and has used ");
	if (rank->worked_ms > 0)
		add_span(sentence, rank->worked_ms);
	add_words(
		sentence, rank->worked_ms > 0 ? " of processor time in " : "no processor time in "
	);
	add_span(sentence, JOBS_WORK_WINDOW_NS / NS_PER_MS);
	if (finding->serves)
		add_words(sentence, ": it may have nothing to send");
	else if (finding->busy)
		add_words(sentence, ": it works");
	// A thread that polls its device looks busy, although it only waits.
	if (finding->busy && finding->via == JOBS_NOBODY && finding->device_waits != JOBS_NOBODY)
		add_words(
			sentence, ", and its device waits in communicator %016llx",
			(unsigned long long)sentence->look->comms[finding->device_waits].id.hash
		);
}

static void add_via(struct sentence *sentence) {
	const struct jobs_finding *finding = sentence->finding;

	if (finding->via != JOBS_NOBODY)
		add_words(
			sentence, "; it waits itself in communicator %016llx",
			(unsigned long long)sentence->look->comms[finding->via].id.hash
		);
}

static void say_late(struct sentence *sentence, const char *what) {
	const struct jobs_finding *finding = sentence->finding;
	bool all_left = finding->left == finding->late_count;

	add_late(sentence);
	if (all_left)
		add_words(
			sentence, "%s finalized, and", finding->late_count == 1 ? " has" : " have"
		);
	add_words(sentence, " %s %s ", finding->late_count == 1 ? "has" : "have", what);
	add_operation(sentence);
	add_words(sentence, ", in which ");
	add_waiting(sentence);
	if (finding->left > 0 && !all_left)
		add_words(sentence, "; %u of them have finalized", finding->left);
	if (finding->late_count == 1 && !all_left)
		add_process(sentence);
	add_via(sentence);
}

static void say_stopped(struct sentence *sentence) {
	add_late(sentence);
	add_words(sentence, sentence->finding->late_count == 1 ? " is" : " are");
	add_words(sentence, " stopped inside ");
	add_operation(sentence);
	add_words(sentence, ", in which ");
	add_waiting(sentence);
}

static void say_transport(struct sentence *sentence) {
	const struct jobs_pair *pair = sentence->finding->pair;

	add_words(sentence, "all ranks have started ");
	add_operation(sentence);
	add_words(sentence, ", and data has not arrived for ");
	add_span(sentence, sentence->finding->waited_ms);
	if (pair != NULL)
		add_words(sentence, "; %s", pair->words);
	else
		add_words(sentence, "; no path between its nodes is known to be bad");
}

static void say_mismatch(struct sentence *sentence) {
	const struct jobs_mismatch *mismatch = &sentence->finding->mismatch;
	const struct ras_merged_rank *most = rank_at(sentence, mismatch->most);
	const struct ras_merged_rank *other = rank_at(sentence, mismatch->other);

	add_words(sentence, "operation %llu differs: ", (unsigned long long)mismatch->seq);
	add_rank(sentence, mismatch->other);
	if (mismatch->other_count > 1)
		add_words(sentence, " and %u more", mismatch->other_count - 1);
	add_words(sentence, mismatch->other_count > 1 ? " run " : " runs ");
	add_signature(sentence, ras_comm_signature_of(sentence->comm, other, mismatch->seq));
	add_words(sentence, ", rank %u ", most->rank.rank);
	add_signature(sentence, ras_comm_signature_of(sentence->comm, most, mismatch->seq));
}

static void say_ordering(struct sentence *sentence) {
	const struct jobs_finding *finding = sentence->finding;

	add_words(sentence, "ranks wait for each other: ");
	for (uint32_t n = 0; n < finding->chain_count; n++) {
		const struct jobs_wait_for *wait = &finding->chain[n];

		add_words(
			sentence, "%s communicator %016llx for rank %u",
			n > 0 ? ", which waits in" : "in",
			(unsigned long long)sentence->look->comms[wait->comm].id.hash, wait->rank
		);
	}
	add_words(
		sentence,
		finding->chain_count < JOBS_CHAIN_MAX ? ", which waits in the first" : ", ..."
	);
}

static void say_symmetric(struct sentence *sentence) {
	add_words(sentence, "all ranks have started ");
	add_operation(sentence);
	add_words(sentence, ", and none has completed it for ");
	add_span(sentence, sentence->finding->waited_ms);
	add_words(sentence, "; no path between its nodes is known to be bad");
}

static void say_straggler(struct sentence *sentence) {
	const struct jobs_straggler *straggler = &sentence->finding->straggler;
	char late[SHOW_BYTES];

	show_duration(straggler->late_us * 1000, late);
	add_rank(sentence, straggler->place);
	add_words(
		sentence,
		straggler->seen_by_median ? " waited least in %u of %u looks"
					  : " came last in %u of %u operations",
		straggler->last, straggler->of
	);
	add_words(sentence, ", %s behind the median rank (median)", late);
}

static void say_unknown(struct sentence *sentence) {
	const struct jobs_finding *finding = sentence->finding;

	if (finding->absent > 0) {
		add_words(
			sentence, "%u rank%s held by no agent that answered; in ", finding->absent,
			finding->absent == 1 ? " is" : "s are"
		);
		add_operation(sentence);
		add_words(sentence, " ");
		add_waiting(sentence);
		return;
	}
	add_words(sentence, "all ranks have launched ");
	add_operation(sentence);
	add_words(sentence, ", and none moved for ");
	add_span(sentence, finding->waited_ms);
	add_words(
		sentence, (finding->knows & RAS_RANK_KNOWS_STARTED) == 0
				  ? "; they do not tell what has started"
				  : "; they do not tell what has completed"
	);
	if (finding->pair != NULL)
		add_words(sentence, "; %s", finding->pair->words);
}

static void say_nothing(struct sentence *sentence) {
	const struct jobs_finding *finding = sentence->finding;

	switch (finding->grade) {
	case JOBS_ENDED:
		add_words(sentence, "it has ended");
		break;
	case JOBS_MOVING:
		add_words(sentence, "it moves");
		break;
	case JOBS_QUIET:
		add_words(sentence, "no rank moved for ");
		add_span(sentence, finding->waited_ms);
		add_words(
			sentence, (finding->knows & RAS_RANK_KNOWS_COMPLETED) != 0
					  ? ", and none has an operation open"
					  : "; whether an operation is open is not told"
		);
		break;
	case JOBS_WAITING:
	case JOBS_STUCK:
		break;
	}
	if (finding->mismatch.seq == 0)
		return;
	add_words(sentence, "; ");
	say_mismatch(sentence);
}

static void say_cause(struct sentence *sentence) {
	switch (sentence->finding->cause) {
	case JOBS_CAUSE_NONE:
	case JOBS_CAUSE_COUNT:
		say_nothing(sentence);
		break;
	case JOBS_CAUSE_DEAD_MEMBER:
		say_dead(sentence);
		break;
	case JOBS_CAUSE_STOPPED_MEMBER:
		say_stopped(sentence);
		break;
	case JOBS_CAUSE_MISSING_ENTER:
		say_late(sentence, "not launched");
		break;
	case JOBS_CAUSE_DEVICE_BEHIND:
		say_late(sentence, "launched, and its device has not started");
		break;
	case JOBS_CAUSE_TRANSPORT:
		say_transport(sentence);
		break;
	case JOBS_CAUSE_MISMATCH:
		say_mismatch(sentence);
		break;
	case JOBS_CAUSE_ORDERING:
		say_ordering(sentence);
		break;
	case JOBS_CAUSE_SYMMETRIC:
		say_symmetric(sentence);
		break;
	case JOBS_CAUSE_STRAGGLER:
		say_straggler(sentence);
		break;
	case JOBS_CAUSE_UNKNOWN:
		say_unknown(sentence);
		break;
	}
}

void jobs_say(
	const struct jobs_look *look,
	uint32_t comm,
	const struct jobs_finding *finding,
	const struct jobs_words *words,
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
	say_cause(&sentence);
}
