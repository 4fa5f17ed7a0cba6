// SPDX-License-Identifier: BSD-3-Clause
// Samples the counts of each rank from its page, summed over slots. Whatever the job has written
// there, completed is never above started, and started never above launched.
#include "jobs/host/inside.h"

#include <lib/log.h>
#include <lib/proc_stat.h>

#include <assert.h>
#include <stdatomic.h>
#include <string.h>

static_assert((int)JOB_CALL_FINALIZE == JOBS_CALL_FIRST, "both number the calls of MPI alike");
static_assert((int)JOB_CALL_SEND == JOBS_CALL_SEND, "both number the calls of MPI alike");
static_assert(
	(int)JOB_CALL_WAITALL_RECEIVE == JOBS_CALL_FIRST + JOBS_CALLS - 1,
	"jobs_call_name() names each call"
);
static_assert((int)JOB_CALL_WAIT_SEND == JOBS_CALL_WAIT_SEND, "both number the calls of MPI alike");

static uint64_t load_copy(const _Atomic uint64_t *value) {
	// plain memory: our own copy of the page
	return atomic_load_explicit(value, memory_order_relaxed);
}

static void
add_row(const struct job_counts *row, uint64_t *total, uint64_t kinds[static JOB_KINDS]) {
	*total += load_copy(&row->total);
	for (uint32_t n = 0; n < JOB_KINDS; n++)
		kinds[n] += load_copy(&row->kinds[n]);
}

static uint64_t min_u64(uint64_t a, uint64_t b) {
	return a < b ? a : b;
}

// If a rank does not report a step, assume that the step happened together with the previous one.
void sample_clamp_counts(struct jobs_rank_report *report) {
	bool started = (report->knows & JOBS_KNOWS_STARTED) != 0;
	bool completed = (report->knows & JOBS_KNOWS_COMPLETED) != 0;

	for (uint32_t n = 0; n < JOB_KINDS; n++) {
		uint64_t *of = &report->started_of[n];
		bool is_pair = n == JOBS_SEND || n == JOBS_RECEIVE || n == JOBS_ONE_SIDED;

		// The bridge of MPI reports no starts of operations between two ranks.
		if (is_pair && *of < report->completed_of[n])
			*of = report->completed_of[n];
		*of = started ? min_u64(*of, report->launched_of[n]) : report->launched_of[n];
		report->completed_of[n] = completed ? min_u64(report->completed_of[n], *of) : *of;
	}
	report->started = started ? min_u64(report->started, report->launched) : report->launched;
	report->completed =
		completed ? min_u64(report->completed, report->started) : report->started;
}

static bool copies_agree(const struct job_signature *a, const struct job_signature *b) {
	return load_copy(&a->sequence) == load_copy(&b->sequence) &&
	       load_copy(&a->count) == load_copy(&b->count) &&
	       load_copy(&a->what) == load_copy(&b->what) &&
	       load_copy(&a->time_ns) == load_copy(&b->time_ns);
}

// Return the time of operation n, or 0 if the row no longer holds it.
static uint64_t operation_time(const struct job_row *row, uint64_t n) {
	uint64_t total = load_copy(&row->counts.total);

	if (n > total || total - n >= JOB_SIGNATURES - 1)
		return 0;
	return load_copy(&row->times_ns[n % JOB_SIGNATURES]);
}

// The slot that counted each step. The times of an operation can be found only if one slot counted
// all operations of a step.
struct origin {
	uint32_t launched, started, completed; // slot numbers; JOB_SLOTS: no slot, or several
};

static uint64_t operation_wait_ns(
	const struct job_page *page, const struct origin *origin, uint64_t n, uint64_t launch_ns
) {
	uint64_t start_ns = launch_ns, end_ns = 0;

	if (origin->completed < JOB_SLOTS)
		end_ns = operation_time(&page->completed[origin->completed], n);
	if (origin->started < JOB_SLOTS && operation_time(&page->started[origin->started], n) != 0)
		start_ns = operation_time(&page->started[origin->started], n);
	if (start_ns == 0 || end_ns == 0 || end_ns < start_ns)
		return JOBS_TIME_UNKNOWN;
	return end_ns - start_ns;
}

static void sample_signatures(
	struct jobhost *host, const struct origin *origin, struct jobs_rank_report *report
) {
	const struct job_launched *row = &host->page->launched[origin->launched];
	const struct job_launched *again = &host->signatures[origin->launched];
	uint64_t newest = load_copy(&row->counts.total);
	uint64_t oldest = newest < JOB_SIGNATURES ? 1 : newest - JOB_SIGNATURES + 1;

	report->signature_count = 0;
	for (uint64_t n = oldest; n <= newest && n != 0; n++) {
		const struct job_signature *at = &row->signatures[n % JOB_SIGNATURES];
		struct jobs_signature *to = &report->signatures[report->signature_count];
		uint64_t what = load_copy(&at->what);

		if (load_copy(&at->sequence) != 2 * n + 2 ||
		    !copies_agree(at, &again->signatures[n % JOB_SIGNATURES]) ||
		    job_signature_kind(what) >= JOB_KINDS)
			continue;
		*to = (struct jobs_signature){
			.seq = n,
			.count = load_copy(&at->count),
			.root = job_signature_root(what),
			.kind = job_signature_kind(what),
			.datatype = job_signature_datatype(what),
			.waited_ns =
				operation_wait_ns(host->page, origin, n, load_copy(&at->time_ns)),
		};
		report->signature_count++;
	}
	if (report->signature_count > 0)
		report->knows |= JOBS_KNOWS_SIGNATURES;
}

static void record_origin(uint32_t *origin, bool *several, uint64_t total, uint32_t slot) {
	if (total == 0 || *several)
		return;
	*several = *origin != JOB_SLOTS;
	*origin = *several ? JOB_SLOTS : slot;
}

// Only the first slot of a communicator has marks; the other slots are 0.
static void sample_marks(const struct job_marks *marks, struct jobs_rank_report *report) {
	uint32_t flags = atomic_load_explicit(&marks->flags, memory_order_relaxed);

	report->init_state |=
		(uint8_t)atomic_load_explicit(&marks->init_state, memory_order_relaxed);
	report->async_error |=
		(uint8_t)atomic_load_explicit(&marks->async_error, memory_order_relaxed);
	report->finalized = report->finalized || (flags & JOB_MARK_FINALIZED) != 0;
	report->destroyed = report->destroyed || (flags & JOB_MARK_DESTROYED) != 0;
	report->aborted = report->aborted || (flags & JOB_MARK_ABORTED) != 0;
	if ((flags & JOB_MARK_ABORTED) != 0 && load_copy(&marks->abort_value) > UINT32_MAX) {
		report->aborted_all = true;
		report->abort_code = (int32_t)(uint32_t)load_copy(&marks->abort_value);
	}
	if (load_copy(&marks->call) != 0)
		report->call = load_copy(&marks->call);
	// A posted operation proves neither that data moves nor that its caller waits.
	if ((flags & JOB_MARK_POSTED) != 0) {
		report->unwaited = (uint32_t)(load_copy(&marks->posted) >> 2);
		report->oldest_is_unwaited = (load_copy(&marks->posted) & 2) != 0;
		report->blocks = false;
		report->knows &= (uint8_t)~JOBS_KNOWS_STARTED;
	}
}

// A rank that registered with an earlier agent hears of ends since then.
static void sample_registration(const struct job_marks *marks, struct host_rank *rank) {
	uint32_t at_s = atomic_load_explicit(&marks->registered_s, memory_order_relaxed);
	uint64_t at_ns = at_s * RAS_NS_PER_SEC;

	if (at_s == 0 || (rank->told.flags & JOB_REGISTER_AGAIN) == 0 || rank->comm == NULL ||
	    at_ns >= rank->since_ns)
		return;
	rank->since_ns = at_ns;
	rank->comm->newest_is_stale = true;
}

// Returns false if the page does not hold the communicator.
static bool sample_counts(struct host_rank *rank, uint32_t slots) {
	struct jobhost *host = rank->process->host;
	const struct job_page *page = host->page;
	struct jobs_rank_report *report = &rank->report;
	struct origin origin = {JOB_SLOTS, JOB_SLOTS, JOB_SLOTS};
	bool several[3] = {false, false, false}, is_found = false;

	report->launched = report->started = report->completed = 0;
	memset(report->launched_of, 0, sizeof(report->launched_of));
	memset(report->started_of, 0, sizeof(report->started_of));
	memset(report->completed_of, 0, sizeof(report->completed_of));
	report->signature_count = 0;
	report->init_state = report->async_error = 0;
	report->call = 0;
	report->unwaited = 0;
	report->oldest_is_unwaited = false;
	report->finalized = report->destroyed = report->aborted = report->aborted_all = false;
	report->blocks = (rank->told.flags & TOCSIN_COMM_BLOCKS) != 0;
	report->knows = (uint8_t
	)(((rank->told.flags & TOCSIN_COMM_NO_STARTED) != 0 ? 0 : JOBS_KNOWS_STARTED) |
	  ((rank->told.flags & TOCSIN_COMM_NO_COMPLETED) != 0 ? 0 : JOBS_KNOWS_COMPLETED));
	if (rank->gpu_is_from_nccl)
		report->knows |= JOBS_KNOWS_GPU_OF_NCCL;
	for (uint32_t n = 0; n < slots; n++) {
		const struct job_launched *launched = &page->launched[n];
		const struct job_row *started = &page->started[n];
		const struct job_row *completed = &page->completed[n];

		if (load_copy(&launched->counts.comm) != rank->told.comm)
			continue;
		is_found = true;
		// While a slot is allocated or released, not all of its rows have the number.
		if (load_copy(&started->counts.comm) == rank->told.comm)
			add_row(&started->counts, &report->started, report->started_of);
		if (load_copy(&completed->counts.comm) == rank->told.comm)
			add_row(&completed->counts, &report->completed, report->completed_of);
		add_row(&launched->counts, &report->launched, report->launched_of);
		record_origin(&origin.launched, &several[0], load_copy(&launched->counts.total), n);
		record_origin(&origin.started, &several[1], load_copy(&started->counts.total), n);
		record_origin(
			&origin.completed, &several[2], load_copy(&completed->counts.total), n
		);
		sample_marks(&launched->marks, report);
		sample_registration(&launched->marks, rank);
	}
	// A step is unknown if its first reported operation is not launched yet, or its reporting
	// is over.
	for (uint32_t n = 0; n < slots; n++) {
		const struct job_marks *marks = &page->launched[n].marks;

		if (load_copy(&page->launched[n].counts.comm) != rank->told.comm)
			continue;
		if (load_copy(&marks->started_from) > report->launched)
			report->knows &= (uint8_t)~JOBS_KNOWS_STARTED;
		if (load_copy(&marks->completed_from) > report->launched)
			report->knows &= (uint8_t)~JOBS_KNOWS_COMPLETED;
	}
	if (origin.launched < JOB_SLOTS)
		sample_signatures(host, &origin, report);
	sample_clamp_counts(report);
	return is_found;
}

// Return the processor time used in the last WORK_SAMPLES seconds. The new sample overwrites the
// oldest one.
static uint64_t record_processor_time(struct host_process *process, uint64_t cpu_ns) {
	uint64_t oldest_ns;

	if (process->looks == 0)
		for (uint32_t n = 0; n < WORK_SAMPLES; n++)
			process->cpu_ns[n] = cpu_ns;
	oldest_ns = process->cpu_ns[process->looks % WORK_SAMPLES];
	process->cpu_ns[process->looks % WORK_SAMPLES] = cpu_ns;
	process->looks++;
	return cpu_ns > oldest_ns ? cpu_ns - oldest_ns : 0;
}

// A main thread that ended before the others is a zombie, and its state is that of the process.
static enum jobs_process_state sampled_state(const struct proc_stat *stat, uint64_t worked_ns) {
	if (stat->state == 'Z' && stat->thread_count > 1)
		return worked_ns > 0 ? JOBS_PROCESS_RUNNING : JOBS_PROCESS_SLEEPING;
	return process_state(stat->state);
}

static void record_progress(
	struct host_rank *rank, const struct proc_stat *stat, uint64_t worked_ns, uint64_t now_ns
) {
	struct jobs_rank_report *report = &rank->report;
	uint64_t sum = report->started + report->completed;

	for (uint32_t n = 0; n < JOB_KINDS; n++)
		sum += report->launched_of[n] + report->started_of[n] + report->completed_of[n];
	if (sum != rank->counted)
		report->progress_ns = now_ns;
	rank->counted = sum;
	report->sampled_ns = now_ns;
	report->worked_ns = worked_ns;
	report->process_state = (uint8_t)sampled_state(stat, worked_ns);
	if (stat->state != '\0')
		report->knows |= JOBS_KNOWS_PROCESS;
	nccl_ask_note_rank(rank, now_ns);
}

// Return when a rank moved last that may still launch operations; 0: no rank may. Store whether the
// thread is inside an operation that blocks it: then others do not wait for this process to work.
static uint64_t last_progress_ns(const struct host_process *process, bool *ret_is_inside) {
	uint64_t last_ns = 0;

	*ret_is_inside = false;
	for (const struct host_rank *rank = process->ranks; rank != NULL; rank = rank->next) {
		const struct jobs_rank_report *report = &rank->report;

		if ((report->launched == 0 && report->call == 0) || report->finalized ||
		    report->destroyed || report->aborted)
			continue;
		if (report->progress_ns > last_ns)
			last_ns = report->progress_ns;
		if (report->blocks && (report->knows & JOBS_KNOWS_COMPLETED) != 0 &&
		    report->completed < report->launched)
			*ret_is_inside = true;
	}
	return last_ns;
}

// Look closer at a process whose ranks all stand. If many stand, each is looked at in turn, so that
// a round makes about LIFE_LOOKS_MAX looks.
static void look_at_life(struct host_process *process, uint64_t now_ns) {
	static const struct life_roots roots;
	struct round *round = &process->host->round;
	uint32_t turns = round->standing_before / LIFE_LOOKS_MAX + 1;
	bool is_inside;
	uint64_t last_ns = last_progress_ns(process, &is_inside);

	if (last_ns == 0 || now_ns - last_ns < stall_confirm_ns(process->host) / 4) {
		process->life = life_destroy(process->life);
		return;
	}
	if (process->life == NULL)
		process->life = life_create();
	if (process->life == NULL || round->standing++ % turns != round->number % turns)
		return;
	if (is_inside)
		life_look_at_freezer(process->life, &roots, process->pid);
	else
		life_look(process->life, &roots, process->pid, now_ns);
}

// Return the call that the process is inside in this communicator, else in another one.
static struct ras_comm_call current_call(const struct host_rank *rank) {
	const struct host_rank *at = rank;
	uint64_t call;

	if (rank->report.call == 0)
		for (at = rank->process->ranks; at != NULL && at->report.call == 0;)
			at = at->next;
	if (at == NULL)
		return (struct ras_comm_call){0};
	call = at->report.call;
	return (struct ras_comm_call){
		.number = (uint8_t)(call >> 56),
		.is_elsewhere = at != rank,
		.peer = (int32_t)(uint32_t)call,
		.tag = job_call_tag(call),
	};
}

static_assert(
	JOB_BUSY_WORDS * sizeof(uint64_t) == RAS_COMM_WHY_BYTES, "a row holds the whole reason"
);

static void sample_busy(struct host_process *process) {
	const struct job_head *head = &process->host->page->head;

	process->busy_until_ns = load_copy(&head->busy_until_ns);
	for (uint32_t n = 0; n < JOB_BUSY_WORDS; n++) {
		uint64_t word = load_copy(&head->busy_why[n]);

		memcpy(process->busy_why + n * sizeof(word), &word, sizeof(word));
	}
	process->busy_why[sizeof(process->busy_why) - 1] = '\0';
}

// A process may have opened several jobs, such as that of the bridge of MPI and one of its own. The
// report of one concerns all.
static void report_busy(struct host_process *process) {
	struct host_process *latest = process, *at = NULL;

	while ((at = process_find(process->host, process->pid, at)) != NULL)
		if (at->exited_ns == 0 && at->busy_until_ns > latest->busy_until_ns)
			latest = at;
	for (struct host_rank *rank = process->ranks; rank != NULL; rank = rank->next) {
		rank->report.busy_until_ns = latest->busy_until_ns;
		memcpy(rank->report.busy_why, latest->busy_why, sizeof(rank->report.busy_why));
	}
}

static void report_life(struct host_process *process) {
	struct ras_comm_doing doing = {0};
	bool is_frozen = process->life != NULL && life_is_frozen(process->life);

	if (process->life != NULL)
		life_summarise(process->life, &doing);
	for (struct host_rank *rank = process->ranks; rank != NULL; rank = rank->next) {
		rank->report.doing = doing;
		if (process->life != NULL)
			rank->report.doing.call = current_call(rank);
		// A frozen process sleeps, and a debugger cannot continue it.
		if (is_frozen && rank->report.process_state != JOBS_PROCESS_STOPPED)
			rank->report.process_state = JOBS_PROCESS_FROZEN;
	}
}

// Return whether the process unregistered the rank without a message: while disconnected, or before
// its end.
static bool rank_was_unregistered(const struct host_rank *rank, bool is_found, bool is_over) {
	if (is_found)
		return false;
	return is_over ? rank->page_had_comm
		       : !rank->report.attached && rank->process->connection != NULL;
}

void sample_process_page(struct host_process *process, uint64_t now_ns, bool is_over) {
	struct jobhost *host = process->host;
	struct proc_stat stat = {0};
	struct host_rank *next;
	uint64_t worked_ns;
	uint32_t slots;
	int err;

	// Reports of an ended process stay as last sampled, and stay valid.
	if (process->exited_ns != 0 || process->page_fd < 0)
		return;
	if (proc_stat_read(process->pid, &stat) != 0 || stat.start_time != process->start_time)
		stat = (struct proc_stat){0};
	worked_ns = record_processor_time(process, stat.cpu_ns);
	err = page_copy(host, process->page_fd, &slots);
	if (err != 0) {
		host->counters.pages_bad++;
		log_event(
			LOG_LEVEL_WARN, "job_page_bad", log_u64("pid", (uint64_t)process->pid),
			log_errno("error", err)
		);
		return;
	}
	process->wanted = atomic_load_explicit(&host->page->head.wanted, memory_order_relaxed);
	level_write_to_page(process, now_ns);
	for (struct host_rank *rank = process->ranks; rank != NULL; rank = next) {
		bool is_found = sample_counts(rank, slots);

		next = rank->next;
		if (rank_was_unregistered(rank, is_found, is_over)) {
			departed_rank_keep(rank, JOBS_LEFT_UNREGISTERED);
			rank_remove(rank);
			continue;
		}
		rank->page_had_comm = is_found;
		record_progress(rank, &stat, worked_ns, now_ns);
	}
	if (is_over)
		process->life = life_destroy(process->life);
	else
		look_at_life(process, now_ns);
	report_life(process);
	sample_busy(process);
	report_busy(process);
}
