// SPDX-License-Identifier: BSD-3-Clause
// Text of --help, for all commands or for one.
#include "options/options.h"

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
	TWO_ENDS = LAT | BW, // commands with two ends
	PAIRS = LAT | BW | MESH,
	FILE_COMMANDS = COMPARE | HISTORY | VERIFY, // commands on stored files
	ALL_COMMANDS = PAIRS | NET | POLICY | FILE_COMMANDS,
};

static const struct {
	const char *name;
	uint32_t bit;
} commands[] = {
	{"lat", LAT},	    {"bw", BW},		  {"mesh", MESH},	{"net", NET},
	{"policy", POLICY}, {"compare", COMPARE}, {"history", HISTORY}, {"verify", VERIFY},
};

// Rows in print order; `of` is the set of commands that a row belongs to.
static const struct row {
	uint32_t of;
	const char *text;
} usages[] = {
	{TWO_ENDS, "tocsin-perf lat|bw [OPTION]... [HOST]"},
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
	{TWO_ENDS,
	 "\n"
	 "lat measures the latency of RDMA operations between two ends; bw measures bandwidth,\n"
	 "with many operations under way at once. Without HOST this is the server: it waits for\n"
	 "one client, serves it and ends. With HOST it is the client, and prints the result.\n"
	 "Without --device each end takes the best device it has, else the software device.\n"},
	{MESH,
	 "\n"
	 "mesh measures the latency between all pairs of several processes and says what stands\n"
	 "out: a node, racks, rails. srun or mpirun starts the processes; with --local mesh does,\n"
	 "on this machine.\n"},
	{NET,
	 "\n"
	 "net measures the floors of this machine, without any RDMA device: clock, system call,\n"
	 "cache line, wake-up, UDP, memif; each for --duration (300ms by default). lat and bw print\n"
	 "the minimum of each except memif beside their results.\n"},
	{POLICY,
	 "\n"
	 "policy plays lat with every idle policy (how a worker waits) under every load, and prints\n"
	 "latency beside the processor time of both workers. Without HOST it starts both ends.\n"},
	{COMPARE,
	 "\n"
	 "compare says whether the runs of B are slower than those of A, faster, or the same\n"
	 "within the margin (2% of A by default). Each file is one run; several of each side are\n"
	 "needed to tell.\n"},
	{HISTORY,
	 "\n"
	 "history reads the results in a directory and says since which run latency is slower or\n"
	 "faster. Results of the same plan, machines and devices are compared, in the order in\n"
	 "which they began.\n"},
	{VERIFY,
	 "\n"
	 "verify computes every figure in a file of --json again, from the data in the file, and\n"
	 "names the first that differs.\n"},
	{FILE_COMMANDS, "With --html it also draws a page.\n"},

	{PAIRS | POLICY,
	 "\nWhat is measured (the client decides; options given to the server must agree):\n"},
	{PAIRS | POLICY,
	 "  --op OP              read (default; of policy send), write, send, write-imm, cas, fadd;\n"
	 "                       the peer answers each write, send and write-imm, and half of the\n"
	 "                       round trip is one way\n"},
	{TWO_ENDS,
	 "  --size LIST          bytes: 64 (default), 2,64,4KiB; all: powers of two up to 8 MiB\n"},
	{MESH | POLICY, "  --size N             of mesh and policy: bytes; 64 by default\n"},
	{TWO_ENDS, "  --iterations N       samples of each size; 20000 by default\n"
		   "  --duration TIME      measure each size for this time instead, as 5s\n"},
	{MESH, "  --iterations N       of mesh: samples of each direction; 1000 by default\n"},
	{POLICY, "  --duration TIME      of policy: duration of each run; 1s by default\n"},
	{PAIRS,
	 "  --policy POLICY      how both ends wait: spin (default), window, event, adaptive\n"},
	{TWO_ENDS,
	 "  --inline BYTES       put messages of write, send and write-imm of up to so many bytes\n"
	 "                       into the work request: 0 to 1024; 64 by default, if the device\n"
	 "                       takes as many\n"},
	{LAT,
	 "  --gap TIME           idle time between two operations; part of no sample\n"
	 "  --arrivals WHEN      closed loop, where an operation begins when the one before has\n"
	 "                       ended: closed (default). Open loop: constant, poisson, onoff\n"
	 "                       (bursts of 8) at --rate, or trace:FILE\n"
	 "  --rate N             operations a second of an open loop\n"
	 "  --seed N             for poisson and onoff; 1 by default\n"
	 "  --device-time[=CLOCK] divide each operation by the device's time stamps into the part\n"
	 "                       of device and network and the part of the host; CLOCK is raw\n"
	 "                       (default) or wall\n"},
	{POLICY, "  --rates LIST         loads: closed, or operations a second (by Poisson);\n"
		 "                       closed,100,1000,5000 by default, at most 8\n"},
	{BW,
	 "For bw (64 KiB for 2s by default; --iterations counts messages; without --gap, --arrivals,\n"
	 "--rate, --seed, --device-time and --hgrm):\n"
	 "  --depth N            operations under way on each queue pair; 64 by default\n"
	 "  --queue-pairs N      how many; 1 by default\n"
	 "  --bidirectional      the server sends, too\n"},
	{LAT | MESH,
	 "Measured by running agents, which read each other's memory anyway (--op read only):\n"},
	{LAT,
	 "  lat --via-agent NODE  the agent of this machine reads the memory of the agent on NODE:\n"
	 "                       no HOST and no server. --size up to 64 KiB, --iterations up to\n"
	 "                       65520; policy, device and processor are the agent's\n"},
	{MESH,
	 "  mesh --agents        each node that is alive reads each other one, one pair at a time\n"},
	{LAT | MESH,
	 "  --agent SOCKET       which agent is asked; by default the one that tocsin asks\n"},
	{MESH,
	 "  --bandwidth          rates instead of round trips: writes of 64 KiB for 500ms by\n"
	 "                       default; with --duration, --depth (16), --queue-pairs,\n"
	 "                       --bidirectional and --inline of bw\n"
	 "  --congestion         then measure the pairs of one round, alone and all at once\n"
	 "  --incast             then measure all to one at once, for each process\n"},
	{MESH,
	 "How the processes of a mesh start and meet:\n"
	 "  --local N            start N processes on this machine\n"
	 "  --rendezvous WHERE   where process 0 is: HOST[:PORT], port 18521 by default, or\n"
	 "                       file:PATH, a file that all can read; by default the first node of\n"
	 "                       Slurm's step\n"
	 "  --rank R --ranks N   this is process R of N, for other launchers\n"
	 "  --hosts LIST         print the ssh commands that start a mesh on LIST, as node[1-4]\n"
	 "  --at-once N          measure at most N pairs at a time; by default as many as the\n"
	 "                       processors allow\n"},

	{PAIRS | POLICY, "\nDevice and processor (give them at each end; the ends may differ):\n"
			 "  --device NAME        an RDMA device, or soft\n"},
	{PAIRS,
	 "  --ib-port N, --gid-index N, --mtu BYTES, --traffic-class N, --service-level N\n"},
	{PAIRS | POLICY,
	 "  --timeout N          send a packet again after 4.096 us * 2^N; 14 (67 ms) by default\n"},
	{PAIRS, "  --retry N            how often a packet is sent again, 0 to 7; 6 by default\n"},
	{TWO_ENDS,
	 "  --cores N            the processor of the polling thread\n"
	 "  --priority N         real-time priority of the polling thread (SCHED_FIFO, 1 to 99)\n"
	 "  --memory WHERE       where messages lie: host (default), numa:N, gpu, gpu:N\n"},
	{PAIRS | POLICY,
	 "  --port N             TCP port of the control connection; 18520 by default\n"},
	{TWO_ENDS, "  --listen ADDRESS     where the server listens; all addresses by default\n"},

	{PAIRS | POLICY,
	 "\n"
	 "A server serves a client that proves its token, or the cluster's key. On one\n"
	 "machine, and in a mesh with file:PATH, the ends of a user find the token themselves.\n"
	 "  --token-file FILE    file of the token: the server writes it; the client or the\n"
	 "                       processes of a mesh read it. Default: TOCSIN_PERF_TOKEN\n"
	 "  --key-file FILE      the cluster's key; by default /etc/tocsin/tocsin.key, if it can be\n"
	 "                       read\n"},
	{TWO_ENDS, "  --open               the server serves the first client, without a proof\n"},

	{NET, "\n  --duration TIME      of net: duration of each floor; 300ms by default\n"},
	{ALL_COMMANDS, "\nResults (of two ends, options of the client):\n"},
	{LAT,
	 "  --fail-if WHAT       p99>10us, half.p50>2us, service.p99>1ms, max>1ms, min, mean\n"},
	{BW,
	 "  --fail-if WHAT       of bw a rate: p50<90Gbit/s, mean<11GB/s, min<1.5M/s (messages)\n"},
	{TWO_ENDS,
	 "                       with > or <; may be repeated. Exit status 1 if the whole interval\n"
	 "                       lies beyond the bound, 3 if a part of it does\n"},
	{PAIRS | NET | POLICY,
	 "  --json FILE          everything, for verify; - is standard output instead of the table\n"},
	{TWO_ENDS,
	 "  --json-bytes SIZE    how large that file may be, up to 4MiB (default); fewer samples\n"
	 "                       are kept for it\n"},
	{PAIRS, "  --csv FILE           one line for each figure\n"},
	{LAT, "  --hgrm FILE          percentiles as HdrHistogram prints them\n"},
	{PAIRS | POLICY | FILE_COMMANDS,
	 "  --html FILE          a page with charts, one file that needs no network\n"},
	{MESH | VERIFY, "  --svg FILE           the matrix of a mesh as a picture of its own\n"},
	{TWO_ENDS,
	 "  --perftest           print the columns of perftest instead of the table\n"
	 "  --runs K             K runs, each of new processes at both ends, as compare needs them.\n"
	 "                       --json r.json writes r.1.json, r.2.json and so on\n"
	 "  --against 'OPTIONS'  with --runs: as many runs with these options as well, in turn\n"
	 "                       (A B B A ...), then compared; r.a1.json, r.b1.json and so on\n"
	 "  --run N/K            this is run N of K: the server restarts itself for the next one. A\n"
	 "                       server with --run waits a minute for its client\n"},
	{COMPARE, "  --with FILE...       the runs of B\n"},
	{TWO_ENDS | COMPARE | HISTORY,
	 "  --margin PERCENT     a smaller change does not matter; 2% by default\n"},
	{ALL_COMMANDS, "  --help, --version, -V\n"},

	{ALL_COMMANDS,
	 "\n"
	 "Exit status: 0 done; 1 a threshold fails, B or the newest runs are slower, a direction of\n"
	 "a mesh stands out, or a figure differs; 2 a mistake in an option; 3 a threshold, a mesh, a\n"
	 "comparison or a history is undecided, or an open loop was saturated; 4 the run failed, and\n"
	 "what was measured until then is printed.\n"},
};

void options_print_help(const char *command) {
	uint32_t asked = ALL_COMMANDS;
	const char *before = "Usage: ";

	for (size_t n = 0; n < sizeof(commands) / sizeof(commands[0]); n++) {
		if (command != NULL && strcmp(commands[n].name, command) == 0)
			asked = commands[n].bit;
	}
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
	if (asked == ALL_COMMANDS)
		fputs("\n`tocsin-perf COMMAND --help` lists the options of one command.\n", stdout);
}
