// SPDX-License-Identifier: BSD-3-Clause
// Finds stragglers. The rank that comes last waits least, so the waits of all ranks in one
// operation are compared. Each wait is measured on one clock, so the clocks need not agree.
//
// If operations are fast, no two ranks may report the same ones. Then each snapshot is one
// comparison, of the median waits of the ranks.
#include "book.h"

#include <errno.h>
#include <jobs/wait.h>
#include <string.h>

#define COMMS_MAX 64
#define ENTRIES_MAX 128	  // operations kept for one communicator
#define ENTRIES_ENOUGH 8  // operations needed before a straggler is named
#define ENTRIES_RECENT 16 // newest operations, which may be judged alone
#define LATE_US_MIN 1000
#define LATE_PERCENT 25 // percent of the median wait
#define CHANCE_MAX 1e-4
#define CODES 256

struct wait_entry {
	uint64_t seq;
	uint32_t last; // rank that came last
	uint8_t least, median;
};

struct wait_comm {
	struct ras_comm_id id;
	uint32_t size; // 0: unused slot
	bool by_median;
	uint64_t used; // number of the snapshot that updated this slot last
	uint64_t seq;  // sequence number of the newest entry
	uint32_t count, next;
	struct wait_entry entries[ENTRIES_MAX];
};

struct jobs_wait_history {
	struct ras_memory memory;
	uint64_t looks;
	struct wait_comm comms[COMMS_MAX];
};

int jobs_wait_history_create(const struct ras_memory *memory, struct jobs_wait_history **ret_book) {
	struct jobs_wait_history *book = memory->allocate(memory->ctx, sizeof(*book));

	if (book == NULL)
		return -ENOMEM;
	book->memory = *memory;
	*ret_book = book;
	return 0;
}

struct jobs_wait_history *jobs_wait_history_destroy(struct jobs_wait_history *book) {
	struct ras_memory memory;

	if (book == NULL)
		return NULL;
	memory = book->memory;
	memory.release(memory.ctx, book, sizeof(*book));
	return NULL;
}

static bool comm_has_id(const struct wait_comm *known, const struct ras_merged_comm *comm) {
	return known->size == comm->size && known->id.hash == comm->id.hash &&
	       known->id.host_hash == comm->id.host_hash && known->id.pid_hash == comm->id.pid_hash;
}

// Return the slot of the communicator, or the slot that was updated longest ago.
static struct wait_comm *
find_or_replace_history(struct jobs_wait_history *book, const struct ras_merged_comm *comm) {
	struct wait_comm *oldest = &book->comms[0];

	for (uint32_t n = 0; n < COMMS_MAX; n++) {
		if (comm_has_id(&book->comms[n], comm))
			return &book->comms[n];
		if (book->comms[n].used < oldest->used)
			oldest = &book->comms[n];
	}
	memset(oldest, 0, sizeof(*oldest));
	oldest->id = comm->id;
	oldest->size = comm->size;
	return oldest;
}

static void add_entry(struct wait_comm *known, const struct wait_entry *entry) {
	known->entries[known->next] = *entry;
	known->next = (known->next + 1) % ENTRIES_MAX;
	if (known->count < ENTRIES_MAX)
		known->count++;
	known->seq = entry->seq;
}

// Waits of all ranks in one operation: the least wait, its rank, and a histogram for the median.
struct field {
	uint32_t codes[CODES];
	uint32_t count, last, ties;
	uint8_t least;
};

static void wait_field_add(struct field *field, uint32_t rank, uint8_t code) {
	if (field->count == 0 || code < field->least) {
		field->least = code;
		field->last = rank;
		field->ties = 0;
	} else if (code == field->least) {
		field->ties++;
	}
	field->codes[code]++;
	field->count++;
}

// Returns false if two ranks came last together.
static bool
wait_field_to_entry(const struct field *field, uint64_t seq, struct wait_entry *ret_entry) {
	uint32_t below = 0, code = 0;

	if (field->count == 0 || field->ties > 0)
		return false;
	while (below + field->codes[code] <= field->count / 2)
		below += field->codes[code++];
	*ret_entry = (struct wait_entry
	){.seq = seq, .last = field->last, .least = field->least, .median = (uint8_t)code};
	return true;
}

// Compare `count` operations from `first` on, in one pass over the ranks. Operations that some rank
// does not report are skipped.
static void compare_operations(
	struct wait_comm *known, const struct ras_merged_comm *comm, uint64_t first, uint32_t count
) {
	struct field fields[RAS_COMM_WAITS] = {0};
	struct wait_entry entry;

	for (uint32_t n = 0; n < comm->rank_count; n++)
		for (uint32_t at = 0; at < count; at++) {
			const struct ras_comm_rank *rank = &comm->ranks[n].rank;
			uint64_t back = rank->completed - (first + at);

			if (first + at > rank->completed || back >= rank->wait_count ||
			    rank->waits[rank->wait_count - 1 - back] == JOBS_WAIT_UNKNOWN)
				continue;
			wait_field_add(
				&fields[at], rank->rank, rank->waits[rank->wait_count - 1 - back]
			);
		}
	for (uint32_t at = 0; at < count; at++)
		if (fields[at].count == comm->rank_count &&
		    wait_field_to_entry(&fields[at], first + at, &entry))
			add_entry(known, &entry);
}

static uint8_t median_wait(const struct ras_comm_rank *rank) {
	uint8_t sorted[RAS_COMM_WAITS];
	uint32_t count = 0;

	for (uint32_t n = 0; n < rank->wait_count; n++) {
		uint32_t at = count;

		if (rank->waits[n] == JOBS_WAIT_UNKNOWN)
			continue;
		for (; at > 0 && sorted[at - 1] > rank->waits[n]; at--)
			sorted[at] = sorted[at - 1];
		sorted[at] = rank->waits[n];
		count++;
	}
	return count > 0 ? sorted[count / 2] : JOBS_WAIT_UNKNOWN;
}

static void
compare_medians(struct wait_comm *known, const struct ras_merged_comm *comm, uint64_t seq) {
	struct wait_entry entry;
	struct field field = {0};

	for (uint32_t n = 0; n < comm->rank_count; n++) {
		uint8_t code = median_wait(&comm->ranks[n].rank);

		if (code == JOBS_WAIT_UNKNOWN)
			return;
		wait_field_add(&field, comm->ranks[n].rank.rank, code);
	}
	if (!wait_field_to_entry(&field, seq, &entry))
		return;
	known->by_median = true;
	add_entry(known, &entry);
}

void jobs_wait_history_add(struct jobs_wait_history *book, const struct ras_merged_comm *comm) {
	uint64_t first = 1, last = UINT64_MAX;
	struct wait_comm *known;

	if (comm->rank_count < 2 || comm->rank_count < comm->size)
		return;
	for (uint32_t n = 0; n < comm->rank_count; n++) {
		const struct ras_comm_rank *rank = &comm->ranks[n].rank;

		if (rank->wait_count == 0)
			return;
		if (rank->completed < last)
			last = rank->completed;
		if (rank->completed >= rank->wait_count &&
		    rank->completed - rank->wait_count + 1 > first)
			first = rank->completed - rank->wait_count + 1;
	}
	known = find_or_replace_history(book, comm);
	known->used = ++book->looks;
	if (first > last && last > known->seq) {
		compare_medians(known, comm, last);
		return;
	}
	if (last <= known->seq)
		return;
	if (first <= known->seq)
		first = known->seq + 1;
	// No rank reports more than RAS_COMM_WAITS waits.
	if (first <= last && last - first < RAS_COMM_WAITS)
		compare_operations(known, comm, first, (uint32_t)(last - first) + 1);
}

// The newest `count` entries of a communicator.
struct window {
	const struct wait_comm *known;
	uint32_t count;
};

static const struct wait_entry *window_entry(const struct window *window, uint32_t n) {
	return &window->known->entries[(window->known->next + ENTRIES_MAX - 1 - n) % ENTRIES_MAX];
}

// Return the rank that came last most often.
static uint32_t find_most_often_last(const struct window *window, uint32_t *ret_times) {
	uint32_t best = 0, times = 0;

	for (uint32_t n = 0; n < window->count; n++) {
		uint32_t same = 0;

		for (uint32_t other = 0; other < window->count; other++)
			same += window_entry(window, other)->last == window_entry(window, n)->last;
		if (same > times) {
			times = same;
			best = window_entry(window, n)->last;
		}
	}
	*ret_times = times;
	return best;
}

// Return the median wait of the median rank over the operations in which `rank` came last. If
// `late` is set, return the median lateness of `rank` instead.
static uint64_t median_wait_us(const struct window *window, uint32_t rank, bool late) {
	uint64_t sorted[ENTRIES_MAX];
	uint32_t count = 0;

	for (uint32_t n = 0; n < window->count; n++) {
		const struct wait_entry *entry = window_entry(window, n);
		uint64_t value = jobs_wait_us(entry->median);
		uint32_t at = count;

		if (entry->last != rank)
			continue;
		value -= late ? jobs_wait_us(entry->least) : 0;
		for (; at > 0 && sorted[at - 1] > value; at--)
			sorted[at] = sorted[at - 1];
		sorted[at] = value;
		count++;
	}
	return count > 0 ? sorted[count / 2] : 0;
}

static bool judge_window(
	const struct window *window,
	const struct ras_merged_comm *comm,
	struct jobs_straggler *ret_straggler
) {
	struct jobs_straggler found = {.of = window->count, .place = JOBS_NOBODY};
	uint32_t rank = find_most_often_last(window, &found.last);
	double chance = comm->size;

	for (uint32_t n = 0; n < comm->rank_count && found.place == JOBS_NOBODY; n++) {
		if (comm->ranks[n].rank.rank == rank)
			found.place = n;
	}
	// Bound the probability that some rank comes last as often by chance: the number of choices
	// times the probability of each.
	for (uint32_t n = 0; n < found.last; n++)
		chance *= (double)(found.of - n) / (double)(n + 1) / (double)comm->size;
	found.late_us = median_wait_us(window, rank, true);
	found.seen_by_median = window->known->by_median;
	if (found.last * 2 < found.of || found.place == JOBS_NOBODY || chance > CHANCE_MAX ||
	    found.late_us < LATE_US_MIN ||
	    found.late_us * 100 < median_wait_us(window, rank, false) * LATE_PERCENT)
		return false;
	*ret_straggler = found;
	return true;
}

// Judge all entries, then only the newest ones, so that a rank which began to be late is named
// soon.
bool wait_history_find_straggler(
	const struct jobs_wait_history *book,
	const struct ras_merged_comm *comm,
	struct jobs_straggler *ret_straggler
) {
	const struct wait_comm *known = NULL;
	struct window window;

	for (uint32_t n = 0; n < COMMS_MAX && known == NULL; n++) {
		if (comm_has_id(&book->comms[n], comm))
			known = &book->comms[n];
	}
	if (known == NULL || known->count < ENTRIES_ENOUGH)
		return false;
	window.known = known;
	window.count = known->count;
	if (judge_window(&window, comm, ret_straggler))
		return true;
	window.count = known->count < ENTRIES_RECENT ? known->count : ENTRIES_RECENT;
	return judge_window(&window, comm, ret_straggler);
}
