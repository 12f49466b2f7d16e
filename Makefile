# Two commands are all a new machine needs: `make quickstart` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: quickstart test check bench study soak clean

$(STAMP): pyproject.toml
	test -x $(BIN)/pip || $(PYTHON) -m venv $(VENV)
	$(BIN)/pip install -q --editable ".[test]"
	touch $(STAMP)

quickstart: $(STAMP)   ## real bilingual text to a decision, some 3 minutes on 2 quiet cores
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python examples/quickstart/run.py

check: $(STAMP)        ## lint, format and types only
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

test: check            ## lint, types and every test, on all cores
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m pipeline.warm
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m pytest --numprocesses auto --dist loadfile

bench: $(STAMP)        ## figures of README and docs/performance.md
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python benchmarks/run.py

study: $(STAMP)        ## raw against filtered on the real text in $$ASSAY_CORPUS
	cd benchmarks/study && PATH="$(CURDIR)/$(BIN):$$PATH" && \
	assay tokenizer train corpus.yaml --vocab-size 6000 --sample 10MB --overwrite \
	    --output $(CURDIR)/.cache/study/tokenizer.json && \
	assay prepare corpus.yaml && assay ablate study.yaml --fresh

soak: $(STAMP)         ## the long form of the checks that `make test` runs short
	PATH="$(CURDIR)/$(BIN):$$PATH" ASSAY_SOAK=1 $(BIN)/python -m pytest -m slow

clean:
	rm -rf $(VENV) .cache build dist *.egg-info
