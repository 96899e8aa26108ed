/* SPDX-License-Identifier: MIT */
/* The commands of the control socket. They run on the control thread. */
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "export/fuse/partitions.h"
#include "export/fuse/serving.h"
#include "util/cleanup.h"

struct command {
	const char *name;
	json_t *(*run)(struct serving *serving, json_t *request);
};

static json_t *refuse(int error, const char *name, const char *words)
{
	struct fault fault = {0};

	fault_set(&fault, error, "array %s: %s", name, words);
	return detail_error(&fault);
}

struct taken {
	struct serving *serving;
	struct detail_counters *counters;
};

static void take_counters(void *argument)
{
	struct taken *taken = argument;

	detail_take(taken->serving->engine, taken->serving->start->assembly->slot_count,
		taken->counters);
}

static uint64_t current_readahead(const struct serving *serving)
{
	uint64_t bytes = serving->readahead_bytes == LOOP_UNCHANGED ? 0 : serving->readahead_bytes;

	if (serving->block != NULL && block_is_ours(serving->block))
		(void)loop_get_readahead(block_loop(serving->block), &bytes); /* else as set */
	return bytes;
}

/* They may have come and gone since the start. */
static unsigned member_count(const struct serving *serving)
{
	struct member *const *members = reactor_members(serving->reactor);
	unsigned count = 0;

	for (unsigned i = 0; i < reactor_member_max(serving->reactor); i++)
		count += members[i] != NULL;
	return count;
}

static json_t *detail(struct serving *serving, json_t *request)
{
	const struct export_start *start = serving->start;
	struct detail_counters *counters = calloc(1, sizeof(*counters));
	struct detail_partition *partitions = calloc(PARTITIONS_MAX, sizeof(*partitions));
	struct taken taken = {serving, counters};
	const struct block *block = serving->block;
	struct detail_facts facts = {
		.name = serving->name,
		.node = block != NULL ? block_node(block) : serving->path,
		.device = block != NULL ? block_loop(block)->node : serving->path,
		.export = block != NULL ? "loop" : "fuse",
		.io = reactor_kind(serving->reactor),
		.readonly = start->options->readonly,
		.persistent = start->options->persistent,
		.assembly = start->assembly,
		.members = reactor_members(serving->reactor),
		.member_count = member_count(serving),
		.readahead_bytes = current_readahead(serving),
		.reactor_memory_bytes = reactor_memory(serving->reactor),
		.export_memory_bytes = array_file_memory(serving->file),
		.partitions = partitions,
	};
	json_t *reply = NULL;

	if (counters != NULL && partitions != NULL) {
		on_reactor(serving, take_counters, &taken);
		if (block != NULL)
			facts.partition_count = block_partitions(block, partitions, PARTITIONS_MAX);
		reply = detail_make(&facts, counters);
	}
	free(counters);
	free(partitions);
	return reply != NULL ? reply : refuse(-ENOMEM, serving->name, "out of memory");
}

static json_t *stop(struct serving *serving, json_t *request)
{
	struct fault fault = {0};
	json_t *reply = serving_stop(serving, &fault) < 0 ? detail_error(&fault) : detail_ok();

	/* It may have ended with an error: then too there is an end to wait for. */
	(void)json_object_set_new(reply, "stopped", json_boolean(serving->stopped));
	return reply;
}

static json_t *partprobe(struct serving *serving, json_t *request)
{
	struct fault fault = {0};

	if (serving->block == NULL)
		return refuse(-EOPNOTSUPP, serving->name,
			"runs as a FUSE file without a loop device, so "
			"its partitions have no nodes");
	if (block_reread(serving->block, &fault) < 0)
		return detail_error(&fault);
	return detail(serving, request);
}

/* {"command":"readahead","bytes":N}; without "bytes" it only asks. */
static json_t *do_readahead(struct serving *serving, json_t *request)
{
	const json_t *bytes = json_object_get(request, "bytes");
	json_t *reply;
	int r = 0;

	if (bytes != NULL && (!json_is_integer(bytes) || json_integer_value(bytes) < 0))
		return refuse(-EINVAL, serving->name, "read-ahead: \"bytes\" is no size");
	if (bytes != NULL && serving->block == NULL)
		return refuse(-EOPNOTSUPP, serving->name,
			"runs as a FUSE file without a loop device; its "
			"read-ahead is fixed at start (--readahead)");
	if (bytes != NULL && !block_is_ours(serving->block))
		return refuse(-ENODEV, serving->name,
			"its loop device was detached by somebody else; stop the array and "
			"assemble it again");
	if (bytes != NULL)
		r = loop_set_readahead(
			block_loop(serving->block), (uint64_t)json_integer_value(bytes));
	if (r < 0)
		return refuse(r, serving->name, strerror(-r));
	reply = detail_ok();
	(void)json_object_set_new(reply, "readahead_bytes",
		json_integer((json_int_t)current_readahead(serving))); /* NULL-safe */
	return reply;
}

/*
 * As md does: not while something of the block device is mounted for writing. What its users have
 * written goes to the engine first. -EBUSY.
 */
static int set_block_readonly(const struct block *block, int readonly)
{
	_cleanup_close_ int fd = open(
		block_loop(block)->node, O_CLOEXEC | (readonly ? O_RDONLY | O_EXCL : O_RDONLY));

	if (fd < 0 || (readonly && fsync(fd) < 0) || ioctl(fd, BLKROSET, &readonly) < 0)
		return -errno;
	return 0;
}

static bool is_verb(json_t *request, const char *verb)
{
	const char *text = json_string_value(json_object_get(request, "verb"));

	return text != NULL && strcmp(text, verb) == 0;
}

static json_t *manage(struct serving *serving, json_t *request)
{
	bool has_block = serving->block != NULL && block_is_ours(serving->block) &&
			 engine_device_max(serving->engine) > 0;
	json_t *reply;

	if (has_block && is_verb(request, "readonly") && set_block_readonly(serving->block, 1) < 0)
		return refuse(-EBUSY, serving->name,
			"its block device is in use: unmount what is mounted of it first");
	reply = manage_handle(&serving->manage, request);
	if (has_block && (is_verb(request, "readwrite") || is_verb(request, "readonly")) &&
		json_is_true(json_object_get(reply, "ok")) == is_verb(request, "readwrite"))
		(void)set_block_readonly(serving->block, 0); /* else writes fail as before */

	return reply != NULL ? reply : refuse(-ENOMEM, serving->name, "out of memory");
}

static json_t *ping(struct serving *serving, json_t *request)
{
	return detail_ok();
}

static const struct command commands[] = {
	{"detail", detail},
	{"stop", stop},
	{"partprobe", partprobe},
	{"readahead", do_readahead},
	{"manage", manage},
	{"ping", ping},
};

static json_t *run_command(struct serving *serving, const char *name, json_t *request)
{
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		if (name != NULL && strcmp(name, commands[i].name) == 0)
			return commands[i].run(serving, request);
	return refuse(-EINVAL, serving->name, "no such command on the control socket");
}

json_t *serving_handle(void *owner, json_t *request)
{
	struct serving *serving = owner;
	json_t *reply;

	(void)pthread_mutex_lock(&serving->admin);
	if (serving->stopped)
		reply = refuse(-ENOENT, serving->name, "is stopping");
	else if (!serving->attached)
		reply = refuse(-EAGAIN, serving->name, "is starting");
	else
		reply = run_command(
			serving, json_string_value(json_object_get(request, "command")), request);
	(void)pthread_mutex_unlock(&serving->admin);
	return reply;
}
