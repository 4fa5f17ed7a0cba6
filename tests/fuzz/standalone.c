// SPDX-License-Identifier: BSD-3-Clause
// Runs a fuzz target over the files of a directory, for compilers without libFuzzer. So gcc and the
// sanitizer builds also replay the seeds and every input that once caused a failure.
#include <lib/error.h>
#include <lib/scoped.h>
#include <support/fuzz.h>

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

// Largest seed. Seeds are small by rule, so a larger file is reported as an error.
#define SEED_BYTES_MAX (1U << 20)

static int seed_run(int dir, const char *name) {
	scoped_file FILE *file = NULL;
	scoped_mem uint8_t *data = NULL;
	struct stat status;
	size_t size;
	int fd;

	fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return neg_errno();
	file = fdopen(fd, "rb");
	if (file == NULL) {
		close(fd);
		return neg_errno();
	}
	if (fstat(fd, &status) < 0)
		return neg_errno();
	if (!S_ISREG(status.st_mode))
		return 0;
	if (status.st_size > SEED_BYTES_MAX)
		return -EFBIG;
	size = (size_t)status.st_size;
	// An exact size, so that a sanitizer detects any read past the end.
	data = malloc(size > 0 ? size : 1);
	if (data == NULL)
		return -ENOMEM;
	if (fread(data, 1, size, file) != size)
		return -EIO;
	return LLVMFuzzerTestOneInput(data, size);
}

int main(int argc, char **argv) {
	scoped_dir DIR *dir = NULL;
	const struct dirent *entry;
	uint32_t count = 0;
	int err;

	if (argc != 2) {
		fprintf(stderr, "usage: %s CORPUS-DIRECTORY\n", argv[0]);
		return 2;
	}
	dir = opendir(argv[1]);
	if (dir == NULL) {
		fprintf(stderr, "%s: %s\n", argv[1], strerrorname_np(errno));
		return 1;
	}
	while ((entry = readdir(dir)) != NULL) {
		if (entry->d_name[0] == '.')
			continue;
		err = seed_run(dirfd(dir), entry->d_name);
		if (err != 0) {
			fprintf(stderr, "%s: %s\n", entry->d_name, strerrorname_np(-err));
			return 1;
		}
		count++;
	}
	printf("%u seeds\n", count);
	return count > 0 ? 0 : 1;
}
