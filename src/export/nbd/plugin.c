/* SPDX-License-Identifier: MIT */
/*
 * nbdkit-strake-plugin: serves an array by NBD.
 *
 * nbdkit owns the sockets, the protocol and the threads (up to 16 per connection, model PARALLEL);
 * each calls pread, pwrite and so on here and wants the answer. There is one array for the whole
 * server, opened before the first client, not one per client. The data goes straight between
 * nbdkit's buffers and the members.
 */

#define NBDKIT_API_VERSION 2
#include <nbdkit-plugin.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "control/runtime.h"
#include "export/nbd/handover.h"
#include "export/nbd/nbd_array.h"
#include "export/nbd/nbd_control.h"
#include "util/cleanup.h"

#define THREAD_MODEL NBDKIT_THREAD_MODEL_PARALLEL
#define SECTOR 512u
#define PREFERRED_BYTES 4096u

/* nbdkit's callbacks carry no context that exists before a client does. */
static struct nbd_array array = {.changes_fd = -1};
static struct nbd_control *control; /* if the array has a name */
static char *socket_path;           /* of an array that strake started: removed at the end */
static int handover_fd = -1;
static pid_t supervisor; /* if handover_fd was given: our parent, as long as it lives */

static int set_layout(const char *value)
{
	if (strcmp(value, "original") == 0)
		array.assemble.raid0_layout = GEOMETRY_RAID0_ORIGINAL;
	else if (strcmp(value, "alternate") == 0)
		array.assemble.raid0_layout = GEOMETRY_RAID0_ALTERNATE;
	else {
		nbdkit_error("layout=%s: no such layout; say original or alternate", value);
		return -1;
	}
	return 0;
}

static int set_bool(const char *value, bool *ret)
{
	int r = nbdkit_parse_bool(value);

	if (r < 0)
		return -1;
	*ret = r;
	return 0;
}

static int add_member(const char *value)
{
	_cleanup_free_ char *path = nbdkit_absolute_path(value);

	if (path == NULL)
		return -1;
	if (nbd_array_add_path(&array, path) < 0) {
		nbdkit_error("member=%s: out of memory", value);
		return -1;
	}
	return 0;
}

static int report(const struct fault *fault)
{
	nbdkit_error("%s", fault->text);
	nbdkit_set_error(-fault->error);
	return -1;
}

static int set_text(const char *key, const char *value, char **ret)
{
	free(*ret);
	*ret = strdup(value);
	if (*ret == NULL)
		nbdkit_error("%s=%s: out of memory", key, value);
	return *ret == NULL ? -1 : 0;
}

static int set_name(const char *value)
{
	struct fault fault = {0};
	char name[NAME_MAX];

	if (runtime_name(value, name, &fault) < 0)
		return report(&fault);
	return set_text("name", name, &array.name);
}

static int strake_config(const char *key, const char *value)
{
	if (strcmp(key, "member") == 0)
		return add_member(value);
	if (strcmp(key, "name") == 0)
		return set_name(value);
	if (strcmp(key, "layout") == 0)
		return set_layout(value);
	if (strcmp(key, "readonly") == 0)
		return set_bool(value, &array.readonly);
	if (strcmp(key, "sync") == 0)
		return set_bool(value, &array.sync_io);
	if (strcmp(key, "force") == 0)
		return set_bool(value, &array.assemble.force);
	if (strcmp(key, "run") == 0)
		return set_bool(value, &array.assemble.run);
	if (strcmp(key, "handover") == 0) /* these two: from strake itself, see nbd_export.c */
		return nbdkit_parse_int(key, value, &handover_fd);
	if (strcmp(key, "socket") == 0)
		return set_text(key, value, &socket_path);
	nbdkit_error("%s=%s: no such parameter; --help lists them", key, value);
	return -1;
}

static int strake_config_complete(void)
{
	if (array.member_count > 0 || handover_fd >= 0)
		return 0;
	nbdkit_error("no member named; say member=PATH for each device or image of the array");
	return -1;
}

#define strake_config_help                                                                \
	"member=PATH   (required) A device or image of the array; repeat for each.\n"     \
	"name=NAME     Name under which strake detail, status and stop find the array.\n" \
	"readonly=BOOL Open members for reading only (nbdkit -r: offer no writing).\n"    \
	"layout=original|alternate\n"                                                     \
	"              For a RAID 0 of unequal members that records no layout.\n"         \
	"sync=BOOL     Plain reads and writes instead of io_uring.\n"                     \
	"run=BOOL      Assemble although members that were there before are missing.\n"   \
	"force=BOOL    Assemble in spite of contradictions between members."

static const char *array_name(void)
{
	if (array.name != NULL)
		return array.name;
	return array.assembly->super->name[0] != '\0' ? array.assembly->super->name : "strake";
}

static int strake_get_ready(void)
{
	struct fault fault = {0};
	int r;

	if (handover_fd >= 0)
		supervisor = getppid();
	r = handover_fd >= 0 ? handover_read(handover_fd, &array, &fault) : 0;
	if (r == 0)
		r = nbd_array_open(&array, &fault);
	return r < 0 ? report(&fault) : 0;
}

/*
 * strake reads what we say on the standard descriptors until this byte; then they are let go, like
 * those of every background process.
 */
static int tell_ready(void)
{
	int null, fd;

	if (write(STDERR_FILENO, "", 1) != 1) {
		nbdkit_error("array %s: strake is gone before the array was ready", array.name);
		return -1;
	}
	if (chdir("/") < 0)
		nbdkit_debug("the working directory's file system stays in use");
	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	for (fd = 0; null >= 0 && fd <= 2; fd++)
		(void)dup2(null, fd); /* if it fails, only the pipe stays open */
	if (null > 2)
		close(null);
	return 0;
}

/* The supervisor must know before we end: if we die on the way out it shall not start another. */
static void shut_down(void)
{
	if (supervisor > 0 && getppid() == supervisor)
		(void)kill(supervisor, SIGTERM); /* our own parent */
	nbdkit_shutdown();
}

/* So that whoever finds a member in use is told by which array, and ps shows it. */
static void take_title(void)
{
	char title[16];

	(void)snprintf(title, sizeof(title), "strake:%s", array.name);
	(void)prctl(PR_SET_NAME, title);
}

static int strake_after_fork(void)
{
	const struct nbd_control_options options = {socket_path, shut_down, supervisor};
	struct fault fault = {0};
	int r = nbd_array_start(&array, &fault);

	if (array.name != NULL)
		take_title();
	if (r == 0 && array.name != NULL)
		r = nbd_control_start(&array, &options, &control, &fault);
	if (r < 0)
		return report(&fault);
	nbdkit_debug("strake: %" PRIu64 " bytes over %u members, %s%s",
		engine_array_bytes(array.engine), array.member_count, reactor_kind(array.reactor),
		array.readonly ? ", read-only" : "");
	return handover_fd >= 0 ? tell_ready() : 0;
}

/* All clients are gone: what they wrote is made durable, whether they asked for it or not. */
static void strake_cleanup(void)
{
	struct fault fault = {0};

	if (nbd_array_stop(&array, &fault) < 0)
		nbdkit_error("array %s: %s", array_name(), fault.text);
	if (socket_path != NULL)
		(void)unlink(socket_path); /* a name in the way of nobody but the next start */
	nbd_control_stop(control);
	control = NULL;
}

static void strake_unload(void)
{
	nbd_array_close(&array);
	free(socket_path);
}

static void *strake_open(int readonly)
{
	nbd_control_clients(control, 1);
	return NBDKIT_HANDLE_NOT_NEEDED;
}

static void strake_close(void *handle)
{
	nbd_control_clients(control, -1);
}

static int64_t strake_get_size(void *handle)
{
	return (int64_t)engine_array_bytes(array.engine);
}

static int strake_can_write(void *handle)
{
	return !array.readonly;
}

static int always(void *handle)
{
	return 1;
}

/*
 * FUA is the engine's own: a write completes when its members have it safe, without a flush of all
 * the others.
 */
static int strake_can_fua(void *handle)
{
	return NBDKIT_FUA_NATIVE;
}

/* Caching is the members' business; a client's request to fill a cache has nothing to fill. */
static int strake_can_cache(void *handle)
{
	return NBDKIT_CACHE_NONE;
}

/*
 * Multi-conn promises that a flush on one connection covers writes completed on any other, and that
 * no connection sees stale data after it. All connections share one engine without a cache: a
 * completed write is on its members' side, every read asks them, and a flush goes to every member
 * that was written, no matter by whom.
 */
#define strake_can_multi_conn always

static int strake_block_size(
	void *handle, uint32_t *minimum, uint32_t *preferred, uint32_t *maximum)
{
	*minimum = SECTOR;
	*preferred = PREFERRED_BYTES;
	*maximum = UINT32_MAX; /* no limit of ours; nbdkit has its own */
	return 0;
}

static const char *strake_export_description(void *handle)
{
	const struct md_assembly *assembly = array.assembly;
	char text[160], uuid[MD_UUID_TEXT];

	if (!array.persistent)
		return NULL;
	snprintf(text, sizeof(text), "md %s array%s%s of %u members, UUID %s",
		md_level_name(assembly->level), assembly->super->name[0] == '\0' ? "" : " ",
		assembly->super->name, assembly->slot_count,
		md_uuid_format(assembly->super->set_uuid, uuid));
	return nbdkit_strdup_intern(text);
}

/* The errno that reaches the client. nbdkit turns those that NBD does not have into EINVAL. */
static int client_error(int result)
{
	switch (-result) {
	case EINVAL:
	case ENOSPC:
	case EDQUOT:
	case EFBIG:
	case EROFS:
	case ENOMEM:
		return -result;
	case EOPNOTSUPP:
		return ENOTSUP;
	case ERANGE:
		return EINVAL;
	default:
		return EIO;
	}
}

static const char *const op_names[] = {
	[ENGINE_READ] = "read",
	[ENGINE_WRITE] = "write",
	[ENGINE_FLUSH] = "flush",
	[ENGINE_DISCARD] = "trim",
	[ENGINE_ZERO] = "zero",
};

static void ask_broken(void *argument)
{
	bool *broken = argument;

	*broken = engine_is_broken(array.engine);
}

/* What the engine knows of lost writes must outlive it. Failing requests may take their time. */
static void note_broken(void)
{
	static atomic_bool noted;
	bool broken;

	shared_engine_call(array.shared, ask_broken, &broken);
	if (array.supervised && broken && !atomic_exchange(&noted, true))
		(void)!write(array.io_fd, "", 1); /* fails only if the supervisor is gone */
}

static int report_failed(const struct engine_request *request, int result)
{
	int error = client_error(result);

	note_broken();
	nbdkit_error("array %s: %s of %" PRIu64 " bytes at byte %" PRIu64 ": %s, in the %" PRIu64
		     " bytes at byte %" PRIu64,
		array_name(), op_names[request->op], request->length_bytes, request->offset_bytes,
		strerror(-result), request->fail_length_bytes, request->fail_offset_bytes);
	nbdkit_set_error(error);
	return -1;
}

/* A client that ignores the announced minimum block size. */
static int refuse_unaligned(const struct engine_request *request)
{
	nbdkit_error(
		"array %s: %s of %" PRIu64 " bytes at byte %" PRIu64 ": offset and length "
		"must be multiples of %u, as announced to the client; nbdkit --filter=blocksize "
		"minblock=%u serves clients that cannot",
		array_name(), op_names[request->op], request->length_bytes, request->offset_bytes,
		SECTOR, SECTOR);
	nbdkit_set_error(EINVAL);
	return -1;
}

static int run(struct engine_request *request)
{
	int r;

	if (request->offset_bytes % SECTOR != 0 || request->length_bytes % SECTOR != 0)
		return refuse_unaligned(request);
	r = shared_engine_do(array.shared, request);
	if (r == 0 && array.was_broken &&
		(request->op == ENGINE_FLUSH || (request->flags & ENGINE_FUA) != 0))
		r = -EIO;
	return r < 0 ? report_failed(request, r) : 0;
}

static unsigned engine_flags(uint32_t flags)
{
	return ((flags & NBDKIT_FLAG_FUA) != 0 ? ENGINE_FUA : 0) |
	       ((flags & NBDKIT_FLAG_MAY_TRIM) != 0 ? ENGINE_MAY_UNMAP : 0);
}

static int transfer(
	enum engine_op op, void *buffer, uint32_t count, uint64_t offset, uint32_t flags)
{
	struct iovec iov = {.iov_base = buffer, .iov_len = count};
	struct engine_request request = {
		.op = op,
		.flags = engine_flags(flags),
		.offset_bytes = offset,
		.length_bytes = count,
		.iov = &iov,
		.iov_count = 1,
	};

	return run(&request);
}

static int strake_pread(void *handle, void *buffer, uint32_t count, uint64_t offset, uint32_t flags)
{
	return transfer(ENGINE_READ, buffer, count, offset, flags);
}

static int strake_pwrite(
	void *handle, const void *buffer, uint32_t count, uint64_t offset, uint32_t flags)
{
	return transfer(ENGINE_WRITE, (void *)buffer, count, offset, flags);
}

static int strake_flush(void *handle, uint32_t flags)
{
	struct engine_request request = {.op = ENGINE_FLUSH};

	return run(&request);
}

static int strake_trim(void *handle, uint32_t count, uint64_t offset, uint32_t flags)
{
	struct engine_request request = {
		.op = ENGINE_DISCARD,
		.flags = engine_flags(flags),
		.offset_bytes = offset,
		.length_bytes = count,
	};

	return run(&request);
}

/*
 * Whether zeroing is faster than writing zeros depends on the member and shows only when it is
 * tried, so a client that wants it fast or not at all is told "not", which costs it nothing.
 */
static int strake_zero(void *handle, uint32_t count, uint64_t offset, uint32_t flags)
{
	struct engine_request request = {
		.op = ENGINE_ZERO,
		.flags = engine_flags(flags),
		.offset_bytes = offset,
		.length_bytes = count,
	};

	if ((flags & NBDKIT_FLAG_FAST_ZERO) != 0) {
		nbdkit_set_error(ENOTSUP);
		return -1;
	}
	return run(&request);
}

static struct nbdkit_plugin plugin = {
	.name = "strake",
	.longname = "strake",
	.version = STRAKE_VERSION,
	.description = "Serve a Linux md array from its members, without the kernel's md",
	.config = strake_config,
	.config_complete = strake_config_complete,
	.config_help = strake_config_help,
	.magic_config_key = "member",
	.get_ready = strake_get_ready,
	.after_fork = strake_after_fork,
	.cleanup = strake_cleanup,
	.unload = strake_unload,
	.open = strake_open,
	.close = strake_close,
	.get_size = strake_get_size,
	.export_description = strake_export_description,
	.block_size = strake_block_size,
	.can_write = strake_can_write,
	.can_flush = always,
	.can_trim = always,
	.can_zero = always,
	.can_fast_zero = always,
	.can_fua = strake_can_fua,
	.can_multi_conn = strake_can_multi_conn,
	.can_cache = strake_can_cache,
	.pread = strake_pread,
	.pwrite = strake_pwrite,
	.flush = strake_flush,
	.trim = strake_trim,
	.zero = strake_zero,
	.errno_is_preserved = 1,
};

/* Declared here because nbdkit's macro defines it without. */
struct nbdkit_plugin *plugin_init(void);

NBDKIT_REGISTER_PLUGIN(plugin)
