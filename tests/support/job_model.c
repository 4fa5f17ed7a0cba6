// SPDX-License-Identifier: BSD-3-Clause
// Executes the ranks tick by tick.
#include <lib/must.h>
#include <support/job_model.h>

#include <jobs/share.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COMMS_OF_RANK 3 // of its node, across nodes, of all
#define NEVER UINT64_MAX
#define WINDOW_SECONDS (JOBS_WORK_WINDOW_NS / MODEL_SEC)

enum phase {
	COMPUTES,
	LAUNCHED,
	STARTED,
};

struct seat { // one rank in one of its communicators
	uint32_t comm, rank;
	uint64_t launched, started, completed;
	uint64_t started_ns;
	uint64_t progress_ns;
	struct jobs_signature signatures[JOBS_SIGNATURES];
	uint32_t signature_count;
	uint64_t ops[JOBS_KINDS], completed_ops[JOBS_KINDS];
};

struct process {
	struct seat seats[COMMS_OF_RANK];
	enum phase phase;
	// Index of the current communicator, below COMMS_OF_RANK.
	uint32_t step;
	uint64_t until_ns;				    // end of computing, or of starting
	uint64_t worked_ns, worked_past_ns[WINDOW_SECONDS]; // now, and at the last seconds
	bool gone, stopped, hangs, traced, sleeps;
	uint64_t gone_ns;
	bool swaps; // swaps the first and the last operation of its steps
};

struct comm {
	uint32_t kind;		// index among the three kinds
	uint32_t first, stride; // first member, and distance between members, in all processes
	uint32_t size, started; // members in total, and those that started the current operation
	uint64_t seq;		// current operation
	uint64_t complete_ns;	// NEVER: not all have started
	bool stuck;
};

struct job_model {
	struct job_model_config config;
	uint64_t now_ns;
	uint64_t random;
	uint64_t completed;
	struct process *processes;
	struct comm *comms;
	uint32_t process_count, comm_count;
	bool begun; // the fault has started
	uint64_t pause_end_ns, next_pause_ns;
};

static uint64_t draw(struct job_model *model, uint64_t below) {
	model->random =
		model->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (model->random >> 33) % below;
}

static uint64_t compute_time(struct job_model *model, const struct process *process) {
	uint64_t mean = model->config.compute_ns;
	uint64_t time = mean * 3 / 4 + draw(model, mean / 2 + 1);
	bool straggles = model->begun && model->config.fault == MODEL_STRAGGLES &&
			 process == &model->processes[model->config.rank];

	if (model->config.bursts && draw(model, 200) == 0)
		time += draw(model, 60 * MODEL_SEC);
	return straggles ? time * 2 : time;
}

// Create the seats of rank r of node n: the communicator of the node, that of all r-th ranks, then
// that of all ranks.
static void make_seats(struct job_model *model) {
	uint32_t per_node = model->config.per_node, nodes = model->config.nodes;

	for (uint32_t n = 0; n < model->process_count; n++) {
		uint32_t node = n / per_node, place = n % per_node;
		struct seat *seats = model->processes[n].seats;

		seats[0].comm = node;
		seats[0].rank = place;
		seats[1].comm = nodes + place;
		seats[1].rank = node;
		seats[2].comm = nodes + per_node;
		seats[2].rank = n;
	}
	for (uint32_t n = 0; n < model->comm_count; n++) {
		struct comm *comm = &model->comms[n];

		comm->kind = n < nodes ? 0 : n < nodes + per_node ? 1 : 2;
		comm->size = comm->kind == 0   ? per_node
			     : comm->kind == 1 ? nodes
					       : model->process_count;
		comm->first = comm->kind == 0 ? n * per_node : comm->kind == 1 ? n - nodes : 0;
		comm->stride = comm->kind == 1 ? per_node : 1;
		comm->seq = 1;
		comm->complete_ns = NEVER;
	}
}

struct job_model *job_model_create(const struct job_model_config *config) {
	struct job_model *model = calloc(1, sizeof(*model));

	model->config = *config;
	model->random = config->seed * 2 + 1;
	model->process_count = config->nodes * config->per_node;
	model->comm_count = config->nodes + config->per_node + 1;
	model->processes = calloc(model->process_count, sizeof(*model->processes));
	model->comms = calloc(model->comm_count, sizeof(*model->comms));
	model->next_pause_ns = config->at_ns;
	make_seats(model);
	for (uint32_t n = 0; n < model->process_count; n++)
		model->processes[n].until_ns = compute_time(model, &model->processes[n]);
	return model;
}

struct job_model *job_model_destroy(struct job_model *model) {
	if (model == NULL)
		return NULL;
	free(model->processes);
	free(model->comms);
	free(model);
	return NULL;
}

static bool is_pause(enum model_fault fault) {
	return fault >= MODEL_COMPUTES;
}

static bool is_one(const struct job_model *model, const struct process *process) {
	return process == &model->processes[model->config.rank];
}

static void moved(const struct job_model *model, struct seat *seat) {
	seat->progress_ns = model->now_ns;
}

static enum jobs_kind kind_of(const struct job_model *model, uint32_t step) {
	static const enum jobs_kind kinds[] = {
		JOBS_ALL_GATHER, JOBS_REDUCE_SCATTER, JOBS_ALL_REDUCE};

	if (model->config.fault == MODEL_SERVES)
		return JOBS_BROADCAST;
	return kinds[step];
}

static void sign(struct job_model *model, struct process *process, struct seat *seat) {
	uint32_t step = (uint32_t)(seat - process->seats);
	struct jobs_signature signature = {
		.seq = seat->launched,
		.count = 1u << 20,
		.root = JOBS_NO_ROOT,
		.kind = (uint8_t)kind_of(model, step),
		.datatype = 7,
		.waited_ns = JOBS_TIME_UNKNOWN,
	};

	if (signature.kind == JOBS_BROADCAST)
		signature.root = 0;
	if (model->begun && model->config.fault == MODEL_MISMATCH && is_one(model, process) &&
	    !model->comms[seat->comm].stuck) {
		signature.count++;
		model->comms[seat->comm].stuck = true;
	}
	if (seat->signature_count == JOBS_SIGNATURES) {
		memmove(seat->signatures, seat->signatures + 1,
			sizeof(seat->signatures) - sizeof(seat->signatures[0]));
		seat->signature_count--;
	}
	seat->signatures[seat->signature_count++] = signature;
	seat->ops[signature.kind]++;
}

static struct seat *present_seat(struct process *process) {
	uint32_t step = process->step % COMMS_OF_RANK;

	if (process->swaps && step != 1)
		step = COMMS_OF_RANK - 1 - step;
	return &process->seats[step];
}

static void launch(struct job_model *model, struct process *process) {
	struct seat *seat = present_seat(process);

	seat->launched++;
	sign(model, process, seat);
	moved(model, seat);
	process->phase = LAUNCHED;
	process->until_ns = model->now_ns;
}

static bool device_is_stuck(const struct job_model *model, const struct process *process) {
	return model->begun && model->config.fault == MODEL_DEVICE && is_one(model, process);
}

static void start(struct job_model *model, struct process *process) {
	struct seat *seat = present_seat(process);
	struct comm *comm = &model->comms[seat->comm];
	bool never = comm->stuck || (model->begun && model->config.fault == MODEL_SYMMETRIC);

	seat->started++;
	seat->started_ns = model->now_ns;
	moved(model, seat);
	process->phase = STARTED;
	comm->started++;
	if (model->begun && comm->kind == 2 &&
	    (model->config.fault == MODEL_PATH || model->config.fault == MODEL_LOST))
		comm->stuck = never = true;
	if (comm->started == comm->size && !never)
		comm->complete_ns = model->now_ns + MODEL_TICK_NS;
	// With MODEL_LOST, some ranks have the data that they need.
	if (comm->started == comm->size && comm->stuck && model->config.fault == MODEL_LOST)
		comm->complete_ns = model->now_ns + MODEL_TICK_NS;
}

static void step_process(struct job_model *model, struct process *process) {
	bool halted = process->gone || process->stopped || process->hangs || process->traced;

	if (!halted && !process->sleeps && (process->phase == COMPUTES || model->config.spins))
		process->worked_ns += MODEL_TICK_NS;
	else if (!process->gone && !process->stopped && !process->traced)
		process->worked_ns += MODEL_TICK_NS / 500; // helper threads that wake for timers
	if (model->now_ns % MODEL_SEC == 0)
		process->worked_past_ns[model->now_ns / MODEL_SEC % WINDOW_SECONDS] =
			process->worked_ns;
	if (halted || model->now_ns < process->until_ns)
		return;
	process->sleeps = false;
	if (process->phase == COMPUTES)
		launch(model, process);
	else if (process->phase == LAUNCHED && !device_is_stuck(model, process))
		start(model, process);
}

static void
complete_one(struct job_model *model, struct process *process, struct seat *seat, uint64_t seq) {
	struct jobs_signature *signature = &seat->signatures[seat->signature_count - 1];

	seat->completed = seq;
	signature->waited_ns = model->now_ns - seat->started_ns;
	seat->completed_ops[signature->kind]++;
	moved(model, seat);
	process->phase = COMPUTES;
	process->step++;
	process->until_ns = model->now_ns + compute_time(model, process);
	model->completed++;
}

static void complete(struct job_model *model, uint32_t number) {
	struct comm *comm = &model->comms[number];
	uint64_t seq = comm->seq;

	comm->seq++;
	comm->started = 0;
	comm->complete_ns = NEVER;
	for (uint32_t k = 0, n = comm->first; k < comm->size; k++, n += comm->stride) {
		struct process *process = &model->processes[n];
		struct seat *seat = &process->seats[comm->kind];

		must(seat->comm == number);
		if (seat->started != seq || seat->completed >= seq)
			continue;
		if (comm->stuck && n % 2 == model->config.rank % 2)
			continue; // the data of this rank was lost
		complete_one(model, process, seat, seq);
	}
}

static void begin_fault(struct job_model *model) {
	struct process *process = &model->processes[model->config.rank];

	model->begun = true;
	switch (model->config.fault) {
	case MODEL_KILLED:
		process->gone = true;
		process->gone_ns = model->now_ns;
		break;
	case MODEL_HANGS:
	case MODEL_FREEZES:
		// Only while it computes, so that it never starts the operation.
		model->begun = process->phase == COMPUTES;
		process->hangs = model->begun && model->config.fault == MODEL_HANGS;
		process->stopped = model->begun && model->config.fault == MODEL_FREEZES;
		break;
	case MODEL_STOPPED:
		model->begun = process->phase == STARTED;
		process->stopped = model->begun;
		if (!model->begun)
			break;
		model->comms[present_seat(process)->comm].stuck = true;
		model->comms[present_seat(process)->comm].complete_ns = NEVER;
		break;
	case MODEL_ORDER:
		model->begun = process->step % COMMS_OF_RANK == 0 && process->phase == COMPUTES;
		process->swaps = model->begun;
		break;
	default:
		break;
	}
}

// Let a rank sleep or compute until the end of the pause, before its next launch.
static bool pause_one(struct job_model *model, struct process *process) {
	if (process->phase != COMPUTES)
		return false;
	process->until_ns = model->pause_end_ns;
	process->traced = model->config.fault == MODEL_DEBUGGED;
	process->sleeps = model->config.fault == MODEL_SERVES ||
			  model->config.fault == MODEL_READS || model->config.fault == MODEL_IDLES;
	return true;
}

// Return true if all ranks are between two rounds, so that a pause leaves no operation open.
static bool nothing_is_open(const struct job_model *model) {
	for (uint32_t n = 0; n < model->process_count; n++) {
		if (model->processes[n].phase != COMPUTES ||
		    model->processes[n].step != model->processes[0].step ||
		    model->processes[n].step % COMMS_OF_RANK != 0)
			return false;
	}
	return true;
}

static bool pause_all(struct job_model *model) {
	if (!nothing_is_open(model))
		return false;
	for (uint32_t n = 0; n < model->process_count; n++)
		(void)pause_one(model, &model->processes[n]);
	return true;
}

static void begin_pause(struct job_model *model) {
	uint32_t one = model->config.fault == MODEL_SERVES ? 0 : model->config.rank;

	model->pause_end_ns = model->now_ns + model->config.pause_ns;
	if (!(model->config.fault == MODEL_IDLES ? pause_all(model)
						 : pause_one(model, &model->processes[one]))) {
		model->pause_end_ns = 0;
		return; // try again with a later tick
	}
	model->next_pause_ns =
		model->config.period_ns != 0 ? model->now_ns + model->config.period_ns : NEVER;
}

static void end_pause(struct job_model *model) {
	model->pause_end_ns = 0;
	for (uint32_t n = 0; n < model->process_count; n++)
		model->processes[n].traced = false;
}

static void tick(struct job_model *model) {
	model->now_ns += MODEL_TICK_NS;
	if (model->pause_end_ns != 0 && model->now_ns >= model->pause_end_ns)
		end_pause(model);
	if (is_pause(model->config.fault)) {
		if (model->pause_end_ns == 0 && model->now_ns >= model->next_pause_ns)
			begin_pause(model);
	} else if (!model->begun && model->config.fault != MODEL_HEALTHY &&
		   model->now_ns >= model->config.at_ns) {
		begin_fault(model);
	}
	for (uint32_t n = 0; n < model->process_count; n++)
		step_process(model, &model->processes[n]);
	for (uint32_t n = 0; n < model->comm_count; n++) {
		if (model->comms[n].complete_ns <= model->now_ns)
			complete(model, n);
	}
}

void job_model_run(struct job_model *model, uint64_t until_ns) {
	while (model->now_ns < until_ns)
		tick(model);
}

uint32_t job_model_comms(const struct job_model *model) {
	return model->comm_count;
}

uint64_t job_model_completed(const struct job_model *model) {
	return model->completed;
}

static enum jobs_process_state
state_of(const struct job_model *model, const struct process *process) {
	if (process->gone)
		return JOBS_PROCESS_EXITED;
	if (process->stopped)
		return JOBS_PROCESS_STOPPED;
	if (process->traced)
		return JOBS_PROCESS_TRACED;
	if (process->hangs || process->sleeps ||
	    (process->phase != COMPUTES && !model->config.spins))
		return JOBS_PROCESS_SLEEPING;
	return JOBS_PROCESS_RUNNING;
}

// Return the value of one window ago, in the place that the next second overwrites.
static const uint64_t *worked_before(const struct job_model *model, const struct process *process) {
	return &process->worked_past_ns[(model->now_ns / MODEL_SEC + 1) % WINDOW_SECONDS];
}

static void report_process(
	const struct job_model *model,
	const struct process *process,
	struct jobs_rank_report *report
) {
	if ((model->config.knows & JOBS_KNOWS_PROCESS) != 0) {
		report->process_state = (uint8_t)state_of(model, process);
		report->worked_ns = process->worked_ns - *worked_before(model, process);
		report->doing.activity = report->worked_ns > JOBS_WORK_WINDOW_NS / 100
						 ? JOBS_DOES_COMPUTE
						 : JOBS_DOES_NOTHING;
	}
	if (!process->gone)
		return;
	// An exit is always visible.
	report->process_state = JOBS_PROCESS_EXITED;
	report->exited_ns = process->gone_ns;
	report->exit_cause = JOBS_EXIT_SIGNAL;
	report->exit_value = 9;
}

static void report_seat(
	const struct job_model *model,
	uint32_t number,
	const struct seat *seat,
	struct jobs_rank_report *report
) {
	const struct process *process = &model->processes[number];
	const struct comm *comm = &model->comms[seat->comm];

	*report = (struct jobs_rank_report){
		.comm_hash = 0x1000 + seat->comm,
		.host_hash = model->config.seed,
		.process_hash = comm->kind,
		.size = comm->size,
		.rank = seat->rank,
		.cuda_device = (int16_t)(number % model->config.per_node),
		.nvml_device = (int16_t)(number % model->config.per_node),
		.pid = 4000 + number % model->config.per_node * 3,
		.knows = model->config.knows,
		.launched = seat->launched,
		.attached = !process->gone,
		.blocks = true,
		.sampled_ns = model->now_ns,
		.progress_ns = seat->progress_ns,
	};
	snprintf(report->job_id, sizeof(report->job_id), "slurm:%u.0", 1234);
	report->started =
		(report->knows & JOBS_KNOWS_STARTED) != 0 ? seat->started : seat->launched;
	report->completed =
		(report->knows & JOBS_KNOWS_COMPLETED) != 0 ? seat->completed : report->started;
	memcpy(report->launched_of, seat->ops, sizeof(seat->ops));
	memcpy(report->completed_of, seat->completed_ops, sizeof(seat->completed_ops));
	if ((report->knows & JOBS_KNOWS_SIGNATURES) != 0) {
		report->signature_count = seat->signature_count;
		memcpy(report->signatures, seat->signatures, sizeof(seat->signatures));
	}
	report_process(model, process, report);
}

static int compare_reports(const void *a, const void *b) {
	return jobs_report_compare(a, b);
}

uint32_t job_model_reports(
	const struct job_model *model,
	uint32_t node,
	struct jobs_rank_report *reports,
	uint32_t room
) {
	uint32_t per_node = model->config.per_node, count = 0;

	for (uint32_t n = node * per_node; n < (node + 1) * per_node; n++) {
		uint32_t first = model->config.whole ? COMMS_OF_RANK - 1 : 0;

		for (uint32_t seat = first; seat < COMMS_OF_RANK && count < room; seat++)
			report_seat(model, n, &model->processes[n].seats[seat], &reports[count++]);
	}
	qsort(reports, count, sizeof(*reports), compare_reports);
	return count;
}

bool job_model_pair(
	const struct job_model *model, uint64_t first_node, struct jobs_pair *ret_pair
) {
	if (!model->begun || model->config.fault != MODEL_PATH)
		return false;
	*ret_pair = (struct jobs_pair){
		.node = first_node + model->config.rank / model->config.per_node,
		.peer = first_node +
			(model->config.rank / model->config.per_node + 1) % model->config.nodes,
		.silent = true,
		.words = "path between two nodes is silent",
	};
	return true;
}
