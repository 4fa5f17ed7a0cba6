// SPDX-License-Identifier: BSD-3-Clause
// Which RDMA devices serve a place best, and why.
//
// Nearness first (enum topology_class), then bandwidth: the narrowest PCIe link between, or the
// port's speed if that is less. All that are equal in both are best, in natural order of their
// names (mlx5_2 before mlx5_10), and so are the same ones, in the same order, for everybody who
// asks. Nothing here speaks to a device: any thread.
#pragma once

#include <dataplane/cuda.h>
#include <dataplane/device.h>
#include <dataplane/topology.h>
#include <lib/parse.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DEVICE_PCI_BYTES CUDA_PCI_BYTES
#define DEVICE_TARGET_TEXT_BYTES (DEVICE_NAME_MAX + 5)
#define DEVICE_WHY_BYTES 256

enum device_target_kind {
	DEVICE_TARGET_AUTO, // whatever is fastest, each device judged from where it is; for an
			    // agent all that there are
	DEVICE_TARGET_BEST, // the same, for an agent the first of the best
	DEVICE_TARGET_NIC,  // the one of this name
	DEVICE_TARGET_CPU,  // memory of a NUMA node
	DEVICE_TARGET_CUDA, // memory of a GPU
	DEVICE_TARGET_SOFT, // the software device
	DEVICE_TARGET_NONE,
};

struct device_target {
	enum device_target_kind kind;
	uint32_t number;		// of CPU and CUDA
	char name[DEVICE_NAME_MAX + 1]; // of NIC
};

// auto, best, nic:NAME, cpu:N, cuda:N, soft or none, in lower case. -EINVAL, or -ERANGE for an N
// that no machine has, with a sentence that quotes the text and says what is allowed.
int device_target_parse(
	const char *text, size_t length, struct parse_error *error, struct device_target *ret_target
);
void device_target_format(
	const struct device_target *target, char text[static DEVICE_TARGET_TEXT_BYTES]
);

// Where GPUs are, as CUDA counts them: asked of its driver, for CUDA_VISIBLE_DEVICES makes its
// order another than that of /proc. pci() returns 0, -ENOENT (no such ordinal), or another -errno:
// it cannot be asked.
struct device_gpus {
	int (*pci)(void *ctx, uint32_t ordinal, char ret_pci[static DEVICE_PCI_BYTES]);
	void *ctx;
	char reason[CUDA_REASON_MAX + 1]; // in words, why there is nobody to ask; then pci is NULL
};

// Asks libcuda from now on, if there is one. It starts its driver, which takes time and may hang:
// only if a target is of CUDA. Never fails: without CUDA there is the reason.
void device_gpus_init(struct device_gpus *ret_gpus);
void device_gpus_fini(struct device_gpus *gpus);

enum device_verdict {
	DEVICE_BEST,
	DEVICE_SLOWER, // as near as the best, with less bandwidth
	DEVICE_FARTHER,
	DEVICE_AWAITS_PORT, // no active port: taken if it is named, not otherwise
	DEVICE_UNUSABLE,    // never taken; its facts have the reason
	DEVICE_NOT_ASKED,   // not what the target says, or not what it leaves to choose from
};

struct device_judgement {
	uint32_t device; // its place in the facts that were given
	enum device_verdict verdict;
	struct topology_way way; // pci_mbps is 0 without PCI
	uint32_t bandwidth_mbps; // 0: not known, the least of its class
};

struct device_choice {
	const struct device_facts *facts; // as given: the caller's, who keeps them as long as this
	struct device_target target;
	char target_pci[DEVICE_PCI_BYTES]; // of CUDA
	uint32_t eligible_count;	   // those that may be taken,
	uint32_t nearest_count;		   // of these the nearest,
	uint32_t best_count;		   // of these the best
	uint32_t count;
	struct device_judgement judgements[]; // the best first; what is not eligible last
};

struct device_query {
	const struct topology *topology;
	struct device_target target;
	const struct device_gpus *gpus; // NULL: nobody to ask, and no reason
	const struct device_facts *facts;
	uint32_t count;
};

// No device that will do is a choice with a best_count of 0. Errors: -ENOMEM, and with a sentence
// that names what there is:
//
//	-ENOENT  no device has that name, no such NUMA node, no such GPU
//	-ENOSYS  there is nobody to ask where GPUs are
//	other    as device_gpus.pci() said
int device_choice_create(
	const struct device_query *query,
	struct parse_error *error,
	struct device_choice **ret_choice
);
struct device_choice *device_choice_destroy(struct device_choice *choice);

// Whether auto and best take the software device: no other of these can have pairs, now or once it
// has a port again. Software devices among them do not count.
bool device_choice_wants_soft(const struct device_facts *facts, uint32_t count);

// One sentence about the outcome, of as much as fits: what was chosen, and what decided it.
void device_choice_say(const struct device_choice *choice, char text[static DEVICE_WHY_BYTES]);

// Half a sentence about judgements[n].
void device_choice_say_one(
	const struct device_choice *choice, uint32_t n, char text[static DEVICE_WHY_BYTES]
);

// Where a device is for this target, half a sentence; for targets that are no place, whether it is
// in the PCI tree at all.
const char *device_choice_place(const struct device_choice *choice, enum topology_class class);

// "best", "slower", "farther", "awaits-port", "unusable", "not-asked".
const char *device_verdict_name(enum device_verdict verdict);
