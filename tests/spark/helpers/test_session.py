"""Everything that prevents Spark from starting is reported in a sentence. These tests do not start it."""

import sys
from pathlib import Path

import pytest

from quire.spark import session
from quire.spark.session import SparkMissingError, java_version, python_path, require_spark


@pytest.mark.parametrize(
    ("said", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('openjdk version "21" 2023-09-19', 21),
        ('java version "1.8.0_392"', 8),
        ("nonsense", None),
    ],
)
def test_the_version_of_java_is_read_from_what_it_says(said: str, version: int | None) -> None:
    assert java_version(said) == version


def test_a_missing_java_is_named_with_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SparkMissingError, match="there is none; install openjdk-17-jre-headless"):
        require_spark()


def test_a_java_home_without_java_is_named_and_not_taken_for_a_missing_java(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(SparkMissingError) as wrong:
        require_spark()
    assert f"JAVA_HOME ({tmp_path}) has no bin/java that runs; set it" in str(wrong.value)


def test_an_old_java_is_named_with_its_version(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\"' >&2\n")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(SparkMissingError, match="is version 11"):
        require_spark()


def test_a_missing_pyspark_is_named_with_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "find_spec", lambda name: None)
    with pytest.raises(SparkMissingError, match=r"\.\[spark\]"):
        require_spark()


def test_workers_import_from_where_this_process_does_but_not_from_another_interpreters_library(tmp_path: Path) -> None:
    path = python_path([str(tmp_path), f"{sys.prefix}/lib", f"{sys.base_prefix}/lib/python311.zip"], "/given")
    assert path.split(":") == [str(tmp_path), "/given"]
