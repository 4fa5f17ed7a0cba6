// SPDX-License-Identifier: BSD-3-Clause
// Programs that SIGKILL does not end. A hang in the kernel cannot be produced here. To its
// parent, a process whose tracer does not release it looks the same.
#include <control/spawn.h>
#include <lib/container.h>
#include <lib/log.h>
#include <lib/parse.h>
#include <support/cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define SEC UINT64_C(1000000000)
#define FOR_EVER (1000 * SEC)
#define HOLDERS_MAX 16

struct asker {
	struct spawn_request request;
	bool answered, stuck;
	enum spawn_end end;
	int status;
	struct spawn_stuck what;
};

static struct clock monotonic;
static struct loop *loop;
static struct spawn *spawn;
static char directory[] = "/tmp/tocsin-stuck-XXXXXX";
static char fifo[64];
static pid_t holders[HOLDERS_MAX];
static unsigned holder_count;

static int begin(void **state) {
	struct spawn_helper helper;

	(void)state;
	log_set_level(LOG_LEVEL_ERROR);
	memcpy(directory + sizeof(directory) - 7, "XXXXXX", 6);
	assert_non_null(mkdtemp(directory));
	snprintf(fifo, sizeof(fifo), "%s/fifo", directory);
	assert_int_equal(mkfifo(fifo, 0600), 0);
	assert_int_equal(setenv("FIFO", fifo, 1), 0);
	clock_init_monotonic(&monotonic);
	assert_int_equal(loop_create(&monotonic, &loop), 0);
	assert_int_equal(spawn_fork(&helper), 0);
	assert_int_equal(spawn_create(loop, &helper, &spawn), 0);
	holder_count = 0;
	return 0;
}

static void let_go(void) {
	while (holder_count > 0) {
		pid_t holder = holders[--holder_count];

		kill(holder, SIGKILL);
		waitpid(holder, NULL, 0);
	}
}

static int end(void **state) {
	(void)state;
	let_go();
	spawn = spawn_destroy(spawn);
	loop = loop_destroy(loop);
	unlink(fifo);
	return rmdir(directory);
}

static void ended(struct spawn_request *request, const struct spawn_result *result) {
	struct asker *asker = container_of(request, struct asker, request);

	asker->answered = true;
	asker->end = result->end;
	asker->status = result->status;
}

static void hangs(struct spawn_request *request, const struct spawn_stuck *stuck) {
	struct asker *asker = container_of(request, struct asker, request);

	assert_false(asker->stuck || asker->answered);
	asker->stuck = true;
	asker->what = *stuck;
}

static void run(struct asker *asker, const char *script, uint64_t timeout_ns) {
	const char *const argv[] = {"/bin/sh", "-c", script, NULL};

	*asker = (struct asker){.request = {.ended = ended, .stuck = hangs}};
	assert_int_equal(
		spawn_run(
			spawn,
			&(struct spawn_program
			){.argv = argv, .timeout_ns = timeout_ns, .output_max = 100},
			&asker->request
		),
		0
	);
}

// Stop the process whose pid a program writes into the FIFO.
static pid_t hold(void) {
	FILE *stream = fopen(fifo, "re");
	char line[32], held = 0;
	int ready[2];
	uint64_t number;
	pid_t pid;

	assert_non_null(stream);
	assert_non_null(fgets(line, sizeof(line), stream));
	assert_int_equal(fgetc(stream), EOF); // otherwise the next reader could find this writer
	fclose(stream);
	assert_int_equal(parse_u64(line, strcspn(line, "\n"), 1, INT32_MAX, NULL, &number), 0);
	pid = (pid_t)number;
	assert_int_equal(pipe(ready), 0);
	holders[holder_count] = fork();
	if (holders[holder_count] == 0) {
		char yes = ptrace(PTRACE_SEIZE, pid, NULL, NULL) == 0 ? 'y' : 'n';

		if (write(ready[1], &yes, 1) == 1)
			for (;;)
				pause();
		_exit(1);
	}
	holder_count++;
	assert_int_equal(read(ready[0], &held, 1), 1);
	close(ready[0]);
	close(ready[1]);
	if (held != 'y')
		skip(); // no permission to trace here
	return pid;
}

static void turn_until(const bool *flag) {
	while (!*flag)
		assert_int_equal(loop_turn(loop, -1), 0);
}

static void one_that_is_not_ended_by_sigkill_is_told_with_its_pid(void **state) {
	static struct asker asker;
	pid_t pid;

	(void)state;
	run(&asker, "echo $$ > $FIFO; exec sleep 1000", SEC);
	pid = hold();
	turn_until(&asker.stuck);
	assert_int_equal(asker.what.pid, pid);
	assert_int_equal(asker.what.state, 'Z'); // a process stuck for real is in state D
	assert_string_equal(asker.what.comm, "sleep");
	assert_false(asker.answered);
	assert_int_equal(spawn_counters(spawn)->stuck, 1);
	let_go();
	turn_until(&asker.answered);
	assert_int_equal(asker.end, SPAWN_TIMED_OUT);
}

static void a_child_that_is_left_behind_and_hangs_is_told_before_the_answer(void **state) {
	static struct asker asker;
	pid_t pid;

	(void)state;
	run(&asker, "sleep 1000 & echo $! > $FIFO; read line < $FIFO; exit 3", FOR_EVER);
	pid = hold();
	{
		FILE *stream = fopen(fifo, "we");

		assert_non_null(stream);
		fputs("go\n", stream);
		fclose(stream);
	}
	turn_until(&asker.stuck);
	assert_int_equal(asker.what.pid, pid);
	let_go();
	turn_until(&asker.answered);
	assert_int_equal(asker.end, SPAWN_EXITED);
	assert_int_equal(asker.status, 3);
}

static void those_that_hang_take_no_place_from_others(void **state) {
	static struct asker askers[SPAWN_RUNNING_MAX + 1], other;

	(void)state;
	for (unsigned n = 0; n < SPAWN_RUNNING_MAX; n++) {
		run(&askers[n], "echo $$ > $FIFO; exec sleep 1000", 100 * SEC);
		hold();
		spawn_cancel(&askers[n].request); // no asker waits, and the slot is still freed
	}
	run(&other, "true", FOR_EVER);
	turn_until(&other.answered);
	assert_int_equal(other.end, SPAWN_EXITED);
	assert_true(spawn_counters(spawn)->stuck > 0);
	assert_false(askers[0].stuck || askers[0].answered);
}

static void orphans_that_made_a_group_of_their_own_do_not_delay_the_answer(void **state) {
	static struct asker asker;

	(void)state;
	run(&asker, "setsid sh -c 'echo up > $FIFO; exec sleep 2' & read line < $FIFO", FOR_EVER);
	turn_until(&asker.answered);
	assert_int_equal(asker.end, SPAWN_EXITED);
	assert_false(asker.stuck);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

UNIT_GROUP(spawn_stuck) {
	const struct CMUnitTest tests[] = {
		TEST(one_that_is_not_ended_by_sigkill_is_told_with_its_pid),
		TEST(a_child_that_is_left_behind_and_hangs_is_told_before_the_answer),
		TEST(those_that_hang_take_no_place_from_others),
		TEST(orphans_that_made_a_group_of_their_own_do_not_delay_the_answer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
