#!/bin/bash
# Runs as init inside user-mode-linux (Linux 6.1, mdadm 4.2): makes the arrays whose texts and
# images are golden here. Before: in $GOLDEN_DIR, sparse files b.img … e.img of 24 MiB, f.img and
# g.img of 40 MiB, h.img and i.img of 33 MiB; pass them as ubdb … ubdi, and GOLDEN_DIR= on the
# kernel's command line (it becomes init's environment). Output goes to $GOLDEN_DIR/out.
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
mount -t proc proc /proc; mount -t sysfs sysfs /sys; mount -t devtmpfs dev /dev; mount -t tmpfs tmp /run
hostname uml
ip link set lo up 2>/dev/null
M=/usr/lib/uml/modules/$(uname -r)/kernel
for m in async_tx async_memcpy async_xor async_pq async_raid6_recov md-mod linear raid0 raid1 raid10 raid456; do
 f=$(find $M -name $m.ko | head -1); [ -n "$f" ] && insmod $f 2>/dev/null
done
for m in xor raid6_pq; do f=$(find $M -name $m.ko | head -1); [ -n "$f" ] && insmod $f; done
for m in async_xor async_pq async_raid6_recov raid456; do f=$(find $M -name $m.ko | head -1); [ -n "$f" ] && insmod $f 2>/dev/null; done
lsmod
O=$GOLDEN_DIR/out; mkdir -p $O
# name, node, devices, create options
cap() { # name node members...
 n=$1; md=$2; shift 2
 udevadm settle 2>/dev/null
 mdadm --detail $md > $O/$n.detail 2>&1; echo $? > $O/$n.detail.rc
 mdadm --detail --brief $md > $O/$n.detail-brief 2>&1
 mdadm --detail --brief --verbose $md > $O/$n.detail-brief-verbose 2>&1
 mdadm --detail --verbose $md > $O/$n.detail-verbose 2>&1
 mdadm --detail --scan > $O/$n.detail-scan 2>&1
 mdadm --detail --scan --verbose > $O/$n.detail-scan-verbose 2>&1
 mdadm --detail --export $md > $O/$n.detail-export 2>&1
 mdadm --detail --test $md > $O/$n.detail-test 2>&1; echo $? >> $O/$n.detail-test
 cat /proc/mdstat > $O/$n.mdstat
 mdadm --query $md > $O/$n.query 2>&1; echo $? >> $O/$n.query
 mdadm --query $1 > $O/$n.query-member 2>&1; echo $? >> $O/$n.query-member
 mdadm --detail $1 > $O/$n.detail-member 2>&1; echo $? >> $O/$n.detail-member
}
save() { # name members, after stop
 n=$1; shift
 mdadm --query $1 > $O/$n.query-stopped 2>&1; echo $? >> $O/$n.query-stopped
 i=0; for d in $*; do
  dd if=$d of=$O/$n.$i.img bs=64k conv=sparse 2>/dev/null
  i=$((i+1))
 done
 for d in $*; do mdadm --zero-superblock $d 2>/dev/null; dd if=/dev/zero of=$d bs=64k count=16 2>/dev/null; done
}
run() { # name "devices" options
 n=$1; devs=$2; shift 2
 echo "== $n"
 yes | mdadm --create /dev/md0 --run $* $devs
 sleep 0.3; mdadm --wait /dev/md0 2>/dev/null
 cap $n /dev/md0 $devs
 mdadm --stop /dev/md0
 save $n $devs
}
B=/dev/ubdb C=/dev/ubdc D=/dev/ubdd E=/dev/ubde F=/dev/ubdf G=/dev/ubdg H=/dev/ubdh I=/dev/ubdi
run raid0-2 "$B $C" --level=0 --raid-devices=2
run raid0-uneq "$B $F $H" --level=0 --raid-devices=3 --chunk=64 --metadata=1.0 --name=data
run raid0-alt "$B $F $H" --level=0 --raid-devices=3 --chunk=16 --metadata=1.1 --layout=alternate
run raid0-one "$B" --level=0 --raid-devices=1 --force
run linear12 "$B $F" --level=linear --raid-devices=2
run linear10r "$B $F" --level=linear --raid-devices=2 --rounding=64 --metadata=1.0
run linear090 "$B $F $C" --level=linear --raid-devices=3 --metadata=0.90
run raid1 "$B $C" --level=1 --raid-devices=2 --assume-clean
run raid1-bm "$B $C" --level=1 --raid-devices=2 --assume-clean --bitmap=internal --write-mostly
run raid1-090 "$B $C $D" --level=1 --raid-devices=2 --spare-devices=1 --metadata=0.90
run raid1-090-bm "$B $C" --level=1 --raid-devices=2 --metadata=0.90 --bitmap=internal
run raid4 "$B $C $D" --level=4 --raid-devices=3 --chunk=64 --assume-clean
run raid5 "$B $C $D $E" --level=5 --raid-devices=3 --spare-devices=1
run raid5-090 "$B $C $D" --level=5 --raid-devices=3 --metadata=0.90 --layout=ra
run raid5-ppl "$B $C $D" --level=5 --raid-devices=3 --consistency-policy=ppl --assume-clean
run raid5-miss "$B missing $D" --level=5 --raid-devices=3 --metadata=1.0
run raid6 "$B $C $D $E" --level=6 --raid-devices=4 --layout=ls --chunk=32
run raid6-n "$B $C $D $E" --level=6 --raid-devices=4 --layout=ddf-N-restart --metadata=1.1 --assume-clean
run raid10 "$B $C $D $E" --level=10 --raid-devices=4 --bitmap=internal --bitmap-chunk=4K --assume-clean
run raid10-f2 "$B $C $D" --level=10 --raid-devices=3 --layout=f2 --metadata=1.0 --bitmap=internal --assume-clean
run raid10-o2 "$B $C $D" --level=10 --raid-devices=3 --layout=o2 --assume-clean
echo "== journal"
yes | mdadm --create /dev/md0 --run --level=5 --raid-devices=3 --write-journal $E $B $C $D --assume-clean
sleep 0.5; cap raid5-journal /dev/md0 $B $E; mdadm --stop /dev/md0; save raid5-journal $B $C $D $E
echo "== named and readonly, two at once"
yes | mdadm --create /dev/md/data --run --level=0 --raid-devices=2 $B $C
yes | mdadm --create /dev/md7 --run --level=linear --raid-devices=2 $D $E --metadata=0.90
mdadm --readonly /dev/md7
cap two /dev/md/data $B; cap two7 /dev/md7 $D
ls -l /dev/md* > $O/two.ls
mdadm --stop --scan; save two-b $B $C; save two-d $D $E
echo "== build"
mdadm --build /dev/md0 --level=0 --raid-devices=2 --chunk=64 $B $C
cap build0 /dev/md0 $B; mdadm --stop /dev/md0
mdadm --build /dev/md0 --level=linear --raid-devices=2 $B $C
cap buildl /dev/md0 $B; mdadm --stop /dev/md0
echo "== reshape"
yes | mdadm --create /dev/md0 --run --level=5 --raid-devices=3 --chunk=64 --assume-clean $B $C $D
mdadm --add /dev/md0 $E
echo 200 > /proc/sys/dev/raid/speed_limit_max; echo 100 > /proc/sys/dev/raid/speed_limit_min
mdadm --grow /dev/md0 --raid-devices=4; sleep 1
cap reshape /dev/md0 $B
mdadm --stop /dev/md0; save reshape $B $C $D $E
echo "== replacement, faulty"
yes | mdadm --create /dev/md0 --run --level=1 --raid-devices=2 --assume-clean $B $C
mdadm --add /dev/md0 $D; sleep 0.5
mdadm --replace /dev/md0 $C --with $D; sleep 1
cap replace /dev/md0 $B; mdadm --stop /dev/md0; save replace $B $C $D
echo 200000 > /proc/sys/dev/raid/speed_limit_max
yes | mdadm --create /dev/md0 --run --level=1 --raid-devices=2 --assume-clean $B $C
mdadm --fail /dev/md0 $C; cap faulty /dev/md0 $B; mdadm --stop /dev/md0; save faulty $B $C
mdadm --query /dev/null > $O/q.null 2>&1; mdadm --query $B > $O/q.plain 2>&1; mdadm --query /nonexistent > $O/q.none 2>&1
mdadm --detail /dev/md55 > $O/d.none 2>&1; echo $? >> $O/d.none
mdadm --detail /etc/passwd > $O/d.file 2>&1; echo $? >> $O/d.file
touch $O/done
halt -f -p
