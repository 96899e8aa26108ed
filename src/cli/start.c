/* SPDX-License-Identifier: MIT */
#include "cli/start.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/run.h"
#include "cli/say.h"
#include "control/array.h"
#include "control/control.h"

static int ping(const char *name, struct fault *fault)
{
	json_t *request = json_pack("{s:s}", "command", "ping"), *reply = NULL;
	int r;

	r = control_call(name, request, &reply, fault);
	json_decref(request);
	json_decref(reply);
	return r;
}

int start_possible(const char *name, struct runtime_claim *claim, struct fault *fault)
{
	char directory[PATH_MAX];
	int r;

	r = runtime_dir(directory, fault);
	if (r < 0)
		return r;
	if (access(directory, W_OK | X_OK) < 0)
		return fault_set(fault, -errno,
			"%s: cannot write there (%s), and running arrays keep their sockets in it; "
			"STRAKE_RUNTIME_DIR chooses another directory",
			directory, strerror(errno));
	runtime_release(claim);
	r = runtime_claim(name, claim, fault);
	if (r < 0)
		return r;
	r = ping(name, fault);
	if (r == -ENOENT)
		return 0;
	return fault_set(fault, -EBUSY,
		"an array of the name %s is running already; stop it first ('strake stop %s') or "
		"choose another name",
		name, name);
}

const char *start_bare_name(const char *name)
{
	const char *number = name + 2;

	if (strncmp(name, "md", 2) != 0 || *number == '\0')
		return name;
	return number[strspn(number, "0123456789")] == '\0' ? number : name;
}

#define PARTS_TEXT 128

/* " with 2 drives (out of 3), 1 rebuilding and 1 spare": mdadm's words where not all is as usual.
 */
static void describe_parts(const struct md_assembly *assembly, char ret[PARTS_TEXT])
{
	unsigned rebuilding = 0, spares = 0, good = assembly->in_sync_count;
	size_t at;

	for (unsigned i = 0; i < assembly->device_count; i++) {
		const struct md_assembly_device *device = &assembly->devices[i];

		spares += device->slot > MD_ROLE_SLOT_MAX;
		rebuilding += device->slot <= MD_ROLE_SLOT_MAX && !device->in_sync;
	}
	ret[0] = '\0';
	if (assembly->level <= 0 || (!assembly->degraded && rebuilding + spares == 0))
		return;
	at = (size_t)snprintf(ret, PARTS_TEXT, " with %u drive%s", good, good == 1 ? "" : "s");
	if (assembly->degraded)
		at += (size_t)snprintf(
			ret + at, PARTS_TEXT - at, " (out of %u)", assembly->slot_count);
	if (rebuilding > 0)
		at += (size_t)snprintf(ret + at, PARTS_TEXT - at, "%s %u rebuilding",
			spares > 0 ? "," : " and", rebuilding);
	if (spares > 0)
		(void)snprintf(ret + at, PARTS_TEXT - at, " and %u spare%s", spares,
			spares == 1 ? "" : "s");
}

/* @note: what the export has to say, for example why it is not the one people may expect. */
static void say_started(const struct start *start, const char *node, const char *note)
{
	char link[PATH_MAX], parts[PARTS_TEXT];

	describe_parts(start->assembly, parts);
	runtime_link(start->name, link);
	if (strcmp(node, link) == 0)
		say("array %s started%s.", node, parts);
	else
		say("array %s started%s: use %s", start->name, parts, node);
	if (note[0] != '\0')
		say("%s", note);
}

int start_array(const struct start *start, struct fault *fault)
{
	static const enum array_export exports[] = {
		[CLI_EXPORT_AUTO] = ARRAY_EXPORT_AUTO,
		[CLI_EXPORT_FUSE] = ARRAY_EXPORT_FUSE,
		[CLI_EXPORT_LOOP] = ARRAY_EXPORT_LOOP,
		[CLI_EXPORT_NBD] = ARRAY_EXPORT_NBD,
	};
	const struct cli_options *options = start->options;
	struct array_options array = {
		.name = start->name,
		.readonly = options->readonly,
		.export = exports[options->export],
		.nbd_path = options->nbd_path,
		.readahead_bytes = options->readahead_bytes,
		.sync_io = options->sync_io,
		.ring_io = options->ring_io,
		.persistent = start->persistent,
	};
	char node[PATH_MAX];
	int r;

	r = array_start(
		start->assembly, start->set->members, start->set->count, &array, node, fault);
	if (r < 0)
		return r;
	if (!options->quiet)
		say_started(start, node, fault->text);
	return 0;
}

const char *cli_homehost(const struct cli_options *options)
{
	if (options->homehost != NULL)
		return strcmp(options->homehost, "<none>") == 0 ? NULL : options->homehost;
	return options->host[0] == '\0' ? NULL : options->host;
}
