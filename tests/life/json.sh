#!/bin/sh
# SPDX-License-Identifier: MIT
# --json: exactly one JSON value on standard output, also when the command fails; query's exit code.
. "${0%/*}/../lib.sh"
requires python3

# holds WHAT CODE EXPRESSION ARGUMENT…: exit code, and a Python expression about the value, j.
holds() {
	what=$1
	code=$2
	expression=$3
	shift 3
	run "$@"
	check "$what: exit code" [ $rc = "$code" ]
	check "$what: value" python3 -c 'import json, sys
j = json.load(open(sys.argv[1]))
sys.exit(not eval(sys.argv[2]))' "$T/out" "$expression" || explain "$T/out"
	[ "$code" = 0 ] || check "$what: words" grep -q '^strake' "$T/err"
}

fails='j["ok"] == False and j["name"] == "md9" and j["errno"] == 2 and "md9" in j["error"]'
holds "detail of one" 1 "$fails" detail --json md9
holds "detail of two" 1 'len(j) == 2 and not any(a["ok"] for a in j)' detail --json md8 md9
holds "status of one" 1 'j["arrays"] == [] and j["failures"][0]["name"] == "md9"' status --json md9
holds "status of none" 0 'j["arrays"] == [] and j["failures"] == []' status --json
holds "query" 1 'j[0]["ok"] == False and j[0]["path"] == "nope"' query --json nope
mkdir folder
mkd 2 16M
create_pair md0
holds "query of several" 1 'j[0]["member"]["level"] == "raid0" and j[1]["path"] == "nope"' query --json d0 nope
holds "query of what is neither" 0 'j[0]["member"] is None and j[0]["array"] is None' query --json folder
holds "examine" 1 'j["failures"][0]["ok"] == False and len(j["devices"]) == 1' examine --json d0 nope
refused "query" 1 'nope' 'no such file' -- query nope
runs "query of what is neither" query folder

# Where no place is known, that is what is said, not that nothing runs.
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
	requires_nobody
	program=$STRAKE
	printf '#!/bin/sh\nunset STRAKE_RUNTIME_DIR XDG_RUNTIME_DIR\nexec setpriv --reuid=nobody \\\n%s "%s" "$@"\n' \
		'--regid=nogroup --clear-groups' "$program" >as-nobody
	chmod 755 as-nobody
	STRAKE=$T/as-nobody
	refused "no XDG_RUNTIME_DIR: stop" 1 'XDG_RUNTIME_DIR' -- stop md0
	refused "no XDG_RUNTIME_DIR: stop --scan" 1 'XDG_RUNTIME_DIR' -- stop --scan
	refused "no XDG_RUNTIME_DIR: detail" 1 'XDG_RUNTIME_DIR' -- detail md0
	refused "no XDG_RUNTIME_DIR: status" 1 'XDG_RUNTIME_DIR' -- status
	check "no XDG_RUNTIME_DIR: status has no text" [ ! -s "$T/out" ]
	holds "no XDG_RUNTIME_DIR: status" 1 '"XDG_RUNTIME_DIR" in j["failures"][0]["error"]' status --json

	# root's arrays are told of, by their sockets' names.
	mkdir -m 777 own
	sed -i "2s#.*#unset STRAKE_RUNTIME_DIR; XDG_RUNTIME_DIR=$T/own; export XDG_RUNTIME_DIR#" as-nobody
	socket=/run/strake/root$$.sock
	mkdir -p /run/strake
	python3 -c 'import socket, sys; socket.socket(socket.AF_UNIX).bind(sys.argv[1])' "$socket"
	runs "status of an ordinary user" status
	check "status tells whose arrays it shows" grep -q "your own.*root.*root$$" "$T/err"
	rm "$socket"
	STRAKE=$program
fi
finish
