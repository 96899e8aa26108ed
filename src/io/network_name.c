/* SPDX-License-Identifier: MIT */
/*
 * What a URI of NBD names (https://github.com/NetworkBlockDevice/nbd/blob/master/doc/uri.md), as
 * far as it takes to tell two exports apart. libnbd itself connects, and judges the rest.
 */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/network.h"
#include "util/cleanup.h"

#define NBD_PORT "10809" /* of IANA */

/* Slices of a URI, as they stand there (percent-encoded). */
struct slice {
	const char *at;
	size_t length;
};

struct uri {
	struct slice scheme, authority, export, socket;
};

static bool is_scheme(const struct slice *scheme)
{
	static const char *const known[] = {
		"nbd", "nbds", "nbd+unix", "nbds+unix", "nbd+vsock", "nbds+vsock"};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (strlen(known[i]) == scheme->length &&
			strncasecmp(known[i], scheme->at, scheme->length) == 0)
			return true;
	return false;
}

static bool is_uri(const char *word, struct slice *ret_scheme)
{
	const char *colon = strchr(word, ':');

	*ret_scheme = (struct slice){word, colon != NULL ? (size_t)(colon - word) : 0};
	return colon != NULL && strncmp(colon, "://", 3) == 0 && is_scheme(ret_scheme);
}

bool network_is_word(const char *word)
{
	struct slice scheme;
	struct stat status;

	return is_uri(word, &scheme) || (stat(word, &status) == 0 && S_ISSOCK(status.st_mode));
}

static bool has_suffix(const struct slice *slice, const char *suffix)
{
	size_t length = strlen(suffix);

	return slice->length >= length &&
	       strncasecmp(slice->at + slice->length - length, suffix, length) == 0;
}

/* The value of "socket" in the query, as libnbd takes it: parameters stand between & or ;. */
static struct slice find_socket(const char *query)
{
	while (*query == '?' || *query == '&' || *query == ';') {
		size_t length = strcspn(++query, "&;#");

		if (strncmp(query, "socket=", 7) == 0)
			return (struct slice){query + 7, length - 7};
		query += length;
	}
	return (struct slice){NULL, 0};
}

static struct uri split(const char *word, struct slice scheme)
{
	struct uri uri = {.scheme = scheme};
	const char *at = scheme.at + scheme.length + 3;

	uri.authority = (struct slice){at, strcspn(at, "/?#")};
	at += uri.authority.length;
	at += *at == '/';
	uri.export = (struct slice){at, strcspn(at, "?#")};
	uri.socket = find_socket(at + uri.export.length);
	return uri;
}

static int hex(char digit)
{
	return isdigit((unsigned char)digit) ? digit - '0'
					     : tolower((unsigned char)digit) - 'a' + 10;
}

/* Percent-decoded, on the heap. */
static char *decode(struct slice slice)
{
	char *text = malloc(slice.length + 1), *out = text;

	for (size_t i = 0; text != NULL && i < slice.length; i++) {
		if (slice.at[i] == '%' && i + 2 < slice.length &&
			isxdigit((unsigned char)slice.at[i + 1]) &&
			isxdigit((unsigned char)slice.at[i + 2])) {
			*out++ = (char)(hex(slice.at[i + 1]) * 16 + hex(slice.at[i + 2]));
			i += 2;
		} else {
			*out++ = slice.at[i];
		}
	}
	if (text != NULL)
		*out = '\0';
	return text;
}

/*
 * The path without links, also if nothing stands there now: a server that has ended and its
 * successor are the same to us.
 */
static char *real_path(const char *path)
{
	const char *slash = strrchr(path, '/');
	_cleanup_free_ char *folder = NULL, *real = NULL;
	char *whole = realpath(path, NULL);

	if (whole != NULL)
		return whole;
	folder = slash == NULL ? strdup(".") : strndup(path, (size_t)(slash - path) + 1);
	real = folder != NULL ? realpath(folder, NULL) : NULL;
	if (real == NULL)
		return strdup(path);
	if (asprintf(&whole, "%s/%s", real, slash == NULL ? path : slash + 1) < 0)
		return NULL;
	return whole;
}

static char *unix_key(const char *socket, const char *export)
{
	_cleanup_free_ char *real = real_path(socket);
	char *key;

	return real != NULL && asprintf(&key, "unix %s %s", real, export) >= 0 ? key : NULL;
}

/* "user@Host:port" without the user, in small letters, with the port. */
static char *host_key(const struct uri *uri, const char *export)
{
	_cleanup_free_ char *text = decode(uri->authority);
	char *host = text, *key;
	bool has_port, is_vsock = has_suffix(&uri->scheme, "+vsock");

	if (text == NULL)
		return NULL;
	if (strrchr(text, '@') != NULL)
		host = strrchr(text, '@') + 1;
	for (char *at = host; *at != '\0'; at++)
		*at = (char)tolower((unsigned char)*at);
	has_port = strchr(host[0] == '[' ? host + strcspn(host, "]") : host, ':') != NULL;
	if (asprintf(&key, "%s %s%s %s", is_vsock ? "vsock" : "tcp", host,
		    has_port ? "" : ":" NBD_PORT, export) < 0)
		return NULL;
	return key;
}

/* A path as a parameter's value: what has a meaning in a URI gets its number instead. */
static void encode(const char *text, FILE *out)
{
	for (; *text != '\0'; text++) {
		if (isalnum((unsigned char)*text) || strchr("/-._~", *text) != NULL)
			(void)fputc(*text, out); /* into memory: fclose() tells */
		else
			(void)fprintf(out, "%%%02X", (unsigned char)*text);
	}
}

/* The word with the folder we stand in before the socket's path: others read it elsewhere. */
static char *absolute(const char *word, struct slice socket)
{
	_cleanup_free_ char *folder = getcwd(NULL, 0);
	char *text = NULL;
	size_t size;
	FILE *out;

	if (socket.at == NULL || socket.length == 0 || socket.at[0] == '/' ||
		strncasecmp(socket.at, "%2f", 3) == 0)
		return strdup(word);
	out = folder != NULL ? open_memstream(&text, &size) : NULL;
	if (out == NULL)
		return NULL;
	(void)fwrite(word, 1, (size_t)(socket.at - word), out);
	encode(folder, out);
	(void)fprintf(out, "/%s", socket.at);
	if (fclose(out) != 0) {
		free(text);
		return NULL;
	}
	return text;
}

static int parse_uri(
	const char *word, const struct uri *uri, struct network_name *ret, struct fault *fault)
{
	_cleanup_free_ char *export = decode(uri->export), *socket = decode(uri->socket);
	bool is_unix = has_suffix(&uri->scheme, "+unix");

	if (is_unix && uri->socket.length == 0)
		return fault_set(fault, -EINVAL,
			"%s: names no socket; write 'nbd+unix:///EXPORT?socket=/PATH'", word);
	if (!is_unix && uri->authority.length == 0)
		return fault_set(
			fault, -EINVAL, "%s: names no host; write 'nbd://HOST:PORT/EXPORT'", word);
	ret->is_uri = true;
	ret->path = absolute(word, is_unix ? uri->socket : (struct slice){NULL, 0});
	if (export != NULL && socket != NULL)
		ret->key = is_unix ? unix_key(socket, export) : host_key(uri, export);
	return 0;
}

int network_name_parse(const char *word, struct network_name *ret, struct fault *fault)
{
	struct network_name name = {NULL, NULL, false};
	struct slice scheme;
	int r = 0;

	if (is_uri(word, &scheme)) {
		struct uri uri = split(word, scheme);

		r = parse_uri(word, &uri, &name, fault);
	} else {
		name.path = real_path(word);
		name.key = unix_key(word, "");
	}
	if (r == 0 && (name.path == NULL || name.key == NULL))
		r = fault_set(fault, -ENOMEM, "%s: no memory to open it", word);
	if (r < 0)
		network_name_fini(&name);
	else
		*ret = name;
	return r;
}

void network_name_fini(struct network_name *name)
{
	free(name->path);
	free(name->key);
	*name = (struct network_name){NULL, NULL, false};
}

/* FNV-1a (RFC draft eastlake-fnv), 64 bits: two exports of one machine do not meet by chance. */
struct network_hold_address network_hold_address(const char *key)
{
	struct network_hold_address address;
	uint64_t sum = UINT64_C(0xcbf29ce484222325);

	for (; *key != '\0'; key++)
		sum = (sum ^ (unsigned char)*key) * UINT64_C(0x100000001b3);
	(void)snprintf(address.name, sizeof(address.name), "strake-member-%016" PRIx64, sum);
	return address;
}
