// SPDX-License-Identifier: BSD-3-Clause
// The door to libcuda: what is said when there is none, or one that will not do.
#include <dataplane/cuda.h>
#include <support/cases.h>
#include <support/cmocka.h>
#include <support/fake_cuda.h>

#include <dlfcn.h>
#include <errno.h>
#include <string.h>

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
	assert_int_equal(cuda_pci(cuda, 2, pci), -ENOENT);
	assert_int_equal(cuda_pci(cuda, UINT32_MAX, pci), -ENOENT);
	assert_string_equal(pci, "kept");
	assert_int_equal(cuda_pci(cuda, 1, pci), 0);
	assert_string_equal(pci, "0000:1b:00.0");
	cuda_close(cuda);
}

static void a_library_from_before_dmabuf_says_so(void **state) {
	char reason[CUDA_REASON_MAX + 1];
	struct cuda *cuda;
	int fd = -1;

	(void)state;
	assert_int_equal(cuda_open(FAKE_CUDA_OLD, reason, &cuda), 0);
	assert_int_equal(cuda_export(cuda, 4096, 4096, reason, &fd), -ENOSYS);
	assert_string_equal(reason, "libcuda has no cuMemGetHandleForAddressRange");
	assert_int_equal(fd, -1);
	cuda_close(cuda);
}

static void an_address_that_cuda_does_not_know_is_none_of_its(void **state) {
	char reason[CUDA_REASON_MAX + 1];
	struct cuda_memory memory;
	uint64_t begin, length;
	struct cuda *cuda;

	(void)state;
	assert_int_equal(cuda_open(FAKE_CUDA, reason, &cuda), 0);
	assert_int_equal(cuda_memory(cuda, (uintptr_t)&memory, &memory), -ENOENT);
	assert_int_equal(
		cuda_allocation(cuda, (uintptr_t)&memory, reason, &begin, &length), -EINVAL
	);
	assert_string_equal(reason, "cuMemGetAddressRange: CUDA_ERROR_INVALID_VALUE (1)");
	cuda_close(cuda);
}

int main(void) {
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_library_that_will_not_do_is_refused_with_what_it_lacks),
		cmocka_unit_test(a_device_is_where_the_kernel_says_in_its_own_letters),
		cmocka_unit_test(a_library_from_before_dmabuf_says_so),
		cmocka_unit_test(an_address_that_cuda_does_not_know_is_none_of_its),
	};

	return cmocka_run_group_tests(tests, load, NULL);
}
