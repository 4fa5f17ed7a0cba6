// SPDX-License-Identifier: BSD-3-Clause
// A name for MPI_COMM_WORLD that all its ranks share and no other world has. MPI has no such name,
// and communication between ranks could collide with the program's own. So the name is taken from
// the launcher.
#include "follow.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ANCESTORS_MAX 16
#define LINE_BYTES 4096

static const char *environment_value(const char *name) {
	// NOLINTNEXTLINE(concurrency-mt-unsafe): as MPI itself does
	const char *value = getenv(name);

	return value != NULL && value[0] != '\0' ? value : NULL;
}

static size_t read_file(const char *path, char *text, size_t size) {
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t length = 0;
	ssize_t got = 0;

	if (fd < 0)
		return 0;
	while (length < size - 1 && (got = read(fd, text + length, size - 1 - length)) > 0)
		length += (size_t)got;
	close(fd);
	text[length] = '\0';
	return got < 0 ? 0 : length;
}

static pid_t parent_process(pid_t pid) {
	char path[32], text[512];
	pid_t parent = 0;
	const char *at;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	if (read_file(path, text, sizeof(text)) == 0)
		return 0;
	at = strrchr(text, ')');
	if (at == NULL || strlen(at) < 5)
		return 0;
	for (at += 4; *at >= '0' && *at <= '9'; at++) // skip ") S "
		parent = parent * 10 + (*at - '0');
	return parent;
}

// Return the argument after `name` in a zero-separated command line.
static const char *find_argument(const char *line, size_t length, const char *name) {
	for (const char *at = line; at < line + length; at += strlen(at) + 1) {
		const char *next = at + strlen(at) + 1;

		if (strcmp(at, name) == 0 && next < line + length)
			return next;
	}
	return NULL;
}

// Hydra starts MPICH, Intel MPI and MVAPICH. The command line of its proxy on each node names the
// port of mpiexec and the process group.
static bool hydra_name(char text[static WORLD_BYTES]) {
	pid_t pid = getppid();

	if (environment_value("PMI_FD") == NULL && environment_value("PMI_PORT") == NULL)
		return false;
	for (int n = 0; n < ANCESTORS_MAX && pid > 1; n++, pid = parent_process(pid)) {
		char path[32], line[LINE_BYTES];
		const char *port, *group;
		size_t length;

		snprintf(path, sizeof(path), "/proc/%d/cmdline", pid);
		length = read_file(path, line, sizeof(line));
		port = find_argument(line, length, "--control-port");
		if (port == NULL)
			continue;
		group = find_argument(line, length, "--pgid");
		snprintf(text, WORLD_BYTES, "hydra:%s:%s", port, group != NULL ? group : "0");
		return true;
	}
	return false;
}

bool world_name(char text[static WORLD_BYTES]) {
	const char *given = environment_value("TOCSIN_MPI_WORLD");
	const char *space = environment_value("PMIX_NAMESPACE");
	const char *server = environment_value("OMPI_MCA_orte_hnp_uri");
	const char *job = environment_value("SLURM_JOB_ID"),
		   *step = environment_value("SLURM_STEP_ID");

	if (given != NULL) {
		snprintf(text, WORLD_BYTES, "given:%s", given);
		return true;
	}
	// The namespace of Open MPI's own mpirun is a small number. The address of mpirun
	// distinguishes namespaces with equal numbers.
	if (space != NULL) {
		snprintf(
			text, WORLD_BYTES, "pmix:%s:%s:%s", space, job != NULL ? job : "",
			server != NULL ? server : ""
		);
		return true;
	}
	if (hydra_name(text))
		return true;
	if (job != NULL && step != NULL && environment_value("SLURM_PROCID") != NULL) {
		snprintf(text, WORLD_BYTES, "slurm:%s.%s", job, step);
		return true;
	}
	if (environment_value("PALS_APID") != NULL) {
		snprintf(text, WORLD_BYTES, "pals:%s", environment_value("PALS_APID"));
		return true;
	}
	if (environment_value("FLUX_JOB_ID") != NULL) {
		snprintf(text, WORLD_BYTES, "flux:%s", environment_value("FLUX_JOB_ID"));
		return true;
	}
	return false;
}
