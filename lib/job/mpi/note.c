// SPDX-License-Identifier: BSD-3-Clause
// Prints once per kind what is not followed, to standard error of the first rank, if the user
// enabled it.
#include "follow.h"
#include "size_signal.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NOTE_BYTES 256

// bits by enum note; relaxed: the thread that sets a bit prints the note
static _Atomic uint32_t notes_said;

static bool notes_are_enabled(void) {
	// NOLINTBEGIN(concurrency-mt-unsafe): as MPI itself does
	const char *wanted = getenv("TOCSIN_MPI_NOTES");
	const char *rank = getenv("OMPI_COMM_WORLD_RANK");

	if (rank == NULL)
		rank = getenv("PMI_RANK");
	if (rank == NULL)
		rank = getenv("PMIX_RANK");
	if (rank == NULL)
		rank = getenv("SLURM_PROCID");
	// NOLINTEND(concurrency-mt-unsafe)
	return wanted != NULL && strcmp(wanted, "stderr") == 0 &&
	       (rank == NULL || strcmp(rank, "0") == 0);
}

void note_once(enum note note, const char *format, ...) {
	uint32_t bit = 1u << note;
	struct size_signal signals;
	char text[NOTE_BYTES];
	va_list args;
	int length;

	if ((atomic_fetch_or_explicit(&notes_said, bit, memory_order_relaxed) & bit) != 0 ||
	    !notes_are_enabled())
		return;
	snprintf(text, sizeof(text), "tocsin: ");
	va_start(args, format);
	length = vsnprintf(text + 8, sizeof(text) - 9, format, args);
	va_end(args);
	if (length < 0)
		return;
	length = length + 8 < NOTE_BYTES - 1 ? length + 8 : NOTE_BYTES - 2;
	text[length++] = '\n';
	size_signal_block(&signals);
	(void)!write(STDERR_FILENO, text, (size_t)length); // a failed write is ignored
	size_signal_restore(&signals);
}
