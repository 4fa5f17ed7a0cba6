// SPDX-License-Identifier: BSD-3-Clause
// Binds functions of the C library to their versions in glibc 2.17, so that the library also runs
// there. Newer glibc has additional versions, because the thread functions moved into libc.so or
// for other reasons. Sanitizers provide their own functions.
#pragma once

#if defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
#define OLD_SYMBOLS_SANITIZED
#endif
#endif
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define OLD_SYMBOLS_SANITIZED
#endif

#ifndef OLD_SYMBOLS_SANITIZED
#if defined(__x86_64__)
#define OLD_SYMBOL(name, version) __asm__(".symver " #name "," #name "@GLIBC_" version)
OLD_SYMBOL(pthread_create, "2.2.5");
OLD_SYMBOL(pthread_join, "2.2.5");
OLD_SYMBOL(pthread_sigmask, "2.2.5");
OLD_SYMBOL(pthread_mutex_trylock, "2.2.5");
OLD_SYMBOL(pthread_key_create, "2.2.5");
OLD_SYMBOL(pthread_getspecific, "2.2.5");
OLD_SYMBOL(pthread_setspecific, "2.2.5");
OLD_SYMBOL(pthread_condattr_setclock, "2.3.3");
#elif defined(__aarch64__)
#define OLD_SYMBOL(name, version) __asm__(".symver " #name "," #name "@GLIBC_2.17")
OLD_SYMBOL(pthread_create, "");
OLD_SYMBOL(pthread_join, "");
OLD_SYMBOL(pthread_sigmask, "");
OLD_SYMBOL(pthread_mutex_trylock, "");
OLD_SYMBOL(pthread_key_create, "");
OLD_SYMBOL(pthread_getspecific, "");
OLD_SYMBOL(pthread_setspecific, "");
OLD_SYMBOL(pthread_condattr_setclock, "");
#endif
#endif
