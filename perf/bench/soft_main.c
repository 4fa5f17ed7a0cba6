// SPDX-License-Identifier: BSD-3-Clause
// tocsin-soft-bench [--rxe] [--json] [TEXT]
//
// The two contenders of a row alternate. A slice gives one value of each, and their ratio. Printed
// are the medians over the slices, and the interval of the judged value.
#include "soft_rows.h"

#include <lib/must.h>

#include <getopt.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define STAGES_PROGRAM "tocsin-soft-stages"

struct options {
	const struct soft_rows *rows;
	bool json;
	const char *text; // text in the name of the selected rows; NULL: all
};

static const char help[] =
	"usage: tocsin-soft-bench [--rxe] [--json] [TEXT]\n"
	"\n"
	"The software device beside what the same packets cost without it: all rows, or those that\n"
	"have TEXT in their name. Needs no privileges; what it cannot have here, a row says.\n"
	"\n"
	"  --json   one object, {\"bench\": ..., \"rows\": [...]}\n"
	"  --rxe    beside the kernel's Soft-RoCE devices rxe0 and rxe1, as `./dev bench soft-rxe`\n"
	"           does in a guest; these are on the ends of a veth pair. So is the software device,\n"
	"           on the udp wire and on af_packet, between two network namespaces; memif is\n"
	"           shared memory\n"
	"\n"
	"A contender is two processes, on two cores. In each of 9 slices both contenders of a row\n"
	"play once, in turn. Shown are the medians of their values and of their ratio, and the\n"
	"second and eighth of the nine values that are judged; a target is missed if that whole\n"
	"interval misses it.\n"
	"\n"
	"  polling    both programs call ibv_poll_cq() until the answer is there\n"
	"  on memory  both look at the memory that the peer writes to, as ib_write_lat does: the\n"
	"             data is brought by the device's own thread, which has to be woken\n"
	"  both spin on one core\n"
	"             both programs poll where only one of them can run: the device yields the\n"
	"             processor after polls in vain, and a round costs switches, not time slices\n"
	"  veth       DPDK's af_packet on the ends of a veth pair, each in a network namespace of\n"
	"             its own, which the bench makes (root, or unprivileged user namespaces; ip)\n"
	"  one core   one thread with two devices, pinned to one core with all that they have: it\n"
	"             writes from one to the other, so that each packet is built, sent, received,\n"
	"             checked and executed there. Packets a second of its CPU time (acknowledgements\n"
	"             are packets too), beside as many packets between two plain sockets\n"
	"  cycles     of these, the processor's counter per packet and stage:\n"
	"               receive    the wire's, with the system call\n"
	"               check      headers and ICRC of what came\n"
	"               transport  sequence, windows, timers, completions; data put in place\n"
	"               build      headers, data and ICRC of what goes out\n"
	"               send       the wire's, with the system call and, on loopback, the kernel's\n"
	"                          way to the other socket\n"
	"               verbs      the calls of the program, lock, queues\n"
	"               rest       what is left of the CPU time: the program's loop, other threads\n"
	"             by a program of its own (" STAGES_PROGRAM "), the same code linked with\n"
	"             counters between its stages, whose cost is taken off; no other has them\n"
	"\n"
	"Exit status: 0; 1 if a target is missed or a row could not be measured; 2 for wrong usage.\n";

static int measure_slices(
	const struct soft_row *row,
	struct soft_pair *pair,
	struct soft_pair *beside,
	struct soft_slices *slices,
	struct soft_why *why
) {
	double *value = NULL, warm_up;
	int err = soft_pair_play(pair, &row->order, &warm_up, why);

	if (err == 0 && beside != NULL)
		err = soft_pair_play(beside, &row->beside_order, &warm_up, why);
	for (uint32_t n = 0; n < SOFT_SLICES && err == 0; n++) {
		value = &slices->values[n];
		err = soft_pair_play(pair, &row->order, value, why);
		*value *= row->scale;
		if (beside == NULL || err != 0)
			continue;
		value = &slices->yardsticks[n];
		err = soft_pair_play(beside, &row->beside_order, value, why);
		*value *= row->scale;
	}
	return err;
}

static json_t *row_measure(const struct soft_row *row) {
	struct soft_slices slices = {0};
	struct soft_pair pair, beside;
	struct soft_why why = {0};

	if (soft_pair_start(row->setup, &pair, &why) != 0)
		return soft_table_missing(&row->head, why.text);
	if (row->beside == NULL) {
		(void)measure_slices(row, &pair, NULL, &slices, &why);
	} else if (soft_pair_start(row->beside, &beside, &why) == 0) {
		(void)measure_slices(row, &pair, &beside, &slices, &why);
		soft_pair_stop(&beside);
	}
	soft_pair_stop(&pair);
	if (why.text[0] != '\0')
		return soft_table_missing(&row->head, why.text);
	return soft_table_row(&row->head, &slices);
}

// Print the row and append it to rows; takes ownership of the row.
static bool row_output(const struct options *options, json_t *rows, json_t *row) {
	bool ok = soft_table_ok(row);

	if (!options->json)
		soft_table_print(row);
	json_array_append_new(rows, row);
	return ok;
}

static bool run_rows(const struct options *options, json_t *rows) {
	bool ok = true;

	for (uint32_t n = 0; n < options->rows->count; n++) {
		const struct soft_row *row = &options->rows->rows[n];

		if (options->text == NULL || strstr(row->head.what, options->text) != NULL)
			ok &= row_output(options, rows, row_measure(row));
	}
	return ok;
}

// Run the program beside this one, and return the rows that it printed.
static json_t *run_stages_program(const char *text) {
	const char *words[] = {NULL, text, NULL};
	char path[PATH_MAX], *name;
	ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - sizeof(STAGES_PROGRAM));
	int out = memfd_create("stages", MFD_CLOEXEC);
	json_t *found = NULL;

	if (length > 0 && out >= 0) {
		path[length] = '\0';
		name = strrchr(path, '/') + 1;
		snprintf(name, sizeof(path) - (size_t)(name - path), "%s", STAGES_PROGRAM);
		words[0] = path;
		if (soft_program_run(words, STDIN_FILENO, out) == 0 && lseek(out, 0, SEEK_SET) == 0)
			found = json_loadfd(out, 0, NULL);
	}
	if (out >= 0)
		close(out);
	return found;
}

static bool run_stages(const struct options *options, json_t *rows) {
	static const struct soft_head lost = {.what = "udp: one core", .unit = "M/s"};
	json_t *found = run_stages_program(options->text), *row;
	bool ok = true;
	size_t n;

	if (found == NULL)
		return row_output(
			options, rows,
			soft_table_missing(&lost, STAGES_PROGRAM " is not there, or failed")
		);
	json_array_foreach(found, n, row) {
		ok &= row_output(options, rows, json_incref(row));
	}
	json_decref(found);
	return ok;
}

static int bench_run(const struct options *options) {
	json_t *rows = json_array(), *object;
	bool ok;

	if (!options->json)
		soft_table_print_head();
	ok = run_rows(options, rows);
	if (options->rows == &soft_rows_plain)
		ok &= run_stages(options, rows);
	if (json_array_size(rows) == 0) {
		fprintf(stderr, "soft bench: no row has '%s' in its name\n", options->text);
		json_decref(rows);
		return 2;
	}
	object = json_pack("{s:s s:o}", "bench", options->rows->bench, "rows", rows);
	must(object != NULL);
	if (options->json) {
		ok &= json_dumpf(object, stdout, JSON_REAL_PRECISION(6)) == 0;
		printf("\n");
	}
	json_decref(object);
	return ok ? 0 : 1;
}

int main(int argc, char **argv) {
	static const struct option known[] = {
		{"help", no_argument, NULL, 'h'},
		{"json", no_argument, NULL, 'j'},
		{"rxe", no_argument, NULL, 'r'},
		{0},
	};
	struct options options = {.rows = &soft_rows_plain};
	int option;

	// NOLINTNEXTLINE(concurrency-mt-unsafe): there is one thread
	while ((option = getopt_long(argc, argv, "h", known, NULL)) != -1) {
		if (option == 'h') {
			fputs(help, stdout);
			return 0;
		}
		if (option == '?') {
			fputs("usage: tocsin-soft-bench [--rxe] [--json] [TEXT]\n", stderr);
			return 2;
		}
		options.json |= option == 'j';
		if (option == 'r')
			options.rows = &soft_rows_rxe;
	}
	if (argc - optind > 1) {
		fputs("usage: tocsin-soft-bench [--rxe] [--json] [TEXT]\n", stderr);
		return 2;
	}
	options.text = argv[optind];
	signal(SIGPIPE, SIG_IGN); // an exited side is reported by the failing call
	soft_rows_prepare();
	return bench_run(&options);
}
