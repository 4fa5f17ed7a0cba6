// SPDX-License-Identifier: BSD-3-Clause
#include <lib/must.h>
#include <support/fake_cuda.h>

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define ALLOCATIONS_MAX 16
#define DEVICES 2
#define CONTEXT_BYTES 64 // contexts are distinguished by their addresses

enum {
	CUDA_SUCCESS = 0,
	CUDA_ERROR_INVALID_VALUE = 1,
	CUDA_ERROR_OUT_OF_MEMORY = 2,
	CUDA_ERROR_INVALID_DEVICE = 101,
	CUDA_ERROR_INVALID_CONTEXT = 201,
};

struct allocation {
	uint8_t *begin;
	size_t size;
	enum fake_cuda_kind kind;
	int ordinal;
	uint64_t id;
};

// Functions that the library under test, or the test itself, looks up by name.
int cuInit(unsigned int flags);
int cuGetErrorName(int error, const char **ret_name);
int cuDeviceGet(int *ret_device, int ordinal);
int cuDeviceGetPCIBusId(char *text, int size, int device);
int cuCtxPushCurrent_v2(void *context);
int cuCtxPopCurrent_v2(void **ret_context);
int cuPointerGetAttribute(void *ret_value, int attribute, unsigned long long pointer);
int cuMemGetAddressRange_v2(
	unsigned long long *ret_base, size_t *ret_size, unsigned long long pointer
);
int cuMemGetHandleForAddressRange(
	void *ret_handle,
	unsigned long long pointer,
	size_t size,
	int type,
	unsigned long long flags
);
int cuDevicePrimaryCtxRetain(void **ret_context, int device);
int cuDevicePrimaryCtxRelease_v2(int device);
int cuMemAlloc_v2(unsigned long long *ret_pointer, size_t size);
int cuMemFree_v2(unsigned long long pointer);
int cuMemcpyHtoD_v2(unsigned long long to, const void *from, size_t size);
extern struct fake_cuda fake_cuda;

static struct allocation allocations[ALLOCATIONS_MAX];
static uint64_t ids;
static uint8_t *arena;
static int arena_fd = -1;
static char contexts[DEVICES][CONTEXT_BYTES];
static _Thread_local void *current;
// Several threads of an agent allocate and free pages.
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void count(int *of, int by) {
	pthread_mutex_lock(&lock);
	*of += by;
	pthread_mutex_unlock(&lock);
}

static void arena_make(void) {
	arena_fd = memfd_create("fake-cuda", MFD_CLOEXEC);
	must(arena_fd >= 0 && ftruncate(arena_fd, (off_t)FAKE_CUDA_ARENA_BYTES) == 0);
	arena = mmap(NULL, FAKE_CUDA_ARENA_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, arena_fd, 0);
	must(arena != MAP_FAILED);
}

static void fake_reset(void) {
	memset(allocations, 0, sizeof(allocations));
	fake_cuda.init_error = fake_cuda.range_error = fake_cuda.export_error = 0;
	fake_cuda.retain_error = fake_cuda.allocate_error = fake_cuda.copy_error = 0;
	fake_cuda.range_calls = fake_cuda.export_calls = 0;
	fake_cuda.entered = NULL;
	atomic_store_explicit(&fake_cuda.ends, 0, memory_order_relaxed);
	must(fake_cuda.context_depth == 0 && fake_cuda.contexts_held == 0 && fake_cuda.blocks == 0);
}

static uint8_t *fake_allocate(enum fake_cuda_kind kind, int ordinal, size_t offset, size_t size) {
	if (arena == NULL)
		arena_make();
	must(offset + size <= FAKE_CUDA_ARENA_BYTES && ordinal < DEVICES);
	for (size_t n = 0; n < ALLOCATIONS_MAX; n++) {
		if (allocations[n].size != 0)
			continue;
		allocations[n] = (struct allocation){arena + offset, size, kind, ordinal, ++ids};
		return arena + offset;
	}
	must(false);
	return NULL;
}

static struct allocation *find(unsigned long long pointer) {
	for (size_t n = 0; n < ALLOCATIONS_MAX; n++) {
		uintptr_t begin = (uintptr_t)allocations[n].begin;

		if (pointer >= begin && pointer - begin < allocations[n].size)
			return &allocations[n];
	}
	return NULL;
}

static void fake_release(const uint8_t *begin) {
	struct allocation *allocation = find((uintptr_t)begin);

	must(allocation != NULL && allocation->begin == begin);
	memset(allocation, 0, sizeof(*allocation));
}

struct fake_cuda fake_cuda = {
	.reset = fake_reset,
	.allocate = fake_allocate,
	.release = fake_release,
};

static int error_of(const char *variable) {
	const char *text = getenv(variable);

	return text != NULL ? (int)strtol(text, NULL, 10) : 0;
}

static __attribute__((constructor)) void read_errors(void) {
	fake_cuda.init_error = error_of("FAKE_CUDA_INIT");
	fake_cuda.allocate_error = error_of("FAKE_CUDA_ALLOCATE");
	fake_cuda.export_error = error_of("FAKE_CUDA_EXPORT");
}

int cuInit(unsigned int flags) {
	if (fake_cuda.entered != NULL)
		fake_cuda.entered();
	return flags == 0 ? fake_cuda.init_error : CUDA_ERROR_INVALID_VALUE;
}

int cuGetErrorName(int error, const char **ret_name) {
	static const struct {
		int error;
		const char *name;
	} names[] = {
		{1, "CUDA_ERROR_INVALID_VALUE"},     {2, "CUDA_ERROR_OUT_OF_MEMORY"},
		{100, "CUDA_ERROR_NO_DEVICE"},	     {101, "CUDA_ERROR_INVALID_DEVICE"},
		{201, "CUDA_ERROR_INVALID_CONTEXT"}, {801, "CUDA_ERROR_NOT_SUPPORTED"},
	};

	for (size_t n = 0; n < sizeof(names) / sizeof(names[0]); n++) {
		if (names[n].error != error)
			continue;
		*ret_name = names[n].name;
		return CUDA_SUCCESS;
	}
	*ret_name = NULL;
	return CUDA_ERROR_INVALID_VALUE;
}

int cuDeviceGet(int *ret_device, int ordinal) {
	if (ordinal < 0 || ordinal >= DEVICES)
		return CUDA_ERROR_INVALID_DEVICE;
	*ret_device = ordinal;
	return CUDA_SUCCESS;
}

// Capital letters, like the real function.
int cuDeviceGetPCIBusId(char *text, int size, int device) {
	snprintf(text, (size_t)size, "0000:%02X:00.0", 0x1a + device);
	return CUDA_SUCCESS;
}

int cuCtxPushCurrent_v2(void *context) {
	must(current == NULL);
	current = context;
	count(&fake_cuda.context_depth, 1);
	return CUDA_SUCCESS;
}

int cuCtxPopCurrent_v2(void **ret_context) {
	must(current != NULL);
	*ret_context = current;
	current = NULL;
	count(&fake_cuda.context_depth, -1);
	return CUDA_SUCCESS;
}

int cuDevicePrimaryCtxRetain(void **ret_context, int device) {
	if (fake_cuda.retain_error != 0)
		return fake_cuda.retain_error;
	*ret_context = contexts[device];
	count(&fake_cuda.contexts_held, 1);
	return CUDA_SUCCESS;
}

int cuDevicePrimaryCtxRelease_v2(int device) {
	must(device >= 0 && device < DEVICES && fake_cuda.contexts_held > 0);
	count(&fake_cuda.contexts_held, -1);
	atomic_fetch_add_explicit(&fake_cuda.ends, 1, memory_order_release);
	return CUDA_SUCCESS;
}

static int ordinal_of(const void *context) {
	for (int n = 0; n < DEVICES; n++) {
		if (context == contexts[n])
			return n;
	}
	return -1;
}

static int block_take(size_t size, uint64_t *ret_at) {
	uint64_t at = FAKE_CUDA_ARENA_BYTES / 2;

	if (arena == NULL)
		arena_make();
	while (at < FAKE_CUDA_ARENA_BYTES && find((uintptr_t)(arena + at)) != NULL)
		at += FAKE_CUDA_BLOCK_BYTES;
	if (size > FAKE_CUDA_BLOCK_BYTES || at == FAKE_CUDA_ARENA_BYTES)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*ret_at = (uintptr_t)fake_allocate(FAKE_CUDA_DEVICE, ordinal_of(current), at, size);
	fake_cuda.blocks++;
	return CUDA_SUCCESS;
}

int cuMemAlloc_v2(unsigned long long *ret_pointer, size_t size) {
	uint64_t at = 0;
	int result;

	if (fake_cuda.allocate_error != 0)
		return fake_cuda.allocate_error;
	if (ordinal_of(current) < 0)
		return CUDA_ERROR_INVALID_CONTEXT;
	pthread_mutex_lock(&lock);
	result = block_take(size, &at);
	pthread_mutex_unlock(&lock);
	if (result == CUDA_SUCCESS)
		*ret_pointer = at;
	return result;
}

int cuMemFree_v2(unsigned long long pointer) {
	struct allocation *allocation = find(pointer);

	if (allocation == NULL || (uintptr_t)allocation->begin != pointer)
		return CUDA_ERROR_INVALID_VALUE;
	if (current != contexts[allocation->ordinal])
		return CUDA_ERROR_INVALID_CONTEXT;
	pthread_mutex_lock(&lock);
	memset(allocation, 0, sizeof(*allocation));
	fake_cuda.blocks--;
	pthread_mutex_unlock(&lock);
	return CUDA_SUCCESS;
}

int cuMemcpyHtoD_v2(unsigned long long to, const void *from, size_t size) {
	struct allocation *allocation = find(to);

	if (fake_cuda.copy_error != 0)
		return fake_cuda.copy_error;
	if (allocation == NULL || current != contexts[allocation->ordinal] ||
	    size > allocation->size - (to - (uintptr_t)allocation->begin))
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(allocation->begin + (to - (uintptr_t)allocation->begin), from, size);
	return CUDA_SUCCESS;
}

static void *context_of(const struct allocation *allocation) {
	return allocation->kind == FAKE_CUDA_POOL ? NULL : contexts[allocation->ordinal];
}

int cuPointerGetAttribute(void *ret_value, int attribute, unsigned long long pointer) {
	const struct allocation *allocation = find(pointer);
	void *context;
	uint32_t word;

	if (allocation == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	switch (attribute) {
	case 1:
		context = context_of(allocation);
		memcpy(ret_value, &context, sizeof(context));
		return CUDA_SUCCESS;
	case 2:
		word = allocation->kind == FAKE_CUDA_HOST ? 1 : 2;
		memcpy(ret_value, &word, sizeof(word));
		return CUDA_SUCCESS;
	case 7:
		memcpy(ret_value, &allocation->id, sizeof(allocation->id));
		return CUDA_SUCCESS;
	case 8:
		word = allocation->kind == FAKE_CUDA_MANAGED;
		memcpy(ret_value, &word, sizeof(word));
		return CUDA_SUCCESS;
	case 9:
		memcpy(ret_value, &allocation->ordinal, sizeof(allocation->ordinal));
		return CUDA_SUCCESS;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

int cuMemGetAddressRange_v2(
	unsigned long long *ret_base, size_t *ret_size, unsigned long long pointer
) {
	const struct allocation *allocation = find(pointer);

	fake_cuda.range_calls++;
	if (fake_cuda.range_error != 0)
		return fake_cuda.range_error;
	if (allocation == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	if (current != context_of(allocation))
		return CUDA_ERROR_INVALID_CONTEXT;
	*ret_base = (uintptr_t)allocation->begin;
	*ret_size = allocation->size;
	return CUDA_SUCCESS;
}

#ifndef FAKE_CUDA_OLD
// Return true if every page contains an allocation.
static bool is_backed(unsigned long long pointer, size_t size, size_t page) {
	for (size_t at = 0; at < size; at += page) {
		bool found = false;

		for (size_t byte = 0; byte < page && !found; byte += 16)
			found = find(pointer + at + byte) != NULL;
		if (!found)
			return false;
	}
	return true;
}

int cuMemGetHandleForAddressRange(
	void *ret_handle,
	unsigned long long pointer,
	size_t size,
	int type,
	unsigned long long flags
) {
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char path[64];
	int fd;

	fake_cuda.export_calls++;
	if (fake_cuda.export_error != 0)
		return fake_cuda.export_error;
	if (type != 1 || flags != 0 || size == 0 || pointer % page != 0 || size % page != 0 ||
	    !is_backed(pointer, size, page))
		return CUDA_ERROR_INVALID_VALUE;
	// The file position of a separate open file gives the start of the memory.
	snprintf(path, sizeof(path), "/proc/self/fd/%d", arena_fd);
	fd = open(path, O_RDWR | O_CLOEXEC);
	must(fd >= 0 && lseek(fd, (off_t)(pointer - (uintptr_t)arena), SEEK_SET) >= 0);
	memcpy(ret_handle, &fd, sizeof(fd));
	return CUDA_SUCCESS;
}
#endif
