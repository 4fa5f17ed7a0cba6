// SPDX-License-Identifier: BSD-3-Clause
// Corner cases of MPI; the first argument selects one. At the end rank 0 prints its name.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define THREADS 2
#define MANY 200

static int rank, size;
static MPI_Comm twins[THREADS];

static void *work(void *context) {
	MPI_Comm comm = *(MPI_Comm *)context, other;
	MPI_Request requests[2];
	double given = rank, got;

	for (int n = 0; n < 50; n++) {
		MPI_Allreduce(&given, &got, 1, MPI_DOUBLE, MPI_SUM, comm);
		MPI_Isend(&given, 1, MPI_DOUBLE, (rank + 1) % size, 0, comm, &requests[0]);
		MPI_Irecv(&got, 1, MPI_DOUBLE, (rank + size - 1) % size, 0, comm, &requests[1]);
		MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
		MPI_Ibarrier(comm, &requests[0]);
		MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
	}
	MPI_Comm_dup(comm, &other);
	MPI_Comm_free(&other);
	return NULL;
}

// MPI_THREAD_MULTIPLE: each thread uses its own communicator.
static void threads(void) {
	pthread_t ids[THREADS];

	for (int n = 0; n < THREADS; n++)
		MPI_Comm_dup(MPI_COMM_WORLD, &twins[n]);
	for (int n = 0; n < THREADS; n++)
		pthread_create(&ids[n], NULL, work, &twins[n]);
	for (int n = 0; n < THREADS; n++)
		pthread_join(ids[n], NULL);
}

static void *enter_late(void *context) {
	const char *hold = getenv("CORNER_HOLD");

	while (hold != NULL && access(hold, F_OK) == 0)
		(void)poll(NULL, 0, 10);
	MPI_Barrier(*(MPI_Comm *)context);
	return NULL;
}

// MPI_THREAD_MULTIPLE: in each communicator a thread of one rank waits for a thread of another
// rank, which has not come yet.
static void apart(void) {
	pthread_t id;

	for (int n = 0; n < THREADS; n++)
		MPI_Comm_dup(MPI_COMM_WORLD, &twins[n]);
	pthread_create(&id, NULL, enter_late, &twins[1 - rank % THREADS]);
	MPI_Barrier(twins[rank % THREADS]);
	pthread_join(id, NULL);
}

static void children(void) {
	for (int n = 0; n < 3; n++) {
		pid_t pid = fork();
		int status;

		if (pid == 0) {
			execlp("true", "true", (char *)NULL);
			_exit(1);
		}
		waitpid(pid, &status, 0);
		if (status != 0)
			printf("a child ended with %d\n", status);
	}
	MPI_Barrier(MPI_COMM_WORLD);
}

static void free_busy(void) {
	MPI_Request requests[3];
	double given = rank, got, sum;
	MPI_Comm twin;

	MPI_Comm_dup(MPI_COMM_WORLD, &twin);
	MPI_Irecv(&got, 1, MPI_DOUBLE, (rank + size - 1) % size, 0, twin, &requests[0]);
	MPI_Isend(&given, 1, MPI_DOUBLE, (rank + 1) % size, 0, twin, &requests[1]);
	MPI_Iallreduce(&given, &sum, 1, MPI_DOUBLE, MPI_SUM, twin, &requests[2]);
	MPI_Comm_free(&twin);
	MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
	if (rank == 0)
		printf("%g %g\n", got, sum);
}

// Create more communicators than are followed, then one more after some were freed.
static void many(void) {
	MPI_Comm comms[MANY];

	for (int n = 0; n < MANY; n++)
		MPI_Comm_dup(MPI_COMM_WORLD, &comms[n]);
	for (int n = 0; n < MANY; n++) {
		MPI_Barrier(comms[n]);
		MPI_Comm_free(&comms[n]);
	}
	MPI_Comm_dup(MPI_COMM_WORLD, &comms[0]);
	MPI_Barrier(comms[0]);
}

// More communicators than one job of libtocsin has, and a group whose second member comes late.
static void held(void) {
	MPI_Comm comms[MANY], both;
	MPI_Group group;

	for (int n = 0; n < MANY; n++)
		MPI_Comm_dup(MPI_COMM_WORLD, &comms[n]);
	MPI_Comm_group(MPI_COMM_WORLD, &group);
	while (rank == 1 && access(getenv("CORNER_HOLD"), F_OK) == 0)
		(void)poll(NULL, 0, 10);
	MPI_Comm_create_group(MPI_COMM_WORLD, group, 5, &both);
	MPI_Barrier(both);
	for (int n = 0; n < MANY; n++)
		MPI_Comm_free(&comms[n]);
}

static void mistakes(void) {
	int err, kind, value = 0;
	MPI_Request request;

	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	err = MPI_Bcast(&value, 1, MPI_DATATYPE_NULL, 0, MPI_COMM_WORLD);
	MPI_Error_class(err, &kind);
	if (rank == 0)
		printf("type %d\n", kind == MPI_ERR_TYPE);
	err = MPI_Send(&value, 1, MPI_INT, 999, 0, MPI_COMM_WORLD);
	MPI_Error_class(err, &kind);
	if (rank == 0)
		printf("rank %d\n", kind == MPI_ERR_RANK);
	MPI_Irecv(&value, 1, MPI_INT, rank, 7, MPI_COMM_WORLD, &request);
	err = MPI_Waitany(1, &request, NULL, MPI_STATUS_IGNORE);
	MPI_Error_class(err, &kind);
	if (rank == 0)
		printf("index %d\n", kind == MPI_ERR_ARG);
	MPI_Send(&value, 1, MPI_INT, rank, 7, MPI_COMM_WORLD);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	MPI_Barrier(MPI_COMM_WORLD);
}

static void groups(void) {
	MPI_Group world, pair;
	MPI_Comm comm, ring;
	MPI_Request request;
	int members[2] = {0, 1}, sizes[1] = {size}, circles[1] = {1};
	double given = rank, got[2];

	MPI_Comm_group(MPI_COMM_WORLD, &world);
	MPI_Group_incl(world, 2, members, &pair);
	for (int n = 0; rank < 2 && n < 3; n++) {
		MPI_Comm_create_group(MPI_COMM_WORLD, pair, 5, &comm);
		MPI_Barrier(comm);
		MPI_Comm_free(&comm);
	}
	MPI_Comm_create(MPI_COMM_WORLD, pair, &comm);
	if (comm != MPI_COMM_NULL)
		MPI_Barrier(comm);
	MPI_Comm_idup(MPI_COMM_WORLD, &comm, &request);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	MPI_Barrier(comm);
	MPI_Cart_create(MPI_COMM_WORLD, 1, sizes, circles, 0, &ring);
	MPI_Neighbor_allgather(&given, 1, MPI_DOUBLE, got, 1, MPI_DOUBLE, ring);
	MPI_Allreduce(MPI_IN_PLACE, &given, 1, MPI_DOUBLE, MPI_SUM, ring);
	if (rank == 0)
		printf("%g %g %g\n", got[0], got[1], given);
}

// With reuse.c: a communicator with the handle of a freed one must be followed.
static void reuse(void) {
	MPI_Comm *reused = dlsym(RTLD_DEFAULT, "reused");
	MPI_Comm twin;

	MPI_Comm_dup(MPI_COMM_WORLD, &twin);
	MPI_Comm_free(&twin);
	if (reused != NULL)
		MPI_Barrier(*reused);
}

// With between.c: count the translated ranks when communicators are created.
static void made(void) {
	int (*translated)(void) = (int (*)(void))dlsym(RTLD_DEFAULT, "between_translated");
	MPI_Comm twin, half, none;
	MPI_Request request;

	MPI_Comm_dup(MPI_COMM_WORLD, &twin);
	MPI_Comm_split(twin, rank % 2, rank, &half);
	MPI_Comm_split(twin, rank == 0 ? MPI_UNDEFINED : 1, 0, &none);
	MPI_Barrier(half);
	MPI_Comm_idup(twin, &none, &request);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	MPI_Barrier(none);
	if (rank == 0 && translated != NULL)
		printf("looked for %d\n", translated());
}

// With between.c: rank 0 has an open barrier when its first barrier has ended.
static void wait_again(void) {
	MPI_Request *open = dlsym(RTLD_DEFAULT, "between_request"), own;
	const int *same = dlsym(RTLD_DEFAULT, "between_same");
	const char *hold = getenv("CORNER_HOLD");

	MPI_Ibarrier(MPI_COMM_WORLD, &own);
	if (rank != 0)
		unsetenv("BETWEEN");
	MPI_Wait(&own, MPI_STATUS_IGNORE);
	if (rank == 0)
		fprintf(stderr, "same %d\n", same != NULL && *same);
	while (hold != NULL && access(hold, F_OK) == 0)
		poll(NULL, 0, 10);
	if (rank != 0 || open == NULL)
		MPI_Ibarrier(MPI_COMM_WORLD, &own);
	MPI_Wait(rank == 0 && open != NULL ? open : &own, MPI_STATUS_IGNORE);
}

static void abort_here(int signal) {
	MPI_Abort(MPI_COMM_WORLD, signal == SIGUSR1 ? 7 : 8);
}

// With between.c: the signal arrives while the library enters the communicator.
static void interrupted(void) {
	MPI_Comm twin;

	signal(SIGUSR1, abort_here);
	MPI_Comm_dup(MPI_COMM_WORLD, &twin);
}

// Id of the thread scan(), which looks up an MPI function once late.c has set this to 0. By then
// the loader is busy. scan() stores with release; late.c exchanges with acquire and release.
static _Atomic int scanner;

static void *scan(void *context) {
	double given = 1, got;

	atomic_store_explicit(&scanner, (int)syscall(SYS_gettid), memory_order_release);
	while (atomic_load_explicit(&scanner, memory_order_acquire) != 0) {
	}
	MPI_Scan(&given, &got, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_SELF);
	return context;
}

// With late.c: both threads look up an MPI function, one of them inside the loader.
static void loader(void) {
	char place[32];
	pthread_t id;

	snprintf(place, sizeof(place), "%llx", (unsigned long long)(uintptr_t)&scanner);
	setenv("LATE_FLAG", place, 1);
	pthread_create(&id, NULL, scan, NULL);
	if (dlopen(getenv("CORNER_LATE"), RTLD_NOW) == NULL) {
		printf("%s\n", dlerror());
		while (atomic_exchange_explicit(&scanner, 0, memory_order_acq_rel) == 0) {
		}
	}
	pthread_join(id, NULL);
}

// Spawn a second world and merge both into one communicator.
static void spawn(void) {
	MPI_Comm parent, inter, merged;
	double given = 1, got = 0;

	MPI_Comm_get_parent(&parent);
	if (parent == MPI_COMM_NULL) {
		char *words[] = {"spawn", NULL};

		MPI_Comm_spawn(
			getenv("CORNER_PROGRAM"), words, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD,
			&inter, MPI_ERRCODES_IGNORE
		);
	} else {
		inter = parent;
	}
	MPI_Intercomm_merge(inter, parent != MPI_COMM_NULL, &merged);
	MPI_Allreduce(&given, &got, 1, MPI_DOUBLE, MPI_SUM, merged);
	if (rank == 0 && parent == MPI_COMM_NULL)
		printf("%g of both worlds\n", got);
	MPI_Barrier(merged);
	MPI_Comm_free(&merged);
	MPI_Comm_disconnect(&inter);
}

// Write a file of the job on a disk that is full by now. Returns the result as exit status.
static int write_result(void) {
	const char *hold = getenv("CORNER_HOLD");
	char path[4096], text[65536];
	int status, worst = 0;
	FILE *file;

	snprintf(path, sizeof(path), "%s-%d", hold, rank);
	fclose(fopen(path, "w"));
	while (access(hold, F_OK) == 0)
		(void)poll(NULL, 0, 10);
	memset(text, 'x', sizeof(text));
	snprintf(path, sizeof(path), "%s/result-%d", getenv("CORNER_DISK"), rank);
	file = fopen(path, "w");
	status = file == NULL || fwrite(text, sizeof(text), 1, file) != 1 ? 5 : 0;
	if (file != NULL && fclose(file) != 0)
		status = 5;
	MPI_Allreduce(&status, &worst, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
	return worst;
}

int main(int argc, char **argv) {
	static const struct {
		const char *name;
		void (*play)(void);
	} corners[] = {
		{"threads", threads},
		{"apart", apart},
		{"children", children},
		{"busy", free_busy},
		{"many", many},
		{"held", held},
		{"mistakes", mistakes},
		{"groups", groups},
		{"reuse", reuse},
		{"made", made},
		{"wait", wait_again},
		{"loader", loader},
		{"interrupted", interrupted},
		{"spawn", spawn},
	};
	const char *name = argc > 1 ? argv[1] : "";
	int level, status = 0;

	// Load another MPI library beside the program's own.
	if (getenv("CORNER_OTHER") != NULL && dlopen(getenv("CORNER_OTHER"), RTLD_NOW) == NULL)
		printf("%s\n", dlerror());
	MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	for (unsigned int n = 0; n < sizeof(corners) / sizeof(corners[0]); n++)
		if (strcmp(corners[n].name, name) == 0 && (strcmp(name, "threads") || level == 3))
			corners[n].play();
	if (strcmp(name, "abort") == 0) {
		MPI_Barrier(MPI_COMM_WORLD);
		if (rank == 1)
			MPI_Abort(MPI_COMM_WORLD, 7);
		MPI_Barrier(MPI_COMM_WORLD);
	}
	if (strcmp(name, "crash") == 0 && rank == 1)
		raise(SIGSEGV);
	if (strcmp(name, "disk") == 0)
		status = write_result();
	MPI_Barrier(MPI_COMM_WORLD);
	if (rank == 0)
		printf("end of %s\n", name);
	MPI_Finalize();
	// Forbidden by MPI, which aborts the program.
	if (strcmp(name, "afterwards") == 0)
		MPI_Barrier(MPI_COMM_WORLD);
	return status;
}
