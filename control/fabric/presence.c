// SPDX-License-Identifier: BSD-3-Clause
// Whether devices are still there, looked at when somebody says that some came or went.
#include "fabric/inside.h"

#include <lib/container.h>

#include <errno.h>

static void ended_looking(struct keeper_request *request, void *arg, int result) {
	struct nic *nic = container_of(request, struct nic, looking);
	const struct nic_work *work = arg;

	if (work->guid == 0)
		nic->guid = 0; // another one has it by now
	// What cannot be asked now is asked again with the next word of a device.
	if (result == -ENODEV && nic->open && !nic->lost)
		nic_lose(nic, "it was removed");
}

static void nic_look(struct nic *nic) {
	if (nic->lost || nic->looking.job != NULL || nic->closing.job != NULL)
		return;
	nic->looking.ended = ended_looking;
	(void)nic_run(nic, nic_work_look, &nic->looking, &nic->parts);
}

void fabric_look_at_devices(struct fabric *fabric) {
	if (fabric->stopping)
		return;
	for (uint32_t n = 0; n < fabric->nic_count; n++) {
		if (fabric->nics[n].open)
			nic_look(&fabric->nics[n]);
		else
			nic_hurry(&fabric->nics[n]);
	}
}
