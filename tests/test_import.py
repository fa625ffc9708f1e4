import subprocess
import sys

import pytest

import kmatch

IMPORT = """
import sys
import tensorflow, keras
before = set(sys.modules)
import kmatch
print(*{name.split(".")[0] for name in set(sys.modules) - before})
"""
LOAD = """
import sys
import kmatch
kmatch.matchers.saved.SavedMatcher(sys.argv[1]).encode_texts(["a red circle"])
"""


def run(code, *arguments):
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        check=True, capture_output=True, text=True,
    ).stdout  # fmt: skip


def test_importing_kmatch_imports_nothing_that_takes_long():
    heavy = {
        "keras_cv", "matplotlib", "pandas", "PIL", "scipy", "sklearn",
        "tensorboard", "tensorflow_text", "torch", "transformers",
    }  # fmt: skip
    imported = set(run(IMPORT).split())
    assert "kmatch" in imported
    assert not imported & heavy


@pytest.mark.slow
def test_an_export_is_loaded_where_no_text_was_split_before(trained, tmp_path):
    kmatch.export(trained, tmp_path)
    run(LOAD, tmp_path)
