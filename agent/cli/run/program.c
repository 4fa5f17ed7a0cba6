// SPDX-License-Identifier: BSD-3-Clause
// Inspects an ELF file: whether it uses the dynamic loader, and whether MPI is linked statically.
// Every offset is checked, since the file is untrusted.
#include "run/program.h"

#include <lib/scoped.h>

#include <elf.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_MAX (INT64_C(1) << 32)

struct file {
	const uint8_t *bytes;
	uint64_t size;
};

static bool file_has_range(const struct file *file, uint64_t offset, uint64_t size) {
	return offset <= file->size && size <= file->size - offset;
}

static bool file_read_at(const struct file *file, uint64_t offset, void *to, size_t size) {
	if (!file_has_range(file, offset, size))
		return false;
	memcpy(to, file->bytes + offset, size);
	return true;
}

static bool
symbol_is_named(const struct file *file, const Elf64_Shdr *names, uint32_t at, const char *name) {
	size_t size = strlen(name) + 1;

	return at < names->sh_size && size <= names->sh_size - at &&
	       file_has_range(file, names->sh_offset, names->sh_size) &&
	       memcmp(file->bytes + names->sh_offset + at, name, size) == 0;
}

static bool table_defines_symbol(
	const struct file *file, const Elf64_Shdr *table, const Elf64_Shdr *names, const char *name
) {
	if (!file_has_range(file, table->sh_offset, table->sh_size))
		return false;
	for (uint64_t at = 0; at + sizeof(Elf64_Sym) <= table->sh_size; at += sizeof(Elf64_Sym)) {
		Elf64_Sym symbol;

		memcpy(&symbol, file->bytes + table->sh_offset + at, sizeof(symbol));
		if (symbol.st_shndx != SHN_UNDEF &&
		    symbol_is_named(file, names, symbol.st_name, name))
			return true;
	}
	return false;
}

static bool file_defines_symbol(const struct file *file, const Elf64_Ehdr *head, const char *name) {
	for (uint64_t n = 0; n < head->e_shnum; n++) {
		Elf64_Shdr table, names;

		if (!file_read_at(file, head->e_shoff + n * sizeof(table), &table, sizeof(table)))
			return false;
		if (table.sh_type != SHT_SYMTAB && table.sh_type != SHT_DYNSYM)
			continue;
		if (table.sh_link < head->e_shnum &&
		    file_read_at(
			    file, head->e_shoff + table.sh_link * sizeof(names), &names,
			    sizeof(names)
		    ) &&
		    table_defines_symbol(file, &table, &names, name))
			return true;
	}
	return false;
}

static const char *no_preload_reason(const struct file *file) {
	bool has_loader = false;
	Elf64_Ehdr head;
	Elf64_Phdr part;

	if (!file_read_at(file, 0, &head, sizeof(head)) ||
	    memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 || head.e_ident[EI_CLASS] != ELFCLASS64 ||
	    head.e_phentsize != sizeof(Elf64_Phdr) ||
	    (head.e_shnum != 0 && head.e_shentsize != sizeof(Elf64_Shdr)))
		return NULL;
	// In a malformed file a loader is assumed.
	for (uint64_t n = 0; n < head.e_phnum && !has_loader; n++)
		has_loader =
			!file_read_at(file, head.e_phoff + n * sizeof(part), &part, sizeof(part)) ||
			part.p_type == PT_INTERP;
	if (!has_loader)
		return "it is linked statically";
	return file_defines_symbol(file, &head, "PMPI_Init") ? "MPI is linked into it statically"
							     : NULL;
}

const char *program_no_preload_reason(const char *path) {
	// Without O_NONBLOCK, open() would wait on a pipe of this name.
	scoped_fd int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	struct file file;
	struct stat status;
	const char *why;
	void *bytes;

	if (fd < 0 || fstat(fd, &status) != 0 || !S_ISREG(status.st_mode) || status.st_size <= 0 ||
	    status.st_size > FILE_MAX)
		return NULL;
	bytes = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (bytes == MAP_FAILED)
		return NULL;
	file = (struct file){bytes, (uint64_t)status.st_size};
	why = no_preload_reason(&file);
	munmap(bytes, (size_t)status.st_size);
	return why;
}
