// SPDX-License-Identifier: BSD-3-Clause
// Preloaded into an agent or into tocsin: replaces the devices of libibverbs by FAKE_RAILS devices
// in memory. They are named mlx5_0 and so on; each is an InfiniBand port of 400 Gb/s on its own
// subnet. FAKE_IWARP adds siw0 and siw1, iWARP devices like those of the kernel, or of irdma in
// iWARP mode. Devices only reach devices of the same process.
//
// FAKE_RAILS_NODES, a directory, and FAKE_RAILS_NODE, a number, connect processes with the same
// directory. Each process writes its pid to a file there that is named by its node number. A LID
// contains the node number of its device, so the fake finds the process. It accesses the memory
// there with process_vm_readv() and process_vm_writev().
//
// With FAKE_RAILS_FILE devices appear and disappear while a process runs. Each line is "NAME
// STATE". The state is up, down (the port), gone, or stuck (driver calls never return). The file is
// read with each list of devices.
#include <support/fake_verbs.h>

#include <endian.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#undef ibv_query_port
#undef ibv_reg_mr
#undef ibv_get_device_list

static pthread_once_t once = PTHREAD_ONCE_INIT;

static pthread_mutex_t reading = PTHREAD_MUTEX_INITIALIZER;
static struct fake_device *made[FAKE_DEVICES_MAX];
static bool gone[FAKE_DEVICES_MAX];
static unsigned long made_count;

// LIDs of one node; the lowest bits of a LID are its rail.
#define LIDS 32
#define NODES_MAX 512

static unsigned long node;
static const char *nodes; // NULL: no other nodes

static unsigned long number_of(const char *name) {
	const char *text = getenv(name);

	return text != NULL ? strtoul(text, NULL, 10) : 0;
}

static void tell_where(void) {
	char path[512];
	FILE *file;

	node = number_of("FAKE_RAILS_NODE");
	nodes = getenv("FAKE_RAILS_NODES");
	if (nodes == NULL)
		return;
	snprintf(path, sizeof(path), "%s/%lu", nodes, node);
	file = fopen(path, "we");
	if (file == NULL)
		return;
	fprintf(file, "%d\n", getpid());
	fclose(file);
}

static pid_t look_up(unsigned long of) {
	char path[512];
	int pid = 0;
	FILE *file;

	snprintf(path, sizeof(path), "%s/%lu", nodes, of);
	file = fopen(path, "re");
	if (file == NULL)
		return 0;
	if (fscanf(file, "%d", &pid) != 1)
		pid = 0;
	fclose(file);
	return pid;
}

// Read or write memory of another process. Called with the fake's lock. If the process was
// restarted, its pid is looked up once again.
static bool far(uint16_t lid, bool write, uint64_t address, void *local, uint64_t length) {
	static pid_t pids[NODES_MAX];
	unsigned long of = lid / LIDS;
	struct iovec here = {local, length};
	// NOLINTNEXTLINE(performance-no-int-to-ptr): address in another process
	struct iovec there = {(void *)(uintptr_t)address, length};

	for (int n = 0; n < 2 && of < NODES_MAX; n++) {
		ssize_t moved;

		if (pids[of] == 0 || n > 0)
			pids[of] = look_up(of);
		if (pids[of] == 0)
			break;
		moved = write ? process_vm_writev(pids[of], &here, 1, &there, 1, 0)
			      : process_vm_readv(pids[of], &here, 1, &there, 1, 0);
		if (moved == (ssize_t)length)
			return true;
	}
	return false;
}

static struct fake_device *make_device(const char *name) {
	struct fake_device *device = fake_device_add(name);
	unsigned long n = made_count++;

	fake_device_infiniband(device, (uint16_t)(node * LIDS + n + 1));
	device->ports[0].gids[0].gid.global.subnet_prefix =
		htobe64(UINT64_C(0xfec0000000000000) + n);
	device->ports[0].attr.active_speed = 128;
	device->ports[0].attr.active_width = 2;
	made[n] = device;
	return device;
}

static void make(void) {
	unsigned long count = number_of("FAKE_RAILS");

	fake_verbs_init(NULL);
	fake_verbs_share();
	tell_where();
	if (nodes != NULL)
		fake_verbs_far(far);
	for (unsigned long n = 0; n < count && n < FAKE_DEVICES_MAX; n++) {
		char name[16];

		snprintf(name, sizeof(name), "mlx5_%lu", n);
		make_device(name);
	}
	if (getenv("FAKE_IWARP") != NULL) {
		fake_device_add("siw0")->verbs.transport_type = IBV_TRANSPORT_IWARP;
		fake_device_add("siw1")->verbs.transport_type = IBV_TRANSPORT_IWARP;
	}
}

static void set_state(const char *name, const char *state) {
	bool wanted = strcmp(state, "gone") != 0;
	unsigned long n = 0;

	while (n < made_count && strcmp(made[n]->verbs.name, name) != 0)
		n++;
	if (n == FAKE_DEVICES_MAX || (n == made_count && !wanted))
		return;
	if (n == made_count)
		make_device(name);
	made[n]->ports[0].attr.state = strcmp(state, "down") == 0 ? IBV_PORT_DOWN : IBV_PORT_ACTIVE;
	if (gone[n] == wanted && wanted)
		fake_device_return(made[n]);
	else if (!gone[n] && !wanted)
		fake_device_lose(made[n]);
	gone[n] = !wanted;
}

static void read_file(void) {
	const char *path = getenv("FAKE_RAILS_FILE");
	FILE *file = path != NULL ? fopen(path, "re") : NULL;
	char name[32], state[8];
	bool stuck = false;

	if (file == NULL)
		return;
	pthread_mutex_lock(&reading);
	while (fscanf(file, "%31s %7s", name, state) == 2) {
		stuck = stuck || strcmp(state, "stuck") == 0;
		set_state(name, state);
	}
	pthread_mutex_unlock(&reading);
	fclose(file);
	if (!stuck)
		return;
	for (;;)
		pause();
}

static int code(int err) {
	errno = -err;
	return -err;
}

#define CALLS fake_verbs_calls

struct ibv_device **ibv_get_device_list(int *count) {
	struct ibv_device **list = NULL;
	uint32_t found = 0;
	int err;

	pthread_once(&once, make);
	read_file();
	err = CALLS.device_list(&list, &found);
	if (count != NULL)
		*count = (int)found;
	return code(err) == 0 ? list : NULL;
}

void ibv_free_device_list(struct ibv_device **list) {
	CALLS.device_list_free(list);
}

const char *ibv_get_device_name(struct ibv_device *device) {
	return device->name;
}

struct ibv_context *ibv_open_device(struct ibv_device *device) {
	struct ibv_context *context = NULL;

	return code(CALLS.open(device, &context)) == 0 ? context : NULL;
}

int ibv_close_device(struct ibv_context *context) {
	return code(CALLS.close(context));
}

int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr) {
	return code(CALLS.query_device(context, attr));
}

int ibv_query_port(struct ibv_context *context, uint8_t port, struct _compat_ibv_port_attr *attr) {
	return code(CALLS.query_port(context, port, (struct ibv_port_attr *)attr));
}

ssize_t _ibv_query_gid_table(
	struct ibv_context *context,
	struct ibv_gid_entry *entries,
	size_t max,
	uint32_t flags,
	size_t entry_size
) {
	uint32_t count = 0;
	int err = CALLS.query_gids(context, entries, (uint32_t)max, &count);

	(void)flags;
	(void)entry_size;
	return err != 0 ? err : (ssize_t)count;
}

int ibv_query_pkey(struct ibv_context *context, uint8_t port, int index, __be16 *pkey) {
	uint16_t found = 0;
	int err = CALLS.query_pkey(context, port, (uint16_t)index, &found);

	*pkey = htobe16(found);
	return code(err);
}

int ibv_get_async_event(struct ibv_context *context, struct ibv_async_event *event) {
	return code(CALLS.get_async_event(context, event)) == 0 ? 0 : -1;
}

void ibv_ack_async_event(struct ibv_async_event *event) {
	CALLS.ack_async_event(event);
}

struct ibv_pd *ibv_alloc_pd(struct ibv_context *context) {
	struct ibv_pd *pd = NULL;

	return code(CALLS.alloc_pd(context, &pd)) == 0 ? pd : NULL;
}

int ibv_dealloc_pd(struct ibv_pd *pd) {
	return code(CALLS.dealloc_pd(pd));
}

struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *address, size_t length, int access) {
	struct ibv_mr *mr = NULL;

	return code(CALLS.reg_mr(pd, address, length, access, &mr)) == 0 ? mr : NULL;
}

struct ibv_mr *ibv_reg_mr_iova2(
	struct ibv_pd *pd, void *address, size_t length, uint64_t iova, unsigned int access
) {
	(void)iova;
	return ibv_reg_mr(pd, address, length, (int)access);
}

struct ibv_mr *ibv_reg_dmabuf_mr(
	struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova, int fd, int access
) {
	const struct verbs_dmabuf dmabuf = {
		.fd = fd, .offset = offset, .length = length, .iova = iova};
	struct ibv_mr *mr = NULL;

	return code(CALLS.reg_dmabuf_mr(pd, &dmabuf, access, &mr)) == 0 ? mr : NULL;
}

int ibv_dereg_mr(struct ibv_mr *mr) {
	return code(CALLS.dereg_mr(mr));
}

struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context) {
	struct ibv_comp_channel *channel = NULL;

	return code(CALLS.create_comp_channel(context, &channel)) == 0 ? channel : NULL;
}

int ibv_destroy_comp_channel(struct ibv_comp_channel *channel) {
	return code(CALLS.destroy_comp_channel(channel));
}

struct ibv_cq *ibv_create_cq(
	struct ibv_context *context,
	int entries,
	void *ctx,
	struct ibv_comp_channel *channel,
	int vector
) {
	struct ibv_cq *cq = NULL;

	(void)ctx;
	(void)vector;
	return code(CALLS.create_cq(context, (uint32_t)entries, channel, &cq)) == 0 ? cq : NULL;
}

int ibv_destroy_cq(struct ibv_cq *cq) {
	return code(CALLS.destroy_cq(cq));
}

int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **ctx) {
	(void)ctx;
	return code(CALLS.get_cq_event(channel, cq)) == 0 ? 0 : -1;
}

void ibv_ack_cq_events(struct ibv_cq *cq, unsigned int count) {
	CALLS.ack_cq_events(cq, count);
}

struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr) {
	struct ibv_qp *qp = NULL;

	return code(CALLS.create_qp(pd, attr, &qp)) == 0 ? qp : NULL;
}

int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask) {
	return code(CALLS.modify_qp(qp, attr, mask));
}

int ibv_query_qp(
	struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask, struct ibv_qp_init_attr *init
) {
	return code(CALLS.query_qp(qp, mask, attr, init));
}

int ibv_destroy_qp(struct ibv_qp *qp) {
	return code(CALLS.destroy_qp(qp));
}
