# Two commands for newcomers: `make demo` and `make test`. `make docs` builds the site, `make bench`
# measures, `make dist` and `make test-oldest` come before a release.
# Everything is installed into .venv; nothing else on the machine is touched, except that
# `make test` installs Debian's chromium where it can (root), to open the report in a real browser.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet

# nothing is compiled that is never imported: a third of the time of an installation
INSTALL := $(PIP) install --no-compile

# one BLAS thread per worker: two workers and two cores; the site is built once, by one of them
TEST_ENV := OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 MKL_NUM_THREADS=1 MPLBACKEND=Agg

.PHONY: demo test check docs dist test-oldest bench browser picture clean

demo: $(VENV)/.demo
	@$(BIN)/defgpa demo --output demo

test: $(VENV)/.test browser check
	@$(TEST_ENV) $(BIN)/python -m pytest -n 2 --dist loadgroup

check: $(VENV)/.test
	@$(BIN)/ruff format --check src tests benchmarks docs
	@$(BIN)/ruff check src tests benchmarks docs
	@$(BIN)/mypy

# the documentation: every example run, every link checked; opens from the file, offline
docs: $(VENV)/.docs
	@$(TEST_ENV) $(BIN)/python docs/build.py site
	@echo "Open site/index.html in a browser."

# wheel and sdist, each installed into an empty environment and tried there;
# make dist PYTHONS='python3.12 python3.13' tries the wheel on these, too
dist: $(VENV)/.test
	@$(BIN)/python .ci/dist.py dist $(PYTHONS)

# the tests with every dependency at its lower bound; the tools that run them are the newest.
# Old versions meet newer companions, so what is deprecated is no error here.
OLDEST := .venv-oldest
test-oldest: pyproject.toml
	@$(PYTHON) -m venv $(OLDEST)
	@$(PYTHON) .ci/oldest.py > $(OLDEST)/constraints.txt
	@$(OLDEST)/bin/python -m pip --disable-pip-version-check --quiet install \
	  -c $(OLDEST)/constraints.txt -e '.[all]' 'pytest<9.2' pytest-xdist hypothesis selenium trimesh meshio vtk
	@$(TEST_ENV) $(OLDEST)/bin/python -m pytest -n 2 --dist loadgroup \
	  -W ignore::DeprecationWarning -W ignore::PendingDeprecationWarning -W ignore::FutureWarning

bench: $(VENV)/.bench
	@$(BIN)/python benchmarks/run.py

# the README's picture, made from the demo's report by the project's own script
picture: demo browser $(VENV)/.test
	@$(BIN)/python docs/make_picture.py demo/report.html docs/report.png

browser:
	@{ command -v chromium && command -v chromedriver; } >/dev/null 2>&1 \
	  || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1 \
	       && apt-get update -qq >/dev/null 2>&1 \
	       && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq chromium chromium-driver >/dev/null 2>&1; } \
	  || echo "No chromium with chromedriver, and no way to install them here: the browser tests will be skipped."

$(VENV)/pyvenv.cfg:
	@$(PYTHON) -c 'import sys; sys.exit("defgpa needs Python 3.11 or newer: make PYTHON=python3.11 ..." if sys.version_info < (3, 11) else 0)'
	@echo "Making $(VENV) and installing into it; the first time takes a minute or two."
	@$(PYTHON) -m venv $(VENV)

$(VENV)/.demo: pyproject.toml | $(VENV)/pyvenv.cfg
	@$(INSTALL) -e '.[plot,report]'
	@touch $@

$(VENV)/.test: pyproject.toml | $(VENV)/pyvenv.cfg
	@$(INSTALL) -e '.[test]'
	@touch $@

$(VENV)/.docs: pyproject.toml | $(VENV)/pyvenv.cfg
	@$(INSTALL) -e '.[docs]'
	@touch $@

$(VENV)/.bench: benchmarks/requirements.txt $(VENV)/.test
	@$(INSTALL) -r benchmarks/requirements.txt
	@touch $@

clean:
	rm -rf $(VENV) .venv-oldest demo dist site .pytest_cache .mypy_cache .ruff_cache .hypothesis
