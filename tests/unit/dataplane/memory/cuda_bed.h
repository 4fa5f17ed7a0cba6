// SPDX-License-Identifier: BSD-3-Clause
// A fake libcuda that the test controls, and a list of kernel modules. FAKE_CUDA is the path of the
// library.
#pragma once

#include <dataplane/cuda.h>
#include <lib/scoped.h>
#include <support/cmocka.h>
#include <support/fake_cuda.h>

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static struct cuda *cuda;
static struct fake_cuda *fake_cuda;
static void *library;
static char modules[] = "/tmp/tocsin-modules.XXXXXX";

static int open_library(void **state) {
	char reason[CUDA_REASON_MAX + 1];
	int fd = mkstemp(modules);

	(void)state;
	close(fd);
	library = dlopen(FAKE_CUDA, RTLD_NOW);
	fake_cuda = library != NULL ? dlsym(library, "fake_cuda") : NULL;
	if (fake_cuda == NULL || fd < 0)
		return -1;
	return cuda_open(FAKE_CUDA, reason, &cuda);
}

static int close_library(void **state) {
	(void)state;
	cuda = cuda_close(cuda);
	unlink(modules);
	return dlclose(library);
}

static void modules_are(const char *text) {
	scoped_file FILE *file = fopen(modules, "we");

	assert_non_null(file);
	fputs(text, file);
}
