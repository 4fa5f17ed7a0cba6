// SPDX-License-Identifier: BSD-3-Clause
// A program that is not linked to libibverbs. It loads the library and looks up versioned names, as
// NCCL does, and finds the device. The test also checks the device node that UCX reads.
#include <dataplane/verbs.h>
#include <support/cmocka.h>

#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void *library;

static void *find(const char *name, const char *version) {
	void *found = dlvsym(library, name, version);

	if (found == NULL)
		fail_msg("%s", dlerror());
	return found;
}

// Look up a function. dlsym() returns void *, which C does not convert to a function pointer, so
// the bytes are copied.
#define FIND(name, version)                                               \
	__typeof__(&(name)) call_##name;                                  \
	{                                                                 \
		void *found_##name = find(#name, version);                \
                                                                          \
		memcpy(&call_##name, &found_##name, sizeof(call_##name)); \
	}

static void the_library_is_found_by_each_of_its_names(void **state) {
	static const char *const names[] = {"libibverbs.so.1", "libibverbs.so"};

	(void)state;
	for (size_t n = 0; n < sizeof(names) / sizeof(names[0]); n++) {
		void *handle = dlopen(names[n], RTLD_NOW);

		assert_non_null(handle);
		assert_ptr_equal(
			dlsym(handle, "ibv_open_device"), dlsym(library, "ibv_open_device")
		);
		assert_int_equal(dlclose(handle), 0);
	}
}

static void a_name_with_its_version_is_the_devices(void **state) {
	FIND(ibv_get_device_list, "IBVERBS_1.1")
	FIND(ibv_free_device_list, "IBVERBS_1.1")
	FIND(ibv_get_device_name, "IBVERBS_1.1")
	FIND(ibv_open_device, "IBVERBS_1.1")
	FIND(ibv_close_device, "IBVERBS_1.1")
	FIND(ibv_query_device, "IBVERBS_1.1")
	FIND(ibv_event_type_str, "IBVERBS_1.1") // of the real libibverbs behind
	struct ibv_device **devices;
	struct ibv_device_attr attr;
	struct ibv_context *context;

	(void)state;
	(void)find("ibv_reg_mr_iova2", "IBVERBS_1.8");
	(void)find("ibv_query_ece", "IBVERBS_1.10");
	(void)find("ibv_reg_dmabuf_mr", "IBVERBS_1.12");
	devices = call_ibv_get_device_list(NULL);
	assert_non_null(devices);
	assert_non_null(devices[0]);
	assert_string_equal(call_ibv_get_device_name(devices[0]), "soft0");
	context = call_ibv_open_device(devices[0]);
	assert_non_null(context);
	assert_int_equal(call_ibv_query_device(context, &attr), 0);
	assert_string_equal(attr.fw_ver, "tocsin");
	assert_int_equal(call_ibv_close_device(context), 0);
	call_ibv_free_device_list(devices);
	assert_non_null(call_ibv_event_type_str(IBV_EVENT_PORT_ERR));
}

static void a_version_that_nobody_has_is_not_found(void **state) {
	(void)state;
	assert_null(dlvsym(library, "ibv_open_device", "IBVERBS_9.9"));
	assert_null(dlvsym(library, "ibv_no_such_call", "IBVERBS_1.1"));
}

static void other_libraries_are_loaded_as_before(void **state) {
	void *handle = dlopen("libm.so.6", RTLD_NOW);

	(void)state;
	assert_non_null(handle);
	assert_non_null(dlsym(handle, "cos"));
	assert_int_equal(dlclose(handle), 0);
	assert_null(dlopen("libibverbs-of-nobody.so", RTLD_NOW));
	assert_non_null(dlopen(NULL, RTLD_NOW));
}

// The loader identifies the caller by the return address. Under a sanitizer, that is the sanitizer
// itself.
static void the_run_path_of_the_caller_is_the_one_that_counts(void **state) {
	(void)state;
#ifdef __SANITIZE_ADDRESS__
	skip();
#endif
	// The library is only in the run path of this program.
	assert_non_null(dlopen("libtocsin-wire-dpdk.so", RTLD_LAZY | RTLD_LOCAL));
}

static void its_node_alone_is_a_device_to_read_and_write(void **state) {
	struct stat status;
	int fd;

	(void)state;
	assert_int_equal(stat("/dev/infiniband/soft0", &status), 0);
	assert_true(S_ISCHR(status.st_mode));
	assert_int_equal(access("/dev/infiniband/soft0", R_OK | W_OK), 0);
	fd = open("/dev/infiniband/soft0", O_RDWR | O_CLOEXEC);
	assert_true(fd >= 0);
	close(fd);
	assert_int_not_equal(stat("/dev/infiniband/soft9", &status), 0);
	assert_int_not_equal(access("/dev/infiniband/soft0/x", R_OK), 0);
	assert_int_equal(open("/dev/infiniband/", O_RDWR | O_CLOEXEC), -1);
	assert_int_equal(stat("/", &status), 0);
	assert_true(S_ISDIR(status.st_mode));
}

static void a_file_is_made_with_its_mode(void **state) {
	char path[] = "/tmp/tocsin-loads-XXXXXX";
	struct stat status;
	int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(unlink(path), 0);
	fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0640);
	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &status), 0);
	assert_int_equal(status.st_mode & 0777 & ~0640u, 0);
	assert_int_not_equal(status.st_mode & 0600, 0);
	close(fd);
	assert_int_equal(unlink(path), 0);
}

static int load(void **state) {
	(void)state;
	library = dlopen("libibverbs.so.1", RTLD_NOW | RTLD_LOCAL);
	return library == NULL ? -1 : 0;
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_library_is_found_by_each_of_its_names),
		cmocka_unit_test(a_name_with_its_version_is_the_devices),
		cmocka_unit_test(a_version_that_nobody_has_is_not_found),
		cmocka_unit_test(other_libraries_are_loaded_as_before),
		cmocka_unit_test(the_run_path_of_the_caller_is_the_one_that_counts),
		cmocka_unit_test(its_node_alone_is_a_device_to_read_and_write),
		cmocka_unit_test(a_file_is_made_with_its_mode),
	};

	return cmocka_run_group_tests(tests, load, NULL);
}
