# Two commands for newcomers: `make demo` and `make test`. `make docs` builds the site, `make bench`
# measures, `make dist` and `make test-oldest` come before a release.
# Everything is installed into .venv; nothing else on the machine is touched, except that
# `make test` installs Debian's chromium where it can (root), to open the report in a real browser.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet

# uv takes a third of pip's time, and keeps nothing on the machine; where it cannot (an index that only pip is told
# of), pip does. Nothing is compiled that is never imported
UV := $(PIP) install --no-compile uv && $(BIN)/uv pip install --quiet --no-cache --python $(BIN)/python

# one BLAS thread per worker: two workers and two cores. A file of tests goes to one of them as a whole, so
# that what its tests share (the site, the browser, fits) is made once; the longest files begin (tests/conftest.py).
# What is compiled is kept in .venv, even where the environment says that nothing should be: dozens of tests start a
# Python of their own, each of which would compile numpy, scipy and scikit-learn anew
TEST_ENV := OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 MKL_NUM_THREADS=1 MPLBACKEND=Agg \
  PYTHONDONTWRITEBYTECODE= PYTHONPYCACHEPREFIX=$(CURDIR)/$(VENV)/bytecode
WORKERS := -n 2 --dist loadfile --no-loadscope-reorder

.PHONY: demo test check lint docs dist test-oldest bench fuzz browser picture clean

demo: $(VENV)/.demo
	@$(BIN)/defgpa demo --output demo

# The browser is installed while Python's packages are. The types are checked while the tests run, and told of after
# them if they are wrong
test:
	@$(MAKE) --no-print-directory -j 2 browser lint
	@$(BIN)/mypy > $(VENV)/types.txt 2>&1 & types=$$!; \
	$(TEST_ENV) $(BIN)/python -m pytest $(WORKERS); tests=$$?; \
	wait $$types || { cat $(VENV)/types.txt; exit 1; }; exit $$tests

# damages small files at random and reads them, for so many seconds; what breaks a reader is kept in fuzz_failures/
SECONDS ?= 60
fuzz: $(VENV)/.test
	@$(TEST_ENV) $(BIN)/python tests/io/fuzz.py --seconds $(SECONDS)

check: lint
	@$(BIN)/mypy

lint: $(VENV)/.test
	@$(BIN)/ruff format --check src tests benchmarks docs
	@$(BIN)/ruff check src tests benchmarks docs

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
	  -c $(OLDEST)/constraints.txt -e '.[all]' pytest pytest-xdist hypothesis selenium trimesh meshio vtk
	@$(TEST_ENV) $(OLDEST)/bin/python -m pytest $(WORKERS) \
	  -W ignore::DeprecationWarning -W ignore::PendingDeprecationWarning -W ignore::FutureWarning

bench: $(VENV)/.bench
	@$(BIN)/python benchmarks/run.py

# the README's picture, made from the demo's report by the project's own script
picture: demo browser $(VENV)/.test
	@$(BIN)/python docs/make_picture.py demo/report.html docs/report.png

# what Debian only recommends beside chromium (a printer's settings, a daemon for power) is ninety packages; of it
# only the letters are needed
browser:
	@{ command -v chromium && command -v chromedriver; } >/dev/null 2>&1 \
	  || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1 \
	       && apt-get update -qq >/dev/null 2>&1 \
	       && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
	            chromium chromium-driver fonts-liberation >/dev/null 2>&1; } \
	  || echo "No chromium with chromedriver, and no way to install them here: the browser tests will be skipped."

$(VENV)/pyvenv.cfg:
	@$(PYTHON) -c 'import sys; sys.exit("defgpa needs Python 3.11 or newer: make PYTHON=python3.11 ..." if sys.version_info < (3, 11) else 0)'
	@echo "Making $(VENV) and installing into it; the first time takes a minute or two."
	@$(PYTHON) -m venv $(VENV)

EXTRAS.demo := plot,report
EXTRAS.test := test
EXTRAS.docs := docs
$(VENV)/.demo $(VENV)/.test $(VENV)/.docs: pyproject.toml | $(VENV)/pyvenv.cfg
	@{ $(UV) -e '.[$(EXTRAS$(suffix $@))]'; } 2>/dev/null || $(PIP) install --no-compile -e '.[$(EXTRAS$(suffix $@))]'
	@touch $@

$(VENV)/.bench: benchmarks/requirements.txt $(VENV)/.test
	@$(PIP) install --no-compile -r benchmarks/requirements.txt
	@touch $@

clean:
	rm -rf $(VENV) .venv-oldest demo dist site .pytest_cache .mypy_cache .ruff_cache .hypothesis
