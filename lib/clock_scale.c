// SPDX-License-Identifier: BSD-3-Clause
// Turns a rate of ticks into a multiplier and its error.
#include <lib/clock_scale.h>

#include <errno.h>

#define NS_PER_S 1000000000ULL

// Half of each bracket, and the nanosecond by which readings of a clock are rounded.
static uint64_t rate_error_ppb(
	const struct clock_sample *first,
	const struct clock_sample *last,
	uint64_t ticks,
	uint64_t ns
) {
	unsigned __int128 widths = (unsigned __int128)(first->ticks_after - first->ticks_before) +
				   (last->ticks_after - last->ticks_before);
	unsigned __int128 error_ppb = widths * NS_PER_S / 2 / ticks + NS_PER_S / ns + 2;

	return error_ppb > UINT64_MAX ? UINT64_MAX : (uint64_t)error_ppb;
}

int clock_scale_init(
	struct clock_scale *ret_scale,
	const struct clock_sample *first,
	const struct clock_sample *last
) {
	unsigned __int128 hz;
	uint64_t ticks, ns, error_ppb;

	if (first->ticks_after < first->ticks_before || last->ticks_after < last->ticks_before ||
	    last->ticks_before <= first->ticks_after || last->ns <= first->ns)
		return -EINVAL;
	ticks = clock_sample_ticks(last) - clock_sample_ticks(first);
	ns = last->ns - first->ns;
	hz = (unsigned __int128)ticks * NS_PER_S / ns;
	if (hz < CLOCK_SCALE_HZ_MIN || hz > CLOCK_SCALE_HZ_MAX)
		return -ERANGE;
	error_ppb = rate_error_ppb(first, last, ticks, ns);
	if (error_ppb > CLOCK_SCALE_ERROR_PPB_MAX)
		return -EAGAIN;
	ret_scale->ticks_base = clock_sample_ticks(last);
	ret_scale->ns_base = last->ns;
	ret_scale->multiplier = (uint64_t)(((unsigned __int128)ns << CLOCK_SCALE_SHIFT) / ticks);
	ret_scale->error_ppb = (uint32_t)error_ppb;
	return 0;
}
