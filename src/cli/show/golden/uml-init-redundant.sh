#!/bin/bash
# Runs as init inside user-mode-linux (Linux 6.1, mdadm 4.2): makes the arrays with redundancy whose
# texts are golden in detail/. Before: in $GOLDEN_DIR, sparse files b.img … f.img of 24 MiB; pass
# them as ubdb … ubdf, and GOLDEN_DIR= on the kernel's command line (it becomes init's environment).
# Output goes to $GOLDEN_DIR/out.
export PATH=/usr/sbin:/usr/bin:/sbin:/bin TZ=UTC
mount -t proc proc /proc; mount -t sysfs sysfs /sys; mount -t devtmpfs dev /dev; mount -t tmpfs tmp /run
hostname uml
M=/usr/lib/uml/modules/$(uname -r)/kernel
for m in async_tx xor async_memcpy async_xor raid6_pq async_pq async_raid6_recov md-mod raid0 raid1 raid10 raid456; do
	f=$(find "$M" -name $m.ko | head -1); [ -n "$f" ] && insmod "$f" 2>/dev/null
done
for m in async_xor async_pq async_raid6_recov raid456; do
	f=$(find "$M" -name $m.ko | head -1); [ -n "$f" ] && insmod "$f" 2>/dev/null
done
O=$GOLDEN_DIR/out; mkdir -p "$O"
slow() { echo 100 >/proc/sys/dev/raid/speed_limit_min; echo 100 >/proc/sys/dev/raid/speed_limit_max; }
fast() { echo 200000 >/proc/sys/dev/raid/speed_limit_max; echo 1000 >/proc/sys/dev/raid/speed_limit_min; }
cap() { # name
	n=$1
	{
		for f in level layout chunk_size raid_disks component_size metadata_version \
			array_state degraded sync_action; do
			echo "$f $(cat /sys/block/md0/md/$f)"
		done
		echo "blocks $(($(cat /sys/block/md0/size) / 2))"
		echo "bitmap_chunk $(cat /sys/block/md0/md/bitmap/chunksize)"
		for d in /sys/block/md0/md/dev-*; do
			echo "dev ${d##*-} $(cat $d/slot) $(cat $d/state) $(cat $d/block/dev)"
		done
	} >"$O/$n.sys" 2>/dev/null
	cat /proc/mdstat >"$O/$n.mdstat"
	mdadm --detail /dev/md0 >"$O/$n.detail" 2>&1
	mdadm --detail --brief /dev/md0 >"$O/$n.detail-brief" 2>&1
	mdadm --detail --brief --verbose /dev/md0 >"$O/$n.detail-brief-verbose" 2>&1
	mdadm --detail --export /dev/md0 >"$O/$n.detail-export" 2>&1
	mdadm --detail --test /dev/md0 >/dev/null 2>&1; echo $? >"$O/$n.test"
	mdadm --query /dev/md0 >"$O/$n.query" 2>&1
}
stop() { mdadm --stop /dev/md0; fast; for d in $B $C $D $E $F; do mdadm --zero-superblock $d; dd if=/dev/zero of=$d bs=64k count=40; done >/dev/null 2>&1; }
make() { yes | mdadm --create /dev/md0 --run "$@" >>"$O/log" 2>&1; }
settle() { sleep 0.3; mdadm --wait /dev/md0 2>/dev/null; sleep 0.5; }
B=/dev/ubdb C=/dev/ubdc D=/dev/ubdd E=/dev/ubde F=/dev/ubdf
make --level=1 --raid-devices=2 --assume-clean $B $C; cap r1; stop
make --level=1 --raid-devices=2 --assume-clean --bitmap=internal $B --write-mostly --failfast $C; sleep 0.3; cap r1-bitmap; stop
make --level=1 --raid-devices=2 --spare-devices=1 --metadata=0.90 --assume-clean $B $C $D; cap r1-090; stop
make --level=1 --raid-devices=3 --assume-clean $B missing $C; cap r1-missing; stop
make --level=1 --raid-devices=2 --assume-clean $B $C; mdadm --fail /dev/md0 $C; sleep 0.5; cap r1-faulty; mdadm --remove /dev/md0 $C; sleep 0.3; cap r1-removed; stop
make --level=4 --raid-devices=3 --chunk=64 --assume-clean $B $C $D; cap r4; stop
make --level=5 --raid-devices=3 --spare-devices=1 $B $C $D $E; settle; cap r5-spare; stop
make --level=5 --raid-devices=3 --layout=ra --metadata=1.0 --name=data $B missing $D; cap r5-missing; stop
slow; make --level=5 --raid-devices=3 $B $C $D; sleep 4; cap r5-rebuild; stop
slow; make --level=1 --raid-devices=2 $B $C; sleep 3; cap r1-resync; stop
slow; make --level=10 --raid-devices=4 --bitmap=internal --bitmap-chunk=4K $B $C $D $E; sleep 3; cap r10-resync; stop
make --level=6 --raid-devices=4 --layout=ddf-N-restart --chunk=32 --assume-clean $B $C $D $E; slow; echo check >/sys/block/md0/md/sync_action; sleep 3; cap r6-check; stop
make --level=6 --raid-devices=4 --assume-clean $B $C $D $E; slow; echo repair >/sys/block/md0/md/sync_action; sleep 3; cap r6-repair; stop
make --level=6 --raid-devices=5 --assume-clean $B missing $D missing $F; cap r6-two; stop
make --level=10 --raid-devices=4 --assume-clean $B $C $D $E; cap r10; stop
make --level=10 --raid-devices=3 --layout=f2 --metadata=1.1 --assume-clean $B $C $D; cap r10-f2; stop
make --level=10 --raid-devices=3 --layout=o2 --assume-clean $B $C $D; cap r10-o2; stop
make --level=10 --raid-devices=2 --layout=n2 --assume-clean $B $C; cap r10-n2of2; stop
make --level=10 --raid-devices=5 --layout=n3 --assume-clean $B $C missing $E $F; cap r10-n3; stop
make --level=1 --raid-devices=2 --assume-clean $B $C; mdadm --add /dev/md0 $D; sleep 0.5; slow; mdadm --replace /dev/md0 $C --with $D; sleep 2; cap r1-replace; stop
make --level=5 --raid-devices=3 --assume-clean $B $C $D; mdadm --readonly /dev/md0; cap r5-ro; stop
make --level=5 --raid-devices=3 --assume-clean $B $C $D; echo 20 >/sys/block/md0/md/safe_mode_delay; dd if=/dev/urandom of=/dev/md0 bs=4k count=1 oflag=direct; cap r5-active; stop
make --level=5 --raid-devices=3 --assume-clean $B $C $D; mdadm --fail /dev/md0 $C; mdadm --fail /dev/md0 $D; sleep 0.5; cap r5-failed; stop
slow; make --level=5 --raid-devices=3 --bitmap=internal $B $C $D; sleep 1; mdadm --readonly /dev/md0; sleep 0.5; cap r5-ro-rebuild; stop
make --level=1 --raid-devices=2 --force $B $C; stop; make --level=1 --raid-devices=1 --force --assume-clean $B; cap r1-one; stop
touch "$O/done"
halt -f -p
