/* SPDX-License-Identifier: MIT */
/* sim: the engine in the simulated world, from seeds (docs/simulator.md). */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cli/run.h"
#include "cli/say.h"
#include "cli/sim.h"
#include "cli/values.h"
#include "engine/engine.h"
#include "util/cleanup.h"

#define JOBS_MAX 256u

struct batch {
	struct simulate_options options;
	uint64_t runs, failures;
	bool shrink, twice, first;
	struct simulate_result result, sums;
};

static int number(const char *text, const char *option, uint64_t *ret)
{
	if (text == NULL || value_number(text, ret) == 0)
		return 0;
	say("sim: invalid %s: '%s'; use a number", option, text);
	return -EINVAL;
}

static int bit_of(const char *word, unsigned count, bool faults)
{
	for (unsigned i = 0; i < count; i++) {
		const char *name = faults ? simulate_fault_name((enum simulate_fault)i)
					  : simulate_deed_name((enum simulate_deed)i);

		if (strcmp(word, name) == 0)
			return (int)i;
	}
	return -1;
}

static int words(const char *text, unsigned count, bool faults, uint32_t *ret)
{
	_cleanup_free_ char *copy = text != NULL ? strdup(text) : NULL;
	char *rest = copy, *word;

	while (rest != NULL && (word = strsep(&rest, ",")) != NULL) {
		int bit = bit_of(word, count, faults);

		if (bit < 0 && strcmp(word, "all") != 0) {
			say("sim: no %s is called '%s'", faults ? "fault" : "command", word);
			return -EINVAL;
		}
		*ret |= bit < 0 ? UINT32_MAX : 1u << bit;
	}
	return 0;
}

static int skips(const char *text, struct simulate_options *options)
{
	_cleanup_free_ char *copy = text != NULL ? strdup(text) : NULL;
	char *rest = copy, *word;
	uint64_t value;

	while (rest != NULL && (word = strsep(&rest, ",")) != NULL) {
		if (number(word, "--skip", &value) < 0)
			return -EINVAL;
		if (options->skip_count < SIMULATE_SKIPS_MAX)
			options->skips[options->skip_count++] = (uint32_t)value;
	}
	return 0;
}

static int read_options(const struct cli_options *cli, struct batch *batch, uint64_t *ret_jobs)
{
	struct simulate_options *options = &batch->options;
	uint64_t clients = 0;

	options->seed = (uint64_t)time(NULL);
	batch->runs = *ret_jobs = 1;
	if (number(cli->sim_seed, "--seed", &options->seed) < 0 ||
		number(cli->sim_runs, "--runs", &batch->runs) < 0 ||
		number(cli->sim_jobs, "--jobs", ret_jobs) < 0 ||
		number(cli->sim_ops, "--ops", &options->operations) < 0 ||
		number(cli->sim_clients, "--clients", &clients) < 0 ||
		words(cli->sim_no_faults, FAULTS, true, &options->no_faults) < 0 ||
		words(cli->sim_no_commands, DEEDS, false, &options->no_deeds) < 0 ||
		skips(cli->sim_skip, options) < 0)
		return -EINVAL;
	options->clients = (unsigned)clients;
	options->trace = cli->sim_trace;
	options->level_given = cli->level_text != NULL;
	options->level = cli->level;
	if (options->level_given && !engine_level_is_redundant(options->level)) {
		say("sim: level %s has no redundancy", cli->level_text);
		return -EINVAL;
	}
	if (cli->sim_atlas != NULL && strcmp(cli->sim_atlas, "within") != 0 &&
		strcmp(cli->sim_atlas, "beyond") != 0) {
		say("sim: invalid atlas: '%s'; use within or beyond", cli->sim_atlas);
		return -EINVAL;
	}
	options->beyond = cli->sim_atlas != NULL && strcmp(cli->sim_atlas, "beyond") == 0;
	batch->shrink = !cli->sim_no_shrink;
	batch->twice = cli->sim_twice;
	batch->first = cli->sim_first;
	return 0;
}

static void report_failure(struct batch *batch)
{
	const struct simulate_result *r = &batch->result;

	batch->failures++;
	(void)printf("FAILED: seed %" PRIu64 " (raid%d): %s: %s\n  replay: ", batch->options.seed,
		r->level, r->kind, r->text);
	sim_print_command(&batch->options, stdout);
	if (batch->shrink && !batch->options.trace)
		sim_shrink(&batch->options, r);
	(void)fflush(stdout);
}

static void add_up(struct batch *batch)
{
	const struct simulate_result *r = &batch->result;
	struct simulate_result *sums = &batch->sums;

	sums->operations += r->operations;
	sums->member_ios += r->member_ios;
	sums->virtual_ns += r->virtual_ns;
	sums->restarts += r->restarts;
	sums->faults += r->faults;
	sums->deeds += r->deeds;
	sums->hash ^= r->hash;
	for (unsigned i = 0; i < FAULTS; i++)
		sums->fault_counts[i] += r->fault_counts[i];
}

static int run_one(struct batch *batch)
{
	uint64_t hash;
	int r = sim_run_apart(&batch->options, &batch->result);

	if (r < 0)
		return r;
	add_up(batch);
	hash = batch->result.hash;
	if (batch->twice && !batch->result.failed) {
		r = sim_run_apart(&batch->options, &batch->result);
		if (r == 0 && batch->result.hash != hash) {
			batch->result.failed = true;
			(void)snprintf(batch->result.kind, sizeof(batch->result.kind), "differs");
			(void)snprintf(batch->result.text, sizeof(batch->result.text),
				"the second run of the same seed was another one");
		}
	}
	if (r == 0 && batch->result.failed)
		report_failure(batch);
	return r;
}

static void summarise(const struct batch *batch, double seconds)
{
	const struct simulate_result *s = &batch->sums;

	(void)printf("%" PRIu64 " runs, %" PRIu64 " failed; %" PRIu64 " operations, %" PRIu64
		     " member I/Os, %" PRIu64 " restarts, %" PRIu64 " commands, %" PRIu64
		     " faults in %.1f virtual hours\n",
		batch->runs, batch->failures, s->operations, s->member_ios, s->restarts, s->deeds,
		s->faults, (double)s->virtual_ns / 3600e9);
	(void)printf("faults:");
	for (unsigned i = 0; i < FAULTS; i++)
		(void)printf(" %s %" PRIu64, simulate_fault_name((enum simulate_fault)i),
			s->fault_counts[i]);
	(void)printf("\n%.1f s: %.0f operations and %.0f member I/Os each second\n", seconds,
		(double)s->operations / seconds, (double)s->member_ios / seconds);
	(void)printf("trace %016" PRIx64 "\n", s->hash);
}

static double now_seconds(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static int run_batch(struct batch *batch)
{
	double began = now_seconds();

	if (batch->runs == 1)
		batch->options.out = stdout;
	for (uint64_t i = 0; i < batch->runs; i++) {
		if (run_one(batch) < 0) {
			say("sim: cannot start a process");
			return CLI_FAILED;
		}
		batch->options.seed++;
		if (batch->first && batch->failures > 0)
			break;
	}
	summarise(batch, now_seconds() - began);
	return batch->failures > 0 ? CLI_FAILED : CLI_OK;
}

/* Each job runs its share of the seeds and reports by itself. */
static int run_jobs(struct batch *batch, uint64_t jobs)
{
	uint64_t seed = batch->options.seed, runs = batch->runs;
	int code = CLI_OK, status;

	(void)fflush(stdout);
	for (uint64_t job = 0; job < jobs; job++) {
		pid_t pid;

		batch->options.seed = seed + runs * job / jobs;
		batch->runs = runs * (job + 1) / jobs - runs * job / jobs;
		pid = fork();
		if (pid == 0) {
			code = run_batch(batch);
			(void)fflush(stdout);
			_exit(code);
		}
		if (pid < 0)
			code = CLI_FAILED;
	}
	while (wait(&status) > 0)
		if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
			code = CLI_FAILED;
	return code;
}

int cli_sim(const struct cli_options *options)
{
	_cleanup_free_ struct batch *batch = calloc(1, sizeof(*batch));
	uint64_t jobs;

	if (batch == NULL)
		return say_no_memory();
	if (read_options(options, batch, &jobs) < 0)
		return CLI_USAGE;
	(void)printf("seeds %" PRIu64 " to %" PRIu64 "\n", batch->options.seed,
		batch->options.seed + batch->runs - 1);
	if (jobs > 1 && jobs <= JOBS_MAX)
		return run_jobs(batch, jobs);
	return run_batch(batch);
}
