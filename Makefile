# One command per wish; `make help` lists them. Every target may be repeated: what is done is not done again.
TORCH_DEFAULT := 2.13.0
TORCH ?= $(TORCH_DEFAULT)
SUFFIX := $(if $(filter $(TORCH_DEFAULT),$(TORCH)),,-$(TORCH))
VENV := $(CURDIR)/.venv$(SUFFIX)
JOBS ?= $(shell bash tools/jobs.sh)

export PATH := $(VENV)/bin:$(PATH)
export THINWIRE_LAUNCHER ?= $(shell command -v ccache)
export THINWIRE_JOBS := $(JOBS)
export CCACHE_SLOPPINESS := pch_defines,time_macros,include_file_mtime,include_file_ctime
export CCACHE_BASEDIR := $(CURDIR)
export CCACHE_NOHASHDIR := 1

NINJA = ninja $(if $(VERBOSE),-v) -j $(JOBS) -C
CONFIGURE = cmake --log-level=STATUS -DTHINWIRE_PYTHON=$(VENV)/bin/python --preset
CTEST = ctest --no-tests=error --output-on-failure
BUILD = build/$(1)$(SUFFIX)
# $(1): preset, $(2): further settings. Configures once; afterwards ninja itself sees when that must be repeated.
configured = test -f $(BUILD)/build.ninja || $(CONFIGURE) $(1) -B $(BUILD) $(2)
SANITIZERS = LSAN_OPTIONS=suppressions=$(CURDIR)/tools/sanitize/lsan.supp:print_suppressions=0 \
             UBSAN_OPTIONS=print_stacktrace=1 ASAN_OPTIONS=detect_stack_use_after_return=1 \
             TSAN_OPTIONS=suppressions=$(CURDIR)/tools/sanitize/tsan.supp:ignore_noninstrumented_modules=1
define sanitized
@$(call configured,$(1),-DTHINWIRE_TORCH=ON)
@$(NINJA) $(call BUILD,$(1)) tests_unit tests_localgroup
@$(SANITIZERS) $(CTEST) --test-dir $(call BUILD,$(1)) -j $(JOBS) -L 'unit|localgroup' -LE 'slow|gpu|dist'
endef

.PHONY: help setup build demo test test-slow test-stress test-asan test-tsan lint format coverage clean
.DEFAULT_GOAL := help

help:  ## this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' Makefile | expand -t 14
	@echo "variables:    TORCH=$(TORCH)  JOBS=$(JOBS)  DATA=DIR (demo)  ARGS=... (demo)  VERBOSE=1"

setup:  ## system packages and a virtual environment with torch; only what is missing
	@bash tools/setup.sh $(VENV) $(TORCH)

build: setup  ## the optimised programs: build/release/bin/thinwire
	@$(call configured,release)
	@$(NINJA) $(call BUILD,release)

demo: build  ## trains a vision transformer on 2 ranks over 100 Mbit/s, dense and with 1-bit Adam
	@bash tools/demo.sh --programs $(call BUILD,release)/bin $(if $(DATA),--data $(DATA)) $(ARGS)

dev: setup
	@$(call configured,dev)
	@$(NINJA) $(call BUILD,dev)

test: dev  ## every test but the slow ones and those that need a GPU
	@$(CTEST) --test-dir $(call BUILD,dev) -j $(JOBS) -LE 'slow|gpu'

test-slow: dev  ## the slow ones: convergence, memory growth, planted faults
	@$(CTEST) --test-dir $(call BUILD,dev) -L slow -LE gpu

test-stress: dev  ## 50 times the tests of 4 processes, 3 times those with failures; no retries
	@bash tools/stress.sh $(call BUILD,dev) 50
	@$(CTEST) --test-dir $(call BUILD,dev) -L fault -LE 'slow|gpu' --repeat until-fail:3

test-asan: setup  ## AddressSanitizer and UBSan on the Torch-free rooms and on the reducer over threads
	@$(call sanitized,asan)

test-tsan: setup  ## ThreadSanitizer on the same
	@$(call sanitized,tsan)

lint: setup  ## the rules of the house as tests
	@$(call configured,dev)
	@$(CTEST) --test-dir $(call BUILD,dev) -j $(JOBS) -L lint

format: setup  ## rewrites C++ files with clang-format
	@python3 tools/check_format.py --fix

coverage: setup  ## lines that the unit and torch tests reach, per file, in build/coverage/coverage.txt
	@$(call configured,coverage)
	@$(NINJA) $(call BUILD,coverage)
	@find $(call BUILD,coverage) -name '*.gcda' -delete
	@$(CTEST) --test-dir $(call BUILD,coverage) -j $(JOBS) -L 'unit|torch' -LE 'slow|gpu'
	@bash tools/coverage.sh $(call BUILD,coverage)

clean:  ## removes build directories; virtual environments stay
	rm -rf build
