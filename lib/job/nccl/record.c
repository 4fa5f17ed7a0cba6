// SPDX-License-Identifier: BSD-3-Clause
// Writes a recording of NCCL's callbacks.
#include "record.h"

#include "fields.h"
#include "loader_symbols.h"
#include "size_signal.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define LINE_BYTES 1024u
#define PATH_BYTES 1024u
#define ERROR_BYTES 96
#define TEXT_MAX 96u // bytes kept of a text from NCCL
#define THREADS_MAX 256u

static struct {
	bool is_open;
	int fd;
	int version;
	int mask;
	uint64_t began_ns, bytes;
	int32_t threads[THREADS_MAX];
	uint32_t thread_count;
	char line[LINE_BYTES];
	size_t used;
} record;

static uint64_t now_ns(void) {
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

// A line that does not fit is truncated; NCCL's fields are shorter.
__attribute__((format(printf, 1, 2))) static void line_add(const char *format, ...) {
	va_list args;
	int length;

	va_start(args, format);
	length = vsnprintf(record.line + record.used, LINE_BYTES - record.used, format, args);
	va_end(args);
	if (length > 0)
		record.used += (size_t)length;
	if (record.used >= LINE_BYTES - 1)
		record.used = LINE_BYTES - 2;
}

static void line_text(const char *name, const char *text) {
	if (text == NULL)
		return;
	line_add(" %s=", name);
	for (size_t n = 0; n < TEXT_MAX && text[n] != '\0'; n++) {
		unsigned char byte = (unsigned char)text[n];

		if (byte <= ' ' || byte >= 127 || byte == '\\')
			line_add("\\x%02x", byte);
		else
			line_add("%c", byte);
	}
}

static void line_write(void) {
	struct size_signal signals;
	char words[ERROR_BYTES];
	ssize_t written;

	record.line[record.used++] = '\n';
	size_signal_block(&signals);
	written = write(record.fd, record.line, record.used);
	size_signal_restore(&signals);
	if (written != (ssize_t)record.used || record.bytes + record.used > RECORD_BYTES_MAX) {
		bridge_log_once(
			BRIDGE_LOGGED_RECORD, "the recording ends after %" PRIu64 " bytes: %s",
			record.bytes,
			written < 0 ? strerror_r(errno, words, sizeof(words))
				    : "the disk is full, or the size limit is reached"
		);
		record_close();
		return;
	}
	record.bytes += record.used;
	record.used = 0;
}

static void line_begin(const char *call) {
	int32_t tid = (int32_t)syscall(SYS_gettid);
	uint64_t at_ns = now_ns() - record.began_ns;
	uint32_t thread = 0;

	while (thread < record.thread_count && record.threads[thread] != tid)
		thread++;
	if (thread == record.thread_count) {
		if (record.thread_count < THREADS_MAX)
			record.threads[record.thread_count++] = tid;
		thread = record.thread_count - 1;
	}
	record.used = 0;
	line_add("%" PRIu64 " t%u %s", at_ns, thread, call);
}

// Return NCCL's version, found through its log function; 0 for versions 1 to 3, which pass none.
static int nccl_version(nccl_logger *logger) {
	int (*get_version)(int *version);
	void *library, *address;
	Dl_info where;
	int version = 0;

	*(nccl_logger **)&address = logger;
	if (logger == NULL || dladdr(address, &where) == 0)
		return 0;
	library = dlopen(where.dli_fname, RTLD_NOW | RTLD_NOLOAD);
	if (library == NULL)
		return 0;
	*(void **)&get_version = dlsym(library, "ncclGetVersion");
	if (get_version == NULL || get_version(&version) != 0)
		version = 0;
	dlclose(library);
	return version;
}

bool record_open(int version, nccl_logger *logger) {
	const char *path = bridge_environment_value("TOCSIN_NCCL_RECORD");
	const char *mask = bridge_environment_value("TOCSIN_NCCL_RECORD_MASK");
	char full[PATH_BYTES], words[ERROR_BYTES];

	if (path == NULL)
		return false;
	memset(&record, 0, sizeof(record));
	snprintf(full, sizeof(full), "%s.%d", path, (int)getpid());
	record.fd = open(full, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (record.fd < 0) {
		bridge_log_once(
			BRIDGE_LOGGED_RECORD, "TOCSIN_NCCL_RECORD: %s: %s", full,
			strerror_r(errno, words, sizeof(words))
		);
		return false;
	}
	for (; mask != NULL && *mask >= '0' && *mask <= '9'; mask++)
		record.mask = record.mask * 10 % (1 << 20) + (*mask - '0');
	record.mask &= (int)nccl_types_in(version);
	record.is_open = true;
	record.version = version;
	record.began_ns = now_ns();
	line_add(
		"tocsin-nccl-recording 1\ninterface %d\npid %d\nnccl %d", version, (int)getpid(),
		nccl_version(logger)
	);
	line_write();
	return record.is_open;
}

void record_close(void) {
	if (record.is_open)
		close(record.fd);
	record.is_open = false;
}

bool record_is_open(void) {
	return record.is_open;
}

int record_mask(void) {
	return record.is_open ? record.mask : 0;
}

void record_init(uint32_t comm, const struct bridge_identity *identity, int mask) {
	if (!record.is_open)
		return;
	line_begin("init");
	line_add(" comm=c%u mask=%d", comm, mask);
	if (record.version >= 4) {
		line_add(
			" hash=0x%" PRIx64 " nodes=%d ranks=%d rank=%d", identity->hash,
			identity->nodes, identity->size, identity->rank
		);
		line_text("name", identity->name);
	}
	line_write();
}

static void line_field(const struct nccl_field *field, const struct nccl_descriptor *descriptor) {
	const char *at = (const char *)descriptor + field->offset;
	int32_t signed_32;
	uint32_t unsigned_32;
	uint64_t unsigned_64;
	const char *text;

	switch ((enum nccl_form)field->form) {
	case NCCL_U8:
	case NCCL_BOOL:
		line_add(" %s=%u", field->name, *(const uint8_t *)at);
		break;
	case NCCL_I32:
		memcpy(&signed_32, at, sizeof(signed_32));
		line_add(" %s=%d", field->name, signed_32);
		break;
	case NCCL_U32:
		memcpy(&unsigned_32, at, sizeof(unsigned_32));
		line_add(" %s=%u", field->name, unsigned_32);
		break;
	case NCCL_U64:
	case NCCL_HEX:
		memcpy(&unsigned_64, at, sizeof(unsigned_64));
		if (field->form == NCCL_U64)
			line_add(" %s=%" PRIu64, field->name, unsigned_64);
		else
			line_add(" %s=0x%" PRIx64, field->name, unsigned_64);
		break;
	case NCCL_TEXT:
		memcpy(&text, at, sizeof(text));
		line_text(field->name, text);
		break;
	}
}

void record_start(
	uint64_t event,
	int64_t comm,
	int version,
	const struct nccl_descriptor *descriptor,
	const struct record_parents *parents
) {
	uint32_t type = descriptor_type(version, descriptor);
	const char *name = nccl_type_name(type);

	if (!record.is_open)
		return;
	line_begin("start");
	line_add(" event=e%" PRIu64, event);
	if (comm >= 0)
		line_add(" comm=c%" PRId64, comm);
	if (name != NULL)
		line_add(" type=%s", name);
	else
		line_add(" type=%u", type);
	if (parents->parent != 0)
		line_add(" parent=e%" PRIu64, parents->parent);
	else if (descriptor->parent != NULL)
		line_add(" parent=0x%" PRIxPTR, (uintptr_t)descriptor->parent);
	if (parents->parent_group != 0)
		line_add(" group=e%" PRIu64, parents->parent_group);
	line_add(" rank=%d", descriptor->rank);
	for (uint32_t n = 0; n < nccl_field_count; n++)
		if (nccl_fields[n].type == type && nccl_fields[n].first <= version &&
		    nccl_fields[n].last >= version)
			line_field(&nccl_fields[n], descriptor);
	line_write();
}

void record_stop(uint64_t event) {
	if (!record.is_open)
		return;
	line_begin("stop");
	line_add(" event=e%" PRIu64, event);
	line_write();
}

void record_state(uint64_t event, int state, const union nccl_state_arguments *arguments) {
	if (!record.is_open)
		return;
	line_begin("state");
	line_add(" event=e%" PRIu64 " state=%d", event, state);
	// All members start at offset 0. Bytes behind the 8 bytes of version 4 must not be read.
	if (arguments != NULL)
		line_add(" value=%" PRIu64, arguments->gpu_ns);
	line_write();
}

void record_finalize(uint32_t comm) {
	if (!record.is_open)
		return;
	line_begin("finalize");
	line_add(" comm=c%u", comm);
	line_write();
}
