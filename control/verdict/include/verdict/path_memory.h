// SPDX-License-Identifier: BSD-3-Clause
// What is remembered of one path, and what it is judged by: its own past, and its like.
//
// Pure. Fed with the outcome of single probes; tells a observation. A path to a neighbour keeps a
// mergeable histogram; one that is only looked at in turn keeps at most 256 bytes.
//
// Latency is judged by windows of the small size: each is over when it has lasted long enough and
// holds enough, so a path that is probed seldom has longer ones. The baseline is the median of the
// medians of the last PATH_PAST_WINDOWS windows, which only windows of a good path enter, and it
// rises by no more than a tenth in an hour: neither a fault nor a slow ramp teaches it. A path is
// degraded when the median of the last windows is above `ratio` x its baseline, and above its
// baseline + 6 MAD, and above `ratio` x what its like would have it be (path_like_ns()), and
// the quickest quarter above `ratio` x its baseline, too, `windows` times in a row: a machine that
// is slow as a whole blames no path, nor does one that is slow now and then. So it is when the last
// PATH_SLOW_READS reads in a row, over PATH_SLOW_NS, all were beyond `ratio` x its baseline and
// their median is slow as that of a window: it is read more often meanwhile. It is no more when as
// many windows in a row are not, or the last PATH_QUICK_READS reads in a row: of what was slow for
// windows three of four reads were.
//
// What was learnt may be carried over a restart (path_memory_learnt(), path_memory_begin()), and is
// then judged and moved as if there had been none. A baseline that no good window has confirmed for
// PATH_LEARNT_MAX_NS is forgotten, wherever it was learnt: a path that is slow for good, since it
// is another way now, is not degraded for ever.
//
// Loss is judged by size: of the outcomes of the last lossy_window_ns, at least the last four.
// silent_reads of any size unanswered in a row are silence, until the next answer to a read, and no
// loss if nothing was lost before: an outage that is over leaves nothing behind.
//
// Writes have counts and times of their own. They count as loss as reads do, since they carry what
// is large the other way; latency, silence and the counter are judged by reads alone.
//
// Of a pulse that is read the counter is looked at: it stands if it is the same in reads that lie
// standing_ns apart, all answered. A page that is torn, of another or impossible (its counter goes
// back) is evidence of nothing: the path is no worse for it, and not seen to be good by it.
#pragma once

#include <lib/histogram.h>
#include <ras/memory.h>
#include <ras/payload.h>
#include <verdict/observation.h>

// From so much of what is usual on: one and a half times is noise, twice is not, and neither is at
// the border.
#define PATH_RATIO_PERMILLE 1750
#define PATH_SIZES 4	     // 8 B, 1 KiB, the path's MTU, 64 KiB
#define PATH_PAST_WINDOWS 64 // that the baseline is made of
#define PATH_QUICK_READS 4   // below the border in a row, and a path is slow no more
#define PATH_DOUBT_READS 2   // beyond it in a row, and it is read more often
#define PATH_SLOW_READS 8    // beyond it in a row, over at least PATH_SLOW_NS: slow at once
#define PATH_SLOW_NS (4 * RAS_NS_PER_SEC)
#define PATH_LEARN_WINDOWS 4 // before there is one
#define PATH_LEARNT_MAX_NS (7 * UINT64_C(86400) * RAS_NS_PER_SEC)
#define PATH_LATENCY_MAX_NS (UINT64_C(1) << 48)
// Nothing has been read for so long: the path is unknown again, unless it is silent.
#define PATH_STALE_NS (10 * RAS_NS_PER_SEC)

struct path_memory_config {
	uint64_t window_ns;	  // 0: 5 s
	uint32_t samples_min;	  // in a window for it to be judged; 0: 4
	uint32_t ratio_permille;  // 0: PATH_RATIO_PERMILLE
	uint32_t windows;	  // 0: 2
	uint32_t silent_reads;	  // unanswered in a row: silent; 0: 2
	uint64_t standing_ns;	  // the counter unchanged over reads so far apart; 0: 1.5 s
	uint32_t lossy_permille;  // lost of a size, over lossy_window_ns; 0: 20
	uint64_t lossy_window_ns; // 0: 10 s
};

struct path_probe {
	uint64_t at_ns; // when it was begun
	uint32_t size;	// place in the sizes
	bool answered;
	bool is_read;	     // else a write
	uint64_t latency_ns; // if answered
	// Of a read of the pulse that was answered; beats 0: it was none, or torn. The small size
	// reads nothing but the counter: incarnation 0, and taken for a pulse's only once the whole
	// head was seen.
	uint64_t incarnation, beats;
};

struct path_memory;   // of a neighbour
struct compact_stats; // of one that is looked at in turn; at most 256 bytes

// -ENOMEM.
int path_memory_create(
	const struct path_memory_config *config,
	const struct ras_memory *memory,
	struct path_memory **ret_memory
);
struct path_memory *path_memory_destroy(struct path_memory *memory);
void path_memory_add(struct path_memory *memory, const struct path_probe *probe);
// We were stopped ourselves until then: what was begun before counts for nothing.
void path_memory_paused(struct path_memory *memory, uint64_t until_ns);
// The way broke with a read or write that was not answered, and there has been none since: as good
// as another such read.
void path_memory_cut_off(struct path_memory *memory);
// Another start of the peer, or another way to it: loss and counter begin anew, the past stays.
void path_memory_reopened(struct path_memory *memory, uint64_t now_ns);

// What good windows have taught.
struct path_learnt {
	uint64_t baseline_ns, baseline_mad_ns;
	uint32_t windows; // that it is made of, at most PATH_PAST_WINDOWS
	uint64_t age_ns;  // since the last of them
};
// False: there is no baseline.
bool path_memory_learnt(
	const struct path_memory *memory, uint64_t now_ns, struct path_learnt *ret_learnt
);
// A path without a baseline begins with this one. False: it has one, or this is none, or too old.
bool path_memory_begin(
	struct path_memory *memory, uint64_t now_ns, const struct path_learnt *learnt
);

// Who answers is hardware, and so are we: what is lost is sent again by the device after timeout_ns
// (of the queue pair), and the probe is answered late. Then lossy is judged by a second mode of the
// answers as well (path_resend.c). 0: it is not.
// Of that timeout: what comes later may have been sent again, since adaptive retransmission does
// not wait for all of it.
#define PATH_RESEND_EARLY_SHARE 4
void path_memory_resends(struct path_memory *memory, uint64_t timeout_ns);
// To be told before each judgement: how many per mille of its device's reads of itself were
// so late (path_memory_late()), which is what our own machine makes, and how often the port
// has sent again by its own counters.
#define PATH_RESENT_UNKNOWN UINT64_MAX
void path_memory_beside(
	struct path_memory *memory, uint64_t now_ns, uint32_t own_permille, uint64_t resent_total
);
uint32_t path_memory_late(const struct path_memory *memory, uint64_t now_ns);

// like_ns: what the path would show if it were as its like are at present, see path_like_ns(); 0:
// there are none. OBSERVATION_NO_PAIR: nothing is known (yet, or any more).
enum observation_kind
path_memory_judge(struct path_memory *memory, uint64_t now_ns, uint64_t like_ns);

// Of a lossy path, what of the sizes that it lost was not tried for longest, and not for a second:
// sizes that are rare would else tell for minutes of a loss that is over. Of one that is not, a
// large one that was lost just now. False: none.
#define PATH_RETRY_NS RAS_NS_PER_SEC
struct path_retry {
	uint32_t size; // place in the sizes
	bool is_write;
};
bool path_memory_retry(
	const struct path_memory *memory, uint64_t now_ns, struct path_retry *ret_retry
);

// Whether its last reads were not as it is judged, and more of them would tell.
bool path_memory_doubts(const struct path_memory *memory);

// When a read that finds the counter as it was would decide that it stands; RAS_NEVER: it moved
// when it was read last, or stands already.
uint64_t path_memory_confirm_at(const struct path_memory *memory);

struct path_summary {
	uint64_t count, lost;				       // since the path began
	uint64_t size_lost[PATH_SIZES], size_sent[PATH_SIZES]; // of reads; of a brief of both
	uint64_t write_lost[PATH_SIZES], write_sent[PATH_SIZES];
	// Of the small size's last answers; 0: none. The median is that of the last window.
	uint64_t min_ns, median_ns, mad_ns, p99_ns;
	uint64_t lately_ns;		       // the median of the last few; 0: not so many
	uint64_t baseline_ns, baseline_mad_ns; // 0: not learnt yet
	uint64_t last_answer_ns;	       // RAS_NEVER: none
	uint64_t last_probe_ns;		       // RAS_NEVER: none
	uint64_t advanced_ns;		       // the counter last did; RAS_NEVER: was not seen to
	enum observation_kind kind;	       // of the last judgement
	uint64_t since_ns;
	// Silent: when the first of the reads that are not answered was begun. Standing: when the
	// counter was first read as it is. Else as above.
	uint64_t turned_ns;
	uint32_t lost_permille;	   // of the sizes that are lost, lately
	uint32_t lost_bytes_place; // the smallest of them; PATH_SIZES: none
	// The smallest size that did not pass when it was tried last, or was not tried since the
	// path began; of a brief: in the last visit. PATH_SIZES: all did.
	uint32_t unproven_place;
};
void path_memory_summary(const struct path_memory *memory, struct path_summary *ret_summary);

// When what it says was seen, at now_ns at the latest. A page that was read again with the same
// counter is not good yet, so what is good is as old as the last advance. So is what is slow or
// lossy, but never older than the judgement: that may come of a read that brought no advance, and
// must not be taken for as old as the good look before it.
uint64_t path_summary_seen_ns(const struct path_summary *summary, uint64_t now_ns);

// What the last answers of each size took, at most 128 of each; `answers` 0: the times are 0.
struct path_size_times {
	uint32_t answers;
	uint64_t min_ns, median_ns, p99_ns;
};
void path_memory_times(
	const struct path_memory *memory,
	bool writes, // else reads
	struct path_size_times ret_times[static PATH_SIZES]
);
// This node's row of PATHS, but for who it is and the devices. now_ns for its age.
void path_summary_row(
	const struct path_summary *summary, uint64_t now_ns, struct ras_path_row *ret_row
);
const struct histogram *path_memory_histogram(const struct path_memory *memory);

// What path `self` of these would show if it were slowed down as the others are: its baseline times
// the median of their last medians, or of their last few reads if those are slower, by their
// baselines. 0: nobody knows, no other has learnt one.
#define PATH_LIKE_MAX 256 // others beyond are not looked at
uint64_t path_like_ns(const struct path_summary *paths, uint32_t count, uint32_t self);

size_t compact_stats_bytes(void);
void compact_stats_init(struct compact_stats *brief);
void compact_stats_add(struct compact_stats *brief, const struct path_probe *probe);
// It is probed over another pair from now on: what a loss took with the pair before says no more.
void compact_stats_opened(struct compact_stats *brief);
void compact_stats_summary(const struct compact_stats *brief, struct path_summary *ret_summary);
