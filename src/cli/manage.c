/* SPDX-License-Identifier: MIT */

/*
 * Members of a running array: fail, remove, add, re-add, replace, as in mdadm's manage mode. All of
 * the command line is looked at before the first of it is done; then each step is done in order,
 * and the first that fails ends it.
 */

#include "cli/manage.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/run.h"
#include "cli/say.h"
#include "cli/show/running.h"
#include "control/control.h"
#include "md/super.h"
#include "probe/probe.h"
#include "util/cleanup.h"

int managed_init(struct managed *managed, const struct cli_options *options, const char *word)
{
	int r;

	*managed = (struct managed){.options = options, .word = word};
	r = running_find(word, &managed->detail, &managed->fault);
	if (r < 0) {
		(void)say_fault(&managed->fault, CLI_FAILED);
		return r;
	}
	(void)snprintf(managed->name, sizeof(managed->name), "%s",
		fact_string(managed->detail, "name", ""));
	return 0;
}

void managed_fini(struct managed *managed)
{
	json_decref(managed->detail);
}

int managed_call(struct managed *managed, const char *verb, json_t *more, json_t **ret)
{
	json_t *request = json_pack("{s:s, s:s}", "command", "manage", "verb", verb);
	json_t *reply = NULL;
	int r;

	if (more != NULL)
		(void)json_object_update(request, more); /* NULL-safe; what lacks is refused */
	managed->fault.error = 0;
	r = control_call(managed->name, request, &reply, &managed->fault);
	json_decref(request);
	json_decref(more);
	if (r == 0 && ret != NULL)
		*ret = json_incref(reply);
	json_decref(reply);
	return r;
}

static bool is_number_pair(const char *word)
{
	unsigned major, minor;
	char rest;

	return sscanf(word, "%u:%u%c", &major, &minor, &rest) == 2;
}

/* As the array's process needs it, which stands elsewhere: absolute; "sda1" is /dev/sda1. */
static int resolve(const char *word, char ret[PATH_MAX], struct fault *fault)
{
	char folder[PATH_MAX];
	int n;

	if (word[0] == '/' || is_number_pair(word) || strstr(word, "://") != NULL) {
		n = snprintf(ret, PATH_MAX, "%s", word);
	} else {
		if (strchr(word, '/') == NULL && access(word, F_OK) != 0) {
			(void)snprintf(ret, PATH_MAX, "/dev/%s", word);
			if (access(ret, F_OK) == 0)
				return 0;
		}
		if (getcwd(folder, sizeof(folder)) == NULL)
			return fault_set(fault, -errno, "the current folder: %s", strerror(errno));
		n = snprintf(ret, PATH_MAX, "%s/%s", folder, word);
	}
	return n < PATH_MAX ? 0 : fault_set(fault, -ENAMETOOLONG, "%s: the path is too long", word);
}

struct step {
	const char *name;   /* as the option is called, and the verb of the control socket */
	const char *failed; /* mdadm's words: "set device faulty failed for" */
	const char *keywords[3];
	void (*tell)(const struct managed *managed, const char *word, const json_t *reply);
};

static void tell_faulty(const struct managed *managed, const char *word, const json_t *reply)
{
	(void)reply;
	say("set %s faulty in %s", word, managed->word);
}

static void tell_removed(const struct managed *managed, const char *word, const json_t *reply)
{
	(void)reply;
	say("hot removed %s from %s", word, managed->word);
}

static void tell_added(const struct managed *managed, const char *word, const json_t *reply)
{
	(void)managed;
	say("%s %s", json_is_true(json_object_get(reply, "re_added")) ? "re-added" : "added", word);
}

static void tell_replaced(const struct managed *managed, const char *word, const json_t *reply)
{
	say("Marked %s (device %d in %s) for replacement", word,
		(int)json_integer_value(json_object_get(reply, "slot")), managed->word);
}

static const struct step steps[] = {
	{"fail", "set device faulty failed for", {"detached"}, tell_faulty},
	{"remove", "hot remove failed for", {"failed", "faulty", "detached"}, tell_removed},
	{"add", "add new device failed for", {"missing"}, tell_added},
	{"re-add", "re-add failed for", {"missing"}, tell_added},
	{"add-spare", "add new device failed for", {NULL}, tell_added},
	{"replace", "Failed to request replacement for", {NULL}, tell_replaced},
};

static const struct step *step_of(const char *verb)
{
	if (verb != NULL && strcmp(verb, "set-faulty") == 0)
		verb = "fail";
	for (size_t i = 0; verb != NULL && i < sizeof(steps) / sizeof(steps[0]); i++)
		if (strcmp(verb, steps[i].name) == 0)
			return &steps[i];
	return NULL;
}

static bool is_keyword(const struct step *step, const char *word)
{
	for (unsigned i = 0; i < 3 && step->keywords[i] != NULL; i++)
		if (strcmp(word, step->keywords[i]) == 0)
			return true;
	return false;
}

/* mdadm's exit codes: 2 where the array needs the device. */
static int failed(struct managed *managed, const struct step *step, const char *word)
{
	bool busy = managed->fault.error == -EBUSY &&
		    (strcmp(step->name, "fail") == 0 || strcmp(step->name, "remove") == 0);

	say("%s %s in %s:", step->failed, word, managed->word);
	return say_fault(&managed->fault, busy ? 2 : CLI_FAILED);
}

static int step_on_keyword(struct managed *managed, const struct step *step, const char *word)
{
	json_t *reply = NULL, *device;
	size_t i;

	if (managed_call(managed, step->name, json_pack("{s:s}", "keyword", word), &reply) < 0)
		return failed(managed, step, word);
	json_array_foreach(json_object_get(reply, "devices"), i, device)
	{
		if (!managed->options->quiet)
			step->tell(managed, json_string_value(device), reply);
	}
	json_decref(reply);
	return CLI_OK;
}

static int step_on_device(struct managed *managed, const struct step *step, const char *word,
	const char *with, unsigned flags)
{
	char path[PATH_MAX], with_path[PATH_MAX];
	json_t *more = NULL, *reply = NULL;
	int r = resolve(word, path, &managed->fault);

	if (r == 0 && with != NULL)
		r = resolve(with, with_path, &managed->fault);
	if (r == 0)
		more = json_pack("{s:s, s:b, s:b, s:b}", "device", path, "force",
			managed->options->force, "write_mostly",
			(flags & CLI_WORD_WRITE_MOSTLY) != 0, "failfast",
			(flags & CLI_WORD_FAILFAST) != 0);
	if (with != NULL)
		(void)json_object_set_new(more, "with", json_string(with_path)); /* NULL-safe */
	if (r < 0 || managed_call(managed, step->name, more, &reply) < 0)
		return failed(managed, step, word);
	if (!managed->options->quiet)
		step->tell(managed, word, reply);
	if (with != NULL && !managed->options->quiet)
		say("Marked %s in %s as replacement for device %d", with, managed->word,
			(int)json_integer_value(json_object_get(reply, "slot")));
	json_decref(reply);
	return CLI_OK;
}

/* Is @path a former member of the array that could come back? */
static bool is_former(const struct managed *managed, const char *path)
{
	_cleanup_free_ struct md_super *super = calloc(1, sizeof(*super));
	struct member *member;
	char uuid[MD_UUID_TEXT];
	bool found;

	if (super == NULL || member_open(path, MEMBER_READONLY, &member, NULL) < 0)
		return false;
	found = probe_read_super(member, super, NULL) == 0 &&
		strcmp(md_uuid_format(super->set_uuid, uuid),
			fact_string(managed->detail, "uuid", "")) == 0 &&
		md_super_role(super) <= MD_ROLE_SLOT_MAX;
	member_close(member);
	return found;
}

static bool is_member_now(const json_t *status, const char *path)
{
	json_t *device;
	size_t i;

	json_array_foreach(json_object_get(status, "devices"), i, device)
	{
		char a[PATH_MAX], b[PATH_MAX];

		if (realpath(path, a) != NULL &&
			realpath(fact_string(device, "path", ""), b) != NULL && strcmp(a, b) == 0)
			return true;
	}
	return false;
}

/* Where former members may be: all block devices, and the folders of members that are files. */
static unsigned search_words(const json_t *status, char **words, unsigned max)
{
	json_t *device;
	unsigned count = 0;
	size_t i;

	words[count++] = strdup("partitions");
	json_array_foreach(json_object_get(status, "devices"), i, device)
	{
		const char *path = fact_string(device, "path", "/dev/x");
		char *folder = strdup(strstr(path, "://") == NULL ? path : "/dev/x");

		if (folder != NULL && strrchr(folder, '/') != NULL)
			*strrchr(folder, '/') = '\0';
		if (folder == NULL || folder[0] == '\0' || strncmp(folder, "/dev", 4) == 0 ||
			count == max)
			free(folder);
		else
			words[count++] = folder;
	}
	return count;
}

#define WORDS_MAX 64u

static int re_add_missing(struct managed *managed)
{
	const struct step *step = step_of("re-add");
	char *words[WORDS_MAX], **paths = NULL;
	unsigned word_count, count = 0, found = 0;
	json_t *status = NULL;
	int code = CLI_OK;

	if (managed_call(managed, "status", NULL, &status) < 0)
		return say_fault(&managed->fault, CLI_FAILED);
	word_count = search_words(status, words, WORDS_MAX);
	if (probe_scan(words, word_count, &paths, &count, &managed->fault) < 0)
		code = say_fault(&managed->fault, CLI_FAILED);
	for (unsigned i = 0; i < count; i++) {
		if (is_member_now(status, paths[i]) || !is_former(managed, paths[i]))
			continue;
		found++;
		if (step_on_device(managed, step, paths[i], NULL, 0) != CLI_OK)
			code = CLI_FAILED;
	}
	if (code == CLI_OK && found == 0 && !managed->options->quiet)
		say("no former member of %s was found", managed->word);
	probe_scan_free(paths, count);
	for (unsigned i = 0; i < word_count; i++)
		free(words[i]);
	json_decref(status);
	return code;
}

/* The word that --with gives to the replace step at @index: the nth of them to the nth. */
static const char *with_of(const struct cli_options *options, unsigned index)
{
	unsigned number = 0, seen = 0;

	for (unsigned i = 1; i < index; i++)
		number += options->word_verbs[i] != NULL &&
			  strcmp(options->word_verbs[i], "replace") == 0;
	for (unsigned i = 1; i < options->word_count; i++)
		if (options->word_verbs[i] != NULL && strcmp(options->word_verbs[i], "with") == 0 &&
			seen++ == number)
			return options->words[i];
	return NULL;
}

static int do_step(struct managed *managed, unsigned index)
{
	const struct cli_options *options = managed->options;
	const struct step *step = step_of(options->word_verbs[index]);
	const char *word = options->words[index], *with = NULL;

	if (step == NULL) /* with */
		return CLI_OK;
	if (strcmp(step->name, "replace") == 0)
		with = with_of(options, index);
	if (!is_keyword(step, word))
		return step_on_device(managed, step, word, with, options->word_flags[index]);
	return strcmp(word, "missing") == 0 ? re_add_missing(managed)
					    : step_on_keyword(managed, step, word);
}

static int check_words(const struct cli_options *options)
{
	unsigned replaced = 0, with = 0;

	if (options->word_count == 0) {
		say("manage: no array named ('strake md0 --fail /dev/sdb1')");
		return CLI_USAGE;
	}
	for (unsigned i = 1; i < options->word_count; i++) {
		const char *verb = options->word_verbs[i];

		if (verb == NULL) {
			say("it is not said what to do with %s: put --fail, --remove, --add, "
			    "--re-add, --add-spare or --replace before it",
				options->words[i]);
			return CLI_USAGE;
		}
		replaced += strcmp(verb, "replace") == 0;
		with += strcmp(verb, "with") == 0;
		if (with > replaced) {
			say("--with %s must come after the --replace that it belongs to",
				options->words[i]);
			return CLI_USAGE;
		}
	}
	if (options->word_count == 1 && !options->readonly && !options->readwrite &&
		!options->wait) {
		say("no members named: say which ('strake %s --fail /dev/sdb1')",
			options->words[0]);
		return CLI_USAGE;
	}
	return CLI_OK;
}

static int set_writable(struct managed *managed, bool readonly)
{
	if (managed_call(managed, readonly ? "readonly" : "readwrite", NULL, NULL) < 0)
		return say_fault(&managed->fault, CLI_FAILED);
	return CLI_OK;
}

/* mdadm's order: writable first, read-only last. */
int cli_manage(const struct cli_options *options)
{
	struct managed managed;
	int code = check_words(options);

	if (code != CLI_OK)
		return code;
	if (managed_init(&managed, options, options->words[0]) < 0)
		return CLI_FAILED;
	if (options->readwrite)
		code = set_writable(&managed, false);
	for (unsigned i = 1; i < options->word_count && code == CLI_OK; i++)
		code = do_step(&managed, i);
	if (code == CLI_OK && options->wait && managed_wait(&managed) < 0)
		code = CLI_FAILED;
	if (code == CLI_OK && options->readonly)
		code = set_writable(&managed, true);
	managed_fini(&managed);
	return code;
}

int cli_readonly(const struct cli_options *options)
{
	int code = CLI_OK;

	if (options->word_count == 0) {
		say("no array named ('strake readonly md0')");
		return CLI_USAGE;
	}
	for (unsigned i = 0; i < options->word_count; i++) {
		struct managed managed;

		if (managed_init(&managed, options, options->words[i]) < 0) {
			code = CLI_FAILED;
			continue;
		}
		if (set_writable(&managed, options->mode == CLI_READONLY) != CLI_OK)
			code = CLI_FAILED;
		managed_fini(&managed);
	}
	return code;
}
