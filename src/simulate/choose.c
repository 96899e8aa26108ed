/* SPDX-License-Identifier: MIT */
/*
 * What the seed chooses. Swarm style: of faults, commands and operations some are left out and some
 * are heavy in each run, so that over many runs each meets each in all proportions.
 */
#include <inttypes.h>
#include <string.h>

#include "geometry/available.h"
#include "simulate/internal.h"
#include "util/rounding.h"

#define K 1024u

static const char *const fault_names[FAULTS] = {"latent", "flaky", "slow-sector", "stall", "hard",
	"write", "write-done", "no-space", "flush", "dead", "vanish", "blackout", "power", "kill"};
static const char *const deed_names[DEEDS] = {"fail", "remove", "add", "re-add", "replace", "check",
	"repair", "idle", "frozen", "speed", "readonly", "stop", "silly"};

const char *simulate_fault_name(enum simulate_fault fault)
{
	return fault_names[fault];
}

const char *simulate_deed_name(enum simulate_deed deed)
{
	return deed_names[deed];
}

static uint32_t pick(struct random *random, const uint32_t *values, unsigned count)
{
	return values[draw(random, count)];
}

static void choose_mirrors(struct choice *c, struct random *random)
{
	static const uint32_t layouts[] = {
		0x102, 0x102, 0x103, 0x201, 0x10201, 0x10201, 0x301, 0x10301};

	if (c->level == 1) {
		c->slots = 2 + (unsigned)draw(random, 3);
		return;
	}
	c->layout = pick(random, layouts, 8);
	c->slots = 2 + (unsigned)draw(random, 5);
	if ((c->layout & 0xff) * (c->layout >> 8 & 0xff) > c->slots)
		c->slots = (c->layout & 0xff) * (c->layout >> 8 & 0xff);
}

static void choose_stripes(struct choice *c, struct random *random)
{
	static const uint32_t six[] = {0, 1, 2, 3, 4, 5, 8, 9, 10, 16, 17, 18, 19, 20};

	if (c->level == 6) {
		c->layout = pick(random, six, 14);
		c->slots = 4 + (unsigned)draw(random, 4);
	} else {
		c->layout = c->level == 5 ? (uint32_t)draw(random, 6) : 0;
		c->slots = 3 + (unsigned)draw(random, 4);
	}
}

static void choose_geometry(struct run *run, struct random *random)
{
	static const int levels[] = {1, 10, 4, 5, 6};
	struct choice *c = &run->choice;
	int known[5];
	unsigned count = 0;
	uint64_t unit;

	for (unsigned i = 0; i < 5; i++)
		if (engine_level_is_redundant(levels[i]))
			known[count++] = levels[i];
	c->level = known[draw(random, count)];
	if (run->options->level_given)
		c->level = run->options->level;
	if (c->level == 1 || c->level == 10)
		choose_mirrors(c, random);
	else
		choose_stripes(c, random);
	c->chunk_bytes = c->level == 1 ? 0 : 4 * K << draw(random, 5);
	unit = c->level == 1 ? 4 * K : c->chunk_bytes;
	c->component_bytes = round_up(64 * K + draw(random, 448 * K), unit);
	if (c->level != 1 && c->component_bytes < 4 * (uint64_t)c->chunk_bytes)
		c->component_bytes = 4 * (uint64_t)c->chunk_bytes;
	c->spares = pick(random, (const uint32_t[]){0, 0, 0, 1, 2}, 5);
	c->more = 2;
}

static void choose_record(struct choice *c, struct random *random)
{
	static const enum md_version versions[] = {
		MD_VERSION_1_2, MD_VERSION_1_2, MD_VERSION_1_1, MD_VERSION_1_0, MD_VERSION_0_90};

	c->version = versions[draw(random, 5)];
	c->bitmap = chance(random, 70);
	c->bitmap_chunk_bytes = 4 * K << draw(random, 4);
	c->daemon_seconds = chance(random, 70) ? 1 : 5;
	c->assume_clean = chance(random, 70);
	c->garbage = !c->assume_clean && chance(random, 70);
	c->speed_max = UINT64_C(64) * K << draw(random, 12);
	c->safe_mode_ns = MILLI * (5 + draw(random, 200));
	c->requests_max = 1 + (unsigned)draw(random, 24);
	c->latency_min_ns = 1000 + draw(random, 50000);
	c->latency_max_ns = c->latency_min_ns + draw(random, 2000000);
}

static void choose_workload(struct choice *c, struct random *random)
{
	c->clients = 1 + (unsigned)draw(random, CLIENTS_MAX);
	c->operations = 200 + draw(random, 1200);
	c->weights[ENGINE_READ] = 1 + (unsigned)draw(random, 100);
	c->weights[ENGINE_WRITE] = 20 + (unsigned)draw(random, 100);
	c->weights[ENGINE_FLUSH] = chance(random, 80) ? (unsigned)draw(random, 40) : 0;
	c->weights[ENGINE_ZERO] = chance(random, 50) ? (unsigned)draw(random, 20) : 0;
	c->weights[ENGINE_DISCARD] = chance(random, 30) ? (unsigned)draw(random, 10) : 0;
	c->fua_percent = chance(random, 60) ? (unsigned)draw(random, 60) : 0;
	c->sequential_percent = chance(random, 50) ? (unsigned)draw(random, 100) : 0;
	c->hot_percent = chance(random, 50) ? (unsigned)draw(random, 90) : 0;
	if (chance(random, 20))
		c->hot_percent = 100; /* few bits of the bitmap are set then */
	c->hot_percent_from = (unsigned)draw(random, 100);
	c->sectors_max = 1 + draw(random, chance(random, 30) ? 512 : 40);
	c->pause_percent = chance(random, 50) ? (unsigned)draw(random, 10) : 0;
	c->pause_ns = MILLI * (1 + draw(random, chance(random, 30) ? 12000 : 400));
}

static unsigned swarm(struct random *random, unsigned on_percent)
{
	if (!chance(random, on_percent))
		return 0;
	return chance(random, 25) ? 10 + (unsigned)draw(random, 30) : 1 + (unsigned)draw(random, 5);
}

static void choose_chaos(struct run *run, struct random *random)
{
	struct choice *c = &run->choice;

	for (unsigned i = 0; i < FAULTS; i++)
		c->fault_weights[i] = swarm(random, i >= FAULT_HARD ? 40 : 55);
	for (unsigned i = 0; i < DEEDS; i++)
		c->deed_weights[i] = swarm(random, 65);
	c->fault_every_ns = MILLI * (2 + draw(random, 300));
	c->deed_every_ns = MILLI * (2 + draw(random, 150));
	if (c->deed_weights[DEED_FAIL] != 0)
		c->deed_weights[DEED_FAIL] += 10; /* much follows from it */
	if (chance(random, 20))
		c->fault_every_ns *= 20;
	for (unsigned i = 0; i < FAULTS; i++)
		if ((run->options->no_faults >> i & 1) != 0)
			c->fault_weights[i] = 0;
	for (unsigned i = 0; i < DEEDS; i++)
		if ((run->options->no_deeds >> i & 1) != 0)
			c->deed_weights[i] = 0;
}

void choose(struct run *run)
{
	struct random random = {run->options->seed};
	struct choice *c = &run->choice;

	choose_geometry(run, &random);
	choose_record(c, &random);
	choose_workload(c, &random);
	choose_chaos(run, &random);
	run->workload.state = draw(&random, UINT64_MAX);
	run->chaos.state = draw(&random, UINT64_MAX);
	if (run->options->clients != 0)
		c->clients = (unsigned)min_u64(run->options->clients, CLIENTS_MAX);
	if (run->options->operations != 0)
		c->operations = run->options->operations;
	run->disk_count = c->slots + c->spares + c->more;
	run->result->level = c->level;
	run->result->clients = c->clients;
	run->result->operations_wanted = c->operations;
}

static void print_weights(FILE *out, const char *what, const unsigned *weights, unsigned count,
	const char *const *names)
{
	(void)fprintf(out, "  %-9s", what);
	for (unsigned i = 0; i < count; i++)
		if (weights[i] != 0)
			(void)fprintf(out, " %s:%u", names[i], weights[i]);
	(void)fprintf(out, "\n");
}

void choice_print(const struct run *run)
{
	static const char *const ops[] = {"read", "write", "flush", "discard", "zero"};
	const struct choice *c = &run->choice;
	FILE *out = run->options->out;

	if (out == NULL)
		return;
	(void)fprintf(out, "seed %" PRIu64 ", atlas %s\n", run->options->seed,
		run->options->beyond ? "beyond" : "within");
	(void)fprintf(out,
		"  array     raid%d layout %#x, %u slots, %u spares, %u more disks, chunk %u KiB, "
		"component %" PRIu64 " KiB\n",
		c->level, c->layout, c->slots, c->spares, c->more, c->chunk_bytes / K,
		c->component_bytes / K);
	(void)fprintf(out, "  record    metadata %s, bitmap %s (%u KiB), %s, %s\n",
		md_format(c->version)->name, c->bitmap ? "internal" : "none",
		c->bitmap_chunk_bytes / K, c->assume_clean ? "assume clean" : "to be synced",
		c->garbage ? "disks with old bytes" : "blank disks");
	(void)fprintf(out,
		"  time      latency %" PRIu64 "-%" PRIu64 " us, safe mode %" PRIu64
		" ms, sync speed %" PRIu64 " KiB/s, fault every %" PRIu64
		" ms, command every %" PRIu64 " ms\n",
		c->latency_min_ns / 1000, c->latency_max_ns / 1000, c->safe_mode_ns / MILLI,
		c->speed_max / K, c->fault_every_ns / MILLI, c->deed_every_ns / MILLI);
	(void)fprintf(out,
		"  load      %u clients, %u requests at once, %" PRIu64 " operations of 1-%" PRIu64
		" sectors, FUA %u%%, sequential %u%%, hot %u%%, pauses %u%% of %" PRIu64 " ms\n",
		c->clients, c->requests_max, c->operations, c->sectors_max, c->fua_percent,
		c->sequential_percent, c->hot_percent, c->pause_percent, c->pause_ns / MILLI);
	print_weights(out, "mix", c->weights, 5, ops);
	print_weights(out, "faults", c->fault_weights, FAULTS, fault_names);
	print_weights(out, "commands", c->deed_weights, DEEDS, deed_names);
}
