// SPDX-License-Identifier: BSD-3-Clause
// Tests of how a program file was linked, and of malformed files.
#include <support/cmocka.h>

#include <elf.h>
#include <fcntl.h>
#include <run/program.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// An ELF program of one page: its header, one program header, three sections.
struct image {
	Elf64_Ehdr head;
	Elf64_Phdr part;
	Elf64_Shdr sections[3];
	Elf64_Sym symbols[2];
	char names[32];
};

static struct image good_image(uint32_t part_type, uint16_t section_of_symbol) {
	struct image image = {
		.head =
			{.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB},
			 .e_phoff = offsetof(struct image, part),
			 .e_phentsize = sizeof(Elf64_Phdr),
			 .e_phnum = 1,
			 .e_shoff = offsetof(struct image, sections),
			 .e_shentsize = sizeof(Elf64_Shdr),
			 .e_shnum = 3},
		.part = {.p_type = part_type},
		.sections =
			{{0},
			 {.sh_type = SHT_SYMTAB,
			  .sh_link = 2,
			  .sh_offset = offsetof(struct image, symbols),
			  .sh_size = sizeof(Elf64_Sym[2])},
			 {.sh_type = SHT_STRTAB,
			  .sh_offset = offsetof(struct image, names),
			  .sh_size = 32}},
		.symbols = {{0}, {.st_name = 1, .st_shndx = section_of_symbol}},
		.names = "\0PMPI_Init",
	};

	return image;
}

static const char *judge(const void *bytes, size_t size) {
	char path[] = "/tmp/tocsin-program-XXXXXX";
	int fd = mkstemp(path);
	const char *why;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, size), (ssize_t)size);
	close(fd);
	why = program_no_preload_reason(path);
	assert_int_equal(unlink(path), 0);
	return why;
}

static void a_program_without_a_loader_is_linked_statically(void **state) {
	struct image image = good_image(PT_LOAD, SHN_UNDEF);

	(void)state;
	assert_string_equal(judge(&image, sizeof(image)), "it is linked statically");
}

static void a_program_that_defines_mpi_has_it_inside(void **state) {
	struct image inside = good_image(PT_INTERP, 1);
	struct image outside = good_image(PT_INTERP, SHN_UNDEF);

	(void)state;
	assert_string_equal(judge(&inside, sizeof(inside)), "MPI is linked into it statically");
	assert_null(judge(&outside, sizeof(outside)));
}

static void what_is_no_program_is_not_judged(void **state) {
	(void)state;
	assert_null(judge("", 0));
	assert_null(judge("#!/bin/sh\n", 10));
	assert_null(program_no_preload_reason("/nowhere/program"));
	assert_null(program_no_preload_reason("/tmp"));
}

// The file is cut at each length, and each of its bytes is set to 0xff. The reader must stay in
// bounds.
static void a_file_of_nonsense_is_read_within_its_bounds(void **state) {
	struct image image = good_image(PT_INTERP, 1);
	unsigned char bytes[sizeof(image)];

	(void)state;
	for (size_t size = 0; size < sizeof(image); size++)
		(void)judge(&image, size);
	for (size_t at = 0; at < sizeof(image); at++) {
		memcpy(bytes, &image, sizeof(image));
		bytes[at] = 0xff;
		(void)judge(bytes, sizeof(bytes));
	}
}

UNIT_GROUP(program) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_program_without_a_loader_is_linked_statically),
		cmocka_unit_test(a_program_that_defines_mpi_has_it_inside),
		cmocka_unit_test(what_is_no_program_is_not_judged),
		cmocka_unit_test(a_file_of_nonsense_is_read_within_its_bounds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
