# make demo   install, train the demo cohort, open the dashboard on it
# make app    the dashboard alone
# make test   everything that CI checks, in two processes (WORKERS=…)
# make faults every fault at every place, a kill with every method: what `make test` takes a sample of
PYTHON ?= python3
PORT ?= 8501
WORKERS ?= 2
BIN := .venv/bin

.PHONY: demo app test faults clean
.DELETE_ON_ERROR:

demo: .venv/installed
	@$(BIN)/python -m corl_core demo --port $(PORT)

app: .venv/installed
	@$(BIN)/python -m corl_core app --port $(PORT)

test: .venv/installed-tests
	@$(BIN)/python -m pytest -n $(WORKERS) --dist loadscope

faults: .venv/installed-tests
	@$(BIN)/python -m pytest tests/faults tests/test_resume.py -m faults -n $(WORKERS) --dist load

.venv/installed: requirements.txt
	@$(PYTHON) corl_core/preflight.py
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@echo "Installing the requirements into .venv (once; some minutes) …"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.txt
	@touch $@

.venv/installed-tests: .venv/installed tests/requirements.txt
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -r tests/requirements.txt
	@touch $@

clean:
	rm -rf .venv
