# SPDX-License-Identifier: GPL-2.0-or-later
# The entry points for users and developers. Everything is built in a Debian 13 root below
# build/, so the host needs few packages; `make deps` installs them.

.DEFAULT_GOAL := help
# The scripts use all CPUs themselves, and guests need the machine for themselves.
.NOTPARALLEL:

IN_ROOT := lab/in-root
PYTEST := python3 -m pytest -q $(if $(GATE),-m 'not long')
HOST_PYTEST := /usr/bin/$(PYTEST)
# Arguments for pytest: make test-guest ARGS="-k pingpong", or one file:
# make test-guest GUEST_TESTS=tests/guest/test_lab.py
ARGS ?=
BARE = build/bin/qemu-system-x86_64-bare
ASAN = build/bin/qemu-system-x86_64-asan

.PHONY: help
help: ## Show this list
	@echo 'qhca: an RDMA network adapter that you can boot.'
	@echo
	@sed -nE 's/^([a-z_]+)=(.*)/s|@\1@|\2|/p' lab/gate/times.env | \
		sed -f /dev/stdin $(firstword $(MAKEFILE_LIST)) | \
		sed -nE 's/^([a-z-]+):.*## (.*)/\1|\2/p' | \
		awk -F'|' '{ printf "  make %-15s %s\n", $$1, $$2 }'
	@echo
	@echo '  ARGS="..." goes to pytest, QHCA_GUEST_PACKAGES="..." adds packages to guests,'
	@echo '  QHCA_CACHE=DIR keeps roots and images elsewhere. More: README.md'

# ---------------------------------------------------------------- building

# GATE=1 leaves out tests that are marked as long; "make test" sets it.
GATE ?=
export GATE
# BUILT=1: everything is built already; lab/gate/run-tests sets it.
BUILT ?=
built = $(if $(BUILT),,$(1))

# Another kernel for the guests than Debian's: newest, debug, or a kernel's build tree.
# All that boots labs takes it from the environment.
KERNEL ?= $(QHCA_KERNEL)
override KERNEL := $(filter-out default,$(KERNEL))
export QHCA_KERNEL := $(KERNEL)

.PHONY: deps prepare root qemu driver provider progs image kernel debug-kernel build
deps: ## Install the packages that the host needs (by sudo if not root)
	@lab/build/deps

# Two chains, each with steps that use one CPU or wait for the mirror.
prepare: deps
	@lab/build/make-root guest
	@lab/build/build-qemu & \
		lab/build/make-image --beside && lab/build/build-provider && \
		lab/build/build-driver; status=$$?; \
		wait $$! && exit $$status

root: deps ## Make the Debian 13 build root (@root@, once)
	@lab/build/make-root build

qemu: root ## Build QEMU with the device (@qemu@, then seconds)
	@lab/build/build-qemu

driver: root ## Build the Linux driver
	@lab/build/build-driver

provider: root ## Build the rdma-core provider
	@lab/build/build-provider

progs: root ## Build programs, modules and selftests that guest tests run
	@lab/build/build-progs
	@lab/build/build-test-modules
	@lab/build/build-selftests >/dev/null

image: root ## Make the guest image (@image@, once)
	@lab/build/make-image

kernel: root ## Make KERNEL=newest (debug, a build tree) ready for guests, with driver (@kernel@)
	@lab/build/make-kernel '$(KERNEL)'
	@lab/build/build-driver --kernel '$(KERNEL)'
	@lab/build/build-test-modules --kernel '$(KERNEL)'

build: prepare qemu driver provider progs image $(if $(KERNEL),kernel) ## All of the above (@run_first@, then seconds)

debug-kernel: ## Build the kernel "debug" for guests (half an hour, once)
	@$(MAKE) --no-print-directory kernel KERNEL=debug

.PHONY: patches
patches: root ## Write the series for QEMU, Linux and rdma-core to build/patches
	@lab/build/make-patches

# ----------------------------------------------------------------- running

.PHONY: run shell debug
run: $(call built,build) ## Boot two guests and run ibv_rc_pingpong between them (@run@)
	@lab/run/demo

shell: build ## Boot two guests and open a shell in the first; they end with it
	@lab/run/demo --shell

# PROG runs in b and, with b's address, in a; with SOLO=1 in a only.
debug: build ## Boot two guests, stop at the first doorbell of PROG: tmux, scope, gdb
	@lab/run/debug $(if $(SOLO),--solo) $(if $(PROG),'$(subst ','\'',$(value PROG))')

# ----------------------------------------------------------------- testing

# Three at a time, the long ones first. Two targets share the tests of guest pairs: they
# come last, and next to them targets that end before they do, so that both CPUs are busy
# to the end. Everything is built before, because QEMU takes four times as long to build
# next to guests; only test-lab, without guests, runs next to the build. Some of the
# kernel's selftests have time limits for real machines: in test-all they run alone, and
# the gate has two that have none.
TESTS = test-manual test-provider test-driver test-guest-labs test-engine$(1) test-docs \
	check-style test-pyverbs $(if $(1),test-lab,test-selftests) test-guest-pair-first \
	test-guest-pair-last test-device $(if $(1),driver-newest test-asan test-fuzz) test-bare

.PHONY: test test-all
test: deps ## The gate: build everything, run all but long tests (@test@)
	@GATE=1 lab/gate/run-tests --build build --early test-lab $(call TESTS)

# RESUME=1: after a run that was stopped or failed, only what has not passed yet
test-all: deps ## All tests, including the long ones (@test_all@)
	@GATE= lab/gate/run-tests $(if $(RESUME),--resume) --build build-all $(call TESTS,-all) \
		-- test-series coverage test-selftests test-selftests-newest

.PHONY: build-all
build-all: build
	@QHCA_GUEST_PACKAGES="$$QHCA_GUEST_PACKAGES bpftrace" lab/build/make-image
	@lab/build/make-image
	@$(MAKE) --no-print-directory kernel KERNEL=newest
	@lab/build/build-qemu --asan
	@lab/build/build-qemu --fuzz

.PHONY: test-manual test-lab test-engine test-provider test-driver test-device \
	test-pyverbs test-docs test-guest test-selftests

test-manual: $(call built,root) ## Compare docs/hardware.md with the contract header (seconds)
	$(IN_ROOT) $(PYTEST) tests/manual $(ARGS)

test-lab: $(call built,deps) ## Test launcher and tools without guests (@test_lab@)
	$(HOST_PYTEST) -m 'not alone$(if $(GATE), and not long)' tests/lab $(ARGS)

.PHONY: test-series
test-series: $(call built,root) ## Cut device, driver and provider into patches, and build each
	$(HOST_PYTEST) -m alone tests/lab $(ARGS)

test-engine: $(call built,root) ## Engine unit tests, simulation, short fuzzing (@test_engine@)
	$(IN_ROOT) $(MAKE) -f tests/engine/Makefile check

.PHONY: test-engine-all coverage
test-engine-all: $(call built,root) ## The same, with more seeds and longer fuzzing
	$(IN_ROOT) $(MAKE) -f tests/engine/Makefile check-all

coverage: $(call built,root) ## Show lines and branches of engine and provider that tests reach
	@lab/build/build-provider
	$(IN_ROOT) $(MAKE) -f tests/engine/Makefile coverage
	$(IN_ROOT) $(MAKE) -C tests/provider coverage

test-provider: $(call built,root) ## Unit tests of the provider (seconds)
	@lab/build/build-provider
	$(IN_ROOT) $(MAKE) -C tests/provider check

test-driver: $(call built,root) ## Unit tests of the driver, its layers; a build for the newest kernel
	@lab/build/build-driver
	@lab/build/build-driver-newest --nodebug $(if $(GATE),--unity)
	$(IN_ROOT) $(MAKE) -C tests/driver-unit check $(if $(GATE),NEWEST=)

# They stop before their time is over only if they find something.
.PHONY: fuzz corpus soak
fuzz: root ## Fuzz engine, provider and device on all CPUs, each target for TIME=300 seconds
	@lab/build/build-provider
	@lab/build/build-qemu --fuzz
	$(IN_ROOT) $(MAKE) -f tests/engine/Makefile fuzz TIME='$(TIME)'
	$(IN_ROOT) $(MAKE) -C tests/provider fuzz TIME='$(TIME)'
	$(IN_ROOT) env TIME='$(TIME)' tests/device/fuzz

corpus: root ## Make what fuzzing found the corpora in git, as few inputs as reach as much
	@lab/build/build-provider
	$(IN_ROOT) $(MAKE) -f tests/engine/Makefile corpus
	@lab/build/build-qemu --fuzz
	$(IN_ROOT) $(MAKE) -C tests/provider corpus
	$(IN_ROOT) tests/device/fuzz --minimise

soak: root ## Simulate the engine with new seeds on all CPUs, for TIME=600 seconds
	$(IN_ROOT) $(MAKE) -f tests/engine/Makefile soak TIME='$(TIME)'

.PHONY: check-style driver-newest
check-style: $(call built,qemu) ## checkpatch over device and driver, sparse (@check_style@)
	@lab/build/check-style

driver-newest: $(call built,root) ## Build the driver with its debugging aids for the newest kernel
	@lab/build/build-driver-newest

test-device: $(call built,qemu) ## Test the device over qtest, without guests (@test_device@)
	$(IN_ROOT) $(PYTEST) tests/device $(ARGS)

.PHONY: test-bare
test-bare: $(call built,qemu) ## The device without its observers: built, and tested over qtest
	@lab/build/build-qemu-bare
	$(IN_ROOT) env QHCA_QEMU=$(BARE) $(PYTEST) -m 'not observe$(if $(GATE), and not long and not once)' \
		tests/device $(ARGS)

.PHONY: test-asan
test-asan: $(call built,root) ## The same as test-device, in a QEMU built with AddressSanitizer
	@lab/build/build-qemu --asan
	$(IN_ROOT) env QHCA_QEMU=$(ASAN) $(PYTEST) -m 'not prints' tests/device $(ARGS)

.PHONY: test-fuzz
test-fuzz: $(call built,root) ## Run the corpus of QEMU's generic fuzzer on the PCI device
	@lab/build/build-qemu --fuzz
	$(IN_ROOT) tests/device/fuzz --check $(ARGS)

test-docs: $(call built,build) ## Execute all commands of the documents (@test_docs@)
	$(HOST_PYTEST) tests/docs $(ARGS)

test-guest: $(call built,build) ## Test in booted guests (@test_guest@)
	$(HOST_PYTEST) --durations=10 $(or $(GUEST_TESTS),tests/guest) $(ARGS)

# The same in parts that run in parallel: the tests that share one pair of guests, on two
# such pairs, and the others. Parallel labs need different names.
.PHONY: test-guest-labs test-guest-pair-first test-guest-pair-last
test-guest-labs test-guest-pair-%: export QHCA_TEST_LAB = $(@:test-guest-%=%)
test-guest-labs: $(call built,build)
	$(HOST_PYTEST) -m 'not pair$(if $(GATE), and not long)' tests/guest $(ARGS)

test-guest-pair-first test-guest-pair-last: test-guest-pair-%: $(call built,build)
	$(HOST_PYTEST) -m 'pair$(if $(GATE), and not long)' --shared $* tests/guest $(ARGS)

NIC ?= qhca
test-pyverbs: $(call built,build) ## Run rdma-core's tests in a guest; NIC=rxe: on Soft-RoCE (@test_pyverbs@)
	@tests/pyverbs/run --nic $(NIC) $(ARGS)

test-selftests: $(call built,build) ## Run the kernel's selftests of network drivers in guests
	@lab/run/selftests $(if $(GATE),--short) $(ARGS)

# One of the tests needs bpftrace, which would add 280 MB to the usual image, most of it LLVM.
.PHONY: test-selftests-newest
test-selftests-newest: export QHCA_GUEST_PACKAGES := $(QHCA_GUEST_PACKAGES) bpftrace
test-selftests-newest: $(call built,build) ## The same with the newest kernel, whose list is longer
	@lab/build/make-image
	@$(MAKE) --no-print-directory kernel KERNEL=newest
	@status=0; lab/run/selftests --kernel newest --lab selftests-newest $(ARGS) || status=$$?; \
		QHCA_GUEST_PACKAGES='$(filter-out bpftrace,$(QHCA_GUEST_PACKAGES))' \
		lab/build/make-image; exit $$status

.PHONY: bench profile
bench: build ## Measure qhca against Soft-RoCE (ARGS: --net, --scale, --aims) -> build/bench.json (@bench@)
	@lab/bench/measure $(ARGS)

profile: build ## Flame graphs of both QEMUs under load -> build/profile (installs linux-perf)
	@lab/build/deps linux-perf
	@lab/bench/profile $(ARGS)

.PHONY: figures
figures: build ## Draw the figures of docs/images from running guests (@figures@)
	@lab/figures/draw $(ARGS)

# ---------------------------------------------------------------- cleaning

.PHONY: clean distclean
clean: ## Remove what was compiled; roots and images stay
	@lab/build/clean

distclean: ## Remove all of build/
	@lab/build/clean --all
