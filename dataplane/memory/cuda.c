// SPDX-License-Identifier: BSD-3-Clause
// Accesses GPU memory through libcuda, which is loaded on demand.
#include <dataplane/cuda.h>
#include <lib/must.h>

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Declarations of cuda.h, which need not be installed on the build machine.
typedef int cu_result;
typedef unsigned long long cu_pointer;
typedef int cu_device;
typedef void *cu_context;

enum {
	CU_SUCCESS = 0,
	CU_ERROR_OUT_OF_MEMORY = 2,
	CU_ERROR_NO_DEVICE = 100,
	CU_ERROR_INVALID_DEVICE = 101,
	CU_ERROR_NOT_SUPPORTED = 801,
};

enum {
	CU_ATTRIBUTE_CONTEXT = 1,
	CU_ATTRIBUTE_MEMORY_TYPE = 2,
	CU_ATTRIBUTE_BUFFER_ID = 7,
	CU_ATTRIBUTE_IS_MANAGED = 8,
	CU_ATTRIBUTE_DEVICE_ORDINAL = 9,
};

#define CU_MEMORY_TYPE_HOST 1
#define CU_RANGE_HANDLE_DMA_BUF_FD 1

struct cuda {
	void *library;
	cu_result (*init)(unsigned int flags);
	cu_result (*error_name)(cu_result error, const char **ret_name);
	cu_result (*device_get)(cu_device *ret_device, int ordinal);
	cu_result (*device_pci)(char *text, int size, cu_device device);
	cu_result (*context_push)(cu_context context);
	cu_result (*context_pop)(cu_context *ret_context);
	cu_result (*pointer_attribute)(void *ret_value, int attribute, cu_pointer pointer);
	cu_result (*address_range)(cu_pointer *ret_base, size_t *ret_size, cu_pointer pointer);
	cu_result (*context_retain)(cu_context *ret_context, cu_device device);
	cu_result (*context_release)(cu_device device);
	cu_result (*allocate)(cu_pointer *ret_pointer, size_t size);
	cu_result (*release)(cu_pointer pointer);
	cu_result (*copy_in)(cu_pointer to, const void *from, size_t size);
	// Since CUDA 11.7; NULL in older versions.
	cu_result (*range_handle
	)(void *ret_handle, cu_pointer pointer, size_t size, int type, unsigned long long flags);
};

// ISO C cannot convert dlsym()'s result to a function pointer; POSIX recommends this copy.
static bool symbol_find(const struct cuda *cuda, const char *name, void *ret_function) {
	void *symbol = dlsym(cuda->library, name);

	if (symbol == NULL)
		return false;
	memcpy(ret_function, &symbol, sizeof(symbol));
	return true;
}

static const char *cuda_find_symbols(struct cuda *cuda) {
	const struct {
		const char *name;
		void *function;
	} needed[] = {
		{"cuInit", &cuda->init},
		{"cuGetErrorName", &cuda->error_name},
		{"cuDeviceGet", &cuda->device_get},
		{"cuDeviceGetPCIBusId", &cuda->device_pci},
		{"cuCtxPushCurrent_v2", &cuda->context_push},
		{"cuCtxPopCurrent_v2", &cuda->context_pop},
		{"cuPointerGetAttribute", &cuda->pointer_attribute},
		{"cuMemGetAddressRange_v2", &cuda->address_range},
		{"cuDevicePrimaryCtxRetain", &cuda->context_retain},
		{"cuDevicePrimaryCtxRelease_v2", &cuda->context_release},
		{"cuMemAlloc_v2", &cuda->allocate},
		{"cuMemFree_v2", &cuda->release},
		{"cuMemcpyHtoD_v2", &cuda->copy_in},
	};

	for (size_t n = 0; n < sizeof(needed) / sizeof(needed[0]); n++) {
		if (!symbol_find(cuda, needed[n].name, needed[n].function))
			return needed[n].name;
	}
	symbol_find(cuda, "cuMemGetHandleForAddressRange", &cuda->range_handle);
	return NULL;
}

static int cuda_errno(cu_result result) {
	switch (result) {
	case CU_SUCCESS:
		return 0;
	case CU_ERROR_OUT_OF_MEMORY:
		return -ENOMEM;
	case CU_ERROR_NO_DEVICE:
		return -ENODEV;
	case CU_ERROR_INVALID_DEVICE:
		return -ENOENT;
	case CU_ERROR_NOT_SUPPORTED:
		return -EOPNOTSUPP;
	default:
		return -EINVAL;
	}
}

static int
result_explain(const struct cuda *cuda, const char *call, cu_result result, char *reason) {
	const char *name = NULL;

	if (cuda->error_name(result, &name) != CU_SUCCESS || name == NULL)
		name = "unknown";
	snprintf(reason, CUDA_REASON_MAX + 1, "%s: %s (%d)", call, name, result);
	return cuda_errno(result);
}

int cuda_open(
	const char *path, char ret_reason[static CUDA_REASON_MAX + 1], struct cuda **ret_cuda
) {
	struct cuda *cuda = calloc(1, sizeof(*cuda));
	const char *missing;
	cu_result result;
	int err;

	if (path == NULL)
		path = "libcuda.so.1";
	if (cuda == NULL)
		return -ENOMEM;
	err = -ENOENT;
	cuda->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (cuda->library == NULL) {
		snprintf(ret_reason, CUDA_REASON_MAX + 1, "%s cannot be loaded", path);
		goto fail;
	}
	err = -ENOSYS;
	missing = cuda_find_symbols(cuda);
	if (missing != NULL) {
		snprintf(ret_reason, CUDA_REASON_MAX + 1, "%s has no %s", path, missing);
		goto fail;
	}
	err = -ENODEV;
	result = cuda->init(0);
	if (result != CU_SUCCESS) {
		result_explain(cuda, "cuInit", result, ret_reason);
		goto fail;
	}
	*ret_cuda = cuda;
	return 0;
fail:
	cuda_close(cuda);
	return err;
}

struct cuda *cuda_close(struct cuda *cuda) {
	if (cuda == NULL)
		return NULL;
	if (cuda->library != NULL)
		dlclose(cuda->library);
	free(cuda);
	return NULL;
}

// An attribute that does not exist for this kind of memory counts as 0.
static uint64_t
device_attribute(const struct cuda *cuda, int which, size_t size, uint64_t address) {
	uint64_t value = 0;

	must(size <= sizeof(value));
	if (cuda->pointer_attribute(&value, which, address) != CU_SUCCESS)
		return 0;
	return value;
}

int cuda_memory_info(
	const struct cuda *cuda, uint64_t address, struct cuda_memory_info *ret_memory
) {
	uint32_t type = 0;
	int ordinal = -1;

	// The call succeeds for every address that CUDA knows, including host addresses.
	if (cuda->pointer_attribute(&type, CU_ATTRIBUTE_MEMORY_TYPE, address) != CU_SUCCESS)
		return -ENOENT;
	if (cuda->pointer_attribute(&ordinal, CU_ATTRIBUTE_DEVICE_ORDINAL, address) != CU_SUCCESS)
		ordinal = -1;
	*ret_memory = (struct cuda_memory_info){
		.device = type != CU_MEMORY_TYPE_HOST,
		.managed =
			(uint32_t)device_attribute(cuda, CU_ATTRIBUTE_IS_MANAGED, 4, address) != 0,
		.ordinal = ordinal,
		.id = device_attribute(cuda, CU_ATTRIBUTE_BUFFER_ID, 8, address),
	};
	return 0;
}

// Enter the context of an allocation. A keeper's thread has no context, and calls about an
// allocation need the allocation's. Memory from a pool has none; then the driver works without.
static bool context_enter(const struct cuda *cuda, uint64_t address) {
	cu_context context = NULL;

	return cuda->pointer_attribute(&context, CU_ATTRIBUTE_CONTEXT, address) == CU_SUCCESS &&
	       context != NULL && cuda->context_push(context) == CU_SUCCESS;
}

static void context_leave(const struct cuda *cuda, bool entered) {
	cu_context context;

	if (entered)
		cuda->context_pop(&context);
}

int cuda_allocation_range(
	const struct cuda *cuda,
	uint64_t address,
	char ret_reason[static CUDA_REASON_MAX + 1],
	uint64_t *ret_begin,
	uint64_t *ret_length
) {
	bool entered = context_enter(cuda, address);
	cu_pointer begin = 0;
	size_t length = 0;
	cu_result result = cuda->address_range(&begin, &length, address);

	context_leave(cuda, entered);
	if (result != CU_SUCCESS)
		return result_explain(cuda, "cuMemGetAddressRange", result, ret_reason);
	*ret_begin = begin;
	*ret_length = length;
	return 0;
}

int cuda_export_dmabuf(
	const struct cuda *cuda,
	uint64_t address,
	uint64_t length,
	char ret_reason[static CUDA_REASON_MAX + 1],
	int *ret_fd
) {
	cu_result result;
	bool entered;
	int fd = -1;

	if (cuda->range_handle == NULL) {
		snprintf(
			ret_reason, CUDA_REASON_MAX + 1,
			"libcuda has no cuMemGetHandleForAddressRange"
		);
		return -ENOSYS;
	}
	entered = context_enter(cuda, address);
	result = cuda->range_handle(&fd, address, length, CU_RANGE_HANDLE_DMA_BUF_FD, 0);
	context_leave(cuda, entered);
	if (result != CU_SUCCESS)
		return result_explain(cuda, "cuMemGetHandleForAddressRange", result, ret_reason);
	if (fd < 0)
		return -EIO;
	*ret_fd = fd;
	return 0;
}

static cu_result
block_fill(const struct cuda *cuda, const struct cuda_block *block, const uint64_t *words) {
	cu_result result = cuda->context_push(block->context);

	if (result != CU_SUCCESS)
		return result;
	result = cuda->copy_in(block->address, words, block->length);
	context_leave(cuda, true);
	return result;
}

static cu_result block_allocate(const struct cuda *cuda, struct cuda_block *block) {
	cu_result result = cuda->context_push(block->context);
	cu_pointer address = 0;

	if (result != CU_SUCCESS)
		return result;
	result = cuda->allocate(&address, block->length);
	context_leave(cuda, true);
	block->address = address;
	return result;
}

int cuda_block_create(
	const struct cuda *cuda,
	uint32_t ordinal,
	uint64_t length,
	uint64_t word,
	char ret_reason[static CUDA_REASON_MAX + 1],
	struct cuda_block *ret_block
) {
	struct cuda_block block = {.length = length};
	uint64_t *words = malloc(length);
	const char *call = "cuDeviceGet";
	cu_result result;

	if (words == NULL) {
		snprintf(ret_reason, CUDA_REASON_MAX + 1, "out of memory");
		return -ENOMEM;
	}
	for (uint64_t n = 0; n < length / sizeof(word); n++)
		words[n] = word;
	result = ordinal <= INT32_MAX ? cuda->device_get(&block.device, (int)ordinal)
				      : CU_ERROR_INVALID_DEVICE;
	if (result == CU_SUCCESS) {
		call = "cuDevicePrimaryCtxRetain";
		result = cuda->context_retain(&block.context, block.device);
	}
	if (result == CU_SUCCESS) {
		call = "cuMemAlloc";
		result = block_allocate(cuda, &block);
	}
	if (result == CU_SUCCESS) {
		call = "cuMemcpyHtoD";
		result = block_fill(cuda, &block, words);
	}
	free(words);
	if (result != CU_SUCCESS) {
		cuda_block_destroy(cuda, &block);
		return result_explain(cuda, call, result, ret_reason);
	}
	*ret_block = block;
	return 0;
}

void cuda_block_destroy(const struct cuda *cuda, struct cuda_block *block) {
	if (block->context == NULL)
		return;
	if (block->address != 0 && cuda->context_push(block->context) == CU_SUCCESS) {
		cuda->release(block->address);
		context_leave(cuda, true);
	}
	cuda->context_release(block->device);
	block->context = NULL;
	block->address = 0;
}

int cuda_device_pci_address(
	const struct cuda *cuda, uint32_t ordinal, char ret_pci[static CUDA_PCI_BYTES]
) {
	char text[CUDA_PCI_BYTES] = "";
	cu_device device;
	cu_result result;

	if (ordinal > INT32_MAX)
		return -ENOENT;
	result = cuda->device_get(&device, (int)ordinal);
	if (result == CU_SUCCESS)
		result = cuda->device_pci(text, sizeof(text), device);
	if (result != CU_SUCCESS)
		return cuda_errno(result);
	text[sizeof(text) - 1] = '\0';
	// CUDA prints upper-case digits, the kernel lower-case ones.
	for (char *digit = text; *digit != '\0'; digit++) {
		if (*digit >= 'A' && *digit <= 'F')
			*digit = (char)(*digit - 'A' + 'a');
	}
	memcpy(ret_pci, text, sizeof(text));
	return 0;
}
