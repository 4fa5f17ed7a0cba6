// SPDX-License-Identifier: BSD-3-Clause
// cmocka asks for these before its own header; one place knows the order.
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
