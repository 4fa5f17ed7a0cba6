// SPDX-License-Identifier: BSD-3-Clause
// Tests of our libcuda wrapper: the errors if the library is missing or unusable, and our own pages
// in GPU memory.
#include <dataplane/gpu_page.h>
#include <support/cases.h>
#include <support/cmocka.h>
#include <support/fake_cuda.h>

#include <dlfcn.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

static struct fake_cuda *fake_cuda;

static int load(void **state) {
	void *library = dlopen(FAKE_CUDA, RTLD_NOW);

	(void)state;
	fake_cuda = library != NULL ? dlsym(library, "fake_cuda") : NULL;
	return fake_cuda != NULL ? 0 : -1;
}

static void a_library_that_will_not_do_is_refused_with_what_it_lacks(void **state) {
	static const struct {
		const char *path;
		int init_error, err;
		const char *reason;
	} rows[] = {
		{"/nowhere/libcuda.so.1", 0, -ENOENT, "/nowhere/libcuda.so.1 cannot be loaded"},
		{"libm.so.6", 0, -ENOSYS, "libm.so.6 has no cuInit"},
		{FAKE_CUDA, 100, -ENODEV, "cuInit: CUDA_ERROR_NO_DEVICE (100)"},
		{FAKE_CUDA, 999, -ENODEV, "cuInit: unknown (999)"},
	};

	(void)state;
	for (size_t n = 0; n < COUNT_OF(rows); n++) {
		char reason[CUDA_REASON_MAX + 1] = "";
		struct cuda *cuda = NULL;

		fake_cuda->init_error = rows[n].init_error;
		assert_int_equal(cuda_open(rows[n].path, reason, &cuda), rows[n].err);
		assert_null(cuda);
		assert_string_equal(reason, rows[n].reason);
	}
	fake_cuda->init_error = 0;
	assert_null(cuda_close(NULL));
}

static void a_device_is_where_the_kernel_says_in_its_own_letters(void **state) {
	char reason[CUDA_REASON_MAX + 1], pci[CUDA_PCI_BYTES] = "kept";
	struct cuda *cuda;

	(void)state;
	assert_int_equal(cuda_open(FAKE_CUDA, reason, &cuda), 0);
	assert_int_equal(cuda_device_pci_address(cuda, 2, pci), -ENOENT);
	assert_int_equal(cuda_device_pci_address(cuda, UINT32_MAX, pci), -ENOENT);
	assert_string_equal(pci, "kept");
	assert_int_equal(cuda_device_pci_address(cuda, 1, pci), 0);
	assert_string_equal(pci, "0000:1b:00.0");
	cuda_close(cuda);
}

static void a_library_from_before_dmabuf_says_so(void **state) {
	char reason[CUDA_REASON_MAX + 1];
	struct cuda *cuda;
	int fd = -1;

	(void)state;
	assert_int_equal(cuda_open(FAKE_CUDA_OLD, reason, &cuda), 0);
	assert_int_equal(cuda_export_dmabuf(cuda, 4096, 4096, reason, &fd), -ENOSYS);
	assert_string_equal(reason, "libcuda has no cuMemGetHandleForAddressRange");
	assert_int_equal(fd, -1);
	cuda_close(cuda);
}

static void an_address_that_cuda_does_not_know_is_none_of_its(void **state) {
	char reason[CUDA_REASON_MAX + 1];
	struct cuda_memory_info memory;
	uint64_t begin, length;
	struct cuda *cuda;

	(void)state;
	assert_int_equal(cuda_open(FAKE_CUDA, reason, &cuda), 0);
	assert_int_equal(cuda_memory_info(cuda, (uintptr_t)&memory, &memory), -ENOENT);
	assert_int_equal(
		cuda_allocation_range(cuda, (uintptr_t)&memory, reason, &begin, &length), -EINVAL
	);
	assert_string_equal(reason, "cuMemGetAddressRange: CUDA_ERROR_INVALID_VALUE (1)");
	cuda_close(cuda);
}

static void a_block_says_the_word_all_over_and_goes_with_its_context(void **state) {
	char reason[CUDA_REASON_MAX + 1];
	struct cuda_block block = {0};
	const uint64_t *words;
	struct cuda *cuda;

	(void)state;
	assert_int_equal(cuda_open(FAKE_CUDA, reason, &cuda), 0);
	assert_int_equal(cuda_block_create(cuda, 1, 4096, 0x1122334455667788, reason, &block), 0);
	assert_int_equal(block.length, 4096);
	assert_int_equal(fake_cuda->contexts_held, 1);
	assert_int_equal(fake_cuda->context_depth, 0);
	words = (const void *)(uintptr_t)block.address; // NOLINT(performance-no-int-to-ptr)
	for (size_t n = 0; n < 4096 / sizeof(*words); n++)
		assert_int_equal(words[n], 0x1122334455667788);
	cuda_block_destroy(cuda, &block);
	assert_int_equal(fake_cuda->contexts_held, 0);
	assert_int_equal(fake_cuda->blocks, 0);
	cuda_block_destroy(cuda, &block);
	cuda_close(cuda);
}

static void a_block_that_cannot_be_had_leaves_nothing_and_says_which_call_failed(void **state) {
	static const struct {
		uint32_t ordinal;
		int retain, allocate, copy, err;
		const char *reason;
	} rows[] = {
		{7, 0, 0, 0, -ENOENT, "cuDeviceGet: CUDA_ERROR_INVALID_DEVICE (101)"},
		{UINT32_MAX, 0, 0, 0, -ENOENT, "cuDeviceGet: CUDA_ERROR_INVALID_DEVICE (101)"},
		{0, 2, 0, 0, -ENOMEM, "cuDevicePrimaryCtxRetain: CUDA_ERROR_OUT_OF_MEMORY (2)"},
		{0, 0, 2, 0, -ENOMEM, "cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY (2)"},
		{0, 0, 0, 1, -EINVAL, "cuMemcpyHtoD: CUDA_ERROR_INVALID_VALUE (1)"},
	};
	char reason[CUDA_REASON_MAX + 1];
	struct cuda *cuda;

	(void)state;
	assert_int_equal(cuda_open(FAKE_CUDA, reason, &cuda), 0);
	for (size_t n = 0; n < COUNT_OF(rows); n++) {
		struct cuda_block block = {.length = 77};

		fake_cuda->retain_error = rows[n].retain;
		fake_cuda->allocate_error = rows[n].allocate;
		fake_cuda->copy_error = rows[n].copy;
		assert_int_equal(
			cuda_block_create(cuda, rows[n].ordinal, 4096, 1, reason, &block),
			rows[n].err
		);
		assert_string_equal(reason, rows[n].reason);
		assert_int_equal(block.length, 77);
		assert_int_equal(fake_cuda->contexts_held, 0);
		assert_int_equal(fake_cuda->blocks, 0);
	}
	fake_cuda->reset();
	cuda_close(cuda);
}

static void a_page_is_exported_whole_and_its_end_gives_all_back(void **state) {
	const struct gpu_page_config config = {.library = FAKE_CUDA, .ordinal = 1, .word = 9};
	const struct gpu_page_facts *facts;
	char reason[CUDA_REASON_MAX + 1];
	uint64_t word = 0;
	struct gpu_page *page;
	off_t begin;

	(void)state;
	assert_int_equal(gpu_page_create(&config, reason, &page), 0);
	facts = gpu_page_facts(page);
	assert_int_equal(facts->ordinal, 1);
	assert_string_equal(facts->pci, "0000:1b:00.0");
	assert_int_equal(facts->word, 9);
	assert_int_equal(facts->address % (uint64_t)sysconf(_SC_PAGESIZE), 0);
	begin = lseek(facts->fd, 0, SEEK_CUR);
	assert_int_equal(
		pread(facts->fd, &word, sizeof(word), begin + GPU_PAGE_BYTES - 8), sizeof(word)
	);
	assert_int_equal(word, 9);
	assert_null(gpu_page_destroy(page));
	assert_null(gpu_page_destroy(NULL));
	assert_int_equal(fake_cuda->contexts_held, 0);
	assert_int_equal(fake_cuda->blocks, 0);
}

static void a_page_that_cannot_be_is_refused_in_words_and_leaves_nothing(void **state) {
	static const struct {
		const char *library;
		uint32_t ordinal;
		int allocate, export, err;
		const char *reason;
	} rows[] = {
		{"/nowhere/libcuda.so.1", 0, 0, 0, -ENOENT,
		 "/nowhere/libcuda.so.1 cannot be loaded"},
		{FAKE_CUDA, 5, 0, 0, -ENOENT, "cuDeviceGet: CUDA_ERROR_INVALID_DEVICE (101)"},
		{FAKE_CUDA, 0, 2, 0, -ENOMEM, "cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY (2)"},
		{FAKE_CUDA, 0, 0, 801, -EOPNOTSUPP,
		 "cuMemGetHandleForAddressRange: CUDA_ERROR_NOT_SUPPORTED (801)"},
		{FAKE_CUDA_OLD, 0, 0, 0, -ENOSYS, "libcuda has no cuMemGetHandleForAddressRange"},
	};

	(void)state;
	for (size_t n = 0; n < COUNT_OF(rows); n++) {
		const struct gpu_page_config config = {
			.library = rows[n].library, .ordinal = rows[n].ordinal};
		char reason[CUDA_REASON_MAX + 1];
		struct gpu_page *page = NULL;

		fake_cuda->allocate_error = rows[n].allocate;
		fake_cuda->export_error = rows[n].export;
		assert_int_equal(gpu_page_create(&config, reason, &page), rows[n].err);
		assert_string_equal(reason, rows[n].reason);
		assert_null(page);
		assert_int_equal(fake_cuda->contexts_held, 0);
		assert_int_equal(fake_cuda->blocks, 0);
	}
	fake_cuda->reset();
}

UNIT_GROUP(cuda) {
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_library_that_will_not_do_is_refused_with_what_it_lacks),
		cmocka_unit_test(a_device_is_where_the_kernel_says_in_its_own_letters),
		cmocka_unit_test(a_library_from_before_dmabuf_says_so),
		cmocka_unit_test(an_address_that_cuda_does_not_know_is_none_of_its),
		cmocka_unit_test(a_block_says_the_word_all_over_and_goes_with_its_context),
		cmocka_unit_test(
			a_block_that_cannot_be_had_leaves_nothing_and_says_which_call_failed
		),
		cmocka_unit_test(a_page_is_exported_whole_and_its_end_gives_all_back),
		cmocka_unit_test(a_page_that_cannot_be_is_refused_in_words_and_leaves_nothing),
	};

	return cmocka_run_group_tests(tests, load, NULL);
}
