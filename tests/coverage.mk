# SPDX-License-Identifier: GPL-2.0-or-later
# What tests reach of some sources: two tables, lines and branches of each file,
# worst first, with the lines that are missing; and the totals.
#
#   @$(call coverage,SOURCES,OBJECTS[,LINES,BRANCHES])
#
# SOURCES is the folder whose files count, OBJECTS one of objects built with
# --coverage that have run; LINES and BRANCHES are the least percentages. What
# cannot be reached says so, and why: /* GCOVR_EXCL_LINE: why */.

GCOVR := gcovr -j $(shell nproc) --merge-mode-functions=separate --sort=uncovered-percent
coverage = $(GCOVR) -r $(1) --json $(2)/coverage.json $(2) && \
	$(GCOVR) -r $(1) -a $(2)/coverage.json --txt --txt-metric branch --sort-branches && \
	$(GCOVR) -r $(1) -a $(2)/coverage.json --txt --print-summary \
		$(if $(3),--fail-under-line $(3) --fail-under-branch $(4))
