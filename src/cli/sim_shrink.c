/* SPDX-License-Identifier: MIT */
/*
 * A failing run is cut down: fewer operations and clients, kinds of faults and commands left out,
 * then single faults; each step stays if the same check still fails.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/sim.h"
#include "util/cleanup.h"
#include "util/rounding.h"

#define ATTEMPTS_MAX 200u

struct shrinking {
	struct simulate_options best;
	struct simulate_result result; /* of the best */
	unsigned attempts;
};

static bool attempt(struct shrinking *s, const struct simulate_options *options)
{
	_cleanup_free_ struct simulate_result *result = calloc(1, sizeof(*result));

	if (s->attempts >= ATTEMPTS_MAX || result == NULL)
		return false;
	s->attempts++;
	if (sim_run_apart(options, result) < 0 || !result->failed ||
		strcmp(result->kind, s->result.kind) != 0)
		return false;
	s->best = *options;
	s->result = *result;
	return true;
}

static void fewer_operations(struct shrinking *s)
{
	uint64_t step = max_u64(s->result.operations_wanted / 2, 1);

	while (step > 0 && s->attempts < ATTEMPTS_MAX) {
		struct simulate_options options = s->best;
		uint64_t now = s->result.operations_wanted;

		options.operations = now > step ? now - step : 1;
		if (now == 1 || !attempt(s, &options))
			step /= 2;
	}
}

static void fewer_clients(struct shrinking *s)
{
	for (unsigned clients = 1; clients < s->result.clients; clients++) {
		struct simulate_options options = s->best;

		options.clients = clients;
		if (attempt(s, &options))
			return;
	}
}

static void fewer_kinds(struct shrinking *s)
{
	for (unsigned i = 0; i < FAULTS; i++) {
		struct simulate_options options = s->best;

		options.no_faults |= 1u << i;
		if (s->result.fault_counts[i] > 0)
			(void)attempt(s, &options);
	}
	for (unsigned i = 0; i < DEEDS; i++) {
		struct simulate_options options = s->best;

		options.no_deeds |= 1u << i;
		(void)attempt(s, &options);
	}
}

static void fewer_faults(struct shrinking *s)
{
	struct simulate_result before = s->result;

	for (unsigned i = 0; i < before.fault_number_count; i++) {
		struct simulate_options options = s->best;

		if (options.skip_count == SIMULATE_SKIPS_MAX)
			return;
		options.skips[options.skip_count++] = before.fault_numbers[i];
		(void)attempt(s, &options);
	}
}

static void print_words(FILE *out, const char *option, uint32_t bits, unsigned count, bool faults)
{
	const char *comma = "";

	if (bits == 0)
		return;
	(void)fprintf(out, " %s ", option);
	for (unsigned i = 0; i < count; i++) {
		if ((bits >> i & 1) == 0)
			continue;
		(void)fprintf(out, "%s%s", comma,
			faults ? simulate_fault_name((enum simulate_fault)i)
			       : simulate_deed_name((enum simulate_deed)i));
		comma = ",";
	}
}

void sim_print_command(const struct simulate_options *options, FILE *out)
{
	(void)fprintf(out, "strake sim --seed %" PRIu64, options->seed);
	if (options->level_given)
		(void)fprintf(out, " --level %d", options->level);
	if (options->beyond)
		(void)fprintf(out, " --atlas beyond");
	if (options->operations != 0)
		(void)fprintf(out, " --ops %" PRIu64, options->operations);
	if (options->clients != 0)
		(void)fprintf(out, " --clients %u", options->clients);
	print_words(out, "--no-faults", options->no_faults, FAULTS, true);
	print_words(out, "--no-commands", options->no_deeds, DEEDS, false);
	for (unsigned i = 0; i < options->skip_count; i++)
		(void)fprintf(out, "%s%u", i == 0 ? " --skip " : ",", options->skips[i]);
	(void)fprintf(out, " --trace\n");
}

void sim_shrink(const struct simulate_options *options, const struct simulate_result *result)
{
	struct shrinking s = {.best = *options, .result = *result};
	uint64_t before = UINT64_MAX;

	s.best.trace = false;
	s.best.out = NULL;
	while (s.result.operations_wanted + s.result.faults < before && s.attempts < ATTEMPTS_MAX) {
		before = s.result.operations_wanted + s.result.faults;
		fewer_operations(&s);
		fewer_clients(&s);
		fewer_kinds(&s);
		fewer_faults(&s);
	}
	(void)printf("  smallest found in %u attempts: %" PRIu64 " operations, %u clients, %" PRIu64
		     " faults: %s\n  ",
		s.attempts, s.result.operations_wanted, s.result.clients, s.result.faults,
		s.result.text);
	sim_print_command(&s.best, stdout);
}
