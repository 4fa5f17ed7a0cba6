// SPDX-License-Identifier: BSD-3-Clause
// tocsin soft-run: runs a program with a software RDMA device in addition to the machine's devices.
//
// The program is configured only by its environment, which loads libtocsin-verbs.so before
// libibverbs. The program replaces this process, so it keeps signals, terminal and exit status.
#include "command.h"
#include "run/preload.h"

#include <dataplane/soft_settings.h>
#include <lib/error.h>
#include <lib/escape.h>
#include <lib/scoped.h>

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define QUOTED_BYTES 200
#define BUILT "../dataplane/soft/preload/"
#define LIBRARY "libtocsin-verbs.so"

enum {
	OPTION_WIRE,
	OPTION_ADDRESS,
	OPTION_FAULTS,
	OPTION_DEVICE,
	OPTION_VERBOSE,
	OPTION_COUNT,
};

static const struct option_spec options[OPTION_COUNT] = {
	[OPTION_WIRE] =
		{"wire", "WIRE",
		 "udp (the default): a socket on port 4791, which needs no\n"
		 "privileges; or dpdk:DEVARGS, any port of DPDK:\n"
		 "dpdk:net_af_packet0,iface=veth0"},
	[OPTION_ADDRESS] =
		{"address", "ADDR",
		 "address of the device; default: the first free one of\n"
		 "127.64.0.0/16, for programs of this machine only; for\n"
		 "several devices a list with commas"},
	[OPTION_FAULTS] =
		{"faults", "LIST",
		 "faults of the packets that the device sends, drawn from\n"
		 "the seed; large=100% loses packets over 1500 bytes,\n"
		 "to=ADDR spares packets to other addresses:\n"
		 "loss=1%,delay=50us+-20us,reorder=2%,dup=0.5%,\n"
		 "corrupt=0.1%,seed=7"},
	[OPTION_DEVICE] =
		{"device", "NAME",
		 "name of the device (default soft0), or a list with\n"
		 "commas"},
	[OPTION_VERBOSE] = {"verbose", NULL, "count packets, and print the counts at the end"},
};

static const struct word_spec words[] = {
	{"PROGRAM",
	 "a program that uses libibverbs, and its arguments; it\n"
	 "replaces this command, and programs that it starts have\n"
	 "the device, too",
	 WORD_COMMAND, false, NULL},
};

static const char details[] =
	"The device speaks RoCE v2 in user space: send, write, read and atomics over\n"
	"reliable connections, without driver, kernel module or privileges. Its address\n"
	"is printed when the program opens it.\n"
	"\n"
	"  tocsin soft-run -- ibv_devinfo -v\n"
	"  tocsin soft-run -- ib_write_lat             and in another shell,\n"
	"  tocsin soft-run -- ib_write_lat 127.0.0.1   with its address\n"
	"  tocsin soft-run --faults loss=1% --verbose -- ibv_rc_pingpong -e -g 0\n"
	"\n"
	"GID 0 and GID 1 are both the address of the device, so programs may be given\n"
	"either index. An address serves one process: another process, or an agent,\n"
	"needs another address. To reach other hosts, give --address an address of this\n"
	"machine in their network. Datagrams (UD, UC, XRC), multicast, memory windows,\n"
	"the connection manager (-R of perftest) and ibv_wr_...() are refused. One line\n"
	"for each kind says what to use instead; TOCSIN_SOFT_SAY=0 in the environment\n"
	"silences these lines. A program that is linked statically, or that gains\n"
	"privileges when it starts, cannot get the device.\n"
	"\n"
	"The options become TOCSIN_SOFT_WIRE, TOCSIN_SOFT_ADDRESS, TOCSIN_SOFT_FAULTS\n"
	"and TOCSIN_SOFT_NAME in the program's environment; variables of options that\n"
	"are not given stay as they are. The library is appended to LD_PRELOAD.\n"
	"\n"
	"Exit status: that of PROGRAM; 125 a mistake in the command line or a setting,\n"
	"or no library; 126 PROGRAM cannot be run, 127 it is not found.\n";

static int soft_run_error(int status, const char *detail) {
	command_error("soft-run", "%s", detail);
	return status;
}

// Option of each setting.
static const int option_of[SOFT_SETTING_COUNT] = {
	[SOFT_SETTING_NAME] = OPTION_DEVICE,
	[SOFT_SETTING_WIRE] = OPTION_WIRE,
	[SOFT_SETTING_ADDRESS] = OPTION_ADDRESS,
	[SOFT_SETTING_FAULTS] = OPTION_FAULTS,
};

// Check that the addresses belong to this machine. A conflict on port 4791 is not checked, since it
// may change. The program learns of it when it opens the device.
static int check_addresses(const struct soft_config *configs, uint32_t count) {
	for (uint32_t n = 0; n < count; n++) {
		struct sock_addr any_port = configs[n].address;
		struct sockaddr_storage storage;
		char text[SOCK_ADDR_TEXT_BYTES];
		scoped_fd int fd = -1;
		socklen_t length;
		int err;

		if (configs[n].wire != SOFT_WIRE_UDP || configs[n].address_any)
			continue;
		any_port.port = 0;
		length = sock_addr_to_sockaddr(&any_port, &storage);
		fd = socket(storage.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
		if (fd >= 0 && bind(fd, (const struct sockaddr *)&storage, length) == 0)
			continue;
		err = neg_errno();
		sock_addr_format_host(&configs[n].address, text);
		if (err == -EADDRNOTAVAIL)
			command_error(
				"soft-run", "--address: %s is not an address of this machine", text
			);
		else
			command_error(
				"soft-run", "--address: cannot use %s: %s", text,
				strerrordesc_np(-err)
			);
		return err;
	}
	return 0;
}

// Check the settings from options and the existing environment, and store the options in the
// environment. Returns 0, or -errno after an error message.
static int apply_settings(const struct arguments *arguments) {
	struct soft_config configs[SOFT_DEVICES_MAX];
	const char *texts[SOFT_SETTING_COUNT];
	enum soft_setting wrong;
	struct parse_error error;
	uint32_t count;

	for (int n = 0; n < SOFT_SETTING_COUNT; n++) {
		const char *given = arguments->values[option_of[n]];

		// NOLINTNEXTLINE(concurrency-mt-unsafe): one thread
		texts[n] = given != NULL ? given : getenv(soft_setting_variables[n]);
	}
	if (soft_settings_read(texts, &error, &wrong, configs, &count) != 0) {
		bool is_given = arguments->values[option_of[wrong]] != NULL ||
				// NOLINTNEXTLINE(concurrency-mt-unsafe): one thread
				getenv(soft_setting_variables[wrong]) == NULL;

		command_error(
			"soft-run", "%s%s: %s", is_given ? "--" : "",
			is_given ? options[option_of[wrong]].name : soft_setting_variables[wrong],
			error.text
		);
		return -EINVAL;
	}
	for (int n = 0; n < SOFT_SETTING_COUNT; n++) {
		const char *given = arguments->values[option_of[n]];

		// NOLINTNEXTLINE(concurrency-mt-unsafe): one thread
		if (given != NULL && setenv(soft_setting_variables[n], given, 1) < 0)
			return neg_errno();
	}
	return check_addresses(configs, count);
}

static int apply_library(void) {
	char path[PATH_MAX];
	int err;

	if (preload_find(LIBRARY, BUILT, path) != 0) {
		command_error(
			"soft-run",
			"cannot find " LIBRARY " in %s/tocsin, relative to the directory of tocsin",
			TOCSIN_LIBRARY_FROM_BINDIR
		);
		return -ENOENT;
	}
	err = preload_add(path);
	if (err == -EINVAL)
		command_error(
			"soft-run",
			"%s: the path has a blank or a colon, which LD_PRELOAD does not allow", path
		);
	else if (err != 0)
		soft_run_error(err, "out of memory");
	return err;
}

// Allow preloading into programs built with gcc's AddressSanitizer. By default such a program exits
// if a library is loaded before the sanitizer.
static int apply_sanitizer(void) {
	static const char variable[] = "ASAN_OPTIONS", leave[] = "verify_asan_link_order";
	// NOLINTNEXTLINE(concurrency-mt-unsafe): one thread
	const char *before = getenv(variable);
	scoped_mem char *value = NULL;

	if (before != NULL && strstr(before, leave) != NULL)
		return 0;
	if (asprintf(
		    &value, "%s%s%s=0", before == NULL ? "" : before,
		    before == NULL || before[0] == '\0' ? "" : ":", leave
	    ) < 0) {
		value = NULL;
		return -ENOMEM;
	}
	// NOLINTNEXTLINE(concurrency-mt-unsafe): one thread
	return setenv(variable, value, 1);
}

static int soft_run_exec(const struct arguments *arguments) {
	bool verbose = arguments->values[OPTION_VERBOSE] != NULL;
	char *const *program = arguments->command;
	const char *privilege;
	char path[PATH_MAX];
	int err;

	if (apply_settings(arguments) != 0 || apply_library() != 0)
		return EXIT_NOT_RUN;
	// Without --verbose a value that the user has set stays.
	// NOLINTNEXTLINE(concurrency-mt-unsafe): one thread
	if (setenv("TOCSIN_SOFT_SAY", verbose ? "2" : "1", verbose) != 0 || apply_sanitizer() != 0)
		return soft_run_error(EXIT_NOT_RUN, "out of memory");
	err = preload_find_program(program[0], path);
	if (err != 0)
		return preload_report_exec_failure("soft-run", program[0], err);
	privilege = preload_privilege_reason(path);
	if (privilege != NULL) {
		char quoted[QUOTED_BYTES];

		escape_quote(path, strlen(path), quoted, sizeof(quoted));
		command_error(
			"soft-run", "%s is %s, so the loader ignores the library of the device",
			quoted, privilege
		);
		return EXIT_NOT_RUNNABLE;
	}
	// execvp() passes a script without #! to the shell.
	execvp(path, program);
	return preload_report_exec_failure("soft-run", program[0], neg_errno());
}

const struct command soft_run_command = {
	.name = "soft-run",
	.summary = "Run a program that finds a software RDMA device",
	.details = details,
	.options = options,
	.option_count = OPTION_COUNT,
	.words = words,
	.word_count = sizeof(words) / sizeof(words[0]),
	.usage_status = EXIT_NOT_RUN,
	.run = soft_run_exec,
};
