# A thin face on meson: all rules live in meson.build.
BUILD ?= build
.PHONY: all check demo bench fuzz install clean

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

install: all
	meson install -C $(BUILD)

clean:
	rm -rf build build-asan build-clang build-fuzz
