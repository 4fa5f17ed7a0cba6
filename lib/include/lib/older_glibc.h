// SPDX-License-Identifier: BSD-3-Clause
// Functions of glibc 2.32 and later, for a build with glibc 2.31. Such a build includes this header
// before every unit, with TOCSIN_OLDER_GLIBC (meson.build); other builds do not use it.
#pragma once

// As strerrorname_np(3): return the name of an error number, or NULL if the number is unknown.
const char *older_glibc_error_name(int error);

// As strerrordesc_np(3), but the text of an unknown number is "Unknown error N", not NULL. The text
// of such a number is valid until the thread calls the function again.
const char *older_glibc_error_text(int error);

// As close_range(2). A kernel before 5.9 lacks the call: returns -1 with ENOSYS.
int older_glibc_close_range(unsigned int first, unsigned int last, int flags);

#ifdef TOCSIN_OLDER_GLIBC
#define strerrorname_np older_glibc_error_name
#define strerrordesc_np older_glibc_error_text
#define close_range older_glibc_close_range
#endif
