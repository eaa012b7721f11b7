# What a checkout needs: Debian (or a relative) with Python 3.11 to 3.13, git, make and gcc. `make help` lists the rest.

VENV := .venv
PYTHON := $(VENV)/bin/python
READY := $(VENV)/.ready
PYTHON_NAMES := python3 python3.13 python3.12 python3.11
SUPPORTED := import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))
EMULATOR_PACKAGES := pkg-config qemu-user libc6-arm64-cross libc6-armhf-cross
PEER_PACKAGES := openssh-server openssh-client adb chromium
EMULATOR_LOADER := /usr/aarch64-linux-gnu/lib/ld-linux-aarch64.so.1
EMULATOR_LOADER_32 := /usr/arm-linux-gnueabihf/lib/ld-linux-armhf.so.3

.DEFAULT_GOAL := help
.PHONY: help setup emulator peers autotune test docs diagram screenshots lint clean

help: ## Show this list.
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-11s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

setup: $(READY) emulator ## Make the virtual environment and install the emulator; instant when done before.

autotune: setup ## Tune the example for the emulated arm64 board.
	@$(VENV)/bin/sdk autotune --target arm64 --budget 2m --batch-size 16 -p width=640 -p height=360

check: setup ## Check style, types and imports, and run the quick tests: about four minutes.
	@$(MAKE) --no-print-directory -j 2 --output-sync=target lint quick

quick: setup
	@$(PYTHON) -m pytest -n 2 -q -m quick

test: setup peers ## Run all tests, and tell which took longest.
	@$(PYTHON) -m pytest -n 4 --durations 20 || { code=$$?; \
		[ $$code -ne 5 ] || echo "test: pytest found no tests to run." >&2; exit $$code; }

# The variable keeps the theme from telling about its successor.
docs: setup ## Build the documentation as a site, build/site; `.venv/bin/mkdocs serve` shows it, with search.
	@NO_MKDOCS_2_WARNING=1 $(VENV)/bin/mkdocs build --strict --quiet

diagram: setup ## Draw docs/architecture.svg from the imports, and the tables of options in docs/tuning.md.
	@$(PYTHON) -m docs.draw_architecture
	@$(PYTHON) -m docs.draw_options

screenshots: setup peers ## Take the pictures of pages in the documentation; tunes an example, three minutes.
	@$(PYTHON) -m docs.take_screenshots

lint: setup ## Check style, types, the direction of imports, and what the documentation has from the code.
	@$(VENV)/bin/ruff check .
	@$(VENV)/bin/ruff format --check .
	@$(VENV)/bin/mypy
	@$(VENV)/bin/lint-imports
	@$(PYTHON) -m docs.draw_architecture --check
	@$(PYTHON) -m docs.draw_options --check

clean: ## Remove the virtual environment, caches and build outputs; tuning results stay.
	@rm -rf $(VENV) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(READY): pyproject.toml
	@python=$$(for name in $(PYTHON_NAMES); do \
		if "$$name" -c '$(SUPPORTED)' 2>/dev/null; then echo "$$name"; break; fi; done); \
	if [ -z "$$python" ]; then \
		echo "setup: Python 3.11, 3.12 or 3.13 is needed and is not on PATH (python3 is $$(python3 -V 2>/dev/null || echo missing));" \
			"on Debian 12 or newer: apt-get install python3 python3-venv" >&2; exit 1; fi; \
	if ! "$$python" -c 'import ensurepip, venv' 2>/dev/null; then \
		echo "setup: $$python cannot make virtual environments; on Debian: apt-get install python3-venv" >&2; \
		exit 1; fi; \
	if ! $(PYTHON) -c '$(SUPPORTED)' 2>/dev/null; then "$$python" -m venv --clear $(VENV) || exit 1; fi; \
	echo "setup: installing the packages into $(VENV); the first time this takes a few minutes."; \
	$(PYTHON) -m pip install --quiet --disable-pip-version-check --editable '.[dev]' || { \
		echo "setup: pip could not install the packages; see its message above." >&2; exit 1; }
	@touch $@

# The emulators that run programs of boards, and the real peers that the tests talk to.
emulator:
	@$(call install,command -v pkg-config && command -v qemu-aarch64 && [ -e $(EMULATOR_LOADER) ] && [ -e $(EMULATOR_LOADER_32) ],\
		$(EMULATOR_PACKAGES),to run programs of boards and find libraries,to tune without a board)

peers: emulator # one after the other: apt-get waits for nobody
	@$(call install,PATH="$$PATH:/usr/sbin" command -v sshd && command -v adb && command -v ssh-agent && command -v chromium,\
		$(PEER_PACKAGES),for the tests,to test SSH and Android devices and reports)

# install(check, Debian packages, why they are installed, what they are needed for): says so where that is not possible.
define install
if { $(1); } >/dev/null; then exit 0; fi; \
if ! command -v apt-get >/dev/null; then root=none; \
elif [ "$$(id -u)" -eq 0 ]; then root=; \
elif sudo -n true 2>/dev/null; then root="sudo -n"; \
else root=none; fi; \
if [ "$$root" != none ]; then \
	echo "setup: installing $(strip $(2)), $(strip $(3))."; \
	{ $$root apt-get update -qq && $$root env DEBIAN_FRONTEND=noninteractive \
		apt-get install -qq -y --no-install-recommends $(2); } >/dev/null && exit 0; fi; \
echo "setup: $(strip $(4)), install what that needs yourself; on Debian: apt-get install $(strip $(2))" >&2
endef
