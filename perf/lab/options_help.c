// SPDX-License-Identifier: BSD-3-Clause
// The text of --help: all of it, or what is of one command.
#include "options.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum command {
	LAT = 0x1,
	BW = 0x2,
	MESH = 0x4,
	NET = 0x8,
	POLICY = 0x10,
	COMPARE = 0x20,
	HISTORY = 0x40,
	VERIFY = 0x80,
	PAIR = LAT | BW, // two ends
	PAIRS = LAT | BW | MESH,
	KEPT = COMPARE | HISTORY | VERIFY, // looks at files
	EACH = PAIRS | NET | POLICY | KEPT,
};

static const struct {
	const char *name;
	uint32_t bit;
} commands[] = {
	{"lat", LAT},	    {"bw", BW},		  {"mesh", MESH},	{"net", NET},
	{"policy", POLICY}, {"compare", COMPARE}, {"history", HISTORY}, {"verify", VERIFY},
};

// In the order in which all of it is printed; each row is of one or more commands.
static const struct row {
	uint32_t of;
	const char *text;
} usages[] = {
	{PAIR, "tocsin-perf lat|bw [OPTION]... [HOST]"},
	{LAT, "tocsin-perf lat --via-agent NODE [OPTION]..."},
	{MESH, "tocsin-perf mesh [--local N|--agents] [--html FILE] [OPTION]..."},
	{NET, "tocsin-perf net [--duration TIME] [--json FILE]"},
	{POLICY, "tocsin-perf policy [--rates LIST] [--html FILE] [OPTION]... [HOST]"},
	{COMPARE,
	 "tocsin-perf compare A.json... --with B.json... [--margin PERCENT] [--html FILE]"},
	{HISTORY, "tocsin-perf history DIRECTORY [--margin PERCENT] [--html FILE]"},
	{VERIFY, "tocsin-perf verify FILE [--html FILE] [--svg FILE]"},
};

static const struct row rows[] = {
	{PAIR,
	 "\n"
	 "lat measures the latency of RDMA operations between two ends, bw how many they move\n"
	 "with many under way at once. Without HOST it waits for one client, and serves it; with\n"
	 "HOST it is that client, and prints what it measured. Without a word about devices each\n"
	 "end takes the best there is, else the software device.\n"},
	{MESH,
	 "\n"
	 "mesh measures the latency between all pairs of several processes, which srun or mpirun\n"
	 "starts, or itself on one machine, and says what stands out: a node, racks, rails.\n"},
	{NET,
	 "\n"
	 "net measures the floors of this machine, without any device: clock, system call, cache\n"
	 "line, wake-up, UDP, memif; for --duration each (300ms by default). lat and bw print the\n"
	 "least of a few beside results, but for memif.\n"},
	{POLICY,
	 "\n"
	 "policy plays lat with every policy of waiting under every load, and puts latency beside\n"
	 "the processor time of both workers. Without HOST both ends are its own.\n"},
	{COMPARE,
	 "\n"
	 "compare says whether the runs of B are slower than those of A, or faster, or the same\n"
	 "within the margin (2% of A by default). Each file is a run; it needs some of each side.\n"},
	{HISTORY,
	 "\n"
	 "history says since which run of a directory something is slower or faster, of results\n"
	 "of the same plan, machines and devices, in the order in which they began.\n"},
	{VERIFY,
	 "\n"
	 "verify computes every figure of a file that --json wrote once more, from what it keeps.\n"},
	{KEPT, "Where --html asks for one, a page of it is drawn, too.\n"},

	{PAIRS | POLICY,
	 "\nWhat is measured (the client decides; what the server is given must be the same):\n"},
	{PAIRS | POLICY,
	 "  --op OP              read (default; of policy send), write, send, write-imm, cas, fadd;\n"
	 "                       of write, send and write-imm the peer answers each, and half of the\n"
	 "                       round trip is one way\n"},
	{PAIR,
	 "  --size LIST          bytes: 64 (default), 2,64,4KiB; all: powers of two up to 8 MiB\n"},
	{MESH | POLICY, "  --size N             of mesh and policy, bytes: 64 by default\n"},
	{PAIR, "  --iterations N       samples of each size; 20000 by default\n"
	       "  --duration TIME      in place of these: for so long, as 5s\n"},
	{MESH, "  --iterations N       of mesh, samples of each direction; 1000 by default\n"},
	{POLICY, "  --duration TIME      of policy, of each run; 1s by default\n"},
	{PAIRS,
	 "  --policy POLICY      how both ends wait: spin (default), window, event, adaptive\n"},
	{PAIR,
	 "  --inline BYTES       messages of write, send and write-imm that go within the work\n"
	 "                       request: up to so many bytes, 0 to 1024; 64 by default, if the\n"
	 "                       device takes as many\n"},
	{LAT,
	 "  --gap TIME           from the end of an operation to the next one; in no sample\n"
	 "  --arrivals WHEN      closed (default): the next one when the one before has ended. An\n"
	 "                       open loop: constant, poisson, onoff (bursts of 8) at --rate,\n"
	 "                       trace:FILE\n"
	 "  --rate N             operations a second of an open loop\n"
	 "  --seed N             of poisson and onoff; 1 by default\n"
	 "  --device-time[=WHICH] by the device's time stamps, what of each operation was the\n"
	 "                       device's and the network's, and what the host's; WHICH clock: raw\n"
	 "                       (default), wall\n"},
	{POLICY, "  --rates LIST         loads: closed, or operations a second (by Poisson);\n"
		 "                       closed,100,1000,5000 by default, at most 8\n"},
	{BW,
	 "Of bw: 64 KiB for 2s of each size by default, and --iterations are messages. Not for it\n"
	 "are --gap, --arrivals, --rate, --seed, --device-time and --hgrm:\n"
	 "  --depth N            operations under way on each queue pair; 64 by default\n"
	 "  --queue-pairs N      1 by default\n"
	 "  --bidirectional      the server sends as the client does\n"},
	{LAT | MESH,
	 "Through running agents, whose workers read their pages beside their probes (reads alone):\n"},
	{LAT,
	 "  lat --via-agent NODE  the agent of this machine reads the page of NODE; no HOST, no\n"
	 "                       server. --size to 64 KiB, --iterations to 65520; all else is the\n"
	 "                       agent's own\n"},
	{MESH,
	 "  mesh --agents        each node that is alive reads each other one, a pair at a time\n"},
	{LAT | MESH,
	 "  --agent SOCKET       of the agent that is asked; by default as tocsin finds it\n"},
	{MESH,
	 "How the processes of a mesh start and meet:\n"
	 "  --local N            N processes of this machine, started by itself\n"
	 "  --rendezvous WHERE   where process 0 is: HOST[:PORT], port 18521 by default, or\n"
	 "                       file:PATH of a file that all see; by default the first node of\n"
	 "                       Slurm's step\n"
	 "  --rank R --ranks N   this is process R of N, for other launchers\n"
	 "  --hosts LIST         print the commands that start it by ssh on node[1-4], and end\n"
	 "  --at-once N          pairs at most; by default as many as processors allow\n"},

	{PAIRS | POLICY, "\nWhere (each end for itself):\n"
			 "  --device NAME        an RDMA device, or soft\n"},
	{PAIRS,
	 "  --ib-port N, --gid-index N, --mtu BYTES, --traffic-class N, --service-level N\n"},
	{PAIRS | POLICY,
	 "  --timeout N          of a packet without an answer, 4.096 us * 2^N; 14 (67 ms) by default\n"},
	{PAIRS, "  --retry N            how often it is sent again, 0 to 7; 6 by default\n"},
	{PAIR, "  --cores N            the processor that polls\n"
	       "  --priority N         a real-time priority (SCHED_FIFO, 1 to 99) for what polls\n"
	       "  --memory WHERE       of messages: host (default), numa:N, gpu, gpu:N\n"},
	{PAIRS | POLICY, "  --port N             of the control connection; 18520 by default\n"},
	{PAIR, "  --listen ADDRESS     the server's; all by default\n"},

	{NET, "\n  --duration TIME      of net, for each floor; 300ms by default\n"},
	{EACH, "\nResults (of two ends the client's):\n"},
	{LAT,
	 "  --fail-if WHAT       p99>10us, half.p50>2us, service.p99>1ms, max>1ms, min, mean\n"},
	{BW,
	 "  --fail-if WHAT       of bw a rate: p50<90Gbit/s, mean<11GB/s, min<1.5M/s (messages)\n"},
	{PAIR,
	 "                       > or <, again and again. Exit status 1 if the whole interval lies\n"
	 "                       beyond, 3 if a part of it does\n"},
	{PAIRS | NET | POLICY,
	 "  --json FILE          all of it, for verify; - is standard output, in place of the table\n"},
	{PAIR,
	 "  --json-bytes SIZE    of that file, at most, up to 4MiB (default); what is kept of\n"
	 "                       samples is thinned out for it\n"},
	{PAIRS, "  --csv FILE           a line for each figure\n"},
	{LAT, "  --hgrm FILE          percentiles as HdrHistogram prints them\n"},
	{PAIRS | POLICY | KEPT,
	 "  --html FILE          a page with pictures, one file that needs no network\n"},
	{MESH | VERIFY, "  --svg FILE           the matrix of a mesh as a picture of its own\n"},
	{PAIR,
	 "  --perftest           the columns of perftest in place of the table\n"
	 "  --runs K             K runs, each of new processes at both ends: what compare takes.\n"
	 "                       --json r.json writes r.1.json, r.2.json and so on\n"
	 "  --against 'OPTIONS'  runs with these options as well, in turn (A B B A ...), then\n"
	 "                       compared; r.a1.json, r.b1.json\n"
	 "  --run N/K            this is one of K runs: the server begins anew for the next. Of a\n"
	 "                       server: it waits a minute for this one\n"},
	{COMPARE, "  --with FILE...       the runs of B\n"},
	{PAIR | COMPARE | HISTORY,
	 "  --margin PERCENT     no change means: within so much; 2% by default\n"},
	{EACH, "  --help, --version, -V\n"},

	{EACH,
	 "\n"
	 "Exit status: 0 done, 1 a threshold fails, B or the newest runs are slower, or a figure\n"
	 "differs, 2 a mistake in an option, 3 a threshold, a comparison or a history is\n"
	 "undecided, 4 the run failed; what was measured by then is printed.\n"},
};

static uint32_t bits_of(const char *command) {
	for (size_t n = 0; n < sizeof(commands) / sizeof(commands[0]); n++) {
		if (command != NULL && strcmp(commands[n].name, command) == 0)
			return commands[n].bit;
	}
	return EACH;
}

void options_print_help(const char *command) {
	uint32_t asked = bits_of(command);
	const char *before = "Usage: ";

	for (size_t n = 0; n < sizeof(usages) / sizeof(usages[0]); n++) {
		if ((usages[n].of & asked) == 0)
			continue;
		printf("%s%s\n", before, usages[n].text);
		before = "       ";
	}
	for (size_t n = 0; n < sizeof(rows) / sizeof(rows[0]); n++) {
		if ((rows[n].of & asked) != 0)
			fputs(rows[n].text, stdout);
	}
	if (asked == EACH)
		fputs("\n`tocsin-perf COMMAND --help` has what is of one command.\n", stdout);
}
