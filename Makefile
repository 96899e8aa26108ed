# A thin face on meson: all rules live in meson.build.
BUILD ?= build
.PHONY: all check demo bench fuzz sim sim-long uml-long mutations install clean
RUNS ?= 100000
JOBS ?= $(shell nproc)

all: $(BUILD)/build.ninja
	ninja -C $(BUILD)

$(BUILD)/build.ninja:
	meson setup $(BUILD)

check:
	./check

demo:
	./demo

bench: all
	bench/run $(BUILD)

fuzz:
	fuzz/run

# Seeds that found bugs and a fixed batch; then RUNS runs from a new seed.
sim: all
	tests/sim/seeds.sh $(BUILD)/strake

sim-long: all
	$(BUILD)/strake sim --runs $(RUNS) --jobs $(JOBS)

# Every layout against the real md, in all states: half an hour and more.
uml-long: all
	UML_LONG=1 meson test -C $(BUILD) --suite uml --timeout-multiplier 10

mutations:
	tests/sim/mutations.py

install: all
	meson install -C $(BUILD)

clean:
	rm -rf build build-asan build-clang build-fuzz
