// SPDX-License-Identifier: BSD-3-Clause
// Tests of our libcuda wrapper with a real driver and GPU. They check what the fake of the other
// tests assumes. Without a GPU one test skips, and the others do not run.
#include <dataplane/gpu_page.h>
#include <support/cmocka.h>

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define WORD UINT64_C(0x0123456789abcdef)

// Opened once for all tests.
static struct cuda *cuda;

static void a_real_gpu_is_here(void **state) {
	(void)state;
	if (cuda == NULL)
		skip();
}

// Read GPU memory back through the driver itself, on the thread's current context.
static int read_back(const struct cuda_block *block, void *to, size_t size) {
	void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
	int (*push)(void *) = NULL, (*pop)(void **) = NULL;
	int (*copy)(void *, unsigned long long, size_t) = NULL;
	void *symbols[3] = {0}, *context;
	int result;

	assert_non_null(library);
	symbols[0] = dlsym(library, "cuCtxPushCurrent_v2");
	symbols[1] = dlsym(library, "cuCtxPopCurrent_v2");
	symbols[2] = dlsym(library, "cuMemcpyDtoH_v2");
	memcpy(&push, &symbols[0], sizeof(push));
	memcpy(&pop, &symbols[1], sizeof(pop));
	memcpy(&copy, &symbols[2], sizeof(copy));
	assert_int_equal(push(block->context), 0);
	result = copy(to, block->address, size);
	assert_int_equal(pop(&context), 0);
	dlclose(library);
	return result;
}

static void a_block_of_a_real_gpu_says_the_word_all_over(void **state) {
	enum { BYTES = 2 << 20 };
	struct cuda_block block = {0};
	char reason[CUDA_REASON_MAX + 1] = "";
	struct cuda_memory_info memory;
	uint64_t begin, length;
	uint64_t *words;

	(void)state;
	assert_int_equal(cuda_block_create(cuda, 0, BYTES, WORD, reason, &block), 0);
	words = calloc(1, BYTES);
	assert_non_null(words);
	assert_int_equal(read_back(&block, words, BYTES), 0);
	for (size_t n = 0; n < BYTES / sizeof(*words); n++)
		assert_int_equal(words[n], WORD);
	free(words);
	assert_int_equal(cuda_memory_info(cuda, block.address + 4096, &memory), 0);
	assert_true(memory.device);
	assert_false(memory.managed);
	assert_int_equal(memory.ordinal, 0);
	assert_int_not_equal(memory.id, 0);
	assert_int_equal(
		cuda_allocation_range(cuda, block.address + 4096, reason, &begin, &length), 0
	);
	assert_int_equal(begin, block.address);
	assert_int_equal(length, BYTES);
	cuda_block_destroy(cuda, &block);
}

static void an_allocation_after_another_has_another_id(void **state) {
	struct cuda_block first = {0}, second = {0};
	char reason[CUDA_REASON_MAX + 1] = "";
	struct cuda_memory_info before, after;

	(void)state;
	assert_int_equal(cuda_block_create(cuda, 0, 2 << 20, WORD, reason, &first), 0);
	assert_int_equal(cuda_memory_info(cuda, first.address, &before), 0);
	cuda_block_destroy(cuda, &first);
	assert_int_equal(cuda_block_create(cuda, 0, 2 << 20, WORD, reason, &second), 0);
	assert_int_equal(cuda_memory_info(cuda, second.address, &after), 0);
	cuda_block_destroy(cuda, &second);
	assert_int_not_equal(before.id, after.id);
}

static void memory_of_the_host_and_of_an_ended_block_is_none_of_a_real_gpu(void **state) {
	struct cuda_block block = {0};
	char reason[CUDA_REASON_MAX + 1] = "";
	struct cuda_memory_info memory;
	uint64_t address;

	(void)state;
	assert_int_equal(cuda_memory_info(cuda, (uintptr_t)&memory, &memory), -ENOENT);
	assert_int_equal(cuda_block_create(cuda, 0, 2 << 20, WORD, reason, &block), 0);
	address = block.address;
	cuda_block_destroy(cuda, &block);
	assert_int_equal(cuda_memory_info(cuda, address, &memory), -ENOENT);
}

static void a_page_of_a_real_gpu_is_exported_or_the_driver_says_why_not(void **state) {
	const struct gpu_page_config config = {.word = WORD};
	const struct gpu_page_facts *facts;
	char reason[CUDA_REASON_MAX + 1] = "", path[128];
	struct gpu_page *page = NULL;
	struct stat status;
	int err;

	(void)state;
	err = gpu_page_create(&config, reason, &page);
	if (err != 0) {
		print_message("this driver exports no page: %s\n", reason);
		assert_null(page);
		assert_int_equal(err, -EOPNOTSUPP);
		return;
	}
	facts = gpu_page_facts(page);
	assert_int_equal(facts->address % (uint64_t)sysconf(_SC_PAGESIZE), 0);
	assert_true(fcntl(facts->fd, F_GETFD) >= 0);
	// Seeking to the end of a dmabuf returns its size.
	assert_int_equal(lseek(facts->fd, 0, SEEK_END), GPU_PAGE_BYTES);
	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s", facts->pci);
	assert_int_equal(stat(path, &status), 0);
	gpu_page_destroy(page);
}

static void a_device_that_the_machine_lacks_is_refused_by_a_real_driver(void **state) {
	char reason[CUDA_REASON_MAX + 1] = "", pci[CUDA_PCI_BYTES];
	struct cuda_block block = {.length = 77};

	(void)state;
	assert_int_equal(cuda_device_pci_address(cuda, 1000, pci), -ENOENT);
	assert_int_equal(cuda_block_create(cuda, 1000, 4096, 1, reason, &block), -ENOENT);
	assert_string_equal(reason, "cuDeviceGet: CUDA_ERROR_INVALID_DEVICE (101)");
	assert_int_equal(block.length, 77);
}

UNIT_GROUP(cuda_real) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_real_gpu_is_here),
		cmocka_unit_test(a_block_of_a_real_gpu_says_the_word_all_over),
		cmocka_unit_test(an_allocation_after_another_has_another_id),
		cmocka_unit_test(memory_of_the_host_and_of_an_ended_block_is_none_of_a_real_gpu),
		cmocka_unit_test(a_page_of_a_real_gpu_is_exported_or_the_driver_says_why_not),
		cmocka_unit_test(a_device_that_the_machine_lacks_is_refused_by_a_real_driver),
	};
	const struct CMUnitTest without_gpu[] = {cmocka_unit_test(a_real_gpu_is_here)};
	char reason[CUDA_REASON_MAX + 1] = "";
	int failed, err = cuda_open(NULL, reason, &cuda);

	if (err == -ENOENT || err == -ENODEV) {
		fprintf(stderr, "no GPU to test with: %s\n", reason);
		return cmocka_run_group_tests(without_gpu, NULL, NULL);
	}
	failed = err == 0 ? cmocka_run_group_tests(tests, NULL, NULL) : 1;
	cuda_close(cuda);
	return failed;
}
