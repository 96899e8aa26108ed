#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
detail/NAME.json for the arrays of uml-init-redundant.sh: the control socket's reply for what the
kernel says of the array in sysfs (OUT/NAME.sys). Of the texts under test it takes only what sysfs
has not: UUID, name, times and events, device numbers, and how far a background action is.
usage: make-detail.py OUT DETAIL
"""
import calendar, json, re, shutil, sys, time

LAYOUTS = {
	4: {0: "left-asymmetric"},
	5: {0: "left-asymmetric", 1: "right-asymmetric", 2: "left-symmetric", 3: "right-symmetric"},
	6: {2: "left-symmetric", 9: "ddf-N-restart"},
	10: {0x102: "near=2", 0x103: "near=3", 0x201: "far=2", 0x10201: "offset=2"},
}
REDUNDANCY = {4: 1, 5: 1, 6: 2}
ACTIONS = {"recovery": "recover", "resync": "resync", "check": "check"}


def field(text, label):
	found = re.search(r"^ *%s : (.*)$" % label, text, re.M)
	return re.sub(r" +\(local to host .*", "", found.group(1)).strip() if found else None


def seconds(text):
	return calendar.timegm(time.strptime(text, "%a %b %d %H:%M:%S %Y")) if text else None


def member(words, numbers):
	name, slot, state, device = words
	flags = state.split(",")
	major, minor = map(int, device.split(":"))
	slot = None if slot == "none" else int(slot)
	if "faulty" in flags:
		words = "faulty"
	elif "in_sync" in flags:
		words = "active sync"
	else:
		words = "spare" if slot is None else "spare rebuilding"
	return {"path": "/dev/" + name, "slot": slot, "number": numbers[name], "state": words,
		"replacement": "replacement" in flags, "write_mostly": "write_mostly" in flags,
		"failfast": "failfast" in flags, "major": major, "minor": minor, "errors": 0}


def progress(mdstat, action):
	found = re.search(r"(recovery|resync|check) = *[\d.]+% \((\d+)/(\d+)\).*speed=(\d+)K", mdstat)
	if found is None:
		return {"action": action, "position_bytes": 0, "total_bytes": 0, "speed_bytes_s": 0}
	return {"action": ACTIONS[found.group(1)], "position_bytes": int(found.group(2)) * 1024,
		"total_bytes": int(found.group(3)) * 1024, "speed_bytes_s": int(found.group(4)) * 1024}


def reply(out, name):
	sysfs, devices = {}, []
	for line in open("%s/%s.sys" % (out, name)):
		words = line.split()
		if words[0] == "dev":
			devices.append(words[1:])
		else:
			sysfs[words[0]] = words[1] if len(words) > 1 else ""
	detail = open("%s/%s.detail" % (out, name)).read()
	mdstat = open("%s/%s.mdstat" % (out, name)).read()
	numbers = {n: int(i) for n, i in re.findall(r"(ubd.)\[(\d+)\]", mdstat)}
	members = [member(words, numbers) for words in devices]
	level = int(sysfs["level"][4:])
	events = field(detail, "Events")
	if "." in events:
		events = (int(events.split(".")[0]) << 32) + int(events.split(".")[1])
	states = [m["state"] for m in members]
	slots = int(sysfs["raid_disks"])
	old = sysfs["metadata_version"] == "0.90"
	pages = re.search(r"bitmap: (\d+)/", mdstat)
	chunk = int(sysfs.get("bitmap_chunk") or 0) if pages else 0
	bits = (int(sysfs["component_size"]) * 1024 * (slots // 2 if level == 10 else 1) // chunk
		if chunk else 0)
	return {
		"ok": True, "name": "md0", "node": "/dev/md0", "device": "/dev/loop3", "export": "loop",
		"readonly": sysfs["array_state"] == "readonly",
		"state": "active" if sysfs["array_state"].startswith("active") else "clean",
		"metadata": sysfs["metadata_version"], "level": sysfs["level"], "level_number": level,
		"layout": LAYOUTS.get(level, {}).get(int(sysfs["layout"])),
		"layout_number": int(sysfs["layout"]), "chunk_bytes": int(sysfs["chunk_size"]),
		"array_bytes": int(sysfs["blocks"]) * 1024,
		"component_bytes": int(sysfs["component_size"]) * 1024,
		"raid_devices": slots, "total_devices": len(members),
		"active_devices": states.count("active sync"),
		"working_devices": len(members) - states.count("faulty"),
		"failed_devices": states.count("faulty"),
		"spare_devices": states.count("spare") + states.count("spare rebuilding"),
		"degraded_devices": int(sysfs["degraded"]), "failed": int(sysfs["degraded"]) > REDUNDANCY.get(level, slots - 1),
		"consistency_policy": "bitmap" if chunk else "resync",
		"bitmap": {"location": "internal", "chunk_bytes": chunk, "bits": max(bits, 1),
			"dirty_bits": int(pages.group(1))} if chunk else None,
		"resync_offset_bytes": None, "sync": progress(mdstat, "idle"),
		"uuid": field(detail, "UUID").split(" ")[0],
		"array_name": None if old else field(detail, "Name"),
		"preferred_minor": 0 if old else None, "events": int(events),
		"creation_time": seconds(field(detail, "Creation Time")),
		"update_time": seconds(field(detail, "Update Time")), "members": members,
		"partitions": [],
	}


def main(out, folder):
	import glob, os
	for path in sorted(glob.glob(out + "/*.sys")):
		name = os.path.basename(path)[:-4]
		with open("%s/%s.json" % (folder, name), "w") as file:
			json.dump(reply(out, name), file, indent=1)
			file.write("\n")
		for form in ("detail", "detail-brief", "detail-brief-verbose", "detail-export",
				"mdstat", "query", "test"):
			shutil.copy("%s/%s.%s" % (out, name, form), folder)


main(*sys.argv[1:])
