# SPDX-License-Identifier: GPL-2.0-or-later
# Everything a user or a developer starts. Everything is built in a Debian 13
# root below build/, so the host needs little; `make deps` installs that.

.DEFAULT_GOAL := help
# The scripts use all CPUs themselves, and guests want the machine for them.
.NOTPARALLEL:

IN_ROOT := lab/in-root
PYTEST := python3 -m pytest -q $(if $(GATE),-m 'not long')
HOST_PYTEST := /usr/bin/$(PYTEST)
# Passed on to pytest: make test-guest ARGS="-k pingpong", or one file:
# make test-guest GUEST_TESTS=tests/guest/test_lab.py
ARGS ?=

.PHONY: help
help: ## Show this list
	@echo 'qhca: an RDMA network adapter that you can boot.'
	@echo
	@sed -nE 's/^([a-z_]+)=(.*)/s|@\1@|\2|/p' lab/times.env | \
		sed -f /dev/stdin $(firstword $(MAKEFILE_LIST)) | \
		sed -nE 's/^([a-z-]+):.*## (.*)/\1|\2/p' | \
		awk -F'|' '{ printf "  make %-15s %s\n", $$1, $$2 }'
	@echo
	@echo '  ARGS="..." goes to pytest, QHCA_GUEST_PACKAGES="..." into the guests,'
	@echo '  QHCA_CACHE=DIR keeps the big roots elsewhere. More: README.md'

# ---------------------------------------------------------------- building

# GATE=1 leaves out what is marked as long; "make test" sets it.
GATE ?=
export GATE
# BUILT=1: all is built, tests need not look; lab/run-tests sets it.
BUILT ?=
built = $(if $(BUILT),,$(1))

.PHONY: deps root qemu driver provider progs image build
deps: ## Install the few packages the host needs (sudo when not root)
	@lab/deps

root: deps ## Make the Debian 13 build root (@root@, once)
	@lab/make-root build

qemu: root ## Build QEMU with the device (@qemu@, then seconds)
	@lab/build-qemu

driver: root ## Build the Linux driver
	@lab/build-driver

provider: root ## Build the rdma-core provider
	@lab/build-provider

progs: root ## Build the programs and modules that guest tests run
	@lab/build-progs
	@lab/build-test-modules

image: root ## Make the guest image (@image@, once)
	@lab/make-image

build: qemu driver provider progs image ## All of the above (@run_first@, then seconds)

# ----------------------------------------------------------------- running

.PHONY: run shell debug
run: build ## Boot two guests and run ibv_rc_pingpong between them (@run@)
	@lab/demo

shell: build ## Boot two guests, open a shell in the first; they end with it
	@lab/demo --shell

# PROG runs in b and, with b's address, in a; SOLO=1: in a alone.
debug: build ## Boot two guests, stop at PROG's first doorbell: tmux, scope, gdb
	@lab/debug $(if $(SOLO),--solo) $(if $(PROG),'$(subst ','\'',$(value PROG))')

# ----------------------------------------------------------------- testing

# Two lanes side by side, of about the same length.
# All is built before: beside anything else QEMU takes four times as long.
LANES = "test-guest-pair test-pyverbs" "test-manual test-provider test-driver \
	check-style driver-newest test-engine$(1) test-lab test-device test-docs \
	test-guest-labs"

.PHONY: test test-all
test: build ## The gate: build all, a test of every kind (@test@)
	@GATE=1 lab/run-tests $(call LANES)

test-all: build ## Every test there is, the long and the rare included (@test_all@)
	@GATE= lab/run-tests $(call LANES,-all)

.PHONY: test-manual test-lab test-engine test-provider test-driver test-device \
	test-pyverbs test-docs test-guest

test-manual: $(call built,root) ## Compare docs/hardware.md with the contract header (seconds)
	$(IN_ROOT) $(PYTEST) tests/manual $(ARGS)

test-lab: $(call built,deps) ## Tests of launcher and tools that need no guest (@test_lab@)
	$(HOST_PYTEST) tests/lab $(ARGS)

test-engine: $(call built,root) ## Engine unit tests, simulation, short fuzzing (@test_engine@)
	$(IN_ROOT) $(MAKE) -f tests/engine/Makefile check

.PHONY: test-engine-all coverage
test-engine-all: $(call built,root) ## The same with more seeds and longer fuzzing
	$(IN_ROOT) $(MAKE) -f tests/engine/Makefile check-all

coverage: root ## Lines and branches of engine and provider that tests reach
	@lab/build-provider
	$(IN_ROOT) $(MAKE) -f tests/engine/Makefile coverage
	$(IN_ROOT) $(MAKE) -C tests/provider coverage

test-provider: $(call built,root) ## Unit tests of the provider (seconds)
	@lab/build-provider
	$(IN_ROOT) $(MAKE) -C tests/provider check

test-driver: $(call built,root) ## Unit tests of the driver, and its parts (seconds)
	@lab/build-driver
	$(IN_ROOT) $(MAKE) -C tests/driver-unit check

.PHONY: check-style driver-newest
check-style: $(call built,qemu) ## checkpatch over device and driver, sparse (@check_style@)
	@lab/check-style

driver-newest: $(call built,root) ## Build the driver against the newest kernel of the backports
	@lab/build-driver-newest

test-device: $(call built,qemu) ## Device tests over qtest, no guest (@test_device@)
	$(IN_ROOT) $(PYTEST) tests/device $(ARGS)

test-docs: $(call built,build) ## Execute every command that the documents show (@test_docs@)
	$(HOST_PYTEST) tests/docs $(ARGS)

test-guest: $(call built,build) ## Guest tests: pairs of guests are booted (@test_guest@)
	$(HOST_PYTEST) --durations=10 $(or $(GUEST_TESTS),tests/guest) $(ARGS)

# The same in two halves, for two lanes: the tests that share one pair of guests, and
# the others. What runs side by side needs names of its own for its labs.
.PHONY: test-guest-pair test-guest-labs
test-guest-%: export QHCA_TEST_LAB = $*
test-guest-pair test-guest-labs: test-guest-%: $(call built,build)
	$(HOST_PYTEST) -m '$(if $(filter labs,$*),not )pair$(if $(GATE), and not long)' \
		tests/guest $(ARGS)

NIC ?= qhca
test-pyverbs: $(call built,build) ## rdma-core's own tests in a guest; NIC=rxe: Soft-RoCE's (@test_pyverbs@)
	@tests/pyverbs/run --nic $(NIC) $(ARGS)

.PHONY: bench
bench: build ## Measure qhca against Soft-RoCE -> build/bench.json (@bench@)
	@lab/bench $(ARGS)

.PHONY: figures
figures: build ## Draw the figures of docs/images from running guests (@figures@)
	@lab/figures $(ARGS)

# ---------------------------------------------------------------- cleaning

.PHONY: clean distclean
clean: ## Remove what was compiled; the roots and images stay
	@lab/clean

distclean: ## Remove all of build/
	@lab/clean --all
