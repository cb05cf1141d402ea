"""The command line as tests call it."""

import pytest

from defgpa.cli import main


@pytest.fixture
def run(capsys):
    """Return a function that runs a command: exit code, standard output, standard error."""

    def run_command(*words):
        with pytest.raises(SystemExit) as stop:
            main([str(word) for word in words])
        captured = capsys.readouterr()
        return stop.value.code, captured.out, captured.err

    return run_command
