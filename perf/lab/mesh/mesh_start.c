// SPDX-License-Identifier: BSD-3-Clause
// Rank and rendezvous of the processes of a mesh.
#include "mesh/mesh_start.h"

#include <lib/error.h>
#include <lib/hostlist.h>
#include <lib/scoped.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_PREFIX "file:"
#define HOSTS_MAX 65536
#define PLACE_BYTES 320

static const char *environment_variable(const char *name) {
	// NOLINTNEXTLINE(concurrency-mt-unsafe): nobody sets it
	return getenv(name);
}

static bool read_number(const char *name, uint32_t max, uint32_t *ret_value) {
	const char *text = environment_variable(name);
	struct parse_error error;
	uint64_t value;

	if (text == NULL || parse_u64(text, strlen(text), 0, max, &error, &value) != 0)
		return false;
	*ret_value = (uint32_t)value;
	return true;
}

// Environment variables of launchers: the rank and the number of processes.
static const struct {
	const char *rank, *count;
} launchers[] = {
	{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
	{"PMI_RANK", "PMI_SIZE"},
	{"SLURM_PROCID", "SLURM_STEP_NUM_TASKS"},
	{"SLURM_PROCID", "SLURM_NTASKS"},
};

static int check_rank(const struct mesh_member *member, struct lab_why *why) {
	if (member->count < 2 || member->count > MESH_NODES_MAX || member->rank >= member->count)
		return lab_fail(
			why, -EINVAL, "a mesh has 2 to %u processes, and this is process %u of %u",
			MESH_NODES_MAX, member->rank, member->count
		);
	return 0;
}

int mesh_find_rank(
	const struct mesh_options *options, struct mesh_member *member, struct lab_why *why
) {
	const char *topology = environment_variable("SLURM_TOPOLOGY_ADDR");
	const char *last = topology != NULL ? strrchr(topology, '.') : NULL;

	// In Slurm's "s0.s2.node7" the rack is the switches above the node.
	if (last != NULL && (size_t)(last - topology) < sizeof(member->rack))
		snprintf(
			member->rack, sizeof(member->rack), "%.*s", (int)(last - topology), topology
		);
	if (options->rank_given != options->ranks_given)
		return lab_fail(why, -EINVAL, "--rank and --ranks must be given together");
	if (options->rank_given) {
		member->rank = options->rank;
		member->count = options->ranks;
		return check_rank(member, why);
	}
	for (size_t n = 0; n < sizeof(launchers) / sizeof(launchers[0]); n++) {
		if (read_number(launchers[n].rank, UINT32_MAX, &member->rank) &&
		    read_number(launchers[n].count, UINT32_MAX, &member->count))
			return check_rank(member, why);
	}
	return lab_fail(
		why, -ENOENT,
		"the rank of this process is unknown: start the mesh under srun or mpirun, or with "
		"--local N, or each process with --rank and --ranks; --hosts LIST prints the "
		"commands for ssh"
	);
}

static const char *rendezvous_file(const struct mesh_options *options) {
	const char *text = options->rendezvous;

	if (text == NULL || strncmp(text, FILE_PREFIX, strlen(FILE_PREFIX)) != 0)
		return NULL;
	return text + strlen(FILE_PREFIX);
}

// Contents of a rendezvous file.
struct place {
	char host[PLACE_BYTES];
	uint16_t port;
	char token[TOKEN_BYTES]; // "": none
};

static void place_wipe(struct place *place) {
	explicit_bzero(place, sizeof(*place));
}

#define scoped_place __attribute__((cleanup(place_wipe)))

// Check that no other user can have read or written the token of a rendezvous file.
static int check_lead_file(int fd, const char *path, struct lab_why *why) {
	struct stat status;

	if (fstat(fd, &status) == 0 && (status.st_uid == geteuid() || status.st_uid == 0) &&
	    (status.st_mode & (S_IRWXG | S_IRWXO)) == 0)
		return 0;
	return lab_fail(
		why, -EBADMSG,
		"%s has the token of a mesh, and does not belong to user %u with mode 0600: remove "
		"it, or use another file",
		path, geteuid()
	);
}

static int lead_file_parse(const char *path, struct place *ret_place, struct lab_why *why) {
	scoped_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct lab_why wrong = {.text = ""};
	scoped_place struct place place = {.port = 0};
	struct parse_error error;
	char *blank, *token = NULL;
	uint64_t port;
	ssize_t length = fd >= 0 ? read(fd, place.host, sizeof(place.host) - 1) : -1;

	if (fd < 0 && errno != ENOENT)
		return lab_fail(why, -EBADMSG, "%s: %s", path, strerrordesc_np(errno));
	if (length <= 0)
		return lab_fail(
			why, -EAGAIN,
			"%s is missing or empty: process 0 of the mesh has not written it yet", path
		);
	place.host[length] = '\0';
	place.host[strcspn(place.host, "\n")] = '\0';
	blank = strchr(place.host, ' ');
	if (blank != NULL)
		token = strchr(blank + 1, ' ');
	if (token != NULL)
		*token++ = '\0';
	if (blank == NULL || (token != NULL && token_check(token, path, &wrong) != 0) ||
	    parse_u64(blank + 1, strlen(blank + 1), 1, UINT16_MAX, &error, &port) != 0)
		return lab_fail(
			why, -EBADMSG,
			"%s is not a rendezvous file of a mesh: remove it, or use another file",
			path
		);
	*blank = '\0';
	place.port = (uint16_t)port;
	snprintf(place.token, sizeof(place.token), "%s", token != NULL ? token : "");
	*ret_place = place;
	return token != NULL ? check_lead_file(fd, path, why) : 0;
}

int mesh_publish_lead(
	const struct mesh_options *options,
	const struct mesh_member *member,
	const char *token,
	struct channel_listener *ret_listener,
	struct lab_why *why
) {
	const char *path = member->place;
	struct sock_addr any = {.port = path != NULL ? options->port : member->lead.port};
	char host[MESH_HOST_BYTES] = "";
	struct lab_why held = {.text = ""};
	struct channel_listener listener;
	scoped_place struct place earlier = {.port = 0};
	scoped_fd int fd = -1;
	scoped_place struct place written = {.port = 0};
	int err = channel_bind(&any, &listener, why);

	if (err != 0)
		return err;
	fd = listener.fd; // closed after a failure
	if (path == NULL) {
		if (token_publish(&listener.address, token, &held) != 0)
			fprintf(stderr,
				"tocsin-perf: processes on this machine need the token: %s\n",
				held.text);
		err = channel_listen(&listener, why);
		if (err != 0) {
			token_unpublish(&listener.address, token);
			return err;
		}
		listener.fd = scoped_release_fd(&fd);
		*ret_listener = listener;
		return 0;
	}

	// A file that a killed mesh left is replaced; any other file is not touched.
	if (lead_file_parse(path, &earlier, &held) == -EBADMSG)
		return lab_fail(why, -EBADMSG, "%s", held.text);
	if (gethostname(host, sizeof(host) - 1) != 0)
		return lab_fail(why, -EINVAL, "this host has no name");
	err = channel_listen(&listener, why);
	if (err != 0)
		return err;
	snprintf(
		written.host, sizeof(written.host), "%s %u %s", host, listener.address.port, token
	);
	if (token_file_write(path, written.host, why) != 0)
		return -EIO;
	listener.fd = scoped_release_fd(&fd);
	*ret_listener = listener;
	return 0;
}

void mesh_withdraw_rendezvous(
	const struct mesh_options *options, const char *token, struct channel_listener *listener
) {
	if (rendezvous_file(options) != NULL)
		unlink(rendezvous_file(options));
	else
		token_unpublish(&listener->address, token);
	channel_listener_close(listener);
}

static bool host_is_this_machine(const char *host) {
	char own[MESH_HOST_BYTES] = "";

	return gethostname(own, sizeof(own) - 1) == 0 && strcmp(own, host) == 0;
}

static int
lead_resolve(const char *host, uint16_t port, struct sock_addr *ret_address, struct lab_why *why) {
	struct parse_error error = {.text = ""};

	// The name of this machine may be unknown to every resolver, so loopback is used.
	if (host_is_this_machine(host)) {
		*ret_address = channel_loopback();
		ret_address->port = port;
		return 0;
	}
	if (sock_addr_resolve(host, strlen(host), port, SOCK_ADDR_NONE, &error, ret_address) != 0)
		return lab_fail(why, -EAGAIN, "process 0 of the mesh: %s", error.text);
	return 0;
}

int mesh_read_lead_file(
	const char *path,
	struct sock_addr *ret_address,
	char ret_token[static TOKEN_BYTES],
	struct lab_why *why
) {
	scoped_place struct place place = {.port = 0};
	int err = lead_file_parse(path, &place, why);

	if (err == 0)
		err = lead_resolve(place.host, place.port, ret_address, why);
	if (err == 0)
		memcpy(ret_token, place.token, sizeof(place.token));
	return err;
}

// Use the first node of the Slurm step, if the step is the mesh. The step of mpirun's helper
// processes contains other nodes.
static int resolve_first_step_node(uint16_t port, struct mesh_member *member, struct lab_why *why) {
	const char *names = NULL;
	struct parse_error error = {.text = ""};
	struct hostlist *list;
	uint32_t rank, count;
	int err;

	if (read_number("SLURM_PROCID", UINT32_MAX, &rank) &&
	    (read_number("SLURM_STEP_NUM_TASKS", UINT32_MAX, &count) ||
	     read_number("SLURM_NTASKS", UINT32_MAX, &count)) &&
	    rank == member->rank && count == member->count)
		names = environment_variable("SLURM_STEP_NODELIST");
	if (names == NULL)
		return lab_fail(
			why, -EINVAL,
			"the address of process 0 is unknown: give --rendezvous HOST[:PORT], or "
			"--rendezvous file:PATH of a file that all processes can read"
		);
	err = hostlist_expand(names, strlen(names), HOSTS_MAX, &error, &list);
	if (err != 0)
		return lab_fail(why, err, "SLURM_STEP_NODELIST: %s", error.text);
	err = lead_resolve(hostlist_name(list, 0), port, &member->lead, why);
	hostlist_destroy(list);
	return err;
}

int mesh_find_lead_address(
	const struct mesh_options *options, struct mesh_member *member, struct lab_why *why
) {
	uint16_t port = options->port > 0 ? options->port : MESH_PORT;
	const char *text = options->rendezvous;
	struct parse_error error = {.text = ""};
	uint32_t local_count = 0; // processes on this machine, from the launcher

	member->place = rendezvous_file(options);
	if (member->place != NULL)
		return 0;
	if (text == NULL && !read_number("OMPI_COMM_WORLD_LOCAL_SIZE", UINT32_MAX, &local_count))
		(void)read_number("MPI_LOCALNRANKS", UINT32_MAX, &local_count);
	if (text == NULL && local_count != member->count)
		return resolve_first_step_node(port, member, why);
	if (text == NULL || host_is_this_machine(text)) {
		member->lead = channel_loopback();
		member->lead.port = port;
		return 0;
	}
	if (sock_addr_resolve(text, strlen(text), port, SOCK_ADDR_NONE, &error, &member->lead) != 0)
		return lab_fail(why, -EINVAL, "--rendezvous: %s", error.text);
	return 0;
}

static void put_quoted(char byte) {
	if (byte == '\'')
		printf("'\\''");
	else
		putchar(byte);
}

// Print a word quoted for two shells: the local one, and the one that ssh starts.
static void print_ssh_argument(const char *word) {
	if (word[0] != '\0' && strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
					    "0123456789-_=./,:+%@") == strlen(word)) {
		printf(" %s", word);
		return;
	}
	printf(" '");
	put_quoted('\'');
	for (; *word != '\0'; word++) {
		for (const char *byte = *word == '\'' ? "'\\'" : ""; *byte != '\0'; byte++)
			put_quoted(*byte);
		put_quoted(*word);
	}
	put_quoted('\'');
	putchar('\'');
}

// Print the options of one process; options for process 0 only are left out for the others.
static void print_options(int argc, char *const *argv, bool first) {
	static const char *const of_first[] = {"--json",    "--csv",	    "--html",  "--svg",
					       "--at-once", "--congestion", "--incast"};

	for (int n = 2; n < argc; n++) {
		size_t length = strcspn(argv[n], "=");
		bool has_value = argv[n][length] == '=', wanted = true;

		if (length == strlen("--hosts") && strncmp(argv[n], "--hosts", length) == 0)
			wanted = false;
		for (size_t at = 0; at < sizeof(of_first) / sizeof(of_first[0]); at++) {
			if (length == strlen(of_first[at]) &&
			    strncmp(argv[n], of_first[at], length) == 0)
				wanted = first;
		}
		if (wanted)
			print_ssh_argument(argv[n]);
		// A flag is followed by the next option, not by a value.
		if (!has_value && n + 1 < argc && strncmp(argv[n + 1], "--", 2) != 0) {
			n++;
			if (wanted)
				print_ssh_argument(argv[n]);
		}
	}
}

int mesh_print_commands(
	const struct mesh_options *options,
	bool has_token_file,
	int argc,
	char *const *argv,
	struct lab_why *why
) {
	struct parse_error error = {.text = ""};
	struct hostlist *list;
	uint32_t count;
	int err = hostlist_expand(
		options->hosts, strlen(options->hosts), MESH_NODES_MAX, &error, &list
	);

	if (err != 0)
		return lab_fail(why, err, "--hosts: %s", error.text);
	if (!has_token_file && rendezvous_file(options) == NULL)
		fprintf(stderr,
			"tocsin-perf: the processes need a common token: add --rendezvous "
			"file:PATH or --token-file FILE in a directory that all nodes share; or "
			"start the mesh as root, if each node has the cluster's key\n");
	count = hostlist_count(list);
	if (count < 2)
		err = lab_fail(why, -EINVAL, "--hosts: a mesh has at least 2 processes");
	for (uint32_t n = count; err == 0 && n-- > 0;) {
		// -n: a background process must not read from the terminal
		printf("ssh %s%s tocsin-perf mesh --rank %u --ranks %u", n > 0 ? "-n " : "",
		       hostlist_name(list, n), n, count);
		if (options->rendezvous == NULL)
			printf(" --rendezvous %s", hostlist_name(list, 0));
		print_options(argc, argv, n == 0);
		printf("%s\n", n > 0 ? " &" : "");
	}
	hostlist_destroy(list);
	return err;
}
