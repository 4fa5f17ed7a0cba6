// SPDX-License-Identifier: BSD-3-Clause
// Functions of the scenario table: scenario_life.c (processes), scenario_net.c (paths and hosts),
// scenario_load.c (messages and collectives), scenario_jobs.c (communicators), scenario_listed.c
// (faults of the command line).
#pragma once

struct run;

void play_tiny(struct run *run);
void play_crash(struct run *run);
void play_pause_short(struct run *run);
void play_pause_long(struct run *run);
void play_slow_members(struct run *run);
void play_flapping(struct run *run);
void play_rolling_restart(struct run *run);
void play_leave(struct run *run);
void prepare_version_mix(struct run *run);
void play_version_mix(struct run *run);
void finish_one_more(struct run *run);

void play_silent(struct run *run);
void play_mass(struct run *run);
void play_partition(struct run *run);
void play_one_way(struct run *run);
void play_firewall_reject(struct run *run);

void play_listed(struct run *run);
void finish_listed(struct run *run);

void play_relay_faults(struct run *run);
void play_collective_faults(struct run *run);
void play_mixed(struct run *run);
void play_verdicts(struct run *run);
void play_verdicts_slow(struct run *run);
void play_verdicts_splits(struct run *run);
void finish_verdicts(struct run *run);

void play_jobs(struct run *run);
void play_quiet(struct run *run);
void finish_collective(struct run *run);
