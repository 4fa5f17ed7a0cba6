// SPDX-License-Identifier: BSD-3-Clause
// Reads /proc and the cgroup file system for evidence that a process is alive.
#include "jobs/host/life.h"

#include <lib/parse.h>
#include <lib/proc_stat.h>
#include <lib/scoped.h>

#include <assert.h>
#include <dirent.h>
#include <fcntl.h>
#include <jobs/report.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NS_PER_MS UINT64_C(1000000)
#define NS_PER_US UINT64_C(1000)
#define SECOND_NS UINT64_C(1000000000)
#define LOOKS (JOBS_WORK_WINDOW_NS / SECOND_NS + 1) // first and last are a window apart
#define DESCENDANTS_MAX 24
#define THREADS_MAX 48	    // threads of the process whose lists of children one look reads
#define CHILD_THREADS_MAX 2 // the same of each descendant
#define CGROUP_LEVELS_MAX 8
#define PATH_BYTES 512
#define TEXT_BYTES 4096
// An activity below this share of the observed time does not explain a long wait.
#define WORK_PERCENT 1
#define WAIT_PERCENT 10
#define DISK_PERCENT 30
#define FAULTS_MIN 10

enum life_counter {
	LIFE_OWN_NS,
	LIFE_CHILDREN_NS, // descendants, ended ones included
	LIFE_BLOCK_NS,
	LIFE_QUEUED_NS, // main thread: ready to run, without a processor
	LIFE_THROTTLED_NS,
	LIFE_FAULTS,
	LIFE_SWITCHES, // main thread
	LIFE_COUNTERS,
};

struct life_sample {
	uint64_t at_ns;
	uint64_t values[LIFE_COUNTERS];
	bool is_on_disk; // in uninterruptible sleep
};

struct life_child {
	pid_t pid;
	uint64_t start_time, cpu_ns;
	char name[RAS_COMM_NAME_BYTES];
};

struct life {
	struct life_sample samples[LOOKS];
	uint32_t looks;
	uint8_t unread; // JOBS_SOURCE_* of the last look
	bool is_frozen;
	// Descendants at the last look, and the last one that used most processor time between two
	// looks; pid 0: it has ended, or none used any.
	struct life_child children[DESCENDANTS_MAX];
	uint32_t child_count;
	struct life_child busiest;
	uint32_t next_thread;	// number of the thread with which the next look begins
	bool threads_are_known; // each thread has been looked at
};

// State of one look.
struct look {
	struct life *life;
	struct life_sample *sample;
	const char *proc, *cgroup;
	pid_t pid;
	struct life_child children[DESCENDANTS_MAX];
	uint32_t child_count;
};

struct life *life_create(void) {
	return calloc(1, sizeof(struct life));
}

struct life *life_destroy(struct life *life) {
	free(life);
	return NULL;
}

// Returns false if the file cannot be read.
static bool read_file(const char *path, char text[static TEXT_BYTES]) {
	scoped_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t length = fd >= 0 ? read(fd, text, TEXT_BYTES - 1) : -1;

	text[length > 0 ? length : 0] = '\0';
	return length >= 0;
}

static bool read_own_file(const struct look *look, const char *name, char text[static TEXT_BYTES]) {
	char path[PATH_BYTES];

	snprintf(path, sizeof(path), "%s/%d/%s", look->proc, look->pid, name);
	return read_file(path, text);
}

// Find the number after a word that begins a line. Returns false if there is none.
static bool find_number(const char *text, const char *word, uint64_t *ret_number) {
	size_t length = strlen(word);

	for (const char *line = text; line != NULL;) {
		const char *at = line + length;

		if (strncmp(line, word, length) == 0 && (*at == ' ' || *at == '\t')) {
			at += strspn(at, " \t");
			return parse_u64(
				       at, strcspn(at, " \t\n"), 0, UINT64_MAX, NULL, ret_number
			       ) == 0;
		}
		line = strchr(line, '\n');
		line = line != NULL ? line + 1 : NULL;
	}
	return false;
}

static void look_at_process(struct look *look) {
	uint64_t *values = look->sample->values, voluntary, forced;
	char path[PATH_BYTES], text[TEXT_BYTES];
	const char *queued;
	struct proc_stat stat;

	if (proc_stat_read_under(look->proc, look->pid, &stat) == 0) {
		values[LIFE_OWN_NS] = stat.cpu_ns;
		values[LIFE_CHILDREN_NS] = stat.reaped_cpu_ns;
		values[LIFE_BLOCK_NS] = stat.block_wait_ns;
		values[LIFE_FAULTS] = stat.major_faults;
		look->sample->is_on_disk = stat.state == 'D';
	} else {
		look->life->unread |= JOBS_SOURCE_STAT;
	}
	// Three numbers: time on a processor, time in a queue, and the number of time slices.
	if (!read_own_file(look, "schedstat", text) || (queued = strchr(text, ' ')) == NULL ||
	    parse_u64(
		    queued + 1, strcspn(queued + 1, " \n"), 0, UINT64_MAX, NULL,
		    &values[LIFE_QUEUED_NS]
	    ) != 0)
		look->life->unread |= JOBS_SOURCE_SCHEDSTAT;
	if (read_own_file(look, "status", text) &&
	    find_number(text, "voluntary_ctxt_switches:", &voluntary) &&
	    find_number(text, "nonvoluntary_ctxt_switches:", &forced))
		values[LIFE_SWITCHES] = voluntary + forced;
	else
		look->life->unread |= JOBS_SOURCE_STATUS;
	snprintf(path, sizeof(path), "%s/sys/kernel/task_delayacct", look->proc);
	if (read_file(path, text) && text[0] == '0')
		look->life->unread |= JOBS_SOURCE_BLOCK_IO;
}

// Add a descendant, unless it is listed or began at another time (0: unknown). Returns false if the
// list is full.
static bool add_descendant(struct look *look, pid_t pid, uint64_t start_time) {
	struct life_child *child = &look->children[look->child_count];
	struct proc_stat stat;

	for (uint32_t n = 0; n < look->child_count; n++)
		if (look->children[n].pid == pid)
			return true;
	if (look->child_count == DESCENDANTS_MAX)
		return false;
	if (proc_stat_read_under(look->proc, pid, &stat) != 0 ||
	    (start_time != 0 && stat.start_time != start_time))
		return true;
	*child = (struct life_child){
		.pid = pid,
		.start_time = stat.start_time,
		.cpu_ns = stat.cpu_ns + stat.reaped_cpu_ns,
	};
	static_assert(sizeof(child->name) == sizeof(stat.comm), "a name fits");
	memcpy(child->name, stat.comm, sizeof(child->name));
	look->child_count++;
	return true;
}

static void add_children(struct look *look, const char *text) {
	for (size_t length = strcspn(text, " \n"); length > 0; length = strcspn(text, " \n")) {
		uint64_t pid;
		int err = parse_u64(text, length, 1, INT32_MAX, NULL, &pid);

		text += length;
		text += strspn(text, " \n");
		if (err == 0 && !add_descendant(look, (pid_t)pid, 0)) {
			look->life->unread |= JOBS_SOURCE_CHILDREN;
			return;
		}
	}
}

// Each thread has a list of the children that it started. Read those of the main thread and of the
// threads from number `first` on. Returns the number of the first thread that was left out, or 0.
static uint32_t look_at_children_of(struct look *look, pid_t pid, uint32_t first) {
	uint32_t left = pid == look->pid ? THREADS_MAX : CHILD_THREADS_MAX;
	char path[PATH_BYTES], text[TEXT_BYTES];
	uint32_t number = 0, after = 0;
	const struct dirent *entry;
	scoped_dir DIR *threads = NULL;
	bool is_read = false;

	snprintf(path, sizeof(path), "%s/%d/task", look->proc, pid);
	threads = opendir(path);
	// NOLINTNEXTLINE(concurrency-mt-unsafe): the stream is local
	for (; threads != NULL && after == 0 && (entry = readdir(threads)) != NULL; number++) {
		if (entry->d_name[0] == '.')
			number--;
		if (entry->d_name[0] == '.' || (number > 0 && number < first))
			continue;
		if (left-- == 0) {
			after = number;
			continue;
		}
		snprintf(
			path, sizeof(path), "%s/%d/task/%.16s/children", look->proc, pid,
			entry->d_name
		);
		if (!read_file(path, text))
			continue; // the thread ended, or the kernel has no such lists
		is_read = true;
		if (strlen(text) == TEXT_BYTES - 1)
			look->life->unread |= JOBS_SOURCE_CHILDREN;
		add_children(look, text);
	}
	if (!is_read && pid == look->pid)
		look->life->unread |= JOBS_SOURCE_CHILDREN;
	return after;
}

// Find the descendants. Those of the last look are kept if they live: the threads that started them
// may not be looked at this time, since a process may have hundreds of threads.
static void find_descendants(struct look *look) {
	struct life *life = look->life;

	for (uint32_t n = 0; n < life->child_count; n++)
		(void)add_descendant(look, life->children[n].pid, life->children[n].start_time);
	life->next_thread = look_at_children_of(look, look->pid, life->next_thread);
	life->threads_are_known = life->threads_are_known || life->next_thread == 0;
	if (!life->threads_are_known)
		life->unread |= JOBS_SOURCE_CHILDREN;
	for (uint32_t n = 0; n < look->child_count; n++)
		if (look_at_children_of(look, look->children[n].pid, 0) != 0)
			life->unread |= JOBS_SOURCE_CHILDREN;
}

// Return the processor time of a child since the last look; its whole time if it is new.
static uint64_t child_time_since(const struct life *life, const struct life_child *child) {
	for (uint32_t n = 0; n < life->child_count; n++)
		if (life->children[n].pid == child->pid &&
		    life->children[n].start_time == child->start_time)
			return child->cpu_ns > life->children[n].cpu_ns
				       ? child->cpu_ns - life->children[n].cpu_ns
				       : 0;
	return life->looks > 0 ? child->cpu_ns : 0;
}

// Time moves from a child to its parent when the child is reaped, so the sum only grows.
static void look_at_descendants(struct look *look) {
	struct life *life = look->life;
	uint64_t most_ns = 0;
	bool is_left = false; // the busiest one so far lives

	find_descendants(look);
	for (uint32_t n = 0; n < look->child_count; n++) {
		uint64_t since_ns = child_time_since(life, &look->children[n]);

		look->sample->values[LIFE_CHILDREN_NS] += look->children[n].cpu_ns;
		is_left = is_left || life->busiest.pid == look->children[n].pid;
		if (since_ns <= most_ns)
			continue;
		most_ns = since_ns;
		life->busiest = look->children[n];
		is_left = true;
	}
	if (!is_left)
		life->busiest = (struct life_child){0};
	memcpy(life->children, look->children, sizeof(life->children));
	life->child_count = look->child_count;
}

// Copy the path of the process in the hierarchy with this controller ("": version 2). Returns false
// if there is none. A path with ".." is outside of the agent's namespace.
static bool
find_cgroup_path(const char *text, const char *controller, char ret_path[static PATH_BYTES]) {
	size_t length = strlen(controller);

	for (const char *line = text; line != NULL && *line != '\0';) {
		const char *list = strchr(line, ':');
		const char *path = list != NULL ? strchr(list + 1, ':') : NULL;
		const char *end = strchrnul(line, '\n');

		if (path == NULL || path > end)
			return false;
		for (const char *at = list + 1; at <= path;) {
			size_t word = strcspn(at, ",:");

			if (word == length && strncmp(at, controller, length) == 0 &&
			    (length > 0 || path == list + 1) && end - path < PATH_BYTES / 2) {
				snprintf(
					ret_path, PATH_BYTES, "%.*s", (int)(end - path - 1),
					path + 1
				);
				return ret_path[0] == '/' && strstr(ret_path, "/..") == NULL;
			}
			at += word + 1;
		}
		line = *end == '\n' ? end + 1 : NULL;
	}
	return false;
}

// Read a file of a cgroup below the first mount point that has it.
static bool read_cgroup_file(
	const struct look *look,
	const char *const mounts[2],
	const char *directory,
	const char *name,
	char text[static TEXT_BYTES]
) {
	char path[2 * PATH_BYTES];

	for (int n = 0; n < 2; n++) {
		snprintf(path, sizeof(path), "%s%s%s/%s", look->cgroup, mounts[n], directory, name);
		if (read_file(path, text))
			return true;
	}
	return false;
}

static const char *const unified_mounts[2] = {"", "/unified"};

// A quota may belong to the cgroup or to any above it, so add up the times of all levels.
static void look_at_quota(struct look *look, const char *groups) {
	static const char *const cpu_mounts[2] = {"/cpu", "/cpu,cpuacct"};
	uint64_t *total = &look->sample->values[LIFE_THROTTLED_NS], number;
	const char *const *mounts = cpu_mounts;
	char path[PATH_BYTES], text[TEXT_BYTES];

	if (!find_cgroup_path(groups, "cpu", path)) {
		mounts = unified_mounts;
		if (!find_cgroup_path(groups, "", path)) {
			look->life->unread |= JOBS_SOURCE_QUOTA;
			return;
		}
	}
	for (uint32_t level = 0; path[0] == '/' && path[1] != '\0' && level < CGROUP_LEVELS_MAX;
	     level++) {
		if (!read_cgroup_file(look, mounts, path, "cpu.stat", text))
			look->life->unread |= JOBS_SOURCE_QUOTA;
		else if (find_number(text, "throttled_usec", &number))
			*total += number * NS_PER_US;
		else if (find_number(text, "throttled_time", &number)) // version 1: ns
			*total += number;
		*strrchr(path, '/') = '\0';
	}
}

// Both files also show that a cgroup above is frozen.
static void look_at_freezer(struct look *look, const char *groups) {
	static const char *const freezer_mounts[2] = {"/freezer", "/freezer"};
	char path[PATH_BYTES], text[TEXT_BYTES];
	bool is_read = false;
	uint64_t frozen;

	if (find_cgroup_path(groups, "freezer", path)) {
		is_read = path[1] == '\0' ||
			  read_cgroup_file(look, freezer_mounts, path, "freezer.state", text);
		look->life->is_frozen = is_read && path[1] != '\0' &&
					strncmp(text, "FROZEN", strlen("FROZEN")) == 0;
	}
	if (find_cgroup_path(groups, "", path)) {
		bool is_root = path[1] == '\0';

		if (!is_root &&
		    read_cgroup_file(look, unified_mounts, path, "cgroup.events", text)) {
			is_read = true;
			if (find_number(text, "frozen", &frozen) && frozen == 1)
				look->life->is_frozen = true;
		}
		is_read = is_read || is_root;
	}
	if (!is_read)
		look->life->unread |= JOBS_SOURCE_FREEZER;
}

static void
init_look(struct look *look, struct life *life, const struct life_roots *roots, pid_t pid) {
	memset(look, 0, sizeof(*look));
	look->life = life;
	look->sample = &life->samples[life->looks % LOOKS];
	look->proc = roots->proc != NULL ? roots->proc : "/proc";
	look->cgroup = roots->cgroup != NULL ? roots->cgroup : "/sys/fs/cgroup";
	look->pid = pid;
	life->unread = 0;
	life->is_frozen = false;
}

void life_look(struct life *life, const struct life_roots *roots, pid_t pid, uint64_t now_ns) {
	char groups[TEXT_BYTES];
	struct look look;

	init_look(&look, life, roots, pid);
	*look.sample = (struct life_sample){.at_ns = now_ns};
	look_at_process(&look);
	look_at_descendants(&look);
	if (read_own_file(&look, "cgroup", groups)) {
		look_at_quota(&look, groups);
		look_at_freezer(&look, groups);
	} else {
		life->unread |= JOBS_SOURCE_QUOTA | JOBS_SOURCE_FREEZER;
	}
	life->looks++;
}

void life_look_at_freezer(struct life *life, const struct life_roots *roots, pid_t pid) {
	char groups[TEXT_BYTES];
	struct look look;

	init_look(&look, life, roots, pid);
	life->looks = 0;
	if (read_own_file(&look, "cgroup", groups))
		look_at_freezer(&look, groups);
}

bool life_is_frozen(const struct life *life) {
	return life->is_frozen;
}

static uint32_t percent_of(uint64_t part, uint64_t whole) {
	return part < whole ? (uint32_t)(part * 100 / whole) : 100;
}

// Decide by the first value that explains a wait. `growth` holds the growth of each value.
static void classify_growth(
	const struct life *life,
	const uint64_t growth[static LIFE_COUNTERS],
	uint32_t disk_percent,
	struct ras_comm_doing *doing
) {
	const uint64_t span_ns = doing->span_ms * NS_PER_MS;
	uint32_t throttled = percent_of(growth[LIFE_THROTTLED_NS], span_ns);
	uint32_t queued = percent_of(growth[LIFE_QUEUED_NS], span_ns);

	if (percent_of(growth[LIFE_OWN_NS], span_ns) >= WORK_PERCENT) {
		doing->activity = JOBS_DOES_COMPUTE;
	} else if (percent_of(growth[LIFE_CHILDREN_NS], span_ns) >= WORK_PERCENT) {
		doing->activity = JOBS_DOES_CHILD;
		doing->amount = (uint32_t)life->busiest.pid;
		memcpy(doing->name, life->busiest.name, sizeof(doing->name));
	} else if (throttled >= WAIT_PERCENT) {
		doing->activity = JOBS_DOES_THROTTLE;
		doing->amount = throttled;
	} else if (disk_percent >= DISK_PERCENT) {
		doing->activity = JOBS_DOES_DISK;
		doing->amount = disk_percent;
	} else if (growth[LIFE_FAULTS] >= FAULTS_MIN) {
		doing->activity = JOBS_DOES_PAGE;
		doing->amount = growth[LIFE_FAULTS] < UINT32_MAX ? (uint32_t)growth[LIFE_FAULTS]
								 : UINT32_MAX;
	} else if (queued >= WAIT_PERCENT) {
		doing->activity = JOBS_DOES_QUEUE;
		doing->amount = queued;
	} else {
		doing->activity = JOBS_DOES_NOTHING;
		doing->amount = growth[LIFE_SWITCHES] < UINT32_MAX ? (uint32_t)growth[LIFE_SWITCHES]
								   : UINT32_MAX;
	}
}

void life_summarise(const struct life *life, struct ras_comm_doing *ret_doing) {
	uint32_t count = life->looks < LOOKS ? life->looks : (uint32_t)LOOKS;
	const struct life_sample *newest, *oldest;
	struct ras_comm_doing doing = {.unread = life->unread};
	uint64_t growth[LIFE_COUNTERS];
	uint32_t on_disk = 0, by_time;

	*ret_doing = doing;
	if (count < 2 || (life->unread & JOBS_SOURCE_STAT) != 0)
		return;
	newest = &life->samples[(life->looks - 1) % LOOKS];
	oldest = &life->samples[(life->looks - count) % LOOKS];
	doing.span_ms = (uint32_t)((newest->at_ns - oldest->at_ns) / NS_PER_MS);
	if (doing.span_ms == 0)
		return;
	for (uint32_t n = 0; n < LIFE_COUNTERS; n++)
		growth[n] = newest->values[n] > oldest->values[n]
				    ? newest->values[n] - oldest->values[n]
				    : 0;
	for (uint32_t n = 0; n < count; n++)
		on_disk += life->samples[n].is_on_disk;
	on_disk = on_disk * 100 / count;
	by_time = percent_of(growth[LIFE_BLOCK_NS], doing.span_ms * NS_PER_MS);
	classify_growth(life, growth, on_disk > by_time ? on_disk : by_time, &doing);
	*ret_doing = doing;
}
