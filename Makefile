# Two commands for a newcomer: `make demo` and `make test`. Everything lives in .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
export ENTRYWISE_DATA ?= $(abspath ../shared/data)
# where a shell forbids it, each process would compile its imports again
export PYTHONDONTWRITEBYTECODE :=
INSTALL = $(BIN)/uv pip install --quiet --python $(BIN)/python -c constraints.txt -e

PYTEST = $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal
WORKERS ?= 2

.PHONY: demo test quick lint types imports bench papers docs wheel lock clean

demo: $(VENV)/.demo
	$(BIN)/entrywise demo

# everything, in WORKERS processes; ARGS="tests/test_run.py -x" for less
test: $(VENV)/.dev
	$(PYTEST) $(ARGS)

# daily work: what is marked slow is left out; each of the processes has one core, and threads on it would only wait
quick: export OPENBLAS_NUM_THREADS = 1
quick: $(VENV)/.dev
	$(PYTEST) -m "not slow" $(ARGS)

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.dev
	$(BIN)/mypy

imports: $(VENV)/.dev
	$(BIN)/lint-imports

# make bench NAME=nystrom        every benchmark is benchmarks/NAME.py and prints ratios of one run
bench: $(VENV)/.bench
	$(BIN)/python benchmarks/$(NAME).py $(ARGS)

# every figure of the five papers, hours; what results/ keeps is not drawn again. Pages keep their records beside them
papers: $(VENV)/.dev
	for paper in active-psd binary noisycur rank-one subspace; do \
	  $(BIN)/entrywise reproduce $$paper --page docs/papers $(ARGS) || exit 1; done

# the manual: warnings are errors, and so are links inside of it that lead nowhere
docs: $(VENV)/.dev
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs docs/_build/html
	$(BIN)/python docs/links.py docs/_build/html
	@echo docs/_build/html/index.html

# what people install: the wheel in an environment of its own, without the source; the README's quick starts run there
wheel: $(VENV)/.uv
	rm -rf dist build/wheel
	$(BIN)/uv build --quiet --wheel --out-dir dist
	$(BIN)/uv venv --quiet build/wheel
	$(BIN)/uv pip install --quiet --python build/wheel/bin/python -c constraints.txt dist/*.whl
	cd build && wheel/bin/entrywise --version && wheel/bin/entrywise methods passive >/dev/null
	cd build && wheel/bin/python -c "import entrywise, pathlib; assert (pathlib.Path(entrywise.__file__).parent / 'py.typed').exists()"
	$(BIN)/uv pip install --quiet --python build/wheel/bin/python -c constraints.txt pytest
	cd build && wheel/bin/python -m pytest -q -c /dev/null --rootdir . --noconftest ../tests/test_front_door.py -k readme

# the pins carry no address: a URL in them fails the build
lock: $(VENV)/.uv
	$(BIN)/uv pip compile --quiet --universal --no-header --no-annotate --no-emit-index-url --no-emit-find-links \
	  --python-version 3.11 --all-extras -o constraints.txt pyproject.toml
	@! grep -n '://' constraints.txt || (echo 'constraints.txt must hold no address; remove the lines above' && exit 1)

$(VENV)/.uv:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check uv
	touch $@

$(VENV)/.demo: $(VENV)/.uv pyproject.toml constraints.txt
	$(INSTALL) '.[plot]'
	touch $@

$(VENV)/.dev: $(VENV)/.uv pyproject.toml constraints.txt
	$(INSTALL) '.[dev]'
	touch $@

$(VENV)/.bench: $(VENV)/.uv pyproject.toml constraints.txt
	$(INSTALL) '.[bench]'
	touch $@

clean:
	rm -rf $(VENV) build dist docs/_build docs/gallery .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage
