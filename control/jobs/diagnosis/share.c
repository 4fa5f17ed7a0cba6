// SPDX-License-Identifier: BSD-3-Clause
// Makes rows from reports. Signatures that the ranks of a row have in common are stored once, in
// the head of the row.
#include "survey.h"

#include <lib/must.h>
#include <lib/wire.h>

#include <jobs/share.h>
#include <jobs/wait.h>
#include <string.h>

#define NS_PER_MS UINT64_C(1000000)
#define NS_PER_S (1000 * NS_PER_MS)
#define CALL_AGE_MAX_NS (3000 * NS_PER_MS) // ranks are sampled once a second

static int compare_u64(uint64_t a, uint64_t b) {
	return (a > b) - (a < b);
}

static int compare_rows(const struct jobs_rank_report *a, const struct jobs_rank_report *b) {
	int order = compare_u64(a->comm_hash, b->comm_hash);

	if (order == 0)
		order = compare_u64(a->host_hash, b->host_hash);
	if (order == 0)
		order = compare_u64(a->process_hash, b->process_hash);
	if (order == 0)
		order = compare_u64(a->uid, b->uid);
	if (order == 0)
		order = compare_u64(a->attempt, b->attempt);
	if (order == 0)
		order = compare_u64(a->size, b->size);
	if (order == 0)
		order = compare_u64(a->config_hash, b->config_hash);
	return order != 0 ? order : strncmp(a->job_id, b->job_id, sizeof(a->job_id));
}

int jobs_report_compare(const struct jobs_rank_report *a, const struct jobs_rank_report *b) {
	int order = compare_rows(a, b);

	if (order == 0)
		order = compare_u64(a->rank, b->rank);
	if (order == 0)
		order = (a->exited_ns != 0 || a->left != JOBS_LEFT_NOT) -
			(b->exited_ns != 0 || b->left != JOBS_LEFT_NOT);
	if (order == 0)
		order = compare_u64(b->exited_ns, a->exited_ns);
	return order != 0 ? order : compare_u64(a->pid, b->pid);
}

uint32_t jobs_reports_unique(const struct jobs_rank_report **reports, uint32_t count) {
	uint32_t kept = 0;

	for (uint32_t n = 0; n < count; n++) {
		if (kept > 0 && compare_rows(reports[kept - 1], reports[n]) == 0 &&
		    reports[kept - 1]->rank == reports[n]->rank)
			continue;
		reports[kept++] = reports[n];
	}
	return kept;
}

uint32_t jobs_row_length(const struct jobs_rank_report *const *reports, uint32_t count) {
	uint32_t length = 0;

	while (length < count && length < JOBS_ROW_RANKS &&
	       compare_rows(reports[0], reports[length]) == 0)
		length++;
	return length;
}

static uint32_t ms_between(uint64_t from_ns, uint64_t to_ns) {
	uint64_t ms = to_ns > from_ns ? (to_ns - from_ns) / NS_PER_MS : 0;

	return ms < UINT32_MAX ? (uint32_t)ms : UINT32_MAX;
}

static uint64_t min_u64(uint64_t value, uint64_t limit) {
	return value < limit ? value : limit;
}

// Copy the waits of the last completed operations, as far back as they are consecutive.
static void copy_waits(const struct jobs_rank_report *report, struct ras_comm_rank *rank) {
	uint8_t codes[RAS_COMM_WAITS];
	uint32_t count = 0;

	for (uint32_t n = report->signature_count; n > 0 && count < RAS_COMM_WAITS; n--) {
		const struct jobs_signature *signature = &report->signatures[n - 1];

		if (signature->seq > rank->completed)
			continue;
		if (signature->seq + count != rank->completed ||
		    signature->waited_ns == JOBS_TIME_UNKNOWN)
			break;
		codes[count++] = jobs_wait_code(signature->waited_ns);
	}
	rank->wait_count = (uint8_t)count;
	for (uint32_t n = 0; n < count; n++)
		rank->waits[n] = codes[count - 1 - n];
}

// A process chooses its name and its reason, of any bytes.
static void make_printable(char *name, size_t size) {
	name[size - 1] = '\0';
	for (char *at = name; *at != '\0'; at++)
		*at = *at >= ' ' && *at <= '~' ? *at : '?';
}

static void make_rank(const struct jobs_rank_report *report, struct ras_comm_rank *ret_rank) {
	static const enum jobs_kind pair_kinds[] = {JOBS_SEND, JOBS_RECEIVE, JOBS_ONE_SIDED};
	uint64_t now_ns = report->shown_ns != 0 ? report->shown_ns : report->sampled_ns;
	uint32_t flags =
		(report->finalized ? RAS_RANK_FINALIZE : 0) |
		(report->destroyed ? RAS_RANK_DESTROY : 0) |
		(report->aborted ? RAS_RANK_ABORT : 0) |
		(report->exited_ns != 0 && report->left == JOBS_LEFT_NOT ? RAS_RANK_EXITED : 0) |
		(report->blocks ? RAS_RANK_BLOCKS : 0) |
		(report->attached ? 0 : RAS_RANK_DETACHED) |
		(report->end_is_seen_late ? RAS_RANK_END_SEEN_LATE : 0);
	struct ras_comm_rank rank = {
		.rank = report->rank,
		.pid = report->pid,
		.launched = report->launched,
		.started = min_u64(report->started, report->launched),
		.idle_ms = ms_between(report->progress_ns, report->sampled_ns),
		.worked_ms = (uint32_t)min_u64(report->worked_ns / NS_PER_MS, UINT32_MAX),
		.exit_value = report->exit_value,
		.exit_cause = report->exit_cause,
		.process_state = report->process_state,
		.init_state = report->init_state,
		.async_error = report->async_error,
		.flags = (uint8_t)flags,
		.knows = report->knows,
		.cuda_device = report->cuda_device < -1 ? -1 : report->cuda_device,
		.nvml_device = report->nvml_device < -1 ? -1 : report->nvml_device,
		.doing = report->doing,
		.unwaited = report->unwaited,
		.oldest_is_unwaited = report->oldest_is_unwaited,
	};

	rank.completed = min_u64(report->completed, rank.started);
	// 0 means unknown, so a rank that has just registered has 1.
	rank.since_ms = ms_between(report->since_ns, now_ns);
	rank.since_ms += rank.since_ms == 0;
	make_printable(rank.doing.name, sizeof(rank.doing.name));
	// After a pause of the agent the sample is old, and the rank may have left the call.
	if (report->shown_ns > report->sampled_ns &&
	    report->shown_ns - report->sampled_ns > CALL_AGE_MAX_NS)
		rank.doing.call = (struct ras_comm_call){0};
	if (report->busy_until_ns > now_ns) {
		rank.doing.busy_s =
			(uint32_t
			)min_u64((report->busy_until_ns - now_ns) / NS_PER_S, UINT32_MAX - 1) +
			1;
		memcpy(rank.doing.busy_why, report->busy_why, sizeof(rank.doing.busy_why));
	}
	make_printable(rank.doing.busy_why, sizeof(rank.doing.busy_why));
	rank.left = report->left;
	if (report->exited_ns != 0)
		rank.exited_ms = ms_between(report->exited_ns, report->sampled_ns);
	for (uint32_t n = 0; n < RAS_COMM_OPS; n++)
		rank.ops[n] = report->launched_of[n];
	// Operations between two ranks are reported as one sum.
	for (uint32_t n = 0; n < sizeof(pair_kinds) / sizeof(pair_kinds[0]); n++) {
		rank.pair_launched += report->launched_of[pair_kinds[n]];
		rank.pair_completed += report->completed_of[pair_kinds[n]];
	}
	rank.pair_completed = min_u64(rank.pair_completed, rank.pair_launched);
	copy_waits(report, &rank);
	*ret_rank = rank;
}

// Return whether the signatures of a report are consecutive: a corrupt page may hold any numbers.
static bool signatures_are_consecutive(const struct jobs_rank_report *report) {
	for (uint32_t n = 1; n < report->signature_count; n++) {
		if (report->signatures[n].seq != report->signatures[n - 1].seq + 1)
			return false;
	}
	return report->signature_count > 0 && report->signatures[0].seq > 0 &&
	       report->signatures[0].seq < UINT64_MAX - JOBS_SIGNATURES;
}

// Enter the signatures of a rank into the head of the row, each once. Returns false if they do not
// fit; then this rank reports none.
static bool index_signatures(
	struct ras_comm *comm,
	const struct jobs_rank_report *report,
	struct ras_comm_recent *ret_recent
) {
	struct ras_comm_recent recent = {
		.first = report->signatures[0].seq, .count = (uint8_t)report->signature_count};

	for (uint32_t n = 0; n < report->signature_count; n++) {
		const struct jobs_signature *told = &report->signatures[n];
		bool has_root = told->root >= 0 && told->root < INT32_MAX;
		struct ras_comm_signature signature = {
			.count = told->count,
			.root = has_root ? told->root : RAS_COMM_ROOT_NONE,
			.kind = told->kind,
			.datatype = told->datatype,
		};
		uint32_t place = 0;

		while (place < comm->signature_count &&
		       !signature_equals(&comm->signatures[place], &signature))
			place++;
		if (place == RAS_COMM_SIGNATURES)
			return false;
		if (place == comm->signature_count)
			comm->signatures[comm->signature_count++] = signature;
		recent.index[n] = (uint8_t)place;
	}
	*ret_recent = recent;
	return true;
}

// Return whether the head holds the same operations as this rank, for all operations in both.
static bool
matches_head_signatures(const struct ras_comm_recent *head, const struct ras_comm_recent *own) {
	uint64_t last = own->first + own->count - 1;

	if (own->first > head->first || last < head->first || last >= head->first + head->count)
		return false;
	for (uint64_t seq = head->first; seq <= last; seq++) {
		if (head->index[seq - head->first] != own->index[seq - own->first])
			return false;
	}
	return true;
}

static void make_signatures(
	const struct jobs_rank_report *const *reports, uint32_t count, struct jobs_row *row
) {
	uint32_t first = count;

	// The rank with signatures that has launched most provides the head.
	for (uint32_t n = 0; n < count; n++) {
		if ((reports[n]->knows & JOBS_KNOWS_SIGNATURES) == 0 ||
		    !signatures_are_consecutive(reports[n]))
			continue;
		if (first == count || reports[n]->launched > reports[first]->launched)
			first = n;
	}
	if (first == count || !index_signatures(&row->comm, reports[first], &row->comm.recent))
		first = count;
	for (uint32_t n = 0; n < count; n++) {
		struct ras_comm_rank *rank = &row->ranks[n];
		struct ras_comm_recent own;

		if (n == first)
			continue;
		if (first == count || (rank->knows & RAS_RANK_KNOWS_SIGNATURES) == 0 ||
		    !signatures_are_consecutive(reports[n]) ||
		    !index_signatures(&row->comm, reports[n], &own))
			rank->knows &= (uint8_t)~RAS_RANK_KNOWS_SIGNATURES;
		else if (!matches_head_signatures(&row->comm.recent, &own))
			rank->recent = own;
	}
}

// The id contains the user, which the agent knows from the kernel. A user who claims the hashes of
// another user's communicator creates a separate one. So no user can falsify a verdict on the
// other's.
struct ras_comm_id jobs_comm_id(const struct jobs_rank_report *report) {
	const uint64_t process_hash = report->process_hash;

	return (struct ras_comm_id){
		.hash = report->comm_hash,
		.host_hash = report->host_hash ^ (process_hash << 32 | process_hash >> 32),
		.pid_hash = (uint64_t)report->attempt << 32 | report->uid,
	};
}

void jobs_row_make(
	const struct jobs_rank_report *const *reports, uint32_t count, struct jobs_row *ret_row
) {
	size_t length = strnlen(reports[0]->job_id, sizeof(reports[0]->job_id) - 1);

	must(count > 0 && count <= JOBS_ROW_RANKS);
	memset(&ret_row->comm, 0, sizeof(ret_row->comm));
	ret_row->comm.id = jobs_comm_id(reports[0]);
	ret_row->comm.size = reports[0]->size;
	ret_row->comm.config = (uint32_t)(reports[0]->config_hash ^ reports[0]->config_hash >> 32);
	if (wire_utf8_valid(reports[0]->job_id, length))
		memcpy(ret_row->comm.job, reports[0]->job_id, length);
	ret_row->comm.rank_count = count;
	ret_row->comm.ranks = ret_row->ranks;
	for (uint32_t n = 0; n < count; n++)
		make_rank(reports[n], &ret_row->ranks[n]);
	make_signatures(reports, count, ret_row);
}
