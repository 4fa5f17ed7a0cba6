// SPDX-License-Identifier: BSD-3-Clause
// Limits that query_device reports and the device enforces. Those for work requests, pieces, inline
// bytes and reads of a queue pair are in requester.h and responder.h.
#pragma once

// Has the form of an assigned OUI, but is locally administered: "TC".
#define LIMIT_VENDOR 0x025443
#define LIMIT_VENDOR_PART 1

#define LIMIT_QPS 4096
#define LIMIT_QP_WORKS 16384
#define LIMIT_SRQS 4096
#define LIMIT_SRQ_WORKS 16384
#define LIMIT_CQS 16384
#define LIMIT_CQ_ENTRIES (1 << 20)
#define LIMIT_MRS (1 << 20)
#define LIMIT_PDS 65536
#define LIMIT_GIDS 2
#define LIMIT_MESSAGE_BYTES (1u << 30)
#define LIMIT_MR_BYTES (UINT64_C(1) << 46)
