// SPDX-License-Identifier: BSD-3-Clause
// How much of a simulation runs under a sanitizer: what release counts in thousands shows there in
// hundreds whether a lifetime is wrong, at several times the price.
#pragma once

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define OR_SANITIZED(whole, part) (part)
#else
#define OR_SANITIZED(whole, part) (whole)
#endif
